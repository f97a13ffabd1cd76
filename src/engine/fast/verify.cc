// The invariants of the tables, checked from first principles: what a table keeps against what it is kept from.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "base/hash.h"
#include "engine/fast/cycle.h"
#include "engine/fast/finding.h"

namespace muster::engine::fast {
namespace {

using model::MachineState;

}  // namespace

std::string Catalogue::Verify() const {
  Finding found;
  found.Merge("shapes", shape_lookup_.Verify());
  found.Merge("classes", class_lookup_.Verify());
  found.Merge("filters", filter_lookup_.Verify());
  found.Merge("fits", fit_lookup_.Verify());
  found.Merge("types", type_lookup_.Verify());
  found.Expect(shape_lookup_.size() + gone_shapes_ == shapes_.size() && class_lookup_.size() == classes_.size() &&
                   filter_lookup_.size() + spare_filters_.size() == filters_.size() &&
                   fit_lookup_.size() + spare_fits_.size() == fits_.size() && type_lookup_.size() == types_.size(),
               "a lookup has not as many entries as its table has rows");
  Rows<ShapeId, int64_t> live;
  live.resize(shapes_.size());
  size_t attributes = 0;
  size_t empty = 0;
  for (const ClassId id : classes_.ids()) {
    const Class& c = classes_[id];
    live[c.shape] += c.live;
    found.Expect(c.live >= 0, "class {} has {} live machines", id.value(), c.live);
    found.Expect(c.machines == 0 || !shapes_[c.shape].is_gone,
                 "class {} has machines, and a dimension that is another's", id.value());
    empty += c.machines == 0 ? 1 : 0;
    found.Expect(types_[c.type] == c.instance_type, "class {} has the type {}", id.value(), types_[c.type]);
    c.ForEachAttribute([&](const std::string& key, const std::string& value) {
      const std::vector<ClassId>* with = ClassesWith(key, value);
      found.Expect(with != nullptr && std::ranges::binary_search(*with, id), "class {} is not listed under {}={}",
                   id.value(), key, value);
      ++attributes;
    });
  }
  size_t empty_lists = 0;
  for (const std::vector<ClassId>& list : lists_) {
    attributes -= list.size();
    empty_lists += list.empty() ? 1 : 0;
  }
  found.Expect(attributes == 0, "the index lists a class under what it has not");
  size_t values = 0;
  for (const auto& [key, lists] : with_) values += lists.size();
  found.Expect(empty_lists == spare_lists_.size() && values + spare_lists_.size() == lists_.size(),
               "{} lists of the index are empty and {} spare, {} values have one of {}", empty_lists,
               spare_lists_.size(), values, lists_.size());
  size_t held = 0;
  for (const Class& c : classes_) held += c.out_of_stock ? 1 : 0;
  found.Expect(held == out_of_stock_.size() &&
                   std::ranges::all_of(out_of_stock_, [&](ClassId id) { return classes_[id].out_of_stock; }),
               "{} classes are listed as out of stock of {}", out_of_stock_.size(), held);
  found.Expect(empty == empty_classes_, "{} classes without machines are counted of {}", empty_classes_, empty);
  for (const ShapeId id : shapes_.ids()) {
    found.Expect(shapes_[id].live == live[id], "shape {} counts {} live machines, its classes {}", id.value(),
                 shapes_[id].live, live[id]);
  }
  for (const FilterId id : filters_.ids()) {
    std::vector<ClassId> classes;
    for (const ClassId c : IdRange<ClassId>(filters_[id].seen)) {
      if (MatchesFilter(filters_[id], c)) classes.push_back(c);
    }
    found.Expect(classes == filters_[id].classes, "filter {} lists other classes than match it", id.value());
  }
  for (const FitId id : fits_.ids()) {
    if (fits_[id].filter == kNoId) continue;  // spare
    found.Expect(!filters_[fits_[id].filter].is_spare, "fit {} is of a filter that is forgotten", id.value());
    found.Merge(fmt::format("fit {}", id.value()), VerifyFit(fits_[id]));
  }
  return found.Take();
}

std::string Catalogue::VerifyFit(const Fit& fit) const {
  Finding found;
  const Filter& filter = filters_[fit.filter];
  std::vector<ClassId> classes;
  std::set<TypeId> types;
  for (size_t i = 0; i < fit.seen; ++i) {
    const ClassId c = filter.classes[i];
    const bool covers = Covers(each(c), fit.min_unit, kMaxDimensions);
    found.Expect(fit.Has(c) == covers, "class {} {} its min_unit", c.value(), covers ? "covers" : "does not cover");
    if (!covers) continue;
    classes.push_back(c);
    types.insert(classes_[c].type);
  }
  found.Expect(classes == fit.classes, "it lists other classes than cover its min_unit");
  found.Expect(std::ranges::equal(types, fit.types), "it lists other types than those of its classes");
  if (!fit.domains_for || !found.empty()) return found.Take();
  found.Expect(fit.domain_of.size() == *fit.domains_for, "{} of {} classes have a domain", fit.domain_of.size(),
               *fit.domains_for);
  found.Expect(std::ranges::is_sorted(fit.domains, std::ranges::less_equal()), "domains are out of order");
  const std::vector<std::string> keys = filter.TopologyKeys();
  for (size_t i = 0; i < fit.domain_of.size() && found.empty(); ++i) {
    for (size_t k = 0; k < keys.size(); ++k) {
      const auto value = classes_[fit.classes[i]].Attribute(keys[k]);
      found.Expect(value.value_or("") == fit.domains[fit.domain_of[i]][k], "class {} is in another domain",
                   fit.classes[i].value());
    }
    const std::vector<ClassId>& in = fit.in_domain[fit.domain_of[i]];
    found.Expect(std::ranges::binary_search(in, fit.classes[i]), "class {} is not listed in its domain",
                 fit.classes[i].value());
  }
  size_t listed = 0;
  for (const std::vector<ClassId>& in : fit.in_domain) listed += in.size();
  found.Expect(listed == fit.domain_of.size(), "domains list {} classes of {}", listed, fit.domain_of.size());
  return found.Take();
}

std::string Inventory::Verify() const {
  Finding found;
  found.Merge("catalogue", catalogue_.Verify());
  found.Merge("names", Names::Verify());
  found.Merge("references", VerifyReferences());
  found.Merge("machines", VerifyMachines());
  found.Merge("groups", VerifyGroups());
  found.Merge("lists of groups", VerifyLists());
  return found.Take();
}

std::string Names::Verify() const {
  Finding found;
  found.Merge("clusters", cluster_lookup_.Verify());
  found.Merge("fingerprints", fingerprint_lookup_.Verify());
  found.Merge("keys", key_lookup_.Verify());
  found.Merge("keys", key_groups_.Verify());
  found.Merge("stamps", stamp_lookup_.Verify());
  found.Expect(cluster_lookup_.size() + spare_clusters_.size() == clusters_.size(),
               "{} clusters are found and {} spare of {}", cluster_lookup_.size(), spare_clusters_.size(),
               clusters_.size());
  found.Expect(fingerprint_lookup_.size() == profiles(), "{} fingerprints are found of {}", fingerprint_lookup_.size(),
               profiles());
  const std::set<ProfileId> spare_profiles(spare_profiles_.begin(), spare_profiles_.end());
  const std::set<KeyId> spare_keys(spare_keys_.begin(), spare_keys_.end());
  for (const KeyId id : IdRange<KeyId>(keys_.size())) {
    found.Expect(spare_keys.contains(id) || !spare_profiles.contains(keys_[id].profile),
                 "key {} is of a fingerprint that is forgotten", id.value());
    found.Expect(spare_keys.contains(id) == keys_[id].is_spare, "key {} is spare and does not say so", id.value());
    found.Expect(keys_[id].is_spare || !clusters_[keys_[id].cluster].is_spare,
                 "key {} is of a cluster that is forgotten", id.value());
  }
  found.Expect(key_lookup_.size() + spare_keys_.size() == keys_.size(), "{} keys are found and {} spare of {}",
               key_lookup_.size(), spare_keys_.size(), keys_.size());
  found.Expect(stamp_lookup_.size() + spare_stamps_.size() + 1 == stamps_.size(),
               "{} stamps are found and {} spare of {}", stamp_lookup_.size(), spare_stamps_.size(), stamps_.size());
  for (const ClusterId id : clusters_.ids()) {
    found.Expect(clusters_[id].is_spare || FindCluster(clusters_[id].name) == id, "{} is not found",
                 clusters_[id].name);
  }
  const auto name = [&](ClusterId id) -> const std::string& { return clusters_[id].name; };
  found.Expect(std::ranges::is_sorted(clusters_by_name_, {}, name), "clusters are out of order");
  return found.Take();
}

// What groups and machines refer to is in use, and what it says fits them.
std::string Inventory::VerifyReferences() const {
  Finding found;
  const std::set<KeyId> spare_keys(spare_keys_.begin(), spare_keys_.end());
  const std::set<StampId> spare_stamps(spare_stamps_.begin(), spare_stamps_.end());
  const auto expect_key = [&](KeyId id) {
    found.Expect(id == kNoId || !spare_keys.contains(id), "key {} is in use and spare", id.value());
  };
  const auto expect_stamp = [&](StampId id) {
    found.Expect(!spare_stamps.contains(id), "stamp {} is in use and spare", id.value());
  };
  for (const Group& g : groups_) {
    if (g.cls == kNoId) continue;
    expect_stamp(g.stamp);
    expect_key(g.owner);
    expect_key(g.pledge);
    if (g.owner == kNoId) continue;
    const Key& owner = keys_[g.owner];
    found.Expect(owner.cluster == g.cluster && owner.profile == stamps_[g.stamp].profile &&
                     key_groups_[g.owner] == stamps_[g.stamp].group,
                 "a group's owner is not the need of its stamp");
  }
  for (const Row& row : rows_) {
    if (row.state == MachineState::kUnspecified) continue;
    expect_key(row.pledge);
    expect_stamp(row.stamp);
  }
  return found.Take();
}

std::string Inventory::VerifyMachines() const {
  Finding found;
  found.Merge("ids", ids_.Verify());
  found.Merge("ids", machine_lookup_.Verify());
  found.Expect(machine_lookup_.size() == by_id_.size() + newcomers_.size(), "{} are found, {} are in order and {} new",
               machine_lookup_.size(), by_id_.size(), newcomers_.size());
  const auto id = [&](MachineId m) { return ids_[m]; };
  const auto label = [&](MachineId m) { return labels_[m]; };
  found.Expect(std::ranges::is_sorted(by_id_, std::ranges::less_equal(), id), "they are out of order");
  found.Expect(std::ranges::is_sorted(by_id_, std::ranges::less_equal(), label), "labels do not follow ids");
  size_t alive = 0;
  size_t dirty = 0;
  Rows<ClassId, int64_t> live;
  Rows<ClassId, int64_t> all;
  live.resize(catalogue_.classes());
  all.resize(catalogue_.classes());
  std::array<int64_t, kMaxDimensions> with{};
  for (const auto* list : {&by_id_, &newcomers_}) {
    for (const MachineId m : *list) {
      const Row& row = rows_[m];
      found.Expect(Find(ids_[m]) == m, "{} is not found", ids_[m]);
      const bool leaving = (row.flags & kLeaving) != 0;
      alive += leaving ? 0 : 1;
      dirty += (row.flags & kDirty) != 0 ? 1 : 0;
      if (!leaving && row.state != MachineState::kFailed) ++live[row.cls];
      if (!leaving) ++all[row.cls];
      for (size_t d = 0; d < kMaxDimensions && !leaving; ++d) with[d] += catalogue_.each(row.cls)[d] != 0 ? 1 : 0;
    }
  }
  found.Expect(with == catalogue_.machines_with(), "dimensions count other machines than have them");
  const auto remembered = std::ranges::count_if(rows_, [](const Row& row) { return (row.flags & kRemembered) != 0; });
  found.Expect(alive == alive_, "{} are counted of {}", alive_, alive);
  found.Expect(dirty == dirty_.size(), "{} are marked as changed, {} listed", dirty, dirty_.size());
  found.Expect(static_cast<size_t>(remembered) == remembered_.size(), "{} are marked for memory, {} listed", remembered,
               remembered_.size());
  for (const ClassId c : live.ids()) {
    found.Expect(live[c] == catalogue_.cls(c).live, "class {} counts {} live machines of {}", c.value(),
                 catalogue_.cls(c).live, live[c]);
    found.Expect(all[c] == catalogue_.cls(c).machines, "class {} counts {} machines of {}", c.value(),
                 catalogue_.cls(c).machines, all[c]);
  }
  return found.Take();
}

std::string Inventory::VerifyGroups() const {
  Finding found;
  found.Merge("lookup", group_lookup_.Verify());
  found.Expect(group_lookup_.size() + spare_groups_.size() == groups_.size(), "{} are found and {} spare of {}",
               group_lookup_.size(), spare_groups_.size(), groups_.size());
  size_t members = 0;
  for (const GroupId id : groups_.ids()) {
    const Group& g = groups_[id];
    if (g.cls == kNoId) continue;
    const auto lives = [&](MachineId m) { return group_[m] == id; };
    found.Merge(fmt::format("members of {}", id.value()), g.members.Verify(labels_, lives));
    found.Expect(g.size == g.members.size() && g.size > 0, "group {} counts {} members of {}", id.value(), g.size,
                 g.members.size());
    found.Expect(g.cycle != cycle_ || g.claimed <= g.size, "{} of {} machines are claimed", g.claimed, g.size);
    if (!found.empty()) break;
    members += g.size;
    ForEachMember(id, [&](MachineId m) {
      if ((rows_[m].flags & kDirty) != 0) return;
      Terms terms = TermsOf(m);
      terms.stamp = g.stamp;  // the group's is the newer one
      found.Expect(terms == g.terms(), "{} is in a group that it does not belong to", ids_[m]);
    });
  }
  const auto placed = std::ranges::count_if(group_, [](GroupId g) { return g != kNoId; });
  found.Expect(!found.empty() || members == static_cast<size_t>(placed), "{} machines have a group, groups have {}",
               placed, members);
  return found.Take();
}

// Every group stands once in each list that its state calls for, and lists hold nothing else.
std::string Inventory::VerifyLists() const {
  enum List : uint32_t {
    kFree = 1,
    kBoundOfClass = 2,
    kBoundOfCluster = 4,
    kOwn = 8,
    kPledgedIdle = 16,
    kDraining = 32,
    kCreating = 64,
    kInFlight = 128,
    kAllPledgedIdle = 256,
    kHeldFree = 512,
  };
  Finding found;
  Rows<GroupId, uint32_t> lists;  // a bit for each that it stands in
  lists.resize(groups_.size());
  const auto walk = [&](const std::vector<GroupId>& groups, List list, const auto& belongs) {
    for (const GroupId id : groups) {
      found.Expect((lists[id] & list) == 0 && belongs(groups_[id]), "group {} is in a list of another, or twice",
                   id.value());
      lists[id] |= list;
    }
  };
  for (const ClassId c : IdRange<ClassId>(catalogue_.classes())) {
    const auto of_class = [&](const Group& g) { return g.cls == c; };
    walk(catalogue_.cls(c).free, kFree, of_class);
    walk(catalogue_.cls(c).bound, kBoundOfClass, of_class);
  }
  for (const ClusterId c : clusters_.ids()) {
    walk(clusters_[c].bound, kBoundOfCluster, [&](const Group& g) { return g.cluster == c; });
    walk(clusters_[c].in_flight, kInFlight, [&](const Group& g) { return keys_[g.pledge].cluster == c; });
  }
  for (const KeyId id : keys_.ids()) {
    const Key& key = keys_[id];
    const auto pledged = [&](const Group& g) { return g.pledge == id; };
    walk(key.own, kOwn, [&](const Group& g) { return g.owner == id; });
    walk(key.idle, kPledgedIdle, pledged);
    walk(key.draining, kDraining, pledged);
    walk(key.creating, kCreating, pledged);
    const KeyState& state = key_states_[id];
    found.Expect(key.is_dirty || (state.has_pledges == key.has_pledges() &&
                                  state.has_own == (!key.own.empty() || !key.creating.empty()) &&
                                  state.has_creating == !key.creating.empty()),
                 "key {} has groups that its state does not tell", id.value());
    found.Expect(!key.has_pledges() || std::ranges::binary_search(pledged_keys_, id),
                 "key {} is not among those with pledges", id.value());
  }
  walk(pledged_idle_, kAllPledgedIdle, [](const Group&) { return true; });
  walk(held_free_, kHeldFree, [](const Group& g) { return g.hold != HoldSets::kNone; });
  for (const GroupId id : groups_.ids()) {
    const Group& g = groups_[id];
    uint32_t expected = 0;
    if (g.cls != kNoId) {
      switch (g.state) {
        case MachineState::kIdle: expected = g.pledge == kNoId ? kFree : kFree | kPledgedIdle | kAllPledgedIdle; break;
        case MachineState::kSpeculative: expected = kFree; break;
        case MachineState::kConfigured: expected = kBoundOfClass | kBoundOfCluster | kOwn; break;
        case MachineState::kConfiguring: expected = kBoundOfCluster | kOwn; break;
        case MachineState::kCreating: expected = kCreating | kInFlight; break;
        case MachineState::kDraining: expected = kDraining | kInFlight; break;
        default: break;
      }
      if ((expected & kFree) != 0 && g.hold != HoldSets::kNone) expected |= kHeldFree;
    }
    found.Expect(lists[id] == expected, "group {} is in the lists {:#x} instead of {:#x}", id.value(), lists[id],
                 expected);
  }
  return found.Take();
}

std::string Demand::Verify() const {
  Finding found;
  found.Merge("fold names", fold_name_lookup_.Verify());
  found.Expect(order_.size() == sorted_.size() && keys_.size() == sorted_.size(), "the order has {} needs of {}",
               order_.size(), sorted_.size());
  size_t needs = 0;
  size_t gangs = 0;
  std::map<KeyId, uint32_t> rows_of;
  for (const ClusterId c : clusters_.ids()) {
    const ClusterDemand& demand = clusters_[c];
    for (const Row& row : demand.rows) ++rows_of[row.key];
    if (demand.changed) return found.Take();  // it is made anew when the next cycle begins
    needs += demand.needs.size();
    size_t stands_for = 0;
    for (const NeedRow& need : demand.needs) {
      found.Expect(order_.Has(need.id) && order_[need.id] == &need && keys_[need.id] == need.key,
                   "need {} is not at its place in the order", need.id.value());
      found.Expect(IsListed(need.key), "need {} is not listed", need.id.value());
      const Stamp& stamp = inventory_.stamp(need.stamp);
      found.Expect(
          need.stamp != kNoStamp && stamp.profile == need.profile && stamp.group == inventory_.key_group(need.key),
          "need {} has another's stamp", need.id.value());
      gangs += need.is_gang ? 1 : 0;
      for (const size_t position : RowsOf(need)) {
        const Row& row = demand.rows[position];
        ++stands_for;
        const KeyId as = row.gang_key == kNoId ? row.key : row.folded ? row.fold_key : row.gang_key;
        found.Expect(as == need.key, "row {} of a cluster is in another need", position);
        found.Expect(row.folded || row.aggregate == need.aggregate, "need {} wants something else than its row",
                     need.id.value());
      }
    }
    found.Expect(stands_for == demand.rows.size(), "needs stand for {} of {} rows", stands_for, demand.rows.size());
  }
  found.Expect(needs == order_.size(), "{} of {} needs are in order", order_.size(), needs);
  found.Expect(gangs == gangs_, "{} gangs are counted of {}", gangs_, gangs);
  for (const KeyId key : listings_.ids()) {
    const auto rows = rows_of.find(key);
    found.Expect(listings_[key].rows == (rows == rows_of.end() ? 0 : rows->second), "key {} is listed {} times",
                 key.value(), listings_[key].rows);
  }
  const auto rank = [&](const NeedRow* need) {
    return std::tuple(~need->precedence, need->arrival, std::string_view(inventory_.cluster(need->cluster).name),
                      std::string_view(inventory_.fingerprint(need->profile)), inventory_.key_group(need->key));
  };
  for (size_t i = 1; i < order_.size() && found.empty(); ++i) {
    const NeedId n = NeedId::Of(i);
    found.Expect(rank(order_[NeedId::Of(i - 1)]) <= rank(order_[n]), "need {} is before its turn", i);
    const bool numbered = order_[n]->gang == sorted_[i].gang && (order_[n]->gang == kNoId) != order_[n]->is_gang;
    found.Expect(numbered, "need {} has another's number among gangs", i);
  }
  return found.Take();
}

std::string Cycle::Verify() const {
  Finding found;
  std::vector<ClaimRow> claims;
  ForEachClaim([&](const ClaimRow& claim) { claims.push_back(claim); });
  std::ranges::sort(claims, {}, [](const ClaimRow& claim) { return std::tuple(claim.group, claim.first); });
  Rows<GroupId, uint32_t> claimed;
  claimed.resize(inventory_.groups());
  for (const ClaimRow& claim : claims) {
    const Group& group = inventory_.group(claim.group);
    found.Expect(fit(claim.need).Has(group.cls), "need {} claimed machines that cannot serve it", claim.need.value());
    found.Expect(claim.count > 0 && claim.first == claimed[claim.group],
                 "need {} claimed {} machines of a group behind its first {}, of which {} are claimed",
                 claim.need.value(), claim.count, claim.first, claimed[claim.group]);
    claimed[claim.group] += claim.count;
  }
  for (const GroupId id : claimed.ids()) {
    const Group& group = inventory_.group(id);
    if (group.cls == kNoId || (group.cycle == inventory_.cycle() && group.kept)) continue;
    found.Expect(claimed[id] == group.size - inventory_.Remaining(id),
                 "{} machines of group {} are claimed, counted {}", claimed[id], id.value(),
                 group.size - inventory_.Remaining(id));
  }
  found.Expect(std::ranges::is_sorted(short_), "needs that are short are out of order");
  for (const NeedId n : short_) {
    found.Expect(!IsZero(outcomes_[n].shortage, dims()), "need {} is not short", n.value());
  }
  return found.Take();
}

}  // namespace muster::engine::fast
