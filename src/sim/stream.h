// Stream: one connection between two processes of a world: a session, a watch, the stream of a node that has joined.
// What is said arrives in order, late. When it breaks, what is under way is lost, and each end that lives learns of it
// after a while.
//
// Hold it by a shared pointer: what is under way does not keep it alive.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <utility>

#include "base/rng.h"
#include "base/time.h"
#include "sim/kernel.h"

namespace muster::sim {

// Of all streams of a world.
struct StreamDelays {
  Duration longest = 2ms;
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  enum class To : uint8_t { kServer = 0, kClient = 1 };

  // What is referred to outlives everything that is scheduled.
  Stream(Kernel& kernel, Rng& rng, const StreamDelays& delays) : kernel_(kernel), rng_(rng), delays_(delays) {}

  // Who is there learns once that the stream has ended.
  void OnEnd(To end, std::function<void()> ended) { ended_[Of(end)] = std::move(ended); }
  bool open() const { return open_; }

  void Say(To end, std::function<void()> deliver) {
    if (!open_) return;
    MonoTime& arrives = arrives_[Of(end)];
    arrives = std::max(arrives, kernel_.now().mono + DrawDelay());
    kernel_.At(arrives, [weak = weak_from_this(), deliver = std::move(deliver)] {
      if (const auto self = weak.lock(); self && self->open_) deliver();
    });
  }
  // What was said before arrives first.
  void CloseAfterwards() {
    Say(To::kClient, [this] { Break(); });
  }
  void Break() {
    if (!std::exchange(open_, false)) return;
    for (std::function<void()>& ended : ended_) {
      if (ended) kernel_.After(DrawDelay(), std::exchange(ended, {}));
    }
  }

 private:
  static size_t Of(To end) { return static_cast<size_t>(end); }
  Duration DrawDelay() { return Duration(rng_.Between(1, delays_.longest.count())); }

  Kernel& kernel_;
  Rng& rng_;
  const StreamDelays& delays_;
  bool open_ = true;
  std::array<MonoTime, 2> arrives_{};
  std::array<std::function<void()>, 2> ended_{};
};

}  // namespace muster::sim
