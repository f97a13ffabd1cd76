// `muster bench e2e`: from an apply to a process that runs, through a real scheduler and real agents.
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "bench/line.h"
#include "cli/ask.h"
#include "cli/bench.h"
#include "cli/bench_machine.h"
#include "cli/own_cluster.h"
#include "cli/own_etcd.h"
#include "host/json_object.h"
#include "host/log_backend.h"
#include "host/signals.h"
#include "host/system_clock.h"

namespace muster::cli {
namespace {

constexpr Duration kPatience = 60s;  // for one workload

struct Flags {
  std::string shape = "all";
  std::string store = "sqlite";
  int64_t agents = 4;
  int64_t samples = 0;  // 0: as many as the shape usually has
  bool json = false;
};

struct Shape {
  std::string_view name;
  size_t callers;  // each waits until its workload runs before it applies the next one
};
constexpr Shape kShapes[] = {{"apply-to-running", 1}, {"apply-to-running-16", 16}};
constexpr int64_t kUsualSamples = 200;
constexpr std::string_view kMachineShape = "apply-to-machine";
// Each takes a machine, which is a process of its own.
constexpr int64_t kUsualMachines = 20;
constexpr int64_t kMostMachines = 200;

// Applies workloads, and knows from a watch when each runs.
class Run {
 public:
  Run(rpc::ClusterClient& client, const Shape& shape, size_t samples, std::stop_token stop)
      : client_(client), shape_(shape), wanted_(samples), stop_(std::move(stop)) {}

  Status Measure() {
    // The watch is there when a change comes through it: a first workload shows that, and is not counted.
    const auto watch = client_.Watch({.workloads = true},
                                     {.changed = [this](const contract::ClusterChange& change) { Changed(change); },
                                      .ended = [this](Status status) { Fail(std::move(status)); }});
    Status status = WarmUp();
    begins_ = Mono();
    for (size_t i = 0; status.ok() && i < shape_.callers; ++i) Next();
    if (status.ok()) status = Wait([this] { return samples_us_.size() >= wanted_; });
    ends_ = Mono();
    const Status deleted = DeleteAll();
    // Each answer comes, at the latest with the deadline of its call, and comes to this object.
    std::unique_lock lock(mu_);
    came_.wait(lock, [this] { return asked_ == 0; });
    return status.ok() ? deleted : status;
  }

  double rate() const {
    return static_cast<double>(samples_us_.size()) / std::chrono::duration<double>(ends_ - begins_).count();
  }
  const std::vector<double>& samples() const { return samples_us_; }

 private:
  MonoTime Mono() const { return clock_.Read().mono; }

  Status Wait(const std::function<bool()>& holds) {
    std::unique_lock lock(mu_);
    for (MonoTime last = Mono(); failed_.ok() && !holds();) {
      if (stop_.stop_requested()) return {Code::kCancelled, "stopped"};
      const uint64_t before = progress_;
      came_.wait_for(lock, 200ms);
      if (progress_ != before) last = Mono();
      if (Mono() - last > kPatience) return {Code::kDeadlineExceeded, "nothing has moved for a minute"};
    }
    return failed_;
  }

  Status WarmUp() {
    // A change that was made before the watch is not seen: it is made again until one is.
    const MonoTime end = Mono() + kPatience;
    for (int i = 0; Mono() < end && !stop_.stop_requested(); ++i) {
      const std::string name = fmt::format("{}-warm-{}", shape_.name, i);
      Apply(name);
      std::unique_lock lock(mu_);
      if (came_.wait_for(lock, 2s, [&] { return running_ > 0 || !failed_.ok(); })) break;
    }
    // The process of the first workload brings what those after it find warm.
    return Wait([this] { return running_ > 0; });
  }

  void Next() {
    std::string name;
    {
      const std::lock_guard lock(mu_);
      if (begun_ >= wanted_ || !failed_.ok() || stop_.stop_requested()) return;
      name = fmt::format("{}-{}", shape_.name, begun_++);
      open_[name] = Mono();
    }
    Apply(name);
  }

