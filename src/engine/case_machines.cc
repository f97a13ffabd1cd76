#include "engine/case_machines.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/bind_stamp.h"
#include "model/decode.h"
#include "model/names.h"

namespace muster::engine {
namespace {

using model::MachineState;
using model::TextField;
using model::TextReader;
using model::TextValue;

std::string ScalarOf(const TextValue& map, std::string_view key) {
  const TextField* field = map.Find(key);
  return field != nullptr && field->value.kind == TextValue::Kind::kScalar ? field->value.scalar : "";
}

void AddField(TextValue& map, std::string_view key, TextValue value) {
  map.fields.push_back({.key = std::string(key), .position = map.position, .value = std::move(value)});
}

void AddScalar(TextValue& map, std::string_view key, std::string text) {
  AddField(map, key, {.kind = TextValue::Kind::kScalar, .scalar = std::move(text), .position = map.position});
}

// Labels of both, the machine's own where they differ; any other field only if the machine has none.
void AddTypeField(TextValue& machine, const TextField& field) {
  const auto own = std::ranges::find(machine.fields, field.key, &TextField::key);
  if (own == machine.fields.end()) {
    machine.fields.push_back(field);
  } else if (field.key == "labels" && own->value.kind == TextValue::Kind::kMap) {
    for (const TextField& label : field.value.fields) {
      if (own->value.Find(label.key) == nullptr) own->value.fields.push_back(label);
    }
  }
}

bool HasHost(const std::string& state) {
  const auto parsed = model::ParseState(state);
  return parsed && *parsed != MachineState::kSpeculative && *parsed != MachineState::kCreating &&
         *parsed != MachineState::kFailed;
}

// Name of a need -> its cluster, over the whole document.
using ClusterOf = std::map<std::string, std::string>;

void FillIn(TextValue& machine, const TextValue* types, const ClusterOf& cluster_of) {
  if (machine.kind != TextValue::Kind::kMap) return;
  if (const std::string type = ScalarOf(machine, "type"); !type.empty()) {
    const TextField* entry = types == nullptr ? nullptr : types->Find(type);
    if (entry != nullptr) {
      for (const TextField& field : entry->value.fields) AddTypeField(machine, field);
    }
    if (machine.Find("instanceType") == nullptr) AddScalar(machine, "instanceType", type);
  }
  if (const auto need = cluster_of.find(ScalarOf(machine, "boundFor"));
      need != cluster_of.end() && machine.Find("cluster") == nullptr) {
    AddScalar(machine, "cluster", need->second);
  }
  if (HasHost(ScalarOf(machine, "state")) && machine.Find("host") == nullptr) {
    TextValue host{.kind = TextValue::Kind::kMap, .position = machine.position};
    AddScalar(host, "provider", "case");
    AddScalar(host, "ref", ScalarOf(machine, "id"));
    AddField(machine, "host", std::move(host));
  }
}

void CollectClusters(const TextValue& section, ClusterOf& cluster_of) {
  const TextField* clusters = section.Find("clusters");
  if (clusters == nullptr) return;
  for (const TextValue& cluster : clusters->value.items) {
    const TextField* needs = cluster.Find("needs");
    if (needs == nullptr) continue;
    const std::string id = ScalarOf(cluster, "id");
    for (size_t i = 0; i < needs->value.items.size(); ++i) {
      const std::string name = ScalarOf(needs->value.items[i], "name");
      cluster_of.emplace(name.empty() ? fmt::format("{}/{}", id, i + 1) : name, id);
    }
  }
}

template <class Section, class Visit>
void ForEachSection(Section& document, Visit visit) {
  visit(document);
  for (auto& field : document.fields) {
    if (field.key != "steps") continue;
    for (auto& step : field.value.items) visit(step);
  }
}

std::string Hint(std::string_view name, const std::vector<std::string>& known) {
  const std::string nearest = model::NearestName(name, known);
  return nearest.empty() ? "" : fmt::format("; did you mean {}?", model::Quoted(nearest));
}

bool IsBound(MachineState state) {
  return state == MachineState::kConfigured || state == MachineState::kConfiguring || state == MachineState::kDraining;
}

model::Attribution AttributionOf(const model::Need& need) {
  const model::Profile& profile = need.profile;
  return {.fingerprint = profile.fingerprint(),
          .group = need.group,
          .priority = profile.priority(),
          .interruption = model::UpperBound(profile.interruption()),
          .reclamation = model::UpperBound(profile.reclamation())};
}

model::Attribution ReadAttribution(TextReader& reader) {
  model::Attribution attribution;
  reader.Field("fingerprint").Read(attribution.fingerprint);
  reader.Field("group").Read(attribution.group);
  reader.Field("priority").Read(attribution.priority);
  for (const auto& [key, field] : {std::pair("interruptionPenalty", &model::Attribution::interruption),
                                   std::pair("reclamationPenalty", &model::Attribution::reclamation)}) {
    model::PenaltyBucket bucket = model::PenaltyBucket::kZero;
    reader.Field(key).Read(bucket, model::ParseBucket);
    attribution.*field = model::UpperBound(bucket);
  }
  reader.RefuseUnknown();
  return attribution;
}

void ReadTypeValues(TextReader& reader, model::Machine& machine) {
  reader.Field("instanceType").Read(machine.instance_type);
  reader.Field("zone").Read(machine.zone);
  reader.Field("capacityType").Read(machine.capacity_type, model::ParseCapacityType);
  reader.Field("price").Read(machine.price_per_hour, model::ParseMoney);
  reader.Field("interruptionProbability").Read(machine.interruption_probability, model::ParseProbability);
  reader.Field("resources").Read(machine.resources);
  reader.Field("allocatable").Read(machine.allocatable.emplace());
  reader.Field("labels").Read(machine.labels);
  reader.RefuseUnknown();
}

}  // namespace

void FillInMachines(TextValue& document) {
  ClusterOf cluster_of;
  ForEachSection(std::as_const(document), [&](const TextValue& section) { CollectClusters(section, cluster_of); });
  const TextField* catalogue = document.Find("types");
  const TextValue types = catalogue == nullptr ? TextValue{} : catalogue->value;
  ForEachSection(document, [&](TextValue& section) {
    for (TextField& field : section.fields) {
      if (field.key != "machines") continue;
      for (TextValue& machine : field.value.items) FillIn(machine, &types, cluster_of);
    }
  });
}

std::set<std::string> ReadTypes(TextReader types) {
  std::set<std::string> names;
  for (auto& [name, reader] : types.Entries()) {
    model::Machine read_again_where_it_is_used;
    ReadTypeValues(reader, read_again_where_it_is_used);
    names.insert(name);
  }
  return names;
}

void ReadSpan(TextReader reader, Duration& out) {
  reader.Read(out);
  if (out > kLongestSpan) reader.Fail("ten years are the longest a case may speak of");
}

std::vector<CaseMachine> MachineSection::ReadMachines(TextReader list) {
  std::vector<CaseMachine> machines;
  for (TextReader& reader : list.List()) AddCopies(reader, ReadMachine(reader), machines);
  return machines;
}

CaseMachine MachineSection::ReadMachine(TextReader& reader) const {
  CaseMachine result;
  if (TextReader type = reader.Field("type"); type.present()) {
    std::string name;
    type.Read(name);
    if (!known_.types.contains(name)) {
      type.Fail(fmt::format("there is no type {} in the catalogue `types`", model::Quoted(name)) +
                Hint(name, {known_.types.begin(), known_.types.end()}));
    }
  }
  result.machine = model::ReadMachine(reader);
  model::Machine& machine = result.machine;
  if (!machine.cluster.empty() && !known_.clusters.contains(machine.cluster)) {
    reader.Field("cluster").Fail(
        fmt::format("there is no cluster {}; list it under clusters", model::Quoted(machine.cluster)));
  }
  ReadBinding(reader, machine);
  ReadMemory(reader, result);
  return result;
}

const model::Need* MachineSection::FindNeed(TextReader& reader) const {
  std::string name;
  reader.Read(name);
  const auto need = known_.needs.find(name);
  if (need != known_.needs.end()) return &need->second;
  std::vector<std::string> names;
  for (const auto& [known, unused] : known_.needs) names.push_back(known);
  reader.Fail(fmt::format("no need is called {}", model::Quoted(name)) + Hint(name, names));
  return nullptr;
}

void MachineSection::ReadBinding(TextReader& reader, model::Machine& machine) const {
  TextReader bound_for = reader.Field("boundFor");
  if (!bound_for.present()) return;
  if (!IsBound(machine.state)) {
    return bound_for.Fail(
        fmt::format("a machine that is {} is bound to nobody; this is for Configuring, Configured "
                    "and Draining",
                    model::StateName(machine.state)));
  }
  model::Attribution attribution;
  if (bound_for.is_map()) {
    attribution = ReadAttribution(bound_for);
  } else {
    const model::Need* need = FindNeed(bound_for);
    if (need == nullptr) return;
    if (machine.cluster != need->cluster) {
      return bound_for.Fail(fmt::format("that need is cluster {}'s, the machine is bound to {}", need->cluster,
                                        model::Quoted(machine.cluster)));
    }
    attribution = AttributionOf(*need);
  }
  machine.shard_metadata = EncodeBindStamp(attribution);
}

void MachineSection::ReadMemory(TextReader& reader, CaseMachine& result) const {
  const MachineState state = result.machine.state;
  const auto only_for = [&](TextReader& field, bool right, std::string_view states) {
    if (field.present() && !right) {
      field.Fail(fmt::format("this is for machines that are {}; this one is {}", states, model::StateName(state)));
    }
    return field.present() && right;
  };
  TextReader pledge = reader.Field("pledgedTo");
  const bool may_be_pledged =
      state == MachineState::kCreating || state == MachineState::kDraining || state == MachineState::kIdle;
  if (only_for(pledge, may_be_pledged, "Creating, Draining or Idle")) {
    if (const model::Need* need = FindNeed(pledge)) result.pledge = KeyOf(*need);
  }
  TextReader idle = reader.Field("idleFor");
  if (only_for(idle, state == MachineState::kIdle, "Idle")) ReadSpan(idle, result.idle_for.emplace());
  TextReader unclaimed = reader.Field("unclaimedFor");
  if (only_for(unclaimed, state == MachineState::kConfigured, "Configured")) {
    ReadSpan(unclaimed, result.unclaimed_for.emplace());
  }
  TextReader draining = reader.Field("drainingFor");
  if (only_for(draining, state == MachineState::kDraining, "Draining")) {
    ReadSpan(draining, result.draining_for.emplace());
  }
}

void MachineSection::AddCopies(TextReader& reader, const CaseMachine& machine, std::vector<CaseMachine>& out) {
  TextReader count = reader.Field("count");
  int64_t copies = 1;
  count.Read(copies);
  reader.RefuseUnknown();
  if (!reader.ok()) return;
  if (copies < 1) return count.Fail("write how many machines there are: 1 or more");
  if (copies > left_) return count.Fail(fmt::format("too many machines: {} more fit into one case", left_));
  left_ -= copies;
  instance_types_.insert(machine.machine.instance_type);
  const size_t width = fmt::format("{}", copies - 1).size();
  for (int64_t i = 0; i < copies; ++i) {
    CaseMachine& copy = out.emplace_back(machine);
    if (count.present()) copy.machine.id = fmt::format("{}-{:0{}}", machine.machine.id, i, width);
    if (copy.machine.host.provider == "case") copy.machine.host.ref = copy.machine.id;
    if (ids_.insert(copy.machine.id).second) continue;
    return reader.Field("id").Fail(
        fmt::format("there is a machine {} already; ids are unique", model::Quoted(copy.machine.id)));
  }
}

void MachineSection::ReadIds(TextReader reader, std::vector<std::string>& out) const {
  for (TextReader& item : reader.List()) {
    ReadId(item, out.emplace_back());
  }
}

void MachineSection::ReadId(TextReader reader, std::string& out) const {
  reader.Read(out);
  if (!ids_.contains(out)) reader.Fail(fmt::format("there is no machine {} at this step", model::Quoted(out)));
}

Holds MachineSection::ReadHolds(TextReader& reader) const {
  Holds holds;
  std::vector<std::string> ids;
  ReadIds(reader.Field("machines"), ids);
  holds.machines.insert(ids.begin(), ids.end());
  for (TextReader& item : reader.Field("pairs").List()) {
    std::pair<std::string, std::string> pair;
    ReadId(item.Field("machine").Require(), pair.first);
    TextReader cluster = item.Field("cluster").Require();
    cluster.Read(pair.second);
    if (!known_.clusters.contains(pair.second)) {
      cluster.Fail(fmt::format("there is no cluster {}; list it under clusters", model::Quoted(pair.second)));
    }
    item.RefuseUnknown();
    holds.pairs.insert(std::move(pair));
  }
  for (TextReader& item : reader.Field("classes").List()) {
    StockClass stock;
    item.Field("instanceType").Read(stock.instance_type);
    item.Field("zone").Read(stock.zone);
    item.Field("capacityType").Read(stock.capacity_type, model::ParseCapacityType);
    item.RefuseUnknown();
    holds.classes.insert(std::move(stock));
  }
  reader.RefuseUnknown();
  return holds;
}

std::vector<std::string> MachineSection::ReadRemovals(TextReader list) {
  std::vector<std::string> ids;
  ReadIds(std::move(list), ids);
  for (const std::string& id : ids) ids_.erase(id);
  return ids;
}

std::vector<MachineChange> MachineSection::ReadChanges(TextReader list) {
  std::vector<MachineChange> changes;
  for (TextReader& reader : list.List()) {
    MachineChange& change = changes.emplace_back();
    const TextReader ids = reader.Field("ids");
    TextReader type = reader.Field("type");
    if (ids.present() == type.present()) reader.Fail("say which machines: either ids or a type");
    ReadIds(ids, change.ids);
    type.Read(change.instance_type);
    if (type.present() && !instance_types_.contains(change.instance_type)) {
      type.Fail(fmt::format("no machine is of type {}", model::Quoted(change.instance_type)));
    }
    if (TextReader price = reader.Field("price"); price.present()) {
      price.Read(change.price.emplace(), model::ParseMoney);
    }
    if (TextReader probability = reader.Field("interruptionProbability"); probability.present()) {
      probability.Read(change.interruption_probability.emplace(), model::ParseProbability);
    }
    reader.Field("labels").Read(change.labels);
    if (TextReader failed = reader.Field("failed"); failed.present()) {
      failed.Read(change.failed.emplace());
      if (change.failed->empty()) failed.Fail("say what the error was");
    }
    reader.RefuseUnknown();
  }
  return changes;
}

}  // namespace muster::engine
