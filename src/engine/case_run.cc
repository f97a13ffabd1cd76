#include "engine/case_run.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "engine/arithmetic.h"
#include "engine/needs_table.h"
#include "engine/world_steps.h"

namespace muster::engine {
namespace {

using model::MachineState;

class Run {
 public:
  explicit Run(const Case& input) : case_(input), carry_out_(input.dwell) {}

  void Cycles(const DecideFunction& decide, int32_t count, const std::function<void(const CaseCycle&)>& see) {
    auto step = case_.steps.begin();
    for (int32_t number = 1; number <= count; ++number) {
      for (; step != case_.steps.end() && step->at == number; ++step) Apply(*step);
      world_.needs = needs_.Rows();
      std::vector<std::string> row_names;
      for (const auto& [cluster, names] : names_) row_names.insert(row_names.end(), names.begin(), names.end());
      const Decision decision = decide(world_, memory_, Mono(), case_.policy);
      const auto [before, after] = Costs(decision);
      see({.number = number,
           .at = elapsed_,
           .world = world_,
           .row_names = row_names,
           .decision = decision,
           .cost_before = before,
           .cost_after = after});
      carry_out_.Advance(world_, decision);
      elapsed_ += case_.cycle_every;
    }
  }

 private:
  MonoTime Mono() const { return MonoTime{} + elapsed_; }

  void Apply(const CaseStep& step) {
    elapsed_ += step.advance;
    if (step.forget) memory_ = {};
    for (const CaseCluster& cluster : step.clusters) Apply(cluster);
    const std::set<std::string> gone(step.remove.begin(), step.remove.end());
    if (!gone.empty()) std::erase_if(world_.machines, [&](const auto& machine) { return gone.contains(machine.id); });
    for (const std::string& id : gone) memory_.machines.erase(id);
    for (const MachineChange& change : step.change) Apply(change);
    for (const CaseMachine& machine : step.add) Add(machine);
    if (step.holds) world_.holds = *step.holds;
  }

  void Apply(const CaseCluster& cluster) {
    ClusterState& state = world_.clusters[cluster.id];
    state.session = cluster.session.value_or(state.session);
    state.gate_open = cluster.gate_open.value_or(state.gate_open);
    state.reclaims_allowed = cluster.reclaims_allowed.value_or(state.reclaims_allowed);
    state.paused = cluster.paused.value_or(state.paused);
    state.on_hold = cluster.on_hold.value_or(state.on_hold);
    if (!cluster.needs) return;
    std::vector<model::Need> rows;
    std::vector<std::string>& names = names_[cluster.id];
    names.clear();
    for (const CaseNeed& row : *cluster.needs) {
      rows.push_back(row.need);
      names.push_back(row.name);
    }
    needs_.Replace(cluster.id, std::move(rows), case_.start + elapsed_);
  }

  void Apply(const MachineChange& change) {
    const std::set<std::string> ids(change.ids.begin(), change.ids.end());
    for (model::Machine& machine : world_.machines) {
      if (ids.empty() ? machine.instance_type != change.instance_type : !ids.contains(machine.id)) continue;
      machine.price_per_hour = change.price.value_or(machine.price_per_hour);
      machine.interruption_probability = change.interruption_probability.value_or(machine.interruption_probability);
      for (const auto& [key, value] : change.labels) machine.labels[key] = value;
      if (!change.failed) continue;
      machine.state = MachineState::kFailed;
      machine.last_error = *change.failed;
    }
  }

  void Add(const CaseMachine& machine) {
    world_.machines.push_back(machine.machine);
    MachineMemory memory{.pledge = machine.pledge};
    if (machine.idle_for) memory.idle_since = Mono() - *machine.idle_for;
    if (machine.unclaimed_for) memory.unclaimed_since = Mono() - *machine.unclaimed_for;
    if (machine.draining_for) memory.draining_since = Mono() - *machine.draining_for;
    if (memory != MachineMemory{}) memory_.machines[machine.machine.id] = std::move(memory);
  }

  std::pair<model::Money, model::Money> Costs(const Decision& decision) const {
    std::map<std::string_view, Wide> change;  // by machine: +1 bought, -1 released
    for (const Action& action : decision.actions) {
      if (action.kind == ActionKind::kProvision) change[action.machine] = 1;
      if (action.kind == ActionKind::kDelete) change[action.machine] = -1;
    }
    Wide before = 0;
    Wide after = 0;
    for (const model::Machine& machine : world_.machines) {
      const Wide price = machine.price_per_hour.micros;
      const bool exists = machine.state != MachineState::kSpeculative && machine.state != MachineState::kFailed;
      if (exists) before += price;
      if (exists) after += price;
      if (const auto it = change.find(machine.id); it != change.end()) after += it->second * price;
    }
    const auto money = [](Wide micros) {
      return model::Money{static_cast<int64_t>(std::min<Wide>(micros, std::numeric_limits<int64_t>::max()))};
    };
    return {money(before), money(after)};
  }

  const Case& case_;
  World world_;
  Memory memory_;
  NeedsTable needs_;
  std::map<std::string, std::vector<std::string>> names_;  // of each cluster's rows
  WorldSteps carry_out_;
  Duration elapsed_{};
};

}  // namespace

void RunCase(const Case& input, const DecideFunction& decide, int32_t cycles,
             const std::function<void(const CaseCycle&)>& see) {
  Run(input).Cycles(decide, cycles, see);
}

}  // namespace muster::engine
