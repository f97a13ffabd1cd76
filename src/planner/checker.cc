#include "planner/checker.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "planner/judge.h"

namespace muster::planner {
namespace {

class PlanChecker {
 public:
  PlanChecker(const Request& request, const Plan& plan)
      : request_(request), plan_(plan), world_(request.world), judge_(request.world) {}

  std::vector<std::string> Run() {
    AddSpots();
    AddResidents();
    AddAssigned();
    CheckCoverage();
    judge_.StateIsWhole();
    for (const Spot& spot : judge_.spots()) {
      judge_.CheckRoom(spot);
      judge_.CheckAccess(spot);
      judge_.CheckPorts(spot);
      judge_.CheckDevices(spot);
    }
    judge_.CheckBetweenUnits();
    CheckMoney();
    CheckUtilisation();
    return judge_.Take();
  }

 private:
  template <class... Args>
  void Find(fmt::format_string<Args...> format, Args&&... args) {
    judge_.Find(format, std::forward<Args>(args)...);
  }

  bool Keeps(const std::string& node) const {
    if (request_.keep == Keep::kNodes) return true;
    const auto facts = request_.nodes.find(node);
    return facts != request_.nodes.end() && facts->second.fixed;
  }

  void AddSpots() {
    for (const placement::Node& node : world_.nodes) {
      if (Keeps(node.id)) judge_.AddNode(node);
    }
    for (const PlannedMachine& machine : plan_.machines) {
      if (machine.candidate >= request_.candidates.size()) {
        Find("machine {}: there is no candidate {}", machine.id, machine.candidate);
        continue;
      }
      judge_.AddMachine(machine.id, request_.candidates[machine.candidate], machine.from_replay);
    }
  }

  void AddResidents() {
    for (const auto* units : {&world_.placed, &request_.residents}) {
      for (const placement::PlacedUnit& placed : *units) {
        const size_t spot = Keeps(placed.node) ? judge_.SpotOf(placed.node) : kNowhere;
        if (spot != kNowhere) judge_.AddResident(judge_.spots()[spot], placed.unit.kind.value(), placed.terminating);
      }
    }
  }

  void AddAssigned() {
    for (const placement::PlacedUnit& placed : world_.placed) {
      if (!placed.terminating && !Keeps(placed.node)) asked_.push_back(&placed.unit);
    }
    for (const placement::Unit& unit : request_.pending) asked_.push_back(&unit);
    seen_.assign(asked_.size(), false);
    for (const Assignment& assignment : plan_.assignments) {
      const size_t unit = PositionOf(assignment.unit);
      const size_t spot = judge_.SpotOf(assignment.node);
      if (unit == kNowhere) {
        Find("unit {}: it was not asked for", assignment.unit);
      } else if (seen_[unit]) {
        Find("unit {}: it is assigned twice", assignment.unit);
      } else if (spot == kNowhere) {
        Find("unit {}: there is no node {}", assignment.unit, assignment.node);
      } else {
        seen_[unit] = true;
        const uint32_t kind = asked_[unit]->kind.value();
        judge_.AddNewcomer(judge_.spots()[spot], kind);
        AddDevices(judge_.spots()[spot], assignment, world_.kinds[kind]);
      }
    }
  }

  // Plans list units in the request's order: the one after the last is looked at before a table of all is made.
  size_t PositionOf(std::string_view id) {
    if (next_ < asked_.size() && asked_[next_]->id == id) return next_++;
    if (position_.empty()) {
      position_.reserve(asked_.size());
      for (size_t u = 0; u < asked_.size(); ++u) position_.emplace(asked_[u]->id, u);
    }
    const auto found = position_.find(id);
    if (found == position_.end()) return kNowhere;
    next_ = found->second + 1;
    return found->second;
  }

  void AddDevices(Spot& spot, const Assignment& assignment, const placement::Kind& kind) {
    if (spot.kept != nullptr) return;  // placement assigns the devices of a node that is there; CheckDevices sums
    const size_t wanted = kind.devices.milli > 0 ? 1 : static_cast<size_t>(kind.devices.whole);
    if (assignment.devices.size() != wanted) {
      Find("unit {}: it has {} devices and asks for {}", assignment.unit, assignment.devices.size(), wanted);
      return;
    }
    for (const int32_t device : assignment.devices) {
      if (device < 0 || static_cast<size_t>(device) >= spot.devices.size()) {
        Find("unit {}: {} has no device {}", assignment.unit, spot.id, device);
        continue;
      }
      int64_t& taken = spot.device_taken[static_cast<size_t>(device)];
      taken += kind.devices.milli > 0 ? kind.devices.milli : 1000;
      if (taken > spot.devices[static_cast<size_t>(device)]) Find("{}: device {} is taken twice", spot.id, device);
    }
  }

