#include "engine/fast/catalogue.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/probe.h"

namespace muster::engine::fast {
namespace {

uint64_t HashOf(const Filter& filter) {
  Hasher hasher;
  for (const model::Requirement& requirement : filter.requirements) {
    hasher.Add(requirement.key);
    hasher.Add(static_cast<uint64_t>(requirement.op) << 32 | requirement.values.size());
    for (const std::string& value : requirement.values) hasher.Add(value);
  }
  for (const model::Spread& spread : filter.spread) {
    hasher.Add(spread.topology_key);
    hasher.Add(static_cast<uint64_t>(spread.max_skew));
  }
  return hasher.value();
}

uint64_t HashOf(const Amounts& each) {
  Hasher hasher;
  AddTo(hasher, each);
  return hasher.value();
}

uint64_t HashOf(FilterId filter, const Amounts& min_unit) {
  Hasher hasher;
  hasher.Add(filter.value());
  AddTo(hasher, min_unit);
  return hasher.value();
}

}  // namespace

std::optional<std::string_view> Class::Attribute(std::string_view key) const {
  if (key == model::kInstanceTypeKey)
    return instance_type.empty() ? std::nullopt : std::optional(std::string_view(instance_type));
  if (key == model::kZoneKey) return zone.empty() ? std::nullopt : std::optional(std::string_view(zone));
  const auto it = labels.find(std::string(key));
  return it == labels.end() ? std::nullopt : std::optional(std::string_view(it->second));
}

std::vector<std::string> Filter::TopologyKeys() const {
  if (is_gang()) return same_keys;
  std::vector<std::string> keys;
  for (const model::Spread& constraint : spread) keys.push_back(constraint.topology_key);
  return keys;
}

DomainId DomainOf(const Fit& fit, ClassId id) {
  const auto at = std::ranges::lower_bound(fit.classes, id);
  return fit.domain_of[static_cast<size_t>(at - fit.classes.begin())];
}

std::string DomainText(const std::vector<std::string>& domain) {
  std::string text;
  for (const std::string& value : domain) text += (text.empty() ? "" : "/") + value;
  return text;
}

size_t Catalogue::Evict(const Amounts& taken) {
  const auto unused =
      std::ranges::find_if(by_name_, [&](uint32_t d) { return machines_with_[d] == 0 && taken[d] == 0; });
  MUSTER_CHECK(unused != by_name_.end(), "more than {} resource dimensions", kMaxDimensions);
  PROBE("fast.dimension_evicted");
  const uint32_t d = *unused;
  by_name_.erase(unused);
  evicted_.try_emplace(d, names_[d]);  // what rows of needs were read with
  for (const ShapeId id : shapes_.ids()) {
    Shape& shape = shapes_[id];
    if (shape.is_gone || shape.each[d] == 0) continue;
    shape.is_gone = true;
    ++gone_shapes_;
    shape_lookup_.Erase(HashOf(shape.each), id);
  }
  return d;
}

size_t Catalogue::Intern(std::string_view name, const Amounts& taken) {
  const bool full = !name.empty() && by_name_.size() == kMaxMachineDimensions;
  const size_t d = full ? Evict(taken) : names_.size();
  MUSTER_CHECK(d < kMaxDimensions, "more than {} resource dimensions", kMaxDimensions);
  if (!full) names_.emplace_back();
  names_[d] = name;
  ++interned_;
  if (name.empty()) {
    unknown_ = d;
    return d;
  }
  by_name_.push_back(static_cast<uint32_t>(d));
  std::ranges::sort(by_name_, {}, [&](uint32_t i) -> const std::string& { return names_[i]; });
  return d;
}

Amounts Catalogue::Dense(const model::Resources& resources) {
  Amounts amounts;
  size_t next = 0;  // both are mostly in the order of names
  for (const auto& [name, amount] : resources.entries()) {
    size_t d = next;
    if (d >= names_.size() || names_[d] != name) {
      for (d = 0; d < names_.size() && names_[d] != name;) ++d;
    }
    next = d + 1;
    if (d == names_.size()) d = Intern(name, amounts);
    amounts[d] = amount;
  }
  return amounts;
}

// [A.dimensions]
Amounts Catalogue::DenseOfNeed(const model::Resources& resources) {
  Amounts amounts;
  size_t next = 0;
  for (const auto& [name, amount] : resources.entries()) {
    size_t d = next;
    if (d >= names_.size() || names_[d] != name) {
      for (d = 0; d < names_.size() && names_[d] != name;) ++d;
    }
    next = d + 1;
    if (d < names_.size()) {
      amounts[d] = amount;
      continue;
    }
    if (unknown_ >= names_.size()) Intern("", {});
    ++amounts[unknown_];
  }
  return amounts;
}

model::Resources Catalogue::Sparse(const Amounts& amounts) const {
  model::Resources resources;
  for (const uint32_t d : by_name_) {
    if (amounts[d] != 0) resources.Set(names_[d], amounts[d]);
  }
  return resources;
}

bool Catalogue::HasRoomFor(const model::Resources& resources, ClassId own) const {
  size_t unknown = 0;
  for (const auto& [name, amount] : resources.entries())
    unknown += std::ranges::find(names_, name) == names_.end() ? 1 : 0;
  if (by_name_.size() + unknown <= kMaxMachineDimensions) return true;
  if (MUTANT("fast.dimensions_stay")) return false;
  const bool is_known = own != kNoId && !MUTANT("fast.own_dimensions_stay");
  const auto only_others = std::ranges::count_if(by_name_, [&](uint32_t d) {
    const int64_t itself = is_known && each(own)[d] != 0 ? 1 : 0;
    return machines_with_[d] > itself && resources.Get(names_[d]) == 0;
  });
  return static_cast<size_t>(only_others) + resources.entries().size() <= kMaxMachineDimensions;
}

ShapeId Catalogue::ShapeOf(const Amounts& each) {
  return shape_lookup_.FindOrAdd(
      HashOf(each), [&](ShapeId i) { return shapes_[i].each == each; }, [&] { return shapes_.Add({.each = each}); });
}

#ifdef MUSTER_FAULTS
bool Catalogue::IsOfClass(const model::Machine& machine, ClassId id) const {
  const Class& c = classes_[id];
  if (c.price != machine.price_per_hour.micros || c.probability != machine.interruption_probability.millionths ||
      c.capacity_type != machine.capacity_type || c.instance_type != machine.instance_type || c.zone != machine.zone ||
      c.labels != machine.labels) {
    return false;
  }
  const Amounts& each = shapes_[c.shape].each;
  size_t dims = 0;
  for (const int64_t amount : each.v) dims += amount != 0 ? 1 : 0;
  const auto& entries = machine.EffectiveAllocatable().entries();
  if (entries.size() != dims) return false;
  for (const auto& [name, amount] : entries) {
    size_t d = 0;
    while (d < names_.size() && names_[d] != name) ++d;
    if (d == names_.size() || each[d] != amount) return false;
  }
  return true;
}
#endif

ClassId Catalogue::ClassOf(const model::Machine& machine, uint64_t digest) {
  const ClassId known = class_lookup_.Find(
      digest, [&](ClassId i) { return classes_[i].digest == digest && !shapes_[classes_[i].shape].is_gone; });
  if (known != kNoId) {
#ifdef MUSTER_FAULTS
    MUSTER_CHECK(IsOfClass(machine, known), "machine {} came with another machine's digest", machine.id);
#endif
    return known;
  }
  Class fresh{.digest = digest,
              .instance_type = machine.instance_type,
              .zone = machine.zone,
              .labels = machine.labels,
              .capacity_type = machine.capacity_type,
              .price = machine.price_per_hour.micros,
              .probability = machine.interruption_probability.millionths,
              .shape = ShapeOf(Dense(machine.EffectiveAllocatable()))};
  fresh.type = TypeOf(machine.instance_type);
  const ClassId id = classes_.Add(std::move(fresh));
  class_lookup_.Insert(digest, id);
  ++empty_classes_;  // until CountMachine
  Index(id);
  if (!held_stocks_.empty() && held_stocks_.contains(StockClassOf(machine))) {
    classes_[id].out_of_stock = true;
    out_of_stock_.push_back(id);
  }
  return id;
}

// [H.class]
void Catalogue::SetOutOfStock(const StockClass& stock, bool out) {
  if (out) {
    held_stocks_.insert(stock);
  } else {
    held_stocks_.erase(stock);
  }
  const auto consider = [&](ClassId id) {
    Class& c = classes_[id];
    if (c.instance_type != stock.instance_type || c.zone != stock.zone || c.capacity_type != stock.capacity_type)
      return;
    c.out_of_stock = out;
    if (out) out_of_stock_.push_back(id);
  };
  if (!stock.instance_type.empty()) {
    const std::vector<ClassId>* of_type = ClassesWith(std::string(model::kInstanceTypeKey), stock.instance_type);
    if (of_type != nullptr) std::ranges::for_each(*of_type, consider);
  } else {
    for (const ClassId id : classes_.ids()) consider(id);
  }
  if (!out) std::erase_if(out_of_stock_, [&](ClassId id) { return !classes_[id].out_of_stock; });
}

void Catalogue::Index(ClassId id) {
  classes_[id].ForEachAttribute([&](const std::string& key, const std::string& value) {
    if (key == model::kZoneKey && MUTANT("fast.class_unindexed")) return;
    const auto [list, is_new] = with_[key].try_emplace(value, 0);
    if (is_new && spare_lists_.empty()) {
      list->second = static_cast<uint32_t>(lists_.size());
      lists_.emplace_back();
    } else if (is_new) {
      list->second = spare_lists_.back();
      spare_lists_.pop_back();
    }
    lists_[list->second].push_back(id);
  });
}

void Catalogue::CountLive(ClassId id, int64_t change) {
  Class& c = classes_[id];
  Shape& shape = shapes_[c.shape];
  const bool had = c.live > 0;
  c.live += change;
  shape.live += change;
  if (had != (c.live > 0)) ++live_version_;
}

void Catalogue::CountMachine(ClassId id, int64_t change) {
  const Amounts& amounts = each(id);
  for (size_t d = 0; d < dimensions(); ++d) machines_with_[d] += amounts[d] != 0 ? change : 0;
  Class& c = classes_[id];
  empty_classes_ -= c.machines == 0 ? 1 : 0;
  c.machines += change;
  empty_classes_ += c.machines == 0 ? 1 : 0;
}

// A cycle has begun: groups are those of the machines, and no plan refers to a class.
Renumbering<ClassId> Catalogue::SweepClasses() {
  PROBE("fast.classes_swept");
  ++sweeps_;
  ++live_version_;  // what was prepared for the classes there were is prepared again
  const Renumbering<ClassId> now(classes_.size(), [&](ClassId id) { return classes_[id].machines > 0; });
  for (std::vector<ClassId>& list : lists_) now.ApplyTo(list);
  for (const Class& c : classes_) {
    if (c.machines == 0) DropEmptyLists(c);
  }
  now.ApplyTo(classes_);
  now.ApplyTo(out_of_stock_);
  empty_classes_ = 0;
  class_lookup_ = {};
  class_lookup_.Reserve(classes_.size());
  for (const ClassId id : classes_.ids()) class_lookup_.Insert(classes_[id].digest, id);
  SweepShapes();
  Rows<FilterId, size_t>
      kept;  // of the classes that a filter lists: its fits, which are many, count only what they lack
  kept.resize(filters_.size());
  for (const FilterId id : filters_.ids()) kept[id] = now.KeptIn(filters_[id].classes);
  for (Fit& fit : fits_) {
    if (fit.filter != kNoId) RenumberFit(fit, now, kept[fit.filter]);
  }
  for (Filter& filter : filters_) {
    now.ApplyTo(filter.classes);
    filter.seen = MUTANT("fast.classes_missed") ? classes_.size() : now.KeptOf(filter.seen);
  }
  return now;
}

void Catalogue::DropEmptyLists(const Class& of) {
  of.ForEachAttribute([&](const std::string& key, const std::string& value) {
    const auto values = with_.find(key);
    if (values == with_.end()) return;
    const auto list = values->second.find(value);
    if (list == values->second.end() || !lists_[list->second].empty()) return;
    spare_lists_.push_back(list->second);
    values->second.erase(list);
    if (values->second.empty()) with_.erase(values);
  });
}

void Catalogue::SweepShapes() {
  Rows<ShapeId, bool> used;
  used.resize(shapes_.size(), false);
  for (const Class& c : classes_) used[c.shape] = true;
  const Renumbering<ShapeId> now(shapes_.size(), [&](ShapeId id) { return used[id]; });
  now.ApplyTo(shapes_);
  for (Class& c : classes_) c.shape = now(c.shape);
  gone_shapes_ = 0;  // no machine has them
  shape_lookup_ = {};
  for (const ShapeId id : shapes_.ids()) shape_lookup_.Insert(HashOf(shapes_[id].each), id);
}

// Domains keep their numbers and names. One without classes is as good as one without machines, and goes when domains
// are named anew.
void Catalogue::RenumberFit(Fit& fit, const Renumbering<ClassId>& now, size_t kept) {
  const std::span<const ClassId> lacking = std::span(filters_[fit.filter].classes).subspan(fit.seen);
  fit.seen = kept - now.KeptIn(lacking);
  const std::vector<ClassId> before = std::exchange(fit.classes, {});
  fit.classes.reserve(before.size());
  fit.bits.clear();
  fit.types.clear();
  size_t named = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    const ClassId id = now(before[i]);
    if (id == kNoId) continue;
    if (i < fit.domain_of.size()) fit.domain_of[named++] = fit.domain_of[i];
    Enlist(fit, id);
  }
  fit.domain_of.resize(named);
  if (fit.domains_for) fit.domains_for = named;
  for (std::vector<ClassId>& classes : fit.in_domain) now.ApplyTo(classes);
}

