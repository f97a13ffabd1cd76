#include "cli/cluster_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/quantity.h"
#include "model/text_scalars.h"

namespace muster::cli {
namespace {

std::string NameIn(ClusterKind kind, const std::string& name, const RowStyle& style) {
  return style.typed ? fmt::format("{}/{}", ClusterKindName(kind), name) : name;
}

// What a workload waits for, or why it failed: the sentence, or else the stable name.
std::string WhyOf(const contract::WorkloadView& view) { return view.message.empty() ? view.reason : view.message; }

void AddCells(Row& row, std::initializer_list<std::string> cells) { row.insert(row.end(), cells); }

std::string LimitText(const contract::QuotaView& view, std::string_view name) {
  const int64_t limit = view.quota.limits.Get(name);
  return limit == 0 ? "-" : PartOf(name, view.used.Get(name), limit);
}

std::string RateText(const model::Quota& quota) {
  if (quota.applies_milli_hz == 0) return "-";
  const std::string rate = fmt::format("{}/s", model::FormatQuantity(quota.applies_milli_hz));
  return quota.burst == 0 ? rate : fmt::format("{} burst {}", rate, quota.burst);
}

// "workload/web-0" or "node/n1": what an event is about.
std::string ObjectOf(const std::string& workload, const std::string& node) {
  if (!workload.empty()) return fmt::format("workload/{}", workload);
  return node.empty() ? "-" : fmt::format("node/{}", node);
}

}  // namespace

Row HeadOf(ClusterKind kind, bool wide) {
  Row head;
  switch (kind) {
    case ClusterKind::kWorkload:
      head = {"NAME", "SET", "STATUS", "NODE", "ATTEMPTS", "AGE"};
      if (wide) AddCells(head, {"TYPE", "TENANT", "REVISION", "REASON"});
      return head;
    case ClusterKind::kNode:
      head = {"NAME", "STATUS", "WORKLOADS", "CPU", "MEMORY", "HEARTBEAT"};
      if (wide) AddCells(head, {"DISK", "GPU", "TYPES", "ENDPOINT", "VERSION", "LABELS", "REASON"});
      return head;
    case ClusterKind::kSet:
      head = {"NAME", "KIND", "READY", "UP-TO-DATE", "RUNNING", "FAILED", "AGE"};
      if (wide) AddCells(head, {"TENANT", "REVISION", "MIN-AVAILABLE", "TYPE", "RUNS"});
      return head;
    case ClusterKind::kQuota: return {"TENANT", "CPU", "MEMORY", "DISK", "GPU", "WORKLOADS", "RATE"};
    case ClusterKind::kEvent:
      head = {"AGE", "TYPE", "OBJECT", "NODE", "REASON"};
      if (wide) AddCells(head, {"AT", "DETAILS"});
      return head;
  }
  return head;
}

Row RowOf(const contract::WorkloadView& view, const RowStyle& style) {
  Row row = {NameIn(ClusterKind::kWorkload, view.workload, style),
             OrDash(view.set),
             std::string(model::WorkloadPhaseName(view.phase)),
             OrDash(view.node),
             fmt::to_string(view.attempts),
             AgeOf(view.created_at, style.now)};
  if (style.wide) {
    AddCells(row, {std::string(model::WorkloadTypeName(view.type)), OrDash(view.tenant), OrDash(view.revision),
                   OrDash(WhyOf(view))});
  }
  return row;
}

Row RowOf(const contract::NodeView& view, const RowStyle& style) {
  const auto part = [&](std::string_view name) { return PartOf(name, view.reserved.Get(name), view.total.Get(name)); };
  Row row = {NameIn(ClusterKind::kNode, view.node, style),
             StatusOf(view),
             fmt::to_string(view.workloads),
             part("cpu"),
             part("memory"),
             AgeOf(view.last_heartbeat, style.now)};
  if (style.wide) {
    std::string types;
    for (const model::WorkloadType type : view.supported_types) {
      types += fmt::format("{}{}", types.empty() ? "" : ",", model::WorkloadTypeName(type));
    }
    AddCells(row, {part("disk"), part("gpu"), OrDash(types), OrDash(view.endpoint), OrDash(view.agent_version),
                   LabelsText(view.labels), OrDash(view.status_reason)});
  }
  return row;
}

Row RowOf(const contract::SetView& view, const RowStyle& style) {
  const model::WorkloadSpec& spec = view.spec;
  const bool is_job = spec.kind == model::WorkloadKind::kJob;
  Row row = {NameIn(ClusterKind::kSet, spec.name, style),
             view.deleting ? fmt::format("{},Deleting", model::WorkloadKindName(spec.kind))
                           : std::string(model::WorkloadKindName(spec.kind)),
             fmt::format("{}/{}", is_job ? view.completed : view.available, spec.replicas),
             fmt::to_string(view.current),
             fmt::to_string(view.running),
             fmt::to_string(view.failed),
             AgeOf(view.created_at, style.now)};
  if (style.wide) {
    const std::string runs = !spec.spec.image.empty()     ? spec.spec.image
                             : !spec.spec.command.empty() ? spec.spec.command.front()
                                                          : "";
    AddCells(row, {OrDash(spec.tenant), OrDash(view.revision), model::FormatMemberCount(spec.min_available),
                   std::string(model::WorkloadTypeName(spec.spec.type)), OrDash(runs)});
  }
  return row;
}

Row RowOf(const contract::QuotaView& view, const RowStyle& style) {
  return {NameIn(ClusterKind::kQuota, view.quota.tenant, style),
          LimitText(view, "cpu"),
          LimitText(view, "memory"),
          LimitText(view, "disk"),
          LimitText(view, "gpu"),
          view.quota.workloads < 0 ? fmt::to_string(view.workloads)
                                   : fmt::format("{}/{}", view.workloads, view.quota.workloads),
          RateText(view.quota)};
}

Row RowOf(const contract::EventView& view, const RowStyle& style) {
  Row row = {AgeOf(view.at, style.now), view.type, ObjectOf(view.workload, view.node), OrDash(view.node),
             OrDash(view.reason)};
  if (style.wide) AddCells(row, {model::FormatWallTime(view.at), LabelsText(view.details)});
  return row;
}

Row RowOf(const contract::Decision& decision, const RowStyle& style) {
  const std::string why = decision.message.empty() ? decision.reason : decision.message;
  Row row = {AgeOf(decision.at, style.now), std::string(contract::DecisionKindName(decision.kind)),
             ObjectOf(decision.workload, decision.node), OrDash(decision.node), OrDash(why)};
  if (style.wide) AddCells(row, {model::FormatWallTime(decision.at), OrDash(decision.reason)});
  return row;
}

Row DeletedRow(ClusterKind kind, const std::string& name, const RowStyle& style) {
  Row row(HeadOf(kind, false).size(), "-");
  row[0] = NameIn(kind, name, style);
  // The column of the state: sets have their kind there.
  row[kind == ClusterKind::kWorkload ? 2 : 1] = "Deleted";
  return row;
}

std::string AgeOf(std::optional<WallTime> then, WallTime now) {
  if (!then || *then == WallTime() || *then > now) return "-";
  const int64_t seconds = std::chrono::floor<std::chrono::seconds>(now - *then).count();
  if (seconds < 120) return fmt::format("{}s", seconds);
  if (seconds < 2 * 3600) return fmt::format("{}m", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{}h", seconds / 3600);
  return fmt::format("{}d", seconds / 86400);
}

std::string StatusOf(const contract::NodeView& view) {
  std::string status(model::NodeStatusName(view.status));
  if (view.draining) return status + ",Draining";
  return view.cordoned ? status + ",Cordoned" : status;
}

std::string PartOf(std::string_view dimension, int64_t part_milli, int64_t whole_milli) {
  if (part_milli == 0 && whole_milli == 0) return "-";
  // Disk is an amount of bytes, as storage is.
  const std::string_view written = dimension == "disk" ? "storage" : dimension;
  return fmt::format("{}/{}", model::FormatQuantityFor(written, part_milli),
                     model::FormatQuantityFor(written, whole_milli));
}

std::string LabelsText(const std::map<std::string, std::string>& labels) {
  std::string text;
  for (const auto& [key, value] : labels) text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value);
  return OrDash(text);
}

void TableStream::Widen(const Row& row) {
  widths_.resize(std::max(widths_.size(), row.size()), 0);
  for (size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], Printable(row[i]).size());
}

std::string TableStream::Add(const Row& row) {
  Widen(row);
  std::string text;
  for (size_t i = 0; i < row.size(); ++i) {
    const std::string cell = Printable(row[i]);
    text += i + 1 == row.size() ? cell : fmt::format("{:<{}}  ", cell, widths_[i]);
  }
  return text + "\n";
}

std::string TableStream::AddAll(const Rows& rows) {
  for (const Row& row : rows) Widen(row);
  std::string text;
  for (const Row& row : rows) text += Add(row);
  return text;
}

}  // namespace muster::cli
