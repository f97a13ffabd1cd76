#include "engine/fast/demand.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "base/hash.h"
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

std::string FoldName(const model::Resources& aggregate) {
  std::string text = "fold:";
  for (const auto& [name, amount] : aggregate.entries()) {
    text += fmt::format("{}{}={}", text.size() == 5 ? "" : ",", name, model::FormatQuantity(amount));
  }
  return text;
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

uint64_t RowDigest(const model::Need& need) {
  Hasher hasher;
  hasher.Add(need.profile.fingerprint());
  hasher.Add(need.group);
  for (const auto* resources : {&need.aggregate, &need.min_unit}) {
    hasher.Add(resources->entries().size());
    for (const auto& [name, amount] : resources->entries()) {
      hasher.Add(name);
      hasher.Add(static_cast<uint64_t>(amount));
    }
  }
  hasher.Add(static_cast<uint64_t>(need.arrival.time_since_epoch().count()));
  return hasher.value();
}

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

Demand::Listing& Demand::ListingOf(KeyId key) {
  if (listings_.size() <= key) listings_.resize(key + 1);
  return listings_[key];
}

Demand::Row Demand::Read(ClusterId cluster, const RollupRow& from) {
  Catalogue& catalogue = inventory_.catalogue();
  Row row{.need = from.need, .digest = from.digest};
  row.profile = Learn(from.need.profile);
  row.aggregate = catalogue.Dense(from.need.aggregate);
  row.min_unit = catalogue.Dense(from.need.min_unit);
  row.key = inventory_.KeyOf(cluster, row.profile, from.need.group);
  const ProfileInfo& info = infos_[row.profile];
  row.fit = catalogue.FitOf(info.filter, row.min_unit);
  if (info.is_gang) {
    row.fold_key = inventory_.KeyOf(cluster, info.folded, FoldName(from.need.aggregate));
    row.fold_fit = catalogue.FitOf(infos_[info.folded].filter, Max(row.aggregate, row.min_unit));
  }
  return row;
}

void Demand::Replace(ClusterId cluster, std::span<const RollupRow> rows, std::optional<WallTime> now) {
  if (clusters_.size() <= cluster) clusters_.resize(cluster + 1);
  ClusterDemand& demand = clusters_[cluster];
  if (now) latest_ = std::max(latest_, now->time_since_epoch().count());
  std::vector<Row> fresh;       // rows that changed, or all of them
  std::vector<Row> old;         // rows they take the place of
  std::vector<uint32_t> where;  // positions of `fresh`
  const bool same_count = rows.size() == demand.rows.size();
  bool in_place = same_count && !demand.changed && !demand.has_equal_rows;
  for (uint32_t i = 0; i < rows.size(); ++i) {
    if (same_count && rows[i].digest == demand.rows[i].digest) continue;
    Row row =
        i < demand.rows.size() && rows[i].digest == demand.rows[i].digest ? demand.rows[i] : Read(cluster, rows[i]);
    Listing& listing = ListingOf(row.key);
    if (!now) {
      listing.arrival = row.need.arrival.time_since_epoch().count();
    } else {
      const int64_t named = row.need.arrival.time_since_epoch().count();
      if (listing.rows == 0) listing.arrival = named != 0 ? named : latest_;
      row.need.arrival = WallTime(WallTime::duration(listing.arrival));
    }
    ++listing.rows;
    // A plain row of the same key keeps its place in every order.
    in_place = in_place && (row.key == demand.rows[i].key || MUTANT("fast.patch_another")) &&
               row.need.arrival == demand.rows[i].need.arrival && !infos_[row.profile].is_gang;
    fresh.push_back(std::move(row));
    where.push_back(i);
  }
  if (!same_count) {
    for (const Row& row : demand.rows) --ListingOf(row.key).rows;
    demand.rows = std::move(fresh);
    demand.changed = true;
    return;
  }
  for (size_t n = 0; n < fresh.size(); ++n) {
    Row& row = demand.rows[where[n]];
    --ListingOf(row.key).rows;
    row = std::move(fresh[n]);
    if (!in_place) continue;
    for (NeedRow& need : demand.needs) {
      if (need.is_gang || need.key != row.key || need.rows.front() != where[n]) continue;
      need.aggregate = row.aggregate;
      need.min_unit = row.min_unit;
      need.fit = row.fit;
    }
  }
  if (!in_place && !fresh.empty()) demand.changed = true;
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
      if (inventory_.group(g).members.size() > 0) return host.exists = true;
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
      if (inventory_.group(g).members.size() > 0 && classes.Has(inventory_.group(g).cls)) return true;
    }
  }
  return false;
}