void Catalogue::Enlist(Fit& fit, ClassId id) {
  fit.classes.push_back(id);
  const uint32_t bit = id.value();
  if (fit.bits.size() <= bit / 64) fit.bits.resize(bit / 64 + 1, 0);
  fit.bits[bit / 64] |= uint64_t{1} << (bit % 64);
  const TypeId type = classes_[id].type;
  const auto at = std::ranges::lower_bound(fit.types, type);
  if (at == fit.types.end() || *at != type) fit.types.insert(at, type);
}

bool Catalogue::RefreshSizes() {
  if (sized_version_ == live_version_ || (MUTANT("fast.stale_sizes") && sized_version_ != 0)) return false;
  sized_version_ = live_version_;
  Amounts largest;
  for (const Shape& shape : shapes_) {
    if (shape.live == 0) continue;
    for (size_t d = 0; d < dimensions(); ++d) largest[d] = std::max(largest[d], shape.each[d]);
  }
  bool changed = false;
  for (Shape& shape : shapes_) {
    Wide size = 0;
    for (size_t d = 0; d < dimensions(); ++d) {
      if (largest[d] > 0) size += Ratio(shape.each[d], largest[d]);
    }
    changed = changed || size != shape.size;
    shape.size = size;
  }
  return changed;
}

FilterId Catalogue::FilterOf(const model::Profile& profile) {
  Filter filter{.requirements = profile.requirements()};
  for (const model::Requirement& requirement : filter.requirements) {
    if (requirement.op == model::Operator::kSame) filter.same_keys.push_back(requirement.key);
  }
  for (const model::Spread& spread : profile.spread()) {
    if (!filter.is_gang() && spread.when == model::WhenUnsatisfiable::kDoNotSchedule) filter.spread.push_back(spread);
  }
  return filter_lookup_.FindOrAdd(
      HashOf(filter),
      [&](FilterId i) {
        return filters_[i].requirements == filter.requirements && filters_[i].spread == filter.spread;
      },
      [&] {
        if (spare_filters_.empty()) return filters_.Add(std::move(filter));
        const FilterId id = spare_filters_.back();
        spare_filters_.pop_back();
        filters_[id] = std::move(filter);
        return id;
      });
}

