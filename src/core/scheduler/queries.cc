#include "core/scheduler/queries.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <set>
#include <utility>
#include <vector>

#include "base/weight.h"
#include "model/requirement.h"
#include "placement/reason.h"

namespace muster::scheduler {
namespace {

constexpr int32_t kMostListed = 10000;
constexpr int32_t kEventsListed = 100;
// Of one page, or little more where its last object is large: clients take an answer of four times that.
constexpr size_t kMostPageWeight = 4 << 20;

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

// Adds what `take` accepts, in the order of ids, until the page is full; the token of the next page. `take` returns the
// weight of what it has added, or 0.
template <class Range, class Take>
std::string Fill(const Range& ids, const contract::Page& page, Take&& take) {
  int32_t left = LimitOf(page);
  size_t weight = 0;
  auto id = page.token.empty() ? ids.begin() : ids.upper_bound(page.token);
  std::string last = page.token;
  for (; id != ids.end(); ++id) {
    if (left == 0 || weight >= kMostPageWeight) return last;
    if constexpr (requires { id->first; }) {
      last = id->first;
    } else {
      last = *id;
    }
    if (const size_t added = take(last); added > 0) {
      weight += added;
      --left;
    }
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
    if (const auto* events = std::get_if<contract::ListEvents>(&*narrowed)) {
      contract::ClusterReply listed = Events(*events, tenant);
      SetStale(listed, standing_.state().stale_since);
      return listed;
    }
    if (const auto* sets = std::get_if<contract::ListSets>(&*narrowed)) {
      contract::ClusterReply listed = Sets(*sets, tenant);
      SetStale(listed, standing_.state().stale_since);
      return listed;
    }
    return Answer(*narrowed, "", now);
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

void Queries::ForEachEvent(const std::string& workload, const std::function<void(const EventRecord&)>& take) const {
  for (const auto& [id, event] : copy_.state().foreign_events) {
    if (workload.empty() || event.workload == workload) take(event);
  }
  if (!workload.empty()) {
    for (const auto& [sequence, event] : copy_.EventsOf(workload)) take(event);
    return;
  }
  for (const auto& [owner, events] : copy_.state().events) {
    for (const auto& [sequence, event] : events) take(event);
  }
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
    if (!NameMatches(ask.status, model::NodeStatusName(record.status))) return size_t{0};
    if (!MatchesAll(ask.selector, record.facts.labels)) return size_t{0};
    return WeightOf(listed.nodes.emplace_back(views_.Node(id)));
  });
  return listed;
}

Queries::Reply Queries::Ask(const contract::ListWorkloads& ask, Now) const {
  contract::WorkloadsListed listed{.workloads = {}, .next = {}, .revision = copy_.state().revision};
  const auto take = [&](const std::string& id) {
    const model::Workload& workload = copy_.Find<WorkloadRecord>(id)->workload;
    if (!ask.node.empty() && workload.assigned_node != ask.node) return size_t{0};
    if (!ask.set.empty() && workload.set != ask.set) return size_t{0};
    if (!ask.tenant.empty() && workload.tenant != ask.tenant) return size_t{0};
    if (!NameMatches(ask.status, model::WorkloadPhaseName(workload.phase))) return size_t{0};
    if (!MatchesAll(ask.selector, workload.labels)) return size_t{0};
    return WeightOf(listed.workloads.emplace_back(views_.Workload(id)));
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

Queries::Reply Queries::Ask(const contract::ListSets& ask, Now) const { return Sets(ask, ""); }

contract::SetsListed Queries::Sets(const contract::ListSets& ask, const std::string& tenant) const {
  contract::SetsListed listed{.sets = {}, .next = {}, .revision = copy_.state().revision};
  listed.next = Fill(copy_.All<SetRecord>(), ask.page, [&](const std::string& name) {
    if (!ask.name.empty() && ask.name != name) return size_t{0};
    if (!tenant.empty() && copy_.Find<SetRecord>(name)->spec.tenant != tenant) return size_t{0};
    return WeightOf(listed.sets.emplace_back(views_.Set(name)));
  });
  return listed;
}

Queries::Reply Queries::Ask(const contract::ListQuotas& ask, Now) const {
  return contract::QuotasListed{quota_.Views(ask.tenant)};
}

Queries::Reply Queries::Ask(const contract::ListEvents& ask, Now) const { return Events(ask, ""); }

// The newest first; of those at the same moment the ones that were added last. Views are made of what is listed, for
// the events of a whole cluster are many.
contract::EventsListed Queries::Events(const contract::ListEvents& ask, const std::string& tenant) const {
  struct Found {
    WallTime at;
    size_t number = 0;
    const EventRecord* event = nullptr;
  };
  std::vector<Found> found;
  const auto add = [&](const EventRecord& event) {
    if (!ask.node.empty() && event.node != ask.node) return;
    if (!tenant.empty() && !IsOf(tenant, event.workload)) return;
    found.push_back({.at = event.at, .number = found.size(), .event = &event});
  };
  ForEachEvent(ask.workload, add);
  const auto limit = static_cast<size_t>(ask.limit > 0 ? std::min(ask.limit, kMostListed) : kEventsListed);
  const auto listed_end = found.begin() + static_cast<ptrdiff_t>(std::min(limit, found.size()));
  std::ranges::partial_sort(found, listed_end, std::ranges::greater(),
                            [](const Found& one) { return std::pair(one.at, one.number); });
  contract::EventsListed listed;
  size_t weight = 0;
  for (const Found& one : std::ranges::subrange(found.begin(), listed_end)) {
    weight += WeightOf(listed.events.emplace_back(EventViewOf(*one.event)));
    if (weight >= kMostPageWeight) break;
  }
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
  ForEachEvent(ask.workload, [&](const EventRecord& event) {
    explanation.story.push_back(fmt::format("{}: {}", event.type, event.reason));
    explanation.events.push_back(EventViewOf(event));
  });
  if (!record->message.empty()) explanation.story.push_back(record->message);
  for (const placement::NodeVerdict& verdict : rooms_.Explain(rooms_.KindAsPlaced(*record, now.wall))) {
    const bool fits = verdict.reason == placement::Reason::kNone;
    explanation.nodes.push_back({.node = verdict.node,
                                 .reason = fits ? "" : std::string(placement::ReasonName(verdict.reason)),
                                 .detail = verdict.detail});
  }
  return explanation;
}

}  // namespace muster::scheduler
