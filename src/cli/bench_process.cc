#include "cli/bench_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string_view>

namespace muster::cli {
namespace {

// Begins the line of a process that cannot go on.
constexpr std::string_view kFailed = "failed: ";

}  // namespace

BenchLines::BenchLines(int in, int out) : in_(fdopen(in, "r")), out_(fdopen(out, "w")) {}

std::string BenchLines::Read() {
  char text[512] = {};
  if (std::fgets(text, sizeof text, in_.get()) == nullptr) return {};
  std::string line = text;
  while (!line.empty() && line.back() == '\n') line.pop_back();
  return line;
}

void BenchLines::Write(const std::string& line) {
  fmt::print(out_.get(), "{}\n", line);
  std::fflush(out_.get());
}

Result<std::unique_ptr<BenchProcess>> BenchProcess::Start(const std::function<Status(BenchLines&)>& run) {
  int to[2];
  int from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) {
    return Error(Code::kUnavailable, "cannot make a pipe");
  }
  const pid_t pid = fork();
  if (pid < 0) return Error(Code::kUnavailable, "cannot start a second process");
  if (pid == 0) {
    close(to[1]);
    close(from[0]);
    BenchLines lines(to[0], from[1]);
    const Status status = run(lines);
    if (!status.ok()) lines.Write(std::string(kFailed) + status.ToString());
    std::fflush(nullptr);
    _exit(status.ok() ? 0 : 1);
  }
  close(to[0]);
  close(from[1]);
  return std::unique_ptr<BenchProcess>(new BenchProcess(pid, from[0], to[1]));
}

BenchProcess::~BenchProcess() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

Result<std::string> BenchProcess::Read() {
  std::string line = lines_.Read();
  if (line.starts_with(kFailed)) return Error(Code::kUnavailable, line.substr(kFailed.size()));
  if (line.empty()) return Error(Code::kUnavailable, "the process that is measured has ended");
  return line;
}

double ProcessorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double ResidentMegabytes() {
  std::ifstream file("/proc/self/statm");
  double pages = 0;
  file >> pages >> pages;
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

}  // namespace muster::cli
