#include "planner/consolidation_checker.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "planner/judge.h"

namespace muster::planner {
namespace {

class WaveChecker {
 public:
  WaveChecker(const Request& request, const Consolidation& consolidation)
      : request_(request), consolidation_(consolidation), judge_(request.world) {
    for (const placement::PlacedUnit& placed : request.world.placed) placed_.emplace(placed.unit.id, &placed);
    for (const placement::Budget& budget : request.world.budgets) allowed_[budget.id] = budget.allowed;
    for (const Wave& wave : consolidation.waves) going_.insert(wave.nodes.begin(), wave.nodes.end());
  }

  std::vector<std::string> Run() {
    for (const placement::Node& node : request_.world.nodes) judge_.AddNode(node);
    for (const placement::PlacedUnit& placed : request_.world.placed) {
      const size_t spot = judge_.SpotOf(placed.node);
      if (spot != kNowhere) judge_.AddResident(judge_.spots()[spot], placed.unit.kind.value(), placed.terminating);
    }
    judge_.StateIsWhole();
    first_ = judge_.BreachesOfResidents();
    for (size_t w = 0; w < consolidation_.waves.size(); ++w) {
      wave_ = w + 1;
      CheckWave(consolidation_.waves[w]);
    }
    if (saved_ != consolidation_.saved.micros) judge_.Find("{} is saved, not {}", saved_, consolidation_.saved.micros);
    return judge_.Take();
  }

 private:
  void CheckWave(const Wave& wave) {
    for (const PlannedMachine& machine : wave.machines) Buy(machine);
    std::set<size_t> gained;
    std::map<std::string, int64_t> evicted;  // by budget
    for (const Eviction& eviction : wave.evictions) Evict(eviction, gained, evicted);
    for (const auto& [budget, count] : evicted) {
      const auto found = allowed_.find(budget);
      const int64_t most = found == allowed_.end() ? 0 : found->second;
      if (count > most) judge_.Find("wave {} evicts {} of budget {}, which allows {}", wave_, count, budget, most);
    }
    for (const std::string& node : wave.nodes) Leave(node);
    judge_.StateIsWhole();
    for (const size_t s : gained) {
      const Spot& spot = judge_.spots()[s];
      judge_.CheckRoom(spot);
      judge_.CheckAccess(spot);
      judge_.CheckPorts(spot);
      judge_.CheckDevices(spot);
    }
    judge_.CheckBetweenUnits();
    for (const auto& [what, by] : judge_.BreachesOfResidents()) {
      const auto before = first_.find(what);
      if (by > (before == first_.end() ? 0 : before->second))
        judge_.Find("after wave {}: {}, which held before", wave_, what);
    }
  }

  void Buy(const PlannedMachine& machine) {
    if (machine.candidate >= request_.candidates.size()) {
      judge_.Find("machine {}: there is no candidate {}", machine.id, machine.candidate);
      return;
    }
    const Candidate& candidate = request_.candidates[machine.candidate];
    judge_.AddMachine(machine.id, candidate, true);
    saved_ -= candidate.price.micros;
  }

  void Evict(const Eviction& eviction, std::set<size_t>& gained, std::map<std::string, int64_t>& evicted) {
    const auto found = placed_.find(eviction.unit);
    if (found == placed_.end() || found->second->node != eviction.from) {
      judge_.Find("unit {}: it is not on {}", eviction.unit, eviction.from);
      return;
    }
    const placement::PlacedUnit& placed = *found->second;
    if (!moved_.insert(eviction.unit).second) judge_.Find("unit {}: it moves twice", eviction.unit);
    if (!placed.may_evict || placed.terminating) judge_.Find("unit {}: it may not be evicted", eviction.unit);
    if (placed.budgets.size() > 1) judge_.Find("unit {}: it is under two budgets", eviction.unit);
    for (const std::string& budget : placed.budgets) ++evicted[budget];
    const size_t to = judge_.SpotOf(eviction.to);
    if (to == kNowhere || going_.contains(eviction.to)) {
      judge_.Find("unit {}: {} is not there to stay", eviction.unit, eviction.to);
      return;
    }
    const uint32_t kind = placed.unit.kind.value();
    judge_.RemoveResident(judge_.spots()[judge_.SpotOf(eviction.from)], kind);
    judge_.AddNewcomer(judge_.spots()[to], kind);
    gained.insert(to);
  }

  void Leave(const std::string& node) {
    const size_t at = judge_.SpotOf(node);
    const auto facts = request_.nodes.find(node);
    if (at == kNowhere || judge_.spots()[at].kept == nullptr || facts == request_.nodes.end() || !facts->second.price) {
      judge_.Find("node {}: it is none that could go", node);
      return;
    }
    Spot& spot = judge_.spots()[at];
    if (!facts->second.stays_because.empty()) judge_.Find("node {}: it may not go", node);
    if (spot.gone) judge_.Find("node {}: it goes twice", node);
    for (const auto& [kind, count] : spot.residents) {
      const auto ending = spot.terminating.find(kind);
      if (count > (ending == spot.terminating.end() ? 0 : ending->second)) {
        judge_.Find("node {}: it goes with units on it", node);
      }
    }
    spot.gone = true;
    saved_ += facts->second.price->micros;
  }

  const Request& request_;
  const Consolidation& consolidation_;
  Judge judge_;
  std::unordered_map<std::string_view, const placement::PlacedUnit*> placed_;
  std::map<std::string, int64_t> allowed_;  // by budget
  std::set<std::string, std::less<>> going_;
  std::set<std::string> moved_;
  std::map<std::string, int64_t> first_;  // breaches at the start
  size_t wave_ = 0;
  int64_t saved_ = 0;
};

}  // namespace

std::vector<std::string> CheckConsolidation(const Request& request, const Consolidation& consolidation) {
  return WaveChecker(request, consolidation).Run();
}

}  // namespace muster::planner
