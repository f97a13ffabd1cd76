#include "placement/case_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "model/yaml_reader.h"

namespace muster::placement {
namespace {

using model::TextReader;

constexpr int64_t kMostCopies = 1000;

class CaseReader {
 public:
  Case Read(TextReader root) {
    Case result;
    root.Field("about").Read(result.about);
    root.Field("rules").Read(result.rules);
    ReadPolicy(root.Field("policy"), result.policy);
    World& world = result.world;
    for (auto& [name, reader] : root.Field("kinds").Entries()) {
      kinds_.emplace(name, KindIndex::Of(world.kinds.size()));
      world.kinds.push_back(ReadKind(reader));
    }
    for (TextReader reader : root.Field("nodes").List()) ReadNodes(reader, world);
    for (TextReader reader : root.Field("placed").List()) ReadPlaced(reader, world);
    for (TextReader reader : root.Field("units").List()) ReadUnits(reader, result.units);
    for (auto& [name, reader] : root.Field("namespaces").Entries()) reader.Read(world.namespaces[name]);
    for (auto& [name, reader] : root.Field("budgets").Entries()) {
      reader.Read(world.budgets.emplace_back(Budget{.id = name}).allowed);
    }
    for (auto& [name, reader] : root.Field("quotas").Entries()) reader.Read(world.quotas[name]);
    if (TextReader expect = root.Field("expect"); expect.present()) expect.Read(result.expect.emplace());
    root.RefuseUnknown();
    if (Status status = CheckStructure(world); root.ok() && !status.ok()) root.Fail(status.message());
    return result;
  }

 private:
  static void ReadPolicy(TextReader reader, Policy& policy) {
    reader.Field("strategy").Read(policy.strategy, ParseStrategy);
    reader.Field("preempt").Read(policy.preempt);
    for (TextReader item : reader.Field("deviceMix").List()) {
      DeviceShape& shape = policy.device_mix.emplace_back();
      item.Field("request").Read(shape.request);
      item.Field("whole").Read(shape.devices.whole);
      item.Field("milli").Read(shape.devices.milli);
      item.Field("weight").Read(shape.weight);
      item.RefuseUnknown();
    }
    reader.RefuseUnknown();
  }

  static int64_t ReadCount(TextReader& reader) {
    int64_t count = 1;
    TextReader field = reader.Field("count");
    field.Read(count);
    if (count >= 1 && count <= kMostCopies) return count;
    field.Fail(fmt::format("write a number from 1 to {}", kMostCopies));
    return 1;
  }

  // "web" once, or "web-0", "web-1", ... so many times.
  static std::vector<std::string> Ids(const std::string& id, int64_t count, bool counted) {
    if (!counted) return {id};
    std::vector<std::string> ids;
    for (int64_t i = 0; i < count; ++i) ids.push_back(fmt::format("{}-{}", id, i));
    return ids;
  }

  static void ReadNodes(TextReader reader, World& world) {
    Node node;
    reader.Field("id").Require().Read(node.id);
    reader.Field("ready").Read(node.ready);
    reader.Field("fresh").Read(node.fresh);
    reader.Field("cordoned").Read(node.cordoned);
    reader.Field("labels").Read(node.labels);
    for (TextReader item : reader.Field("taints").List()) {
      Taint& taint = node.taints.emplace_back();
      item.Field("key").Require().Read(taint.key);
      item.Field("value").Read(taint.value);
      item.Field("effect").Require().Read(taint.effect, ParseTaintEffect);
      item.RefuseUnknown();
    }
    std::vector<std::string> types;
    TextReader types_field = reader.Field("types");
    types_field.Read(types);
    for (const std::string& type : types) {
      const auto parsed = model::ParseWorkloadType(type);
      parsed ? node.supported_types.push_back(*parsed) : types_field.Fail(parsed.error().message());
    }
    reader.Field("total").Read(node.total);
    reader.Field("reserved").Read(node.reserved);
    reader.Field("used").Read(node.used);
    reader.Field("unlimited").Read(node.unlimited);
    for (TextReader item : reader.Field("devices").List()) item.Read(node.devices.emplace_back());
    const bool counted = reader.Field("count").present();
    for (const std::string& id : Ids(node.id, ReadCount(reader), counted)) {
      world.nodes.push_back(node);
      world.nodes.back().id = id;
    }
    reader.RefuseUnknown();
  }

