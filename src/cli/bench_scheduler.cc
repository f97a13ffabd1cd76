// `muster bench scheduler`: how many workloads a scheduler places and commits in a second, what a cluster at rest costs
// it, and how soon it is back.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "cli/bench.h"
#include "cli/bench_process.h"
#include "cli/bench_scheduler_cluster.h"
#include "cli/own_etcd.h"
#include "cli/store_flags.h"
#include "host/json_object.h"
#include "host/log_backend.h"
#include "host/system_clock.h"
#include "role/scheduler/scheduler_metrics.h"
#include "rpc/cluster_client.h"
#include "rpc/cluster_services.h"
#include "rpc/control_client.h"
#include "rpc/role_server.h"
#include "store/blocking.h"
#include "store/url.h"

namespace muster::cli {
namespace {

constexpr std::string_view kShapes[] = {"durable", "restart", "running", "steady"};
constexpr Duration kBeatEvery = 10s;
constexpr size_t kRestarts = 3;
constexpr size_t kAtOnce = 2000;  // requests that wait for their answer at a time

struct Flags {
  StoreFlags store;
  std::string shape = "all";
  double seconds = 60;
  double scale = 1;
  bool json = false;
};

struct Size {
  size_t nodes = 0;
  size_t workloads = 0;
};
Size Scaled(size_t nodes, size_t workloads, double scale) {
  const auto times = [scale](size_t n) {
    return std::max<size_t>(1, static_cast<size_t>(std::llround(static_cast<double>(n) * scale)));
  };
  return {.nodes = times(nodes), .workloads = times(workloads)};
}
Size PlacedSize(double scale) { return Scaled(5'000, 50'000, scale); }
Size SteadySize(double scale) { return Scaled(10'000, 100'000, scale); }

struct Row {
  std::string_view shape;
  std::string_view store;
  std::string_view kind;
  double rate = 0;
  double p50_us = 0;
  double p99_us = 0;
  Size size;
  std::vector<std::pair<std::string, double>> more = {};
};

void Report(const Row& row, bool json) {
  if (json) {
    host::JsonObject object;
    object.Add("shape", row.shape).Add("store", row.store).Add("kind", row.kind);
    object.Add("rate_per_s", row.rate).Add("p50_us", row.p50_us).Add("p99_us", row.p99_us);
    object.Add("nodes", row.size.nodes).Add("workloads", row.size.workloads);
    for (const auto& [name, value] : row.more) object.Add(name, value);
    return Print(object.Take() + "\n");
  }
  std::string line = fmt::format("{:<10} {:<8} {:<11} {:>10.0f} {:>12.0f} {:>12.0f}", row.shape, row.store, row.kind,
                                 row.rate, row.p50_us, row.p99_us);
  for (const auto& [name, value] : row.more) line += fmt::format("  {} {:.3f}", name, value);
  Print(line + "\n");
}

// One that has just begun to lead takes changes once it has seen what was before.
Result<BenchAnswers> RegisterAll(scheduler::LocalScheduler& scheduler, size_t nodes) {
  const host::SystemClock clock;
  const MonoTime end = clock.Read().mono + 30s;
  while (true) {
    const auto first = AskMany(scheduler, 1, 1, BenchRegistration);
    if (first) break;
    if (first.error().code() != Code::kUnavailable || clock.Read().mono > end) return first;
    std::this_thread::sleep_for(10ms);
  }
  return AskMany(scheduler, nodes, kAtOnce, BenchRegistration);
}

// --- placing

// `durable`: until the placement of a workload is in the store; agents are never heard. `running`: until the store says
// that all of them run, with agents that start a workload in no time.
Status MeasurePlacing(bool running, const std::string& url, std::string_view store, const Flags& flags) {
  const Size size = PlacedSize(flags.scale);
  BenchNodes nodes;
  auto scheduler = StartBenchScheduler(url, nodes.Agents(!running));
  if (!scheduler) return scheduler.error();
  if (auto registered = RegisterAll(**scheduler, size.nodes); !registered) return registered.error();
  const host::SystemClock clock;
  const MonoTime began = clock.Read().mono;
  const double processor = ProcessorSeconds();
  const auto applied = AskMany(**scheduler, size.workloads, kAtOnce, BenchWorkload);
  if (!applied) return applied.error();
  double rate = applied->rate();
  if (running) {
    if (Status status = WaitUntilRunning(**scheduler, size.workloads, 10min); !status.ok()) return status;
    rate = static_cast<double>(size.workloads) / std::chrono::duration<double>(clock.Read().mono - began).count();
  }
  // The rate of `running` is until the agents' work has ended, and these are in this process.
  const std::string_view kind = running ? "end-to-end" : store == "memory" ? "decision" : "durable";
  const double cpu_us = (ProcessorSeconds() - processor) * 1e6 / static_cast<double>(size.workloads);
  Report({.shape = running ? "running" : "durable",
          .store = store,
          .kind = kind,
          .rate = rate,
          .p50_us = applied->At(0.5),
          .p99_us = applied->At(0.99),
          .size = size,
          .more = {{"cpu_us_per_workload", cpu_us}}},
         flags.json);
  return {};
}

// --- processes of their own. Each is told the store first.

// Fills the store, as a scheduler that was asked for so many workloads leaves it.
Status Fill(BenchLines& lines, double scale) {
  const std::string url = lines.Read();
  if (url.empty()) return {};
  const Size size = SteadySize(scale);
  BenchNodes nodes;
  auto scheduler = StartBenchScheduler(url, nodes.Agents(false));
  if (!scheduler) return scheduler.error();
  if (auto done = RegisterAll(**scheduler, size.nodes); !done) return done.error();
  if (auto done = AskMany(**scheduler, size.workloads, kAtOnce, BenchWorkload); !done) return done.error();
  if (Status status = WaitUntilRunning(**scheduler, size.workloads, 10min); !status.ok()) return status;
  scheduler->reset();
  lines.Write("filled");
  return {};
}

// A scheduler on a store that is full: seconds until it is ready, and its memory then.
Status Restart(BenchLines& lines) {
  const std::string url = lines.Read();
  if (url.empty()) return {};
  BenchNodes nodes;
  const host::SystemClock clock;
  const MonoTime began = clock.Read().mono;
  const double processor = ProcessorSeconds();
  auto scheduler = StartBenchScheduler(url, nodes.Agents(false));
  if (!scheduler) return scheduler.error();
  const double seconds = std::chrono::duration<double>(clock.Read().mono - began).count();
  const double cpu_seconds = ProcessorSeconds() - processor;
  const double resident = ResidentMegabytes();
  scheduler->reset();  // the next one may have the store
  lines.Write(fmt::format("{} {} {}", seconds, resident, cpu_seconds));
  return {};
}

// What the store holds runs on the nodes; said to `each` node by node.
Status ReadWorkloads(contract::ClusterPort& cluster, const std::function<void(const contract::WorkloadView&)>& each) {
  contract::ListWorkloads list{.page = {.limit = 1000}};
  do {
    store::Waiter waiter;
    std::optional<Result<contract::ClusterReply>> reply;
    cluster.Ask(list,
                [&](Result<contract::ClusterReply> answer) { waiter.Do([&] { reply.emplace(std::move(answer)); }); });
    if (!waiter.Wait(60s, [&] { return reply.has_value(); })) return {Code::kDeadlineExceeded, "no list of workloads"};
    if (!*reply) return reply->error();
    const auto& page = std::get<contract::WorkloadsListed>(**reply);
    for (const contract::WorkloadView& view : page.workloads) each(view);
    list.page.token = page.next;
  } while (!list.page.token.empty());
  return {};
}

// A scheduler that serves nodes over gRPC: says where it listens, and what a span of time cost it.
Status Serve(BenchLines& lines) {
  const std::string url = lines.Read();
  if (url.empty()) return {};
  host::InstallLogBackend(log::Level::kError);
  BenchNodes nodes;
  auto scheduler = StartBenchScheduler(url, nodes.Agents(false));
  if (!scheduler) return scheduler.error();
  if (Status read = ReadWorkloads(
          **scheduler,
          [&](const contract::WorkloadView& view) { nodes.Adopt(view.node, view.workload, view.revision); });
      !read.ok()) {
    return read;
  }
  // As `muster scheduler` serves: behind its limits, every call measured.
  std::unique_ptr<scheduler::SchedulerMetrics> metrics;
  rpc::RoleServer server({.listen = {"127.0.0.1", 0},
                          .metrics_addr = {"127.0.0.1", 0},
                          .call_ended = [&metrics](std::string_view method, Code code, Duration took) {
                            metrics->CallServed(method, code, took);
                          }});
  metrics = std::make_unique<scheduler::SchedulerMetrics>(server.metrics());
  const Status listens =
      server.Listen({{rpc::kControlService, rpc::MakeControlService(**scheduler, (*scheduler)->streams(), **scheduler)},
                     {rpc::kClusterService,
                      rpc::MakeClusterService(**scheduler, (*scheduler)->watches(), **scheduler, **scheduler)}});
  if (!listens.ok()) return listens;
  server.Serve();
  lines.Write(server.listen_address().ToString());
  if (lines.Read() != "measure") return {};
  const double processor = ProcessorSeconds();
  const uint64_t commits = (*scheduler)->View()->counters.commits;
  const uint64_t lists = nodes.lists();
  if (lines.Read() != "stop") return {};
  const auto view = (*scheduler)->View();
  lines.Write(fmt::format("{} {} {} {} {}", ProcessorSeconds() - processor, view->counters.commits - commits,
                          nodes.lists() - lists, ResidentMegabytes(),
                          view->nodes[static_cast<size_t>(model::NodeStatus::kReady)]));
  server.Stop();
  return {};
}

// --- this process: what the others are told

struct Processes {
  std::unique_ptr<BenchProcess> filler;
  std::vector<std::unique_ptr<BenchProcess>> measured;  // one that serves, or those that are started one by one
};

Result<Processes> StartProcesses(bool steady, double scale) {
  Processes all;
  MUSTER_ASSIGN_OR_RETURN(all.filler, BenchProcess::Start([scale](BenchLines& lines) { return Fill(lines, scale); }));
  for (size_t i = 0; i < (steady ? 1 : kRestarts); ++i) {
    MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<BenchProcess> process, BenchProcess::Start(steady ? Serve : Restart));
    all.measured.push_back(std::move(process));
  }
  return all;
}

Status FillStore(Processes& processes, const std::string& url) {
  processes.filler->Write(url);
  const auto filled = processes.filler->Read();
  return filled ? Status() : filled.error();
}

Status MeasureRestart(Processes& processes, const std::string& url, std::string_view store, const Flags& flags) {
  std::vector<double> seconds;
  double resident = 0;
  double cpu_seconds = 0;  // both of the last one
  for (const auto& process : processes.measured) {
    process->Write(url);
    const auto line = process->Read();
    if (!line) return line.error();
    double took = 0;
    if (std::sscanf(line->c_str(), "%lf %lf %lf", &took, &resident, &cpu_seconds) != 3) {
      return {Code::kInternal, "a bad line: " + *line};
    }
    seconds.push_back(took);
  }
  std::ranges::sort(seconds);
  const Size size = SteadySize(flags.scale);
  Report({.shape = "restart",
          .store = store,
          .kind = "durable",
          .rate = static_cast<double>(size.workloads) / seconds[seconds.size() / 2],
          .p50_us = seconds[seconds.size() / 2] * 1e6,
          .p99_us = seconds.back() * 1e6,
          .size = size,
          .more = {{"rss_mb", resident}, {"cpu_s", cpu_seconds}}},
         flags.json);
  return {};
}

// Heartbeats of every node each ten seconds, over a connection of its own.
class Beats {
 public:
  static Result<std::unique_ptr<Beats>> Connect(const std::string& target, const Size& size) {
    auto beats = std::unique_ptr<Beats>(new Beats);
    for (size_t i = 0; i < size.nodes; ++i) {
      MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<rpc::ControlClient> client, rpc::MakeControlClient(target));
      beats->clients_.push_back(std::move(client));
      beats->beats_.push_back({.node = BenchNode(i)});
    }
    return beats;
  }
  void Has(const contract::WorkloadView& view) {
    const auto found = std::ranges::lower_bound(beats_, view.node, {}, &contract::Heartbeat::node);
    if (found == beats_.end() || found->node != view.node) return;
    found->statuses.push_back({.workload = view.workload, .actual = contract::ActualState::kRunning});
  }
  // Nodes that know nothing of each other: their beats are spread evenly over the ten seconds.
  void Drive(Duration time) {
    const MonoTime began = clock_.Read().mono;
    const Duration pause = kBeatEvery / clients_.size();
    for (size_t i = 0; i * pause < time; ++i) {
      if (const Duration left = began + i * pause - clock_.Read().mono; left > 1ms) std::this_thread::sleep_for(left);
      const MonoTime sent = clock_.Read().mono;
      contract::Heartbeat& beat = beats_[i % beats_.size()];
      beat.used = model::Resources{{"cpu", 1'000 + static_cast<int64_t>(i * 7'919 % 1'000)}};  // another each time
      clients_[i % clients_.size()]->Beat(beat, [this, sent](const Status& status) {
        const double took = std::chrono::duration<double, std::micro>(clock_.Read().mono - sent).count();
        waiter_.Do([&] {
          answers_.samples_us.push_back(took);
          if (!status.ok()) failed_ = status;
        });
      });
    }
    sent_seconds_ = std::chrono::duration<double>(clock_.Read().mono - began).count();
  }
  // What was answered since the last call, or why a beat was refused.
  Result<BenchAnswers> Take() {
    return waiter_.Get([&]() -> Result<BenchAnswers> {
      if (!failed_.ok()) return std::unexpected(failed_);
      answers_.seconds = sent_seconds_;
      std::ranges::sort(answers_.samples_us);
      return std::exchange(answers_, {});
    });
  }

 private:
  Beats() = default;

  const host::SystemClock clock_;
  double sent_seconds_ = 0;
  std::vector<contract::Heartbeat> beats_;  // by node
  store::Waiter waiter_;                    // guards the next two
  BenchAnswers answers_;
  Status failed_;
  std::vector<std::unique_ptr<rpc::ControlClient>> clients_;  // last: their answers use the rest
};

Status MeasureSteady(Processes& processes, const std::string& url, std::string_view store, const Flags& flags) {
  const Size size = SteadySize(flags.scale);
  BenchProcess& server = *processes.measured.front();
  server.Write(url);
  const auto target = server.Read();
  if (!target) return target.error();
  auto beats = Beats::Connect(*target, size);
  if (!beats) return beats.error();
  const auto client = rpc::MakeClusterClient(*target);
  if (!client) return client.error();
  if (Status read = ReadWorkloads(**client, [&](const contract::WorkloadView& view) { (*beats)->Has(view); });
      !read.ok()) {
    return read;
  }
  (*beats)->Drive(2 * kBeatEvery);
  if (const auto warm = (*beats)->Take(); !warm) return warm.error();
  server.Write("measure");
  (*beats)->Drive(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(flags.seconds)));
  server.Write("stop");
  const auto line = server.Read();
  if (!line) return line.error();
  const auto answers = (*beats)->Take();
  if (!answers) return answers.error();
  double processor = 0;
  double commits = 0;
  double lists = 0;
  double resident = 0;
  double ready = 0;
  if (std::sscanf(line->c_str(), "%lf %lf %lf %lf %lf", &processor, &commits, &lists, &resident, &ready) != 5) {
    return {Code::kInternal, "a bad line: " + *line};
  }
  Report({.shape = "steady",
          .store = store,
          .kind = "end-to-end",
          .rate = answers->rate(),
          .p50_us = answers->At(0.5),
          .p99_us = answers->At(0.99),
          .size = size,
          .more = {{"cpu_cores", processor / answers->seconds},
                   {"commits_per_s", commits / answers->seconds},
                   {"lists_per_s", lists / answers->seconds},
                   {"rss_mb", resident},
                   {"ready_nodes", ready}}},
         flags.json);
  return {};
}

// The store of one shape: below the one that was given, so that each begins with an empty one.
struct ShapeStore {
  std::unique_ptr<OwnEtcd> server;  // one of its own
  std::string url;
  std::string_view kind;
};

Result<ShapeStore> StoreFor(const std::string& shape, const StoreFlags& flags) {
  ShapeStore store{.server = nullptr, .url = flags.url, .kind = {}};
  if (flags.url == "etcd:") {
    MUSTER_ASSIGN_OR_RETURN(store.server, OwnEtcd::Start());
    store.url = store.server->url();
  }
  MUSTER_ASSIGN_OR_RETURN(const store::StoreUrl url, store::ParseStoreUrl(store.url));
  constexpr std::string_view kKinds[] = {"memory", "sqlite", "etcd"};
  store.kind = kKinds[static_cast<size_t>(url.kind)];
  if (url.kind == store::StoreUrl::Kind::kMemory) return store;
  store.url += "/" + shape;
  StoreFlags which = flags;
  which.url = store.url;
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> opened, OpenStore(which));
  MUSTER_ASSIGN_OR_RETURN(const store::RangeReply rows, store::Blocking(*opened).Range(contract::KeysUnder("/")));
  if (rows.rows.empty()) return store;
  return InvalidArgument(
      fmt::format("--store: there is something below {}; name an empty directory or prefix", store.url));
}

