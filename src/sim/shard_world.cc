#include "sim/shard_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/probe.h"
#include "core/shard/lifecycle.h"
#include "core/shard/machines.h"
#include "core/shard/shard.h"
#include "host/journal.h"
#include "provider/sim_backend.h"
#include "sim/bad_provider.h"
#include "sim/disk.h"
#include "sim/kernel.h"
#include "sim/network.h"
#include "sim/shard_judge.h"
#include "sim/sim_cluster.h"
#include "sim/sim_host.h"
#include "sim/sim_provider.h"
#include "sim/world_run.h"

namespace muster::sim {
namespace {

using model::MachineState;

constexpr Duration kFaultyTime = 40s;
constexpr Duration kCalmTime = 140s;   // roll-ups may be held for 30 s of it
constexpr Duration kSilentTime = 20s;  // the last of it: nobody acts
constexpr uint64_t kMachines = 12;
constexpr size_t kNodes = 3;  // two shards, and who takes the first one's place
constexpr ProcessId kProviderProcess(0);

// Quick and moody, so that everything happens within a minute.
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
    create: {median: 300ms, p99: 1s, fails: 0.02}
    configure: {median: 300ms, p99: 1s, fails: 0.05}
    drain: {median: 500ms, p99: 2s, fails: 0.03}
    delete: {median: 200ms, p99: 1s, fails: 0.02}
  - name: spot
    capacity: spot
    resources: {cpu: 4}
    price: 0.5
    interruption: 0.999999
    share: 2
    create: {median: 300ms, p99: 1s, fails: 0.05}
    configure: {median: 300ms, p99: 1s, fails: 0.05}
    drain: {median: 500ms, p99: 2s, fails: 0.03}
    delete: {median: 200ms, p99: 1s, fails: 0.02}
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

provider::Config ProviderConfig() {
  return {.name = "cloud",
          .new_lineage = 77,
          .create_timeout = 6s,
          .configure_timeout = 6s,
          .drain_timeout = 6s,
          .delete_timeout = 6s};
}

shard::Config ConfigOf(size_t node, int64_t epoch_at_least) {
  shard::Config config{.id = node == 1 ? "shard-b" : "shard-a",
                       .own = {{.key = "topology.kubernetes.io/zone", .value = node == 1 ? "b" : "a"}},
                       .epoch_at_least = epoch_at_least};
  config.policy.surplus_hold = 2s;
  config.policy.release_hold_on_demand = 4s;
  config.policy.release_hold_spot = 4s;
  config.restart_grace = 3s;
  config.sweep_interval = 6s;
  config.list_page = 4;
  config.list_timeout = 4s;
  config.call_timeout = 3s;
  config.reclaim_window = 8s;
  config.execute_concurrency = 2;
  config.max_actions_per_cycle = 4;
  config.blob_timeout = 3s;
  config.ack_timeout = 2s;
  config.give_up = 5s;
  config.retry_first = 300ms;
  config.retry_longest = 3s;
  config.hold_first = 1s;
  config.hold_longest = 4s;
  config.hold_window = 6s;
  config.outage_longest = 2s;
  config.trial_interval = 2s;
  config.repair_first = 500ms;
  config.repair_longest = 4s;
  config.losses.window = 6s;
  config.losses.replace_window = 2s;
  config.hints_interval = 2s;
  config.verify_decisions = true;
  return config;
}

class ShardWorld {
 public:
  ShardWorld(uint64_t seed, const ShardWorldOptions& options)
      : kernel_(seed),
        rng_(kernel_.ForkRng(0x7368617264)),
        network_(kernel_, {}),
        provider_(kernel_,
                  std::make_unique<provider::SimBackend>(
                      WorldCatalogue(), provider::SimOptions{.name = "cloud", .machines = kMachines, .seed = seed}),
                  ProviderConfig()),
        bad_(kernel_, kMachines, kFaultyTime) {
    for (size_t i = 0; i < kNodes; ++i) nodes_.push_back(std::make_unique<Node>(*this, i, options));
    for (size_t i = 0; i < 4; ++i) {
      links_.emplace_back();
      clusters_.push_back(std::make_unique<SimCluster>(
          kernel_, fmt::format("cluster-{}", i), i % 2 == 0 ? 100 : 1'000'000, 0x636c75 + i,
          SimCluster::World{.say = [this, i](auto message) { Say(i, std::move(message)); },
                            .say_garbage = [this, i] { SayGarbage(i); }}));
      by_name_[clusters_.back()->name()] = clusters_.back().get();
    }
  }

