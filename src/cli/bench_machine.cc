#include "cli/bench_machine.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "cli/ask.h"
#include "cli/up_tree.h"
#include "host/children.h"
#include "host/free_ports.h"
#include "host/system_clock.h"
#include "host/temporary_dir.h"
#include "model/text_scalars.h"
#include "rpc/cluster_client.h"
#include "rpc/shard_client.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

constexpr Duration kPatience = 60s;  // for one step
constexpr Duration kStopPatience = 40s;

// A `muster up` in a temporary directory.
class OwnUp {
 public:
  static Result<std::unique_ptr<OwnUp>> Start(size_t machines) {
    MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<host::TemporaryDir> dir, host::TemporaryDir::Make());
    // Users of workloads pass through it to their working directories.
    if (chmod(dir->path().c_str(), 0711) != 0) return Error(Code::kInternal, "the temporary directory is not ours");
    std::unique_ptr<OwnUp> up(new OwnUp(std::move(dir)));
    if (Status status = up->StartAll(machines); !status.ok()) return std::unexpected(std::move(status));
    return up;
  }
  ~OwnUp() {
    cluster_.reset();
    shard_.reset();
    children_.Stop(kStopPatience);
  }
  OwnUp(const OwnUp&) = delete;
  OwnUp& operator=(const OwnUp&) = delete;

  rpc::ClusterClient& cluster() { return *cluster_; }
  fs::path audit_log() const { return dir_->path() / "up" / "audit.log"; }
  // UNAVAILABLE if it has ended.
  Status Check() {
    children_.Poll();
    if (children_.View().front().deaths == 0) return {};
    return {Code::kUnavailable, fmt::format("muster up has ended: {}", host::Children::LastLine(Log()))};
  }

 private:
  explicit OwnUp(std::unique_ptr<host::TemporaryDir> dir)
      : dir_(std::move(dir)), children_({.program = ThisProgram()}, clock_) {}
  fs::path Log() const { return dir_->path() / "up.log"; }

  Status StartAll(size_t machines) {
    const char* const flags[] = {"--scheduler-listen", "--shard-listen",    "--scheduler-metrics",
                                 "--operator-listen",  "--shard-metrics",   "--operator-metrics",
                                 "--provider-listen",  "--provider-metrics"};
    const auto ports = host::FreePorts(std::size(flags));
    if (!ports) return ports.error();
    std::vector<std::string> words = {
        "up", "--plain", "--data-dir", (dir_->path() / "up").string(), "--machines", fmt::to_string(machines)};
    for (size_t i = 0; i < std::size(flags); ++i) {
      words.emplace_back(flags[i]);
      words.push_back(fmt::format("127.0.0.1:{}", (*ports)[i]));
    }
    MUSTER_RETURN_IF_ERROR(children_.Start({.name = "up", .arguments = std::move(words), .log = Log()}));
    auto cluster = rpc::MakeClusterClient(fmt::format("127.0.0.1:{}", (*ports)[0]));
    if (!cluster) return cluster.error();
    cluster_ = *std::move(cluster);
    auto shard = rpc::MakeShardClient(fmt::format("127.0.0.1:{}", (*ports)[1]), {});
    if (!shard) return shard.error();
    shard_ = *std::move(shard);
    return WaitUntilReady();
  }

  bool Ready() {
    const auto nodes =
        WaitFor<contract::ClusterReply>([this](auto done) { cluster_->Ask(contract::ListNodes{}, std::move(done)); });
    if (!nodes) return false;
    const auto clusters = AskShard(*shard_, contract::ListClusters{});
    if (!clusters) return false;
    const auto& listed = std::get<contract::ClustersListed>(*clusters).clusters;
    return listed.size() == 1 && listed.front().session && listed.front().gate_open;
  }

  Status WaitUntilReady() {
    for (const MonoTime end = clock_.Read().mono + kPatience; clock_.Read().mono < end;) {
      MUSTER_RETURN_IF_ERROR(Check());
      if (Ready()) return {};
      std::this_thread::sleep_for(20ms);
    }
    return {Code::kUnavailable,
            fmt::format("muster up is not ready within a minute: {}", host::Children::LastLine(Log()))};
  }

  const std::unique_ptr<host::TemporaryDir> dir_;
  const host::SystemClock clock_;
  host::Children children_;
  std::unique_ptr<rpc::ClusterClient> cluster_;
  std::unique_ptr<contract::ShardPort> shard_;
};

// The text of a key in a line of JSON that we wrote, whose names hold no quotes.
std::string_view TextOf(std::string_view line, std::string_view key) {
  const std::string mark = fmt::format("\"{}\":\"", key);
  const size_t at = line.find(mark);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = line.substr(at + mark.size());
  return rest.substr(0, rest.find('"'));
}

// When the shard bought a machine, had it and had bound it, from the audit log. Nothing until all three are there.
struct Purchase {
  WallTime decided;
  WallTime created;
  WallTime configured;
};
std::optional<Purchase> ReadPurchase(const fs::path& audit_log, const std::string& machine) {
  std::ifstream in(audit_log);
  std::map<std::string, WallTime> times;  // by kind and outcome
  for (std::string line; std::getline(in, line);) {
    if (TextOf(line, "machine") != machine) continue;
    const auto at = model::ParseWallTime(std::string(TextOf(line, "timestamp")));
    if (at) times.emplace(fmt::format("{} {}", TextOf(line, "kind"), TextOf(line, "outcome")), *at);
  }
  const auto decided = times.find("Provision pending");
  const auto created = times.find("Provision success");
  const auto configured = times.find("Bootstrap success");
  if (decided == times.end() || created == times.end() || configured == times.end()) return std::nullopt;
  return Purchase{.decided = decided->second, .created = created->second, .configured = configured->second};
}

