#include "sim/provider_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <vector>

#include "base/check.h"
#include "core/provider/provider.h"
#include "host/journal.h"
#include "provider/sim_backend.h"
#include "sim/disk.h"
#include "sim/kernel.h"
#include "sim/network.h"
#include "sim/provider_judge.h"
#include "sim/sim_host.h"
#include "sim/world_run.h"

namespace muster::sim {
namespace {

using model::MachineState;
using Host = SimHost<provider::Core>;

constexpr Duration kFaultyTime = 40s;
constexpr Duration kCalmTime = 40s;
constexpr Duration kStillTime = 15s;
constexpr Duration kTakeover = 8s;  // when the successor of the zombie begins
constexpr uint64_t kMachines = 9;
constexpr size_t kZombie = 0;
constexpr ProcessId kProvider(0);

// Quick, moody and short-lived, so that everything happens within a minute.
constexpr std::string_view kCatalogue = R"(
zones: [a, b]
racks: 2
notice: 1s
types:
  - name: owned
    capacity: bare-metal
    resources: {cpu: 8}
    price: 1
    share: 1
    starts: idle
    deletable: false
    create: {median: 300ms, p99: 2s, fails: 0.02}
    configure: {median: 300ms, p99: 2s, fails: 0.05}
    drain: {median: 300ms, p99: 3s, fails: 0.03}
    delete: {median: 300ms, p99: 2s, fails: 0.02}
  - name: spot
    capacity: spot
    resources: {cpu: 4}
    price: 0.5
    interruption: 0.999999
    share: 2
    create: {median: 300ms, p99: 2s, fails: 0.05}
    configure: {median: 300ms, p99: 2s, fails: 0.05}
    drain: {median: 300ms, p99: 3s, fails: 0.03}
    delete: {median: 200ms, p99: 2s, fails: 0.02}
    stockOut: {chance: 0.1, lasts: 5s}
    priceMoves: {every: 4s, by: 0.1}
)";

const provider::Catalogue& WorldCatalogue() {
  static const provider::Catalogue catalogue = [] {
    auto read = provider::ReadCatalogue(kCatalogue, "the catalogue of the world");
    MUSTER_CHECK(read.has_value(), "{}", read.error().message());
    return *std::move(read);
  }();
  return catalogue;
}

// Asks for this and that, tries again without waiting for an answer, and follows the machines by lists with a cursor.
struct Shard {
  std::string id;
  int64_t epoch = 0;
  int64_t sequence = 0;
  std::map<std::string, model::Machine> view;
  std::string cursor;
  uint64_t listing = 0;    // number of the newest list asked for; answers to earlier ones are dropped
  bool caught_up = false;  // the last page was empty
};

class ProviderWorld {
 public:
  ProviderWorld(uint64_t seed, const ProviderWorldOptions& options)
      : kernel_(seed),
        rng_(kernel_.ForkRng(0x70776f726c64)),
        network_(kernel_, {}),
        disk_(kernel_, {}, 1),
        cloud_(WorldCatalogue(), {.name = "cloud", .machines = kMachines, .seed = seed}),
        host_(kernel_, disk_,
              {.make_core = [this](const contract::Recovered& rows) { return MakeCore(rows); },
               .start_call = [this](uint64_t life, const auto& call) { StartCall(life, call); },
               .emit = [this](uint64_t, const auto& effect) { OnAnswer(std::get<provider::Answer>(effect)); }}) {
    shards_[kZombie] = {.id = "shard-a", .epoch = 1};
    shards_[1] = {.id = "shard-a", .epoch = 2};
    shards_[2] = {.id = "shard-b", .epoch = 1};
    if (options.journal_directory.empty()) return;
    auto journal =
        host::JournalWriter::Open(options.journal_directory + "/provider", std::string(provider::Core::kName));
    judge_.Check(journal.has_value(), [&] { return journal.error().ToString(); });
    if (!journal) return;
    journal_ = *std::move(journal);
    host_.SetJournal(journal_.get());
  }

  RunResult Run() {
    DrawFaults();
    host_.Start();
    cloud_.Adopt(host_.core().Machines(), kernel_.now());
    PollCloud();
    for (size_t i = 0; i < shards_.size(); ++i) {
      kernel_.After(i == 1 ? kTakeover : Duration::zero(), [this, i] { Act(i); });
    }
    ScheduleCrash();
    return RunPhases(kernel_, network_, judge_, result_,
                     {{.begin = {}, .lasts = kFaultyTime},
                      {.begin = [this] { CalmDown(); }, .lasts = kCalmTime},
                      {.begin = [this] { CheckAtRest(); }}});
  }

 private:
  struct Waiting {
    size_t shard = 0;
    uint64_t listing = 0;
    ProviderJudge::Delivered delivered;
  };