  RunResult Run() {
    DrawFaults();
    provider_.Start();
    nodes_[0]->host.Start();
    nodes_[1]->host.Start();
    for (size_t i = 0; i < clusters_.size(); ++i) kernel_.After(Draw(1s), [this, i] { ClusterTicks(i); });
    ScheduleTrouble();
    if (rng_.Chance(1, 2)) kernel_.After(10s + Draw(20s), [this] { TakeOver(); });
    return RunPhases(kernel_, network_, judge_, result_,
                     {{.begin = {}, .lasts = kFaultyTime},
                      {.begin = [this] { CalmDown(); }, .lasts = kCalmTime - kSilentTime},
                      {.begin = [this] { BeSilent(); }, .lasts = kSilentTime},
                      {.begin = [this] { CheckAtRest(); }}});
  }

 private:
  using Host = SimHost<shard::Core>;

  // One process.
  struct Node {
    Node(ShardWorld& world, size_t node, const ShardWorldOptions& options)
        : index(node),
          disk(world.kernel_, {}, 10 + node),
          host(world.kernel_, disk,
               {.make_core = [&world, node](const contract::Recovered& rows) { return world.MakeCore(node, rows); },
                .start_call = [&world, node](uint64_t life, const auto& call) { world.StartCall(node, life, call); },
                .emit = [&world, node](uint64_t life, const auto& effect) { world.OnEffect(node, life, effect); },
                .stepped =
                    [&world, node](uint64_t, const auto& event, auto effects) {
                      world.judge_.Stepped(world.WhoIs(node), world.nodes_[node]->host.core(), world.kernel_.now(),
                                           event, effects);
                    }}) {
      if (options.journal_directory.empty()) return;
      auto opened = host::JournalWriter::Open(fmt::format("{}/node-{}", options.journal_directory, node),
                                              std::string(shard::Core::kName));
      MUSTER_CHECK(opened.has_value(), "{}", opened.error().ToString());
      journal = *std::move(opened);
      host.SetJournal(journal.get());
    }

    const size_t index;
    Disk disk;
    std::unique_ptr<host::JournalWriter> journal;
    Host host;
    bool zombie = false;
    int64_t epoch_at_least = 0;               // given by whoever starts it
    std::optional<contract::Recovered> copy;  // of its disk, made at some moment
  };

  // A cluster's session: a stream in order, until it breaks.
  struct Link {
    bool up = false;
    size_t node = 0;
    uint64_t life = 0;
    contract::SessionId session = 0;
    MonoTime away_until;  // it does not come back before
    MonoTime to_shard;    // when the last message in this direction arrives
    MonoTime to_cluster;  // and in the other
  };

  Duration Draw(Duration longest) { return Duration(rng_.Between(1, longest.count())); }
  ShardJudge::Who WhoIs(size_t node) const {
    return {.node = node, .life = nodes_[node]->host.life(), .zombie = nodes_[node]->zombie};
  }
  static ProcessId Process(size_t node) { return ProcessId::Of(1 + node); }
  // The node that serves this cluster.
  size_t Serving(size_t cluster) const { return cluster >= 2 ? 1 : taken_over_ ? 2 : 0; }

  shard::Core MakeCore(size_t node, const contract::Recovered& rows) {
    const shard::Config config = ConfigOf(node, nodes_[node]->epoch_at_least);
    judge_.Begins(WhoIs(node), config, rows, kernel_.now().mono);
    auto core = shard::Core::Recover(config, rows);
    MUSTER_CHECK(core.has_value(), "{}", core.error().message());
    return *std::move(core);
  }

