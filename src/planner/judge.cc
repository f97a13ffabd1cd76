#include "planner/judge.h"

#include <algorithm>
#include <charconv>

#include "base/codec.h"

namespace muster::planner {
namespace {

using placement::Kind;

constexpr const char* kHost = "kubernetes.io/hostname";
constexpr int64_t kNone = INT64_MAX;

// --- Tests of one value, label set or selector. Written for this file.

bool ToNumber(const std::string& text, int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool Holds(const model::Requirement& requirement, const std::string* value) {
  const bool listed = value != nullptr && std::ranges::count(requirement.values, *value) > 0;
  int64_t have = 0;
  int64_t want = 0;
  switch (requirement.op) {
    case model::Operator::kIn: return listed;
    case model::Operator::kNotIn: return !listed;
    case model::Operator::kExists: return value != nullptr;
    case model::Operator::kDoesNotExist: return value == nullptr;
    case model::Operator::kSame: return value != nullptr && (requirement.values.empty() || listed);
    case model::Operator::kGt:
    case model::Operator::kLt:
      if (value == nullptr || requirement.values.size() != 1) return false;
      if (!ToNumber(*value, have) || !ToNumber(requirement.values[0], want)) return false;
      return requirement.op == model::Operator::kGt ? have > want : have < want;
    case model::Operator::kUnspecified: return false;
  }
  return false;
}

const std::string* ValueIn(const model::TextMap& labels, const std::string& key) {
  const auto found = labels.find(key);
  return found == labels.end() ? nullptr : &found->second;
}

bool AllHold(const std::vector<model::Requirement>& requirements, const model::TextMap& labels) {
  return std::ranges::all_of(requirements, [&](const auto& one) { return Holds(one, ValueIn(labels, one.key)); });
}

bool Endures(const Kind& kind, const placement::Taint& taint) {
  for (const placement::Toleration& toleration : kind.tolerations) {
    const bool effect = toleration.every_effect || toleration.effect == taint.effect;
    const bool key = toleration.key == taint.key || (toleration.key.empty() && toleration.exists);
    if (effect && key && (toleration.exists || toleration.value == taint.value)) return true;
  }
  return false;
}

// Which units a spread constraint or a term of `owner` is about.
class About {
 public:
  About(const Kind& owner, const placement::SpreadConstraint& spread)
      : nothing_(!spread.selector.given || (spread.selector.all.empty() && spread.match_label_keys.empty())),
        requirements_(spread.selector.all),
        own_namespace_(owner.name_space) {
    AddOwn(owner, spread.match_label_keys, model::Operator::kIn);
    nothing_ = nothing_ || requirements_.empty();
  }
  About(const Kind& owner, const placement::UnitTerm& term)
      : nothing_(!term.selector.given),
        requirements_(term.selector.all),
        own_namespace_(owner.name_space),
        term_(&term) {
    AddOwn(owner, term.match_label_keys, model::Operator::kIn);
    AddOwn(owner, term.mismatch_label_keys, model::Operator::kNotIn);
  }

  bool Includes(const Kind& unit, const placement::World& world) const {
    return !nothing_ && NamespaceIncludes(unit.name_space, world) && AllHold(requirements_, unit.labels);
  }
  // A text that is the same for equal ones.
  std::string Text() const {
    std::string text = fmt::format("{}|{}|", nothing_, own_namespace_);
    for (const auto& one : requirements_) text += model::ToString(one) + "&";
    if (term_ == nullptr) return text;
    for (const auto& name : term_->namespaces) text += "/" + name;
    text += term_->namespace_selector.given ? "?" : "!";
    for (const auto& one : term_->namespace_selector.all) text += model::ToString(one) + "&";
    return text;
  }

 private:
  void AddOwn(const Kind& owner, const std::vector<std::string>& keys, model::Operator op) {
    for (const std::string& key : keys) {
      if (const std::string* value = ValueIn(owner.labels, key)) {
        requirements_.push_back({.key = key, .op = op, .values = {*value}});
      }
    }
  }
  bool NamespaceIncludes(const std::string& name, const placement::World& world) const {
    if (term_ == nullptr || (term_->namespaces.empty() && !term_->namespace_selector.given)) {
      return name == own_namespace_;
    }
    if (std::ranges::count(term_->namespaces, name) > 0) return true;
    if (!term_->namespace_selector.given) return false;
    const auto known = world.namespaces.find(name);
    return AllHold(term_->namespace_selector.all, known == world.namespaces.end() ? model::TextMap() : known->second);
  }

  bool nothing_ = false;
  std::vector<model::Requirement> requirements_;
  std::string own_namespace_;
  const placement::UnitTerm* term_ = nullptr;
};

bool TaintsFit(const Kind& kind, const Spot& spot) {
  return std::ranges::all_of(spot.taints, [&](const placement::Taint& taint) {
    return taint.effect == placement::TaintEffect::kPreferNoSchedule || Endures(kind, taint);
  });
}

bool IsHard(const placement::SpreadConstraint& spread) {
  return spread.when == model::WhenUnsatisfiable::kDoNotSchedule;
}

bool HasKey(const Spot& spot, const std::string& key) { return key == kHost || ValueIn(spot.labels, key) != nullptr; }

// What of a kind decides which nodes its spread counts.
std::string EligibilityText(const Kind& kind, const placement::SpreadConstraint& spread) {
  std::string text = codec::ToBytes(kind.requirements) + codec::ToBytes(kind.node_terms);
  text += codec::ToBytes(kind.tolerations) + codec::ToBytes(spread.node_affinity) + codec::ToBytes(spread.node_taints);
  for (const placement::SpreadConstraint& other : kind.spread) {
    if (IsHard(other)) text += "/" + other.topology_key;
  }
  return text;
}

int64_t CountOf(const std::map<uint32_t, int64_t>& counts, uint32_t kind) {
  const auto found = counts.find(kind);
  return found == counts.end() ? 0 : found->second;
}

void TakeOne(std::map<uint32_t, int64_t>& counts, uint32_t kind) {
  const auto found = counts.find(kind);
  if (found != counts.end() && --found->second == 0) counts.erase(found);
}

}  // namespace

// --- The state.

void Judge::AddSpot(Spot spot) {
  if (spot.id.empty()) Find("a machine has no id");
  if (!spot_of_.emplace(spot.id, spots_.size()).second) Find("machine {}: the id is there twice", spot.id);
  spot.device_taken.assign(spot.devices.size(), 0);
  spots_.push_back(std::move(spot));
}

void Judge::AddNode(const placement::Node& node) {
  Spot spot{.id = node.id,
            .labels = node.labels,
            .taints = node.taints,
            .total = node.total,
            .devices = node.devices,
            .kept = &node,
            .may_be_empty = true};
  for (const auto& [name, amount] : node.reserved.entries()) spot.taken[name] += amount;
  AddSpot(std::move(spot));
}

void Judge::AddMachine(const std::string& id, const Candidate& candidate, bool may_be_empty) {
  AddSpot({.id = id,
           .labels = candidate.labels,
           .taints = candidate.taints,
           .total = candidate.allocatable,
           .devices = candidate.devices,
           .may_be_empty = may_be_empty});
}

size_t Judge::SpotOf(const std::string& id) const {
  const auto found = spot_of_.find(id);
  return found == spot_of_.end() ? kNowhere : found->second;
}

void Judge::AddResident(Spot& spot, uint32_t kind, bool terminating) {
  for (const auto& [name, amount] : world_.kinds[kind].request.entries()) spot.taken[name] += amount;
  ++spot.residents[kind];
  if (terminating) ++spot.terminating[kind];
}

void Judge::RemoveResident(Spot& spot, uint32_t kind) {
  for (const auto& [name, amount] : world_.kinds[kind].request.entries()) spot.taken[name] -= amount;
  TakeOne(spot.residents, kind);
}

void Judge::AddNewcomer(Spot& spot, uint32_t kind) {
  for (const auto& [name, amount] : world_.kinds[kind].request.entries()) spot.taken[name] += amount;
  ++spot.newcomers[kind];
}

void Judge::StateIsWhole() {
  newcomers_at_.clear();
  residents_at_.clear();
  domains_.clear();
  values_.clear();
  grounds_.clear();
  crowds_.clear();
  for (size_t s = 0; s < spots_.size(); ++s) {
    if (spots_[s].gone) continue;
    for (const auto& [kind, count] : spots_[s].newcomers) newcomers_at_[kind].push_back(s);
    for (const auto& [kind, count] : spots_[s].residents) residents_at_[kind].push_back(s);
  }
}

// --- One node.

void Judge::CheckRoom(const Spot& spot) {
  if (spot.kept != nullptr && spot.newcomers.empty()) return;  // as it was
  for (const auto& [name, amount] : spot.taken) {
    if (spot.kept != nullptr && std::ranges::count(spot.kept->unlimited, name) > 0) continue;
    if (amount <= spot.total.Get(name)) continue;
    // A node that was overfull before is not the answer's doing, unless a newcomer takes more of it.
    const bool taken = std::ranges::any_of(
        spot.newcomers, [&](const auto& entry) { return world_.kinds[entry.first].request.Get(name) > 0; });
    if (taken) Find("{}: {} of {} is more than its {}", spot.id, amount, name, spot.total.Get(name));
  }
}

bool Judge::LabelsFit(const Kind& kind, const Spot& spot) const {
  if (!AllHold(kind.requirements, spot.labels)) return false;
  return kind.node_terms.empty() || std::ranges::any_of(kind.node_terms, [&](const placement::NodeTerm& term) {
           const std::string name = spot.kept != nullptr ? spot.id : "";
           const bool fields = std::ranges::all_of(term.fields, [&](const model::Requirement& field) {
             return Holds(field, field.key == "metadata.name" ? &name : nullptr);
           });
           return !(term.labels.empty() && term.fields.empty()) && fields && AllHold(term.labels, spot.labels);
         });
}

void Judge::CheckAccess(const Spot& spot) {
  for (const auto& [k, count] : spot.newcomers) {
    const Kind& kind = world_.kinds[k];
    if (!LabelsFit(kind, spot)) Find("{}: a unit of kind {} does not allow its labels", spot.id, k);
    if (!TaintsFit(kind, spot)) Find("{}: a unit of kind {} does not tolerate its taints", spot.id, k);
    const auto& types = spot.kept != nullptr ? spot.kept->supported_types : std::vector<model::WorkloadType>();
    const bool any = kind.type == model::WorkloadType::kUnspecified;
    const bool plain = types.empty() && kind.type != model::WorkloadType::kVm;
    if (!any && !plain && std::ranges::count(types, kind.type) == 0) {
      Find("{}: it does not run units of kind {}", spot.id, k);
    }
    if (spot.kept == nullptr) continue;
    const placement::Taint cordon{.key = "node.kubernetes.io/unschedulable"};
    if (spot.kept->cordoned && !Endures(kind, cordon)) Find("{}: it is cordoned", spot.id);
    if (!spot.kept->ready || !spot.kept->fresh) Find("{}: it is not ready", spot.id);
  }
}

void Judge::CheckPorts(const Spot& spot) {
  struct Use {
    const placement::HostPort* port = nullptr;
    std::pair<uint32_t, int64_t> unit;  // kind, and which of it: ports of one unit do not conflict
    bool newcomer = false;
  };
  std::vector<Use> used;
  const auto add = [&](const std::map<uint32_t, int64_t>& counts, bool newcomer) {
    for (const auto& [k, count] : counts) {
      for (const placement::HostPort& port : world_.kinds[k].ports) {
        const int64_t first = newcomer ? 0 : 2;
        for (int64_t i = 0; i < std::min<int64_t>(count, 2); ++i) used.push_back({&port, {k, first + i}, newcomer});
      }
    }
  };
  add(spot.newcomers, true);
  add(spot.residents, false);
  const auto every = [](const std::string& ip) { return ip.empty() || ip == "0.0.0.0"; };
  for (size_t a = 0; a < used.size() && used[a].newcomer; ++a) {
    for (size_t b = a + 1; b < used.size(); ++b) {
      const placement::HostPort& x = *used[a].port;
      const placement::HostPort& y = *used[b].port;
      const bool address = x.ip == y.ip || every(x.ip) || every(y.ip);
      if (used[a].unit != used[b].unit && x.port == y.port && x.protocol == y.protocol && address) {
        Find("{}: two units use host port {}", spot.id, x.port);
      }
    }
  }
}

Judge::DeviceSum Judge::DevicesOf(const Spot& spot) const {
  DeviceSum sum;
  for (const int32_t milli : spot.devices) sum.has += milli;
  for (const auto* units : {&spot.newcomers, &spot.residents}) {
    for (const auto& [k, count] : *units) {
      const placement::DeviceRequest& asked = world_.kinds[k].devices;
      sum.asked += count * (int64_t{asked.whole} * 1000 + asked.milli);
      sum.by_newcomers = sum.by_newcomers || (units == &spot.newcomers && !asked.empty());
    }
  }
  return sum;
}

void Judge::CheckDevices(const Spot& spot) {
  const DeviceSum sum = DevicesOf(spot);
  if (sum.by_newcomers && sum.asked > sum.has) {
    Find("{}: {} thousandths of devices are more than its {}", spot.id, sum.asked, sum.has);
  }
}

// --- Rules between units.

int64_t Judge::Crowd::In(size_t domain) const {
  const auto found = all.find(domain);
  return found == all.end() ? 0 : found->second;
}

int64_t Judge::Crowd::LeastElsewhere(const std::vector<bool>& domains, int64_t count, size_t domain) const {
  int64_t least = kNone;
  int64_t others = count - (domain < domains.size() && domains[domain] ? 1 : 0);
  for (const auto& [d, units] : all) {
    if (d == domain || !domains[d]) continue;
    least = std::min(least, units);
    --others;
  }
  return others > 0 ? std::min<int64_t>(least, 0) : least;  // a domain without an entry has none
}

template <class Selecting>
const Judge::Included& Judge::IncludedBy(const Selecting& selecting) {
  const auto [at, is_new] = included_.try_emplace(selecting.Text());
  if (is_new) {
    for (uint32_t k = 0; k < world_.kinds.size(); ++k) {
      at->second.has.push_back(selecting.Includes(world_.kinds[k], world_));
      if (at->second.has.back()) at->second.kinds.push_back(k);
    }
  }
  return at->second;
}

// The domain of every spot under one key, numbered; kNowhere: it lacks the key.
const std::vector<size_t>& Judge::DomainsOf(const std::string& key) {
  const auto [at, is_new] = domains_.try_emplace(key);
  if (!is_new) return at->second;
  std::unordered_map<std::string, size_t> number;
  std::vector<std::string>& values = values_[key];
  for (const Spot& spot : spots_) {
    const std::string* value = ValueIn(spot.labels, key);
    if (!HasKey(spot, key)) {
      at->second.push_back(kNowhere);
      continue;
    }
    const auto [known, fresh] = number.try_emplace(value != nullptr ? *value : spot.id, values.size());
    if (fresh) values.push_back(known->first);
    at->second.push_back(known->second);
  }
  return at->second;
}

template <class Accept>
const Judge::Ground& Judge::GroundOf(const std::string& text, const std::string& key, Accept&& accept) {
  const auto [at, is_new] = grounds_.try_emplace(key + "|" + text);
  Ground& ground = at->second;
  if (!is_new) return ground;
  const std::vector<size_t>& domains = DomainsOf(key);
  const size_t count = values_[key].size();
  std::vector<bool> at_first(count, false);
  ground.now.assign(count, false);
  for (size_t s = 0; s < spots_.size(); ++s) {
    const bool counts = domains[s] != kNowhere && accept(spots_[s]);
    ground.spots.push_back(counts && !spots_[s].gone);
    if (!counts) continue;
    if (!spots_[s].gone) ground.now[domains[s]] = true;
    if (spots_[s].kept != nullptr) at_first[domains[s]] = true;
  }
  for (size_t d = 0; d < count; ++d) {
    ground.first.push_back(ground.now[d] && at_first[d]);
    ground.domains_now += ground.now[d] ? 1 : 0;
    ground.domains_first += ground.first[d] ? 1 : 0;
  }
  return ground;
}

const Judge::Crowd& Judge::CrowdOf(const std::string& text, const std::string& key, const std::vector<uint32_t>& kinds,
                                   const Ground& ground, bool terminating) {
  const auto [at, is_new] = crowds_.try_emplace(key + "|" + text);
  Crowd& crowd = at->second;
  if (!is_new) return crowd;
  const std::vector<size_t>& domains = DomainsOf(key);
  for (const uint32_t kind : kinds) {
    if (const auto where = newcomers_at_.find(kind); where != newcomers_at_.end()) {
      for (const size_t s : where->second) {
        if (!ground.spots[s]) continue;
        crowd.newcomers[domains[s]] += CountOf(spots_[s].newcomers, kind);
        crowd.all[domains[s]] += CountOf(spots_[s].newcomers, kind);
      }
    }
    if (const auto where = residents_at_.find(kind); where != residents_at_.end()) {
      for (const size_t s : where->second) {
        if (!ground.spots[s]) continue;
        crowd.all[domains[s]] += CountOf(spots_[s].residents, kind);
        if (!terminating) crowd.all[domains[s]] -= CountOf(spots_[s].terminating, kind);
      }
    }
  }
  return crowd;
}

bool Judge::Counts(const Kind& kind, const placement::SpreadConstraint& spread, const Spot& spot) const {
  for (const placement::SpreadConstraint& other : kind.spread) {
    if (IsHard(other) && !HasKey(spot, other.topology_key)) return false;
  }
  if (spread.node_affinity == placement::NodeInclusion::kHonor && !LabelsFit(kind, spot)) return false;
  return spread.node_taints == placement::NodeInclusion::kIgnore || TaintsFit(kind, spot);
}

Judge::SpreadView Judge::ViewOf(uint32_t k, const placement::SpreadConstraint& spread) {
  const Kind& kind = world_.kinds[k];
  const About about(kind, spread);
  const Included& included = IncludedBy(about);
  const std::string eligible = EligibilityText(kind, spread);
  SpreadView view;
  view.ground =
      &GroundOf("spread" + eligible, spread.topology_key, [&](const Spot& spot) { return Counts(kind, spread, spot); });
  view.crowd = &CrowdOf("spread" + about.Text() + eligible, spread.topology_key, included.kinds, *view.ground, false);
  view.self = included.has[k] ? 1 : 0;
  return view;
}

void Judge::CheckSpread(uint32_t k, const placement::SpreadConstraint& spread, const std::vector<size_t>& where) {
  const SpreadView view = ViewOf(k, spread);
  std::map<size_t, bool> holds;  // by domain
  for (const size_t s : where) {
    const size_t domain = DomainsOf(spread.topology_key)[s];
    if (domain == kNowhere) {
      Find("{}: a unit of kind {} is spread over {}, which it lacks", spots_[s].id, k, spread.topology_key);
      continue;
    }
    const auto [at, is_new] = holds.try_emplace(domain, true);
    if (is_new) {
      const int64_t others = view.crowd->In(domain) - view.self;
      const int64_t elsewhere = view.crowd->LeastElsewhere(view.ground->now, view.ground->domains_now, domain);
      const int64_t least = view.ground->domains_now < spread.min_domains ? 0 : std::min(others, elsewhere);
      at->second = others + view.self - least <= std::max(spread.max_skew, 1);
    }
    if (!at->second) Find("{}: a unit of kind {} breaks its spread over {}", spots_[s].id, k, spread.topology_key);
  }
}

std::vector<Judge::NearView> Judge::NearViewsOf(uint32_t k) {
  const Kind& kind = world_.kinds[k];
  std::vector<bool> has(world_.kinds.size(), true);
  std::string text = "near";
  for (const placement::UnitTerm& term : kind.colocate) {
    const About about(kind, term);
    const Included& one = IncludedBy(about);
    text += "+" + about.Text();
    for (size_t i = 0; i < has.size(); ++i) has[i] = has[i] && one.has[i];
  }
  std::vector<uint32_t> kinds;
  for (uint32_t i = 0; i < has.size(); ++i) {
    if (has[i]) kinds.push_back(i);
  }
  std::vector<NearView> views;
  for (const placement::UnitTerm& term : kind.colocate) {
    const Ground& ground = GroundOf("every", term.topology_key, [](const Spot&) { return true; });
    NearView view{.crowd = &CrowdOf(text, term.topology_key, kinds, ground, true), .self = has[k] ? 1 : 0};
    int64_t others = -view.self;
    for (const auto& [domain, count] : view.crowd->all) others += count;
    view.is_first = view.self == 1 && others == 0;
    views.push_back(view);
  }
  return views;
}

void Judge::CheckColocation(uint32_t k, const std::vector<size_t>& where) {
  const std::vector<NearView> views = NearViewsOf(k);
  for (size_t t = 0; t < views.size(); ++t) {
    if (views[t].is_first) continue;
    for (const size_t s : where) {
      const size_t domain = DomainsOf(world_.kinds[k].colocate[t].topology_key)[s];
      if (domain == kNowhere || views[t].crowd->In(domain) - views[t].self < 1) {
        Find("{}: a unit of kind {} is not near those it must be near", spots_[s].id, k);
      }
    }
  }
}

void Judge::CheckExclusion(uint32_t k, const placement::UnitTerm& term, const std::vector<size_t>& where,
                           bool newcomers) {
  const About about(world_.kinds[k], term);
  const Included& included = IncludedBy(about);
  const Ground& ground = GroundOf("every", term.topology_key, [](const Spot&) { return true; });
  const Crowd& crowd = CrowdOf("excl" + about.Text(), term.topology_key, included.kinds, ground, true);
  for (const size_t s : where) {
    const size_t domain = DomainsOf(term.topology_key)[s];
    if (domain == kNowhere) continue;
    const auto found = crowd.newcomers.find(domain);
    const int64_t others = newcomers                        ? crowd.In(domain) - (included.has[k] ? 1 : 0)
                           : found == crowd.newcomers.end() ? 0
                                                            : found->second;
    if (others > 0) Find("{}: a unit of kind {} excludes another that is there", spots_[s].id, k);
  }
}

void Judge::CheckBetweenUnits() {
  for (const auto& [k, where] : newcomers_at_) {
    const Kind& kind = world_.kinds[k];
    for (const placement::SpreadConstraint& spread : kind.spread) {
      if (IsHard(spread)) CheckSpread(k, spread, where);
    }
    if (!kind.colocate.empty()) CheckColocation(k, where);
    for (const placement::UnitTerm& term : kind.exclude) CheckExclusion(k, term, where, true);
  }
  for (const auto& [k, where] : residents_at_) {
    for (const placement::UnitTerm& term : world_.kinds[k].exclude) CheckExclusion(k, term, where, false);
  }
}

std::map<std::string, int64_t> Judge::BreachesOfResidents() {
  std::map<std::string, int64_t> breaches;
  const auto note = [&](uint32_t k, std::string_view rule, const std::string& key, size_t domain, int64_t by) {
    if (by > 0) breaches[fmt::format("a unit of kind {} {} over {}={}", k, rule, key, values_[key][domain])] = by;
  };
  for (const auto& [k, where] : residents_at_) {
    const Kind& kind = world_.kinds[k];
    for (const placement::SpreadConstraint& spread : kind.spread) {
      if (!IsHard(spread)) continue;
      const SpreadView view = ViewOf(k, spread);
      for (const size_t s : where) {
        const size_t domain = DomainsOf(spread.topology_key)[s];
        if (domain == kNowhere) continue;
        const int64_t others = view.crowd->In(domain) - view.self;
        const int64_t elsewhere = view.crowd->LeastElsewhere(view.ground->first, view.ground->domains_first, domain);
        const int64_t least = view.ground->domains_first < spread.min_domains ? 0 : std::min(others, elsewhere);
        note(k, "breaks its spread", spread.topology_key, domain,
             others + view.self - least - std::max<int64_t>(spread.max_skew, 1));
      }
    }
    if (kind.colocate.empty()) continue;
    const std::vector<NearView> views = NearViewsOf(k);
    for (size_t t = 0; t < views.size(); ++t) {
      const std::string& key = kind.colocate[t].topology_key;
      for (const size_t s : where) {
        const size_t domain = DomainsOf(key)[s];
        if (domain == kNowhere || views[t].is_first) continue;
        note(k, "is not near those it must be near", key, domain, 1 - (views[t].crowd->In(domain) - views[t].self));
      }
    }
  }
  return breaches;
}

}  // namespace muster::planner
