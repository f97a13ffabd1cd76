// `muster up`: the fleet half on this machine: a simulated provider, a shard, and three example clusters, as children
// of this process, with a live view.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <system_error>

#include "cli/ask.h"
#include "cli/up_demand.h"
#include "cli/up_view.h"
#include "cli/verbs.h"
#include "host/address.h"
#include "host/children.h"
#include "host/data_dir.h"
#include "host/signals.h"
#include "host/system_clock.h"
#include "host/text_file.h"
#include "model/text_scalars.h"
#include "rpc/shard_client.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

struct Flags {
  std::string data_dir = "muster-up";
  std::string shard_listen = ":7780";
  std::string shard_metrics = ":8780";
  std::string provider_listen = ":9100";
  std::string provider_metrics = ":9101";
  uint64_t machines = 2000;
  std::string lasting;
  bool plain = false;
};

constexpr Duration kPoll = 200ms;
constexpr Duration kScreenEvery = 1s;
constexpr Duration kLineEvery = 5s;
constexpr Duration kDemandEvery = 5s;
constexpr Duration kStopPatience = 12s;
constexpr int kEarlyDeaths = 3;  // of one child in a row: it will not come up

Status WriteWhole(const fs::path& path, std::string_view text) {
  const fs::path draft = path.string() + ".new";
  std::ofstream file(draft, std::ios::trunc);
  file << text;
  file.close();
  std::error_code error;
  if (file) fs::rename(draft, path, error);
  if (file && !error) return {};
  return {Code::kFailedPrecondition, fmt::format("cannot write {}; check space and permissions", path.string())};
}

// By its real name, so that its children can be told apart from others.
fs::path ThisProgram() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path("/proc/self/exe") : program;
}

// The client's form of an address to listen on.
std::string Target(const std::string& listen) { return listen.starts_with(':') ? "127.0.0.1" + listen : listen; }

class Up {
 public:
  Up(const Flags& flags, std::optional<Duration> lasting)
      : flags_(flags), lasting_(lasting), dir_(flags.data_dir), terminal_(isatty(STDOUT_FILENO) != 0 && !flags.plain) {}

