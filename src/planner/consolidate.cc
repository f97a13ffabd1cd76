#include "planner/consolidate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/probe.h"

namespace muster::planner {
namespace {

using placement::PlacedUnit;

// Nodes are tried together in sets of this part of all that may go; a set that does not pay is tried in halves.
constexpr size_t kParts = 8;

class Consolidator {
 public:
  explicit Consolidator(const Request& request) : request_(request) {
    for (const PlacedUnit& placed : request.world.placed) units_of_[placed.node].push_back(&placed);
    for (const placement::Budget& budget : request.world.budgets) allowed_[budget.id] = budget.allowed;
  }

  Result<Consolidation> Run() {
    const std::vector<std::string> order = NodesThatMayGo();
    const size_t part = std::max<size_t>((order.size() + kParts - 1) / kParts, 1);
    for (size_t first = 0; first < order.size(); first += part) {
      const std::vector<std::string> set(order.begin() + static_cast<ptrdiff_t>(first),
                                         order.begin() + static_cast<ptrdiff_t>(std::min(first + part, order.size())));
      if (Status status = Try(set); !status.ok()) return std::unexpected(std::move(status));
    }
    for (const std::string& node : order) {
      if (!gone_.contains(node)) result_.not_worth.push_back(node);
    }
    if (plan_) MakeWaves();
    return std::move(result_);
  }

 private:
  std::string WhyUnitStays(const PlacedUnit& placed) const {
    const std::string& id = placed.unit.id;
    if (placed.terminating) return "";
    if (!placed.may_evict) return fmt::format("{} may not be evicted", id);
    if (placed.budgets.size() > 1) return fmt::format("{} is under {} budgets", id, placed.budgets.size());
    for (const std::string& budget : placed.budgets) {
      const auto found = allowed_.find(budget);
      const bool none = found == allowed_.end() || found->second < 1;
      if (none && !MUTANT("planner.budget_ignored"))
        return fmt::format("the budget {} of {} allows no eviction", budget, id);
    }
    return "";
  }

  std::string WhyStays(const placement::Node& node) const {
    const auto facts = request_.nodes.find(node.id);
    if (facts != request_.nodes.end() && !facts->second.stays_because.empty()) return facts->second.stays_because;
    const auto units = units_of_.find(node.id);
    if (units == units_of_.end()) return "";
    for (const PlacedUnit* placed : units->second) {
      if (std::string why = WhyUnitStays(*placed); !why.empty()) return why;
    }
    return "";
  }

  // The emptiest for their price first: least units per dollar.
  std::vector<std::string> NodesThatMayGo() {
    struct Row {
      std::string id;
      int64_t price = 0;
      int64_t units = 0;
    };
    std::vector<Row> rows;
    for (const placement::Node& node : request_.world.nodes) {
      if (std::string why = WhyStays(node); !why.empty()) {
        result_.cannot_go.push_back({node.id, std::move(why)});
        continue;
      }
      const auto facts = request_.nodes.find(node.id);
      if (facts == request_.nodes.end() || !facts->second.price) {
        result_.unpriced.push_back(node.id);
        continue;
      }
      const auto units = units_of_.find(node.id);
      const size_t count = units == units_of_.end() ? 0 : units->second.size();
      rows.push_back({node.id, facts->second.price->micros, static_cast<int64_t>(count)});
    }
    std::ranges::stable_sort(rows, [](const Row& a, const Row& b) {
      return a.units * std::max<int64_t>(b.price, 1) < b.units * std::max<int64_t>(a.price, 1);
    });
    std::vector<std::string> order;
    for (Row& row : rows) order.push_back(std::move(row.id));
    return order;
  }

  int64_t PriceOf(const std::string& node) const { return request_.nodes.at(node).price->micros; }

