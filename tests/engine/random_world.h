// Random worlds and histories for the engine's property tests.
//
// A world is a function of a string of bytes: every choice reads the next byte, and a world that breaks a property can
// be made smaller by making its bytes fewer and smaller. Small alphabets (types, racks, prices, priorities) make ties,
// contention and every rule likely.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/rng.h"
#include "engine/types.h"
#include "engine/world_steps.h"

namespace muster::engine {

class Choices {
 public:
  explicit Choices(std::vector<uint8_t> bytes) : bytes_(std::move(bytes)) {}
  static Choices Random(Rng& rng, size_t size);

  // In [0, n); 0 when the bytes have run out.
  size_t Below(size_t n);
  bool OneIn(size_t n) { return Below(n) == n - 1; }
  template <class T>
  const T& Of(const std::vector<T>& items) {
    return items[Below(items.size())];
  }
  bool done() const { return next_ >= bytes_.size(); }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
  size_t next_ = 0;
};

struct Scene {
  World world;
  Memory memory;
  MonoTime now{std::chrono::hours(1)};
  Policy policy;
  Dwell dwell;
};

struct SceneOptions {
  size_t max_machines = 12;
  size_t max_needs = 6;
  size_t clusters = 3;
  bool with_memory = true;  // pledges, holds and ages from earlier cycles
  // Two small types, two racks, two zones, two priorities, every session on and gate open: machines are alike, needs
  // compete for them, and a rule that lets one need disturb another shows.
  bool tight = false;
  bool slow = false;     // transitions take a few cycles, other machines other numbers
  size_t max_count = 8;  // units in a need
  size_t gangs = 3;      // of eight needs so many are gangs
  size_t spreads = 3;    // and so many spread
  bool holds = false;    // machines, classes, pairs and clusters on hold, and paused clusters
  bool full = false;     // nearly all machines serve somebody, and reclaims are few
};

Scene RandomScene(Choices& choices, const SceneOptions& options = {});
// Changes demand, machines, sessions or holds, as the world does between cycles.
void RandomChange(Choices& choices, Scene& scene);
model::Need RandomNeed(Choices& choices, const SceneOptions& options);
model::Machine RandomMachine(Choices& choices, const std::string& id, const std::vector<model::Need>& needs,
                             const SceneOptions& options);

}  // namespace muster::engine
