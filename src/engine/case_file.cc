#include "engine/case_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include "engine/case_machines.h"
#include "model/decode.h"
#include "model/names.h"
#include "model/text_reader.h"
#include "model/yaml_reader.h"

namespace muster::engine {
namespace {

using model::TextReader;
using model::TextValue;

enum class Gate : uint8_t { kOpen, kShut };
constexpr auto kGates = std::to_array<model::NameRow<Gate>>({{Gate::kOpen, "open"}, {Gate::kShut, "shut"}});

template <class T>
void ReadInRange(TextReader reader, T least, T most, T& out) {
  T value = out;
  reader.Read(value);
  if (value < least || value > most) return reader.Fail(fmt::format("write a number from {} to {}", least, most));
  out = value;
}

void ReadWeight(TextReader reader, int64_t& millionths) {
  reader.Read(millionths, [](std::string_view text) -> Result<int64_t> {
    const auto weight = model::ParseMoney(text);  // the same notation: a decimal number, exact to a millionth
    if (!weight || text.starts_with('$')) return InvalidArgument("write a weight as a decimal number such as 0.1");
    return weight->micros;
  });
}

Policy ReadPolicy(TextReader reader) {
  Policy policy;
  ReadSpan(reader.Field("surplusHold"), policy.surplus_hold);
  TextReader hold = reader.Field("releaseHold");
  ReadSpan(hold.Field("onDemand"), policy.release_hold_on_demand);
  ReadSpan(hold.Field("spot"), policy.release_hold_spot);
  hold.RefuseUnknown();
  TextReader weights = reader.Field("victimWeights");
  ReadWeight(weights.Field("priorityGap"), policy.victim_weights.priority_gap);
  ReadWeight(weights.Field("drainSpeed"), policy.victim_weights.drain_speed);
  ReadWeight(weights.Field("interruption"), policy.victim_weights.interruption);
  ReadWeight(weights.Field("reclamation"), policy.victim_weights.reclamation);
  weights.RefuseUnknown();
  ReadInRange(reader.Field("parkAfter"), 1, 1'000'000, policy.park_after);
  ReadInRange(reader.Field("reprobeEvery"), 1, 1'000'000, policy.reprobe_every);
  reader.RefuseUnknown();
  return policy;
}

Dwell ReadDwell(TextReader reader) {
  Dwell dwell;
  for (const auto& [name, field] : {std::pair("create", &Dwell::create), std::pair("configure", &Dwell::configure),
                                    std::pair("drain", &Dwell::drain), std::pair("remove", &Dwell::remove)}) {
    ReadInRange(reader.Field(name), 0, 1'000'000, dwell.*field);
  }
  reader.Field("stopAtIdle").Read(dwell.stop_at_idle);
  reader.RefuseUnknown();
  return dwell;
}

class CaseReader {
 public:
  explicit CaseReader(const CaseLimits& limits) : limits_(limits), machines_(known_, limits.max_machines) {}

