#include "runtime/proc_usage.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

namespace muster::runtime {
namespace {

struct ProcessStat {
  pid_t session = -1;
  int64_t ticks = 0;
  int64_t pages = 0;
};

// /proc/PID/stat: the second field is a name in parentheses, which may contain anything.
std::optional<ProcessStat> ReadStat(const std::filesystem::path& process) {
  std::ifstream file(process / "stat");
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  const size_t end = text.rfind(')');
  if (end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(end + 1));
  std::string state;
  int64_t value = 0;
  ProcessStat stat;
  fields >> state;
  for (int field = 4; field <= 24 && fields >> value; ++field) {
    if (field == 6) stat.session = static_cast<pid_t>(value);
    if (field == 14 || field == 15) stat.ticks += value;
    if (field == 24) stat.pages = value;
  }
  return stat;
}

}  // namespace

pid_t SessionOf(pid_t process) {
  const auto stat = ReadStat("/proc/" + std::to_string(process));
  return stat ? stat->session : -1;
}

CgroupUsage UsageOfSession(pid_t session) {
  CgroupUsage usage;
  if (session <= 0) return usage;
  const int64_t ns_per_tick = 1'000'000'000 / sysconf(_SC_CLK_TCK);
  const int64_t page_bytes = sysconf(_SC_PAGESIZE);
  usage.cpu_ns = 0;
  usage.memory_bytes = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    if (!std::ranges::all_of(name, [](unsigned char c) { return std::isdigit(c) != 0; })) continue;
    const auto stat = ReadStat(at->path());
    if (!stat || stat->session != session) continue;
    *usage.cpu_ns += stat->ticks * ns_per_tick;
    *usage.memory_bytes += stat->pages * page_bytes;
  }
  return usage;
}

}  // namespace muster::runtime