bool Catalogue::MatchesFilter(const Filter& filter, ClassId id) const {
  const Class& c = classes_[id];
  for (const model::Requirement& requirement : filter.requirements) {
    if (!model::Matches(requirement, c.Attribute(requirement.key))) return false;
  }
  for (const model::Spread& spread : filter.spread) {
    if (!c.Attribute(spread.topology_key)) return false;
  }
  return true;
}

// Tries the classes that came since. Starts from the requirement that the fewest classes can pass.
void Catalogue::Extend(Filter& filter) {
  const model::Requirement* narrow = nullptr;
  size_t fewest = classes_.size() - filter.seen;
  for (const model::Requirement& requirement : filter.requirements) {
    if (requirement.op != model::Operator::kIn) continue;
    size_t count = 0;
    for (const std::string& value : requirement.values) {
      const std::vector<ClassId>* with = ClassesWith(requirement.key, value);
      if (with != nullptr) count += with->size();
    }
    if (count < fewest) {
      fewest = count;
      narrow = &requirement;
    }
  }
  const size_t before = filter.classes.size();
  const auto consider = [&](ClassId id) {
    if (id.value() >= filter.seen && MatchesFilter(filter, id)) filter.classes.push_back(id);
  };
  if (narrow == nullptr) {
    for (const ClassId id : IdRange<ClassId>(classes_.size(), filter.seen)) consider(id);
  } else {
    for (const std::string& value : narrow->values) {
      const std::vector<ClassId>* with = ClassesWith(narrow->key, value);
      if (with == nullptr) continue;
      for (const ClassId id : *with) consider(id);
    }
    std::ranges::sort(filter.classes.begin() + static_cast<ptrdiff_t>(before), filter.classes.end());
  }
  filter.seen = classes_.size();
}

