// Kernel: the simulator's heart. An event queue on virtual time, one thread, one seed.
//
// Everything that happens is a closure scheduled at a moment; two at the same moment run in the order they were
// scheduled. Whatever a run does is noted in the event log, which is kept as a hash: same seed, same hash, on every
// machine and compiler.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/rng.h"
#include "base/time.h"

namespace muster::sim {

class Kernel {
 public:
  // Virtual time starts at mono 1 h and wall 2030-01-01, so that a forgotten zero shows.
  explicit Kernel(uint64_t seed);
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  Now now() const { return clock_.Read(); }
  void JumpWall(Duration by) { clock_.JumpWall(by); }
  // A stream of randomness of its own for each part of the world.
  Rng ForkRng(uint64_t stream) { return rng_.Fork(stream); }

  void At(MonoTime when, std::function<void()> action);
  void After(Duration delay, std::function<void()> action) { At(now().mono + delay, std::move(action)); }

  // Runs what is due until `when`, then stands there. Stops early when `stop` says so after an event.
  void RunUntil(MonoTime when, const std::function<bool()>& stop = {});

  void Note(uint64_t word) { log_.Add(word); }
  void Note(std::string_view text) { log_.Add(text); }
  uint64_t log_hash() const { return log_.value(); }
  uint64_t events_run() const { return events_run_; }

 private:
  struct Entry {
    MonoTime when;
    uint64_t order;
    std::function<void()> action;
  };
  // Makes std::push_heap keep the earliest entry at the front.
  static bool Later(const Entry& a, const Entry& b) { return a.when != b.when ? a.when > b.when : a.order > b.order; }

  VirtualClock clock_;
  Rng rng_;
  Hasher log_;
  std::vector<Entry> queue_;  // a heap by Later
  uint64_t scheduled_ = 0;
  uint64_t events_run_ = 0;
};

}  // namespace muster::sim
