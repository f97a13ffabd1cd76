#include "cli/cluster_documents.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/penalty.h"
#include "model/quantity.h"
#include "model/text_scalars.h"

namespace muster::cli {
namespace {

using contract::ActualState;

Document Number(int64_t number) { return {number}; }

void AddText(Document& map, std::string_view key, std::string_view text) {
  if (!text.empty()) map.Add(key, text);
}
void AddNumber(Document& map, std::string_view key, int64_t number) {
  if (number != 0) map.Add(key, number);
}
void AddFlag(Document& map, std::string_view key, bool value) {
  if (value) map.Add(key, value);
}
void AddTime(Document& map, std::string_view key, const std::optional<WallTime>& time) {
  if (time && *time != WallTime()) map.Add(key, model::FormatWallTime(*time));
}
void AddTexts(Document& map, std::string_view key, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  Document list = Document::List();
  for (const std::string& text : texts) list.Add(text);
  map.Add(key, list);
}
void AddMap(Document& map, std::string_view key, const std::map<std::string, std::string>& entries) {
  if (entries.empty()) return;
  Document inner = Document::Map();
  for (const auto& [name, value] : entries) inner.Add(name, value);
  map.Add(key, inner);
}
void AddAmounts(Document& map, std::string_view key, const model::Resources& resources) {
  if (resources.empty()) return;
  Document inner = Document::Map();
  for (const auto& [name, milli] : resources.entries()) inner.Add(name, model::FormatQuantityFor(name, milli));
  map.Add(key, inner);
}
template <class T, class Convert>
void AddList(Document& map, std::string_view key, const std::vector<T>& items, Convert convert) {
  if (items.empty()) return;
  Document list = Document::List();
  for (const T& item : items) list.Add(convert(item));
  map.Add(key, list);
}

Document RequirementDocument(const model::Requirement& requirement) {
  Document map = Document::Map();
  map.Add("key", requirement.key).Add("operator", model::OperatorName(requirement.op));
  AddTexts(map, "values", requirement.values);
  return map;
}

Document RequirementsDocument(const std::vector<model::Requirement>& all) {
  Document list = Document::List();
  for (const model::Requirement& requirement : all) list.Add(RequirementDocument(requirement));
  return list;
}

Document PortDocument(const model::Port& port) {
  Document map = Document::Map();
  AddNumber(map, "container", port.container);
  AddNumber(map, "host", port.host);
  map.Add("protocol", model::PortProtocolName(port.protocol));
  AddText(map, "hostIP", port.host_ip);
  return map;
}

Document VolumeDocument(const model::VolumeMount& volume) {
  Document map = Document::Map();
  map.Add("source", volume.source).Add("target", volume.target);
  AddFlag(map, "readOnly", volume.read_only);
  return map;
}

Document TolerationDocument(const model::TolerationRule& rule) {
  Document map = Document::Map();
  AddText(map, "key", rule.key);
  map.Add("operator", rule.any_value ? "Exists" : "Equal");
  AddText(map, "value", rule.value);
  AddText(map, "effect", rule.effect);
  return map;
}

Document SpreadDocument(const model::SpreadRule& rule) {
  Document map = Document::Map();
  map.Add("topologyKey", rule.spread.topology_key)
      .Add("maxSkew", Number(rule.spread.max_skew))
      .Add("whenUnsatisfiable", model::WhenUnsatisfiableName(rule.spread.when));
  AddNumber(map, "minDomains", rule.min_domains);
  if (rule.selector) map.Add("selector", RequirementsDocument(*rule.selector));
  AddTexts(map, "matchLabelKeys", rule.match_label_keys);
  if (!rule.honor_requirements) map.Add("nodeAffinityPolicy", "Ignore");
  if (rule.honor_taints) map.Add("nodeTaintsPolicy", "Honor");
  return map;
}

Document NeighbourDocument(const model::NeighbourRule& rule) {
  Document map = Document::Map();
  map.Add("topologyKey", rule.topology_key);
  if (rule.selector) map.Add("selector", RequirementsDocument(*rule.selector));
  AddNumber(map, "weight", rule.weight);
  return map;
}

Document TemplateDocument(const model::WorkloadTemplate& spec) {
  Document map = Document::Map();
  map.Add("type", model::WorkloadTypeName(spec.type));
  AddText(map, "image", spec.image);
  AddTexts(map, "command", spec.command);
  AddText(map, "compose", spec.compose);
  AddMap(map, "env", spec.env);
  AddMap(map, "secretEnv", spec.secret_env);
  AddList(map, "ports", spec.ports, PortDocument);
  AddList(map, "volumes", spec.volumes, VolumeDocument);
  AddAmounts(map, "resources", spec.resources);
  if (spec.requirements.size() == 1) {
    map.Add("requirements", RequirementsDocument(spec.requirements.front()));
  } else {
    AddList(map, "requirements", spec.requirements, RequirementsDocument);
  }
  AddList(map, "tolerations", spec.tolerations, TolerationDocument);
  AddList(map, "spread", spec.spread, SpreadDocument);
  AddList(map, "colocate", spec.colocate, NeighbourDocument);
  AddList(map, "exclude", spec.exclude, NeighbourDocument);
  AddNumber(map, "priority", spec.priority);
  if (spec.interruption != model::PenaltyBucket::kZero || spec.reclamation != model::PenaltyBucket::kZero) {
    map.Add("penalties", Document::Map()
                             .Add("interruption", model::BucketLabel(spec.interruption))
                             .Add("reclamation", model::BucketLabel(spec.reclamation)));
  }
  map.Add("restart", model::RestartPolicyName(spec.restart)).Add("grace", model::FormatDuration(spec.grace));
  return map;
}

Document UsageDocument(const contract::WorkloadUsage& usage) {
  Document map = Document::Map();
  map.Add("cpu", model::FormatQuantity(usage.cpu_milli))
      .Add("memory", model::FormatQuantityFor("memory", usage.memory_bytes * 1000))
      .Add("diskReadBytes", usage.disk_read_bytes)
      .Add("diskWriteBytes", usage.disk_write_bytes)
      .Add("netRxBytes", usage.net_rx_bytes)
      .Add("netTxBytes", usage.net_tx_bytes);
  AddTime(map, "collectedAt", usage.collected_at);
  AddText(map, "source", usage.source);
  return map;
}

Document TaintDocument(const model::Taint& taint) {
  Document map = Document::Map();
  map.Add("key", taint.key);
  AddText(map, "value", taint.value);
  AddText(map, "effect", taint.effect);
  return map;
}

}  // namespace

Document SpecDocument(const model::WorkloadSpec& spec) {
  Document map = Document::Map();
  map.Add("kind", model::WorkloadKindName(spec.kind)).Add("name", spec.name);
  AddText(map, "tenant", spec.tenant);
  AddMap(map, "labels", spec.labels);
  if (spec.kind != model::WorkloadKind::kWorkload) map.Add("replicas", Number(spec.replicas));
  if (spec.kind == model::WorkloadKind::kSet) {
    map.Add("update", Document::Map()
                          .Add("maxUnavailable", model::FormatMemberCount(spec.max_unavailable))
                          .Add("maxSurge", model::FormatMemberCount(spec.max_surge)));
  }
  if (spec.min_available.amount != 0) map.Add("minAvailable", model::FormatMemberCount(spec.min_available));
  map.Add("template", TemplateDocument(spec.spec));
  return map;
}

Document QuotaSpecDocument(const model::Quota& quota) {
  Document map = Document::Map();
  map.Add("kind", "Quota").Add("tenant", quota.tenant);
  Document limits = Document::Map();
  for (const auto& [name, milli] : quota.limits.entries()) {
    limits.Add(name, model::FormatQuantityFor(name == "disk" ? "storage" : name, milli));
  }
  if (quota.workloads >= 0) limits.Add("workloads", quota.workloads);
  if (!quota.limits.empty() || quota.workloads >= 0) map.Add("limits", limits);
  if (quota.applies_milli_hz > 0) {
    Document rate = Document::Map();
    rate.Add("appliesPerSecond", model::FormatQuantity(quota.applies_milli_hz));
    AddNumber(rate, "burst", quota.burst);
    map.Add("rate", rate);
  }
  return map;
}

Document WorkloadDocument(const contract::WorkloadView& view) {
  Document map = Document::Map();
  map.Add("kind", "Workload").Add("name", view.workload);
  AddText(map, "set", view.set);
  AddText(map, "tenant", view.tenant);
  map.Add("type", model::WorkloadTypeName(view.type))
      .Add("desired", model::DesiredStateName(view.desired))
      .Add("status", model::WorkloadPhaseName(view.phase))
      .Add("actual", contract::ActualStateName(view.actual))
      .Add("node", view.node)
      .Add("revision", view.revision)
      .Add("attempts", Number(view.attempts))
      .Add("maxAttempts", Number(view.max_attempts));
  AddTime(map, "nextRetryAt", view.next_retry_at);
  AddText(map, "reason", view.reason);
  AddText(map, "message", view.message);
  map.Add("retryable", view.retryable);
  if (view.exit_code) map.Add("exitCode", Number(*view.exit_code));
  AddTime(map, "lastTransition", view.last_transition);
  AddMap(map, "labels", view.labels);
  AddMap(map, "metadata", view.metadata);
  if (view.usage) map.Add("usage", UsageDocument(*view.usage));
  map.Add("template", TemplateDocument(view.spec));
  AddTime(map, "createdAt", view.created_at);
  AddTime(map, "updatedAt", view.updated_at);
  if (view.stamp != contract::Stamp()) {
    map.Add("stamp", Document::Map()
                         .Add("epoch", Number(static_cast<int64_t>(view.stamp.epoch)))
                         .Add("sequence", Number(static_cast<int64_t>(view.stamp.sequence))));
  }
  map.Add("storeRevision", Number(static_cast<int64_t>(view.store_revision)));
  return map;
}

Document NodeDocument(const contract::NodeView& view) {
  Document map = Document::Map();
  map.Add("kind", "Node").Add("name", view.node).Add("status", model::NodeStatusName(view.status));
  AddText(map, "statusReason", view.status_reason);
  AddText(map, "statusUpdatedBy", view.status_updated_by);
  AddTime(map, "statusUpdatedAt", view.status_updated_at);
  AddTime(map, "lastHeartbeat", view.last_heartbeat);
  AddText(map, "endpoint", view.endpoint);
  AddText(map, "agentVersion", view.agent_version);
  AddAmounts(map, "total", view.total);
  AddAmounts(map, "reserved", view.reserved);
  AddAmounts(map, "used", view.used);
  AddAmounts(map, "available", view.available);
  AddList(map, "supportedTypes", view.supported_types,
          [](model::WorkloadType type) { return Document(model::WorkloadTypeName(type)); });
  AddMap(map, "labels", view.labels);
  AddList(map, "taints", view.taints, TaintDocument);
  map.Add("cordoned", view.cordoned).Add("draining", view.draining);
  AddText(map, "drainReason", view.drain_reason);
  AddText(map, "drainInstruction", view.drain_instruction);
  AddTime(map, "drainDeadline", view.drain_deadline);
  map.Add("native", view.native)
      .Add("epoch", Number(static_cast<int64_t>(view.epoch)))
      .Add("workloads", Number(view.workloads));
  AddNumber(map, "orphansHeld", view.orphans_held);
  map.Add("storeRevision", Number(static_cast<int64_t>(view.revision)));
  return map;
}

Document SetDocument(const contract::SetView& view) {
  Document status = Document::Map();
  status.Add("revision", view.revision)
      .Add("members", Number(view.members))
      .Add("current", Number(view.current))
      .Add("running", Number(view.running))
      .Add("available", Number(view.available))
      .Add("completed", Number(view.completed))
      .Add("failed", Number(view.failed));
  AddFlag(status, "deleting", view.deleting);
  AddTime(status, "createdAt", view.created_at);
  status.Add("storeRevision", Number(static_cast<int64_t>(view.store_revision)));
  return SpecDocument(view.spec).Add("status", status);
}

Document QuotaDocument(const contract::QuotaView& view) {
  Document used = Document::Map();
  for (const auto& [name, milli] : view.used.entries()) {
    used.Add(name, model::FormatQuantityFor(name == "disk" ? "storage" : name, milli));
  }
  used.Add("workloads", view.workloads);
  return QuotaSpecDocument(view.quota).Add("status", Document::Map().Add("used", used));
}

Document EventDocument(const contract::EventView& view) {
  Document map = Document::Map();
  map.Add("kind", "Event").Add("id", view.id).Add("type", view.type).Add("at", model::FormatWallTime(view.at));
  AddText(map, "workload", view.workload);
  AddText(map, "node", view.node);
  AddText(map, "reason", view.reason);
  AddMap(map, "details", view.details);
  return map;
}

Document DecisionDocument(const contract::Decision& decision) {
  Document map = Document::Map();
  map.Add("kind", "Decision")
      .Add("type", contract::DecisionKindName(decision.kind))
      .Add("at", model::FormatWallTime(decision.at));
  AddText(map, "workload", decision.workload);
  AddText(map, "node", decision.node);
  AddText(map, "reason", decision.reason);
  AddText(map, "message", decision.message);
  return map;
}

Document RefusalDocument(const contract::NodeRefusal& refusal) {
  Document map = Document::Map();
  map.Add("node", refusal.node).Add("fits", refusal.reason.empty());
  AddText(map, "reason", refusal.reason);
  AddText(map, "detail", refusal.detail);
  return map;
}

Document DeletedDocument(contract::ObjectKind kind, const std::string& name) {
  static constexpr std::string_view kNames[] = {"Workload", "Set", "Quota", "Node"};
  return Document::Map().Add("kind", kNames[static_cast<size_t>(kind)]).Add("name", name).Add("deleted", true);
}

}  // namespace muster::cli
