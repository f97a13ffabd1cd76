#include "planner/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "base/hash.h"
#include "base/probe.h"
#include "model/names.h"
#include "planner/checker.h"
#include "planner/compile.h"
#include "planner/replay.h"
#include "planner/solve.h"
#include "planner/unplaced.h"

namespace muster::planner {
namespace {

constexpr auto kKeeps = std::to_array<model::NameRow<Keep>>({{Keep::kNone, "none"}, {Keep::kNodes, "nodes"}});
constexpr auto kEfforts = std::to_array<model::NameRow<Effort>>({{Effort::kFast, "fast"}, {Effort::kBest, "best"}});

// The first id that is there twice; empty if none. Digests are compared first: a table of strings would miss the cache
// for every unit.
std::string_view RepeatedId(const Request& request) {
  std::vector<uint64_t> digests;
  digests.reserve(request.world.placed.size() + request.pending.size());
  for (const placement::PlacedUnit& placed : request.world.placed) digests.push_back(Hash(placed.unit.id));
  for (const placement::Unit& unit : request.pending) digests.push_back(Hash(unit.id));
  std::ranges::sort(digests);
  if (std::ranges::adjacent_find(digests) == digests.end()) return {};
  std::unordered_set<std::string_view> ids;
  for (const placement::PlacedUnit& placed : request.world.placed) ids.insert(placed.unit.id);
  for (const placement::Unit& unit : request.pending) {
    if (!ids.insert(unit.id).second) return unit.id;
  }
  return {};
}

Status CheckResidents(const Request& request) {
  std::unordered_set<std::string_view> known;
  if (!request.residents.empty()) {
    for (const placement::Node& node : request.world.nodes) known.insert(node.id);
  }
  for (const placement::PlacedUnit& resident : request.residents) {
    const auto bad = [&](std::string_view text) {
      return Status(Code::kInvalidArgument, fmt::format("unit {}: {}", resident.unit.id, text));
    };
    if (!known.contains(resident.node)) return bad(fmt::format("there is no node {}", resident.node));
    if (resident.unit.kind.value() >= request.world.kinds.size()) return bad("its kind is out of range");
    const placement::Kind& kind = request.world.kinds[resident.unit.kind.value()];
    if (!kind.request.empty() || !kind.devices.empty()) return bad("what a resident takes is reserved on its node");
  }
  return {};
}

int64_t UnitsOf(const Problem& problem, const std::vector<uint32_t>& kinds) {
  int64_t units = 0;
  for (const uint32_t k : kinds) {
    units += problem.kinds[k].bundle ? static_cast<int64_t>(problem.kinds[k].units.size()) : 1;
  }
  return units;
}

// Gives devices of bought machines to units. Parts were rounded up to powers of two, so the largest first always fits.
class DeviceTable {
 public:
  explicit DeviceTable(size_t devices) : free_(devices, kDeviceParts) {}

  std::vector<int32_t> Take(const placement::DeviceRequest& request) {
    std::vector<int32_t> taken;
    const int64_t parts = request.whole > 0 ? kDeviceParts : DeviceParts(request);
    const int64_t wanted = request.whole > 0 ? request.whole : (request.milli > 0 ? 1 : 0);
    for (size_t i = 0; i < free_.size() && static_cast<int64_t>(taken.size()) < wanted; ++i) {
      if (free_[i] < parts) continue;
      free_[i] -= parts;
      taken.push_back(static_cast<int32_t>(i));
    }
    return taken;
  }

 private:
  std::vector<int64_t> free_;
};

// A solution in names.
class Writer {
 public:
  Writer(const Request& request, const std::vector<const placement::Unit*>& units, const Solution& solution)
      : request_(request), units_(units), solution_(solution), kept_(request) {}

  Plan Run(const std::vector<uint32_t>& added) {
    AddMachines(added);
    AddAssignments();
    AddUnplaced();
    AddMoney();
    AddUtilisation();
    plan_.lower_bound = {solution_.bound};
    plan_.steps = solution_.steps;
    plan_.stopped_early = solution_.stopped;
    return std::move(plan_);
  }