  void Apply(const std::string& name) {
    model::WorkloadSpec spec{.name = name};
    spec.spec.type = model::WorkloadType::kProcess;
    spec.spec.command = {"sleep", "100000"};
    spec.spec.resources = {{"cpu", 10}};
    spec.spec.grace = 1s;
    {
      const std::lock_guard lock(mu_);
      applied_.push_back(name);
      ++asked_;
    }
    client_.Ask(contract::ApplySpec{.spec = std::move(spec)}, [this](const Result<contract::ClusterReply>& reply) {
      if (!reply) Fail(reply.error());
      const std::lock_guard lock(mu_);
      --asked_;
      came_.notify_all();
    });
  }

  // On a thread of the client.
  void Changed(const contract::ClusterChange& change) {
    const auto* object = std::get_if<contract::ObjectChanged>(&change);
    const auto* view = object == nullptr ? nullptr : std::get_if<contract::WorkloadView>(&object->now);
    const bool running = view != nullptr && view->phase == model::WorkloadPhase::kRunning;
    const bool deleted = object != nullptr && std::holds_alternative<std::monostate>(object->now);
    bool next = false;
    {
      const std::lock_guard lock(mu_);
      ++progress_;
      if (running) ++running_;
      if (deleted) ++deleted_;
      const auto open = running ? open_.find(view->workload) : open_.end();
      if (open != open_.end()) {
        samples_us_.push_back(std::chrono::duration<double, std::micro>(Mono() - open->second).count());
        open_.erase(open);
        next = true;
      }
      came_.notify_all();
    }
    if (next) Next();
  }

  void Fail(Status status) {
    const std::lock_guard lock(mu_);
    if (failed_.ok()) failed_ = status.ok() ? Status(Code::kUnavailable, "the watch ended") : std::move(status);
    came_.notify_all();
  }

  Status DeleteAll() {
    std::vector<std::string> names;
    {
      const std::lock_guard lock(mu_);
      names = applied_;
    }
    for (const std::string& name : names) {
      const auto reply = WaitFor<contract::ClusterReply>([&](auto done) {
        client_.Ask(contract::DeleteObject{.kind = contract::ObjectKind::kWorkload, .name = name}, std::move(done));
      });
      if (!reply && reply.error().code() != Code::kNotFound) return reply.error();
    }
    return Wait([this, &names] { return deleted_ >= names.size(); });
  }

  rpc::ClusterClient& client_;
  const Shape shape_;
  const size_t wanted_;
  const std::stop_token stop_;
  const host::SystemClock clock_;
  MonoTime begins_;
  MonoTime ends_;