  KindIndex ReadKindName(TextReader& reader) {
    std::string name;
    TextReader field = reader.Field("kind").Require();
    field.Read(name);
    const auto it = kinds_.find(name);
    if (it != kinds_.end()) return it->second;
    field.Fail(fmt::format("there is no kind {}", name));
    return KindIndex(0);
  }

  void ReadPlaced(TextReader reader, World& world) {
    PlacedUnit placed;
    reader.Field("id").Require().Read(placed.unit.id);
    placed.unit.kind = ReadKindName(reader);
    reader.Field("order").Read(placed.unit.order);
    reader.Field("node").Require().Read(placed.node);
    for (TextReader item : reader.Field("devices").List()) item.Read(placed.devices.emplace_back());
    reader.Field("terminating").Read(placed.terminating);
    reader.Field("budgets").Read(placed.budgets);
    reader.Field("mayEvict").Read(placed.may_evict);
    const bool counted = reader.Field("count").present();
    for (const std::string& id : Ids(placed.unit.id, ReadCount(reader), counted)) {
      world.placed.push_back(placed);
      world.placed.back().unit.id = id;
    }
    reader.RefuseUnknown();
  }

  void ReadUnits(TextReader reader, std::vector<Unit>& units) {
    Unit unit;
    reader.Field("id").Require().Read(unit.id);
    unit.kind = ReadKindName(reader);
    reader.Field("order").Read(unit.order);
    const bool counted = reader.Field("count").present();
    for (const std::string& id : Ids(unit.id, ReadCount(reader), counted)) {
      units.push_back(unit);
      units.back().id = id;
    }
    reader.RefuseUnknown();
  }

  std::map<std::string, KindIndex> kinds_;
};

std::string OutcomeText(const Outcome& outcome) {
  std::string text = fmt::format("{}: ", outcome.unit);
  if (outcome.node.empty()) {
    std::vector<std::string> refusals;
    for (const RefusalCount& refusal : outcome.refusals) {
      refusals.push_back(fmt::format("{} {}", ReasonName(refusal.reason), refusal.nodes));
    }
    return text + fmt::format("[{}] {}", ReasonName(outcome.reason), fmt::join(refusals, ", "));
  }
  text += outcome.node;
  if (!outcome.devices.empty()) text += fmt::format(" devices {}", fmt::join(outcome.devices, ","));
  if (!outcome.victims.empty()) text += fmt::format(" evicting {}", fmt::join(outcome.victims, ", "));
  return text;
}

}  // namespace

Result<Case> ReadCase(std::string_view text, std::string_view source) {
  MUSTER_ASSIGN_OR_RETURN(const model::TextValue value, model::ReadYamlDocument(text, source));
  model::TextErrors errors{std::string(source)};
  Case result = CaseReader().Read(TextReader(errors, value));
  if (!errors.ok()) return std::unexpected(errors.status());
  return result;
}

std::string RunCase(const Case& input, const CasePlacer& placer) {
  std::string text;
  const std::vector<Outcome> outcomes = placer.place(input.units);
  for (size_t i = 0; i < outcomes.size(); ++i) {
    text += OutcomeText(outcomes[i]) + "\n";
    if (!outcomes[i].node.empty()) continue;
    for (const NodeVerdict& verdict : placer.feasible(input.units[i].kind)) {
      text += fmt::format("  {}: {}{}{}\n", verdict.node, ReasonName(verdict.reason),
                          verdict.detail.empty() ? "" : ": ", verdict.detail);
    }
  }
  return text;
}

}  // namespace muster::placement
