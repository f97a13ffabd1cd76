// LoopCloud: the backend of a loop: machines that are LoopNodes. It does what the local backend does: a machine is
// Configured when the agent that the cluster's bootstrap data started has joined, its drain ends when the agent has no
// workloads or the grace is over, and an agent that dies while its machine serves is started again.
//
// Machines of a cluster that has no scheduler in this world are Configured without an agent.
//
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "contract/backend.h"
#include "provider/backend.h"
#include "sim/kernel.h"
#include "sim/loop_node.h"
#include "sim/loop_start.h"

namespace muster::sim {

class LoopCloud final : public provider::Backend {
 public:
  struct World {
    std::function<LoopNode&(const std::string& machine)> node;  // made if there is none
    std::function<bool(const std::string& cluster)> has_scheduler;
    // How an operation ends that begins now, and how much longer it takes.
    std::function<Status(const contract::Operation&)> fails = [](const contract::Operation&) { return Status(); };
    std::function<Duration()> late = [] { return Duration(); };
    // Whatever runs on the machine is about to be killed; `in_time`: nobody has been waiting for it too long.
    std::function<void(const contract::Operation&, bool in_time)> empties = [](const contract::Operation&, bool) {};
  };

  LoopCloud(Kernel& kernel, std::vector<contract::Slot> slots, const LoopSettings& settings, World world)
      : kernel_(kernel), slots_(std::move(slots)), settings_(settings), world_(std::move(world)) {}

  std::vector<contract::Slot> Slots() const override { return slots_; }
  void Adopt(std::span<const contract::MachineRecord> machines, Now now) override;
  void Start(contract::CallId call, const contract::Operation& operation, Now now) override;
  std::optional<MonoTime> NextPoll() const override { return next_poll_; }
  void Poll(Now now, std::vector<provider::Report>& out) override;

  void SetStock(std::function<bool(const model::Machine&)> in_stock) { in_stock_ = std::move(in_stock); }
  // Hardware that is lost takes its agent and its workloads along; a machine that has none is left as it is.
  void Observe(const contract::Observation& observation, MonoTime now);
  // The provider has started again: hardware that was lost while it was away is seen to be gone.
  void LookForLost(MonoTime now);
  // The agent of this machine died.
  void AgentDied(const std::string& machine);
  // The hardware of the machine; empty: none.
  std::string HostOf(const std::string& machine) const;

 private:
  struct Running {
    contract::CallId call = 0;
    contract::Operation operation;
    Status fails;
    MonoTime due;       // its own part is done
    MonoTime deadline;  // of a drain
  };

  // Whether the operation has ended.
  bool Advance(Running& running, Now now);
  void StartAgent(const model::Machine& machine, const std::string& blob);

  Kernel& kernel_;
  const std::vector<contract::Slot> slots_;
  const LoopSettings& settings_;
  const World world_;
  std::function<bool(const model::Machine&)> in_stock_ = [](const model::Machine&) { return true; };
  std::map<std::string, Running> running_;    // by machine
  std::set<std::string> keeps_;               // machines whose agent is to live
  std::map<std::string, std::string> hosts_;  // machine -> its hardware
  std::vector<contract::Observation> observed_;
  std::map<std::string, contract::MachineLost> lost_;  // by hardware: all that ever was
  uint64_t last_host_ = 0;
  std::optional<MonoTime> next_poll_;
};

// What a machine adds to the bootstrap data: the facts of its node.
contract::NodeFacts FactsOf(const model::Machine& machine, const LoopSettings& settings);

}  // namespace muster::sim