const std::vector<ClassId>* Catalogue::ClassesWith(const std::string& key, const std::string& value) const {
  const auto values = with_.find(key);
  if (values == with_.end()) return nullptr;
  const auto list = values->second.find(value);
  return list == values->second.end() ? nullptr : &lists_[list->second];
}

FitId Catalogue::FitOf(FilterId filter, const Amounts& min_unit) {
  return fit_lookup_.FindOrAdd(
      HashOf(filter, min_unit), [&](FitId i) { return fits_[i].filter == filter && fits_[i].min_unit == min_unit; },
      [&] {
        Fit fit{.filter = filter, .min_unit = min_unit};
        if (spare_fits_.empty()) return fits_.Add(std::move(fit));
        const FitId id = spare_fits_.back();
        spare_fits_.pop_back();
        fits_[id] = std::move(fit);
        return id;
      });
}

void Catalogue::Sweep(const Rows<FilterId, bool>& used_filters, const Rows<FitId, bool>& used_fits) {
  ++sweeps_;
  for (const FitId id : fits_.ids()) {
    Fit& fit = fits_[id];
    if (fit.filter == kNoId || used_fits[id]) continue;
    fit_lookup_.Erase(HashOf(fit.filter, fit.min_unit), id);
    fit = {};
    spare_fits_.push_back(id);
  }
  for (const FilterId id : filters_.ids()) {
    Filter& filter = filters_[id];
    if (filter.is_spare || used_filters[id]) continue;
    filter_lookup_.Erase(HashOf(filter), id);
    filter = {.is_spare = true};
    spare_filters_.push_back(id);
  }
}

