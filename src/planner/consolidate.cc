#include "planner/consolidate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/probe.h"
#include "planner/build.h"
#include "planner/consolidation_checker.h"
#include "planner/emptying.h"
#include "planner/movable.h"
#include "planner/solve.h"
#include "planner/values.h"

namespace muster::planner {
namespace {

using placement::PlacedUnit;

// A unit of a node that goes.
struct Move {
  const PlacedUnit* placed = nullptr;
  std::string to;
};

class Consolidator {
 public:
  explicit Consolidator(const Request& request) : request_(request) {
    for (const PlacedUnit& placed : request.world.placed) units_of_[placed.node].push_back(&placed);
    for (const placement::Budget& budget : request.world.budgets) allowed_[budget.id] = budget.allowed;
  }

  Consolidation Run() {
    std::set<uint32_t> may_go = NodesThatMayGo();
    const Movable movable = MakeMovable(request_, may_go);
    for (const auto& [node, because] : movable.must_stay) {
      if (may_go.erase(node) > 0) stays_[node] = because;
    }
    const Valuer valuer(*movable.problem);
    Packing packing(*movable.problem, movable.lots);
    for (size_t u = 0; u < movable.origin.size(); ++u) packing.Place(movable.origin[u], movable.lot_of[u], 1);
    Builder builder(packing, valuer);
    Emptying emptying(packing, builder, OptionsFor(movable, may_go));
    emptying.Run();
    result_.saved = {emptying.saved()};
    const std::vector<Move> moves = MovesOf(movable, packing);
    MakeWaves(emptying.closed(), moves);
    for (const auto& [node, because] : stays_) result_.cannot_go.push_back({NodeId(node), because});
    for (const uint32_t node : may_go) {
      if (!packing.bins()[node].closed) result_.not_worth.push_back(NodeId(node));
    }
    return std::move(result_);
  }

 private:
  const std::string& NodeId(uint32_t node) const { return request_.world.nodes[node].id; }

