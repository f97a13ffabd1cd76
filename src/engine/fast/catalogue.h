// Catalogue: the kinds of things a fleet is made of. Dimensions, shapes (allocatable vectors), classes (machines that
// differ in nothing but id and state), filters (requirements) and fits (which classes can serve a need).
//
// A fleet has many machines but few classes, so a profile is matched against classes, once; the answer is kept and only
// tried against classes that came since. Filters and fits that no need uses are given back (Sweep), and so are classes
// without machines, with their shapes, once there are many: the others get new ids then (SweepClasses). The place of a
// dimension that no machine has any more is given to a new one when there is no other; its classes are no longer found
// then, and rows of needs that ask for it must be read again (TakeEvicted). Instance types are never removed.
//
// Machines alone define dimensions. What needs ask for beside them is one dimension more, which no machine has: as much
// as it takes to know that they cannot be covered. Their names stay with the needs (Demand).
//
// Invariants (Verify): 1. every lookup finds exactly the rows of its table, and a row by its own content. 2. A shape's
// live machines are those of its classes. 3. The index from (key, value) to classes says what the classes say. 4. A
// filter lists, ascending, the classes it has seen that match; a fit those of them that cover its min_unit, with their
// bits and types. 5. Where domains are named, each class is in the domain of its values, and domains are in order. 6. A
// class that has a dimension which is another's by now has no machine. 7. Classes without machines are counted, and
// those listed that are out of stock.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/fast/amounts.h"
#include "engine/fast/ids.h"
#include "engine/fast/lookup.h"
#include "engine/fast/renumbering.h"
#include "engine/types.h"
#include "model/machine.h"
#include "model/profile.h"
#include "model/text_map.h"

namespace muster::engine::fast {

struct Shape {
  Amounts each;
  int64_t live = 0;  // machines that are not Failed
  Wide size = 0;
  bool is_gone = false;  // a dimension of it is another's by now: no machine has it again
};

struct Class {
  uint64_t digest = 0;
  std::string instance_type;
  std::string zone;
  model::TextMap labels;
  model::CapacityType capacity_type = model::CapacityType::kUnspecified;
  int64_t price = 0;        // micro-dollars an hour
  int64_t probability = 0;  // of interruption, in millionths
  ShapeId shape = kNoId;
  int64_t live = 0;            // machines that are not Failed
  int64_t machines = 0;        // and those that are
  std::vector<GroupId> free;   // Idle and Speculative groups
  std::vector<GroupId> bound;  // Configured groups, of all clusters
  TypeId type = kNoId;         // its instance type, by number
  bool out_of_stock = false;   // nothing of it is bought for now

  std::optional<std::string_view> Attribute(std::string_view key) const;
  // Calls visit(key, value) for each.
  template <class Visit>
  void ForEachAttribute(const Visit& visit) const {
    if (!instance_type.empty()) visit(std::string(model::kInstanceTypeKey), instance_type);
    if (!zone.empty()) visit(std::string(model::kZoneKey), zone);
    for (const auto& [key, value] : labels) {
      if (key != model::kInstanceTypeKey && key != model::kZoneKey) visit(key, value);
    }
  }
};

// The requirements of a profile, and the topology it asks for.
struct Filter {
  std::vector<model::Requirement> requirements;
  std::vector<std::string> same_keys;  // a gang's; empty otherwise
  std::vector<model::Spread> spread;   // the binding constraints; none for a gang
  std::vector<ClassId> classes;        // those that match and have every key it spreads over
  size_t seen = 0;                     // classes tried so far
  bool is_spare = false;