const Fit& Catalogue::fit(FitId id) {
  Fit& fit = fits_[id];
  Filter& filter = filters_[fit.filter];
  if (filter.seen < classes_.size() && !(MUTANT("fast.stale_fit") && filter.seen > 0)) Extend(filter);
  for (; fit.seen < filter.classes.size(); ++fit.seen) {
    const ClassId c = filter.classes[fit.seen];
    if (Covers(each(c), fit.min_unit, kMaxDimensions)) Enlist(fit, c);
  }
  return fit;
}

// Domains are those of all classes; which of their values count changes as classes come to life and die out.
const Fit& Catalogue::FitWithDomains(FitId id) {
  fit(id);
  Fit& fit = fits_[id];
  if (fit.domains_for && MUTANT("fast.stale_domains")) {
    fit.domain_of.resize(fit.classes.size());
  } else if (fit.domains_for != fit.classes.size()) {
    fit.domains_for = fit.classes.size();
    NameDomains(fit);
    fit.lives_version = 0;
  }
  if (fit.values.empty() || fit.lives_version == live_version_) return fit;
  fit.lives_version = live_version_;
  for (size_t c = 0; c < fit.values.size(); ++c) {
    fit.value_lives[c].assign(fit.values[c], false);
    for (size_t i = 0; i < fit.classes.size(); ++i) {
      if (classes_[fit.classes[i]].live > 0) fit.value_lives[c][fit.value_of[c][fit.domain_of[i]]] = true;
    }
  }
  return fit;
}