  Result<int> Run() {
    MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<host::DataDir> owned, host::DataDir::Open(dir_, "--data-dir"));
    const host::Signals signals;
    for (const auto step : {&Up::CheckPorts, &Up::Prepare, &Up::StartChildren}) {
      Status status = (this->*step)();
      if (!status.ok()) return std::unexpected(std::move(status));
    }
    MUSTER_ASSIGN_OR_RETURN(shard_, rpc::MakeShardClient(Target(flags_.shard_listen), {}));
    Greet();
    Status failure = Watch(signals.stop_token());
    shard_.reset();
    if (terminal_) Print("\n");
    Print("stopping\n");
    std::fflush(stdout);
    children_.Stop(kStopPatience);
    if (!failure.ok()) return std::unexpected(std::move(failure));
    Print(fmt::format("stopped; {} goes on from here\n", ThisCommand()));
    return kOk;
  }

 private:
  struct Port {
    const char* flag;
    const std::string& listen;
    std::string usual;
  };
  std::array<Port, 4> Ports() const {
    const Flags usual;
    return {{{"--shard-listen", flags_.shard_listen, usual.shard_listen},
             {"--shard-metrics", flags_.shard_metrics, usual.shard_metrics},
             {"--provider-listen", flags_.provider_listen, usual.provider_listen},
             {"--provider-metrics", flags_.provider_metrics, usual.provider_metrics}}};
  }

  // Before anything starts: its children would talk to whoever holds one of these, and buy machines there.
  Status CheckPorts() {
    for (const Port& port : Ports()) {
      const auto address = host::ParseListenAddress(port.listen, false, port.flag);
      if (!address) return address.error();
      if (address->port == 0) {
        return {Code::kInvalidArgument,
                fmt::format("{} {}: give a port from 1 to 65535, which the others are told", port.flag, port.listen)};
      }
      const Status free = host::CheckCanListen(*address);
      if (!free.ok()) return {free.code(), fmt::format("{}: {}", port.flag, free.message())};
    }
    return {};
  }

  std::string ThisCommand() const {
    std::string command = fmt::format("muster up --data-dir {}", dir_.string());
    for (const Port& port : Ports()) {
      if (port.listen != port.usual) command += fmt::format(" {} {}", port.flag, port.listen);
    }
    return command;
  }

  Status Prepare() {
    std::error_code error;
    for (const char* sub : {"logs", "clusters"}) fs::create_directories(dir_ / sub, error);
    if (error) return {Code::kFailedPrecondition, fmt::format("--data-dir: {}: {}", dir_.string(), error.message())};
    MUSTER_RETURN_IF_ERROR(WriteWhole(dir_ / "catalogue.yaml", ExampleCatalogue()));
    // Demand goes on where it was: the second it had come to is kept in a file.
    if (const auto kept = host::ReadTextFile((dir_ / "second").string())) second_ = std::atoll(kept->c_str());
    return WriteDemand();
  }

  Status WriteDemand() {
    for (const std::string_view cluster : ExampleClusters()) {
      MUSTER_RETURN_IF_ERROR(
          WriteWhole(dir_ / "clusters" / (std::string(cluster) + ".yaml"), ExampleNeeds(cluster, second_)));
    }
    return WriteWhole(dir_ / "second", std::to_string(second_));
  }

  Status StartChild(const std::string& name, std::vector<std::string> arguments) {
    return children_.Start({.name = name, .arguments = std::move(arguments), .log = dir_ / "logs" / (name + ".log")});
  }

  Status StartChildren() {
    MUSTER_RETURN_IF_ERROR(
        StartChild("provider", {"provider", "--listen", flags_.provider_listen, "--metrics-addr",
                                flags_.provider_metrics, "--data-dir", (dir_ / "provider").string(), "--machines",
                                std::to_string(flags_.machines), "--catalogue", (dir_ / "catalogue.yaml").string()}));
    MUSTER_RETURN_IF_ERROR(
        StartChild("shard", {"shard", "--listen", flags_.shard_listen, "--metrics-addr", flags_.shard_metrics,
                             "--data-dir", (dir_ / "shard").string(), "--provider-addr", Target(flags_.provider_listen),
                             "--audit-log", (dir_ / "audit.log").string(), "--surplus-hold", "20s", "--release-hold",
                             "on-demand=30s,spot=20s", "--reclaim-budget", "20%/1m"}));
    for (const std::string_view cluster : ExampleClusters()) {
      MUSTER_RETURN_IF_ERROR(
          StartChild(std::string(cluster),
                     {"rollup", "--shard", Target(flags_.shard_listen), "--cluster", std::string(cluster), "-f",
                      (dir_ / "clusters" / (std::string(cluster) + ".yaml")).string(), "--follow", "--every", "2s"}));
    }
    return {};
  }

  std::string Commands() const {
    const std::string where =
        flags_.shard_listen == ":7780" ? "" : fmt::format(" --shard {}", Target(flags_.shard_listen));
    return fmt::format(
        "Try from another terminal:\n"
        "  muster fleet needs{0}\n"
        "  muster fleet machines{0} --cluster blue\n"
        "  muster fleet actions{0} --limit 20\n",
        where);
  }

  void Greet() {
    Print(fmt::format("{}Everything is in {}; logs in {}. Ctrl-C stops it all.\n", Commands(), dir_.string(),
                      (dir_ / "logs").string()));
    std::fflush(stdout);
  }

  // Until the stop, or until a child will not come up.
  Status Watch(const std::stop_token& stop) {
    const MonoTime began = clock_.Read().mono;
    MonoTime next_show = began + kScreenEvery;
    MonoTime next_demand = began + kDemandEvery;
    while (!stop.stop_requested()) {
      children_.Poll();
      MUSTER_RETURN_IF_ERROR(CheckChildren());
      const MonoTime now = clock_.Read().mono;
      if (now >= next_demand) {
        next_demand = now + kDemandEvery;
        second_ += std::chrono::duration_cast<std::chrono::seconds>(kDemandEvery).count();
        MUSTER_RETURN_IF_ERROR(WriteDemand());
      }
      if (now >= next_show) {
        next_show = now + (terminal_ ? kScreenEvery : kLineEvery);
        Show();
      }
      if (lasting_ && now - began >= *lasting_) return {};
      std::unique_lock lock(mu_);
      stopped_.wait_for(lock, stop, kPoll, [] { return false; });
    }
    return {};
  }

  Status CheckChildren() {
    for (const host::ChildView& child : children_.View()) {
      if (child.early_deaths < kEarlyDeaths) continue;
      return {Code::kUnavailable, fmt::format("{} does not come up: {}; it said: {}", child.name, child.last_end,
                                              host::Children::LastLine(dir_ / "logs" / (child.name + ".log")))};
    }
    return {};
  }

  template <class Reply, class Request>
  void Ask(Request request, std::optional<Reply>& into) {
    auto reply = AskShard(*shard_, std::move(request));
    if (reply) into = std::get<Reply>(*std::move(reply));
  }

  void Show() {
    UpPicture picture{.children = children_.View()};
    Ask(contract::ListClusters{}, picture.clusters);
    if (picture.clusters) {
      Ask(contract::ListMachines{}, picture.machines);
      Ask(contract::InspectNeeds{}, picture.needs);
      Ask(contract::ListActions{.limit = 40}, picture.actions);
    }
    if (!terminal_) {
      Print(OneLine(picture) + "\n");
    } else {
      winsize size{};
      const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 && size.ws_row > 10;
      // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing writes the environment
      const bool colour = std::getenv("NO_COLOR") == nullptr;
      const size_t height = known ? size.ws_row : 24;
      const std::string foot = "\n" + Commands();
      Print("\x1b[H\x1b[2J" + Screen(picture, known ? size.ws_col : 80, height > 16 ? height - 6 : height, colour) +
            foot);
    }
    std::fflush(stdout);
  }

  const Flags& flags_;
  const std::optional<Duration> lasting_;
  const fs::path dir_;
  const bool terminal_;
  const host::SystemClock clock_;
  int64_t second_ = 0;
  std::unique_ptr<contract::ShardPort> shard_;
  host::Children children_{{.program = ThisProgram()}, clock_};
  std::mutex mu_;
  std::condition_variable_any stopped_;
};

