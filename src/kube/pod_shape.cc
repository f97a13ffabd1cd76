#include "kube/pod_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kube/amounts.h"
#include "model/names.h"
#include "planner/catalogue.h"

namespace muster::kube {
namespace {

using model::Requirement;

int32_t ReadInt32(ItemView view, int32_t otherwise) {
  const int64_t number = view.Integer(otherwise);
  if (number >= std::numeric_limits<int32_t>::min() && number <= std::numeric_limits<int32_t>::max()) {
    return static_cast<int32_t>(number);
  }
  view.Fail(fmt::format("{} is out of range", number));
  return otherwise;
}

std::vector<std::string> ReadTexts(ItemView view) {
  std::vector<std::string> texts;
  view.ForEach([&](ItemView item) { texts.emplace_back(item.Text()); });
  return texts;
}

Requirement ReadRequirement(ItemView view) {
  Requirement requirement{.key = std::string(view["key"].Text()), .values = ReadTexts(view["values"])};
  if (const auto op = model::ParseOperator(view["operator"].Text()); op && *op != model::Operator::kSame) {
    requirement.op = *op;
  } else {
    view.Fail(fmt::format("unknown operator {}", model::Quoted(view["operator"].Text())));
    return requirement;
  }
  if (const Status status = model::Validate(requirement); !status.ok()) view.Fail(status.message());
  return requirement;
}

placement::NodeTerm ReadNodeTerm(ItemView view) {
  placement::NodeTerm term;
  view["matchExpressions"].ForEach([&](ItemView item) { term.labels.push_back(ReadRequirement(item)); });
  view["matchFields"].ForEach([&](ItemView item) { term.fields.push_back(ReadRequirement(item)); });
  return term;
}

placement::UnitTerm ReadUnitTerm(ItemView view) {
  placement::UnitTerm term;
  term.topology_key = view["topologyKey"].Text();
  if (term.topology_key.empty()) view.Fail("topologyKey: missing");
  term.selector = ReadSelector(view["labelSelector"]);
  term.namespaces = ReadTexts(view["namespaces"]);
  term.namespace_selector = ReadSelector(view["namespaceSelector"]);
  term.match_label_keys = ReadTexts(view["matchLabelKeys"]);
  term.mismatch_label_keys = ReadTexts(view["mismatchLabelKeys"]);
  return term;
}

void ReadUnitTerms(ItemView view, std::vector<placement::UnitTerm>& required,
                   std::vector<placement::PreferredUnitTerm>& preferred) {
  view["requiredDuringSchedulingIgnoredDuringExecution"].ForEach(
      [&](ItemView item) { required.push_back(ReadUnitTerm(item)); });
  view["preferredDuringSchedulingIgnoredDuringExecution"].ForEach([&](ItemView item) {
    preferred.push_back({ReadInt32(item["weight"], 1), ReadUnitTerm(item["podAffinityTerm"])});
  });
}

void ReadAffinity(ItemView affinity, placement::Kind& kind) {
  const ItemView node = affinity["nodeAffinity"];
  kind.node_terms = ReadNodeTerms(node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]);
  node["preferredDuringSchedulingIgnoredDuringExecution"].ForEach([&](ItemView item) {
    kind.preferred_nodes.push_back({ReadInt32(item["weight"], 1), ReadNodeTerm(item["preference"])});
  });
  ReadUnitTerms(affinity["podAffinity"], kind.colocate, kind.preferred_colocate);
  ReadUnitTerms(affinity["podAntiAffinity"], kind.exclude, kind.preferred_exclude);
}

placement::Toleration ReadToleration(ItemView view) {
  placement::Toleration toleration;
  toleration.key = view["key"].Text();
  toleration.value = view["value"].Text();
  const std::string_view op = view["operator"].Text();
  toleration.exists = op == "Exists";
  if (!op.empty() && op != "Exists" && op != "Equal") view.Fail(fmt::format("unknown operator {}", model::Quoted(op)));
  if (const std::string_view effect = view["effect"].Text(); !effect.empty()) {
    toleration.every_effect = false;
    if (const auto parsed = placement::ParseTaintEffect(effect)) {
      toleration.effect = *parsed;
    } else {
      view.Fail(parsed.error().message());
    }
  }
  return toleration;
}

placement::NodeInclusion ReadInclusion(ItemView view, placement::NodeInclusion otherwise) {
  if (!view.present()) return otherwise;
  if (const auto parsed = placement::ParseNodeInclusion(view.Text())) return *parsed;
  view.Fail(fmt::format("unknown policy {}", model::Quoted(view.Text())));
  return otherwise;
}

placement::SpreadConstraint ReadSpread(ItemView view) {
  placement::SpreadConstraint spread;
  spread.topology_key = view["topologyKey"].Text();
  if (spread.topology_key.empty()) view.Fail("topologyKey: missing");
  spread.max_skew = ReadInt32(view["maxSkew"], 1);
  if (const auto when = model::ParseWhenUnsatisfiable(view["whenUnsatisfiable"].Text())) {
    spread.when = *when;
  } else {
    view.Fail(when.error().message());
  }
  spread.selector = ReadSelector(view["labelSelector"]);
  spread.match_label_keys = ReadTexts(view["matchLabelKeys"]);
  spread.min_domains = std::max(1, ReadInt32(view["minDomains"], 1));
  spread.node_affinity = ReadInclusion(view["nodeAffinityPolicy"], placement::NodeInclusion::kHonor);
  spread.node_taints = ReadInclusion(view["nodeTaintsPolicy"], placement::NodeInclusion::kIgnore);
  return spread;
}

void ReadPorts(ItemView container, std::vector<placement::HostPort>& ports) {
  container["ports"].ForEach([&](ItemView view) {
    const int32_t port = ReadInt32(view["hostPort"], 0);
    if (port == 0) return;
    if (port < 0 || port > 65535) view.Fail(fmt::format("hostPort: {} is not from 1 to 65535", port));
    const std::string_view protocol = view["protocol"].Text();
    ports.push_back({.protocol = std::string(protocol.empty() ? "TCP" : protocol),
                     .ip = std::string(view["hostIP"].Text()),
                     .port = port});
  });
}

void ReadVolumes(ItemView volumes, std::string_view pod, std::vector<std::string>& claims) {
  volumes.ForEach([&](ItemView volume) {
    if (const ItemView claim = volume["persistentVolumeClaim"]; claim.present()) {
      claims.emplace_back(claim["claimName"].Text());
    } else if (volume["ephemeral"].present()) {
      claims.push_back(fmt::format("{}-{}", pod, volume["name"].Text()));
    }
  });
  std::ranges::sort(claims);
}

void ListUnknown(ItemView spec, std::vector<std::string_view>& unknown) {
  if (spec["resourceClaims"].present()) unknown.push_back("resourceClaims (devices are not counted)");
  if (spec["schedulingGates"].present()) unknown.push_back("schedulingGates (planned as if open)");
  const std::string_view scheduler = spec["schedulerName"].Text();
  if (!scheduler.empty() && scheduler != "default-scheduler") {
    unknown.push_back("schedulerName (planned as by the default scheduler)");
  }
}

}  // namespace