  std::mutex mu_;
  std::condition_variable came_;
  std::map<std::string, MonoTime> open_;  // guarded by mu_: applied, not yet running
  std::vector<std::string> applied_;      // guarded by mu_
  std::vector<double> samples_us_;        // guarded by mu_ until Measure has returned
  size_t begun_ = 0;                      // guarded by mu_
  uint64_t progress_ = 0;                 // guarded by mu_: changes seen
  size_t running_ = 0;                    // guarded by mu_: changes to Running
  size_t deleted_ = 0;                    // guarded by mu_
  int asked_ = 0;                         // guarded by mu_: applies without an answer
  Status failed_;                         // guarded by mu_
};

void PrintLine(const Flags& flags, const Shape& shape, const Run& run) {
  const double p50 = bench::Percentile(run.samples(), 50);
  const double p99 = bench::Percentile(run.samples(), 99);
  if (flags.json) {
    host::JsonObject json;
    json.Add("shape", shape.name)
        .Add("store", flags.store)
        .Add("kind", "end-to-end")
        .Add("rate_per_s", run.rate())
        .Add("p50_us", p50)
        .Add("p99_us", p99)
        .Add("max_us", std::ranges::max(run.samples()))
        .Add("samples", run.samples().size())
        .Add("agents", flags.agents);
    Print(json.Take() + "\n");
    return;
  }
  Print(fmt::format("{:<20} {:<8} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f} {:>8}\n", shape.name, flags.store, run.rate(),
                    p50 / 1000, p99 / 1000, std::ranges::max(run.samples()) / 1000, run.samples().size()));
}

struct Step {
  std::string_view key;
  double MachineSteps::* time;
};
constexpr Step kSteps[] = {{"pending", &MachineSteps::pending}, {"need", &MachineSteps::need},
                           {"created", &MachineSteps::created}, {"configured", &MachineSteps::configured},
                           {"joined", &MachineSteps::joined},   {"running", &MachineSteps::running}};

Result<int> BenchMachine(const Flags& flags) {
  const int64_t wanted = flags.samples == 0 ? kUsualMachines : flags.samples;
  if (wanted > kMostMachines) {
    return InvalidArgument(fmt::format("--samples must be from 1 to {} with {}", kMostMachines, kMachineShape));
  }
  const host::Signals signals;
  host::InstallLogBackend(log::Level::kWarn);
  MUSTER_ASSIGN_OR_RETURN(const std::vector<MachineSteps> samples,
                          MeasureMachines(static_cast<size_t>(wanted), signals.stop_token()));
  host::JsonObject json;
  json.Add("shape", kMachineShape).Add("store", "sqlite").Add("kind", "end-to-end");
  std::string rows = fmt::format("{:<12} {:>10} {:>10} {:>10}\n", "step", "p50 ms", "p99 ms", "max ms");
  for (const Step& step : kSteps) {
    std::vector<double> times;
    for (const MachineSteps& sample : samples) times.push_back(sample.*step.time);
    const double p50 = bench::Percentile(times, 50);
    const double p99 = bench::Percentile(times, 99);
    json.Add(fmt::format("{}_p50_ms", step.key), p50)
        .Add(fmt::format("{}_p99_ms", step.key), p99)
        .Add(fmt::format("{}_max_ms", step.key), std::ranges::max(times));
    rows += fmt::format("{:<12} {:>10.1f} {:>10.1f} {:>10.1f}\n", step.key, p50, p99, std::ranges::max(times));
  }
  json.Add("samples", samples.size());
  Print(flags.json ? json.Take() + "\n" : rows);
  return kOk;
}

Result<int> BenchE2e(const Flags& flags) {
  if (flags.agents < 1 || flags.agents > 100) return InvalidArgument("--agents must be from 1 to 100");
  if (flags.samples < 0 || flags.samples > 100'000) return InvalidArgument("--samples must be from 1 to 100000");
  if (flags.shape == kMachineShape) return BenchMachine(flags);
  const host::Signals signals;
  host::InstallLogBackend(log::Level::kWarn);
  std::unique_ptr<OwnEtcd> etcd;
  OwnClusterOptions options{.store = flags.store, .agents = static_cast<int>(flags.agents)};
  if (flags.store == "etcd") {
    MUSTER_ASSIGN_OR_RETURN(etcd, OwnEtcd::Start());
    options.store = etcd->url();
  }
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<OwnCluster> cluster, OwnCluster::Start(options));
  if (!flags.json) {
    Print(fmt::format("{:<20} {:<8} {:>10} {:>10} {:>10} {:>10} {:>8}\n", "shape", "store", "per s", "p50 ms", "p99 ms",
                      "max ms", "samples"));
  }
  for (const Shape& shape : kShapes) {
    if (flags.shape != "all" && flags.shape != shape.name) continue;
    Run run(cluster->client(), shape, static_cast<size_t>(flags.samples == 0 ? kUsualSamples : flags.samples),
            signals.stop_token());
    if (Status status = run.Measure(); !status.ok()) return std::unexpected(std::move(status));
    PrintLine(flags, shape, run);
  }
  return kOk;
}

}  // namespace

void AddBenchE2e(Verb& bench) {
  const auto flags = std::make_shared<Flags>();
  std::vector<std::string> names = {"all"};
  for (const Shape& shape : kShapes) names.emplace_back(shape.name);
  names.emplace_back(kMachineShape);
  Verb verb =
      bench.AddVerb("e2e", "From apply to a running process, through a scheduler and agents that are started for it");
  verb.Choice("--shape", flags->shape, names,
              "What to measure; all: those with free nodes. apply-to-machine starts a muster up, and buys a machine "
              "for each")
      .Choice("--store", flags->store, {"memory", "sqlite", "etcd"}, "Store of the scheduler; etcd is started for it")
      .Option("--agents", flags->agents, "Agents on this machine")
      .Option("--samples", flags->samples, "Workloads, for each shape; 200 unless given, 20 with apply-to-machine")
      .Flag("--json", flags->json, "One object per line")
      .Example("muster bench e2e --json")
      .Example("muster bench e2e --shape apply-to-machine")
      .Run([flags] { return BenchE2e(*flags); });
}

}  // namespace muster::cli