  // --- faults

  void DrawFaults() {
    network_.SetFaults({.lost_per_mille = static_cast<uint32_t>(rng_.Below(150)),
                        .doubled_per_mille = static_cast<uint32_t>(rng_.Below(150)),
                        .slow_per_mille = static_cast<uint32_t>(rng_.Below(200)),
                        .slow_delay = 5s});
    const DiskFaults disk{.stall_per_mille = static_cast<uint32_t>(rng_.Below(50)), .stall = 1500ms};
    for (auto& node : nodes_) node->disk.SetFaults(disk);
    provider_.disk().SetFaults(disk);
    if (rng_.Chance(1, 3)) bad_template_ = clusters_[rng_.Below(clusters_.size())]->name();
    trouble_ = Duration(rng_.Between(Duration(1s).count(), Duration(8s).count()));
    session_breaks_ = rng_.Below(150);
  }

  void CalmDown() {
    calm_ = true;
    network_.SetFaults({});
    network_.Heal();
    provider_.disk().SetFaults({});
    provider_.Calm();
    bad_.Calm();
    for (auto& node : nodes_) node->disk.SetFaults({});
    if (!provider_.alive()) provider_.Start();
    for (const size_t i : {Serving(0), Serving(2)}) {
      if (!nodes_[i]->host.alive()) nodes_[i]->host.Start();
    }
    for (size_t i = 0; i < clusters_.size(); ++i) {
      if (links_[i].up && links_[i].node != Serving(i)) Break(i);
      clusters_[i]->SetFaults(false);
      clusters_[i]->SetDemand({{.cpu = rng_.Between(1, 2) * 4000}});
    }
    // More than once: one may be about to stop, and an order that it has not written down is lost.
    for (const Duration pause : {Duration(0s), Duration(5s), Duration(10s)}) {
      kernel_.After(pause, [this] { ResumeAll(); });
    }
    for (Duration pause = 5s; pause < kCalmTime - 2 * kSilentTime; pause += 5s) {
      kernel_.After(pause, [this] { AcceptAll(); });
    }
  }

  void BeSilent() {
    CheckTracked();
    silent_ = true;
    // At static demand a restart changes nothing.
    for (const size_t i : {Serving(0), Serving(2)}) {
      if (nodes_[i]->host.alive()) Crash(i, 500ms);
    }
  }

  void ResumeAll() {
    for (size_t i = 0; i < clusters_.size(); ++i) {
      Order(Serving(i), clusters_[i]->name(), contract::ActuationMode::kActive);
      Order(Serving(i), "", contract::ActuationMode::kActive);
    }
  }

  void AcceptAll() {
    for (const size_t node : {Serving(0), Serving(2)}) {
      if (nodes_[node]->host.alive()) nodes_[node]->host.Post(shard::Asked{++last_order_, contract::AcceptLosses{}});
    }
  }

  void ScheduleTrouble() {
    kernel_.After(Draw(2 * trouble_), [this] {
      if (calm_) return;
      MakeTrouble();
      ScheduleTrouble();
    });
  }

  void MakeTrouble() {
    const size_t i = rng_.Below(kNodes);
    switch (rng_.Below(13)) {
      case 0:
      case 1:
      case 2:
        if (nodes_[i]->host.alive() && !nodes_[i]->zombie) Crash(i, Draw(3s));
        break;
      case 3: nodes_[i]->copy = nodes_[i]->disk.durable(); break;
      case 4: CrashProvider(); break;
      case 5:
        kernel_.JumpWall(Duration(rng_.Between(-Duration(1h).count(), Duration(1h).count())));
        judge_.ClockSet();
        break;
      case 6:
        rng_.Chance(1, 2) ? network_.Cut(Process(i), kProviderProcess) : network_.Cut(kProviderProcess, Process(i));
        kernel_.After(Draw(5s), [this] { network_.Heal(); });
        break;
      case 7: bad_.Hide(Draw(10s)); break;
      case 8: bad_.Hang(Draw(8s)); break;
      case 9:
        PROBE("sim.provider_away");
        away_until_ = kernel_.now().mono + Draw(6s);
        break;
      default: {
        const size_t c = rng_.Below(clusters_.size());
        const bool whole = rng_.Chance(1, 4);
        const auto mode = rng_.Chance(1, 3)   ? contract::ActuationMode::kActive
                          : rng_.Chance(1, 2) ? contract::ActuationMode::kPaused
                                              : contract::ActuationMode::kDryRun;
        Order(Serving(c), whole ? "" : clusters_[c]->name(), mode);
      }
    }
  }

