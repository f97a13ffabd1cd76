#include "planner/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/codec.h"

namespace muster::planner {
namespace {

using placement::Kind;

constexpr size_t kMostFindings = 20;
constexpr size_t kNowhere = SIZE_MAX;
constexpr const char* kHost = "kubernetes.io/hostname";

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

// --- The final state.

struct Spot {
  std::string id;
  model::TextMap labels;
  std::vector<placement::Taint> taints;
  model::Resources total;
  std::vector<int32_t> devices;
  const placement::Node* kept = nullptr;  // a node that was there
  bool may_be_empty = false;
  std::map<std::string, int64_t> taken;
  std::map<uint32_t, int64_t> counts;       // planned units by kind
  std::map<uint32_t, int64_t> staying;      // units that were there, by kind
  std::map<uint32_t, int64_t> terminating;  // of those, the ones that spread does not count
  std::vector<int64_t> device_taken;

  std::string DomainOf(const std::string& key, bool& has) const {
    const std::string* value = ValueIn(labels, key);
    has = value != nullptr || key == kHost;
    return value != nullptr ? *value : id;
  }
};

class Judge {
 public:
  Judge(const Request& request, const Plan& plan) : request_(request), plan_(plan), world_(request.world) {}

  std::vector<std::string> Run() {
    AddSpots();
    AddStaying();
    AddAssigned();
    CheckCoverage();
    for (const Spot& spot : spots_) {
      CheckRoom(spot);
      CheckAccess(spot);
      CheckPorts(spot);
    }
    CheckBetweenUnits();
    CheckMoney();
    CheckUtilisation();
    return std::move(findings_);
  }

