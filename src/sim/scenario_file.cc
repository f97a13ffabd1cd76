#include "sim/scenario_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "engine/case_machines.h"
#include "model/decode.h"
#include "model/names.h"
#include "model/text_reader.h"
#include "model/yaml_reader.h"

namespace muster::sim {
namespace {

using contract::OperationKind;
using model::TextReader;

constexpr auto kOperations = std::to_array<model::NameRow<OperationKind>>({{OperationKind::kCreate, "create"},
                                                                           {OperationKind::kConfigure, "configure"},
                                                                           {OperationKind::kDrain, "drain"},
                                                                           {OperationKind::kDelete, "delete"}});

constexpr int64_t kMostMachines = 10'000;

class ScenarioReader {
 public:
  ScenarioFile Read(TextReader root) {
    ScenarioFile scenario;
    root.Field("about").Read(scenario.about);
    ReadShard(root.Field("shard"), scenario.config);
    TextReader dwell = root.Field("dwell");
    for (const auto& [kind, name] : kOperations) {
      scenario.dwell[static_cast<size_t>(kind)] = 1s;
      engine::ReadSpan(dwell.Field(name), scenario.dwell[static_cast<size_t>(kind)]);
    }
    dwell.RefuseUnknown();
    known_.types = engine::ReadTypes(root.Field("types"));
    std::vector<TextReader> steps = root.Field("steps").List();
    ReadDemand(root, scenario.steps.emplace_back());
    for (TextReader& reader : steps) ReadDemand(reader, scenario.steps.emplace_back());
    ReadMachines(root.Field("machines"), scenario.machines);
    for (size_t i = 0; i < steps.size(); ++i) ReadStep(steps[i], scenario.steps[i].at, scenario.steps[i + 1]);
    TextReader lasts = root.Field("lasts").Require();
    engine::ReadSpan(lasts, scenario.lasts);
    if (scenario.lasts < scenario.steps.back().at) lasts.Fail("the scenario ends before its last step");
    if (TextReader expect = root.Field("expect"); expect.present()) expect.Read(scenario.expect.emplace());
    root.RefuseUnknown();
    return scenario;
  }

 private:
  static void ReadShard(TextReader reader, shard::Config& config) {
    engine::ReadSpan(reader.Field("surplusHold"), config.policy.surplus_hold);
    engine::ReadSpan(reader.Field("releaseHoldOnDemand"), config.policy.release_hold_on_demand);
    engine::ReadSpan(reader.Field("releaseHoldSpot"), config.policy.release_hold_spot);
    reader.RefuseUnknown();
  }

  // Names come before machines, which refer to them.
  void ReadDemand(TextReader& section, ScenarioStep& step) {
    for (TextReader& reader : section.Field("clusters").List()) {
      engine::CaseCluster& cluster = step.clusters.emplace_back();
      reader.Field("id").Require().Read(cluster.id);
      known_.clusters.insert(cluster.id);
      if (TextReader session = reader.Field("session"); session.present()) session.Read(cluster.session.emplace(true));
      if (TextReader needs = reader.Field("needs"); needs.present()) ReadNeeds(needs, cluster);
      reader.RefuseUnknown();
    }
  }

  void ReadNeeds(TextReader& list, engine::CaseCluster& cluster) {
    std::vector<engine::CaseNeed>& needs = cluster.needs.emplace();
    for (TextReader& reader : list.List()) {
      engine::CaseNeed& row = needs.emplace_back();
      reader.Field("name").Require().Read(row.name);
      row.need = model::ReadNeed(reader, cluster.id);
      known_.needs.emplace(row.name, row.need);
    }
  }

  void ReadMachines(TextReader list, std::vector<model::Machine>& out) {
    for (engine::CaseMachine& machine : engine::MachineSection(known_, kMostMachines).ReadMachines(list)) {
      if (machine.pledge || machine.idle_for || machine.unclaimed_for || machine.draining_for) {
        list.Fail("a scenario begins with a shard that has no memory: leave out pledgedTo, idleFor and the like");
      }
      if (!model::IsStable(machine.machine.state)) {
        list.Fail(
            fmt::format("{} is under way; a scenario begins with machines that are Speculative, Idle or "
                        "Configured",
                        machine.machine.id));
      }
      ids_.insert(machine.machine.id);
      out.push_back(std::move(machine.machine));
    }
  }

  void ReadStep(TextReader& reader, Duration before, ScenarioStep& step) {
    TextReader at = reader.Field("at").Require();
    engine::ReadSpan(at, step.at);
    if (step.at < before) at.Fail("steps are written in the order of time");
    for (TextReader& fault : reader.Field("fails").List()) {
      ScriptedFault& fails = step.fails.emplace_back();
      fault.Field("operation").Require().Read(fails.kind, [](std::string_view text) {
        return model::ParseName(kOperations, "operation", text);
      });
      ReadIds(fault.Field("machines").Require(), fails.machines);
      fault.Field("error").Require().Read(fails.error);
      engine::ReadSpan(fault.Field("for").Require(), fails.lasts);
      fault.RefuseUnknown();
    }
    ReadIds(reader.Field("lost"), step.lost);
    reader.Field("restart").Read(step.restart);
    engine::ReadSpan(reader.Field("away"), step.away);
    reader.RefuseUnknown();
  }

  void ReadIds(TextReader list, std::vector<std::string>& out) const {
    for (TextReader& item : list.List()) {
      item.Read(out.emplace_back());
      if (!ids_.contains(out.back())) item.Fail(fmt::format("there is no machine {}", model::Quoted(out.back())));
    }
  }

  engine::KnownNames known_;
  std::set<std::string> ids_;
};

}  // namespace

Result<ScenarioFile> ReadScenario(std::string_view text, std::string_view source) {
  MUSTER_ASSIGN_OR_RETURN(model::TextValue document, model::ReadYamlDocument(text, source));
  model::TextErrors errors{std::string(source)};
  engine::FillInMachines(document);
  ScenarioFile scenario = ScenarioReader().Read(TextReader(errors, document));
  if (!errors.ok()) return std::unexpected(errors.status());
  return scenario;
}

}  // namespace muster::sim
