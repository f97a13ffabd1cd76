// What would happen to a running system: the cores that ship, on a copy of its world (live_world.h), until they settle.
// A live `muster plan` and `muster what-if` are these; nothing outside is touched.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/live_world.h"
#include "contract/cluster_views.h"
#include "contract/shard.h"
#include "model/machine.h"
#include "model/money.h"
#include "model/requirement.h"
#include "model/workload_decode.h"
#include "planner/plan.h"
#include "sim/loop.h"

namespace muster::cli {

// Machines that are counted together.
struct MachineClass {
  std::string type;
  model::CapacityType capacity = model::CapacityType::kUnspecified;
  std::string zone;

  auto operator<=>(const MachineClass&) const = default;
};
struct MachineCount {
  int64_t before = 0;
  int64_t after = 0;
  model::Money price;  // of one, an hour, afterwards; of a class that is gone, before
};

// A workload whose node is another one afterwards. Empty: it had none, or has none.
struct Move {
  std::string workload;
  std::string before;
  std::string after;
  bool gone = false;  // it is to run no more
};

struct LiveOutcome {
  sim::Settled settled;      // of all that was run
  model::Money cost_before;  // an hour, all machines that have hardware
  model::Money cost_after;
  std::map<MachineClass, MachineCount> machines;  // that have hardware before or afterwards
  std::vector<Move> moves;                        // by workload
  std::vector<contract::WorkloadView> pending;    // afterwards: to run, and without a node
  std::vector<contract::NeedView> shortfalls;     // afterwards, of all clusters
  bool waits_differ = false;  // other workloads have no node than before, or needs lack something else
  std::map<std::string, std::string> node_names;  // of nodes that were not there: "large (on-demand) in a"
  sim::LoopView after;

  bool changes_anything() const;
};

// Called now and then while something long runs, by those who say how far it is.
using Alive = std::function<void()>;

// What an apply of the file leads to. The error of an object that is refused names it.
Result<LiveOutcome> RunApply(const LiveWorld& world, const model::WorkloadFile& file, const Alive& alive = {});

// What might happen to a fleet.
struct Event {
  std::vector<std::string> lose_zones;                  // their machines are lost, and none can be had there
  std::vector<std::string> drop_types;                  // the same of a type
  std::vector<std::string> stock_outs;                  // no more can be had of a type; those that are there stay
  std::vector<std::pair<std::string, int64_t>> prices;  // type, and by how many thousandths its price is multiplied
  int64_t demand = 1000;                                // thousandths of what is asked for now
  std::vector<model::Requirement> demand_of;            // labels of the workloads that demand is multiplied of
};
// An event that names a type or zone the world does not have is INVALID_ARGUMENT, with the nearest name.
Status CheckEvent(const Event& event, const std::vector<model::Machine>& machines);

// First everything comes to rest; then the event; what is compared is before it and when all is at rest again.
Result<LiveOutcome> RunEvent(const LiveWorld& world, const Event& event, const Alive& alive = {});

// The node that the workload is on; empty for one that waits to be placed anew since its node was lost, too, though its
// record still names that node.
std::string NodeOf(const contract::WorkloadView& workload);
// Where a loop's fleet is, and where it was.
LiveOutcome CompareViews(const sim::LoopView& before, sim::LoopView after, const std::string& cluster);

// The copy as the plan and the events use it.
Result<std::unique_ptr<sim::Loop>> MakeLoop(const LiveWorld& world);
// The event on a loop, whose machines and workloads are asked for: also for a world that is no copy.
Status Happen(sim::Loop& loop, const LiveWorld& world, const Event& event);

// The cheapest fleet that the offline planner finds for the workloads that are to run afterwards, of machines that the
// cluster has or could get; the machines of the view, if they carry more workloads or as many for less.
struct CheapestFleet {
  std::map<MachineClass, MachineCount> machines;  // `after`
  model::Money cost;
  int64_t unplaced = 0;
};
Result<CheapestFleet> FindCheapestFleet(const LiveWorld& world, const sim::LoopView& view, const Alive& alive = {});

}  // namespace muster::cli