  void CrashProvider() {
    if (!provider_.alive()) return;
    provider_.Crash();
    ++result_.crashes;
    kernel_.After(Draw(3s), [this] {
      if (!provider_.alive()) provider_.Start();
    });
  }

  void Crash(size_t i, Duration pause) {
    PROBE("sim.shard_crashed");
    Node& node = *nodes_[i];
    node.host.Crash();
    ++result_.crashes;
    kernel_.Note("crash");
    for (size_t c = 0; c < links_.size(); ++c) {
      if (links_[c].up && links_[c].node == i) links_[c].up = false;
    }
    if (!calm_ && rng_.Chance(1, 8)) LoseDisk(i);
    kernel_.After(pause, [this, i] {
      if (!nodes_[i]->host.alive() && !nodes_[i]->zombie) nodes_[i]->host.Start();
    });
  }

  // It starts again with an older copy of its data directory, or with none. Not beside a zombie: two processes that go
  // on from one directory have one epoch, and nobody can tell them apart.
  void LoseDisk(size_t i) {
    if (taken_over_ && i != 1) return;
    PROBE("sim.disk_lost");
    Node& node = *nodes_[i];
    node.disk.Replace(node.copy && rng_.Chance(2, 3) ? *node.copy : contract::Recovered());
    judge_.Lost(i, ConfigOf(i, 0).id);
  }

  // The data directory of the first shard is moved to another host, but its process lives on.
  void TakeOver() {
    if (calm_) return;
    // Not in the moment in which it takes its epoch: two copies of one directory would then take the same.
    const Node& first = *nodes_[0];
    const auto epoch = first.disk.durable().find(shard::kEpochRow.key());
    const bool settled = first.host.alive() && first.host.core().lifecycle().epoch() > 0 &&
                         epoch != first.disk.durable().end() &&
                         epoch->second == shard::kEpochRow.Put(first.host.core().lifecycle().epoch()).value;
    if (!settled) return kernel_.After(500ms, [this] { TakeOver(); });
    PROBE("sim.taken_over");
    nodes_[0]->zombie = true;
    taken_over_ = true;
    nodes_[2]->disk.Replace(nodes_[0]->disk.durable());
    judge_.Copied(0, 2);
    nodes_[2]->host.Start();
    for (size_t i = 0; i < 2; ++i) {
      if (links_[i].up) Break(i);
    }
  }

  void Order(size_t node, const std::string& cluster, contract::ActuationMode mode) {
    if (!nodes_[node]->host.alive()) return;
    orders_[{node, cluster}] = {.request = ++last_order_, .mode = mode};
    if (mode == contract::ActuationMode::kActive) judge_.Resumes(node, cluster);
    nodes_[node]->host.Post(
        shard::Asked{last_order_, contract::SetActuation{.cluster_id = cluster, .mode = mode, .reason = "sim"}});
  }

  // --- sessions