  void DrawFaults() {
    network_.SetFaults({.lost_per_mille = static_cast<uint32_t>(rng_.Below(200)),
                        .doubled_per_mille = static_cast<uint32_t>(rng_.Below(200)),
                        .slow_per_mille = static_cast<uint32_t>(rng_.Below(200))});
    disk_.SetFaults({.stall_per_mille = static_cast<uint32_t>(rng_.Below(100))});
    mean_life_ = Duration(rng_.Between(Duration(500ms).count(), Duration(20s).count()));
    pause_ = Duration(rng_.Between(Duration(50ms).count(), Duration(400ms).count()));
  }

  void CalmDown() {
    calm_ = true;
    kernel_.After(kCalmTime - kStillTime, [this] { still_ = true; });
    network_.SetFaults({});
    disk_.SetFaults({});
    if (!host_.alive()) host_.Start();
  }

  void ScheduleCrash() {
    kernel_.After(Duration(rng_.Between(0, 2 * mean_life_.count())), [this] {
      if (calm_) return;
      // Clocks are set now and then; hours, because then every limit in between is passed.
      if (rng_.Chance(1, 4)) kernel_.JumpWall(Duration(rng_.Between(-Duration(1h).count(), Duration(1h).count())));
      host_.Crash();
      waiting_.clear();
      ++result_.crashes;
      kernel_.Note("crash");
      kernel_.After(Duration(rng_.Between(0, Duration(2s).count())), [this] {
        if (!host_.alive()) host_.Start();
      });
      kernel_.After(2s, [this] { ScheduleCrash(); });
    });
  }

  provider::Core MakeCore(const contract::Recovered& rows) {
    const provider::Config config{.name = "cloud",
                                  .new_lineage = 77,
                                  .create_timeout = 3s,
                                  .configure_timeout = 3s,
                                  .drain_timeout = 4s,
                                  .delete_timeout = 3s};
    auto core = provider::Core::Recover(config, cloud_.Slots(), rows);
    if (!core) {
      judge_.Check(false, [&] { return core.error().ToString(); });
      core = provider::Core::Recover(config, cloud_.Slots(), {});
    }
    return *std::move(core);
  }

  // The cloud lives on when the provider dies; what it has to say to a dead one is lost.
  void StartCall(uint64_t life, const provider::Core::Call& call) {
    judge_.Started(call.request);
    calls_.emplace(++last_call_, std::pair{life, call.id});
    cloud_.Start(last_call_, call.request, kernel_.now());
    PollCloud();
  }
  void PollCloud() {
    const auto next = cloud_.NextPoll();
    if (!next || (polls_at_ && *polls_at_ <= *next)) return;
    polls_at_ = *next;
    kernel_.At(std::max(*next, kernel_.now().mono), [this, when = *next] {
      if (polls_at_ != when) return;
      polls_at_.reset();
      std::vector<provider::Report> reports;
      cloud_.Poll(kernel_.now(), reports);
      for (const provider::Report& report : reports) OnCloud(report);
      PollCloud();
    });
  }
  void OnCloud(const provider::Report& report) {
    // In the last seconds nothing is taken away any more, so that the last lists can have seen everything.
    if (still_ && std::holds_alternative<contract::Observation>(report)) return;
    judge_.CloudDid(report);
    if (const auto* observed = std::get_if<contract::Observation>(&report)) {
      host_.Post(provider::Observed{*observed});
      return;
    }
    const auto& ended = std::get<provider::OperationEnded>(report);
    const auto [life, call] = calls_.at(ended.call);
    provider::Core::CallDone done{.id = call, .status = ended.status, .reply = {}};
    if (ended.status.ok()) done.reply = ended.done;
    host_.Complete(life, std::move(done));
  }

  void Act(size_t i) {
    kernel_.After(Duration(rng_.Between(1, 2 * pause_.count())), [this, i] { Act(i); });
    const uint64_t dice = rng_.Below(100);
    if (calm_ || dice < 25) return AskList(i);
    if (dice < 30) return Send(i, contract::GetRequest{PickMachine(i)}, 0);
    const std::string machine = PickMachine(i);
    // The same thing twice, with a new token each: what a shard does that had no answer.
    const contract::ProviderRequest request = MakeTransition(i, machine);
    const uint64_t tries = 1 + rng_.Below(3);
    for (uint64_t n = 0; n < tries; ++n) {
      kernel_.After(n * pause_, [this, i, request] {
        if (!calm_) Send(i, WithToken(i, request), 0);
      });
    }
  }

  std::string PickMachine(size_t i) {
    if (rng_.Chance(1, 15)) return fmt::format("ghost-{}", rng_.Below(3));
    const uint64_t number = rng_.Below(kMachines);
    // Each shard has its own machines, and is now and then mistaken.
    const bool of_b = number % 3 == 0;
    if (of_b != (i == 2) && !rng_.Chance(1, 10)) return PickMachine(i);
    return fmt::format("cloud-{:06}", number + 1);
  }

