// Parallel: how a core may use more than one thread inside one step, without the result depending on it.
//
// For(n, fn) calls fn(0) .. fn(n-1), each exactly once, in any order and on any thread, and returns when all are done.
// Three kinds: Inline (in order, here), Shuffled (here, in an order drawn from a seed, for the simulator) and
// host::Pool (real threads). Calls to For on one object never overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string_view>
#include <vector>

#include "base/rng.h"

namespace muster {

class Parallel {
 public:
  virtual ~Parallel() = default;
  virtual void For(size_t n, const std::function<void(size_t)>& fn) = 0;
  // Inside fn: calls `step` while nobody else's step runs. Here, where fn never races with itself, simply so.
  virtual void OneAtATime(const std::function<void()>& step) { step(); }
  // A clock for statistics alone: nanoseconds from some point on, where there are threads; else it stands still.
  virtual uint64_t Nanos() const { return 0; }
  // And where statistics go: what the core was at, and for how long by that clock.
  virtual void Took(std::string_view /*what*/, uint64_t /*nanos*/) {}
  // How many calls may run at once; 1 means fn never races with itself.
  virtual size_t width() const = 0;
};

// Tells `parallel`, if there is one, how long each of several things took that follow each other.
class Laps {
 public:
  explicit Laps(Parallel& parallel) : Laps(&parallel) {}
  explicit Laps(Parallel* parallel) : parallel_(parallel), began_(Nanos()) {}
  void Ended(std::string_view what) {
    if (parallel_ == nullptr) return;
    const uint64_t now = Nanos();
    parallel_->Took(what, now - began_);
    began_ = now;
  }

 private:
  uint64_t Nanos() const { return parallel_ != nullptr ? parallel_->Nanos() : 0; }

  Parallel* parallel_;
  uint64_t began_;
};

class InlineParallel final : public Parallel {
 public:
  void For(size_t n, const std::function<void(size_t)>& fn) override {
    for (size_t i = 0; i < n; ++i) fn(i);
  }
  size_t width() const override { return 1; }
};

class ShuffledParallel final : public Parallel {
 public:
  // `width` is what the core is told, so that it splits work as it would for that many threads.
  ShuffledParallel(uint64_t seed, size_t width) : rng_(seed), width_(width) {}

  void For(size_t n, const std::function<void(size_t)>& fn) override {
    std::vector<size_t> order(n);
    std::iota(order.begin(), order.end(), size_t{0});
    rng_.Shuffle(std::span(order));
    for (const size_t i : order) fn(i);
  }
  size_t width() const override { return width_; }

 private:
  Rng rng_;
  size_t width_;
};

}  // namespace muster