 private:
  const Problem& problem() const { return *solution_.problem; }
  const Packing& packing() const { return *solution_.packing; }

  // By pool, zone, type; those of the replay last.
  void AddMachines(const std::vector<uint32_t>& added) {
    struct Row {
      bool from_replay = false;
      uint32_t candidate = 0;
      uint32_t bin = kNoChoice;
    };
    std::vector<Row> rows;
    for (uint32_t b = 0; b < packing().bins().size(); ++b) {
      const Bin& bin = packing().bins()[b];
      if (bin.choice != kNoChoice) rows.push_back({false, problem().choices[bin.choice].candidate, b});
    }
    for (const uint32_t choice : added) rows.push_back({true, problem().choices[choice].candidate, kNoChoice});
    std::ranges::stable_sort(rows, {}, [&](const Row& row) {
      const Candidate& candidate = request_.candidates[row.candidate];
      return std::tuple(row.from_replay, candidate.pool, candidate.zone, candidate.type);
    });
    node_of_bin_.assign(packing().bins().size(), "");
    for (const Row& row : rows) {
      const std::string id = fmt::format("plan-{:04}", plan_.machines.size() + 1);
      plan_.machines.push_back({.id = id, .candidate = row.candidate, .from_replay = row.from_replay});
      if (row.bin != kNoChoice) node_of_bin_[row.bin] = id;
    }
    for (uint32_t b = 0; b < packing().bins().size(); ++b) {
      const Bin& bin = packing().bins()[b];
      if (bin.fixed != kNoChoice) {
        node_of_bin_[b] = request_.world.nodes[problem().fixed[bin.fixed].node].id;
      }
    }
  }

  void AddAssignments() {
    std::vector<size_t> next(problem().kinds.size(), 0);  // units of a kind are alike: the first ones are placed
    bin_of_unit_.assign(units_.size(), kNoChoice);
    for (uint32_t b = 0; b < packing().bins().size(); ++b) {
      for (const Item& item : packing().bins()[b].items) {
        const uint32_t k = packing().lots()[item.lot].kind;
        const DenseKind& kind = problem().kinds[k];
        const size_t count = kind.bundle ? kind.units.size() : static_cast<size_t>(item.count);
        for (size_t i = 0; i < count; ++i) bin_of_unit_[kind.units[next[k]++]] = b;
      }
    }
    std::vector<std::vector<int32_t>> devices = AssignDevices();
    for (size_t u = 0; u < units_.size(); ++u) {
      if (bin_of_unit_[u] == kNoChoice) continue;
      plan_.assignments.push_back({units_[u]->id, node_of_bin_[bin_of_unit_[u]], std::move(devices[u])});
    }
    if (MUTANT("planner.assigns_twice") && !plan_.assignments.empty()) {
      plan_.assignments.push_back(plan_.assignments.front());
    }
  }

  std::vector<std::vector<int32_t>> AssignDevices() const {
    std::vector<std::vector<int32_t>> devices(units_.size());
    std::vector<size_t> order;
    const auto request_of = [&](size_t u) -> const placement::DeviceRequest& {
      return request_.world.kinds[units_[u]->kind.value()].devices;
    };
    for (size_t u = 0; u < units_.size(); ++u) {
      if (bin_of_unit_[u] != kNoChoice && !request_of(u).empty()) order.push_back(u);
    }
    std::ranges::stable_sort(order, std::greater<>(), [&](size_t u) { return DeviceParts(request_of(u)); });
    std::map<uint32_t, DeviceTable> tables;
    for (const size_t u : order) {
      const Bin& bin = packing().bins()[bin_of_unit_[u]];
      if (bin.choice == kNoChoice) continue;  // placement assigns those of a node that is there
      const Candidate& candidate = request_.candidates[problem().choices[bin.choice].candidate];
      DeviceTable& table = tables.try_emplace(bin_of_unit_[u], candidate.devices.size()).first->second;
      devices[u] = MUTANT("planner.device_twice") ? DeviceTable(candidate.devices.size()).Take(request_of(u))
                                                  : table.Take(request_of(u));
    }
    return devices;
  }

