#include "runtime/cgroups.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

namespace muster::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kControllers = {"memory", "cpu", "cpuacct", "pids"};
constexpr int64_t kPeriodUs = 100'000;
constexpr int64_t kLeastQuotaUs = 1'000;  // the kernel takes no less

std::string ErrnoText(int error) { return std::generic_category().message(error); }

std::optional<std::string> ReadAll(const fs::path& file) {
  std::ifstream in(file);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// One write(2), as the files of cgroups want it. 0 or an errno.
int WriteValue(const fs::path& file, std::string_view value) {
  const int fd = open(file.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const bool wrote = write(fd, value.data(), value.size()) == static_cast<ssize_t>(value.size());
  const int error = wrote ? 0 : errno;
  close(fd);
  return error;
}

std::optional<int64_t> ToNumber(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

std::optional<int64_t> ReadNumber(const fs::path& file) {
  const auto text = ReadAll(file);
  return text ? ToNumber(*text) : std::nullopt;
}

// The number after `key` in a file of "key number" lines.
std::optional<int64_t> ReadKey(const fs::path& file, std::string_view key) {
  const auto text = ReadAll(file);
  if (!text) return std::nullopt;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ') {
      return ToNumber(std::string_view(line).substr(key.size() + 1));
    }
  }
  return std::nullopt;
}

bool HasWord(std::string_view words, std::string_view word, char separator) {
  while (!words.empty()) {
    const size_t end = words.find(separator);
    if (words.substr(0, end) == word) return true;
    words = end == std::string_view::npos ? "" : words.substr(end + 1);
  }
  return false;
}

// Mount points from a mountinfo: of each version 1 controller by its name, of version 2 as "2".
std::map<std::string, std::string> MountsOf(const std::string& mountinfo) {
  std::map<std::string, std::string> mounts;
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream left(line.substr(0, dash));
    std::string word;
    std::string point;
    for (int i = 0; i < 5 && left >> word; ++i) point = word;
    std::istringstream right(line.substr(dash + 3));
    std::string type;
    std::string source;
    std::string options;
    right >> type >> source >> options;
    if (type == "cgroup2") mounts.emplace("2", point);
    if (type != "cgroup") continue;
    for (const std::string_view controller : kControllers) {
      if (HasWord(options, controller, ',')) mounts.emplace(controller, point);
    }
  }
  return mounts;
}

// The agent's own group in the hierarchy of a version 1 controller.
std::string OwnGroup(const std::string& own, std::string_view controller) {
  std::istringstream lines(own);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    if (HasWord(std::string_view(line).substr(first + 1, second - first - 1), controller, ',')) {
      return line.substr(second + 1);
    }
  }
  return "/";
}

// Makes the directory and those above it; 0 or an errno. Not create_directories: a cgroup mount may refuse any of them.
int MakeGroup(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  return error.value();
}

}  // namespace

CgroupHost ThisHost() {
  return {.mounts = ReadAll("/proc/self/mountinfo").value_or(""), .own = ReadAll("/proc/self/cgroup").value_or("")};
}

Cgroups Cgroups::Detect(const CgroupHost& host, const std::string& name) {
  Cgroups cgroups;
  const auto mounts = MountsOf(host.mounts);
  if (std::ranges::any_of(kControllers, [&](std::string_view one) { return mounts.contains(std::string(one)); })) {
    cgroups.DetectV1(mounts, host, name);
  } else if (const auto unified = mounts.find("2"); unified != mounts.end()) {
    cgroups.DetectV2(host.prefix + unified->second, name);
  } else {
    cgroups.missing_ = {"memory: the host has no cgroups mounted", "cpu: the host has no cgroups mounted",
                        "pids: the host has no cgroups mounted"};
  }
  return cgroups;
}

void Cgroups::DetectV1(const std::map<std::string, std::string>& mounts, const CgroupHost& host,
                       const std::string& name) {
  version_ = 1;
  for (const std::string_view controller : kControllers) {
    const auto mount = mounts.find(std::string(controller));
    if (mount == mounts.end()) {
      missing_.push_back(fmt::format("{}: the host has no hierarchy for it", controller));
      continue;
    }
    const fs::path root = host.prefix + mount->second;
    fs::path own = root / fs::path(OwnGroup(host.own, controller)).relative_path();
    // In a container the path may be that of the host, which is not there.
    if (std::error_code error; !fs::is_directory(own, error)) own = root;
    const fs::path parent = own / "muster" / name;
    if (const int error = MakeGroup(parent); error != 0) {
      missing_.push_back(fmt::format("{}: cannot make {}: {}", controller, parent.string(), ErrnoText(error)));
      continue;
    }
    parents_.emplace(controller, parent);
  }
  if (parents_.empty()) version_ = 0;
}

void Cgroups::DetectV2(const std::string& mount, const std::string& name) {
  version_ = 2;
  const fs::path root = mount;
  const fs::path parent = root / "muster" / name;
  const int made = MakeGroup(parent);
  for (const std::string_view controller : kControllers) {
    if (controller == "cpuacct") continue;  // cpu has its figures
    int error = made;
    // From the top: a group passes on what its parent has passed on to it.
    for (const fs::path& group : {root, parent.parent_path(), parent}) {
      if (error == 0) error = WriteValue(group / "cgroup.subtree_control", fmt::format("+{}", controller));
    }
    if (error == 0) {
      parents_.emplace(controller, parent);
    } else {
      missing_.push_back(
          fmt::format("{}: cannot be enabled below {}: {}", controller, parent.string(), ErrnoText(error)));
    }
  }
  if (parents_.empty()) version_ = 0;
}

