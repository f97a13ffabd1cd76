#include "core/operators/demand.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "model/requirement.h"

namespace muster::operators {
namespace {

constexpr std::string_view kHostnameKey = "kubernetes.io/hostname";
constexpr int64_t kLongestHold = 16;

// A sum that does not fit stays at the largest amount: such a demand is refused by the shard, which names it.
model::Resources Plus(const model::Resources& a, const model::Resources& b) {
  auto sum = model::Add(a, b);
  return sum ? *std::move(sum) : model::Max(a, b);
}

// Topology keys within which the workload must be with others of its group.
std::vector<std::string> RequiredColocation(const model::WorkloadTemplate& spec) {
  std::vector<std::string> keys;
  for (const model::NeighbourRule& rule : spec.colocate) {
    if (rule.weight == 0) keys.push_back(rule.topology_key);
  }
  std::ranges::sort(keys);
  keys.erase(std::ranges::unique(keys).begin(), keys.end());
  return keys;
}

std::string GroupOf(const contract::WorkloadView& view) {
  for (const model::NeighbourRule& rule : view.spec.colocate) {
    if (rule.weight != 0) continue;
    if (!rule.selector) return view.set.empty() ? view.workload : view.set;
    std::string group;
    for (const model::Requirement& requirement : *rule.selector) {
      group += (group.empty() ? "" : ",") + ToString(requirement);
    }
    return group;
  }
  return {};
}

}  // namespace

bool CountsAsDemand(const contract::WorkloadView& view) {
  switch (view.phase) {
    case model::WorkloadPhase::kStopped:
    case model::WorkloadPhase::kCompleted:
    case model::WorkloadPhase::kDeleted:
    case model::WorkloadPhase::kFailed: return false;
    default: break;
  }
  // What is being stopped or deleted holds its room until it has left its node.
  return view.desired == model::DesiredState::kRunning || !view.node.empty();
}

DemandUnit UnitOf(const contract::WorkloadView& view) {
  DemandUnit unit;
  model::ProfileParts parts{
      .priority = view.spec.priority, .interruption = view.spec.interruption, .reclamation = view.spec.reclamation};
  if (!view.spec.requirements.empty()) parts.requirements = view.spec.requirements.front();
  for (const std::string& key : RequiredColocation(view.spec)) {
    parts.requirements.push_back({.key = key, .op = model::Operator::kSame});
  }
  for (const model::SpreadRule& rule : view.spec.spread) {
    if (rule.spread.topology_key != kHostnameKey) parts.spread.push_back(rule.spread);
  }
  unit.profile = model::Profile(std::move(parts));
  unit.group = GroupOf(view);
  unit.request = view.spec.resources;
  unit.node = view.node;
  unit.alone_on_host = std::ranges::any_of(view.spec.exclude, [](const model::NeighbourRule& rule) {
    return rule.weight == 0 && rule.topology_key == kHostnameKey;
  });
  unit.waits = view.node.empty() && view.desired == model::DesiredState::kRunning && !view.reason.empty();
  return unit;
}

void Demand::SetWorkload(const std::string& id, const contract::WorkloadView& view, MonoTime now) {
  if (!CountsAsDemand(view)) {
    units_.erase(id);
    return;
  }
  DemandUnit unit = UnitOf(view);
  const auto before = units_.find(id);
  if (unit.waits) {
    const bool waited = before != units_.end() && before->second.waits && before->second.profile == unit.profile;
    unit.waiting_since = waited ? before->second.waiting_since : std::optional(now);
  }
  units_.insert_or_assign(id, std::move(unit));
}

void Demand::RemoveWorkloadsBut(const std::vector<contract::WorkloadView>& listed) {
  std::set<std::string_view> ids;
  for (const contract::WorkloadView& view : listed) ids.insert(view.workload);
  std::erase_if(units_, [&](const auto& unit) { return !ids.contains(unit.first); });
}

std::map<Demand::Key, Demand::Sum> Demand::Sums() const {
  std::map<Key, Sum> sums;
  for (const auto& [id, unit] : units_) {
    auto [at, fresh] = sums.try_emplace({unit.profile.fingerprint(), unit.group});
    Sum& sum = at->second;
    if (fresh) sum.need = {.cluster = cluster_, .profile = unit.profile, .group = unit.group};
    sum.need.aggregate = Plus(sum.need.aggregate, unit.request);
    sum.need.min_unit = model::Max(sum.need.min_unit, unit.request);
    if (!unit.alone_on_host) continue;
    if (nodes_.contains(unit.node)) {
      sum.whole_nodes.insert(unit.node);
    } else {
      sum.unplaced_alone = Plus(sum.unplaced_alone, unit.request);
    }
  }
  return sums;
}

model::Resources Demand::Asked(const Sum& sum) const {
  if (sum.whole_nodes.empty()) return sum.need.aggregate;
  model::Resources whole = sum.unplaced_alone;
  for (const std::string& node : sum.whole_nodes) whole = Plus(whole, nodes_.at(node).total);
  // Only what the members ask for is demanded: a machine's other resources are nobody's.
  model::Resources asked = sum.need.aggregate;
  for (const auto& [name, amount] : sum.need.aggregate.entries()) asked.Set(name, std::max(amount, whole.Get(name)));
  return asked;
}

model::Resources Demand::Supply(const model::Profile& profile) const {
  model::Resources supply;
  for (const BoundNode& node : nodes_ | std::views::values) {
    const bool matches = std::ranges::all_of(profile.requirements(), [&](const model::Requirement& requirement) {
      const auto label = node.labels.find(requirement.key);
      return Matches(requirement,
                     label == node.labels.end() ? std::nullopt : std::optional<std::string_view>(label->second));
    });
    if (matches) supply = Plus(supply, node.total);
  }
  return supply;
}

std::vector<std::string> Demand::Review(bool more_comes, MonoTime now) {
  std::map<Key, std::vector<std::string>> stuck;
  for (const auto& [id, unit] : units_) {
    if (!unit.waits || now - *unit.waiting_since < stuck_after_) continue;
    stuck[{unit.profile.fingerprint(), unit.group}].push_back(id);
  }
  std::vector<std::string> changes;
  const std::map<Key, Sum> sums = Sums();
  for (const auto& [key, ids] : stuck) {
    Correction& correction = corrections_[key];
    correction.stuck = ids;
    correction.calm_since.reset();
    if (more_comes) continue;
    const Sum& sum = sums.at(key);
    const model::Resources supply = Supply(sum.need.profile);
    const model::Resources asked = Asked(sum);
    // While less is bound than asked for, the shard acquires by itself.
    if (!supply.Covers(Plus(asked, correction.extra))) continue;
    model::Resources wanted;
    for (const std::string& id : ids) wanted = Plus(wanted, units_.at(id).request);
    correction.extra = Plus(model::SubtractSaturating(supply, asked), wanted);
    for (const auto& [name, amount] : std::vector(correction.extra.entries())) {
      if (asked.Get(name) == 0) correction.extra.Set(name, 0);
    }
    correction.hold = std::min(correction.hold == Duration::zero() ? hold_ : 2 * correction.hold, kLongestHold * hold_);
    changes.push_back(fmt::format("{} workloads have no node although {} is bound: demand of {} raised by {}",
                                  ids.size(), supply.ToString(), key.fingerprint, correction.extra.ToString()));
  }
  for (auto at = corrections_.begin(); at != corrections_.end();) {
    auto& [key, correction] = *at;
    const bool gone = !sums.contains(key);
    if (!stuck.contains(key)) {
      correction.stuck.clear();
      if (!correction.calm_since) correction.calm_since = now;
      const bool over = now - *correction.calm_since >= correction.hold;
      if (!correction.extra.empty() && over) {
        changes.push_back(
            fmt::format("demand of {} lowered by {}: its workloads run", key.fingerprint, correction.extra.ToString()));
        correction.extra = {};
      }
    }
    // A profile remembers for some holds how often it was corrected.
    const bool forgotten = correction.calm_since && now - *correction.calm_since >= 4 * correction.hold;
    at = gone || (correction.extra.empty() && forgotten) ? corrections_.erase(at) : std::next(at);
  }
  return changes;
}

std::optional<MonoTime> Demand::NextReview() const {
  std::optional<MonoTime> next;
  const auto at = [&next](MonoTime moment) { next = next ? std::min(*next, moment) : moment; };
  for (const DemandUnit& unit : units_ | std::views::values) {
    if (unit.waits) at(*unit.waiting_since + stuck_after_);
  }
  for (const Correction& correction : corrections_ | std::views::values) {
    if (!correction.calm_since) continue;
    at(*correction.calm_since + (correction.extra.empty() ? 4 * correction.hold : correction.hold));
  }
  return next;
}

std::vector<model::Need> Demand::Needs() const {
  std::vector<model::Need> needs;
  for (const auto& [key, sum] : Sums()) {
    model::Need need = sum.need;
    need.aggregate = Asked(sum);
    if (const auto at = corrections_.find(key); at != corrections_.end()) {
      need.aggregate = Plus(need.aggregate, at->second.extra);
    }
    if (!need.aggregate.empty()) needs.push_back(std::move(need));
  }
  return needs;
}

}  // namespace muster::operators
