#include "core/operators/demand.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <tuple>
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

// How long the group of its size may be (GroupOfSize), by which it may be asked for.
size_t MostOfSizeGroup(const model::Resources& request) {
  constexpr size_t kAmount = 32;
  size_t bytes = kSizeGroup.size();
  for (const auto& [name, amount] : request.entries()) bytes += name.size() + kAmount;
  return bytes;
}

size_t TextsOfNeed(const DemandUnit& unit) {
  return model::TextsOf(unit.profile) + std::max(unit.group.size(), MostOfSizeGroup(unit.request));
}

// Whether LeftOutBy has a reason.
bool IsLeftOut(const DemandUnit& unit) {
  return !std::ranges::all_of(unit.profile.requirements(), IsOfProtocol) || TextsOfNeed(unit) > model::kMostTextsOfNeed;
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

model::Resources Min(const model::Resources& a, const model::Resources& b) {
  model::Resources least;
  for (const auto& [name, amount] : a.entries()) least.Set(name, std::min(amount, b.Get(name)));
  return least;
}

// How much of the node is taken in the scarcest resource, in thousandths.
int64_t Fullness(const model::Resources& taken, const model::Resources& total) {
  int64_t fullest = 0;
  for (const auto& [name, amount] : taken.entries()) {
    fullest = std::max(fullest, amount / std::max<int64_t>(1, total.Get(name) / 1000));
  }
  return fullest;
}

// The domains of the profile's spread in which the node is.
std::string DomainOf(const model::Profile& profile, const BoundNode& node) {
  std::string domain;
  for (const auto& spread : profile.spread()) {
    const auto label = node.labels.find(spread.topology_key);
    domain += (label == node.labels.end() ? std::string() : label->second) + "\n";
  }
  return domain;
}

// Whether both are the same to the sums.
bool CountsAs(const DemandUnit& a, const DemandUnit& b) {
  return a.profile == b.profile && a.group == b.group && a.request == b.request && a.node == b.node &&
         a.alone_on_host == b.alone_on_host;
}

}  // namespace

// What stands where, for all needs of one review. It refers to the units and nodes of the demand.
struct Demand::Occupancy {
  struct Place {
    const BoundNode* node = nullptr;
    std::optional<model::Resources> free;  // none: it takes nothing
    model::Resources taken;                // by what is in a need
    std::vector<size_t> kinds;             // of each of these
    bool whole = false;                    // one of them is alone on its host
  };

  // Which places a profile may use.
  const std::vector<bool>& MayUse(const model::Profile& profile) {
    const auto [at, is_new] = usable.try_emplace(profile.fingerprint());
    if (is_new) {
      for (const Place& place : places) at->second.push_back(MatchesNode(profile, *place.node));
    }
    return at->second;
  }

  std::vector<Place> places;             // in the order of their nodes' ids
  std::vector<const DemandUnit*> kinds;  // one of each profile, request and rule about hosts
  std::vector<std::pair<model::Profile, model::Resources>> unplaced;  // what some node could carry, by profile
  std::map<std::string, std::vector<bool>> usable;                    // by fingerprint, as far as asked for
};

// Nodes that are emptied into the others, one after the other.
class Demand::Emptying {
 public:
  explicit Emptying(Occupancy& occupancy) : occupancy_(occupancy), first_(occupancy.kinds.size()) {
    for (const Occupancy::Place& place : occupancy.places) free_.push_back(place.free);
    for (const DemandUnit* kind : occupancy.kinds) usable_.push_back(&occupancy.MayUse(kind->profile));
  }

  // Moves the node's workloads into what is free elsewhere, all or none. The node takes nothing from then on. After
  // kMostFailed nodes that could not be emptied, no further one is.
  bool Empty(size_t node) {
    const std::vector<size_t>& kinds = occupancy_.places[node].kinds;
    if (!std::ranges::all_of(kinds, [this](size_t kind) { return HasRoom(kind); })) return false;
    if (failed_ == kMostFailed) return false;
    std::vector<std::pair<size_t, model::Resources>> before;  // of what was changed, in order
    for (const size_t kind : kinds) {
      size_t to = first_[kind];
      while (to < free_.size() && (to == node || !Takes(to, kind))) ++to;
      if (to == free_.size()) {
        for (const auto& [place, left] : before | std::views::reverse) free_[place] = left;
        PROBE("operators.not_emptied");
        ++failed_;
        return false;
      }
      before.emplace_back(to, *free_[to]);
      free_[to] = model::SubtractSaturating(*free_[to], occupancy_.kinds[kind]->request);
    }
    free_[node].reset();
    return true;
  }

