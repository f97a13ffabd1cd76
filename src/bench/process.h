// What this process has allocated and keeps resident.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/time.h"

namespace muster::bench {

// Counted by the operator new of the `muster` program (src/cli/counted_new.cc); other programs count nothing.
inline std::atomic<uint64_t> allocations{0};
inline std::atomic<bool> allocations_are_counted{false};

// So far, by all threads; nothing where they are not counted.
inline std::optional<uint64_t> Allocations() {
  if (!allocations_are_counted.load(std::memory_order_relaxed)) return std::nullopt;
  return allocations.load(std::memory_order_relaxed);
}

// Processor time the calling thread has used: what a sample costs on a machine that does other things besides.
Duration ThreadCpuTime();

// Resident memory after what was freed went back to the system. 0 where the system does not tell.
int64_t ResidentBytes();

}  // namespace muster::bench