  std::string WhyUnitStays(const PlacedUnit& placed) const {
    const std::string& id = placed.unit.id;
    if (placed.terminating) return "";
    if (!placed.may_evict) return fmt::format("{} may not be evicted", id);
    const std::vector<placement::UnitTerm>& near = request_.world.kinds[placed.unit.kind.value()].colocate;
    if (std::ranges::count(near, kHostnameKey, &placement::UnitTerm::topology_key) > 0) {
      return fmt::format("{} must share its node with other units", id);
    }
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

  std::set<uint32_t> NodesThatMayGo() {
    std::set<uint32_t> may_go;
    for (uint32_t n = 0; n < request_.world.nodes.size(); ++n) {
      const placement::Node& node = request_.world.nodes[n];
      const auto facts = request_.nodes.find(node.id);
      if (std::string why = WhyStays(node); !why.empty()) {
        stays_[n] = std::move(why);
      } else if (facts == request_.nodes.end() || !facts->second.price) {
        result_.unpriced.push_back(node.id);
      } else {
        may_go.insert(n);
      }
    }
    return may_go;
  }

  EmptyingOptions OptionsFor(const Movable& movable, const std::set<uint32_t>& may_go) const {
    EmptyingOptions options;
    options.prices.resize(request_.world.nodes.size());
    for (const uint32_t n : may_go) options.prices[n] = request_.nodes.at(NodeId(n)).price->micros;
    options.search_steps = StepsFor(request_.effort, movable.origin.size());
    options.trial_steps = kTrialsPerSearch * options.search_steps;
    if (request_.go_on) {
      options.go_on = [this, steps = options.search_steps](uint64_t done) { return request_.go_on(done, steps); };
    }
    return options;
  }

  // Bought machines by pool, zone and type, and where every unit of a closed node goes: of a lot's units any may take
  // any of its new places.
  std::vector<Move> MovesOf(const Movable& movable, const Packing& packing) {
    const std::vector<Bin>& bins = packing.bins();
    std::vector<uint32_t> bought;
    for (uint32_t b = 0; b < bins.size(); ++b) {
      if (bins[b].choice != kNoChoice) bought.push_back(b);
    }
    const auto candidate = [&](uint32_t b) { return movable.problem->choices[bins[b].choice].candidate; };
    std::ranges::stable_sort(bought, {}, [&](uint32_t b) {
      const Candidate& one = request_.candidates[candidate(b)];
      return std::tie(one.pool, one.zone, one.type);
    });
    std::unordered_map<uint32_t, std::string> name;
    for (const uint32_t b : bought) {
      machines_.push_back({.id = fmt::format("plan-{:04}", machines_.size() + 1), .candidate = candidate(b)});
      name[b] = machines_.back().id;
    }
    std::map<std::pair<uint32_t, uint32_t>, int64_t> at_home;  // by lot and node: units that do not move
    std::vector<std::vector<uint32_t>> movers(movable.lots.size());
    for (uint32_t u = 0; u < movable.origin.size(); ++u) {
      if (bins[movable.origin[u]].closed) {
        movers[movable.lot_of[u]].push_back(u);
      } else {
        ++at_home[{movable.lot_of[u], movable.origin[u]}];
      }
    }
    std::unordered_map<std::string_view, const PlacedUnit*> by_id;
    for (const PlacedUnit& one : request_.world.placed) by_id.emplace(one.unit.id, &one);
    std::vector<Move> moves;
    std::vector<size_t> next(movable.lots.size(), 0);
    for (uint32_t b = 0; b < bins.size(); ++b) {
      for (const Item& item : bins[b].items) {
        const auto stay = at_home.find({item.lot, b});
        const int64_t newcomers = item.count - (stay == at_home.end() ? 0 : stay->second);
        for (int64_t i = 0; i < newcomers; ++i) {
          const placement::Unit& unit = movable.request.pending[movers[item.lot].at(next[item.lot]++)];
          moves.push_back({by_id.at(unit.id), bins[b].fixed != kNoChoice ? NodeId(b) : name.at(b)});
        }
      }
    }
    return moves;
  }

  // Evicts, wave by wave, what the budgets allow, in the order in which the nodes go.
  void MakeWaves(const std::vector<uint32_t>& closed, const std::vector<Move>& moves) {
    std::unordered_map<std::string_view, std::vector<const Move*>> left;  // by node
    for (const Move& move : moves) left[move.placed->node].push_back(&move);
    std::vector<std::string_view> going;
    for (const uint32_t node : closed) going.push_back(NodeId(node));
    std::unordered_map<std::string_view, const PlannedMachine*> machines;  // not bought yet
    for (const PlannedMachine& machine : machines_) machines.emplace(machine.id, &machine);
    while (!going.empty()) {
      Wave wave;
      std::map<std::string, int64_t> budget = allowed_;
      std::erase_if(going, [&](std::string_view node) {
        std::vector<const Move*>& units = left[node];
        std::erase_if(units, [&](const Move* move) {
          for (const std::string& id : move->placed->budgets) {
            if (budget[id] < 1 && !MUTANT("planner.wave_too_large")) return false;
            --budget[id];
          }
          if (const auto machine = machines.find(move->to); machine != machines.end()) {
            wave.machines.push_back(*machine->second);
            machines.erase(machine);
          }
          wave.evictions.push_back({move->placed->unit.id, move->placed->node, move->to});
          return true;
        });
        if (units.empty()) wave.nodes.emplace_back(node);
        return units.empty();
      });
      if (wave.evictions.empty() && wave.nodes.empty()) return;  // no budget will ever allow the rest
      result_.waves.push_back(std::move(wave));
    }
  }

  // Trials cost less than a search finds, so they may take more of it.
  static constexpr uint64_t kTrialsPerSearch = 4;

  const Request& request_;
  std::map<std::string, std::vector<const PlacedUnit*>> units_of_;  // by node
  std::map<std::string, int64_t> allowed_;                          // by budget
  std::map<uint32_t, std::string> stays_;                           // by node
  std::vector<PlannedMachine> machines_;
  Consolidation result_;
};

}  // namespace

Result<Consolidation> MakeConsolidation(const Request& request) {
  if (Status status = CheckStructure(request); !status.ok()) return std::unexpected(std::move(status));
  Consolidation consolidation = Consolidator(request).Run();
  const std::vector<std::string> findings = CheckConsolidation(request, consolidation);
  if (!findings.empty()) {
    return Error(Code::kInternal, fmt::format("the consolidation breaks a rule, which is a bug of the planner: {}",
                                              fmt::join(findings, "; ")));
  }
  return consolidation;
}

}  // namespace muster::planner