  // The cluster without these nodes, their units pending.
  Request Without(const std::set<std::string>& gone) const {
    Request without;
    without.world.kinds = request_.world.kinds;
    without.world.namespaces = request_.world.namespaces;
    without.nodes = request_.nodes;
    without.candidates = request_.candidates;
    without.keep = Keep::kNodes;
    without.effort = request_.effort;
    without.exact = true;
    for (const placement::Node& node : request_.world.nodes) {
      if (!gone.contains(node.id)) without.world.nodes.push_back(node);
    }
    for (const PlacedUnit& placed : request_.world.placed) {
      if (!gone.contains(placed.node)) {
        without.world.placed.push_back(placed);
      } else if (!placed.terminating) {
        without.pending.push_back(placed.unit);
      }
    }
    return without;
  }

  // Keeps the set if all that are gone together pay; otherwise tries its halves.
  Status Try(const std::vector<std::string>& set) {
    std::set<std::string> gone = gone_;
    gone.insert(set.begin(), set.end());
    Request without = Without(gone);
    Result<Plan> plan = MakePlan(without);
    if (!plan) return std::move(plan).error();
    int64_t saved = -plan->cost_machines.micros;
    for (const std::string& node : gone) saved += PriceOf(node);
    if (plan->unplaced.empty() && saved > result_.saved.micros) {
      gone_ = std::move(gone);
      for (const std::string& node : set) order_gone_.push_back(node);
      result_.saved = {saved};
      plan_ = *std::move(plan);
      return {};
    }
    if (set.size() == 1) return {};
    const auto middle = set.begin() + static_cast<ptrdiff_t>(set.size() / 2);
    MUSTER_RETURN_IF_ERROR(Try({set.begin(), middle}));
    return Try({middle, set.end()});
  }

  // Evicts, wave by wave, what the budgets allow, in the order in which the nodes go.
  void MakeWaves() {
    std::map<std::string, std::string> target;
    for (const Assignment& assignment : plan_->assignments) target[assignment.unit] = assignment.node;
    std::map<std::string, std::vector<const PlacedUnit*>> left;
    for (const std::string& node : order_gone_) {
      left[node];
      const auto units = units_of_.find(node);
      if (units == units_of_.end()) continue;
      for (const PlacedUnit* placed : units->second) {
        if (!placed->terminating) left[node].push_back(placed);
      }
    }
    std::map<std::string, PlannedMachine> machines;  // not bought yet
    for (const PlannedMachine& machine : plan_->machines) machines.emplace(machine.id, machine);
    while (!left.empty()) {
      Wave wave;
      std::map<std::string, int64_t> budget = allowed_;
      for (const std::string& node : order_gone_) {
        const auto units = left.find(node);
        if (units == left.end()) continue;
        std::erase_if(units->second, [&](const PlacedUnit* placed) {
          for (const std::string& id : placed->budgets) {
            if (budget[id] < 1 && !MUTANT("planner.wave_too_large")) return false;
            --budget[id];
          }
          const std::string& to = target.at(placed->unit.id);
          if (const auto machine = machines.find(to); machine != machines.end()) {
            wave.machines.push_back(machine->second);
            machines.erase(machine);
          }
          wave.evictions.push_back({placed->unit.id, node, to});
          return true;
        });
        if (units->second.empty()) {
          wave.nodes.push_back(node);
          left.erase(units);
        }
      }
      if (wave.evictions.empty() && wave.nodes.empty()) return;  // no budget will ever allow the rest
      result_.waves.push_back(std::move(wave));
    }
  }

  const Request& request_;
  std::map<std::string, std::vector<const PlacedUnit*>> units_of_;  // by node
  std::map<std::string, int64_t> allowed_;                          // by budget
  std::set<std::string> gone_;
  std::vector<std::string> order_gone_;
  std::optional<Plan> plan_;  // for the nodes that are gone
  Consolidation result_;
};

}  // namespace

Result<Consolidation> MakeConsolidation(const Request& request) {
  if (Status status = placement::CheckStructure(request.world); !status.ok()) return std::unexpected(std::move(status));
  return Consolidator(request).Run();
}

}  // namespace muster::planner
