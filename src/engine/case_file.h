// Case files: a whole fleet, its demand and what happens to them, in one readable file. docs/cases.md tells the format.
//
// A case is the engine's input over some cycles: regression tests, what-if questions and bug reports are all written as
// one. Reading only reads: it checks everything that can be wrong with the file, so that running it cannot fail.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "engine/types.h"
#include "engine/world_steps.h"
#include "model/machine.h"
#include "model/money.h"
#include "model/need.h"

namespace muster::engine {

struct CaseMachine {
  model::Machine machine;         // with the bind stamp that `boundFor` asked for
  std::optional<NeedKey> pledge;  // memory: whom it is promised to, and for how long it has been as it is
  std::optional<Duration> idle_for;
  std::optional<Duration> unclaimed_for;
  std::optional<Duration> draining_for;
};

struct CaseNeed {
  std::string name;  // unique in the file; "<cluster>/<position>" unless given
  model::Need need;
};

// What a step says of a cluster; nothing leaves it as it is.
struct CaseCluster {
  std::string id;
  std::optional<bool> session;
  std::optional<bool> gate_open;
  std::optional<int64_t> reclaims_allowed;  // in each cycle
  std::optional<bool> paused;
  std::optional<bool> on_hold;                 // its acquisitions
  std::optional<std::vector<CaseNeed>> needs;  // a roll-up: replaces all that the cluster asked for before
};

// New facts about machines that are there: those with these ids, or all of an instance type.
struct MachineChange {
  std::vector<std::string> ids;
  std::string instance_type;
  std::optional<model::Money> price;
  std::optional<model::Probability> interruption_probability;
  std::map<std::string, std::string> labels;  // added to, or in place of, those it has
  std::optional<std::string> failed;          // the machine fails, with this error
};

// What happens before a cycle is decided, in this order.
struct CaseStep {
  int32_t at = 1;       // the cycle, from 1
  Duration advance{};   // time passes, besides what passes between cycles
  bool forget = false;  // the shard restarts with nothing but bind stamps
  std::vector<CaseCluster> clusters;
  std::vector<std::string> remove;
  std::vector<MachineChange> change;
  std::vector<CaseMachine> add;
  std::optional<Holds> holds;  // in place of those before
};

struct Case {
  std::string about;
  std::vector<std::string> rules;  // ids of docs/engine.md that it demonstrates
  WallTime start;
  Duration cycle_every = 1s;
  int32_t cycles = 1;
  Policy policy;
  Dwell dwell;
  std::vector<CaseStep> steps;        // by cycle; the first is the fleet and the demand that the case starts from
  std::optional<std::string> expect;  // what RenderExpect must give, if the file says
};

struct CaseLimits {
  int64_t max_machines = 1'000'000;
  int32_t max_cycles = 10'000;
};

// INVALID_ARGUMENT naming source, line, column and path of the first thing wrong with `text`.
Result<Case> ReadCase(std::string_view text, std::string_view source, const CaseLimits& limits = {});

// `text`, a YAML case, with `expect` as its expectation and everything before it byte for byte. INVALID_ARGUMENT when
// the file cannot be read or has keys after its expectation.
Result<std::string> WithExpect(std::string_view text, std::string_view source, std::string_view expect);

}  // namespace muster::engine
