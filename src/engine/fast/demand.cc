#include "engine/fast/demand.h"

#include <fmt/compile.h>

#include <algorithm>
#include <compare>
#include <limits>
#include <tuple>
#include <utility>

#include "base/probe.h"
#include "model/quantity.h"

namespace muster::engine::fast {
namespace {

using model::Operator;

constexpr std::string_view kFoldPrefix = "fold:";

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

// By the first name, in order, of which they have different amounts.
std::strong_ordering Compare(const model::Resources& a, const model::Resources& b) {
  auto x = a.entries().begin();
  auto y = b.entries().begin();
  for (; x != a.entries().end() && y != b.entries().end() && *x == *y; ++x) ++y;
  const bool ends_a = x == a.entries().end();
  const bool ends_b = y == b.entries().end();
  if (ends_a || ends_b) return ends_b <=> ends_a;  // what is absent is zero
  return x->first == y->first ? x->second <=> y->second : y->first <=> x->first;
}

Amounts Max(const Amounts& a, const Amounts& b) {
  Amounts larger;
  for (size_t d = 0; d < kMaxDimensions; ++d) larger[d] = std::max(a[d], b[d]);
  return larger;
}

}  // namespace

ProfileId Demand::InternProfile(const model::Profile& profile) {
  const ProfileId id = inventory_.ProfileOf(profile.fingerprint());
  infos_.Cover(id);
  if (infos_[id].filter != kNoId) return id;
  ProfileInfo info{.profile = profile, .filter = inventory_.catalogue().FilterOf(profile)};
  info.is_gang = inventory_.catalogue().filter(info.filter).is_gang();
  info.spreads = !inventory_.catalogue().filter(info.filter).spread.empty();
  info.precedence = Precedence(profile);
  if (info.is_gang) info.folded = InternProfile(FoldedProfile(profile));
  infos_[id] = std::move(info);
  return id;
}

ProfileId Demand::ProfileOf(const model::Profile& profile) {
  const std::string* shared = &profile.fingerprint();
  Seen& seen = profiles_seen_[(reinterpret_cast<uintptr_t>(shared) >> 5) % profiles_seen_.size()];
  const bool known = seen.shared == shared && (seen.rollup == rollups_ || seen.kept == shared);
  if (known) return seen.profile;
  const ProfileId id = InternProfile(profile);
  seen = {.rollup = rollups_, .shared = shared, .kept = &infos_[id].profile.fingerprint(), .profile = id};
  return id;
}

std::string Demand::FoldNameOf(const model::Resources& aggregate) {
  std::string name(kFoldPrefix);
  for (const auto& [dimension, amount] : aggregate.entries()) {
    const std::string_view comma = name.size() == kFoldPrefix.size() ? "" : ",";
    name += fmt::format("{}{}={}", comma, dimension, model::FormatQuantity(amount));
  }
  return name;
}

const std::string& Demand::FoldNameOf(const Amounts& aggregate) {
  Hasher hasher;
  AddTo(hasher, aggregate);
  const uint64_t hash = hasher.value();
  const FoldNameId known =
      fold_name_lookup_.Find(hash, [&](FoldNameId i) { return fold_names_[i.value()].first == aggregate; });
  if (known != kNoId) return fold_names_[known.value()].second;
  std::string name = FoldNameOf(inventory_.catalogue().Sparse(aggregate));
  fold_name_lookup_.Insert(hash, FoldNameId::Of(fold_names_.size()));
  return fold_names_.emplace_back(aggregate, std::move(name)).second;
}

Demand::Terms& Demand::TermsOf(ProfileId profile, const Amounts& aggregate, const Amounts& min_unit) {
  Catalogue& catalogue = inventory_.catalogue();
  uint64_t mix = profile.value();
  for (size_t d = 0; d < catalogue.dimensions(); ++d) {
    mix = (mix ^ static_cast<uint64_t>(aggregate[d])) * 0x9e3779b97f4a7c15;
    mix = (mix ^ static_cast<uint64_t>(min_unit[d])) * 0x9e3779b97f4a7c15;
  }
  Terms& terms = terms_[(mix >> 32) % terms_.size()];
  if (terms.profile == profile && terms.aggregate == aggregate && terms.min_unit == min_unit) return terms;
  const ProfileInfo& info = infos_[profile];
  terms = {.profile = profile, .aggregate = aggregate, .min_unit = min_unit};
  terms.fit = catalogue.FitOf(info.filter, min_unit);
  terms.stamp = StampOf(profile, "");
  if (info.is_gang) {
    terms.fold_fit = catalogue.FitOf(infos_[info.folded].filter, Max(aggregate, min_unit));
    terms.fold_name = &FoldNameOf(aggregate);
    terms.fold_stamp = StampOf(info.folded, *terms.fold_name);
  }
  return terms;
}

Demand::Listing& Demand::ListingOf(KeyId key) {
  listings_.Cover(key);
  return listings_[key];
}

void Demand::Unlist(KeyId key) {
  Listing& listing = listings_[key];
  if (--listing.rows > 0) return;
  listing.forget_at = cycle_ + 2;  // when needs and their memory are made without it
  if (!std::exchange(listing.is_gone, true)) gone_.push_back(key);
}

Demand::Row Demand::Read(ClusterId cluster, const model::Need& from) {
  Catalogue& catalogue = inventory_.catalogue();
  Row row{.profile = ProfileOf(from.profile), .arrival = from.arrival.time_since_epoch().count()};
  row.aggregate = catalogue.DenseOfNeed(from.aggregate);
  Terms& terms = TermsOf(row.profile, row.aggregate, catalogue.DenseOfNeed(from.min_unit));
  row.key = inventory_.KeyOf(cluster, row.profile, from.group);
  row.fit = terms.fit;
  if (from.group.empty()) row.stamp = terms.stamp;
  if (terms.fold_name == nullptr) return row;
  if (terms.rollup != rollups_) {
    terms.rollup = rollups_;
    terms.fold_key = inventory_.MadeKeyOf(cluster, infos_[row.profile].folded, *terms.fold_name);
  }
  row.fold_key = terms.fold_key;
  row.fold_fit = terms.fold_fit;
  row.fold_stamp = terms.fold_stamp;
  if (catalogue.unknown_in(row.aggregate) > 0) {  // others with the same amounts may ask for something else
    const std::string name = FoldNameOf(from.aggregate);
    row.fold_key = inventory_.MadeKeyOf(cluster, infos_[row.profile].folded, name);
    row.fold_stamp = StampOf(infos_[row.profile].folded, name);
  }
  return row;
}

// [A.dimensions] Keeps what a row asks for that no machine has: it is in no dimension.
void Demand::NoteOdd(ClusterDemand& demand, uint32_t position, const model::Need& from) {
  const Row& row = demand.rows[position];
  const Catalogue& catalogue = inventory_.catalogue();
  const bool odd =
      catalogue.unknown_in(row.aggregate) > 0 || catalogue.unknown_in(catalogue.fit_as_is(row.fit).min_unit) > 0;
  if (odd) {
    demand.odd.insert_or_assign(position, from);
  } else if (!demand.odd.empty()) {
    demand.odd.erase(position);
  }
}

// Rows that ask for what a dimension was ask for what no machine has. Before any row is read with what it is now.
void Demand::ReadEvicted() {
  Catalogue& catalogue = inventory_.catalogue();
  if (!catalogue.has_evicted()) return;
  const std::map<uint32_t, std::string> evicted = catalogue.TakeEvicted();
  if (MUTANT("fast.evicted_unread")) return;
  fold_names_.clear();
  fold_name_lookup_ = {};
  terms_.assign(terms_.size(), {});
  const auto named_then = [&](const Amounts& amounts) {
    model::Resources named;
    for (size_t d = 0; d < catalogue.dimensions(); ++d) {
      const auto was = evicted.find(static_cast<uint32_t>(d));
      if (amounts[d] != 0) named.Set(was == evicted.end() ? catalogue.dimension_names()[d] : was->second, amounts[d]);
    }
    return named;
  };
  for (const ClusterId c : clusters_.ids()) {
    ClusterDemand& demand = clusters_[c];
    ++rollups_;
    for (uint32_t position = 0; position < demand.rows.size(); ++position) {
      Row& row = demand.rows[position];
      const Amounts min_unit = catalogue.fit_as_is(row.fit).min_unit;
      const auto asks = [&](const auto& was) { return row.aggregate[was.first] != 0 || min_unit[was.first] != 0; };
      if (std::ranges::none_of(evicted, asks)) continue;
      const auto odd = demand.odd.find(position);
      const model::Need from = odd != demand.odd.end()
                                   ? odd->second
                                   : model::Need{.profile = infos_[row.profile].profile,
                                                 .aggregate = named_then(row.aggregate),
                                                 .min_unit = named_then(min_unit),
                                                 .group = std::string(inventory_.key_group(row.key))};
      ReadAgain(c, position, from);
    }
  }
}

void Demand::ReadAgain(ClusterId cluster, uint32_t position, const model::Need& from) {
  ClusterDemand& demand = clusters_[cluster];
  demand.changed = true;
  const int64_t arrival = demand.rows[position].arrival;
  Row row = Read(cluster, from);
  row.arrival = arrival;
  demand.rows[position] = row;
  NoteOdd(demand, position, from);
}

// A machine brought a dimension: rows that asked for what there was not may ask for it.
void Demand::ReadOddAgain() {
  const uint64_t interned = inventory_.catalogue().interned();
  if (std::exchange(interned_, interned) == interned || MUTANT("fast.odd_unread")) return;
  for (const ClusterId c : clusters_.ids()) {
    ClusterDemand& demand = clusters_[c];
    if (demand.odd.empty()) continue;
    ++rollups_;
    const std::map<uint32_t, model::Need> odd = demand.odd;
    for (const auto& [position, from] : odd) ReadAgain(c, position, from);
  }
}

model::Resources Demand::NamedAmounts(const NeedRow& need, const Amounts& amounts, bool of_unit) const {
  const Catalogue& catalogue = inventory_.catalogue();
  if (catalogue.unknown_in(amounts) == 0) return catalogue.Sparse(amounts);
  const model::Need& from = clusters_[need.cluster].odd.at(need.row);
  model::Resources named = of_unit ? from.min_unit : from.aggregate;
  for (const uint32_t d : catalogue.by_name()) named.Set(catalogue.dimension_names()[d], amounts[d]);
  return named;
}

bool Demand::IsAmountOnly(const Row& row, const model::Need& from, bool stamped) const {
  const model::Profile& profile = infos_[row.profile].profile;
  const bool same_profile = &profile.fingerprint() == &from.profile.fingerprint() || profile == from.profile;
  return same_profile && inventory_.key_group(row.key) == from.group &&
         (stamped || row.arrival == from.arrival.time_since_epoch().count());
}

// A row that only wants more or less than it did.
void Demand::UpdateAmounts(Row& row, const model::Need& from) {
  Catalogue& catalogue = inventory_.catalogue();
  row.aggregate = catalogue.DenseOfNeed(from.aggregate);
  const Amounts min_unit = catalogue.DenseOfNeed(from.min_unit);
  if (catalogue.fit_as_is(row.fit).min_unit == min_unit) return;
  row.fit = catalogue.FitOf(infos_[row.profile].filter, min_unit);
}

void Demand::Replace(ClusterId cluster, const Rollup& rollup, std::optional<WallTime> now) {
  ReadEvicted();
  clusters_.Cover(cluster);
  ClusterDemand& demand = clusters_[cluster];
  ++rollups_;
  if (now) latest_ = std::max(latest_, now->time_since_epoch().count());
  const bool same_count = rollup.rows.size() == demand.rows.size();
  uint32_t first = 0;  // row to look at
  if (same_count) {
    const auto differs = std::ranges::mismatch(rollup.digests, demand.digests).in1;
    if (differs == rollup.digests.end()) return;
    first = static_cast<uint32_t>(differs - rollup.digests.begin());
  }
  demand.replaced = cycle_;
  std::vector<Row>& fresh = fresh_;       // rows that changed, or all of them
  std::vector<uint32_t>& where = where_;  // their positions
  fresh.clear();
  where.clear();
  if (!same_count) fresh.reserve(rollup.rows.size());
  bool in_place = same_count && !demand.changed && !demand.has_equal_rows;
  for (uint32_t i = first; i < rollup.rows.size(); ++i) {
    const bool known = i < demand.rows.size() && rollup.digests[i] == demand.digests[i];
    if (same_count && known) continue;
    if (in_place && fresh.empty() && IsAmountOnly(demand.rows[i], rollup.rows[i], now.has_value()) &&
        !infos_[demand.rows[i].profile].is_gang) {
      // The common case: a plain need wants more or less. It keeps its place in every order.
      UpdateAmounts(demand.rows[i], rollup.rows[i]);
      NoteOdd(demand, i, rollup.rows[i]);
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
    for (const Row& row : demand.rows) Unlist(row.key);
    demand.rows.assign(fresh.begin(), fresh.end());  // not swapped: the scratch is as large as the largest cluster
    demand.odd.clear();
    for (uint32_t i = 0; i < demand.rows.size(); ++i) NoteOdd(demand, i, rollup.rows[i]);
    return;
  }
  for (size_t n = 0; n < fresh.size(); ++n) {
    Row& row = demand.rows[where[n]];
    Unlist(row.key);
    const uint32_t need = row.need;
    row = fresh[n];
    row.need = need;
    NoteOdd(demand, where[n], rollup.rows[where[n]]);
    if (in_place) Patch(demand, row);
  }
}

// Whether a need that settles would take the same if it wanted this.
bool Demand::TakesTheSame(const NeedRow& need, const Amounts& aggregate) const {
  if (need.aggregate == aggregate || MUTANT("fast.settled_forever")) return true;
  if (need.is_gang || need.last_take == nullptr || !need.last_take->in_order) return false;
  const LastTake& last_take = *need.last_take;
  bool needs_all = false;
  for (size_t d = 0; d < inventory_.catalogue().dimensions(); ++d) {
    if (aggregate[d] == 0) continue;
    if (need.aggregate[d] == 0 || last_take.taken[d] < aggregate[d]) return false;
    needs_all = needs_all || last_take.taken[d] - last_take.least[d] < aggregate[d] || MUTANT("fast.settled_with_more");
  }
  return needs_all;
}

// What the list before this one knew of the need.
void Demand::InheritLastTake(NeedRow& need) {
  const uint32_t place = NotesOf(need.key).before;
  if (place == kNoId) {
    inventory_.AllowSettling(need.key, false);
    if (spare_takes_.empty()) return;
    need.last_take = std::move(spare_takes_.back());
    need.last_take->in_order = false;
    spare_takes_.pop_back();
    return;
  }
  NotesOf(need.key).before = kNoId;  // of equal rows, the first
  NeedRow& before = before_[place];
  if (before.fit != need.fit || before.is_gang != need.is_gang || !TakesTheSame(before, need.aggregate)) {
    inventory_.AllowSettling(need.key, false);
  }
  need.last_take = std::move(before.last_take);
}

Demand::KeyNotes& Demand::NotesOf(KeyId key) {
  if (!notes_.Has(key)) notes_.resize(inventory_.keys());
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
  hosts_.Cover(fit);
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
  std::vector<std::pair<DomainId, Amounts>>& missing = missing_;
  missing.clear();
  for (const auto* list : {&key.own, &key.creating}) {
    for (const GroupId g : *list) {
      const Group& group = inventory_.group(g);
      if (!fit.Has(group.cls) || group.size == 0) continue;
      const DomainId domain = DomainOf(fit, group.cls);
      const auto at = std::ranges::find(missing, domain, &std::pair<DomainId, Amounts>::first);
      Amounts& rest = at != missing.end() ? at->second : missing.emplace_back(domain, aggregate).second;
      Subtract(rest, catalogue.each(group.cls), group.size, catalogue.dimensions());
      if (IsZero(rest, catalogue.dimensions())) return true;
    }
  }
  return false;
}

NeedRow Demand::Plain(ClusterId cluster, const Row& row, uint32_t position) {
  const ProfileInfo& info = infos_[row.profile];
  return {.gang = info.is_gang ? GangId(0) : GangId(),
          .key = row.key,
          .cluster = cluster,
          .profile = row.profile,
          .fit = row.fit,
          .stamp = row.stamp,
          .is_gang = info.is_gang,
          .spreads = info.spreads,
          .precedence = info.precedence,
          .arrival = row.arrival,
          .aggregate = row.aggregate,
          .row = position,
          .last_row = position};
}

// Adds a gang to the drafts, by itself or to the need that it folds into.
void Demand::DraftGang(ClusterId cluster, std::vector<Row>& rows, uint32_t position) {
  Row& row = rows[position];
  Catalogue& catalogue = inventory_.catalogue();
  row.gang_key = row.key;
  row.next = kNoId;
  if (const uint32_t count = ++NotesOf(row.key).seen; count > 1) {
    name_ = inventory_.key_group(row.key);
    name_ += '#';
    fmt::format_to(std::back_inserter(name_), FMT_COMPILE("{}"), count);
    row.gang_key = inventory_.MadeKeyOf(cluster, row.profile, name_);
  }
  row.folded = !IsAssembled(row.gang_key, row.fit, row.aggregate) && HasHost(cluster, row.fold_fit);
  if (!row.folded) {
    drafts_.push_back(Plain(cluster, row, position));
    drafts_.back().key = row.gang_key;
    if (row.gang_key != row.key) drafts_.back().stamp = kNoStamp;
    return;
  }
  uint32_t& slot = NotesOf(row.fold_key).slot;
  if (slot == kNoId) {
    slot = static_cast<uint32_t>(drafts_.size());
    NeedRow& folded = drafts_.emplace_back(Plain(cluster, row, position));
    folded.key = row.fold_key;
    folded.profile = infos_[row.profile].folded;
    folded.is_gang = false;
    folded.gang = kNoId;
    folded.fit = row.fold_fit;
    folded.stamp = row.fold_stamp;
    return;
  }
  NeedRow& folded = drafts_[slot];
  const size_t n = catalogue.dimensions();
  for (size_t d = 0; d < n; ++d) folded.aggregate[d] = AddCapped(folded.aggregate[d], row.aggregate[d]);
  const Amounts& known = catalogue.fit_as_is(folded.fit).min_unit;
  const Amounts& min_unit = catalogue.fit_as_is(row.fit).min_unit;
  if (!Covers(known, min_unit, n)) {
    folded.fit = catalogue.FitOf(infos_[folded.profile].filter, Max(known, min_unit));
  }
  folded.arrival = std::min(folded.arrival, row.arrival);
  rows[folded.last_row].next = position;
  folded.last_row = position;
}

StampId Demand::StampOf(ProfileId id, std::string_view group) {
  const model::Profile& profile = infos_[id].profile;
  stamp_.profile = id;
  stamp_.group = group;
  stamp_.priority = profile.priority();
  stamp_.interruption = model::UpperBound(profile.interruption());
  stamp_.reclamation = model::UpperBound(profile.reclamation());
  return inventory_.StampOf(stamp_);
}

void Demand::Normalise(ClusterId cluster) {
  ClusterDemand& demand = clusters_[cluster];
  ++normalisations_;
  before_.assign(std::move_iterator(demand.needs.begin()), std::move_iterator(demand.needs.end()));
  for (uint32_t i = 0; i < before_.size() && !demand.has_equal_rows; ++i) NotesOf(before_[i].key).before = i;
  demand.has_equal_rows = false;
  demand.has_gangs = false;
  drafts_.clear();
  for (uint32_t i = 0; i < demand.rows.size(); ++i) {
    if (infos_[demand.rows[i].profile].is_gang) {
      demand.has_gangs = true;
      DraftGang(cluster, demand.rows, i);
    } else {
      drafts_.push_back(Plain(cluster, demand.rows[i], i));
    }
  }
  stamp_of_.resize(inventory_.keys(), kNoStamp);
  listed_in_.resize(inventory_.keys(), 0);
  for (NeedRow& need : drafts_) {
    demand.has_equal_rows = demand.has_equal_rows || NotesOf(need.key).listed;
    NotesOf(need.key).listed = true;
    InheritLastTake(need);
    if (need.stamp == kNoStamp) need.stamp = stamp_of_[need.key];
    if (need.stamp == kNoStamp)
      need.stamp = stamp_of_[need.key] = StampOf(need.profile, inventory_.key_group(need.key));
    listed_in_[need.key] = listing_;
  }
  for (NeedRow& gone : before_) {
    if (gone.last_take != nullptr) spare_takes_.push_back(std::move(gone.last_take));
  }
  SortDrafts();
  demand.needs.clear();
  demand.needs.reserve(drafts_.size());
  for (SortKey& key : draft_keys_) {
    demand.rows[key.need->row].need = static_cast<uint32_t>(demand.needs.size());
    demand.needs.push_back(std::move(*key.need));
    key.need = &demand.needs.back();
  }
  fresh_keys_.insert(fresh_keys_.end(), draft_keys_.begin(), draft_keys_.end());
  demand.listed = listing_;
  demand.changed = false;
}

// Rows of one profile mostly lie in order already: these are compared with their neighbours only.
void Demand::SortDrafts() {
  draft_keys_.clear();
  for (NeedRow& need : drafts_) draft_keys_.push_back(SortKeyOf(need));
  const auto profile_less = [](const SortKey& a, const SortKey& b) {
    if (a.precedence != b.precedence) return a.precedence > b.precedence;
    if (a.arrival != b.arrival) return a.arrival < b.arrival;
    return a.profile_rank < b.profile_rank;
  };
  const auto less = [&](const SortKey& a, const SortKey& b) {
    return profile_less(a, b) || (!profile_less(b, a) && a.need < b.need);
  };
  if (!std::ranges::is_sorted(draft_keys_, less)) std::ranges::sort(draft_keys_, less);
  const auto same_less = [&](const SortKey& a, const SortKey& b) { return SameKeyLess(*a.need, *b.need); };
  for (auto first = draft_keys_.begin(); first != draft_keys_.end();) {
    auto end = first + 1;
    while (end != draft_keys_.end() && !profile_less(*first, *end)) ++end;
    if (!std::is_sorted(first, end, same_less)) std::sort(first, end, same_less);
    first = end;
  }
}

Demand::SortKey Demand::SortKeyOf(NeedRow& need) const {
  return {.precedence = need.precedence,
          .arrival = need.arrival,
          .cluster = need.cluster,
          .cluster_rank = inventory_.cluster_rank(need.cluster),
          .profile_rank = inventory_.profile_rank(need.profile),
          .key = need.key,
          .gang = need.gang,
          .need = &need};
}

// Of one cluster and profile, so that fits differ in min_unit alone.
bool Demand::SameKeyLess(const NeedRow& a, const NeedRow& b) const {
  if (a.key != b.key) return inventory_.key_group(a.key) < inventory_.key_group(b.key);
  const Catalogue& catalogue = inventory_.catalogue();
  if (IsOdd(a) || IsOdd(b)) {
    const auto unit = [&](const NeedRow& need) {
      return NamedAmounts(need, catalogue.fit_as_is(need.fit).min_unit, true);
    };
    const auto amounts = [&](const NeedRow& need) { return NamedAmounts(need, need.aggregate, false); };
    if (const auto order = Compare(unit(a), unit(b)); order != 0) return order < 0;
    if (const auto order = Compare(amounts(a), amounts(b)); order != 0) return order < 0;
    return a.row < b.row;
  }
  const auto first_less = [&](const Amounts& x, const Amounts& y) {
    const auto d = std::ranges::find_if(catalogue.by_name(), [&](uint32_t i) { return x[i] != y[i]; });
    return x[*d] < y[*d];
  };
  if (a.fit != b.fit) return first_less(catalogue.fit_as_is(a.fit).min_unit, catalogue.fit_as_is(b.fit).min_unit);
  if (a.aggregate != b.aggregate) return first_less(a.aggregate, b.aggregate);
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
  ++cycle_;
  ForgetKeys();
  SweepStamps();
  ReadEvicted();
  SweepProfiles();
  ReadOddAgain();
  RefreshHosts();
  clusters_.resize(std::max(clusters_.size(), inventory_.clusters()));
  is_normalised_.assign(clusters_.size(), 0);
  normalised_.clear();
  for (const ClusterId c : clusters_.ids()) {
    ClusterDemand& demand = clusters_[c];
    const uint64_t version = inventory_.cluster(c).version;
    const bool moved = demand.has_gangs && (demand.seen_version != version || demand.seen_folding != folding_);
    const bool refold = !demand.changed && moved && !MUTANT("fast.stale_fold") && !FoldingStays(c);
    demand.seen_version = version;
    demand.seen_folding = folding_;
    if (!demand.changed && !refold) continue;
    is_normalised_[c] = 1;
    normalised_.push_back(c);
  }
  if (normalised_.empty()) return;
  inventory_.RankProfiles();
  ++listing_;
  // The needs of these clusters move in memory: their old places leave the order before. A new cluster or profile may
  // have moved the ranks of the others, but never past each other.
  std::erase_if(sorted_, [&](const SortKey& key) { return is_normalised_[key.cluster] != 0; });
  if (ranked_clusters_ != inventory_.clusters_version() || ranked_profiles_ != inventory_.profiles_version()) {
    for (SortKey& key : sorted_) key = SortKeyOf(*key.need);
    ranked_clusters_ = inventory_.clusters_version();
    ranked_profiles_ = inventory_.profiles_version();
  }
  fresh_keys_.clear();
  run_ends_.clear();
  for (const ClusterId c : normalised_) {
    Normalise(c);
    run_ends_.push_back(fresh_keys_.size());
  }
  MergeSorted();
  NumberNeeds();
}

// Puts the needs of `fresh_keys_` in order and among the others. Those of one cluster lie in order already.
void Demand::MergeSorted() {
  const auto less = [](const SortKey& a, const SortKey& b) {
    if (a.precedence != b.precedence) return a.precedence > b.precedence;
    if (a.arrival != b.arrival) return a.arrival < b.arrival;
    if (a.cluster_rank != b.cluster_rank) {
      return MUTANT("fast.cluster_order") ? a.cluster < b.cluster : a.cluster_rank < b.cluster_rank;
    }
    return a.need < b.need;
  };
  if (std::ranges::is_sorted(fresh_keys_, less)) run_ends_.clear();
  while (run_ends_.size() > 1) {  // every other run goes into the one before it
    merged_.clear();
    size_t runs = 0;
    size_t begin = 0;
    const auto at = [&](size_t i) { return fresh_keys_.begin() + static_cast<ptrdiff_t>(i); };
    for (size_t r = 0; r < run_ends_.size(); r += 2) {
      const size_t middle = run_ends_[r];
      const size_t end = run_ends_[std::min(r + 1, run_ends_.size() - 1)];
      std::merge(at(begin), at(middle), at(middle), at(end), std::back_inserter(merged_), less);
      run_ends_[runs++] = begin = end;
    }
    run_ends_.resize(runs);
    std::swap(fresh_keys_, merged_);
  }
  merged_.clear();
  std::ranges::merge(sorted_, fresh_keys_, std::back_inserter(merged_), less);
  std::swap(sorted_, merged_);
}

// Most needs stand where they stood: those are not looked at.
void Demand::NumberNeeds() {
  order_.resize(sorted_.size());
  keys_.resize(sorted_.size());
  gangs_ = 0;
  for (const NeedId n : order_.ids()) {
    SortKey& key = sorted_[n.value()];
    const GangId gang = key.gang == kNoId ? GangId() : GangId::Of(gangs_++);
    if (order_[n] == key.need && key.gang == gang && is_normalised_[key.cluster] == 0) continue;
    key.gang = key.need->gang = gang;
    key.need->id = n;
    order_[n] = key.need;
    keys_[n] = key.key;
  }
}

bool Demand::IsListed(KeyId key) const {
  const ClusterId cluster = inventory_.key(key).cluster;
  return listed_in_.Has(key) && clusters_.Has(cluster) && listed_in_[key] != 0 &&
         listed_in_[key] == clusters_[cluster].listed;
}

KeyId Demand::CurrentKeyOf(KeyId key) const {
  const ClusterId cluster = inventory_.key(key).cluster;
  if (!clusters_.Has(cluster)) return key;
  for (const Row& row : clusters_[cluster].rows) {
    if (row.gang_key == kNoId) continue;
    if ((row.folded ? row.gang_key : row.fold_key) == key) return row.folded ? row.fold_key : row.gang_key;
  }
  return key;
}

std::vector<size_t> Demand::RowsOf(const NeedRow& need) const {
  std::vector<size_t> positions;
  const std::vector<Row>& rows = clusters_[need.cluster].rows;
  for (uint32_t row = need.row; row != kNoId; row = rows[row].next) positions.push_back(row);
  return positions;
}

size_t Demand::rows() const {
  size_t count = 0;
  for (const ClusterDemand& demand : clusters_) count += demand.rows.size();
  return count;
}

}  // namespace muster::engine::fast