// Its own machines already cover it in one domain: folding would give them away.
bool Demand::IsAssembled(KeyId id, FitId fit_id, const Amounts& aggregate) {
  const Key& key = inventory_.key(id);
  if (key.own.empty() && key.creating.empty()) return false;
  Catalogue& catalogue = inventory_.catalogue();
  const Fit& fit = catalogue.FitWithDomains(fit_id);
  std::map<uint32_t, Amounts> missing;
  for (const auto* list : {&key.own, &key.creating}) {
    for (const GroupId g : *list) {
      const Group& group = inventory_.group(g);
      if (!fit.Has(group.cls) || group.members.size() == 0) continue;
      Amounts& rest = missing.emplace(DomainOf(fit, group.cls), aggregate).first->second;
      Subtract(rest, catalogue.each(group.cls), group.members.size(), catalogue.dimensions());
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
               .arrival = row.need.arrival.time_since_epoch().count(),
               .aggregate = row.aggregate,
               .min_unit = row.min_unit,
               .rows = {position}};
  return need;
}

void Demand::Normalise(ClusterId cluster) {
  ClusterDemand& demand = clusters_[cluster];
  demand.needs.clear();
  demand.now_called.clear();
  demand.has_equal_rows = false;
  demand.has_gangs = false;
  seen_.clear();
  fold_slot_.clear();
  for (uint32_t i = 0; i < demand.rows.size(); ++i) {
    const Row& row = demand.rows[i];
    const ProfileInfo& info = infos_[row.profile];
    if (!info.is_gang) {
      demand.needs.push_back(Plain(cluster, row, i));
      continue;
    }
    demand.has_gangs = true;
    KeyId key = row.key;
    if (const uint32_t count = ++seen_[row.key]; count > 1) {
      key = inventory_.KeyOf(cluster, row.profile, fmt::format("{}#{}", row.need.group, count));
    }
    if (IsAssembled(key, row.fit, row.aggregate) || !HasHost(cluster, row.fold_fit)) {
      NeedRow gang = Plain(cluster, row, i);
      gang.key = key;
      demand.now_called.emplace_back(row.fold_key, key);
      demand.needs.push_back(std::move(gang));
      continue;
    }
    demand.now_called.emplace_back(key, row.fold_key);
    const auto [slot, is_new] = fold_slot_.emplace(row.fold_key, static_cast<uint32_t>(demand.needs.size()));
    if (is_new) {
      NeedRow folded = Plain(cluster, row, i);
      folded.key = row.fold_key;
      folded.profile = info.folded;
      folded.is_gang = false;
      folded.min_unit = Max(row.aggregate, row.min_unit);
      folded.fit = row.fold_fit;
      demand.needs.push_back(std::move(folded));
      continue;
    }
    NeedRow& folded = demand.needs[slot->second];
    for (size_t d = 0; d < kMaxDimensions; ++d) folded.aggregate[d] = AddCapped(folded.aggregate[d], row.aggregate[d]);
    const Amounts min_unit = Max(folded.min_unit, row.min_unit);
    if (min_unit != folded.min_unit) {
      folded.min_unit = min_unit;
      folded.fit = inventory_.catalogue().FitOf(infos_[info.folded].filter, min_unit);
    }
    folded.arrival = std::min(folded.arrival, row.need.arrival.time_since_epoch().count());
    folded.rows.push_back(i);
  }
  for (NeedRow& need : demand.needs) {
    const Key& key = inventory_.key(need.key);
    const model::Profile& profile = infos_[need.profile].profile;
    need.stamp = inventory_.StampOf({.profile = need.profile,
                                     .group = key.group,
                                     .priority = profile.priority(),
                                     .interruption = model::UpperBound(profile.interruption()),
                                     .reclamation = model::UpperBound(profile.reclamation())});
  }
  std::ranges::sort(demand.needs, [&](const NeedRow& a, const NeedRow& b) { return OrderLess(a, b); });
  for (size_t i = 1; i < demand.needs.size(); ++i) {
    demand.has_equal_rows = demand.has_equal_rows || demand.needs[i].key == demand.needs[i - 1].key;
  }
  demand.changed = false;
}

bool Demand::OrderLess(const NeedRow& a, const NeedRow& b) const {
  if (a.precedence != b.precedence) return a.precedence > b.precedence;
  if (a.arrival != b.arrival) return a.arrival < b.arrival;
  if (a.cluster != b.cluster && MUTANT("fast.cluster_order")) return a.cluster < b.cluster;
  if (a.cluster != b.cluster) return inventory_.cluster_rank(a.cluster) < inventory_.cluster_rank(b.cluster);
  if (a.key != b.key) {
    if (a.profile != b.profile) return inventory_.fingerprint(a.profile) < inventory_.fingerprint(b.profile);
    return inventory_.key(a.key).group < inventory_.key(b.key).group;
  }
  for (const auto member : {&NeedRow::min_unit, &NeedRow::aggregate}) {
    for (const uint32_t d : inventory_.catalogue().by_name()) {
      if ((a.*member)[d] != (b.*member)[d]) return (a.*member)[d] < (b.*member)[d];
    }
  }
  return a.rows < b.rows;
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
    const bool refold = demand.has_gangs && !MUTANT("fast.stale_fold") &&
                        (demand.seen_version != version || demand.seen_folding != folding_);
    demand.seen_version = version;
    if (!demand.changed && !refold) continue;
    is_anew_[c] = 1;
    anew_.push_back(c);
  }
  if (anew_.empty()) return;
  // The needs of these clusters move in memory: their old places leave the order before.
  std::erase_if(order_, [&](const NeedRow* need) { return is_anew_[need->cluster] != 0; });
  const auto middle = static_cast<ptrdiff_t>(order_.size());
  for (const ClusterId c : anew_) {
    Normalise(c);
    clusters_[c].seen_folding = folding_;
    for (NeedRow& need : clusters_[c].needs) order_.push_back(&need);
  }
  const auto less = [&](const NeedRow* a, const NeedRow* b) { return OrderLess(*a, *b); };
  std::sort(order_.begin() + middle, order_.end(), less);
  if (middle != 0) std::inplace_merge(order_.begin(), order_.begin() + middle, order_.end(), less);
  ++listing_;
  listed_in_.resize(inventory_.keys(), 0);
  for (const NeedRow* need : order_) listed_in_[need->key] = listing_;
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