  void AddUnplaced() {
    std::vector<placement::Reason> refused(problem().kinds.size(), placement::Reason::kNone);
    for (const Refused& one : solution_.refused) refused[one.kind] = one.reason;
    std::vector<uint32_t> kind_of(units_.size(), 0);
    for (uint32_t k = 0; k < problem().kinds.size(); ++k) {
      for (const uint32_t u : problem().kinds[k].units) kind_of[u] = k;
    }
    UnplacedExplainer explainer(request_, problem());
    for (size_t u = 0; u < units_.size(); ++u) {
      if (bin_of_unit_[u] == kNoChoice) plan_.unplaced.push_back(explainer.Explain(*units_[u], refused[kind_of[u]]));
    }
  }

  void AddMoney() {
    for (const PlannedMachine& machine : plan_.machines) {
      const int64_t price = request_.candidates[machine.candidate].price.micros;
      plan_.cost_machines.micros += price;
      if (!machine.from_replay) continue;
      plan_.replay.cost_added.micros += price;
      ++plan_.replay.machines_added;
    }
    model::Money nodes;
    model::Money kept;
    bool kept_priced = true;
    for (const placement::Node& node : request_.world.nodes) {
      const auto facts = request_.nodes.find(node.id);
      const bool priced = facts != request_.nodes.end() && facts->second.price.has_value();
      const int64_t price = priced ? facts->second.price->micros : 0;
      if (!priced) plan_.unpriced_nodes.push_back(node.id);
      nodes.micros += price;
      if (!kept_.Has(node.id)) continue;
      kept.micros += price;
      kept_priced = kept_priced && priced;
    }
    if (plan_.unpriced_nodes.empty()) plan_.cost_before = nodes;
    if (kept_priced) plan_.cost_after = model::Money{kept.micros + plan_.cost_machines.micros};
    if (MUTANT("planner.spot_as_free")) plan_.cost_machines.micros /= 2;
  }

  void AddUtilisation() {
    std::map<std::string, Utilisation> rows;
    for (const std::string& name : problem().dimensions) rows[name].resource = name;
    const auto add = [&](const model::Resources& amounts, int64_t Utilisation::* member, int64_t times) {
      for (const auto& [name, amount] : amounts.entries()) {
        if (const auto row = rows.find(name); row != rows.end()) row->second.*member += amount * times;
      }
    };
    const auto add_devices = [&](int64_t Utilisation::* member, int64_t milli) {
      const auto row = rows.find(std::string(kDeviceDimension));
      if (row != rows.end()) row->second.*member += milli;
    };
    const auto milli_of = [](const std::vector<int32_t>& devices) {
      return std::accumulate(devices.begin(), devices.end(), int64_t{0});
    };
    std::vector<int64_t> counts(request_.world.kinds.size(), 0);
    for (size_t u = 0; u < units_.size(); ++u) {
      if (bin_of_unit_[u] != kNoChoice) ++counts[units_[u]->kind.value()];
    }
    for (const placement::PlacedUnit& placed : request_.world.placed) {
      if (kept_.Has(placed.node)) ++counts[placed.unit.kind.value()];
    }
    for (const placement::Node& node : request_.world.nodes) {
      if (!kept_.Has(node.id)) continue;
      add(node.total, &Utilisation::allocatable, 1);
      add(node.reserved, &Utilisation::requested, 1);
      add_devices(&Utilisation::allocatable, milli_of(node.devices));
    }
    for (size_t k = 0; k < counts.size(); ++k) {
      const placement::Kind& kind = request_.world.kinds[k];
      add(kind.request, &Utilisation::requested, counts[k]);
      add_devices(&Utilisation::requested, counts[k] * (int64_t{kind.devices.whole} * 1000 + kind.devices.milli));
    }
    for (const PlannedMachine& machine : plan_.machines) {
      const Candidate& candidate = request_.candidates[machine.candidate];
      add(candidate.allocatable, &Utilisation::allocatable, 1);
      add_devices(&Utilisation::allocatable, milli_of(candidate.devices));
    }
    for (auto& [unused, row] : rows) plan_.utilisation.push_back(std::move(row));
  }

