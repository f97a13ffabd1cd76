#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace muster::cli {
namespace {

constexpr std::chrono::seconds kQuiet(2);
constexpr std::chrono::milliseconds kTerminalPeriod(200);
constexpr std::chrono::seconds kPlainPeriod(5);

}  // namespace

Progress::Progress(std::string what, uint64_t total, Clock clock)
    : what_(std::move(what)),
      total_(total),
      terminal_(isatty(STDERR_FILENO) == 1),
      clock_(std::move(clock)),
      began_(clock_()),
      next_(began_ + kQuiet) {}

Progress::~Progress() {
  if (shown_ && terminal_) std::fputs("\r\033[K", stderr);
}

void Progress::Update(uint64_t done) {
  const auto now = clock_();
  if (now < next_) return;
  next_ = now + (terminal_ ? std::chrono::duration_cast<std::chrono::milliseconds>(kTerminalPeriod) : kPlainPeriod);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - began_).count();
  const std::string share = total_ == 0 ? "" : fmt::format(" {}%", std::min<uint64_t>(100, done * 100 / total_));
  fmt::print(stderr, "{}{}{}, {} s{}", terminal_ ? "\r\033[K" : "", what_, share, seconds, terminal_ ? "" : "\n");
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace muster::cli