  Case Read(TextReader root) {
    Case result;
    root.Field("about").Read(result.about);
    root.Field("rules").Read(result.rules);
    result.start = WallTime(std::chrono::seconds(1'767'225'600));  // 2026-01-01
    root.Field("now").Read(result.start);
    ReadSpan(root.Field("cycleEvery"), result.cycle_every);
    result.policy = ReadPolicy(root.Field("policy"));
    result.dwell = ReadDwell(root.Field("dwell"));
    known_.types = ReadTypes(root.Field("types"));
    ReadSteps(root, result);
    result.cycles = result.steps.back().at;
    ReadInRange(root.Field("cycles"), 1, limits_.max_cycles, result.cycles);
    if (TextReader expect = root.Field("expect"); expect.present()) expect.Read(result.expect.emplace());
    root.RefuseUnknown();
    CheckLength(root, result);
    return result;
  }

 private:
  // All needs before the first machine: machines name the needs they belong to.
  void ReadSteps(TextReader& root, Case& result) {
    std::vector<TextReader> readers = root.Field("steps").List();
    readers.insert(readers.begin(), root);
    for (TextReader& reader : readers) {
      CaseStep& step = result.steps.emplace_back();
      const bool first = result.steps.size() == 1;
      if (!first) {
        TextReader at = reader.Field("at").Require();
        ReadInRange(at, 1, limits_.max_cycles, step.at);
        if (step.at < std::prev(result.steps.end(), 2)->at) at.Fail("steps are written in the order of their cycles");
        ReadSpan(reader.Field("advance"), step.advance);
        reader.Field("forget").Read(step.forget);
      }
      ReadClusters(reader.Field("clusters"), first, step);
    }
    for (size_t i = 0; i < readers.size(); ++i) {
      CaseStep& step = result.steps[i];
      if (i > 0) {
        step.remove = machines_.ReadRemovals(readers[i].Field("remove"));
        step.change = machines_.ReadChanges(readers[i].Field("change"));
      }
      step.add = machines_.ReadMachines(readers[i].Field("machines"));
      if (TextReader holds = readers[i].Field("holds"); holds.present()) step.holds = machines_.ReadHolds(holds);
      if (i > 0) readers[i].RefuseUnknown();
    }
  }

  void ReadClusters(TextReader list, bool first, CaseStep& step) {
    std::set<std::string> seen;
    for (TextReader& reader : list.List()) {
      CaseCluster& cluster = step.clusters.emplace_back();
      TextReader id = reader.Field("id").Require();
      id.Read(cluster.id);
      if (cluster.id.empty()) id.Fail("a cluster needs a name");
      if (!seen.insert(cluster.id).second) id.Fail("this cluster is listed twice; put its needs into one entry");
      if (TextReader field = reader.Field("session"); field.present()) field.Read(cluster.session.emplace(true));
      if (TextReader field = reader.Field("gate"); field.present()) {
        Gate gate = Gate::kOpen;
        field.Read(gate, [](std::string_view text) { return model::ParseName(kGates, "gate", text); });
        cluster.gate_open = gate == Gate::kOpen;
      }
      if (TextReader field = reader.Field("paused"); field.present()) field.Read(cluster.paused.emplace(true));
      if (TextReader field = reader.Field("onHold"); field.present()) field.Read(cluster.on_hold.emplace(true));
      if (const TextReader field = reader.Field("reclaimsAllowed"); field.present()) {
        ReadInRange<int64_t>(field, 0, std::numeric_limits<int64_t>::max(), cluster.reclaims_allowed.emplace(0));
      }
      if (const TextReader field = reader.Field("needs"); field.present() || first) ReadNeeds(field, cluster);
      reader.RefuseUnknown();
      known_.clusters.insert(cluster.id);
    }
  }

  void ReadNeeds(TextReader list, CaseCluster& cluster) {
    std::vector<CaseNeed>& needs = cluster.needs.emplace();
    std::set<std::string> seen;
    for (TextReader& reader : list.List()) {
      CaseNeed& row = needs.emplace_back();
      row.name = fmt::format("{}/{}", cluster.id, needs.size());
      TextReader name = reader.Field("name");
      name.Read(row.name);
      if (row.name.empty()) name.Fail("a name must not be empty; leave it out and the need is called after its place");
      if (!seen.insert(row.name).second) name.Fail("two needs have this name; needs of one roll-up differ in name");
      row.need = model::ReadNeed(reader, cluster.id);
      const auto [known, is_new] = known_.needs.emplace(row.name, row.need);
      if (!is_new && known->second.cluster != cluster.id) {
        name.Fail(fmt::format("cluster {} has a need of this name; names are unique in a file", known->second.cluster));
      }
    }
  }

  void CheckLength(TextReader& root, const Case& result) {
    if (result.cycle_every > kLongestSpan / result.cycles) {
      root.Fail(fmt::format("{} cycles, one every {}, take more than ten years; use fewer or shorter ones",
                            result.cycles, model::FormatDuration(result.cycle_every)));
    }
    Duration advanced{};
    for (const CaseStep& step : result.steps) {
      advanced += step.advance;
      if (advanced > kLongestSpan) return root.Fail("the steps advance time by more than ten years; use less");
    }
  }

  const CaseLimits limits_;
  KnownNames known_;
  MachineSection machines_;
};

// Names of this file end up in tables and terminals, so they hold what can be printed; only prose has lines.
void RefuseControlCharacters(const TextValue& value, const std::string& path, model::TextErrors& errors) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  const auto check = [&](std::string_view text, model::TextPosition position) {
    if (std::ranges::any_of(text, is_control)) errors.Add(position, path, "control characters cannot stand here");
  };
  check(value.scalar, value.position);
  for (size_t i = 0; i < value.items.size(); ++i) {
    RefuseControlCharacters(value.items[i], model::ItemPath(path, i), errors);
  }
  for (const model::TextField& field : value.fields) {
    check(field.key, field.position);
    const bool is_prose = path.empty() && (field.key == "about" || field.key == "expect");
    if (!is_prose) RefuseControlCharacters(field.value, model::FieldPath(path, field.key), errors);
  }
}

}  // namespace

Result<Case> ReadCase(std::string_view text, std::string_view source, const CaseLimits& limits) {
  MUSTER_ASSIGN_OR_RETURN(TextValue document, model::ReadYamlDocument(text, source));
  model::TextErrors errors{std::string(source)};
  RefuseControlCharacters(document, "", errors);
  FillInMachines(document);
  Case result = CaseReader(limits).Read(TextReader(errors, document));
  if (!errors.ok()) return std::unexpected(errors.status());
  return result;
}

Result<std::string> WithExpect(std::string_view text, std::string_view source, std::string_view expect) {
  MUSTER_ASSIGN_OR_RETURN(const TextValue document, model::ReadYamlDocument(text, source));
  size_t end = text.size();
  if (const model::TextField* field = document.Find("expect")) {
    if (field != &document.fields.back() || field->position.column != 1) {
      return std::unexpected(
          model::TextError(source, field->position, "expect", "write it as the last key, at the start of a line"));
    }
    end = 0;
    for (int line = 1; line < field->position.line; ++line) end = text.find('\n', end) + 1;
  }
  std::string result(text.substr(0, end));
  if (!result.empty() && result.back() != '\n') result += '\n';
  result += "expect: |\n";
  for (size_t from = 0; from < expect.size();) {
    const size_t to = expect.find('\n', from);
    const std::string_view line = expect.substr(from, to - from);
    result += line.empty() ? "\n" : fmt::format("  {}\n", line);
    from = to == std::string_view::npos ? expect.size() : to + 1;
  }
  return result;
}

}  // namespace muster::engine
