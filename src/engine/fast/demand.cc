#include "engine/fast/demand.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "base/probe.h"
#include "model/quantity.h"

namespace muster::engine::fast {
namespace {

using model::Operator;

int64_t AddCapped(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

// Same becomes Exists (In where it named values), spread is dropped.
model::Profile FoldedProfile(const model::Profile& profile) {
  model::ProfileParts parts = profile.parts();
  parts.spread.clear();
  for (model::Requirement& requirement : parts.requirements) {
    if (requirement.op != Operator::kSame) continue;
    requirement.op = requirement.values.empty() ? Operator::kExists : Operator::kIn;
  }
  return model::Profile(std::move(parts));
}

uint64_t Precedence(const model::Profile& profile) {
  const auto priority = static_cast<uint64_t>(int64_t{profile.priority()} + (int64_t{1} << 31));
  return priority << 16 | static_cast<uint64_t>(profile.interruption()) << 8 |
         static_cast<uint64_t>(profile.reclamation());
}

Amounts Max(const Amounts& a, const Amounts& b) {
  Amounts larger;
  for (size_t d = 0; d < kMaxDimensions; ++d) larger[d] = std::max(a[d], b[d]);
  return larger;
}

}  // namespace

ProfileId Demand::Learn(const model::Profile& profile) {
  const ProfileId id = inventory_.ProfileOf(profile.fingerprint());
  if (infos_.size() <= id) infos_.resize(id + 1);
  if (infos_[id].filter != kNoId) return id;
  ProfileInfo info{.profile = profile, .filter = inventory_.catalogue().FilterOf(profile)};
  info.is_gang = inventory_.catalogue().filter(info.filter).is_gang();
  info.spreads = !inventory_.catalogue().filter(info.filter).spread.empty();
  info.precedence = Precedence(profile);
  if (info.is_gang) info.folded = Learn(FoldedProfile(profile));
  infos_[id] = std::move(info);
  return id;
}

ProfileId Demand::ProfileOf(const model::Profile& profile) {
  const std::string* shared = &profile.fingerprint();
  Seen& seen = profiles_seen_[(reinterpret_cast<uintptr_t>(shared) >> 5) % profiles_seen_.size()];
  const bool known = seen.shared == shared && (seen.rollup == rollups_ || seen.kept == shared);
  if (known) return seen.profile;
  const ProfileId id = Learn(profile);
  seen = {.rollup = rollups_, .shared = shared, .kept = &infos_[id].profile.fingerprint(), .profile = id};
  return id;
}

KeyId Demand::FoldKeyOf(ClusterId cluster, ProfileId folded, const Amounts& aggregate) {
  Hasher hasher;
  for (size_t d = 0; d < kMaxDimensions; ++d) {
    if (aggregate[d] != 0) hasher.Add(static_cast<uint64_t>(aggregate[d]) * kMaxDimensions + d);
  }
  const uint64_t hash = hasher.value();
  FoldSeen& seen = folds_seen_[(hash + folded) % folds_seen_.size()];
  if (seen.rollup == rollups_ && seen.profile == folded && seen.aggregate == aggregate) return seen.key;
  uint32_t at = fold_name_lookup_.Find(hash, [&](uint32_t i) { return fold_names_[i].first == aggregate; });
  if (at == kNoId) {
    const Catalogue& catalogue = inventory_.catalogue();
    std::string name = "fold:";
    for (const uint32_t d : catalogue.by_name()) {
      if (aggregate[d] == 0) continue;
      const std::string_view comma = name.size() == 5 ? "" : ",";
      name += fmt::format("{}{}={}", comma, catalogue.dimension_names()[d], model::FormatQuantity(aggregate[d]));
    }
    at = static_cast<uint32_t>(fold_names_.size());
    fold_names_.emplace_back(aggregate, std::move(name));
    fold_name_lookup_.Insert(hash, at);
  }
  seen = {rollups_, folded, aggregate, inventory_.KeyOf(cluster, folded, fold_names_[at].second)};
  return seen.key;
}

Demand::Listing& Demand::ListingOf(KeyId key) {
  if (listings_.size() <= key) listings_.resize(key + 1);
  return listings_[key];
}

Demand::Row Demand::Read(ClusterId cluster, const model::Need& from) {
  Catalogue& catalogue = inventory_.catalogue();
  Row row{.profile = ProfileOf(from.profile), .arrival = from.arrival.time_since_epoch().count()};
  row.aggregate = catalogue.Dense(from.aggregate);
  const Amounts min_unit = catalogue.Dense(from.min_unit);
  row.key = inventory_.KeyOf(cluster, row.profile, from.group);
  const ProfileInfo& info = infos_[row.profile];
  row.fit = catalogue.FitOf(info.filter, min_unit);
  if (info.is_gang) {
    row.fold_key = FoldKeyOf(cluster, info.folded, row.aggregate);
    row.fold_fit = catalogue.FitOf(infos_[info.folded].filter, Max(row.aggregate, min_unit));
  }
  return row;
}

bool Demand::IsAmountOnly(const Row& row, const model::Need& from, bool stamped) const {
  const model::Profile& profile = infos_[row.profile].profile;
  const bool same_profile = &profile.fingerprint() == &from.profile.fingerprint() || profile == from.profile;
  return same_profile && inventory_.key(row.key).group == from.group &&
         (stamped || row.arrival == from.arrival.time_since_epoch().count());
}

// A row that only wants more or less than it did.
void Demand::Reread(Row& row, const model::Need& from) {
  Catalogue& catalogue = inventory_.catalogue();
  row.aggregate = catalogue.Dense(from.aggregate);
  const Amounts min_unit = catalogue.Dense(from.min_unit);
  if (catalogue.fit_as_is(row.fit).min_unit == min_unit) return;
  row.fit = catalogue.FitOf(infos_[row.profile].filter, min_unit);
}

void Demand::Replace(ClusterId cluster, const Rollup& rollup, std::optional<WallTime> now) {
  if (clusters_.size() <= cluster) clusters_.resize(cluster + 1);
  ClusterDemand& demand = clusters_[cluster];
  ++rollups_;
  if (now) latest_ = std::max(latest_, now->time_since_epoch().count());
  const bool same_count = rollup.rows.size() == demand.rows.size();
  if (same_count && std::ranges::equal(rollup.digests, demand.digests)) return;
  std::vector<Row> fresh;       // rows that changed, or all of them
  std::vector<uint32_t> where;  // their positions
  bool in_place = same_count && !demand.changed && !demand.has_equal_rows;
  for (uint32_t i = 0; i < rollup.rows.size(); ++i) {
    const bool known = i < demand.rows.size() && rollup.digests[i] == demand.digests[i];
    if (same_count && known) continue;
    if (in_place && fresh.empty() && IsAmountOnly(demand.rows[i], rollup.rows[i], now.has_value()) &&
        !infos_[demand.rows[i].profile].is_gang) {
      // The common case: a plain need wants more or less. It keeps its place in every order.
      Reread(demand.rows[i], rollup.rows[i]);
      Patch(demand, demand.rows[i]);
      continue;
    }
    Row row = known ? demand.rows[i] : Read(cluster, rollup.rows[i]);
    Listing& listing = ListingOf(row.key);
    if (!now) {
      listing.arrival = row.arrival;
    } else {
      if (listing.rows == 0) listing.arrival = row.arrival != 0 ? row.arrival : latest_;
      row.arrival = listing.arrival;
    }
    ++listing.rows;
    // A plain row of the same key keeps its place in every order.
    in_place = in_place && (row.key == demand.rows[i].key || MUTANT("fast.patch_another")) &&
               row.arrival == demand.rows[i].arrival && !infos_[row.profile].is_gang;
    fresh.push_back(row);
    where.push_back(i);
  }
  demand.digests.assign(rollup.digests.begin(), rollup.digests.end());
  demand.changed = demand.changed || !in_place;
  if (!same_count) {
    for (const Row& row : demand.rows) --ListingOf(row.key).rows;
    demand.rows = std::move(fresh);
    return;
  }
  for (size_t n = 0; n < fresh.size(); ++n) {
    Row& row = demand.rows[where[n]];
    --ListingOf(row.key).rows;
    const uint32_t need = row.need;
    row = fresh[n];
    row.need = need;
    if (in_place) Patch(demand, row);
  }
}

// Whether a need that settles would take the same if it wanted this.
bool Demand::TakesTheSame(const NeedRow& need, const Amounts& aggregate) const {
  if (need.aggregate == aggregate || MUTANT("fast.settled_forever")) return true;
  if (need.is_gang || need.habit == nullptr || !need.habit->in_order) return false;
  const Habit& habit = *need.habit;
  bool needs_all = false;
  for (size_t d = 0; d < inventory_.catalogue().dimensions(); ++d) {
    if (aggregate[d] == 0) continue;
    if (need.aggregate[d] == 0 || habit.taken[d] < aggregate[d]) return false;
    needs_all = needs_all || habit.taken[d] - habit.least[d] < aggregate[d] || MUTANT("fast.settled_with_more");
  }
  return needs_all;
}

// What the list before this one knew of the need.
void Demand::Inherit(NeedRow& need) {
  const uint32_t place = NotesOf(need.key).before;
  if (place == kNoId) {
    inventory_.AllowSettling(need.key, false);
    return;
  }
  NotesOf(need.key).before = kNoId;  // of equal rows, the first
  NeedRow& before = before_[place];
  if (before.fit != need.fit || before.is_gang != need.is_gang || !TakesTheSame(before, need.aggregate)) {
    inventory_.AllowSettling(need.key, false);
  }
  need.own = std::move(before.own);
  need.own_version = before.own_version;
  need.own_fit = before.own_fit;
  need.habit = std::move(before.habit);
}

Demand::KeyNotes& Demand::NotesOf(KeyId key) {
  if (notes_.size() <= key) notes_.resize(std::max<size_t>(inventory_.keys(), key + 1));
  KeyNotes& notes = notes_[key];
  if (notes.turn != normalisations_) notes = {.turn = normalisations_};
  return notes;
}

// A plain row keeps its place, its need only wants something else.
void Demand::Patch(ClusterDemand& demand, const Row& row) {
  NeedRow& need = demand.needs[row.need];
  if (need.fit != row.fit || !TakesTheSame(need, row.aggregate)) inventory_.AllowSettling(need.key, false);
  need.aggregate = row.aggregate;
  if (need.fit == row.fit) return;
  need.fit = row.fit;
  ++fits_version_;
}

// Whether a free machine could host the fold: asked often, answered anew when free groups come or go.
bool Demand::FreeHost(FitId fit) {
  if (hosts_.size() <= fit) hosts_.resize(fit + 1);
  Host& host = hosts_[fit];
  if (host.version == inventory_.supply_version()) return host.exists;
  if (host.version == 0) asked_.push_back(fit);
  host.version = inventory_.supply_version();
  host.exists = false;
  for (const ClassId c : inventory_.catalogue().fit(fit).classes) {
    for (const GroupId g : inventory_.catalogue().cls(c).free) {
      if (inventory_.group(g).size > 0) return host.exists = true;
    }
  }
  return false;
}

bool Demand::HasHost(ClusterId cluster, FitId fit) {
  if (FreeHost(fit)) return true;
  const Fit& classes = inventory_.catalogue().fit(fit);
  const Cluster& row = inventory_.cluster(cluster);
  for (const auto* list : {&row.bound, &row.in_flight}) {
    for (const GroupId g : *list) {
      if (inventory_.group(g).size > 0 && classes.Has(inventory_.group(g).cls)) return true;
    }
  }
  return false;
}

// Its own machines already cover it in one domain: folding would give them away.
bool Demand::IsAssembled(KeyId id, FitId fit_id, const Amounts& aggregate) {
  if (!inventory_.key_state(id).has_own) return false;
  const Key& key = inventory_.key(id);
  Catalogue& catalogue = inventory_.catalogue();
  const Fit& fit = catalogue.FitWithDomains(fit_id);
  std::map<uint32_t, Amounts> missing;
  for (const auto* list : {&key.own, &key.creating}) {
    for (const GroupId g : *list) {
      const Group& group = inventory_.group(g);
      if (!fit.Has(group.cls) || group.size == 0) continue;
      Amounts& rest = missing.emplace(DomainOf(fit, group.cls), aggregate).first->second;
      Subtract(rest, catalogue.each(group.cls), group.size, catalogue.dimensions());
      if (IsZero(rest, catalogue.dimensions())) return true;
    }
  }
  return false;
}

NeedRow Demand::Plain(ClusterId cluster, const Row& row, uint32_t position) {
  const ProfileInfo& info = infos_[row.profile];
  NeedRow need{.key = row.key,
               .cluster = cluster,
               .profile = row.profile,
               .fit = row.fit,
               .is_gang = info.is_gang,
               .spreads = info.spreads,
               .precedence = info.precedence,
               .arrival = row.arrival,
               .aggregate = row.aggregate,
               .row = position};
  return need;
}

void Demand::Normalise(ClusterId cluster) {
  ClusterDemand& demand = clusters_[cluster];
  ++normalisations_;
  std::swap(before_, demand.needs);
  for (uint32_t i = 0; i < before_.size() && !demand.has_equal_rows; ++i) NotesOf(before_[i].key).before = i;
  demand.needs.clear();
  demand.now_called.clear();
  demand.has_equal_rows = false;
  demand.has_gangs = false;
  demand.needs.reserve(before_.size() + 1);
  for (uint32_t i = 0; i < demand.rows.size(); ++i) {
    const Row& row = demand.rows[i];
    const ProfileInfo& info = infos_[row.profile];
    if (!info.is_gang) {
      demand.needs.push_back(Plain(cluster, row, i));
      continue;
    }
    demand.has_gangs = true;
    KeyId key = row.key;
    if (const uint32_t count = ++NotesOf(row.key).seen; count > 1) {
      key = inventory_.KeyOf(cluster, row.profile, fmt::format("{}#{}", inventory_.key(row.key).group, count));
    }
    demand.rows[i].gang_key = key;
    demand.rows[i].folded = !IsAssembled(key, row.fit, row.aggregate) && HasHost(cluster, row.fold_fit);
    if (!row.folded) {
      NeedRow gang = Plain(cluster, row, i);
      gang.key = key;
      demand.now_called.emplace_back(row.fold_key, key);
      demand.needs.push_back(std::move(gang));
      continue;
    }
    demand.now_called.emplace_back(key, row.fold_key);
    uint32_t& slot = NotesOf(row.fold_key).slot;
    if (slot == kNoId) {
      slot = static_cast<uint32_t>(demand.needs.size());
      NeedRow folded = Plain(cluster, row, i);
      folded.key = row.fold_key;
      folded.profile = info.folded;
      folded.is_gang = false;
      folded.fit = row.fold_fit;
      demand.needs.push_back(std::move(folded));
      continue;
    }
    NeedRow& folded = demand.needs[slot];
    for (size_t d = 0; d < kMaxDimensions; ++d) folded.aggregate[d] = AddCapped(folded.aggregate[d], row.aggregate[d]);
    const Amounts& known = inventory_.catalogue().fit_as_is(folded.fit).min_unit;
    const Amounts min_unit = Max(known, inventory_.catalogue().fit_as_is(row.fit).min_unit);
    if (min_unit != known) {
      folded.fit = inventory_.catalogue().FitOf(infos_[info.folded].filter, min_unit);
    }
    folded.arrival = std::min(folded.arrival, row.arrival);
    folded.more_rows.push_back(i);
  }
  stamp_of_.resize(inventory_.keys(), kNoStamp);
  for (NeedRow& need : demand.needs) {
    demand.has_equal_rows = demand.has_equal_rows || NotesOf(need.key).listed;
    NotesOf(need.key).listed = true;
    Inherit(need);
    need.stamp = stamp_of_[need.key];
    if (need.stamp != kNoStamp) continue;
    const Key& key = inventory_.key(need.key);
    const model::Profile& profile = infos_[need.profile].profile;
    need.stamp = stamp_of_[need.key] = inventory_.StampOf({.profile = need.profile,
                                                           .group = key.group,
                                                           .priority = profile.priority(),
                                                           .interruption = model::UpperBound(profile.interruption()),
                                                           .reclamation = model::UpperBound(profile.reclamation())});
  }
  sort_keys_.clear();
  for (NeedRow& need : demand.needs) sort_keys_.push_back(SortKeyOf(need));
  const auto less = [&](const SortKey& a, const SortKey& b) { return OrderLess(a, b); };
  if (!std::ranges::is_sorted(sort_keys_, less)) {
    std::ranges::sort(sort_keys_, less);
    moved_.clear();
    moved_.reserve(demand.needs.size());
    for (const SortKey& key : sort_keys_) moved_.push_back(std::move(*key.need));
    std::swap(moved_, demand.needs);
  }
  for (uint32_t i = 0; i < demand.needs.size(); ++i) demand.rows[demand.needs[i].row].need = i;
  demand.changed = false;
}

Demand::SortKey Demand::SortKeyOf(NeedRow& need) const {
  return {.precedence = need.precedence,
          .arrival = need.arrival,
          .cluster = need.cluster,
          .cluster_rank = inventory_.cluster_rank(need.cluster),
          .profile_rank = inventory_.profile_rank(need.profile),
          .need = &need};
}

// Of one cluster.
bool Demand::OrderLess(const SortKey& a, const SortKey& b) const {
  if (a.precedence != b.precedence) return a.precedence > b.precedence;
  if (a.arrival != b.arrival) return a.arrival < b.arrival;
  if (a.profile_rank != b.profile_rank) return a.profile_rank < b.profile_rank;
  return SameKeyLess(*a.need, *b.need);
}

// Of one cluster and profile.
bool Demand::SameKeyLess(const NeedRow& a, const NeedRow& b) const {
  if (a.key != b.key) return inventory_.key(a.key).group < inventory_.key(b.key).group;
  if (a.fit == b.fit && a.aggregate == b.aggregate) return a.row < b.row;
  const Catalogue& catalogue = inventory_.catalogue();
  const Amounts& unit_a = catalogue.fit_as_is(a.fit).min_unit;
  const Amounts& unit_b = catalogue.fit_as_is(b.fit).min_unit;
  for (const auto& [x, y] : {std::pair(&unit_a, &unit_b), std::pair(&a.aggregate, &b.aggregate)}) {
    for (const uint32_t d : catalogue.by_name()) {
      if ((*x)[d] != (*y)[d]) return (*x)[d] < (*y)[d];
    }
  }
  return a.row < b.row;
}

// Whether the cluster's gangs are folded as before, though its machines or the free ones changed.
bool Demand::FoldingStays(ClusterId cluster) {
  for (const Row& row : clusters_[cluster].rows) {
    if (row.gang_key == kNoId) continue;
    const bool stays = row.folded ? !inventory_.key_state(row.gang_key).has_own && FreeHost(row.fold_fit)
                                  : inventory_.catalogue().fit(row.fold_fit).classes.empty();
    if (!stays) return false;
  }
  return true;
}

// Free hosts decide over folding in every cluster: a change in one of them makes all look again.
void Demand::RefreshHosts() {
  if (hosts_version_ == inventory_.supply_version()) return;
  hosts_version_ = inventory_.supply_version();
  for (const FitId fit : asked_) {
    const bool before = hosts_[fit].exists;
    if (FreeHost(fit) != before && !MUTANT("fast.stale_host")) ++folding_;
  }
}

void Demand::BeginCycle() {
  RefreshHosts();
  clusters_.resize(std::max(clusters_.size(), inventory_.clusters()));
  is_anew_.assign(clusters_.size(), 0);
  anew_.clear();
  for (ClusterId c = 0; c < clusters_.size(); ++c) {
    ClusterDemand& demand = clusters_[c];
    const uint64_t version = inventory_.cluster(c).version;
    const bool moved = demand.has_gangs && (demand.seen_version != version || demand.seen_folding != folding_);
    const bool refold = !demand.changed && moved && !MUTANT("fast.stale_fold") && !FoldingStays(c);
    demand.seen_version = version;
    demand.seen_folding = folding_;
    if (!demand.changed && !refold) continue;
    is_anew_[c] = 1;
    anew_.push_back(c);
  }
  if (anew_.empty()) return;
  inventory_.RankProfiles();
  ++listing_;
  // The needs of these clusters move in memory: their old places leave the order before. A new cluster or profile may
  // have moved the ranks of the others, but never past each other.
  std::erase_if(sorted_, [&](const SortKey& key) { return is_anew_[key.cluster] != 0; });
  if (ranked_clusters_ != inventory_.clusters() || ranked_profiles_ != inventory_.profiles()) {
    for (SortKey& key : sorted_) key = SortKeyOf(*key.need);
    ranked_clusters_ = inventory_.clusters();
    ranked_profiles_ = inventory_.profiles();
  }
  const auto middle = static_cast<ptrdiff_t>(sorted_.size());
  for (const ClusterId c : anew_) {
    Normalise(c);
    clusters_[c].listed = listing_;
    listed_in_.resize(inventory_.keys(), 0);
    for (NeedRow& need : clusters_[c].needs) {
      listed_in_[need.key] = listing_;
      sorted_.push_back(SortKeyOf(need));
    }
  }
  // Needs of one cluster lie in order already.
  const auto less = [](const SortKey& a, const SortKey& b) {
    if (a.precedence != b.precedence) return a.precedence > b.precedence;
    if (a.arrival != b.arrival) return a.arrival < b.arrival;
    if (a.cluster_rank != b.cluster_rank) {
      return MUTANT("fast.cluster_order") ? a.cluster < b.cluster : a.cluster_rank < b.cluster_rank;
    }
    return a.need < b.need;
  };
  std::sort(sorted_.begin() + middle, sorted_.end(), less);
  if (middle != 0) std::inplace_merge(sorted_.begin(), sorted_.begin() + middle, sorted_.end(), less);
  order_.clear();
  keys_.clear();
  gangs_ = 0;
  for (const SortKey& key : sorted_) {
    key.need->id = static_cast<NeedId>(order_.size());
    if (key.need->is_gang) key.need->gang = static_cast<uint32_t>(gangs_++);
    order_.push_back(key.need);
    keys_.push_back(key.need->key);
  }
}

bool Demand::IsListed(KeyId key) const {
  const ClusterId cluster = inventory_.key(key).cluster;
  return key < listed_in_.size() && cluster < clusters_.size() && listed_in_[key] != 0 &&
         listed_in_[key] == clusters_[cluster].listed;
}

KeyId Demand::NowCalled(KeyId key) const {
  const ClusterId cluster = inventory_.key(key).cluster;
  if (cluster >= clusters_.size()) return key;
  for (const auto& [from, to] : clusters_[cluster].now_called) {
    if (from == key) return to;
  }
  return key;
}

size_t Demand::rows() const {
  size_t count = 0;
  for (const ClusterDemand& demand : clusters_) count += demand.rows.size();
  return count;
}

}  // namespace muster::engine::fast
