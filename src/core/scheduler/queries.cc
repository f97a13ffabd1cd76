#include "core/scheduler/queries.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "model/requirement.h"
#include "placement/reason.h"

namespace muster::scheduler {
namespace {

constexpr int32_t kMostListed = 10000;
constexpr int32_t kEventsListed = 100;

int32_t LimitOf(const contract::Page& page) { return page.limit > 0 ? std::min(page.limit, kMostListed) : kMostListed; }

bool MatchesAll(const std::vector<model::Requirement>& selector, const std::map<std::string, std::string>& labels) {
  return std::ranges::all_of(selector, [&](const model::Requirement& requirement) {
    const auto label = labels.find(requirement.key);
    return model::Matches(requirement,
                          label == labels.end() ? std::nullopt : std::optional<std::string_view>(label->second));
  });
}

bool NameMatches(std::string_view wanted, std::string_view name) {
  return wanted.empty() || std::ranges::equal(wanted, name, [](unsigned char a, unsigned char b) {
           return std::tolower(a) == std::tolower(b);
         });
}

// Adds what `take` accepts, in the order of ids, until the page is full; the token of the next page.
template <class Range, class Take>
std::string Fill(const Range& ids, const contract::Page& page, Take&& take) {
  int32_t left = LimitOf(page);
  auto id = page.token.empty() ? ids.begin() : ids.upper_bound(page.token);
  std::string last = page.token;
  for (; id != ids.end(); ++id) {
    if (left == 0) return last;
    if constexpr (requires { id->first; }) {
      last = id->first;
    } else {
      last = *id;
    }
    if (take(last)) --left;
  }
  return {};
}

// Every answer to a question has the field.
void SetStale(contract::ClusterReply& reply, const std::optional<WallTime>& since) {
  std::visit(
      [&](auto& one) {
        if constexpr (requires { one.stale_since; }) one.stale_since = since;
      },
      reply);
}

}  // namespace

Queries::Queries(const Standing& standing, const StoreCopy& copy, Rooms& rooms, const QuotaUse& quota,
                 const Views& views)
    : standing_(standing), copy_(copy), rooms_(rooms), quota_(quota), views_(views) {}

std::optional<Result<contract::ClusterReply>> Queries::Answer(const contract::ClusterRequest& request,
                                                              const std::string& tenant, Now now) const {
  if (!tenant.empty() && copy_.state().listed) {
    const auto narrowed = Narrowed(request, tenant);
    if (!narrowed) return std::unexpected(narrowed.error());
    auto reply = Answer(*narrowed, "", now);
    if (!reply || !*reply) return reply;
    if (auto* listed = std::get_if<contract::SetsListed>(&**reply)) {
      std::erase_if(listed->sets, [&](const contract::SetView& set) { return set.spec.tenant != tenant; });
    }
    if (auto* listed = std::get_if<contract::EventsListed>(&**reply)) {
      std::erase_if(listed->events, [&](const contract::EventView& event) { return !IsOf(tenant, event.workload); });
    }
    return reply;
  }
  return std::visit(
      [&](const auto& ask) -> std::optional<Reply> {
        if constexpr (requires { this->Ask(ask, now); }) {
          if (!copy_.state().listed) {
            return Error(Code::kUnavailable, "the store has not been read yet: try again");
          }
          Reply reply = Ask(ask, now);
          if (reply) SetStale(*reply, standing_.state().stale_since);
          return reply;
        } else {
          return std::nullopt;
        }
      },
      request);
}

bool Queries::IsOf(const std::string& tenant, const std::string& workload) const {
  const WorkloadRecord* record = copy_.Find<WorkloadRecord>(workload);
  return record != nullptr && record->workload.tenant == tenant;
}

Result<contract::ClusterRequest> Queries::Narrowed(contract::ClusterRequest request, const std::string& tenant) const {
  const auto none = [](std::string_view what, const std::string& name) {
    return Error(Code::kNotFound, fmt::format("there is no {} {}", what, name));
  };
  const auto is_other = [&](const std::string& id) { return !id.empty() && !IsOf(tenant, id); };
  if (const auto* get = std::get_if<contract::GetWorkload>(&request); get && is_other(get->workload)) {
    return none("workload", get->workload);
  }
  if (const auto* explain = std::get_if<contract::ExplainWorkload>(&request); explain && is_other(explain->workload)) {
    return none("workload", explain->workload);
  }
  if (const auto* events = std::get_if<contract::ListEvents>(&request); events && is_other(events->workload)) {
    return none("workload", events->workload);
  }
  std::string* named = nullptr;
  if (auto* list = std::get_if<contract::ListWorkloads>(&request)) named = &list->tenant;
  if (auto* list = std::get_if<contract::ListQuotas>(&request)) named = &list->tenant;
  if (named != nullptr && !named->empty() && *named != tenant) return none("tenant", *named);
  if (named != nullptr) *named = tenant;
  return request;
}

Queries::Reply Queries::Ask(const contract::ListNodes& ask, Now) const {
  contract::NodesListed listed{.nodes = {}, .next = {}, .revision = copy_.state().revision};
  listed.next = Fill(copy_.All<NodeRecord>(), ask.page, [&](const std::string& id) {
    const NodeRecord& record = *copy_.Find<NodeRecord>(id);
    if (!NameMatches(ask.status, model::NodeStatusName(record.status))) return false;
    if (!MatchesAll(ask.selector, record.facts.labels)) return false;
    listed.nodes.push_back(views_.Node(id));
    return true;
  });
  return listed;
}

Queries::Reply Queries::Ask(const contract::ListWorkloads& ask, Now) const {
  contract::WorkloadsListed listed{.workloads = {}, .next = {}, .revision = copy_.state().revision};
  const auto take = [&](const std::string& id) {
    const model::Workload& workload = copy_.Find<WorkloadRecord>(id)->workload;
    if (!ask.node.empty() && workload.assigned_node != ask.node) return false;
    if (!ask.set.empty() && workload.set != ask.set) return false;
    if (!ask.tenant.empty() && workload.tenant != ask.tenant) return false;
    if (!NameMatches(ask.status, model::WorkloadPhaseName(workload.phase))) return false;
    if (!MatchesAll(ask.selector, workload.labels)) return false;
    listed.workloads.push_back(views_.Workload(id));
    return true;
  };
  if (!ask.node.empty()) {
    listed.next = Fill(copy_.OnNode(ask.node), ask.page, take);
  } else if (!ask.set.empty()) {
    listed.next = Fill(copy_.MembersOf(ask.set), ask.page, take);
  } else {
    listed.next = Fill(copy_.All<WorkloadRecord>(), ask.page, take);
  }
  return listed;
}

Queries::Reply Queries::Ask(const contract::GetNode& ask, Now) const {
  if (copy_.Find<NodeRecord>(ask.node) == nullptr) {
    return Error(Code::kNotFound, fmt::format("there is no node {}", ask.node));
  }
  return views_.Node(ask.node);
}

Queries::Reply Queries::Ask(const contract::GetWorkload& ask, Now) const {
  if (copy_.Find<WorkloadRecord>(ask.workload) == nullptr) {
    return Error(Code::kNotFound, fmt::format("there is no workload {}", ask.workload));
  }
  return views_.Workload(ask.workload);
}

Queries::Reply Queries::Ask(const contract::ListSets& ask, Now) const {
  contract::SetsListed listed{.sets = {}, .next = {}, .revision = copy_.state().revision};
  listed.next = Fill(copy_.All<SetRecord>(), ask.page, [&](const std::string& name) {
    if (!ask.name.empty() && ask.name != name) return false;
    listed.sets.push_back(views_.Set(name));
    return true;
  });
  return listed;
}

Queries::Reply Queries::Ask(const contract::ListQuotas& ask, Now) const {
  return contract::QuotasListed{quota_.Views(ask.tenant)};
}

Queries::Reply Queries::Ask(const contract::ListEvents& ask, Now) const {
  contract::EventsListed listed;
  const auto add = [&](const StoreCopy::Events& events) {
    for (const auto& [sequence, event] : events) {
      if (ask.node.empty() || event.node == ask.node) listed.events.push_back(EventViewOf(event));
    }
  };
  if (!ask.workload.empty()) {
    add(copy_.EventsOf(ask.workload));
  } else {
    for (const auto& [owner, events] : copy_.state().events) add(events);
  }
  std::ranges::reverse(listed.events);
  std::ranges::stable_sort(listed.events, std::ranges::greater(), &contract::EventView::at);
  const auto limit = static_cast<size_t>(ask.limit > 0 ? std::min(ask.limit, kMostListed) : kEventsListed);
  if (listed.events.size() > limit) listed.events.resize(limit);
  return listed;
}

Queries::Reply Queries::Ask(const contract::GetSummary&, Now now) const {
  using model::WorkloadPhase;
  const auto phase = [&](WorkloadPhase which) {
    return static_cast<int32_t>(copy_.phases().at(static_cast<size_t>(which)));
  };
  const auto nodes = [&](model::NodeStatus which) {
    return static_cast<int32_t>(copy_.node_statuses().at(static_cast<size_t>(which)));
  };
  contract::Summary summary{.total_nodes = static_cast<int32_t>(copy_.All<NodeRecord>().size()),
                            .ready_nodes = nodes(model::NodeStatus::kReady),
                            .total_workloads = static_cast<int32_t>(copy_.All<WorkloadRecord>().size()),
                            .running_workloads = phase(WorkloadPhase::kRunning),
                            .failed_workloads = phase(WorkloadPhase::kFailed),
                            .deleted_workloads = phase(WorkloadPhase::kDeleting) + phase(WorkloadPhase::kDeleted),
                            .generated_at = now.wall,
                            .leading = standing_.state().leading && standing_.caught_up(),
                            .leader = standing_.state().leader};
  summary.not_ready_nodes = summary.total_nodes - summary.ready_nodes;
  for (const WorkloadPhase which : {WorkloadPhase::kPending, WorkloadPhase::kScheduled, WorkloadPhase::kUpdating,
                                    WorkloadPhase::kRetryPending, WorkloadPhase::kUnknown}) {
    summary.pending_workloads += phase(which);
  }
  return summary;
}

Queries::Reply Queries::Ask(const contract::ExplainWorkload& ask, Now now) const {
  const WorkloadRecord* record = copy_.Find<WorkloadRecord>(ask.workload);
  if (record == nullptr) return Error(Code::kNotFound, fmt::format("there is no workload {}", ask.workload));
  contract::Explanation explanation{.workload = views_.Workload(ask.workload), .story = {}, .nodes = {}, .events = {}};
  for (const auto& [sequence, event] : copy_.EventsOf(ask.workload)) {
    explanation.story.push_back(fmt::format("{}: {}", event.type, event.reason));
    explanation.events.push_back(EventViewOf(event));
  }
  if (!record->message.empty()) explanation.story.push_back(record->message);
  for (const placement::NodeVerdict& verdict : rooms_.Explain(*record, now.wall)) {
    const bool fits = verdict.reason == placement::Reason::kNone;
    explanation.nodes.push_back({.node = verdict.node,
                                 .reason = fits ? "" : std::string(placement::ReasonName(verdict.reason)),
                                 .detail = verdict.detail});
  }
  return explanation;
}

}  // namespace muster::scheduler
