// Cgroups: limits and usage of workloads through the kernel's control groups, version 1 and 2, where the host lets us.
//
// Version 1 has a hierarchy for each controller, and groups are made below the agent's own group in each. Version 2 has
// one hierarchy, and groups are made below `muster` at its root. A controller that the host has in neither, or that may
// not be written, is missing, by its name and with the reason; workloads then run without that limit.
//
// Thread-safety: immutable after Detect; calls for different workloads may run at the same time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::runtime {

struct CgroupLimits {
  int64_t memory_bytes = 0;  // 0: none
  int64_t cpu_milli = 0;     // 0: none
  int64_t pids = 0;          // 0: none
};

// A file of a group, and what is written into it.
struct LimitFile {
  std::string controller;
  std::string file;
  std::string value;
  bool required = true;  // false: where the kernel does not have it, the workload runs without

  bool operator==(const LimitFile&) const = default;
};
// In the order in which they are written. `version` is 1 or 2.
std::vector<LimitFile> LimitFiles(int version, const CgroupLimits& limits);

struct CgroupFiles {
  std::vector<std::string> procs;  // a process that writes itself into each has joined
  std::string oom_file;            // with a line "oom_kill N"; empty: not known
};

struct CgroupUsage {
  std::optional<int64_t> cpu_ns;  // since the group was made
  std::optional<int64_t> memory_bytes;
};

// Where cgroups are on a host, for tests.
struct CgroupHost {
  std::string mounts;    // as /proc/self/mountinfo
  std::string own;       // as /proc/self/cgroup
  std::string prefix{};  // before every path
};
CgroupHost ThisHost();

class Cgroups {
 public:
  // `name` is that of the agent: groups of other agents are left alone.
  static Cgroups Detect(const CgroupHost& host, const std::string& name);

  // 1, 2, or 0 if there are none.
  int version() const { return version_; }
  // "memory: ...", each a controller that cannot be used, and why.
  const std::vector<std::string>& missing() const { return missing_; }

  // Makes the group of a workload with these limits; one that is left from before is replaced. The error says which
  // limit could not be set.
  Result<CgroupFiles> Create(const std::string& workload, const CgroupLimits& limits) const;
  CgroupUsage Read(const std::string& workload) const;
  // Kills every process of the group.
  void Kill(const std::string& workload) const;
  // False if processes of it are left.
  bool Remove(const std::string& workload) const;

 private:
  std::filesystem::path PathOf(std::string_view controller, const std::string& workload) const;
  void DetectV1(const std::map<std::string, std::string>& mounts, const CgroupHost& host, const std::string& name);
  void DetectV2(const std::string& mount, const std::string& name);
  Status SetLimits(const std::string& workload, const CgroupLimits& limits) const;
  std::vector<std::filesystem::path> Groups(const std::string& workload) const;

  int version_ = 0;
  std::map<std::string, std::filesystem::path> parents_;  // by controller: where the groups of this agent are
  std::vector<std::string> missing_;
};

}  // namespace muster::runtime