  bool is_gang() const { return !same_keys.empty(); }
  // What a domain of this filter is named by.
  std::vector<std::string> TopologyKeys() const;
};

struct Fit {
  FilterId filter = kNoId;
  Amounts min_unit;
  std::vector<ClassId> classes;  // ascending
  std::vector<uint64_t> bits;    // the same, by class
  size_t seen = 0;               // of the filter's classes
  std::vector<TypeId> types;     // their instance types, ascending: the buckets of the broker
  // Of a filter with topology keys: domains by name, and each class's.
  Rows<DomainId, std::vector<std::string>> domains;  // sorted
  std::vector<DomainId> domain_of;                   // parallel to `classes`
  std::optional<size_t> domains_for;                 // so many classes
  Rows<DomainId, std::vector<ClassId>> in_domain;
  // Spread: per constraint, how many values there are, and the value of each domain.
  std::vector<Rows<DomainId, uint32_t>> value_of;  // [constraint][domain]
  std::vector<uint32_t> values;                    // [constraint]
  std::vector<std::vector<bool>> value_lives;      // [constraint][value]: a machine that is not Failed has it
  uint64_t lives_version = 0;                      // of Catalogue::live_version()

  bool Has(ClassId id) const {
    const uint32_t bit = id.value();
    return bit / 64 < bits.size() && (bits[bit / 64] >> (bit % 64) & 1) != 0;
  }
};

// The domain of a class in a fit that has domains and serves with it.
DomainId DomainOf(const Fit& fit, ClassId id);
// Its values, joined by slashes.
std::string DomainText(const std::vector<std::string>& domain);

class Catalogue {
 public:
  size_t dimensions() const { return names_.size(); }
  const std::vector<std::string>& dimension_names() const { return names_; }
  // Dimensions in the order of their names.
  const std::vector<uint32_t>& by_name() const { return by_name_; }

  // Of a machine: names that are not known become dimensions.
  Amounts Dense(const model::Resources& resources);
  // Of a need: names that are not known are counted in one dimension.
  Amounts DenseOfNeed(const model::Resources& resources);
  // How many such names it has.
  int64_t unknown_in(const Amounts& amounts) const { return unknown_ < names_.size() ? amounts[unknown_] : 0; }
  bool IsDimension(std::string_view name) const { return std::ranges::find(names_, name) != names_.end(); }
  model::Resources Sparse(const Amounts& amounts) const;
  // Whether there is room for the dimensions of a machine with `resources`: those that no other machine has make room.
  // The machine is of class `own` until now, kNoId if it is new.
  bool HasRoomFor(const model::Resources& resources, ClassId own) const;
  // Grows with every name that becomes a dimension.
  uint64_t interned() const { return interned_; }
  // Dimensions that are other names' since this was last called, and what they were then.
  std::map<uint32_t, std::string> TakeEvicted() { return std::exchange(evicted_, {}); }
  bool has_evicted() const { return !evicted_.empty(); }

  // `digest` is MachineDigest::cls.
  ClassId ClassOf(const model::Machine& machine, uint64_t digest);
  Class& cls(ClassId id) { return classes_[id]; }
  const Class& cls(ClassId id) const { return classes_[id]; }
  const Shape& shape(ShapeId id) const { return shapes_[id]; }
  const Shape& shape_of(ClassId id) const { return shapes_[classes_[id].shape]; }
  const Amounts& each(ClassId id) const { return shapes_[classes_[id].shape].each; }
  size_t classes() const { return classes_.size(); }
  size_t shapes() const { return shapes_.size(); }
  // Whether so many classes have no machine that it is worth giving them back, in a fleet of so many machines.
  bool HasManyEmptyClasses(size_t machines) const {
    return empty_classes_ > 256 + (classes_.size() - empty_classes_) / 4 + machines / 64;
  }
  // Gives them back, and shapes that only they have. Says what the others are called from now on.
  Renumbering<ClassId> SweepClasses();

  // Of the classes that are sold from this stock, known now or later, nothing is bought until it is said otherwise.
  void SetOutOfStock(const StockClass& stock, bool out);
  const std::vector<ClassId>& out_of_stock() const { return out_of_stock_; }

  // A machine of this class came (+1) or went (-1), Failed ones not counted.
  void CountLive(ClassId id, int64_t change);
  // The same, Failed ones counted.
  void CountMachine(ClassId id, int64_t change);
  const std::array<int64_t, kMaxDimensions>& machines_with() const { return machines_with_; }
  // Sizes are relative to the largest machine there is. Call before a cycle; true if the order of pools may change.
  bool RefreshSizes();
  uint64_t live_version() const { return live_version_; }

