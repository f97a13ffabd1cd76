#include "role/agent/node_usage.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <map>
#include <sstream>

namespace muster::agent {
namespace {

constexpr int64_t kMilli = 1000;

// Kilobytes by name.
std::map<std::string, int64_t> ReadMeminfo() {
  std::map<std::string, int64_t> figures;
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon != std::string::npos) figures[line.substr(0, colon)] = std::atoll(line.c_str() + colon + 1);
  }
  return figures;
}

double Percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

}  // namespace

model::Resources HostResources() {
  model::Resources total;
  total.Set("cpu", std::max<int64_t>(sysconf(_SC_NPROCESSORS_ONLN), 1) * kMilli);
  total.Set("memory", ReadMeminfo()["MemTotal"] * 1024 * kMilli);
  return total;
}

std::string HostId() {
  std::array<char, 256> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0) return "node";
  std::string id(name.data());
  std::ranges::replace_if(
      id, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_' && c != '-'; },
      '-');
  id.erase(0, std::min(id.size(), id.find_first_not_of("._-")));
  return id.empty() ? "node" : id;
}

NodeUsage NodeMeter::Measure() {
  NodeUsage usage;
  auto memory = ReadMeminfo();
  const int64_t total = memory["MemTotal"];
  const int64_t used = std::max<int64_t>(total - memory["MemAvailable"], 0);
  usage.memory_percent = Percent(static_cast<double>(used), static_cast<double>(total));
  usage.used.Set("memory", used * 1024 * kMilli);

  std::ifstream file("/proc/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream fields(line.substr(std::min<size_t>(line.size(), 4)));
  int64_t all = 0;
  int64_t idle = 0;
  int64_t value = 0;
  for (int field = 0; field < 8 && fields >> value; ++field) {
    all += value;
    if (field == 3 || field == 4) idle += value;  // idle, and waiting for disks
  }
  const int64_t busy = all - idle;
  if (all_ > 0 && all > all_) {
    usage.cpu_percent = Percent(static_cast<double>(busy - busy_), static_cast<double>(all - all_));
    const int64_t processors = std::max<int64_t>(sysconf(_SC_NPROCESSORS_ONLN), 1);
    usage.used.Set("cpu", std::max<int64_t>((busy - busy_) * processors * kMilli / (all - all_), 0));
  }
  busy_ = busy;
  all_ = all;

  struct statvfs disk = {};
  if (statvfs(data_dir_.c_str(), &disk) == 0) {
    usage.disk_percent =
        Percent(static_cast<double>(disk.f_blocks - disk.f_bavail), static_cast<double>(disk.f_blocks));
  }
  return usage;
}

}  // namespace muster::agent