fs::path Cgroups::PathOf(std::string_view controller, const std::string& workload) const {
  const auto parent = parents_.find(std::string(controller));
  return parent == parents_.end() ? fs::path() : parent->second / workload;
}

std::vector<fs::path> Cgroups::Groups(const std::string& workload) const {
  std::set<fs::path> groups;
  for (const auto& [controller, parent] : parents_) groups.insert(parent / workload);
  return {groups.begin(), groups.end()};
}

Result<CgroupFiles> Cgroups::Create(const std::string& workload, const CgroupLimits& limits) const {
  CgroupFiles files;
  if (!Remove(workload)) {
    return Error(Code::kUnavailable, fmt::format("processes of {} are left in its cgroup", workload));
  }
  for (const fs::path& group : Groups(workload)) {
    if (const int error = MakeGroup(group); error != 0) {
      return Error(Code::kUnavailable, fmt::format("cannot make {}: {}", group.string(), ErrnoText(error)));
    }
    files.procs.push_back(group / "cgroup.procs");
  }
  if (Status set = SetLimits(workload, limits); !set.ok()) return std::unexpected(std::move(set));
  if (const fs::path memory = PathOf("memory", workload); !memory.empty()) {
    files.oom_file = memory / (version_ == 1 ? "memory.oom_control" : "memory.events");
  }
  return files;
}

std::vector<LimitFile> LimitFiles(int version, const CgroupLimits& limits) {
  std::vector<LimitFile> files;
  if (limits.memory_bytes > 0) {
    const std::string bytes = std::to_string(limits.memory_bytes);
    // Swap is part of the limit where the kernel counts it.
    if (version == 1) {
      files.push_back({"memory", "memory.limit_in_bytes", bytes, true});
      files.push_back({"memory", "memory.memsw.limit_in_bytes", bytes, false});
    } else {
      files.push_back({"memory", "memory.max", bytes, true});
      files.push_back({"memory", "memory.swap.max", "0", false});
      files.push_back({"memory", "memory.oom.group", "1", false});
    }
  }
  if (limits.cpu_milli > 0) {
    const int64_t quota = std::max(limits.cpu_milli * kPeriodUs / 1000, kLeastQuotaUs);
    if (version == 1) {
      files.push_back({"cpu", "cpu.cfs_period_us", std::to_string(kPeriodUs), true});
      files.push_back({"cpu", "cpu.cfs_quota_us", std::to_string(quota), true});
    } else {
      files.push_back({"cpu", "cpu.max", fmt::format("{} {}", quota, kPeriodUs), true});
    }
  }
  if (limits.pids > 0) files.push_back({"pids", "pids.max", std::to_string(limits.pids), true});
  return files;
}

Status Cgroups::SetLimits(const std::string& workload, const CgroupLimits& limits) const {
  for (const LimitFile& limit : LimitFiles(version_, limits)) {
    const fs::path group = PathOf(limit.controller, workload);
    if (group.empty()) continue;
    const int error = WriteValue(group / limit.file, limit.value);
    if (error != 0 && limit.required) {
      return {Code::kUnavailable,
              fmt::format("cannot set {} to {}: {}", (group / limit.file).string(), limit.value, ErrnoText(error))};
    }
  }
  return {};
}

CgroupUsage Cgroups::Read(const std::string& workload) const {
  CgroupUsage usage;
  const fs::path memory = PathOf("memory", workload);
  const fs::path cpu = PathOf(version_ == 1 ? "cpuacct" : "cpu", workload);
  if (!cpu.empty() && version_ == 1) usage.cpu_ns = ReadNumber(cpu / "cpuacct.usage");
  if (!cpu.empty() && version_ == 2) {
    if (const auto us = ReadKey(cpu / "cpu.stat", "usage_usec")) usage.cpu_ns = *us * 1000;
  }
  if (!memory.empty()) {
    usage.memory_bytes = ReadNumber(memory / (version_ == 1 ? "memory.usage_in_bytes" : "memory.current"));
    // Pages of files that were not used lately are given back before anything is killed.
    const auto idle = ReadKey(memory / "memory.stat", version_ == 1 ? "total_inactive_file" : "inactive_file");
    if (usage.memory_bytes && idle) *usage.memory_bytes = std::max<int64_t>(*usage.memory_bytes - *idle, 0);
  }
  return usage;
}

void Cgroups::Kill(const std::string& workload) const {
  for (const fs::path& group : Groups(workload)) {
    if (version_ == 2 && WriteValue(group / "cgroup.kill", "1") == 0) continue;
    std::istringstream pids(ReadAll(group / "cgroup.procs").value_or(""));
    for (pid_t pid = 0; pids >> pid;) {
      if (pid > 1) kill(pid, SIGKILL);
    }
  }
}

bool Cgroups::Remove(const std::string& workload) const {
  bool gone = true;
  for (const fs::path& group : Groups(workload)) {
    if (rmdir(group.c_str()) != 0 && errno != ENOENT) gone = false;
  }
  return gone;
}

}  // namespace muster::runtime