 private:
  template <class... Args>
  void Find(fmt::format_string<Args...> format, Args&&... args) {
    if (findings_.size() < kMostFindings) findings_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  bool keeps() const { return request_.keep == Keep::kNodes; }

  void AddSpots() {
    if (keeps()) {
      for (const placement::Node& node : world_.nodes) {
        spots_.push_back({.id = node.id,
                          .labels = node.labels,
                          .taints = node.taints,
                          .total = node.total,
                          .devices = node.devices,
                          .kept = &node,
                          .may_be_empty = true});
        for (const auto& [name, amount] : node.reserved.entries()) spots_.back().taken[name] += amount;
      }
    }
    for (const PlannedMachine& machine : plan_.machines) {
      if (machine.candidate >= request_.candidates.size()) {
        Find("machine {}: there is no candidate {}", machine.id, machine.candidate);
        continue;
      }
      const Candidate& candidate = request_.candidates[machine.candidate];
      spots_.push_back({.id = machine.id,
                        .labels = candidate.labels,
                        .taints = candidate.taints,
                        .total = candidate.allocatable,
                        .devices = candidate.devices,
                        .may_be_empty = machine.from_replay});
      spots_.back().device_taken.assign(candidate.devices.size(), 0);
    }
    for (size_t s = 0; s < spots_.size(); ++s) {
      if (spots_[s].id.empty()) Find("a machine has no id");
      if (!spot_of_.emplace(spots_[s].id, s).second) Find("machine {}: the id is there twice", spots_[s].id);
    }
  }

  void AddUnits(Spot& spot, uint32_t kind, int64_t count) {
    for (const auto& [name, amount] : world_.kinds[kind].request.entries()) spot.taken[name] += amount * count;
  }

  void AddStaying() {
    if (!keeps()) return;
    for (const placement::PlacedUnit& placed : world_.placed) {
      const auto found = spot_of_.find(placed.node);
      if (found == spot_of_.end()) continue;
      Spot& spot = spots_[found->second];
      const uint32_t kind = placed.unit.kind.value();
      AddUnits(spot, kind, 1);
      ++spot.staying[kind];
      if (placed.terminating) ++spot.terminating[kind];
    }
  }

  void AddAssigned() {
    if (!keeps()) {
      for (const placement::PlacedUnit& placed : world_.placed) {
        if (!placed.terminating) asked_.push_back(&placed.unit);
      }
    }
    for (const placement::Unit& unit : request_.pending) asked_.push_back(&unit);
    seen_.assign(asked_.size(), false);
    for (const Assignment& assignment : plan_.assignments) {
      const size_t unit = PositionOf(assignment.unit);
      const auto spot = spot_of_.find(assignment.node);
      if (unit == kNowhere) {
        Find("unit {}: it was not asked for", assignment.unit);
      } else if (seen_[unit]) {
        Find("unit {}: it is assigned twice", assignment.unit);
      } else if (spot == spot_of_.end()) {
        Find("unit {}: there is no node {}", assignment.unit, assignment.node);
      } else {
        seen_[unit] = true;
        const uint32_t kind = asked_[unit]->kind.value();
        ++spots_[spot->second].counts[kind];
        AddDevices(spots_[spot->second], assignment, world_.kinds[kind]);
      }
    }
    for (Spot& spot : spots_) {
      for (const auto& [kind, count] : spot.counts) AddUnits(spot, kind, count);
    }
  }

  // Plans list units in the request's order: the one after the last is looked at before a table of all is made.
  size_t PositionOf(std::string_view id) {
    if (next_ < asked_.size() && asked_[next_]->id == id) return next_++;
    if (position_.empty()) {
      position_.reserve(asked_.size());
      for (size_t u = 0; u < asked_.size(); ++u) position_.emplace(asked_[u]->id, u);
    }
    const auto found = position_.find(id);
    if (found == position_.end()) return kNowhere;
    next_ = found->second + 1;
    return found->second;
  }

  void AddDevices(Spot& spot, const Assignment& assignment, const Kind& kind) {
    if (spot.kept != nullptr) return;  // placement assigns the devices of a node that is there
    const size_t wanted = kind.devices.milli > 0 ? 1 : static_cast<size_t>(kind.devices.whole);
    if (assignment.devices.size() != wanted) {
      Find("unit {}: it has {} devices and asks for {}", assignment.unit, assignment.devices.size(), wanted);
      return;
    }
    for (const int32_t device : assignment.devices) {
      if (device < 0 || static_cast<size_t>(device) >= spot.devices.size()) {
        Find("unit {}: {} has no device {}", assignment.unit, spot.id, device);
        continue;
      }
      int64_t& taken = spot.device_taken[static_cast<size_t>(device)];
      taken += kind.devices.milli > 0 ? kind.devices.milli : 1000;
      if (taken > spot.devices[static_cast<size_t>(device)]) Find("{}: device {} is taken twice", spot.id, device);
    }
  }

  void CheckCoverage() {
    for (const Unplaced& unplaced : plan_.unplaced) {
      const size_t unit = PositionOf(unplaced.unit);
      if (unit == kNowhere) {
        Find("unit {}: unplaced, but it was not asked for", unplaced.unit);
        continue;
      }
      if (seen_[unit]) Find("unit {}: both assigned and unplaced, or twice", unplaced.unit);
      seen_[unit] = true;
    }
    for (size_t u = 0; u < asked_.size(); ++u) {
      if (!seen_[u]) Find("unit {}: neither assigned nor unplaced", asked_[u]->id);
    }
    for (const Spot& spot : spots_) {
      if (spot.counts.empty() && !spot.may_be_empty) Find("machine {}: nothing runs on it", spot.id);
    }
  }

  void CheckRoom(const Spot& spot) {
    if (spot.kept != nullptr && spot.counts.empty()) return;  // as it was
    for (const auto& [name, amount] : spot.taken) {
      if (spot.kept != nullptr && std::ranges::count(spot.kept->unlimited, name) > 0) continue;
      if (amount <= spot.total.Get(name)) continue;
      // A node that was overfull before is not the plan's doing, unless a planned unit takes more of it.
      const bool planned = std::ranges::any_of(
          spot.counts, [&](const auto& entry) { return world_.kinds[entry.first].request.Get(name) > 0; });
      if (planned) Find("{}: {} of {} is more than its {}", spot.id, amount, name, spot.total.Get(name));
    }
  }

  bool LabelsFit(const Kind& kind, const Spot& spot) const {
    if (!AllHold(kind.requirements, spot.labels)) return false;
    return kind.node_terms.empty() || std::ranges::any_of(kind.node_terms, [&](const placement::NodeTerm& term) {
             const std::string name = spot.kept != nullptr ? spot.id : "";
             const bool fields = std::ranges::all_of(term.fields, [&](const model::Requirement& field) {
               return Holds(field, field.key == "metadata.name" ? &name : nullptr);
             });
             return !(term.labels.empty() && term.fields.empty()) && fields && AllHold(term.labels, spot.labels);
           });
  }

  static bool TaintsFit(const Kind& kind, const Spot& spot) {
    return std::ranges::all_of(spot.taints, [&](const placement::Taint& taint) {
      return taint.effect == placement::TaintEffect::kPreferNoSchedule || Endures(kind, taint);
    });
  }

  void CheckAccess(const Spot& spot) {
    for (const auto& [k, count] : spot.counts) {
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

  void CheckPorts(const Spot& spot) {
    struct Use {
      const placement::HostPort* port = nullptr;
      std::pair<uint32_t, int64_t> unit;  // kind, and which of it: ports of one unit do not conflict
      bool planned = false;
    };
    std::vector<Use> used;
    const auto add = [&](const std::map<uint32_t, int64_t>& counts, bool planned) {
      for (const auto& [k, count] : counts) {
        for (const placement::HostPort& port : world_.kinds[k].ports) {
          const int64_t first = planned ? 0 : 2;
          for (int64_t i = 0; i < std::min<int64_t>(count, 2); ++i) used.push_back({&port, {k, first + i}, planned});
        }
      }
    };
    add(spot.counts, true);
    add(spot.staying, false);
    const auto every = [](const std::string& ip) { return ip.empty() || ip == "0.0.0.0"; };
    for (size_t a = 0; a < used.size() && used[a].planned; ++a) {
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

  // --- Rules between units.

  // Whether units of each kind of the world are included, computed once for equal selectors.
  const std::vector<bool>& IncludedBy(const About& about) {
    const auto [at, inserted] = included_.try_emplace(about.Text());
    if (inserted) {
      for (const Kind& kind : world_.kinds) at->second.push_back(about.Includes(kind, world_));
    }
    return at->second;
  }

  static int64_t Sum(const std::map<uint32_t, int64_t>& counts, const std::vector<bool>& included) {
    int64_t sum = 0;
    for (const auto& [k, count] : counts) sum += included[k] ? count : 0;
    return sum;
  }

  // The domain of every spot under one key, numbered; kNowhere: it lacks the key.
  const std::vector<size_t>& DomainsOf(const std::string& key) {
    const auto [at, inserted] = domains_.try_emplace(key);
    if (!inserted) return at->second;
    std::map<std::string, size_t> number;
    for (const Spot& spot : spots_) {
      bool has = false;
      const std::string domain = spot.DomainOf(key, has);
      at->second.push_back(has ? number.try_emplace(domain, number.size()).first->second : kNowhere);
    }
    return at->second;
  }

  // Units by domain: all, those of the plan, and whether the domain counts at all.
  struct Crowd {
    std::vector<int64_t> all;
    std::vector<int64_t> planned;
    std::vector<bool> counts;
  };

  // Of the spots that `counts` accepts; terminating units only where they count. Computed once for equal texts.
  template <class Accept>
  const Crowd& CrowdOf(const std::string& text, const std::string& key, const std::vector<bool>& included,
                       bool terminating, Accept&& accept) {
    const auto [at, inserted] = crowds_.try_emplace(key + "|" + text);
    if (!inserted) return at->second;
    Crowd& crowd = at->second;
    const std::vector<size_t>& domains = DomainsOf(key);
    crowd.all.assign(spots_.size(), 0);
    crowd.planned.assign(spots_.size(), 0);
    crowd.counts.assign(spots_.size(), false);
    for (size_t s = 0; s < spots_.size(); ++s) {
      const Spot& spot = spots_[s];
      if (domains[s] == kNowhere || !accept(spot)) continue;
      crowd.counts[domains[s]] = true;
      crowd.planned[domains[s]] += Sum(spot.counts, included);
      crowd.all[domains[s]] += Sum(spot.counts, included) + Sum(spot.staying, included);
      if (!terminating) crowd.all[domains[s]] -= Sum(spot.terminating, included);
    }
    return crowd;
  }

  void CheckBetweenUnits() {
    std::map<uint32_t, std::vector<size_t>> planned;  // kind -> where its units are
    std::map<uint32_t, std::vector<size_t>> staying;
    for (size_t s = 0; s < spots_.size(); ++s) {
      for (const auto& [k, count] : spots_[s].counts) planned[k].push_back(s);
      for (const auto& [k, count] : spots_[s].staying) staying[k].push_back(s);
    }
    for (const auto& [k, where] : planned) {
      const Kind& kind = world_.kinds[k];
      for (const placement::SpreadConstraint& spread : kind.spread) {
        if (spread.when == model::WhenUnsatisfiable::kDoNotSchedule) CheckSpread(k, spread, where);
      }
      if (!kind.colocate.empty()) CheckColocation(k, where);
      for (const placement::UnitTerm& term : kind.exclude) CheckExclusion(k, term, where, true);
    }
    for (const auto& [k, where] : staying) {
      for (const placement::UnitTerm& term : world_.kinds[k].exclude) CheckExclusion(k, term, where, false);
    }
  }

  bool Counts(const Kind& kind, const placement::SpreadConstraint& spread, const Spot& spot) const {
    for (const placement::SpreadConstraint& other : kind.spread) {
      bool has = false;
      spot.DomainOf(other.topology_key, has);
      if (other.when == model::WhenUnsatisfiable::kDoNotSchedule && !has) return false;
    }
    if (spread.node_affinity == placement::NodeInclusion::kHonor && !LabelsFit(kind, spot)) return false;
    return spread.node_taints == placement::NodeInclusion::kIgnore || TaintsFit(kind, spot);
  }

  // What of a kind decides which nodes its spread counts.
  static std::string EligibilityText(const Kind& kind, const placement::SpreadConstraint& spread) {
    std::string text = codec::ToBytes(kind.requirements) + codec::ToBytes(kind.node_terms);
    text +=
        codec::ToBytes(kind.tolerations) + codec::ToBytes(spread.node_affinity) + codec::ToBytes(spread.node_taints);
    for (const placement::SpreadConstraint& other : kind.spread) {
      if (other.when == model::WhenUnsatisfiable::kDoNotSchedule) text += "/" + other.topology_key;
    }
    return text;
  }

  void CheckSpread(uint32_t k, const placement::SpreadConstraint& spread, const std::vector<size_t>& where) {
    const Kind& kind = world_.kinds[k];
    const About about(kind, spread);
    const std::vector<bool>& included = IncludedBy(about);
    const Crowd& crowd = CrowdOf("spread" + about.Text() + EligibilityText(kind, spread), spread.topology_key, included,
                                 false, [&](const Spot& spot) { return Counts(kind, spread, spot); });
    // The two smallest counts: that of all domains, and of all but one.
    int64_t least = INT64_MAX;
    int64_t second = INT64_MAX;
    int64_t domains = 0;
    for (size_t d = 0; d < crowd.all.size(); ++d) {
      if (!crowd.counts[d]) continue;
      ++domains;
      second = std::min(second, std::max(least, crowd.all[d]));
      least = std::min(least, crowd.all[d]);
    }
    const int64_t self = included[k] ? 1 : 0;
    for (const size_t s : where) {
      const size_t domain = DomainsOf(spread.topology_key)[s];
      if (domain == kNowhere) {
        Find("{}: a unit of kind {} is spread over {}, which it lacks", spots_[s].id, k, spread.topology_key);
        continue;
      }
      const int64_t others = crowd.all[domain] - self;
      const int64_t elsewhere = crowd.all[domain] == least ? second : least;
      const int64_t minimum = domains < spread.min_domains ? 0 : std::min(others, elsewhere);
      if (others + self - minimum > std::max(spread.max_skew, 1)) {
        Find("{}: a unit of kind {} breaks its spread over {}", spots_[s].id, k, spread.topology_key);
      }
    }
  }

  void CheckColocation(uint32_t k, const std::vector<size_t>& where) {
    const Kind& kind = world_.kinds[k];
    std::vector<bool> included(world_.kinds.size(), true);
    std::string text = "near";
    for (const placement::UnitTerm& term : kind.colocate) {
      const About about(kind, term);
      const std::vector<bool>& one = IncludedBy(about);
      text += "+" + about.Text();
      for (size_t i = 0; i < included.size(); ++i) included[i] = included[i] && one[i];
    }
    const int64_t self = included[k] ? 1 : 0;
    for (const placement::UnitTerm& term : kind.colocate) {
      const Crowd& crowd = CrowdOf(text, term.topology_key, included, true, [](const Spot&) { return true; });
      int64_t all = -self;
      for (const int64_t count : crowd.all) all += count;
      if (self == 1 && all == 0) continue;  // the first of its group
      for (const size_t s : where) {
        const size_t domain = DomainsOf(term.topology_key)[s];
        if (domain == kNowhere || crowd.all[domain] - self < 1) {
          Find("{}: a unit of kind {} is not near those it must be near", spots_[s].id, k);
        }
      }
    }
  }

  void CheckExclusion(uint32_t k, const placement::UnitTerm& term, const std::vector<size_t>& where, bool planned) {
    const About about(world_.kinds[k], term);
    const std::vector<bool>& included = IncludedBy(about);
    const Crowd& crowd =
        CrowdOf("excl" + about.Text(), term.topology_key, included, true, [](const Spot&) { return true; });
    for (const size_t s : where) {
      const size_t domain = DomainsOf(term.topology_key)[s];
      if (domain == kNowhere) continue;
      const int64_t others = planned ? crowd.all[domain] - (included[k] ? 1 : 0) : crowd.planned[domain];
      if (others > 0) Find("{}: a unit of kind {} excludes another that is there", spots_[s].id, k);
    }
  }

  // --- Money and sums.

  void CheckMoney() {
    int64_t machines = 0;
    int64_t added = 0;
    int64_t from_replay = 0;
    for (const PlannedMachine& machine : plan_.machines) {
      if (machine.candidate >= request_.candidates.size()) continue;
      const int64_t price = request_.candidates[machine.candidate].price.micros;
      machines += price;
      added += machine.from_replay ? price : 0;
      from_replay += machine.from_replay ? 1 : 0;
    }
    if (machines != plan_.cost_machines.micros)
      Find("the machines cost {} and not {}", machines, plan_.cost_machines.micros);
    if (added != plan_.replay.cost_added.micros || from_replay != plan_.replay.machines_added) {
      Find("the replay added {} machines for {}", from_replay, added);
    }
    int64_t before = 0;
    size_t unpriced = 0;
    for (const placement::Node& node : world_.nodes) {
      const auto facts = request_.nodes.find(node.id);
      if (facts != request_.nodes.end() && facts->second.price) {
        before += facts->second.price->micros;
      } else {
        ++unpriced;
      }
    }
    if (unpriced != plan_.unpriced_nodes.size()) Find("{} nodes are unpriced", unpriced);
    if (plan_.cost_before.has_value() != (unpriced == 0)) Find("a price before needs the price of every node");
    if (plan_.cost_before && plan_.cost_before->micros != before) Find("the nodes cost {}", before);
    const int64_t after = machines + (keeps() ? before : 0);
    if (plan_.cost_after.has_value() != (!keeps() || unpriced == 0))
      Find("a price after needs the price of kept nodes");
    if (plan_.cost_after && plan_.cost_after->micros != after) Find("all nodes together cost {}", after);
    if (plan_.unplaced.empty() && plan_.lower_bound.micros > machines - added) {
      Find("the bound {} is above the cost {}", plan_.lower_bound.micros, machines - added);
    }
  }

  void CheckUtilisation() {
    for (const Utilisation& row : plan_.utilisation) {
      int64_t taken = 0;
      int64_t total = 0;
      for (const Spot& spot : spots_) {
        const auto found = spot.taken.find(row.resource);
        taken += found == spot.taken.end() ? 0 : found->second;
        total += spot.total.Get(row.resource);
      }
      if (taken != row.requested || total != row.allocatable) {
        Find("{}: {} of {} is requested", row.resource, taken, total);
      }
    }
  }

  const Request& request_;
  const Plan& plan_;
  const placement::World& world_;
  std::vector<Spot> spots_;
  std::unordered_map<std::string_view, size_t> spot_of_;
  std::vector<const placement::Unit*> asked_;
  std::unordered_map<std::string_view, size_t> position_;  // of a unit in asked_; empty until it is needed
  size_t next_ = 0;                                        // in asked_
  std::vector<bool> seen_;
  std::map<std::string, std::vector<bool>> included_;
  std::map<std::string, std::vector<size_t>> domains_;
  std::map<std::string, Crowd> crowds_;
  std::vector<std::string> findings_;
};

}  // namespace

std::vector<std::string> CheckPlan(const Request& request, const Plan& plan) { return Judge(request, plan).Run(); }

}  // namespace muster::planner