class Measurement {
 public:
  Measurement(OwnUp& up, std::stop_token stop) : up_(up), stop_(std::move(stop)) {}

  Result<std::vector<MachineSteps>> Run(size_t samples) {
    const auto listed = WaitFor<contract::ClusterReply>(
        [this](auto done) { up_.cluster().Ask(contract::ListWorkloads{}, std::move(done)); });
    if (!listed) return std::unexpected(listed.error());
    const auto watch = up_.cluster().Watch(
        {.nodes = true, .workloads = true, .from = std::get<contract::WorkloadsListed>(*listed).revision},
        {.changed = [this](const contract::ClusterChange& change) { Changed(change); },
         .ended = [this](Status status) { Fail(std::move(status)); }});
    std::vector<MachineSteps> steps;
    for (size_t i = 0; i <= samples; ++i) {
      MUSTER_ASSIGN_OR_RETURN(const MachineSteps one, One(fmt::format("machine-{}", i)));
      if (i > 0) steps.push_back(one);  // the first finds cold caches
    }
    return steps;
  }

 private:
  static double Millis(Duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

  Result<MachineSteps> One(const std::string& name) {
    model::WorkloadSpec spec{.name = name};
    spec.spec.type = model::WorkloadType::kProcess;
    spec.spec.command = {"sleep", "100000"};
    spec.spec.resources = {{"cpu", 2000}, {"memory", (int64_t{1} << 30) * 1000}};
    spec.spec.grace = 1s;
    {
      const std::lock_guard lock(mu_);
      name_ = name;
      node_.clear();
      pending_.reset();
      running_.reset();
    }
    const Now begin = clock_.Read();
    const auto applied = WaitFor<contract::ClusterReply>(
        [&](auto done) { up_.cluster().Ask(contract::ApplySpec{.spec = spec}, std::move(done)); });
    if (!applied) return std::unexpected(applied.error());
    if (Status status = Wait(name, [this] { return running_ && joined_.contains(node_); }); !status.ok()) {
      return std::unexpected(std::move(status));
    }
    std::string node;
    MachineSteps steps;
    {
      const std::lock_guard lock(mu_);
      node = node_;
      steps.pending = Millis(*pending_ - begin.mono);
      steps.joined = Millis(joined_.at(node_) - begin.mono);
      steps.running = Millis(*running_ - begin.mono);
    }
    // The shard may hear last that its machine is Configured.
    std::optional<Purchase> bought;
    for (const MonoTime end = clock_.Read().mono + kPatience; !(bought = ReadPurchase(up_.audit_log(), node));) {
      if (clock_.Read().mono > end) return Error(Code::kInternal, fmt::format("nothing was bought for {}", name));
      std::this_thread::sleep_for(20ms);
    }
    steps.need = Millis(bought->decided - begin.wall);
    steps.created = Millis(bought->created - begin.wall);
    steps.configured = Millis(bought->configured - begin.wall);
    return steps;
  }

  template <class Holds>
  Status Wait(const std::string& name, Holds holds) {
    const MonoTime end = clock_.Read().mono + kPatience;
    std::unique_lock lock(mu_);
    while (failed_.ok() && !holds()) {
      if (stop_.stop_requested()) return {Code::kCancelled, "stopped"};
      if (clock_.Read().mono > end) {
        return {Code::kDeadlineExceeded, fmt::format("{} does not run within a minute", name)};
      }
      MUSTER_RETURN_IF_ERROR(up_.Check());
      came_.wait_for(lock, 200ms);
    }
    return failed_;
  }

  // On a thread of the client.
  void Changed(const contract::ClusterChange& change) {
    const auto* object = std::get_if<contract::ObjectChanged>(&change);
    if (object == nullptr) return;
    const MonoTime now = clock_.Read().mono;
    const std::lock_guard lock(mu_);
    if (const auto* node = std::get_if<contract::NodeView>(&object->now)) {
      if (node->status == model::NodeStatus::kReady) joined_.emplace(node->node, now);
    }
    const auto* workload = std::get_if<contract::WorkloadView>(&object->now);
    if (workload != nullptr && workload->workload == name_) {
      if (!pending_) pending_ = now;
      if (!running_ && workload->phase == model::WorkloadPhase::kRunning) {
        running_ = now;
        node_ = workload->node;
      }
    }
    came_.notify_all();
  }

  void Fail(Status status) {
    const std::lock_guard lock(mu_);
    if (failed_.ok()) failed_ = status.ok() ? Status(Code::kUnavailable, "the watch ended") : std::move(status);
    came_.notify_all();
  }

  OwnUp& up_;
  const std::stop_token stop_;
  const host::SystemClock clock_;

  std::mutex mu_;
  std::condition_variable came_;
  std::string name_;                        // guarded by mu_: what is measured
  std::string node_;                        // guarded by mu_: where it runs
  std::optional<MonoTime> pending_;         // guarded by mu_
  std::optional<MonoTime> running_;         // guarded by mu_
  std::map<std::string, MonoTime> joined_;  // guarded by mu_: by node
  Status failed_;                           // guarded by mu_
};

}  // namespace

Result<std::vector<MachineSteps>> MeasureMachines(size_t samples, const std::stop_token& stop) {
  // Half of what is for sale is of the smallest size.
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<OwnUp> up, OwnUp::Start(3 * (samples + 1)));
  return Measurement(*up, stop).Run(samples);
}

}  // namespace muster::cli