Status Measure(const std::string& shape, const StoreFlags& which, std::optional<Processes>& processes,
               const Flags& flags) {
  const auto store = StoreFor(shape, which);
  if (!store) return store.error();
  if (!processes) return MeasurePlacing(shape == "running", store->url, store->kind, flags);
  if (store->kind == "memory") {
    return {Code::kInvalidArgument,
            fmt::format("--store: memory: is gone with its process, and {} takes several; name one as sqlite:DIR or "
                        "etcd://HOST:PORT",
                        shape)};
  }
  if (Status filled = FillStore(*processes, store->url); !filled.ok()) return filled;
  return shape == "steady" ? MeasureSteady(*processes, store->url, store->kind, flags)
                           : MeasureRestart(*processes, store->url, store->kind, flags);
}

Result<int> BenchScheduler(const Flags& flags) {
  if (!(flags.seconds > 0 && flags.seconds <= 3600)) return InvalidArgument("--seconds must be above 0 and up to 3600");
  if (!(flags.scale >= 0.001 && flags.scale <= 10)) return InvalidArgument("--scale must be from 0.001 to 10");
  StoreFlags which = flags.store;
  MUSTER_ASSIGN_OR_RETURN(which.url, UrlOf(flags.store));
  std::map<std::string, std::optional<Processes>> wanted;  // started before there is any thread
  for (const std::string_view shape : kShapes) {
    if (flags.shape != "all" && flags.shape != shape) continue;
    std::optional<Processes>& processes = wanted[std::string(shape)];
    if (shape != "steady" && shape != "restart") continue;
    MUSTER_ASSIGN_OR_RETURN(processes, StartProcesses(shape == "steady", flags.scale));
  }
  host::InstallLogBackend(log::Level::kError);
  if (!flags.json) {
    Print(fmt::format("{:<10} {:<8} {:<11} {:>10} {:>12} {:>12}\n", "shape", "store", "kind", "rate/s", "p50 us",
                      "p99 us"));
  }
  for (auto& [shape, processes] : wanted) {
    if (Status status = Measure(shape, which, processes, flags); !status.ok())
      return std::unexpected(std::move(status));
    processes.reset();
  }
  return kOk;
}

}  // namespace

void AddBenchScheduler(Verb& bench) {
  const auto flags = std::make_shared<Flags>();
  Verb verb = bench.AddVerb("scheduler",
                            "Placements a second of a scheduler, what a cluster at rest costs it, how soon it is back");
  std::vector<std::string> names = {"all"};
  for (const std::string_view shape : kShapes) names.emplace_back(shape);
  verb.Choice("--shape", flags->shape, names, "What to measure")
      .Option("--seconds", flags->seconds, "How long, for steady")
      .Option("--scale", flags->scale, "Multiplies nodes and workloads")
      .Flag("--json", flags->json, "One object per line");
  AddStoreFlags(verb, flags->store);
  verb.Example("muster bench scheduler --shape durable --store sqlite:/var/tmp/bench")
      .Example("muster bench scheduler --shape steady --store etcd:")
      .Run([flags] { return BenchScheduler(*flags); });
}

}  // namespace muster::cli