  void ClusterTicks(size_t i) {
    kernel_.After(calm_ ? Duration(1s) : Draw(2s), [this, i] { ClusterTicks(i); });
    Link& link = links_[i];
    if (link.up && !calm_ && rng_.Chance(session_breaks_, 1000)) return Break(i);
    if (link.up) return clusters_[i]->Tick();
    if (!calm_ && kernel_.now().mono < link.away_until) return;
    // Now and then somebody still has the old address.
    const bool astray = taken_over_ && i < 2 && !calm_ && rng_.Chance(1, 6);
    const size_t node = astray ? 0 : Serving(i);
    if (!nodes_[node]->host.alive()) return;
    const MonoTime now = kernel_.now().mono;
    link = {.up = true,
            .node = node,
            .life = nodes_[node]->host.life(),
            .session = ++last_session_,
            .away_until = now,
            .to_shard = now,
            .to_cluster = now};
    ToShard(i, shard::SessionOpened{
                   link.session,
                   {.cluster_id = clusters_[i]->name(), .protocol_version = std::string(contract::kProtocolVersion)}});
    clusters_[i]->Connected();
  }

  // What is under way in a session that breaks is lost; the shard learns of the end.
  void Break(size_t i) {
    Link& link = links_[i];
    link.up = false;
    if (rng_.Chance(1, 3)) link.away_until = kernel_.now().mono + Draw(8s);
    kernel_.After(Draw(500ms), [this, node = link.node, life = link.life, session = link.session] {
      Host& host = nodes_[node]->host;
      if (host.alive() && host.life() == life) host.Post(shard::SessionClosed{session});
    });
  }

  void ToShard(size_t i, shard::Core::Event event) {
    Link& link = links_[i];
    if (!link.up) return;
    link.to_shard = std::max(link.to_shard, kernel_.now().mono + Draw(calm_ ? 5ms : 300ms));
    kernel_.At(link.to_shard, [this, i, session = link.session, event = std::move(event)] {
      const Link& now = links_[i];
      if (!now.up || now.session != session) return;
      Host& host = nodes_[now.node]->host;
      if (host.alive() && host.life() == now.life) host.Post(event);
    });
  }
  void Say(size_t i, contract::OperatorMessage message) {
    ToShard(i, shard::Received{links_[i].session, std::move(message)});
  }
  void SayGarbage(size_t i) {
    ToShard(i, shard::RollupUnreadable{links_[i].session,
                                       Status(Code::kInvalidArgument, "needs[0].cpu: \"x\" is not a quantity")});
  }

  std::optional<size_t> LinkOf(size_t node, uint64_t life, contract::SessionId session) const {
    for (size_t i = 0; i < links_.size(); ++i) {
      const Link& link = links_[i];
      if (link.up && link.node == node && link.life == life && link.session == session) return i;
    }
    return std::nullopt;
  }

  // --- what a shard does

  void OnEffect(size_t node, uint64_t life, const shard::Core::Effect& effect) {
    const shard::Core& core = nodes_[node]->host.core();
    const MonoTime now = kernel_.now().mono;
    if (const auto* send = std::get_if<shard::Send>(&effect)) {
      const auto i = LinkOf(node, life, send->session);
      if (!i) return;
      Link& link = links_[*i];
      link.to_cluster = std::max(link.to_cluster, now + Draw(calm_ ? 5ms : 300ms));
      kernel_.At(link.to_cluster, [this, i = *i, session = link.session, message = send->message] {
        if (links_[i].up && links_[i].session == session) clusters_[i]->Hear(message);
      });
    } else if (const auto* close = std::get_if<shard::CloseSession>(&effect)) {
      if (const auto i = LinkOf(node, life, close->session)) links_[*i].up = false;
    } else if (const auto* audit = std::get_if<shard::Audit>(&effect)) {
      judge_.Audited(WhoIs(node), audit->action);
    } else if (std::holds_alternative<shard::CycleEnded>(effect)) {
      judge_.AfterCycle(WhoIs(node), core, by_name_);
      const size_t other = node == 1 ? Serving(0) : 1;
      if (nodes_[other]->host.alive()) judge_.Disjoint(core, nodes_[other]->host.core());
    } else if (const auto* answer = std::get_if<shard::Answer>(&effect)) {
      const auto order =
          std::ranges::find_if(orders_, [&](const auto& known) { return known.second.request == answer->request; });
      if (order == orders_.end() || !answer->status.ok()) return;  // a later one was given
      judge_.Confirmed(order->first.first, order->first.second, order->second.mode);
      orders_.erase(order);
    } else if (std::holds_alternative<shard::Stop>(effect)) {
      EndsSoon(node, life);
    } else if (const auto* notice = std::get_if<shard::Notice>(&effect)) {
      const bool alarming = notice->reason == model::Reason::kHalted;
      if (alarming || (calm_ && notice->reason == model::Reason::kFenced)) EndsSoon(node, life);
    }
  }