  const Request& request_;
  const std::vector<const placement::Unit*>& units_;
  const Solution& solution_;
  const KeptNodes kept_;
  std::vector<std::string> node_of_bin_;
  std::vector<uint32_t> bin_of_unit_;
  Plan plan_;
};

}  // namespace

std::string_view KeepName(Keep keep) { return model::NameOf(kKeeps, keep); }
Result<Keep> ParseKeep(std::string_view name) { return model::ParseName(kKeeps, "way to keep nodes", name); }
std::string_view EffortName(Effort effort) { return model::NameOf(kEfforts, effort); }
Result<Effort> ParseEffort(std::string_view name) { return model::ParseName(kEfforts, "effort", name); }

KeptNodes::KeptNodes(const Request& request) : all_(request.keep == Keep::kNodes) {
  if (all_) return;
  for (const auto& [id, facts] : request.nodes) {
    if (facts.fixed) ids_.insert(id);
  }
}

bool KeptNodes::Has(const std::string& node) const { return all_ || ids_.contains(node); }

Status CheckStructure(const Request& request) {
  MUSTER_RETURN_IF_ERROR(placement::CheckStructure(request.world));
  MUSTER_RETURN_IF_ERROR(CheckResidents(request));
  for (const placement::Unit& unit : request.pending) {
    if (unit.id.empty()) return {Code::kInvalidArgument, "a unit has no id"};
    if (unit.kind.value() >= request.world.kinds.size()) {
      return {Code::kInvalidArgument, fmt::format("unit {}: its kind is out of range", unit.id)};
    }
  }
  if (const std::string_view id = RepeatedId(request); !id.empty()) {
    return {Code::kInvalidArgument, fmt::format("unit {}: the id is there twice", id)};
  }
  for (const Candidate& candidate : request.candidates) {
    if (candidate.price.micros < 0) {
      return {Code::kInvalidArgument, fmt::format("machine type {}: its price is negative", candidate.type)};
    }
  }
  return {};
}

Result<Plan> MakePlan(const Request& request) {
  if (Status status = CheckStructure(request); !status.ok()) return std::unexpected(std::move(status));
  const std::vector<const placement::Unit*> units = UnitsToPlace(request);
  const Solution solution = Solve(request, units);
  ReplayOutcome replay;
  if (!request.exact) replay = Replay(solution, request.replay_seed);
  Plan plan = Writer(request, units, solution).Run(replay.added);
  plan.replay.done = !request.exact;
  plan.replay.pending_at_first = UnitsOf(*solution.problem, replay.first);
  plan.replay.pending_at_last = UnitsOf(*solution.problem, replay.left);
  plan.replay.rounds = replay.rounds;
  const std::vector<std::string> findings = CheckPlan(request, plan);
  if (!findings.empty()) {
    return Error(Code::kInternal,
                 fmt::format("the plan breaks a rule, which is a bug of the planner: {}", fmt::join(findings, "; ")));
  }
  return plan;
}

uint64_t Digest(const Plan& plan) {
  Hasher hasher;
  for (const PlannedMachine& machine : plan.machines) {
    hasher.Add(machine.candidate);
    hasher.Add(static_cast<uint64_t>(machine.from_replay));
  }
  for (const Assignment& assignment : plan.assignments) {
    hasher.Add(assignment.unit);
    hasher.Add(assignment.node);
    for (const int32_t device : assignment.devices) hasher.Add(static_cast<uint64_t>(device));
  }
  for (const Unplaced& unplaced : plan.unplaced) hasher.Add(unplaced.unit);
  hasher.Add(static_cast<uint64_t>(plan.cost_machines.micros));
  return hasher.value();
}

}  // namespace muster::planner
