#include "sim/kernel.h"

#include <algorithm>

namespace muster::sim {
namespace {

constexpr Now kStart = {.mono = MonoTime(1h), .wall = WallTime(std::chrono::seconds(1893456000))};

}  // namespace

Kernel::Kernel(uint64_t seed) : clock_(kStart), rng_(seed) {}

void Kernel::At(MonoTime when, std::function<void()> action) {
  queue_.push_back({.when = std::max(when, now().mono), .order = scheduled_++, .action = std::move(action)});
  std::ranges::push_heap(queue_, Later);
}

void Kernel::RunUntil(MonoTime when, const std::function<bool()>& stop) {
  while (!queue_.empty() && queue_.front().when <= when) {
    std::ranges::pop_heap(queue_, Later);
    const Entry entry = std::move(queue_.back());
    queue_.pop_back();
    clock_.AdvanceTo(entry.when);
    log_.Add(static_cast<uint64_t>(entry.when.time_since_epoch().count()));
    ++events_run_;
    entry.action();
    if (stop && stop()) return;
  }
  clock_.AdvanceTo(std::max(when, now().mono));
}

}  // namespace muster::sim