  FilterId FilterOf(const model::Profile& profile);
  const Filter& filter(FilterId id) const { return filters_[id]; }
  FitId FitOf(FilterId filter, const Amounts& min_unit);
  // The fit with every class known by now.
  const Fit& fit(FitId id);
  // The same, without looking for new classes: safe from several threads once fit() was called in this cycle.
  const Fit& fit_as_is(FitId id) const { return fits_[id]; }
  // The same with domains by name.
  const Fit& FitWithDomains(FitId id);
  size_t fits() const { return fits_.size() - spare_fits_.size(); }
  size_t filters() const { return filters_.size() - spare_filters_.size(); }
  // Gives back what is not in use. Ids of it are another's from now on.
  void Sweep(const Rows<FilterId, bool>& used_filters, const Rows<FitId, bool>& used_fits);
  uint64_t sweeps() const { return sweeps_; }
  size_t filter_rows() const { return filters_.size(); }
  size_t fit_rows() const { return fits_.size(); }

  TypeId TypeOf(std::string_view instance_type);
  const Rows<TypeId, std::string>& types() const { return types_; }

  // The first invariant that does not hold; empty if all do.
  std::string Verify() const;

 private:
  std::string VerifyFit(const Fit& fit) const;
#ifdef MUSTER_FAULTS
  bool IsOfClass(const model::Machine& machine, ClassId id) const;
#endif
  ShapeId ShapeOf(const Amounts& each);
  void NameDomains(Fit& fit) const;
  void Index(ClassId id);
  void DropEmptyLists(const Class& of);
  void Enlist(Fit& fit, ClassId id);
  void SweepShapes();
  // `kept`: of the classes that its filter lists.
  void RenumberFit(Fit& fit, const Renumbering<ClassId>& now, size_t kept);
  bool MatchesFilter(const Filter& filter, ClassId id) const;
  void Extend(Filter& filter);
  // The classes with this value of the key, if there are any.
  const std::vector<ClassId>* ClassesWith(const std::string& key, const std::string& value) const;

  // The place of a new name. `taken`: what the machine that has it has besides.
  size_t Intern(std::string_view name, const Amounts& taken);
  // A place of which no machine has anything.
  size_t Evict(const Amounts& taken);

  std::vector<std::string> names_;   // one of them empty: of what no machine has
  size_t unknown_ = kMaxDimensions;  // its place, once a need asked for such
  std::vector<uint32_t> by_name_;
  std::array<int64_t, kMaxDimensions> machines_with_{};  // by dimension
  std::map<uint32_t, std::string> evicted_;
  uint64_t interned_ = 0;
  size_t gone_shapes_ = 0;
  Rows<ShapeId, Shape> shapes_;
  Lookup<ShapeId> shape_lookup_;
  Rows<ClassId, Class> classes_;
  Lookup<ClassId> class_lookup_;
  size_t empty_classes_ = 0;
  using Values = std::unordered_map<std::string, uint32_t>;
  std::unordered_map<std::string, Values> with_;  // by key and value: where in `lists_` the classes are that have it
  std::vector<std::vector<ClassId>> lists_;       // ascending
  std::vector<uint32_t> spare_lists_;
  Rows<FilterId, Filter> filters_;
  Lookup<FilterId> filter_lookup_;
  std::vector<FilterId> spare_filters_;
  Rows<FitId, Fit> fits_;
  Lookup<FitId> fit_lookup_;
  std::vector<FitId> spare_fits_;
  uint64_t sweeps_ = 0;
  Rows<TypeId, std::string> types_;
  Lookup<TypeId> type_lookup_;
  std::set<StockClass> held_stocks_;
  std::vector<ClassId> out_of_stock_;  // classes of them
  uint64_t live_version_ = 1;          // a class has machines now, or none any more
  uint64_t sized_version_ = 0;         // live_version_ for which sizes hold
};

}  // namespace muster::engine::fast