 private:
  // Nodes that are tried in vain: each such try looks at every other node.
  static constexpr int kMostFailed = 32;

  // Whether a node takes one of the kind while nothing is being moved. Room only shrinks: none is looked at again.
  bool HasRoom(size_t kind) {
    // What excludes others of its kind finds no node among those that have one: each has a node already.
    if (occupancy_.kinds[kind]->alone_on_host) return false;
    size_t& first = first_[kind];
    while (first < free_.size() && !Takes(first, kind)) ++first;
    return first < free_.size();
  }
  bool Takes(size_t place, size_t kind) const {
    PROBE("operators.room_looked_at");
    return (*usable_[kind])[place] && free_[place] && free_[place]->Covers(occupancy_.kinds[kind]->request);
  }

  const Occupancy& occupancy_;
  std::vector<std::optional<model::Resources>> free_;  // by place
  std::vector<const std::vector<bool>*> usable_;       // by kind
  std::vector<size_t> first_;                          // place that may take one, by kind
  int failed_ = 0;
};

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
  if (unit.waits && IsOfNeighbours(view.reason)) unit.by_neighbours = view.reason;
  // No machine can be asked for on behalf of what is left out.
  if (IsLeftOut(unit)) unit.waits = false;
  return unit;
}

std::string LeftOutBy(const DemandUnit& unit) {
  const std::vector<model::Requirement>& requirements = unit.profile.requirements();
  const auto at = std::ranges::find_if_not(requirements, IsOfProtocol);
  if (at != requirements.end()) {
    return fmt::format("the shard's protocol cannot express \"{}\": use In with the values that are meant",
                       ToString(*at));
  }
  const size_t bytes = TextsOfNeed(unit);
  if (bytes <= model::kMostTextsOfNeed) return {};
  return fmt::format(
      "its requirements, spread and group take {} bytes, and the shard takes at most {}: make them fewer", bytes,
      model::kMostTextsOfNeed);
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
  if (!is_new && at->second == node) return;
  at->second = std::move(node);
  summed_.reset();
  if (!at->second.usable) return;
  // It serves again: the raise stays for its hold, as any other.
  for (Correction& correction : corrections_ | std::views::values) correction.barred.erase(id);
}

void Demand::RemoveNode(const std::string& id) {
  const auto at = nodes_.find(id);
  if (at == nodes_.end()) return;
  // What had to be asked for because of its room is not bound any more.
  for (Correction& correction : corrections_ | std::views::values) {
    if (correction.barred.erase(id) > 0) {
      correction.extra = model::SubtractSaturating(correction.extra, at->second.total);
    }
  }
  nodes_.erase(at);
  summed_.reset();
}

void Demand::RemoveWorkloadsBut(const std::vector<contract::WorkloadView>& listed) {
  std::set<std::string_view> ids;
  for (const contract::WorkloadView& view : listed) ids.insert(view.workload);
  if (std::erase_if(units_, [&](const auto& unit) { return !ids.contains(unit.first); }) > 0) summed_.reset();
  std::erase_if(held_, [&](const auto& held) { return !ids.contains(held.first); });
}

std::string Demand::LeftOutBy(const std::string& id) const {
  const auto at = units_.find(id);
  return at == units_.end() ? std::string() : operators::LeftOutBy(at->second);
}