Result<int> Run(const Flags& flags) {
  std::optional<Duration> lasting;
  if (!flags.lasting.empty()) {
    const auto parsed = model::ParseDuration(flags.lasting);
    if (!parsed) return InvalidArgument(fmt::format("--for: {}", parsed.error().message()));
    lasting = *parsed;
  }
  if (flags.machines == 0) return InvalidArgument("--machines must be at least 1");
  Up up(flags, lasting);
  return up.Run();
}

}  // namespace

void AddUp(CommandLine& app) {
  const auto flags = std::make_shared<Flags>();
  Verb verb = app.AddVerb("up", "Run it all on this machine: a simulated provider, a shard and three example clusters");
  verb.Path("--data-dir", flags->data_dir, "Directory for everything, made if missing; starting again goes on from it")
      .Option("--shard-listen", flags->shard_listen, "gRPC address of the shard")
      .Option("--shard-metrics", flags->shard_metrics, "HTTP address of the shard")
      .Option("--provider-listen", flags->provider_listen, "gRPC address of the provider")
      .Option("--provider-metrics", flags->provider_metrics, "HTTP address of the provider")
      .Option("--machines", flags->machines, "How many machines the simulated provider has")
      .Option("--for", flags->lasting, "Stop by itself after so long; until Ctrl-C unless given")
      .Flag("--plain", flags->plain, "Plain lines, also on a terminal")
      .Example("muster up")
      .Example("muster up --data-dir /tmp/demo --for 1m --plain")
      .Run([flags] { return Run(*flags); });
}

}  // namespace muster::cli