  // Its keeper ends it. What was not a zombie is started again, as the message says.
  void EndsSoon(size_t node, uint64_t life) {
    kernel_.After(Duration::zero(), [this, node, life] {
      Node& stopped = *nodes_[node];
      if (!stopped.host.alive() || stopped.host.life() != life) return;
      if (stopped.zombie) {
        PROBE("sim.zombie_stopped");
        stopped.host.Crash();
      } else {
        stopped.epoch_at_least = judge_.HighestEpoch(ConfigOf(node, 0).id) + 1;
        Crash(node, 1s);
      }
    });
  }

  void StartCall(size_t node, uint64_t life, const shard::Core::Call& call) {
    contract::ProviderRequest request;
    std::visit(
        [&](const auto& body) {
          if constexpr (std::is_constructible_v<contract::ProviderRequest, decltype(body)>) request = body;
        },
        call.request);
    JudgeCall(node, request);
    const auto deliver = [this, node, life, id = call.id, request, fate = bad_.DrawFate()](bool first) {
      const auto answered = [this, node, life, id, request, first, fate](const provider::Answer& answer) {
        if (answer.status.code() != Code::kFailedPrecondition) judge_.Passed(request);
        if (first) Answered(node, life, id, request, fate, answer);
      };
      if (fate == BadProvider::Fate::kRefused) return Answered(node, life, id, request, fate, {});
      if (const Status refused = Refusal(request); !refused.ok()) {
        return Answered(node, life, id, request, BadProvider::Fate::kAnswered, {.status = refused});
      }
      kernel_.After(bad_.DrawWait(), [this, request, answered] { provider_.Ask(request, answered); });
    };
    // A second copy of a call does its work, but nobody waits for its answer.
    const auto seen = std::make_shared<bool>(false);
    network_.Send(Process(node), kProviderProcess, [deliver, seen] { deliver(!std::exchange(*seen, true)); });
  }

  // A provider that is away answers nothing, and one refuses to configure machines for a cluster whose template is bad.
  Status Refusal(const contract::ProviderRequest& request) const {
    if (calm_) return {};
    if (kernel_.now().mono < away_until_) return {Code::kUnavailable, "it restarts"};
    const auto* configure = std::get_if<contract::ConfigureRequest>(&request);
    if (configure == nullptr || configure->cluster_id != bad_template_) return {};
    PROBE("sim.bad_template");
    return {Code::kInternal, "the bootstrap script ended with 1"};
  }

  void JudgeCall(size_t node, const contract::ProviderRequest& request) {
    const bool reads =
        std::holds_alternative<contract::ListRequest>(request) || std::holds_alternative<contract::GetRequest>(request);
    judge_.Check(!silent_ || reads, [&] { return fmt::format("node {} still acts when all is done", node); });
    const auto* configure = std::get_if<contract::ConfigureRequest>(&request);
    const auto cluster = configure == nullptr ? by_name_.end() : by_name_.find(configure->cluster_id);
    judge_.Calls(WhoIs(node), request, cluster == by_name_.end() ? nullptr : cluster->second,
                 nodes_[node]->disk.durable());
  }