  contract::ProviderRequest MakeTransition(size_t i, const std::string& machine) {
    const auto known = shards_[i].view.find(machine);
    const MachineState state = known == shards_[i].view.end() ? MachineState::kUnspecified : known->second.state;
    const uint64_t any = rng_.Below(4);
    const bool sensible = !rng_.Chance(1, 5);
    if ((sensible && state == MachineState::kSpeculative) || (!sensible && any == 0)) {
      return contract::CreateRequest{.machine_id = machine, .fence = {}};
    }
    if ((sensible && state == MachineState::kConfigured) || (!sensible && any == 1)) {
      return contract::DrainRequest{.machine_id = machine, .grace_period_seconds = rng_.Between(0, 2), .fence = {}};
    }
    if ((sensible && state == MachineState::kFailed) || (!sensible && any == 2) || rng_.Chance(1, 4)) {
      return contract::DeleteRequest{.machine_id = machine, .fence = {}};
    }
    const std::string cluster = fmt::format("cluster-{}-{}", i, rng_.Below(4));
    return contract::ConfigureRequest{.machine_id = machine,
                                      .cluster_id = cluster,
                                      .bootstrap_blob = "join " + cluster,
                                      .fence = {},
                                      .shard_metadata = {{"by", fmt::format("{}\n{}", i, ++stamps_)}}};
  }
  contract::ProviderRequest WithToken(size_t i, contract::ProviderRequest request) {
    Shard& shard = shards_[i];
    std::visit(
        [&](auto& body) {
          if constexpr (requires { body.fence; }) {
            body.fence = {.shard_id = shard.id, .epoch = shard.epoch, .sequence = ++shard.sequence};
          }
        },
        request);
    return request;
  }

  void AskList(size_t i) {
    Shard& shard = shards_[i];
    contract::ListRequest list{
        .states = {}, .max_results = static_cast<int32_t>(rng_.Below(5)), .since_revision = shard.cursor};
    // Once in a while somebody asks for one machine of a state, by the way, and does not use the cursor.
    if (!calm_ && rng_.Chance(1, 4)) {
      list = {.states = {MachineState::kSpeculative}, .max_results = 1, .since_revision = {}};
      return Send(i, list, 0);
    }
    Send(i, list, ++shard.listing);
  }

  void Send(size_t i, const contract::ProviderRequest& request, uint64_t listing) {
    network_.Send(ShardProcess(i), kProvider, [this, i, request, listing] {
      if (!host_.alive()) return;
      waiting_.emplace(++last_request_, Waiting{.shard = i, .listing = listing, .delivered = judge_.Deliver(request)});
      host_.Post(provider::Asked{.request = last_request_, .body = request});
    });
  }

  void OnAnswer(const provider::Answer& answer) {
    const auto it = waiting_.find(answer.request);
    MUSTER_CHECK(it != waiting_.end(), "an answer to request {}, which nobody made", answer.request);
    const Waiting waiting = std::move(it->second);
    waiting_.erase(it);
    judge_.Answered(waiting.delivered, answer, disk_.durable());
    if (waiting.listing == 0) return;
    network_.Send(kProvider, ShardProcess(waiting.shard), [this, waiting, answer] {
      Shard& shard = shards_[waiting.shard];
      if (waiting.listing != shard.listing) return;
      ++shard.listing;  // a second copy of this answer is an old one
      const auto& list = std::get<contract::ListReply>(*answer.reply);
      for (const contract::MachineRecord& machine : list.machines) shard.view[machine->id] = *machine;
      shard.cursor = list.revision;
      shard.caught_up = list.machines.empty();
    });
  }

  void CheckAtRest() {
    const std::vector<contract::MachineRecord> machines = host_.core().Machines();
    judge_.AtRest(machines);
    for (const Shard& shard : shards_) {
      for (const contract::MachineRecord& machine : machines) {
        const auto seen = shard.view.find(machine->id);
        judge_.Check(seen != shard.view.end() && seen->second == *machine,
                     [&] { return fmt::format("the lists of {} never showed {} as it is", shard.id, machine->id); });
      }
    }
  }

  static ProcessId ShardProcess(size_t i) { return ProcessId::Of(1 + i); }

  Kernel kernel_;
  Rng rng_;
  Network network_;
  Disk disk_;
  provider::SimBackend cloud_;
  std::unique_ptr<host::JournalWriter> journal_;
  Host host_;
  ProviderJudge judge_;
  std::array<Shard, 3> shards_;
  std::map<contract::RequestId, Waiting> waiting_;
  contract::RequestId last_request_ = 0;
  std::map<contract::CallId, std::pair<uint64_t, contract::CallId>> calls_;  // the cloud's number -> life and call
  contract::CallId last_call_ = 0;
  std::optional<MonoTime> polls_at_;
  Duration mean_life_{};
  Duration pause_{};
  uint64_t stamps_ = 0;
  bool calm_ = false;   // no faults
  bool still_ = false;  // and nothing happens
  RunResult result_;
};

}  // namespace

RunResult RunProviderWorld(uint64_t seed, const ProviderWorldOptions& options) {
  return ProviderWorld(seed, options).Run();
}

}  // namespace muster::sim
