// HoldJudge: what failed is left alone for a while, in the next life of the shard too. It follows the shard's failures
// in its audit log, knows for how long each holds what (docs/shard.md, When calls fail), and judges every operation
// that begins and every call that leaves:
//
//   Create of a machine, Configure of a machine for a cluster, Drain and Delete of a machine: after each failure, twice
//   as long as after the one before, until it succeeds or the machine moves
//   Creates of a stock class, Configures for a cluster: after three failures within a window, of a class also after one
//   for want of stock; then one operation goes ahead, the probe, and the others wait for how it ends
//
// An outage of the provider is no failure. Steps are judged at their own time; what a life that crashed had not made
// durable is not held against the next one.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "base/time.h"
#include "contract/provider.h"
#include "contract/shard.h"
#include "core/shard/holds.h"
#include "core/shard/shard.h"
#include "model/machine.h"
#include "sim/findings.h"

namespace muster::sim {

class HoldJudge {
 public:
  HoldJudge(const shard::Config& config, Findings& findings) : config_(config), findings_(findings) {}

  void Stepped(const shard::Core& core, MonoTime now, std::span<const shard::Core::Effect> effects);
  // A line of the audit log is durable.
  void Audited(const contract::ActionView& action);
  void Crashed(MonoTime now);

  // Whether Creates of the machine, or of its class, are held or waited for.
  bool IsCreateHeld(const model::Machine& machine, MonoTime now) const;
  bool IsClusterHeld(const std::string& cluster, MonoTime now) const { return IsHeld(groups_, cluster, now); }

 private:
  // Of one machine, or of a class or a cluster.
  struct Hold {
    shard::HoldKind kind = shard::HoldKind::kMachine;
    int32_t times = 0;  // in a row; 0: failures are counted
    MonoTime until;
    std::deque<MonoTime> recent;
    std::string probe;  // the machine of the operation that goes ahead
    MonoTime probe_since;
    std::string not_durable;  // the machine of the last failure, until that is durable
    bool inherited = false;   // of an earlier life
  };
  using Holds = std::map<std::string, Hold>;  // by what is held: "Create of m-1", "on-demand m in z", "blue"

  // What an operation depends on.
  struct Keys {
    std::string one;
    std::string group;  // empty: none
    shard::HoldKind kind_of_one = shard::HoldKind::kRest;
    shard::HoldKind kind_of_group = shard::HoldKind::kClass;
  };
  static Keys KeysOf(const std::string& kind, const model::Machine& machine, const std::string& cluster);
  static std::string ClassOf(const model::Machine& machine);

  struct Operation {
    std::string kind;
    std::string cluster;  // of a Bootstrap
    bool begins = false;  // else its call leaves
  };

  // Follows machines as the shard sees them. `failed`: the lines of those whose transition ended in a failure.
  void FollowMachines(const shard::Core& core, const std::map<std::string, const contract::ActionView*>& failed,
                      MonoTime now);
  void Succeed(const Keys& keys, const std::string& machine, MonoTime now);
  void Fail(const contract::ActionView& action, const model::Machine& machine, MonoTime now);
  void FailOne(const std::string& key, const std::string& machine, MonoTime now);
  void FailGroup(const std::string& key, const std::string& machine, bool at_once, MonoTime now);
  static void Begin(Hold& hold, const std::string& machine, Duration first, Duration longest, MonoTime now);
  template <class Request>
  void JudgeCall(const Request& request, const model::Machine& machine, MonoTime now);
  void Judge(const Operation& operation, const model::Machine& machine, MonoTime now);
  // Not forgotten yet.
  bool IsHeld(const Holds& holds, const std::string& key, MonoTime now) const;
  void EndProbes(const std::string& machine);

  const shard::Config config_;
  Findings& findings_;
  Holds ones_;
  Holds groups_;
  std::map<std::string, model::MachineState> seen_;  // by machine: as the shard knows it
};

}  // namespace muster::sim
