#include "cli/up_tree.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <system_error>

#include "cli/command_line.h"
#include "cli/table.h"
#include "host/address.h"
#include "host/log_backend.h"
#include "model/text_scalars.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

constexpr Duration kPoll = 200ms;
constexpr Duration kScreenEvery = 1s;
constexpr Duration kLineEvery = 5s;
constexpr Duration kStopPatience = 55s;   // the provider gives agents and workloads 40 s, and itself 50 s
constexpr Duration kWindUpPatience = 4s;  // at least
constexpr int kEarlyDeaths = 3;           // of one child in a row: it will not come up

}  // namespace

std::string Target(const std::string& listen) { return listen.starts_with(':') ? "127.0.0.1" + listen : listen; }

fs::path DefaultUpDir(bool demo) {
  // NOLINTBEGIN(concurrency-mt-unsafe): nothing writes the environment
  const char* const state = std::getenv("XDG_STATE_HOME");
  const char* const home = std::getenv("HOME");
  // NOLINTEND(concurrency-mt-unsafe)
  const fs::path base = state != nullptr && *state != '\0' ? fs::path(state)
                        : home != nullptr && *home != '\0' ? fs::path(home) / ".local" / "state"
                                                           : fs::path("/var/lib");
  return base / "muster" / (demo ? "demo" : "up");
}

fs::path UpJournal(const fs::path& dir, const std::string& part) { return dir / "journal" / part; }

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

fs::path ThisProgram() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path("/proc/self/exe") : program;
}

Result<std::optional<Duration>> ParseLasting(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto parsed = model::ParseDuration(text);
  if (!parsed) return InvalidArgument(fmt::format("--for: {}", parsed.error().message()));
  return *parsed;
}

UpTree::UpTree(std::string verb, fs::path dir, std::vector<Port> ports, bool plain)
    : verb_(std::move(verb)),
      dir_(std::move(dir)),
      ports_(std::move(ports)),
      terminal_(isatty(STDOUT_FILENO) != 0 && !plain),
      children_({.program = ThisProgram()}, clock_) {}

std::string UpTree::ThisCommand() const {
  std::string command =
      fmt::format("{} {} --data-dir {}", ShellWord(ThisProgram().string()), verb_, ShellWord(dir_.string()));
  for (const Port& port : ports_) {
    if (port.listen != port.usual) command += fmt::format(" {} {}", port.flag, ShellWord(port.listen));
  }
  return command;
}

Status UpTree::CheckPorts() const {
  for (const Port& port : ports_) {
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

Status UpTree::MakeDirectories(const std::vector<std::string>& names) const {
  std::error_code error;
  for (const std::string& name : names) {
    fs::create_directories(dir_ / name, error);
    if (error) return {Code::kFailedPrecondition, fmt::format("--data-dir: {}: {}", dir_.string(), error.message())};
  }
  return {};
}

Status UpTree::StartChild(const std::string& name, std::vector<std::string> arguments) {
  return children_.Start({.name = name, .arguments = std::move(arguments), .log = dir_ / "logs" / (name + ".log")});
}

Status UpTree::CheckChildren() const {
  for (const host::ChildView& child : children_.View()) {
    if (child.early_deaths < kEarlyDeaths) continue;
    return {Code::kUnavailable, fmt::format("{} does not come up: {}; it said: {}", child.name, child.last_end,
                                            host::Children::LastLine(dir_ / "logs" / (child.name + ".log")))};
  }
  return {};
}

Status UpTree::Watch(const std::stop_token& stop, std::optional<Duration> lasting, const std::function<Status()>& tick,
                     const std::function<void()>& show) {
  const MonoTime began = clock_.Read().mono;
  MonoTime next_show = began + kScreenEvery;
  while (!stop.stop_requested()) {
    children_.Poll();
    MUSTER_RETURN_IF_ERROR(CheckChildren());
    MUSTER_RETURN_IF_ERROR(tick());
    const MonoTime now = clock_.Read().mono;
    if (now >= next_show) {
      next_show = now + (terminal_ ? kScreenEvery : kLineEvery);
      show();
      std::fflush(stdout);
    }
    if (lasting && now - began >= *lasting) return {};
    std::unique_lock lock(mu_);
    stopped_.wait_for(lock, stop, kPoll, [] { return false; });
  }
  return {};
}

void UpTree::PrintScreen(const std::function<std::string(size_t, size_t, bool)>& draw, const std::string& foot) const {
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 && size.ws_row > 10;
  const size_t height = known ? size.ws_row : 24;
  const std::string screen =
      "\x1b[H\x1b[2J" + draw(known ? size.ws_col : 80, height > 16 ? height - 6 : height, host::ColourWanted()) + foot;
  std::fwrite(screen.data(), 1, screen.size(), stdout);  // not Print: its control characters are ours
}

Status UpTree::Stop(const WindUp& wind_up) {
  const MonoTime end = clock_.Read().mono + kStopPatience;
  std::set<std::string> alive;
  for (const host::ChildView& child : children_.View()) {
    if (child.pid != 0) alive.insert(child.name);
  }
  children_.Stop(kStopPatience);
  for (const host::ChildView& child : children_.View()) {
    const bool well = child.last_end == "exit code 0" && alive.contains(child.name);
    if (!well && wind_up) {
      const auto done = wind_up(child.name, std::max(kWindUpPatience, end - clock_.Read().mono));
      if (done && !done->ok()) return *done;
      if (done) continue;
    }
    // By signal 15: one that was just being started.
    if (well || !alive.contains(child.name) || child.last_end == "signal 15") continue;
    return {Code::kUnavailable, fmt::format("{} did not end as it should: {}; it said: {}", child.name, child.last_end,
                                            host::Children::LastLine(dir_ / "logs" / (child.name + ".log")))};
  }
  return {};
}

}  // namespace muster::cli
