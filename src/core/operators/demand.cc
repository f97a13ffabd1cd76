#include "core/operators/demand.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/check.h"
#include "base/probe.h"

namespace muster::operators {
namespace {

constexpr std::string_view kHostnameKey = "kubernetes.io/hostname";
constexpr int64_t kLongestHold = 16;
constexpr std::string_view kSizeGroup = "size:";
constexpr std::string_view kNoFailoverNode = "failover.no_node";

// A sum that does not fit stays at the largest amount: such a demand is refused by the shard, which names it.
model::Resources Plus(const model::Resources& a, const model::Resources& b) {
  auto sum = model::Add(a, b);
  return sum ? *std::move(sum) : model::Max(a, b);
}

// Values of Operator are those of the protocol up to Same; rpc/wire_parts.cc refuses all others.
bool IsOfProtocol(const model::Requirement& requirement) { return requirement.op <= model::Operator::kSame; }

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

// Refusals that a machine more of the same kinds would give as well.
bool IsHopeless(std::string_view reason) {
  return reason == "node.type" || reason == "node.taint" || reason == "quota";
}
bool IsOfNeighbours(std::string_view reason) {
  return reason.starts_with("spread.") || reason.starts_with("colocate.") || reason.starts_with("exclude.") ||
         reason.starts_with("port.");
}

bool MatchesNode(const model::Profile& profile, const BoundNode& node) {
  return std::ranges::all_of(profile.requirements(), [&](const model::Requirement& requirement) {
    const auto label = node.labels.find(requirement.key);
    return Matches(requirement,
                   label == node.labels.end() ? std::nullopt : std::optional<std::string_view>(label->second));
  });
}

// The sizes of the nodes that a profile may use; a cluster has few kinds of them.
class NodeSizes {
 public:
  explicit NodeSizes(const std::map<std::string, BoundNode>& nodes) : nodes_(nodes) {}

  bool None(const model::Profile& profile) { return Of(profile).empty(); }
  // Whether one of them could carry it if it were empty.
  bool Carries(const model::Profile& profile, const model::Resources& request) {
    return std::ranges::any_of(Of(profile), [&](const model::Resources& size) { return size.Covers(request); });
  }

 private:
  const std::vector<model::Resources>& Of(const model::Profile& profile) {
    const auto [at, fresh] = sizes_.try_emplace(profile.fingerprint());
    std::vector<model::Resources>& sizes = at->second;
    if (!fresh) return sizes;
    for (const BoundNode& node : nodes_ | std::views::values) {
      if (std::ranges::find(sizes, node.total) == sizes.end() && MatchesNode(profile, node)) {
        sizes.push_back(node.total);
      }
    }
    return sizes;
  }