void Catalogue::NameDomains(Fit& fit) const {
  const Filter& filter = filters_[fit.filter];
  const std::vector<std::string> keys = filter.TopologyKeys();
  std::vector<std::vector<std::string>> domains;
  std::vector<std::vector<std::string>> of_class;
  for (const ClassId c : fit.classes) {
    std::vector<std::string> domain;
    for (const std::string& key : keys) domain.emplace_back(classes_[c].Attribute(key).value_or(""));
    of_class.push_back(domain);
    domains.push_back(std::move(domain));
  }
  std::ranges::sort(domains);
  const auto repeated = std::ranges::unique(domains);
  domains.erase(repeated.begin(), repeated.end());
  fit.domains.clear();
  for (std::vector<std::string>& domain : domains) fit.domains.Add(std::move(domain));
  fit.domain_of.clear();
  fit.in_domain.assign(fit.domains.size(), {});
  for (size_t i = 0; i < fit.classes.size(); ++i) {
    const auto at = std::ranges::lower_bound(fit.domains, of_class[i]);
    fit.domain_of.push_back(DomainId::Of(static_cast<size_t>(at - fit.domains.begin())));
    fit.in_domain[fit.domain_of.back()].push_back(fit.classes[i]);
  }
  fit.value_of.assign(filter.spread.size(), {});
  fit.values.clear();
  for (size_t c = 0; c < filter.spread.size(); ++c) {
    std::vector<std::string> values;
    for (const auto& domain : fit.domains) values.push_back(domain[c]);
    std::ranges::sort(values);
    const auto again = std::ranges::unique(values);
    values.erase(again.begin(), again.end());
    for (const auto& domain : fit.domains) {
      fit.value_of[c].Add(static_cast<uint32_t>(std::ranges::lower_bound(values, domain[c]) - values.begin()));
    }
    fit.values.push_back(static_cast<uint32_t>(values.size()));
  }
  fit.value_lives.resize(fit.values.size());
}

TypeId Catalogue::TypeOf(std::string_view instance_type) {
  return type_lookup_.FindOrAdd(
      Hash(instance_type), [&](TypeId i) { return types_[i] == instance_type; },
      [&] { return types_.Add(std::string(instance_type)); });
}

}  // namespace muster::engine::fast
