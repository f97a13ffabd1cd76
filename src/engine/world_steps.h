// World steps: carries out a decision's actions on a World, as a shard and its provider would, with every transition
// taking a given number of cycles. For text cases, tests and benchmarks.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/types.h"

namespace muster::engine {

// Cycles during which a machine is seen in each transitional state. 0: the next cycle sees the end.
struct Dwell {
  int32_t create = 0;
  int32_t configure = 0;
  int32_t drain = 0;
  int32_t remove = 0;
  bool stop_at_idle = false;  // a machine that was bought stays Idle: it takes another decision to bind it
  int32_t jitter = 0;         // a machine takes up to so many cycles more, always the same number
};

class WorldSteps {
 public:
  explicit WorldSteps(Dwell dwell) : dwell_(dwell) {}

  // One cycle passes: transitions under way move on, then the decision's actions start. An action on a machine that is
  // not where the action starts from is a bug of the engine and checked.
  void Advance(World& world, const Decision& decision);
  bool idle() const { return pending_.empty(); }

 private:
  struct Pending {
    int32_t cycles_left = 0;
    std::string cluster;                          // to be bound to
    std::map<std::string, std::string> metadata;  // its bind stamp
  };
  // Machines found in a transition that nobody here started end it too; a Creating one then stays Idle.
  void AdoptStrangers(const World& world);
  void Start(model::Machine& machine, const Action& action, const Decision& decision);
  void Enter(model::Machine& machine, model::MachineState state, Pending pending);
  void Finish(model::Machine& machine, Pending pending);
  int32_t DwellIn(model::MachineState state, const std::string& id) const;

  Dwell dwell_;
  std::map<std::string, Pending> pending_;  // by machine id
};

}  // namespace muster::engine