  const std::map<std::string, BoundNode>& nodes_;
  std::map<std::string, std::vector<model::Resources>> sizes_;  // by fingerprint
};

// Its members are placed together: none of them can be asked for apart.
bool IsGang(const model::Profile& profile) {
  return std::ranges::any_of(profile.requirements(), [](const auto& one) { return one.op == model::Operator::kSame; });
}

// Whether both are the same to the sums.
bool CountsAs(const DemandUnit& a, const DemandUnit& b) {
  return a.profile == b.profile && a.group == b.group && a.request == b.request && a.node == b.node &&
         a.alone_on_host == b.alone_on_host;
}

}  // namespace

bool CountsAsDemand(const contract::WorkloadView& view) {
  switch (view.phase) {
    case model::WorkloadPhase::kStopped:
    case model::WorkloadPhase::kCompleted:
    case model::WorkloadPhase::kDeleted:
    case model::WorkloadPhase::kFailed: return MUTANT("operators.counts_ended");
    default: break;
  }
  // What is being stopped or deleted holds its room until it has left its node.
  return view.desired == model::DesiredState::kRunning || !view.node.empty();
}

DemandUnit UnitOf(const contract::WorkloadView& view) {
  DemandUnit unit;
  model::ProfileParts parts{
      .priority = view.spec.priority, .interruption = view.spec.interruption, .reclamation = view.spec.reclamation};
  if (const auto& lists = view.spec.requirements; !lists.empty()) {
    const auto expressible =
        std::ranges::find_if(lists, [](const auto& list) { return std::ranges::all_of(list, IsOfProtocol); });
    parts.requirements = expressible == lists.end() ? lists.front() : *expressible;
  }
  for (const std::string& key : RequiredColocation(view.spec)) {
    parts.requirements.push_back({.key = key, .op = model::Operator::kSame});
  }
  for (const model::SpreadRule& rule : view.spec.spread) {
    if (rule.spread.topology_key != kHostnameKey) parts.spread.push_back(rule.spread);
  }
  unit.profile = model::Profile(std::move(parts));
  unit.group = GroupOf(view);
  unit.request = view.spec.resources;
  // What waits for a failover has its old node in its record, and is not there.
  const bool nowhere = view.node.empty() || view.reason == kNoFailoverNode;
  if (!nowhere) unit.node = view.node;
  unit.alone_on_host = std::ranges::any_of(view.spec.exclude, [](const model::NeighbourRule& rule) {
    return rule.weight == 0 && rule.topology_key == kHostnameKey;
  });
  unit.waits =
      nowhere && view.desired == model::DesiredState::kRunning && !view.reason.empty() && !IsHopeless(view.reason);
  unit.by_neighbours = IsOfNeighbours(view.reason);
  // No machine can be asked for on behalf of what is left out.
  if (LeftOutBy(unit) != nullptr) unit.waits = false;
  return unit;
}

const model::Requirement* LeftOutBy(const DemandUnit& unit) {
  const std::vector<model::Requirement>& requirements = unit.profile.requirements();
  const auto at = std::ranges::find_if_not(requirements, IsOfProtocol);
  return at == requirements.end() ? nullptr : &*at;
}

std::string GroupOfSize(const model::Resources& request) { return fmt::format("{}{}", kSizeGroup, request.ToString()); }

void Demand::SetWorkload(const std::string& id, const contract::WorkloadView& view, MonoTime now) {
  held_.erase(id);
  if (!CountsAsDemand(view)) {
    if (units_.erase(id) > 0) summed_.reset();
    const bool holds = view.phase == model::WorkloadPhase::kStopped || view.phase == model::WorkloadPhase::kFailed;
    if (holds && !view.node.empty()) held_[id] = {.node = view.node, .request = view.spec.resources};
    return;
  }
  DemandUnit unit = UnitOf(view);
  const auto before = units_.find(id);
  if (unit.waits) {
    const bool waited = before != units_.end() && before->second.waits && before->second.profile == unit.profile;
    unit.waiting_since = waited ? before->second.waiting_since : std::optional(now);
  }
  // Most of what is told of a workload is how it is: that changes no sum.
  if (before == units_.end() || !CountsAs(before->second, unit)) summed_.reset();
  units_.insert_or_assign(id, std::move(unit));
}

void Demand::SetNode(const std::string& id, BoundNode node) {
  const auto [at, is_new] = nodes_.try_emplace(id);
  if (!is_new && at->second.total == node.total && at->second.labels == node.labels) return;
  at->second = std::move(node);
  summed_.reset();
}

void Demand::RemoveWorkloadsBut(const std::vector<contract::WorkloadView>& listed) {
  std::set<std::string_view> ids;
  for (const contract::WorkloadView& view : listed) ids.insert(view.workload);
  if (std::erase_if(units_, [&](const auto& unit) { return !ids.contains(unit.first); }) > 0) summed_.reset();
  std::erase_if(held_, [&](const auto& held) { return !ids.contains(held.first); });
}

const model::Requirement* Demand::LeftOutBy(const std::string& id) const {
  const auto at = units_.find(id);
  return at == units_.end() ? nullptr : operators::LeftOutBy(at->second);
}

std::map<Demand::Key, Demand::Sum> Demand::Sums() const {
  std::map<Key, Sum> sums;
  NodeSizes sizes(nodes_);
  for (const auto& [id, unit] : units_) {
    if (unit.node.empty() && MUTANT("operators.counts_placed_only")) continue;
    if (operators::LeftOutBy(unit) != nullptr && !MUTANT("operators.says_every_operator")) continue;
    Key key{unit.profile.fingerprint(), unit.group};
    const bool judged = !sizes.None(unit.profile) || apart_.contains(key);
    if (judged && !sizes.Carries(unit.profile, unit.request) && !IsGang(unit.profile) &&
        !MUTANT("operators.one_size_for_all")) {
      key.group = GroupOfSize(unit.request);
    }
    const auto [at, fresh] = sums.try_emplace(std::move(key));
    Sum& sum = at->second;
    if (fresh) sum.need = {.cluster = cluster_, .profile = unit.profile, .group = at->first.group};
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

void Demand::Raise(const Key& key, const Sum& sum, const std::vector<std::string>& stuck,
                   std::vector<std::string>& changes) {
  Correction& correction = corrections_[key];
  const model::Resources asked = Asked(sum);
  model::Resources room;
  model::Resources largest;  // node that the profile may use
  for (const BoundNode& node : nodes_ | std::views::values) {
    room = Plus(room, node.total);
    if (MatchesNode(sum.need.profile, node)) largest = model::Max(largest, node.total);
  }
  model::Resources taken = asked;
  for (const DemandUnit& unit : units_ | std::views::values) {
    const bool own = unit.profile.fingerprint() == key.fingerprint && unit.group == key.group;
    // The shard is not told of what is left out: it would not acquire for the room that this takes.
    if (operators::LeftOutBy(unit) != nullptr) continue;
    if (!own && nodes_.contains(unit.node)) taken = Plus(taken, unit.request);
  }
  for (const Correction& other : corrections_ | std::views::values) taken = Plus(taken, other.extra);
  // While less is bound than that, the shard acquires by itself.
  if (!room.Covers(taken)) return;
  const model::Resources free = model::SubtractSaturating(room, taken);
  model::Resources extra;
  for (const std::string& id : stuck) extra = Plus(extra, units_.at(id).request);
  for (const auto& [name, amount] : asked.entries()) {
    extra.Set(name, extra.Get(name) + std::min(free.Get(name), largest.Get(name)));
  }
  correction.extra = Plus(correction.extra, extra);
  correction.hold = std::min(correction.hold == Duration::zero() ? hold_ : 2 * correction.hold, kLongestHold * hold_);
  changes.push_back(fmt::format("{} workloads have no node although {} of {} is free: demand of {} raised by {}",
                                stuck.size(), free.ToString(), room.ToString(), key.fingerprint, extra.ToString()));
}

std::map<std::string, model::Resources> Demand::Free() const {
  std::map<std::string, model::Resources> free;
  for (const auto& [id, node] : nodes_) free[id] = node.total;
  for (const DemandUnit& unit : units_ | std::views::values) {
    const auto at = free.find(unit.node);
    if (at != free.end()) at->second = model::SubtractSaturating(at->second, unit.request);
  }
  for (const Held& held : held_ | std::views::values) {
    const auto at = free.find(held.node);
    if (at == free.end() || MUTANT("operators.held_room_is_free")) continue;
    at->second = model::SubtractSaturating(at->second, held.request);
  }
  return free;
}

std::map<Demand::Key, std::vector<std::string>> Demand::Stuck(MonoTime now) const {
  std::map<Key, std::vector<std::string>> stuck;
  std::map<std::string, model::Resources> free;
  std::map<std::pair<Key, std::string>, bool> known;  // by need and request: a raise would not help
  NodeSizes sizes(nodes_);
  for (const auto& [id, unit] : units_) {
    if (!unit.waits || now - *unit.waiting_since < stuck_after_) continue;
    const Key key{unit.profile.fingerprint(), unit.group};
    const auto [room, fresh] = known.try_emplace({key, unit.request.ToString()}, false);
    if (fresh) {
      if (free.empty()) free = Free();
      const bool has_room = !unit.by_neighbours && std::ranges::any_of(free, [&](const auto& node) {
        return node.second.Covers(unit.request) && MatchesNode(unit.profile, nodes_.at(node.first));
      });
      // For what no bound node could carry the shard acquires by itself: nothing that is bound counts for it.
      const bool beyond =
          !sizes.Carries(unit.profile, unit.request) && !MUTANT("operators.raises_for_what_none_carries");
      room->second = has_room || beyond;
    }
    // It waits for something else: another machine would not help, and the next one would not either.
    if (!room->second) stuck[key].push_back(id);
  }
  return stuck;
}

bool Demand::FitElsewhere(const std::string& node) const {
  std::map<std::string, model::Resources> free = Free();
  free.erase(node);
  std::vector<const DemandUnit*> moving;
  for (const DemandUnit& unit : units_ | std::views::values) {
    if (unit.node == node) moving.push_back(&unit);
  }
  // What excludes others of its kind finds no node among those that have one: each has a node already.
  return std::ranges::all_of(moving, [&](const DemandUnit* unit) {
    if (unit->alone_on_host) return false;
    const auto to = std::ranges::find_if(free, [&](const auto& other) {
      return MatchesNode(unit->profile, nodes_.at(other.first)) && other.second.Covers(unit->request);
    });
    if (to == free.end()) return false;
    to->second = model::SubtractSaturating(to->second, unit->request);
    return true;
  });
}

bool Demand::Strands(const model::Profile& profile) const {
  model::Resources room;
  model::Resources asked;
  std::map<std::string_view, model::Resources> used;
  for (const BoundNode& node : nodes_ | std::views::values) room = Plus(room, node.total);
  NodeSizes sizes(nodes_);
  for (const DemandUnit& unit : units_ | std::views::values) {
    const bool counted = operators::LeftOutBy(unit) == nullptr;
    if (counted && sizes.Carries(unit.profile, unit.request)) asked = Plus(asked, unit.request);
    used[unit.node] = Plus(used[unit.node], unit.request);
  }
  // The emptiest of them, by what is free in the scarcest resource.
  std::optional<std::pair<int64_t, std::string>> emptiest;
  for (const auto& [id, node] : nodes_) {
    if (!MatchesNode(profile, node) || !model::SubtractSaturating(room, node.total).Covers(asked)) continue;
    int64_t fullest = 0;
    for (const auto& [name, amount] : used[id].entries()) {
      fullest = std::max(fullest, amount / std::max<int64_t>(1, node.total.Get(name) / 1000));
    }
    if (!emptiest || fullest < emptiest->first) emptiest = {fullest, id};
  }
  return emptiest && !FitElsewhere(emptiest->second);
}

// What an earlier life of the operator had raised shows in what is bound.
void Demand::FindRaises(MonoTime now) {
  for (const auto& [key, sum] : Sums()) {
    if (key.group.starts_with(kSizeGroup) || !Strands(sum.need.profile)) continue;
    Correction& correction = corrections_[key];
    for (const auto& [name, amount] : Asked(sum).entries()) {
      int64_t largest = 0;
      for (const BoundNode& node : nodes_ | std::views::values) {
        if (MatchesNode(sum.need.profile, node)) largest = std::max(largest, node.total.Get(name));
      }
      correction.extra.Set(name, largest);
    }
    correction.hold = hold_;
    correction.calm_since = now;
    return;  // one is enough to keep the machine
  }
}

void Demand::TakeUp(const std::vector<model::Need>& before, MonoTime now) {
  summed_.reset();
  reviewed_ = true;  // what FindRaises would guess is known
  corrections_.clear();
  std::map<Key, const model::Need*> asked;
  std::set<std::string> apart;  // profiles
  for (const model::Need& need : before) {
    asked.emplace(Key{need.profile.fingerprint(), need.group}, &need);
    if (need.group.starts_with(kSizeGroup)) apart.insert(need.profile.fingerprint());
  }
  NodeSizes sizes(nodes_);
  for (const DemandUnit& unit : units_ | std::views::values) {
    const std::string fingerprint = unit.profile.fingerprint();
    if (apart.contains(fingerprint) && sizes.None(unit.profile)) apart_.insert({fingerprint, unit.group});
  }
  for (const auto& [key, sum] : Sums()) {
    const auto at = asked.find(key);
    if (at == asked.end()) continue;
    const model::Resources own = Asked(sum);
    model::Resources extra;
    for (const auto& [name, amount] : at->second->aggregate.entries()) {
      if (amount > own.Get(name)) extra.Set(name, amount - own.Get(name));
    }
    if (!extra.empty()) corrections_[key] = {.extra = extra, .stuck = {}, .calm_since = now, .hold = hold_};
  }
}

// While no node is bound for a need, nobody knows what can be had, and it is one need, its unit the largest member. If
// nothing comes for it, one of them may be larger than any machine: each size is asked for apart.
void Demand::ReviewSizes(bool more_comes, MonoTime now, std::vector<std::string>& changes) {
  NodeSizes sizes(nodes_);
  std::map<Key, std::set<std::string>> without_node;  // sizes by need
  std::set<Key> waiting;
  for (const DemandUnit& unit : units_ | std::views::values) {
    if (!sizes.None(unit.profile) || IsGang(unit.profile)) continue;
    const Key key{unit.profile.fingerprint(), unit.group};
    if (unit.waits && now - *unit.waiting_since >= stuck_after_) waiting.insert(key);
    without_node[key].insert(unit.request.ToString());
  }
  std::erase_if(apart_, [&](const Key& key) { return !without_node.contains(key); });
  if (more_comes) return;
  for (const Key& key : waiting) {
    if (without_node[key].size() < 2 || !apart_.insert(key).second) continue;
    changes.push_back(fmt::format("no machine came for {}: each size is asked for apart", key.fingerprint));
  }
}

std::vector<std::string> Demand::Review(bool more_comes, MonoTime now) {
  summed_.reset();
  if (!std::exchange(reviewed_, true)) FindRaises(now);
  const std::map<Key, std::vector<std::string>> stuck = Stuck(now);
  std::vector<std::string> changes;
  ReviewSizes(more_comes, now, changes);
  const std::map<Key, Sum> sums = Sums();
  for (const auto& [key, ids] : stuck) {
    Correction& correction = corrections_[key];
    correction.stuck = ids;
    correction.calm_since.reset();
    if (!more_comes && !MUTANT("operators.never_raises") && sums.contains(key)) Raise(key, sums.at(key), ids, changes);
  }
  for (auto at = corrections_.begin(); at != corrections_.end();) {
    auto& [key, correction] = *at;
    const auto sum = sums.find(key);
    if (!stuck.contains(key)) {
      correction.stuck.clear();
      if (!correction.calm_since) correction.calm_since = now;
      const bool over = now - *correction.calm_since >= correction.hold;
      if (over && !correction.extra.empty() && sum != sums.end() && Strands(sum->second.need.profile)) {
        correction.calm_since = now;
      } else if (over && !correction.extra.empty()) {
        changes.push_back(
            fmt::format("demand of {} lowered by {}: its workloads run", key.fingerprint, correction.extra.ToString()));
        correction.extra = {};
      }
    }
    // A profile remembers for some holds how often it was corrected.
    const bool forgotten = correction.calm_since && now - *correction.calm_since >= 4 * correction.hold;
    const bool ended = sum == sums.end() || (correction.extra.empty() && forgotten);
    at = ended ? corrections_.erase(at) : std::next(at);
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

const Demand::Total& Demand::Summed() const {
  if (!summed_) summed_ = AddUp();
  return *summed_;
}

Demand::Total Demand::AddUp() const {
  Total total;
  total.left_out = static_cast<size_t>(std::ranges::count_if(
      units_ | std::views::values, [](const DemandUnit& unit) { return operators::LeftOutBy(unit) != nullptr; }));
  for (const auto& [key, sum] : Sums()) {
    model::Need need = sum.need;
    need.aggregate = Asked(sum);
    if (const auto at = corrections_.find(key); at != corrections_.end()) {
      need.aggregate = Plus(need.aggregate, at->second.extra);
    }
    if (!need.aggregate.empty()) total.needs.push_back(std::move(need));
  }
  return total;
}

void Demand::CheckInvariants() const {
  if (!summed_) return;
  const Total anew = AddUp();
  MUSTER_CHECK(summed_->needs == anew.needs && summed_->left_out == anew.left_out, "the sums are of an earlier demand");
}

}  // namespace muster::operators
