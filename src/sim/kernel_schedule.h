// KernelSchedule: the kernel's virtual time for a store in memory, so that a simulated world has one.
#pragma once

#include <functional>
#include <utility>

#include "sim/kernel.h"
#include "store/schedule.h"

namespace muster::sim {

class KernelSchedule final : public store::Schedule {
 public:
  // The kernel outlives it.
  explicit KernelSchedule(Kernel& kernel) : kernel_(kernel) {}

  MonoTime now() const override { return kernel_.now().mono; }
  void After(Duration delay, std::function<void()> action) override { kernel_.After(delay, std::move(action)); }

 private:
  Kernel& kernel_;
};

}  // namespace muster::sim
