// `muster up`: both halves on this machine, as children of this process: a scheduler with its store, the cluster's
// operator, a shard, and a provider whose machines are agents on this computer. What is applied runs as processes here;
// what does not fit is bought.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "cli/ask.h"
#include "cli/table.h"
#include "cli/up_demo.h"
#include "cli/up_tree.h"
#include "cli/verbs.h"
#include "host/data_dir.h"
#include "host/signals.h"
#include "host/system_clock.h"
#include "model/money.h"
#include "provider/local_backend.h"
#include "rpc/cluster_client.h"
#include "rpc/shard_client.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCluster = "home";
constexpr uint64_t kMachines = 24;
// Of each journal. A shard that cycles five times a second and has nothing to do writes 1 KB a second: most of a day.
constexpr std::string_view kJournalLimit = "64MiB";

// Small machines, so that a laptop's worth of work buys several; what they cost is only a figure.
constexpr std::string_view kCatalogue = R"(# What the local provider offers: each machine is an agent on this computer.
zones: [a, b]
racks: 2
types:
  - {name: small, capacity: on-demand, resources: {cpu: 2, memory: 2Gi}, price: 0.05, share: 4}
  - {name: medium, capacity: on-demand, resources: {cpu: 4, memory: 4Gi}, price: 0.10, share: 4}
  - {name: large, capacity: on-demand, resources: {cpu: 8, memory: 8Gi}, price: 0.19, share: 2}
  - {name: small-spot, capacity: spot, resources: {cpu: 2, memory: 2Gi}, price: 0.02, share: 2}
)";

// The same as examples/workloads/hello.yaml: the program is also run without a clone.
constexpr std::string_view kHello =
    R"(# Twelve processes for `muster up`: more than the first machine holds, so that machines are bought.
#   muster apply -f hello.yaml
#   muster get workloads,nodes
#   muster scale set/hello --replicas 2
kind: Set
name: hello
labels: {app: hello}
replicas: 12
template:
  type: process
  command: [/bin/sh, -c, 'while :; do echo "hello from $MUSTER_WORKLOAD"; sleep 5; done']
  resources: {cpu: 1, memory: 128Mi}
  grace: 2s
)";

struct Flags {
  std::string data_dir;
  std::string scheduler_listen = ":8085";
  std::string scheduler_metrics = ":8084";
  std::string operator_listen = ":7790";
  std::string operator_metrics = ":8790";
  std::string shard_listen = ":7780";
  std::string shard_metrics = ":8780";
  std::string provider_listen = ":9100";
  std::string provider_metrics = ":9101";
  uint64_t machines = 0;  // 0: the default of the mode
  std::string lasting;
  bool plain = false;
  bool demo = false;
};

class Up {
 public:
  Up(const Flags& flags, std::optional<Duration> lasting)
      : flags_(flags), lasting_(lasting), tree_(VerbOf(flags), flags.data_dir, Ports(flags), flags.plain) {}

