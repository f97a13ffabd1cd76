#include "cli/up_demo.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "cli/ask.h"
#include "cli/command_line.h"
#include "cli/table.h"
#include "cli/up_demand.h"
#include "cli/up_tree.h"
#include "cli/up_view.h"
#include "host/data_dir.h"
#include "host/signals.h"
#include "host/text_file.h"
#include "rpc/shard_client.h"

namespace muster::cli {
namespace {

constexpr Duration kDemandEvery = 5s;

class Demo {
 public:
  Demo(const DemoFlags& flags, std::optional<Duration> lasting)
      : flags_(flags),
        lasting_(lasting),
        tree_(VerbOf(flags), flags.data_dir,
              {{"--shard-listen", flags.shard_listen, ":7780"},
               {"--shard-metrics", flags.shard_metrics, ":8780"},
               {"--provider-listen", flags.provider_listen, ":9100"},
               {"--provider-metrics", flags.provider_metrics, ":9101"}},
              flags.plain) {}

  Result<int> Run() {
    MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<host::DataDir> owned, host::DataDir::Open(tree_.dir(), "--data-dir"));
    const host::Signals signals({.stop_patience = UpTree::kSignalPatience});
    if (Status status = tree_.CheckPorts(); !status.ok()) return std::unexpected(std::move(status));
    for (const auto step : {&Demo::Prepare, &Demo::StartChildren}) {
      Status status = (this->*step)();
      if (!status.ok()) return std::unexpected(std::move(status));
    }
    MUSTER_ASSIGN_OR_RETURN(shard_, rpc::MakeShardClient(Target(flags_.shard_listen), {}));
    Print(fmt::format("{}Everything is in {}; logs in {}. Ctrl-C stops it all.\n", Commands(), tree_.dir().string(),
                      (tree_.dir() / "logs").string()));
    std::fflush(stdout);
    next_demand_ = clock_.Read().mono + kDemandEvery;
    Status failure = tree_.Watch(signals.stop_token(), lasting_, [this] { return Tick(); }, [this] { Show(); });
    shard_.reset();
    if (tree_.terminal()) Print("\n");
    Print("stopping\n");
    std::fflush(stdout);
    Status stopped = tree_.Stop();
    if (!failure.ok()) return std::unexpected(std::move(failure));
    if (!stopped.ok()) return std::unexpected(std::move(stopped));
    Print(fmt::format("stopped; {} goes on from here\n", tree_.ThisCommand()));
    return kOk;
  }

 private:
  static std::string VerbOf(const DemoFlags& flags) {
    return flags.machines == kDemoMachines ? "up --demo" : fmt::format("up --demo --machines {}", flags.machines);
  }

  Status Prepare() {
    MUSTER_RETURN_IF_ERROR(tree_.MakeDirectories({"logs", "clusters"}));
    MUSTER_RETURN_IF_ERROR(WriteWhole(tree_.dir() / "catalogue.yaml", ExampleCatalogue()));
    // Demand goes on where it was: the second it had come to is kept in a file.
    if (const auto kept = host::ReadTextFile((tree_.dir() / "second").string())) second_ = std::atoll(kept->c_str());
    return WriteDemand();
  }

  Status WriteDemand() {
    for (const std::string_view cluster : ExampleClusters()) {
      MUSTER_RETURN_IF_ERROR(
          WriteWhole(tree_.dir() / "clusters" / (std::string(cluster) + ".yaml"), ExampleNeeds(cluster, second_)));
    }
    return WriteWhole(tree_.dir() / "second", std::to_string(second_));
  }

  Status StartChildren() {
    const std::filesystem::path& dir = tree_.dir();
    MUSTER_RETURN_IF_ERROR(tree_.StartChild(
        "provider", {"provider", "--listen", flags_.provider_listen, "--metrics-addr", flags_.provider_metrics,
                     "--data-dir", (dir / "provider").string(), "--machines", std::to_string(flags_.machines),
                     "--catalogue", (dir / "catalogue.yaml").string()}));
    MUSTER_RETURN_IF_ERROR(tree_.StartChild(
        "shard", {"shard", "--listen", flags_.shard_listen, "--metrics-addr", flags_.shard_metrics, "--data-dir",
                  (dir / "shard").string(), "--provider-addr", Target(flags_.provider_listen), "--audit-log",
                  (dir / "audit.log").string(), "--surplus-hold", "20s", "--release-hold", "on-demand=30s,spot=20s",
                  "--reclaim-budget", "20%/1m"}));
    for (const std::string_view cluster : ExampleClusters()) {
      MUSTER_RETURN_IF_ERROR(tree_.StartChild(
          std::string(cluster),
          {"rollup", "--shard", Target(flags_.shard_listen), "--cluster", std::string(cluster), "-f",
           (dir / "clusters" / (std::string(cluster) + ".yaml")).string(), "--follow", "--every", "2s"}));
    }
    return {};
  }

  std::string Commands() const {
    const std::string where =
        flags_.shard_listen == ":7780" ? "" : " --shard " + ShellWord(Target(flags_.shard_listen));
    return fmt::format(
        "Try from another terminal:\n"
        "  {0} fleet needs{1}\n"
        "  {0} fleet machines{1} --cluster blue\n"
        "  {0} fleet actions{1} --limit 20\n",
        ShellWord(ThisProgram().string()), where);
  }

  Status Tick() {
    const MonoTime now = clock_.Read().mono;
    if (now < next_demand_) return {};
    next_demand_ = now + kDemandEvery;
    second_ += std::chrono::duration_cast<std::chrono::seconds>(kDemandEvery).count();
    return WriteDemand();
  }

  template <class Reply, class Request>
  void Ask(Request request, std::optional<Reply>& into) {
    auto reply = AskShard(*shard_, std::move(request));
    if (reply) into = std::get<Reply>(*std::move(reply));
  }

  void Show() {
    UpPicture picture{.children = tree_.children()};
    Ask(contract::ListClusters{}, picture.clusters);
    if (picture.clusters) {
      Ask(contract::ListMachines{}, picture.machines);
      Ask(contract::InspectNeeds{}, picture.needs);
      Ask(contract::ListActions{.limit = 40}, picture.actions);
    }
    if (!tree_.terminal()) {
      Print(OneLine(picture) + "\n");
      return;
    }
    tree_.PrintScreen([&](size_t width, size_t height, bool colour) { return Screen(picture, width, height, colour); },
                      "\n" + Commands());
  }

  const DemoFlags& flags_;
  const std::optional<Duration> lasting_;
  const host::SystemClock clock_;
  UpTree tree_;
  int64_t second_ = 0;
  MonoTime next_demand_;
  std::unique_ptr<contract::ShardPort> shard_;
};

}  // namespace

Result<int> RunDemo(const DemoFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const std::optional<Duration> lasting, ParseLasting(flags.lasting));
  if (flags.machines == 0) return InvalidArgument("--machines must be at least 1");
  return Demo(flags, lasting).Run();
}

}  // namespace muster::cli
