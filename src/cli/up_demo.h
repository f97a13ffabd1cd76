// `muster up --demo`: the fleet half alone: a simulated provider, a shard, and three example clusters whose demand
// breathes, with a live view.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace muster::cli {

inline constexpr uint64_t kDemoMachines = 2000;

struct DemoFlags {
  std::string data_dir;
  std::string shard_listen;
  std::string shard_metrics;
  std::string provider_listen;
  std::string provider_metrics;
  uint64_t machines = kDemoMachines;
  std::string lasting;
  bool plain = false;
};

// The exit code.
Result<int> RunDemo(const DemoFlags& flags);

}  // namespace muster::cli