  Result<int> Run() {
    MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<host::DataDir> owned, host::DataDir::Open(tree_.dir(), "--data-dir"));
    const host::Signals signals({.stop_patience = UpTree::kSignalPatience});
    for (Status status : {tree_.CheckPorts(), Prepare()}) {
      if (!status.ok()) return std::unexpected(std::move(status));
    }
    MUSTER_ASSIGN_OR_RETURN(shard_, rpc::MakeShardClient(Target(flags_.shard_listen), {}));
    MUSTER_ASSIGN_OR_RETURN(cluster_, rpc::MakeClusterClient(Target(flags_.scheduler_listen), {}));
    const auto greet_when_ready = [this] {
      if (!greeted_ && Summary() && Machines()) Greet();
      return Status();
    };
    Status failure = StartChildren();
    if (failure.ok()) {
      failure = tree_.Watch(signals.stop_token(), lasting_, greet_when_ready, [this] { Show(); });
    }
    shard_.reset();
    cluster_.reset();
    Print("stopping: workloads and agents end, and start again with the next up\n");
    std::fflush(stdout);
    Status stopped = tree_.Stop([this](const std::string& child, Duration patience) -> std::optional<Status> {
      if (child != "provider") return std::nullopt;
      return EndAgents(patience);
    });
    if (!failure.ok()) return std::unexpected(std::move(failure));
    if (!stopped.ok()) return std::unexpected(std::move(stopped));
    Print(fmt::format("stopped; {} goes on from here\n", tree_.ThisCommand()));
    return kOk;
  }

 private:
  static std::string VerbOf(const Flags& flags) {
    return flags.machines == kMachines ? "up" : fmt::format("up --machines {}", flags.machines);
  }
  static std::vector<UpTree::Port> Ports(const Flags& flags) {
    const Flags usual;
    return {{"--scheduler-listen", flags.scheduler_listen, usual.scheduler_listen},
            {"--scheduler-metrics", flags.scheduler_metrics, usual.scheduler_metrics},
            {"--operator-listen", flags.operator_listen, usual.operator_listen},
            {"--operator-metrics", flags.operator_metrics, usual.operator_metrics},
            {"--shard-listen", flags.shard_listen, usual.shard_listen},
            {"--shard-metrics", flags.shard_metrics, usual.shard_metrics},
            {"--provider-listen", flags.provider_listen, usual.provider_listen},
            {"--provider-metrics", flags.provider_metrics, usual.provider_metrics}};
  }

  Status Prepare() {
    MUSTER_RETURN_IF_ERROR(tree_.MakeDirectories({"logs"}));
    // People may change them; they are written once.
    for (const auto& [name, text] : {std::pair("catalogue.yaml", kCatalogue), std::pair("hello.yaml", kHello)}) {
      if (!fs::exists(tree_.dir() / name)) MUSTER_RETURN_IF_ERROR(WriteWhole(tree_.dir() / name, text));
    }
    return {};
  }

  Status StartChildren() {
    const fs::path& dir = tree_.dir();
    MUSTER_RETURN_IF_ERROR(tree_.StartChild(
        "provider",
        {"provider", "--backend", "local", "--retire", "--name", "local", "--listen", flags_.provider_listen,
         "--metrics-addr", flags_.provider_metrics, "--data-dir", (dir / "provider").string(), "--machines",
         std::to_string(flags_.machines), "--catalogue", (dir / "catalogue.yaml").string()}));
    // Lively: a fleet on one computer costs nothing to change.
    MUSTER_RETURN_IF_ERROR(tree_.StartChild("shard", {"shard",
                                                      "--listen",
                                                      flags_.shard_listen,
                                                      "--metrics-addr",
                                                      flags_.shard_metrics,
                                                      "--data-dir",
                                                      (dir / "shard").string(),
                                                      "--provider-addr",
                                                      Target(flags_.provider_listen),
                                                      "--audit-log",
                                                      (dir / "audit.log").string(),
                                                      "--cycle-interval",
                                                      "200ms",
                                                      "--reclaim-budget",
                                                      "100%/1m",
                                                      "--surplus-hold",
                                                      "5s",
                                                      "--release-hold",
                                                      "on-demand=30s,spot=10s",
                                                      "--journal",
                                                      UpJournal(dir, "shard").string(),
                                                      "--journal-limit",
                                                      std::string(kJournalLimit)}));
    MUSTER_RETURN_IF_ERROR(tree_.StartChild(
        "scheduler", {"scheduler", "--listen", flags_.scheduler_listen, "--metrics-addr", flags_.scheduler_metrics,
                      "--store", "sqlite:" + (dir / "store").string(), "--journal",
                      UpJournal(dir, "scheduler").string(), "--journal-limit", std::string(kJournalLimit)}));
    return tree_.StartChild("operator",
                            {"operator", "--cluster", std::string(kCluster), "--listen", flags_.operator_listen,
                             "--metrics-addr", flags_.operator_metrics, "--scheduler", Target(flags_.scheduler_listen),
                             "--shard-addr", Target(flags_.shard_listen)});
  }

  // As the provider does when it ends. It may have died, or been told to end before it could listen to that.
  Status EndAgents(Duration patience) const {
    const host::SystemClock clock;
    provider::LocalBackend machines({}, {.root = tree_.dir() / "provider" / "machines", .program = ThisProgram()});
    return machines.Retire(clock, patience);
  }

  std::string Where() const {
    return flags_.scheduler_listen == ":8085" ? "" : " --scheduler " + ShellWord(Target(flags_.scheduler_listen));
  }

  Result<contract::ClusterReply> Summary() {
    return WaitFor<contract::ClusterReply>(
        [this](auto done) { cluster_->Ask(contract::GetSummary{}, std::move(done)); });
  }
  Result<contract::ShardReply> Machines() { return AskShard(*shard_, contract::ListMachines{}); }

  // What it prints to try works at once.
  void Greet() {
    greeted_ = true;
    const std::string program = ShellWord(ThisProgram().string());
    Print(
        fmt::format("gRPC: scheduler {}, operator {}, shard {}, provider {}\n"
                    "HTTP (metrics, readiness): scheduler {}, operator {}, shard {}, provider {}\n"
                    "Settings are lively: unused machines go after seconds.\n"
                    "Try from another terminal:\n"
                    "  {} apply -f {}{}\n"
                    "  {} get workloads,nodes{}\n"
                    "  {} fleet machines{}\n"
                    "Everything is in {}; logs in {}. Ctrl-C stops it all.\n",
                    Target(flags_.scheduler_listen), Target(flags_.operator_listen), Target(flags_.shard_listen),
                    Target(flags_.provider_listen), Target(flags_.scheduler_metrics), Target(flags_.operator_metrics),
                    Target(flags_.shard_metrics), Target(flags_.provider_metrics), program,
                    ShellWord((tree_.dir() / "hello.yaml").string()), Where(), program, Where(), program,
                    flags_.shard_listen == ":7780" ? "" : " --shard " + ShellWord(Target(flags_.shard_listen)),
                    tree_.dir().string(), (tree_.dir() / "logs").string()));
    std::fflush(stdout);
  }

  // One line, when something in it changed.
  void Show() {
    std::string line;
    const auto summary = Summary();
    const auto machines = Machines();
    if (!greeted_) {
      line = "starting";
      if (!summary) line += "; scheduler: " + summary.error().message();
      if (!machines) line += "; shard: " + machines.error().message();
    } else if (summary) {
      const auto& counts = std::get<contract::Summary>(*summary);
      line =
          fmt::format("workloads: {} running, {} pending, {} failed; nodes: {} ready of {}", counts.running_workloads,
                      counts.pending_workloads, counts.failed_workloads, counts.ready_nodes, counts.total_nodes);
    } else {
      line = "the scheduler does not answer yet";
    }
    if (greeted_ && machines) {
      model::Money price;
      int64_t bought = 0;
      for (const contract::MachineView& view : std::get<contract::MachinesListed>(*machines).machines) {
        if (view.machine->state == model::MachineState::kSpeculative) continue;
        ++bought;
        price.micros += view.machine->price_per_hour.micros;
      }
      line += fmt::format("; machines: {} at {}/h", bought, model::FormatMoney(price));
    }
    for (const host::ChildView& child : tree_.children()) {
      if (child.deaths > 0) line += fmt::format("; {} was started again {} times", child.name, child.deaths);
    }
    if (line != last_line_) Print(line + "\n");
    last_line_ = line;
  }

  const Flags& flags_;
  const std::optional<Duration> lasting_;
  UpTree tree_;
  bool greeted_ = false;
  std::string last_line_;
  std::unique_ptr<contract::ShardPort> shard_;
  std::unique_ptr<rpc::ClusterClient> cluster_;
};