std::map<Demand::Key, Demand::Sum> Demand::Sums() const {
  std::map<Key, Sum> sums;
  NodeSizes sizes(nodes_);
  for (const auto& [id, unit] : units_) {
    if (unit.node.empty() && MUTANT("operators.counts_placed_only")) continue;
    if (IsLeftOut(unit) && !MUTANT("operators.says_every_operator")) continue;
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
  std::map<std::string_view, model::Resources> barred;  // what is free there
  for (const auto& [id, node] : nodes_) {
    const bool counted = std::ranges::any_of(corrections_ | std::views::values,
                                             [&](const Correction& other) { return other.barred.contains(id); });
    if (!node.usable && !counted && MatchesNode(sum.need.profile, node)) barred[id] = node.total;
  }
  for (const DemandUnit& unit : units_ | std::views::values) {
    const bool own = unit.profile.fingerprint() == key.fingerprint && unit.group == key.group;
    // The shard is not told of what is left out: it would not acquire for the room that this takes.
    if (IsLeftOut(unit)) continue;
    if (!own && nodes_.contains(unit.node)) taken = Plus(taken, unit.request);
    if (const auto at = barred.find(unit.node); at != barred.end()) {
      at->second = model::SubtractSaturating(at->second, unit.request);
    }
  }
  for (const Correction& other : corrections_ | std::views::values) taken = Plus(taken, other.extra);
  // While less is bound than that, the shard acquires by itself.
  if (!room.Covers(taken)) return;
  const model::Resources free = model::SubtractSaturating(room, taken);
  model::Resources extra;
  for (const std::string& id : stuck) extra = Plus(extra, units_.at(id).request);
  model::Resources useless = largest;  // what may be free and serve none of them
  for (const auto& [id, amount] : barred) {
    useless = Plus(useless, amount);
    correction.barred.emplace(id);
  }
  for (const auto& [name, amount] : asked.entries()) {
    extra.Set(name, extra.Get(name) + std::min(free.Get(name), useless.Get(name)));
  }
  correction.extra = Plus(correction.extra, extra);
  correction.hold = std::min(correction.hold == Duration::zero() ? hold_ : 2 * correction.hold, kLongestHold * hold_);
  changes.push_back(fmt::format("{} workloads have no node although {} of {} is free: demand of {} raised by {}",
                                stuck.size(), free.ToString(), room.ToString(), key.fingerprint, extra.ToString()));
}

std::map<std::string, model::Resources> Demand::Free() const {
  std::map<std::string, model::Resources> free;
  for (const auto& [id, node] : nodes_) {
    if (node.usable) free[id] = node.total;
  }
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

// An empty node that refuses it says that the next one would as well. Of what is spread over domains, one that stands
// in another domain may not: there the second one of the same domain says so.
bool Demand::EmptyOnesRefuse(const DemandUnit& unit, const std::map<std::string, model::Resources>& free) const {
  if (MUTANT("operators.empty_ones_are_no_answer")) return false;
  std::set<std::string> domains;
  for (const auto& [id, left] : free) {
    const BoundNode& node = nodes_.at(id);
    if (left != node.total || !left.Covers(unit.request) || !MatchesNode(unit.profile, node)) continue;
    if (unit.profile.spread().empty() || !domains.insert(DomainOf(unit.profile, node)).second) return true;
  }
  return false;
}

Demand::Waits Demand::WhatWaits(MonoTime now) const {
  enum class Kind : uint8_t { kStuck, kHelpless, kNeither };
  Waits waits;
  std::map<std::string, model::Resources> free;
  std::map<std::tuple<Key, std::string, std::string>, Kind> known;  // by need, request and refusal
  NodeSizes sizes(nodes_);
  for (const auto& [id, unit] : units_) {
    if (!unit.waits || now - *unit.waiting_since < stuck_after_) continue;
    const Key key{unit.profile.fingerprint(), unit.group};
    const auto [at, fresh] = known.try_emplace({key, unit.request.ToString(), unit.by_neighbours}, Kind::kStuck);
    if (fresh) {
      if (free.empty()) free = Free();
      const auto has_room = [&] {
        return std::ranges::any_of(free, [&](const auto& node) {
          return node.second.Covers(unit.request) && MatchesNode(unit.profile, nodes_.at(node.first));
        });
      };
      const auto refused = [&] {
        const auto correction = corrections_.find(key);
        const bool lately = correction != corrections_.end() && correction->second.useless_until &&
                            now < *correction->second.useless_until;
        return lately || EmptyOnesRefuse(unit, free);
      };
      // For what no bound node could carry the shard acquires by itself: nothing that is bound counts for it.
      const bool beyond =
          !sizes.Carries(unit.profile, unit.request) && !MUTANT("operators.raises_for_what_none_carries");
      if (beyond) {
        at->second = Kind::kNeither;
      } else if (!unit.by_neighbours.empty()) {
        if (refused()) at->second = Kind::kHelpless;
      } else if (has_room()) {
        // It waits for something else: another machine would not help, and the next one would not either.
        at->second = Kind::kNeither;
      }
    }
    if (at->second == Kind::kStuck) waits.stuck[key].push_back(id);
    if (at->second == Kind::kHelpless) waits.helpless[key].push_back(id);
  }
  return waits;
}

Demand::Occupancy Demand::Occupy() const {
  PROBE("operators.occupancy");
  Occupancy occupancy;
  std::map<std::string, model::Resources> free = Free();
  std::map<std::string_view, size_t> places;
  for (const auto& [id, node] : nodes_) {
    places.emplace(id, occupancy.places.size());
    Occupancy::Place& place = occupancy.places.emplace_back(Occupancy::Place{.node = &node});
    if (const auto at = free.find(id); at != free.end()) place.free = std::move(at->second);
  }
  std::map<std::tuple<std::string_view, std::string, bool>, size_t> kinds;
  std::map<std::string_view, size_t> unplaced;  // by fingerprint
  NodeSizes sizes(nodes_);
  for (const DemandUnit& unit : units_ | std::views::values) {
    if (IsLeftOut(unit)) continue;
    if (const auto at = places.find(unit.node); at != places.end()) {
      Occupancy::Place& place = occupancy.places[at->second];
      place.taken = Plus(place.taken, unit.request);
      place.whole |= unit.alone_on_host;
      const auto [kind, is_new] = kinds.try_emplace(
          {unit.profile.fingerprint(), unit.request.ToString(), unit.alone_on_host}, occupancy.kinds.size());
      if (is_new) occupancy.kinds.push_back(&unit);
      place.kinds.push_back(kind->second);
    } else if (sizes.Carries(unit.profile, unit.request)) {
      const auto [sum, is_new] = unplaced.try_emplace(unit.profile.fingerprint(), occupancy.unplaced.size());
      if (is_new) occupancy.unplaced.emplace_back(unit.profile, model::Resources());
      model::Resources& amount = occupancy.unplaced[sum->second].second;
      amount = Plus(amount, unit.request);
    }
  }
  return occupancy;
}

model::Resources Demand::RoomToKeep(const Key& key, const std::map<Key, Sum>& sums,
                                    std::optional<Occupancy>& looked_up) const {
  if (!looked_up) looked_up = Occupy();
  Occupancy& occupancy = *looked_up;
  const Sum& own = sums.at(key);
  const std::vector<bool>& usable = occupancy.MayUse(own.need.profile);
  const auto serves = [&](const model::Profile& profile) {  // one of the nodes that the need may use
    const std::vector<bool>& others = occupancy.MayUse(profile);
    for (size_t i = 0; i < usable.size(); ++i) {
      if (usable[i] && others[i]) return true;
    }
    return false;
  };
  model::Resources asked;  // of what is there, of what is to be, and of other corrections
  for (const auto& [profile, amount] : occupancy.unplaced) {
    if (serves(profile)) asked = Plus(asked, amount);
  }
  for (const auto& [other, correction] : corrections_) {
    const auto sum = sums.find(other);
    if (other != key && sum != sums.end() && serves(sum->second.need.profile)) asked = Plus(asked, correction.extra);
  }
  model::Resources room;
  std::vector<std::pair<int64_t, size_t>> candidates;  // fullness and place
  for (size_t i = 0; i < usable.size(); ++i) {
    if (!usable[i]) continue;
    const Occupancy::Place& place = occupancy.places[i];
    room = Plus(room, place.node->total);
    asked = Plus(asked, place.whole ? place.node->total : place.taken);
    // From one that takes nothing the workloads would go as well, and nothing says that it comes back.
    if (place.node->usable) candidates.emplace_back(Fullness(place.taken, place.node->total), i);
  }
  // The emptiest first: from them the fewest have to go.
  std::ranges::sort(candidates);
  Emptying emptying(occupancy);
  std::vector<const BoundNode*> kept;
  const auto is_surplus = [&](const BoundNode& node) {
    return model::SubtractSaturating(room, node.total).Covers(asked);
  };
  for (const auto& [fullness, i] : candidates) {
    const BoundNode& node = *occupancy.places[i].node;
    if (!is_surplus(node)) continue;
    if (emptying.Empty(i)) {
      room = model::SubtractSaturating(room, node.total);
    } else {
      kept.push_back(&node);
    }
  }
  model::Resources extra;
  if (std::ranges::none_of(kept, [&](const BoundNode* node) { return is_surplus(*node); })) return extra;
  for (const auto& [name, amount] : own.need.aggregate.entries()) {
    extra.Set(name, std::max<int64_t>(0, room.Get(name) - asked.Get(name)));
  }
  return extra;
}

void Demand::FindRaises(std::optional<Occupancy>& occupancy, MonoTime now, std::vector<std::string>& changes) {
  const std::map<Key, Sum> sums = Sums();
  for (const auto& [key, sum] : sums) {
    if (key.group.starts_with(kSizeGroup)) continue;
    const model::Resources extra = RoomToKeep(key, sums, occupancy);
    if (extra.empty()) continue;
    corrections_[key] = {.extra = extra, .calm_since = now, .hold = hold_};
    changes.push_back(
        fmt::format("what is bound shows an earlier raise: demand of {} raised by {}, as long as its workloads fit "
                    "on no fewer nodes",
                    key.fingerprint, extra.ToString()));
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
    if (!extra.empty()) corrections_[key] = {.extra = extra, .calm_since = now, .hold = hold_};
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

void Demand::Lower(const Key& key, Correction& correction, bool useless, const std::map<Key, Sum>& sums,
                   std::optional<Occupancy>& occupancy, MonoTime now, std::vector<std::string>& changes) {
  correction.stuck.clear();
  if (!correction.calm_since) correction.calm_since = now;
  if (correction.extra.empty()) return;
  const bool over = useless ? !correction.useless_until || now >= *correction.useless_until
                            : now - *correction.calm_since >= correction.hold;
  if (!over) return;
  if (useless) correction.useless_until = now + correction.hold;
  model::Resources kept;
  if (sums.contains(key)) kept = Min(correction.extra, RoomToKeep(key, sums, occupancy));
  const model::Resources less = model::SubtractSaturating(correction.extra, kept);
  if (!kept.empty()) correction.calm_since = now;
  if (less.empty()) return;
  correction.extra = kept;
  changes.push_back(fmt::format("demand of {} lowered by {}: {}", key.fingerprint, less.ToString(),
                                useless ? "another machine does not help its workloads" : "its workloads run"));
}

std::vector<std::string> Demand::Review(bool more_comes, MonoTime now) {
  summed_.reset();
  std::vector<std::string> changes;
  std::optional<Occupancy> occupancy;  // most reviews need none
  if (!std::exchange(reviewed_, true)) FindRaises(occupancy, now, changes);
  const Waits waits = WhatWaits(now);
  ReviewSizes(more_comes, now, changes);
  const std::map<Key, Sum> sums = Sums();
  for (const auto& [key, ids] : waits.stuck) {
    Correction& correction = corrections_[key];
    correction.stuck = ids;
    correction.calm_since.reset();
    if (!more_comes && !MUTANT("operators.never_raises") && sums.contains(key)) Raise(key, sums.at(key), ids, changes);
  }
  helpless_.clear();
  for (const std::string& id : waits.helpless | std::views::values | std::views::join) {
    helpless_.emplace(id, units_.at(id).by_neighbours);
  }
  for (auto at = corrections_.begin(); at != corrections_.end();) {
    auto& [key, correction] = *at;
    if (!waits.stuck.contains(key)) {
      Lower(key, correction, waits.helpless.contains(key), sums, occupancy, now, changes);
    }
    // A profile remembers for some holds how often it was corrected.
    const bool forgotten = correction.calm_since && now - *correction.calm_since >= 4 * correction.hold;
    const bool ended = !sums.contains(key) || (correction.extra.empty() && forgotten);
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
  total.left_out = static_cast<size_t>(std::ranges::count_if(units_ | std::views::values, IsLeftOut));
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