model::TextMap ReadTextMap(ItemView view) {
  model::TextMap::Map map;
  view.ForEachField([&](std::string_view key, ItemView value) { map.emplace(key, value.Text()); });
  return map;
}

placement::Selector ReadSelector(ItemView view) {
  placement::Selector selector;
  if (!view.present()) return selector;
  selector.given = true;
  view["matchLabels"].ForEachField([&](std::string_view key, ItemView value) {
    selector.all.push_back({std::string(key), model::Operator::kIn, {std::string(value.Text())}});
  });
  view["matchExpressions"].ForEach([&](ItemView item) { selector.all.push_back(ReadRequirement(item)); });
  std::ranges::sort(selector.all);
  return selector;
}

std::vector<placement::NodeTerm> ReadNodeTerms(ItemView terms) {
  std::vector<placement::NodeTerm> read;
  terms.ForEach([&](ItemView item) { read.push_back(ReadNodeTerm(item)); });
  return read;
}

placement::Taint ReadTaint(ItemView view) {
  placement::Taint taint{.key = std::string(view["key"].Text()), .value = std::string(view["value"].Text())};
  if (const auto effect = placement::ParseTaintEffect(view["effect"].Text())) {
    taint.effect = *effect;
  } else {
    view.Fail(effect.error().message());
  }
  return taint;
}

PodShape ReadPodShape(std::string_view name_space, ItemView metadata, ItemView spec, ItemView status) {
  PodShape shape;
  placement::Kind& kind = shape.kind;
  kind.name_space = name_space;
  kind.labels = ReadTextMap(metadata["labels"]);
  Amounts requests = PodRequests(spec, status);
  shape.without_requests = requests.Get("cpu") == 0 && requests.Get("memory") == 0;
  requests.Set(planner::kPodsResource, 1000);
  kind.request = requests.ToResources();
  if (const ItemView priority = spec["priority"]; priority.present()) {
    kind.priority = ReadInt32(priority, 0);
  } else {
    shape.priority_class = spec["priorityClassName"].Text();
  }
  kind.may_preempt = spec["preemptionPolicy"].Text() != "Never";
  spec["containers"].ForEach([&](ItemView container) { ReadPorts(container, kind.ports); });
  // Sidecars keep their ports beside the containers; other init containers are gone before those start.
  spec["initContainers"].ForEach([&](ItemView container) {
    if (container["restartPolicy"].Text() == "Always") ReadPorts(container, kind.ports);
  });
  spec["nodeSelector"].ForEachField([&](std::string_view key, ItemView value) {
    kind.requirements.push_back({std::string(key), model::Operator::kIn, {std::string(value.Text())}});
  });
  std::ranges::sort(kind.requirements);
  ReadAffinity(spec["affinity"], kind);
  spec["tolerations"].ForEach([&](ItemView item) { kind.tolerations.push_back(ReadToleration(item)); });
  spec["topologySpreadConstraints"].ForEach([&](ItemView item) { kind.spread.push_back(ReadSpread(item)); });
  ReadVolumes(spec["volumes"], metadata["name"].Text(), shape.claims);
  ListUnknown(spec, shape.unknown);
  return shape;
}

}  // namespace muster::kube
