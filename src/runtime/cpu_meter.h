// CpuMeter: how many thousandths of a processor a workload used since the last measurement.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "base/time.h"

namespace muster::runtime {

class CpuMeter {
 public:
  // `nanoseconds` of processors since the start of the workload; 0 for the first measurement, and for one after a
  // restart of the workload.
  int64_t Milli(const std::string& workload, int64_t nanoseconds, MonoTime now) {
    const std::lock_guard lock(mu_);
    auto& [before, at] = last_[workload];
    const auto elapsed = (now - at).count();
    int64_t milli = 0;
    if (at != MonoTime{} && elapsed > 0 && nanoseconds >= before) {
      milli = static_cast<int64_t>(static_cast<double>(nanoseconds - before) * 1000 / static_cast<double>(elapsed));
    }
    before = nanoseconds;
    at = now;
    return milli;
  }
  void Forget(const std::string& workload) {
    const std::lock_guard lock(mu_);
    last_.erase(workload);
  }

 private:
  std::mutex mu_;
  std::map<std::string, std::pair<int64_t, MonoTime>> last_;  // guarded by mu_
};

}  // namespace muster::runtime
