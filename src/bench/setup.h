// What every measurement of a shape starts from, and the meter they share.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "bench/engine_bench.h"
#include "bench/line.h"
#include "bench/plans.h"
#include "bench/rollups.h"
#include "engine/types.h"
#include "host/system_clock.h"
#include "model/machine_digest.h"

namespace muster::bench {

struct Setup {
  Setup(const Plan& plan, const EngineOptions& options, Parallel& parallel);

  const Plan& plan;
  const EngineOptions& options;
  Parallel& parallel;
  engine::Policy policy;
  engine::World world;
  std::vector<model::MachineDigest> digests;  // of world.machines, as whoever decodes a list makes them
  Rollups rollups;
  int64_t resident_before = 0;  // before any engine

  // A line with everything that is known before a sample is taken.
  Line NewLine(std::string_view temp) const;
};

// Virtual time: a cycle a second.
inline constexpr Now kStart{.mono = MonoTime(1h), .wall = WallTime(1'000'000h)};

// Times a piece of work and counts what it allocates.
class Meter {
 public:
  void Start();
  void Stop();  // adds a sample
  double last_us() const { return micros_.back(); }
  void DropLast();  // forgets the sample taken last

  // Sets the line's samples and allocations.
  void Tell(Line& line) const;

 private:
  host::SystemClock clock_;
  MonoTime start_{};
  Duration cpu_start_{};
  std::optional<uint64_t> allocations_before_;
  std::vector<double> micros_;
  std::vector<double> cpu_micros_;
  std::vector<double> allocations_;
};

// Calls `sample` at least `least` times and until `seconds` have passed, but no more than `most` times.
Status SampleFor(double seconds, size_t least, size_t most, const std::function<Status()>& sample);

}  // namespace muster::bench
