// What the whole node has and uses, from /proc and the file system.
//
// Thread-safety: NodeMeter from one thread at a time; the functions from any.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "model/resources.h"

namespace muster::agent {

struct NodeUsage {
  model::Resources used;  // cpu, memory
  double cpu_percent = 0;
  double memory_percent = 0;
  double disk_percent = 0;  // of the file system of the data directory
};

// The processors and the memory of this host; nothing where /proc does not say.
model::Resources HostResources();
// The name of this host as part of an id: letters, digits, '.', '_' and '-'; "node" if nothing is left.
std::string HostId();

class NodeMeter {
 public:
  explicit NodeMeter(std::filesystem::path data_dir) : data_dir_(std::move(data_dir)) {}
  // Of the time since the last call; the first one gives no cpu.
  NodeUsage Measure();

 private:
  const std::filesystem::path data_dir_;
  int64_t busy_ = 0;  // ticks of all processors, at the last call
  int64_t all_ = 0;
};

}  // namespace muster::agent
