// What no need uses any more is given back: keys, stamps, profiles, filters, fits and clusters.
#include <utility>

#include "base/probe.h"
#include "engine/fast/demand.h"

namespace muster::engine::fast {

// Gives back keys that are no longer listed once no machine refers to them. A name that normalising made goes with the
// next sweep of profiles.
void Demand::ForgetKeys() {
  constexpr uint64_t kPatience = 32;  // cycles until machines of such a key are looked for again
  std::erase_if(gone_, [&](KeyId key) {
    Listing& listing = listings_[key];
    if (listing.forget_at > cycle_) return false;
    const bool is_made = inventory_.key(key).is_made;
    if (listing.rows == 0 && !is_made && !inventory_.IsBare(key)) {
      listing.forget_at = cycle_ + kPatience;
      return false;
    }
    listing.is_gone = false;
    if (listing.rows > 0 || is_made) return true;
    if (stamp_of_.Has(key)) stamp_of_[key] = kNoStamp;
    if (listed_in_.Has(key)) listed_in_[key] = 0;
    inventory_.Forget(key);
    return true;
  });
}

void Demand::SweepStamps() {
  if (inventory_.HasManyStamps()) SweepStampsNow();
}

void Demand::SweepStampsNow() {
  terms_.assign(terms_.size(), {});
  inventory_.SweepStamps([&](const auto& use) {
    if (MUTANT("fast.stamp_of_need")) return;
    for (const StampId stamp : stamp_of_) use(stamp);
    for (const ClusterDemand& demand : clusters_) {
      for (const Row& row : demand.rows) {
        use(row.stamp);
        use(row.fold_stamp);
      }
      for (const NeedRow& need : demand.needs) use(need.stamp);
    }
  });
}

// Names that normalising made and no row can come back to. In two steps, as with keys that were listed: needs and their
// memory are made without them first.
void Demand::ForgetMadeKeys() {
  Rows<KeyId, bool> used;
  used.resize(inventory_.keys(), false);
  const auto use = [&](KeyId key) {
    if (key != kNoId) used[key] = true;
  };
  for (const ClusterDemand& demand : clusters_) {
    for (const Row& row : demand.rows) {
      use(row.fold_key);
      use(row.gang_key);
    }
    for (const NeedRow& need : demand.needs) use(need.key);
  }
  unused_.resize(used.size(), 0);
  for (const KeyId key : used.ids()) {
    const bool is_listed = listings_.Has(key) && (listings_[key].rows > 0 || listings_[key].is_gone);
    const bool unused = inventory_.key(key).is_made && !used[key] && !is_listed && inventory_.IsBare(key);
    const uint64_t listed = unused ? 1 + (listed_in_.Has(key) ? listed_in_[key] : 0) : 0;
    const uint64_t before = std::exchange(unused_[key], listed);
    if (!unused || before != listed) continue;
    if (stamp_of_.Has(key)) stamp_of_[key] = kNoStamp;
    if (listed_in_.Has(key)) listed_in_[key] = 0;
    inventory_.Forget(key);
  }
}

size_t Demand::KnownNames() const {
  return inventory_.profiles() + inventory_.keys_in_use() + inventory_.catalogue().fits() + fold_names_.size();
}

// When as many names came as there were: two looks at made keys, some cycles apart, and then at all that names refer
// to.
void Demand::SweepProfiles() {
  constexpr size_t kFew = 64;
  constexpr uint64_t kApart = 3;
  if (sweep_at_ == 0) {
    if (KnownNames() <= 2 * kept_names_ + kFew || MUTANT("fast.profiles_stay")) return;
    unused_.clear();
    ForgetMadeKeys();
    sweep_at_ = cycle_ + kApart;
    return;
  }
  if (cycle_ < sweep_at_) return;
  sweep_at_ = 0;
  ForgetMadeKeys();
  fold_names_.clear();
  fold_name_lookup_ = {};
  profiles_seen_.fill({});
  SweepStampsNow();
  ForgetUnusedProfiles();
  kept_names_ = KnownNames();
}

void Demand::ForgetUnusedProfiles() {
  Rows<ProfileId, bool> used;
  inventory_.ForgetProfilesBut(used);
  Catalogue& catalogue = inventory_.catalogue();
  Rows<FilterId, bool> filters;
  filters.resize(catalogue.filter_rows(), false);
  for (const ProfileId id : infos_.ids()) {
    const ProfileId folded = infos_[id].folded;
    if (!used[id] || (folded != kNoId && !used[folded])) {  // with what it folds into; it is made again when listed
      infos_[id] = {};
    } else if (infos_[id].filter != kNoId) {
      filters[infos_[id].filter] = true;
    }
  }
  Rows<FitId, bool> fits;
  fits.resize(catalogue.fit_rows(), false);
  const auto use = [&](FitId fit) {
    if (fit != kNoId && !MUTANT("fast.fit_in_use")) fits[fit] = true;
  };
  for (const ClusterDemand& demand : clusters_) {
    for (const Row& row : demand.rows) {
      use(row.fit);
      use(row.fold_fit);
    }
    for (const NeedRow& need : demand.needs) use(need.fit);
  }
  std::erase_if(asked_, [&](FitId fit) {
    if (!fits[fit]) hosts_[fit] = {};
    return !fits[fit];
  });
  catalogue.Sweep(filters, fits);
}

// A key of the last cycles may still be in the memory of needs.
void Demand::ForgetClusters(Rows<ClusterId, bool>& unused) {
  constexpr uint64_t kPatience = 3;
  for (const ClusterId c : unused.ids()) {
    if (!clusters_.Has(c)) continue;
    const ClusterDemand& demand = clusters_[c];
    const bool is_empty = !demand.changed && demand.rows.empty() && demand.needs.empty();
    if (!is_empty || cycle_ < demand.replaced + kPatience) unused[c] = false;
  }
  inventory_.KeepUsed(unused);
  const auto for_each_key = [&](const auto& visit) {
    for (const KeyId key : IdRange<KeyId>(inventory_.keys())) {
      const Key& row = inventory_.key(key);
      if (!row.is_spare && unused[row.cluster]) visit(key, row);
    }
  };
  for_each_key([&](KeyId key, const Key& row) {
    const bool is_listed = listings_.Has(key) && (listings_[key].rows > 0 || listings_[key].is_gone);
    if (is_listed || row.is_dirty || !inventory_.IsBare(key)) unused[row.cluster] = false;
  });
  for_each_key([&](KeyId key, const Key&) {
    if (stamp_of_.Has(key)) stamp_of_[key] = kNoStamp;
    if (listed_in_.Has(key)) listed_in_[key] = 0;
    inventory_.Forget(key);
  });
  for (const ClusterId c : unused.ids()) {
    if (!unused[c]) continue;
    if (clusters_.Has(c)) clusters_[c] = {};
    inventory_.Forget(c);
  }
}

}  // namespace muster::engine::fast
