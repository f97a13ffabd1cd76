// Follower: a long-lived engine over whole worlds, for text cases, tests and whatever else has a World instead of
// changes. Not thread-safe.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/fast/engine.h"

namespace muster::engine::fast {

class Follower {
 public:
  explicit Follower(Policy policy, Parallel* parallel = nullptr) : engine_(policy, parallel) {}
  // Tells the engine how this world differs from the last one, in anything.
  void Update(const World& world);
  // Rows of the decision as positions in the world of the last update.
  Decision Decide(MonoTime now);
  Engine& engine() { return engine_; }

 private:
  Engine engine_;
  std::map<std::string, model::Machine> machines_;
  std::map<std::string, std::vector<size_t>> positions_;  // by cluster: where its rows are in World::needs
  std::map<std::string, ClusterState> clusters_;
  std::set<std::string> gone_;  // clusters that the world has no more, until the engine has forgotten them
  bool counts_ages_ = true;
};

// The reference engine's signature: a fresh engine for one decision.
Decision Decide(const World& world, Memory& memory, MonoTime now, const Policy& policy);

}  // namespace muster::engine::fast
