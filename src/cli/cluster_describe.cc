// `muster describe`: everything about one workload, node, set or quota, for people.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/cluster.h"
#include "cli/cluster_documents.h"
#include "cli/cluster_logs.h"
#include "cli/cluster_names.h"
#include "cli/cluster_objects.h"
#include "cli/cluster_refusals.h"
#include "cli/cluster_tables.h"
#include "model/quantity.h"
#include "model/text_scalars.h"

namespace muster::cli {
namespace {

constexpr int32_t kEventsShown = 10;
constexpr int32_t kLinesShown = 10;
constexpr Duration kWaitForLines = 5s;

struct Flags {
  ClusterFlags cluster;
  std::vector<std::string> words;
};

// "Name:  web-0" lines, aligned; what is empty is left out.
class Facts {
 public:
  Facts& Add(std::string name, std::string value) {
    if (!value.empty() && value != "-") rows_.push_back({std::move(name) + ":", std::move(value)});
    return *this;
  }
  void PrintAll() const { Print(FormatTable(rows_)); }

 private:
  Rows rows_;
};

std::string TimeText(std::optional<WallTime> time, WallTime now) {
  if (!time || *time == WallTime()) return "";
  return fmt::format("{} ({})", model::FormatWallTime(*time),
                     *time > now ? "in " + AgeOf(now, *time) : AgeOf(time, now) + " ago");
}

void PrintIndented(std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    Print(fmt::format("  {}\n", text.substr(0, end)));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
}

void PrintSection(std::string_view title, const Rows& rows) {
  if (rows.empty()) return;
  Print(fmt::format("{}:\n", title));
  PrintIndented(FormatTable(rows));
}

void PrintEvents(const std::vector<contract::EventView>& events, WallTime now) {
  if (events.empty()) return;
  Rows rows = {{"AGE", "TYPE", "NODE", "REASON"}};
  for (const contract::EventView& event : events) {
    rows.push_back({AgeOf(event.at, now), event.type, OrDash(event.node), OrDash(event.reason)});
  }
  PrintSection("Events", rows);
}

std::string WantedOf(const model::WorkloadTemplate& spec) {
  if (!spec.image.empty()) return spec.image;
  std::string text;
  for (const std::string& word : spec.command) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string RequirementsText(const model::WorkloadTemplate& spec) {
  std::string text;
  for (const auto& term : spec.requirements) {
    if (!text.empty()) text += " or ";
    for (const model::Requirement& requirement : term) {
      text += fmt::format("{}{}", &requirement == term.data() ? "" : ", ", model::ToString(requirement));
    }
  }
  return text;
}

// --- workloads

void PrintLastLines(ClusterSession& session, const contract::WorkloadView& view) {
  if (view.node.empty()) return;
  std::string lines;
  const Status ended = ReadLogs(session.client(), {.workload = view.workload, .tail = kLinesShown}, kWaitForLines,
                                [&](const contract::LogChunk& chunk) { lines += chunk.data; });
  if (ended.ok() && lines.empty()) return;
  Print("Last lines:\n");
  if (!ended.ok()) return Print(fmt::format("  not available: {}\n", Printable(ended.message())));
  for (std::string_view rest = lines; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    Print(fmt::format("  {}\n", Printable(rest.substr(0, end))));
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
}

std::string UsageText(const std::optional<contract::WorkloadUsage>& usage) {
  if (!usage) return "";
  return fmt::format("cpu={} memory={}", model::FormatQuantity(usage->cpu_milli),
                     model::FormatQuantityFor("memory", usage->memory_bytes * 1000));
}

void PrintFacts(const contract::WorkloadView& view, WallTime now) {
  const std::string attempts = view.max_attempts == 0 ? "" : fmt::format("{} of {}", view.attempts, view.max_attempts);
  Facts()
      .Add("Name", view.workload)
      .Add("Set", view.set)
      .Add("Tenant", view.tenant)
      .Add("Type", std::string(model::WorkloadTypeName(view.type)))
      .Add("Runs", WantedOf(view.spec))
      .Add("Status", fmt::format("{} (wanted {}, seen {})", model::WorkloadPhaseName(view.phase),
                                 model::DesiredStateName(view.desired), contract::ActualStateName(view.actual)))
      .Add("Reason", view.reason)
      .Add("Message", view.message)
      .Add("Exit code", view.exit_code ? fmt::to_string(*view.exit_code) : "")
      .Add("Node", view.node)
      .Add("Revision", view.revision)
      .Add("Attempts", attempts)
      .Add("Next attempt", TimeText(view.next_retry_at, now))
      .Add("Requests", view.spec.resources.empty() ? "" : view.spec.resources.ToString())
      .Add("Uses", UsageText(view.usage))
      .Add("Requirements", RequirementsText(view.spec))
      .Add("Priority", view.spec.priority == 0 ? "" : fmt::to_string(view.spec.priority))
      .Add("Labels", LabelsText(view.labels))
      .Add("Created", TimeText(view.created_at, now))
      .Add("Changed", TimeText(view.last_transition, now))
      .PrintAll();
}

Status DescribeWorkload(ClusterSession& session, const std::string& name) {
  const auto explained = session.Ask<contract::Explanation>(contract::ExplainWorkload{.workload = name});
  if (!explained) return NamedNotFound(explained.error(), "workload", name);
  const WallTime now = session.now().wall;
  PrintFacts(explained->workload, now);
  if (!explained->story.empty()) {
    Print("Story:\n");
    for (const std::string& sentence : explained->story) Print(fmt::format("  {}\n", Printable(sentence)));
  }
  if (explained->workload.node.empty()) PrintSection("Nodes", RefusalsByClass(explained->nodes));
  PrintEvents(explained->events, now);
  PrintLastLines(session, explained->workload);
  return {};
}

// --- nodes

Rows AmountRows(const contract::NodeView& view) {
  Rows rows = {{"RESOURCE", "TOTAL", "RESERVED", "USED", "AVAILABLE"}};
  for (const auto& [name, total] : view.total.entries()) {
    const std::string written = name == "disk" ? "storage" : name;  // an amount of bytes too
    const auto text = [&](const model::Resources& amounts) {
      return model::FormatQuantityFor(written, amounts.Get(name));
    };
    rows.push_back(
        {name, model::FormatQuantityFor(written, total), text(view.reserved), text(view.used), text(view.available)});
  }
  return rows;
}

void PrintFacts(const contract::NodeView& view, WallTime now) {
  std::string types;
  for (const model::WorkloadType type : view.supported_types) {
    types += fmt::format("{}{}", types.empty() ? "" : ", ", model::WorkloadTypeName(type));
  }
  std::string taints;
  for (const model::Taint& taint : view.taints) {
    taints += fmt::format("{}{}={}:{}", taints.empty() ? "" : ", ", taint.key, taint.value, taint.effect);
  }
  const std::string by = view.status_updated_by.empty() ? "" : " by " + view.status_updated_by;
  Facts()
      .Add("Name", view.node)
      .Add("Status", StatusOf(view))
      .Add("Reason", view.status_reason.empty() ? "" : view.status_reason + by)
      .Add("Since", TimeText(view.status_updated_at, now))
      .Add("Heartbeat", TimeText(view.last_heartbeat, now))
      .Add("Endpoint", view.endpoint)
      .Add("Agent", fmt::format("{}{}", view.agent_version.empty() ? "unknown version" : view.agent_version,
                                view.native ? fmt::format(", epoch {}", view.epoch) : ", foreign"))
      .Add("Runs", types)
      .Add("Labels", LabelsText(view.labels))
      .Add("Taints", taints)
      .Add("Drain", view.draining ? OrDash(view.drain_reason) : "")
      .Add("Drain for", view.drain_instruction)
      .Add("Drain until", TimeText(view.drain_deadline, now))
      .Add("Orphans", view.orphans_held == 0
                          ? ""
                          : fmt::format("{} workloads that the store does not hold are left alone; muster accept node "
                                        "{} deletes them",
                                        view.orphans_held, view.node))
      .PrintAll();
}

Status DescribeNode(ClusterSession& session, const std::string& name) {
  const auto view = session.Ask<contract::NodeView>(contract::GetNode{.node = name});
  if (!view) return NamedNotFound(view.error(), "node", name);
  const auto workloads = ListAll(session, contract::ListWorkloads{.node = name});
  if (!workloads) return workloads.error();
  const auto events = session.Ask<contract::EventsListed>(contract::ListEvents{.node = name, .limit = kEventsShown});
  if (!events) return events.error();
  const WallTime now = session.now().wall;
  PrintFacts(*view, now);
  PrintSection("Resources", AmountRows(*view));
  Rows rows = {{"NAME", "SET", "STATUS", "REQUESTS"}};
  for (const contract::WorkloadView& workload : workloads->workloads) {
    rows.push_back({workload.workload, OrDash(workload.set), std::string(model::WorkloadPhaseName(workload.phase)),
                    workload.spec.resources.ToString()});
  }
  if (rows.size() > 1) PrintSection("Workloads", rows);
  PrintEvents(events->events, now);
  return {};
}

// --- sets and quotas

Status DescribeSet(ClusterSession& session, const std::string& name) {
  const auto view = FindSet(session, name);
  if (!view) return view.error();
  const auto members = ListAll(session, contract::ListWorkloads{.set = name});
  if (!members) return members.error();
  const WallTime now = session.now().wall;
  const model::WorkloadSpec& spec = view->spec;
  const bool is_job = spec.kind == model::WorkloadKind::kJob;
  Facts()
      .Add("Name", spec.name)
      .Add("Kind", std::string(model::WorkloadKindName(spec.kind)))
      .Add("Tenant", spec.tenant)
      .Add("Runs", WantedOf(spec.spec))
      .Add("Members", is_job ? fmt::format("{} of {} completed, {} running, {} failed", view->completed, spec.replicas,
                                           view->running, view->failed)
                             : fmt::format("{} of {} available, {} with this revision, {} failed", view->available,
                                           spec.replicas, view->current, view->failed))
      .Add("Revision", view->revision)
      .Add("Update",
           is_job ? ""
                  : fmt::format("at most {} unavailable, {} surge", model::FormatMemberCount(spec.max_unavailable),
                                model::FormatMemberCount(spec.max_surge)))
      .Add("Min available", spec.min_available.amount == 0 ? "" : model::FormatMemberCount(spec.min_available))
      .Add("Requests", spec.spec.resources.empty() ? "" : spec.spec.resources.ToString() + " each")
      .Add("Requirements", RequirementsText(spec.spec))
      .Add("Labels", LabelsText(spec.labels))
      .Add("Created", TimeText(view->created_at, now))
      .Add("Deleting", view->deleting ? "yes" : "")
      .PrintAll();
  Rows rows = {HeadOf(ClusterKind::kWorkload, true)};
  for (const contract::WorkloadView& member : members->workloads) {
    rows.push_back(RowOf(member, {.now = now, .wide = true}));
  }
  if (rows.size() > 1) PrintSection("Members", rows);
  return {};
}

Status DescribeQuota(ClusterSession& session, const std::string& name) {
  const auto object = GetObject(session, ClusterKind::kQuota, name);
  if (!object) return object.error();
  Print(DocumentOf(*object).ToYaml());
  return {};
}

Result<int> Describe(const ClusterAccess& access, const Flags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<ClusterTarget> targets, ParseNamedTargets(flags.words));
  MUSTER_ASSIGN_OR_RETURN(ClusterSession session, ClusterSession::Open(access, flags.cluster));
  bool first = true;
  return ForEachObject(targets, [&](const ClusterTarget& target) -> Status {
    if (!std::exchange(first, false)) Print("\n");
    switch (target.kind) {
      case ClusterKind::kWorkload: return DescribeWorkload(session, target.name);
      case ClusterKind::kNode: return DescribeNode(session, target.name);
      case ClusterKind::kSet: return DescribeSet(session, target.name);
      case ClusterKind::kQuota: return DescribeQuota(session, target.name);
      case ClusterKind::kEvent: break;
    }
    return {Code::kInvalidArgument, "events are shown by muster events"};
  });
}

}  // namespace

void AddDescribe(CommandLine& app, const ClusterAccess& access) {
  const auto flags = std::make_shared<Flags>();
  Verb verb =
      app.AddVerb("describe", "Show everything about a workload, node, set or quota: its story, events, last lines");
  verb.Arguments("TYPE/NAME", flags->words, "TYPE/NAME ..., or TYPE NAME ...").NamesOf("targets");
  AddSchedulerFlags(verb, flags->cluster);
  verb.Example("muster describe workload/web-0").Example("muster describe node n1").Run([access, flags] {
    return Describe(access, *flags);
  });
}

}  // namespace muster::cli