  void CheckCoverage() {
    for (const Unplaced& unplaced : plan_.unplaced) {
      const size_t unit = PositionOf(unplaced.unit);
      if (unit == kNowhere) {
        Find("unit {}: unplaced, but it was not asked for", unplaced.unit);
        continue;
      }
      if (seen_[unit]) Find("unit {}: both assigned and unplaced, or twice", unplaced.unit);
      seen_[unit] = true;
    }
    for (size_t u = 0; u < asked_.size(); ++u) {
      if (!seen_[u]) Find("unit {}: neither assigned nor unplaced", asked_[u]->id);
    }
    for (const Spot& spot : judge_.spots()) {
      if (spot.newcomers.empty() && !spot.may_be_empty) Find("machine {}: nothing runs on it", spot.id);
    }
  }

  void CheckMoney() {
    int64_t machines = 0;
    int64_t added = 0;
    int64_t from_replay = 0;
    for (const PlannedMachine& machine : plan_.machines) {
      if (machine.candidate >= request_.candidates.size()) continue;
      const int64_t price = request_.candidates[machine.candidate].price.micros;
      machines += price;
      added += machine.from_replay ? price : 0;
      from_replay += machine.from_replay ? 1 : 0;
    }
    if (machines != plan_.cost_machines.micros)
      Find("the machines cost {} and not {}", machines, plan_.cost_machines.micros);
    if (added != plan_.replay.cost_added.micros || from_replay != plan_.replay.machines_added) {
      Find("the replay added {} machines for {}", from_replay, added);
    }
    int64_t before = 0;
    int64_t kept = 0;
    size_t unpriced = 0;
    size_t kept_unpriced = 0;
    for (const placement::Node& node : world_.nodes) {
      const auto facts = request_.nodes.find(node.id);
      const bool priced = facts != request_.nodes.end() && facts->second.price;
      const int64_t price = priced ? facts->second.price->micros : 0;
      before += price;
      unpriced += priced ? 0 : 1;
      if (!Keeps(node.id)) continue;
      kept += price;
      kept_unpriced += priced ? 0 : 1;
    }
    if (unpriced != plan_.unpriced_nodes.size()) Find("{} nodes are unpriced", unpriced);
    if (plan_.cost_before.has_value() != (unpriced == 0)) Find("a price before needs the price of every node");
    if (plan_.cost_before && plan_.cost_before->micros != before) Find("the nodes cost {}", before);
    const int64_t after = machines + kept;
    if (plan_.cost_after.has_value() != (kept_unpriced == 0)) Find("a price after needs the price of kept nodes");
    if (plan_.cost_after && plan_.cost_after->micros != after) Find("all nodes together cost {}", after);
    if (plan_.unplaced.empty() && plan_.lower_bound.micros > machines - added) {
      Find("the bound {} is above the cost {}", plan_.lower_bound.micros, machines - added);
    }
  }

  void CheckUtilisation() {
    for (const Utilisation& row : plan_.utilisation) {
      int64_t taken = 0;
      int64_t total = 0;
      for (const Spot& spot : judge_.spots()) {
        const auto found = spot.taken.find(row.resource);
        taken += found == spot.taken.end() ? 0 : found->second;
        total += spot.total.Get(row.resource);
        if (row.resource != "devices") continue;
        const Judge::DeviceSum sum = judge_.DevicesOf(spot);
        taken += sum.asked;
        total += sum.has;
      }
      if (taken != row.requested || total != row.allocatable) {
        Find("{}: {} of {} is requested", row.resource, taken, total);
      }
    }
  }

  const Request& request_;
  const Plan& plan_;
  const placement::World& world_;
  Judge judge_;
  std::vector<const placement::Unit*> asked_;
  std::unordered_map<std::string_view, size_t> position_;  // of a unit in asked_; empty until it is needed
  size_t next_ = 0;                                        // in asked_
  std::vector<bool> seen_;
};

}  // namespace

std::vector<std::string> CheckPlan(const Request& request, const Plan& plan) {
  return PlanChecker(request, plan).Run();
}

}  // namespace muster::planner