  void Answered(size_t node, uint64_t life, contract::CallId id, const contract::ProviderRequest& request,
                BadProvider::Fate fate, const provider::Answer& answer) {
    shard::Core::CallDone done{.id = id, .status = answer.status, .reply = {}};
    if (answer.reply) std::visit([&](const auto& reply) { done.reply = reply; }, *answer.reply);
    bad_.Tamper(node, request, done);
    if (fate != BadProvider::Fate::kAnswered) done = {.id = id, .status = Status(Code::kUnavailable, "try later")};
    network_.Send(kProviderProcess, Process(node),
                  [this, node, life, done = std::move(done)] { nodes_[node]->host.Complete(life, done); });
  }

  // --- the end

  // Everything is known as it is, and nothing is under way.
  void CheckTracked() {
    for (const contract::MachineRecord& machine : provider_.Machines()) {
      const shard::Core& core = nodes_[machine->zone == "b" ? 1 : Serving(0)]->host.core();
      const auto tracked = core.machines().tracked().find(machine->id);
      if (bad_.Gone(machine->id)) {
        judge_.Check(tracked == core.machines().tracked().end(),
                     [&] { return machine->id + " is gone and still tracked"; });
        continue;
      }
      judge_.Check(tracked != core.machines().tracked().end() && *tracked->second.record == *machine,
                   [&] { return fmt::format("{} is not tracked as it is", machine->id); });
      judge_.Check(model::IsStable(machine->state), [&] {
        return fmt::format("{} is {} for ever ({})", machine->id, model::StateName(machine->state),
                           machine->last_error);
      });
    }
  }

  void CheckAtRest() {
    CheckTracked();
    std::map<std::string, int64_t> bound;
    for (const contract::MachineRecord& machine : provider_.Machines()) {
      if (machine->state != MachineState::kConfigured || bad_.Gone(machine->id)) continue;
      bound[machine->cluster] += machine->EffectiveAllocatable().Get("cpu");
    }
    for (const auto& cluster : clusters_) {
      const int64_t has = bound[cluster->name()];
      judge_.Check(has >= cluster->wanted(),
                   [&] { return fmt::format("{} wants {} and has {}", cluster->name(), cluster->wanted(), has); });
      judge_.Check(has < cluster->wanted() + 8000, [&] {
        return fmt::format("{} wants {} and still has {}: {}", cluster->name(), cluster->wanted(), has,
                           Bound(cluster->name()));
      });
    }
    for (const size_t i : {Serving(0), Serving(2)}) {
      const auto view = nodes_[i]->host.core().View();
      judge_.Check(view->shortfalls == 0 && view->operations == 0, [&] {
        return fmt::format("node {} has {} shortfalls and {} operations", i, view->shortfalls, view->operations);
      });
    }
  }

  // "cloud-000001 owned, cloud-000004 spot"
  std::string Bound(const std::string& cluster) const {
    std::string text;
    for (const contract::MachineRecord& machine : provider_.Machines()) {
      if (machine->cluster != cluster) continue;
      text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", machine->id, machine->instance_type,
                          model::StateName(machine->state));
    }
    return text;
  }

  Kernel kernel_;
  Rng rng_;
  Network network_;
  SimProvider provider_;
  BadProvider bad_;
  ShardJudge judge_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<SimCluster>> clusters_;
  std::map<std::string, SimCluster*> by_name_;
  std::vector<Link> links_;  // by cluster
  contract::SessionId last_session_ = 0;
  struct Ordered {
    contract::RequestId request = 0;
    contract::ActuationMode mode = contract::ActuationMode::kActive;
  };
  std::map<std::pair<size_t, std::string>, Ordered> orders_;  // by node and cluster: the latest, until it is answered
  contract::RequestId last_order_ = 0;
  Duration trouble_{};
  uint64_t session_breaks_ = 0;
  std::string bad_template_;  // the cluster that has one; empty: none
  MonoTime away_until_;       // the provider
  bool taken_over_ = false;
  bool calm_ = false;
  bool silent_ = false;
  RunResult result_;
};

}  // namespace

RunResult RunShardWorld(uint64_t seed, const ShardWorldOptions& options) { return ShardWorld(seed, options).Run(); }

}  // namespace muster::sim