Result<int> Run(Flags flags) {
  if (flags.data_dir.empty()) flags.data_dir = DefaultUpDir(flags.demo).string();
  // The whole path: what is printed holds in every directory.
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(fs::absolute(flags.data_dir, error), error);
  if (!error) flags.data_dir = whole.string();
  if (flags.demo) {
    return RunDemo({.data_dir = flags.data_dir,
                    .shard_listen = flags.shard_listen,
                    .shard_metrics = flags.shard_metrics,
                    .provider_listen = flags.provider_listen,
                    .provider_metrics = flags.provider_metrics,
                    .machines = flags.machines == 0 ? kDemoMachines : flags.machines,
                    .lasting = flags.lasting,
                    .plain = flags.plain});
  }
  if (flags.machines == 0) flags.machines = kMachines;
  MUSTER_ASSIGN_OR_RETURN(const std::optional<Duration> lasting, ParseLasting(flags.lasting));
  return Up(flags, lasting).Run();
}

}  // namespace

void AddUp(CommandLine& app) {
  const auto flags = std::make_shared<Flags>();
  Verb verb =
      app.AddVerb("up", "Run it all on this machine: scheduler, operator, shard, and machines that are agents here");
  verb.Path("--data-dir", flags->data_dir,
            "Directory for everything, made if missing; starting again goes on from it (in the user's state directory)")
      .Option("--scheduler-listen", flags->scheduler_listen, "gRPC address of the scheduler")
      .Option("--scheduler-metrics", flags->scheduler_metrics, "HTTP address of the scheduler")
      .Option("--operator-listen", flags->operator_listen, "gRPC address of the operator")
      .Option("--operator-metrics", flags->operator_metrics, "HTTP address of the operator")
      .Option("--shard-listen", flags->shard_listen, "gRPC address of the shard")
      .Option("--shard-metrics", flags->shard_metrics, "HTTP address of the shard")
      .Option("--provider-listen", flags->provider_listen, "gRPC address of the provider")
      .Option("--provider-metrics", flags->provider_metrics, "HTTP address of the provider")
      .Option("--machines", flags->machines,
              fmt::format("How many machines there are to buy: {}, with --demo {}", kMachines, kDemoMachines))
      .Option("--for", flags->lasting, "Stop by itself after so long; until Ctrl-C unless given")
      .Flag("--plain", flags->plain, "Plain lines, also on a terminal")
      .Flag("--demo", flags->demo, "A simulated fleet of three clusters instead, with a live view; nothing runs")
      .Example("muster up")
      .Example("muster up --data-dir /tmp/try --for 1m")
      .Example("muster up --demo")
      .Run([flags] { return Run(*flags); });
}

}  // namespace muster::cli
