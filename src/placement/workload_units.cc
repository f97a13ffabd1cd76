#include "placement/workload_units.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "model/compose.h"

namespace muster::placement {
namespace {

constexpr std::string_view kGpu = "gpu";
constexpr std::string_view kGpuMilli = "gpu-milli";

Selector SelectorFor(const std::string& set, const std::optional<std::vector<model::Requirement>>& selector) {
  if (selector) return {.given = true, .all = *selector};
  return {.given = true, .all = {{std::string(kSetLabel), model::Operator::kIn, {set}}}};
}

SpreadConstraint SpreadFor(const std::string& set, const model::SpreadRule& rule) {
  const auto inclusion = [](bool honor) { return honor ? NodeInclusion::kHonor : NodeInclusion::kIgnore; };
  return {.topology_key = rule.spread.topology_key,
          .max_skew = rule.spread.max_skew,
          .when = rule.spread.when,
          .selector = SelectorFor(set, rule.selector),
          .match_label_keys = rule.match_label_keys,
          .min_domains = std::max(1, rule.min_domains),
          .node_affinity = inclusion(rule.honor_requirements),
          .node_taints = inclusion(rule.honor_taints)};
}

void AddNeighbours(const std::string& set, const std::vector<model::NeighbourRule>& rules,
                   std::vector<UnitTerm>& required, std::vector<PreferredUnitTerm>& preferred) {
  for (const model::NeighbourRule& rule : rules) {
    UnitTerm term{.topology_key = rule.topology_key, .selector = SelectorFor(set, rule.selector)};
    if (rule.weight == 0) {
      required.push_back(std::move(term));
    } else {
      preferred.push_back({rule.weight, std::move(term)});
    }
  }
}

Toleration TolerationFor(const model::TolerationRule& rule) {
  Toleration toleration{.key = rule.key, .exists = rule.any_value, .value = rule.value};
  if (const auto effect = ParseTaintEffect(rule.effect)) {
    toleration.every_effect = false;
    toleration.effect = *effect;
  }
  return toleration;
}

void AddResources(const model::Resources& resources, Kind& kind) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  for (const auto& [name, milli] : resources.entries()) {
    const auto amount = static_cast<int32_t>(std::min(milli / 1000, kMost));
    if (name == kGpu) {
      kind.devices.whole = amount;
    } else if (name == kGpuMilli) {
      kind.devices.milli = amount;
    } else {
      kind.request.Set(name, milli);
    }
  }
}

}  // namespace

Kind KindOf(const std::string& set, const std::string& tenant, const std::map<std::string, std::string>& named,
            const model::WorkloadTemplate& body) {
  Kind kind;
  if (!tenant.empty()) kind.name_space = tenant;
  kind.tenant = tenant;
  kind.priority = body.priority;
  kind.type = body.type;
  model::TextMap::Map labels = named;
  labels.emplace(kSetLabel, set);
  kind.labels = std::move(labels);
  AddResources(body.resources, kind);
  std::vector<model::Port> ports = body.ports;
  if (body.type == model::WorkloadType::kCompose) {
    std::ranges::move(model::PublishedPorts(body.compose, model::WholeEnv(body)), std::back_inserter(ports));
  }
  for (const model::Port& port : ports) {
    if (port.host == 0) continue;
    HostPort taken{
        .protocol = std::string(model::PortProtocolName(port.protocol)), .ip = port.host_ip, .port = port.host};
    if (std::ranges::find(kind.ports, taken) == kind.ports.end()) kind.ports.push_back(std::move(taken));
  }
  if (body.requirements.size() == 1) kind.requirements = body.requirements.front();
  if (body.requirements.size() > 1) {
    for (const auto& term : body.requirements) kind.node_terms.push_back({.labels = term});
  }
  for (const model::TolerationRule& rule : body.tolerations) kind.tolerations.push_back(TolerationFor(rule));
  for (const model::SpreadRule& rule : body.spread) kind.spread.push_back(SpreadFor(set, rule));
  AddNeighbours(set, body.colocate, kind.colocate, kind.preferred_colocate);
  AddNeighbours(set, body.exclude, kind.exclude, kind.preferred_exclude);
  return kind;
}

Kind KindOf(const model::WorkloadSpec& spec) { return KindOf(spec.name, spec.tenant, spec.labels, spec.spec); }

void AppendUnits(const model::WorkloadSpec& spec, int64_t order, KindTable& kinds, std::vector<Unit>& units) {
  if (spec.replicas == 0) return;
  const KindIndex kind = kinds.Add(KindOf(spec));
  for (int32_t i = 0; i < spec.replicas; ++i) {
    units.push_back({.id = model::MemberId(spec, i), .kind = kind, .order = order});
  }
}

}  // namespace muster::placement
