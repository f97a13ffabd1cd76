#include "core/scheduler/rooms.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "base/check.h"
#include "base/probe.h"
#include "placement/arithmetic.h"
#include "placement/match.h"
#include "placement/workload_units.h"

namespace muster::scheduler {
namespace {

constexpr std::string_view kHostLabel = "kubernetes.io/hostname";
constexpr std::string_view kGpu = "gpu";
constexpr int32_t kWholeDevice = 1000;
constexpr size_t kSpareKinds = 1000;
constexpr size_t kSpareNames = 1000;

std::string StoredUnit(const std::string& workload) { return workload + "@"; }
std::string DoubtedUnit(const std::string& workload) { return workload + "?"; }

bool HoldsRoom(const WorkloadRecord& record) {
  return !record.workload.assigned_node.empty() && record.workload.phase != model::WorkloadPhase::kCompleted;
}

placement::Node NodeFor(const NodeRecord& record, bool ready, bool cordoned, const NodeNow& now) {
  placement::Node node{.id = record.facts.node, .ready = ready, .fresh = now.fresh, .cordoned = cordoned};
  model::TextMap::Map labels = record.facts.labels;
  labels.emplace(kHostLabel, record.facts.node);
  node.labels = std::move(labels);
  for (const model::Taint& taint : record.facts.taints) {
    if (const auto effect = placement::ParseTaintEffect(taint.effect)) {
      node.taints.push_back({taint.key, taint.value, *effect});
    }
  }
  node.supported_types = record.facts.supported_types;
  node.total = record.facts.total;
  node.used = now.used;
  if (node.total.Get("disk") == 0) node.unlimited = {"disk", "ephemeral-storage", "storage"};
  if (MUTANT("scheduler.cpu_unlimited")) node.unlimited.emplace_back("cpu");
  node.devices.assign(static_cast<size_t>(node.total.Get(kGpu) / 1000), kWholeDevice);
  return node;
}

// What rules of a kind say of the label with the set of other units.
struct SetNames {
  std::vector<std::string> named;
  bool all = false;

  void Read(const placement::Selector& selector) {
    for (const model::Requirement& requirement : selector.all) {
      if (requirement.key != placement::kSetLabel) continue;
      if (requirement.op == model::Operator::kIn) {
        named.insert(named.end(), requirement.values.begin(), requirement.values.end());
      } else {
        all = true;
      }
    }
  }
  void ReadKeys(const std::vector<std::string>& keys) {
    all = all || std::ranges::find(keys, placement::kSetLabel) != keys.end();
  }
  void Read(const placement::UnitTerm& term) {
    Read(term.selector);
    ReadKeys(term.match_label_keys);
    ReadKeys(term.mismatch_label_keys);
  }
};

bool HasRules(const placement::Kind& kind) {
  return !kind.spread.empty() || !kind.colocate.empty() || !kind.exclude.empty() || !kind.preferred_colocate.empty() ||
         !kind.preferred_exclude.empty();
}

SetNames NamesIn(const placement::Kind& kind) {
  SetNames names;
  for (const placement::SpreadConstraint& constraint : kind.spread) {
    names.Read(constraint.selector);
    names.ReadKeys(constraint.match_label_keys);
  }
  for (const auto* terms : {&kind.colocate, &kind.exclude}) {
    for (const placement::UnitTerm& term : *terms) names.Read(term);
  }
  for (const auto* terms : {&kind.preferred_colocate, &kind.preferred_exclude}) {
    for (const placement::PreferredUnitTerm& preferred : *terms) names.Read(preferred.term);
  }
  return names;
}

}  // namespace

placement::Kind KindOfWorkload(const WorkloadRecord& record, bool may_preempt,
                               const std::vector<std::string>& avoided) {
  const model::Workload& workload = record.workload;
  placement::Kind kind = placement::KindOf(workload.set.empty() ? workload.id : workload.set, workload.tenant,
                                           workload.labels, workload.spec);
  kind.may_preempt = may_preempt;
  if (MUTANT("scheduler.exclude_unread")) kind.exclude.clear();
  for (const auto& [key, value] : record.require_labels) {
    kind.requirements.push_back({key, model::Operator::kIn, {value}});
  }
  if (avoided.empty() || MUTANT("scheduler.refusal_forgotten")) return kind;
  if (kind.node_terms.empty()) kind.node_terms.emplace_back();
  for (placement::NodeTerm& term : kind.node_terms) {
    term.fields.push_back({std::string(placement::kNodeNameField), model::Operator::kNotIn, avoided});
  }
  return kind;
}

bool CouldTake(const contract::ComingMachine& machine, const WorkloadRecord& record) {
  NodeRecord becomes;
  becomes.facts.labels = machine.labels;
  becomes.facts.taints = machine.taints;
  becomes.facts.total = machine.resources;
  const placement::Node node = NodeFor(becomes, true, false, {.available = true, .fresh = true, .used = {}});
  const placement::Kind kind = KindOfWorkload(record, false);
  if (!placement::MatchesLabels(kind, node) || !placement::SupportsType(node, kind.type) ||
      placement::UntoleratedTaint(kind, node) != nullptr) {
    return false;
  }
  if (machine.resources.empty()) return true;
  const auto devices = static_cast<int32_t>(node.devices.size());
  if (kind.devices.whole > devices || (kind.devices.milli > 0 && devices == 0)) return false;
  return std::ranges::all_of(kind.request.entries(), [&](const auto& entry) {
    const bool limited = std::ranges::find(node.unlimited, entry.first) == node.unlimited.end();
    return !limited || entry.second <= node.total.Get(entry.first);
  });
}

Rooms::Rooms(const Config& config, const StoreCopy& copy, const Drafts& drafts, State state)
    : config_(config),
      copy_(copy),
      drafts_(drafts),
      state_(std::move(state)),
      filled_(state_.holds.empty()),
      placer_({.strategy = config_.strategy, .preempt = true}) {}

// --- nodes

void Rooms::SyncNode(const std::string& id, const NodeNow& now) {
  const NodeRecord* stored = copy_.Find<NodeRecord>(id);
  if (stored == nullptr) {
    if (nodes_.erase(id) == 0) return;
    std::vector<std::string> units;
    for (const auto& [unit, hold] : state_.holds) {
      if (hold.node == id) units.push_back(unit);
    }
    for (const std::string& unit : units) Drop(unit);
    placer_.RemoveNode(id);
    state_.shrunk.erase(id);
    return;
  }
  const NodeRecord* next = drafts_.Find<NodeRecord>(id);
  const bool ready = now.available && stored->status == model::NodeStatus::kReady && next != nullptr &&
                     next->status == model::NodeStatus::kReady;
  const bool cordoned =
      !MUTANT("scheduler.cordon_ignored") && (stored->cordoned || (next != nullptr && next->cordoned));
  const placement::Node node = NodeFor(*stored, ready, cordoned, now);
  const auto before = nodes_.find(id);
  const bool is_new = before == nodes_.end();
  if (!is_new && before->second == node) return;
  if (!is_new && !node.total.Covers(before->second.total)) state_.shrunk.insert(id);
  placement::Node same_use = node;
  if (!is_new) same_use.used = before->second.used;
  const bool came = is_new || same_use != before->second;
  nodes_[id] = node;
  placer_.UpsertNode(node);
  if (!filled_) return;
  const bool usable = node.ready && node.fresh && !node.cordoned;
  if (came) (usable ? state_.node_came : state_.room_came) = true;
  if (!is_new) return;
  const std::set<std::string> there = copy_.OnNode(id);
  for (const std::string& workload : there) SyncWorkload(workload);
}

void Rooms::SyncHeard(const std::string& id, const NodeNow& now) {
  const auto known = nodes_.find(id);
  if (known == nodes_.end() || known->second.fresh != now.fresh) return SyncNode(id, now);
  if (known->second.used == now.used) return;
  known->second.used = now.used;
  placer_.UpsertNode(known->second);
}

// --- holds

const WorkloadRecord* Rooms::RecordOf(const std::string& unit) const {
  const std::string id = unit.substr(0, unit.size() - 1);
  if (unit.ends_with('@')) return copy_.Find<WorkloadRecord>(id);
  if (unit.ends_with('?')) return drafts_.FindDoubt<WorkloadRecord>(id);
  return drafts_.Find<WorkloadRecord>(unit);
}

void Rooms::Drop(const std::string& unit) {
  const auto found = state_.holds.find(unit);
  if (found == state_.holds.end()) return;
  placer_.RemoveUnit(unit);
  auto& sums = reserved_[found->second.node];
  for (const auto& [name, amount] : found->second.request.entries()) sums[name] -= amount;
  state_.holds.erase(found);
  state_.room_came = true;
}

// Each workload may be a kind of its own, two while it waits, and so may each of its specs: those that are gone would
// fill the memory in time.
void Rooms::ForgetKinds() {
  const size_t workloads = copy_.All<WorkloadRecord>().size() + drafts_.state().drafts.size();
  if (placer_.kinds() > 3 * workloads + kSpareKinds) placer_.ForgetKinds();
}

placement::Kind Rooms::Alike(placement::Kind kind, const WorkloadRecord& record) const {
  const model::Workload& workload = record.workload;
  const bool read = all_named_ || HasRules(kind) || named_.contains(workload.id);
  if (workload.set.empty() && !read) kind.labels = workload.labels;
  return kind;
}

void Rooms::NoteRules(const placement::Kind& kind) {
  if (!HasRules(kind)) return;
  const SetNames names = NamesIn(kind);
  if (names.all && !all_named_) {
    all_named_ = true;
    std::vector<std::string> units;
    for (const auto& [unit, hold] : state_.holds) units.push_back(unit);
    for (const std::string& unit : units) AddAgain(unit);
  }
  for (const std::string& name : names.named) {
    // Where all are named, they have their label; the names are noted for the time after.
    if (!named_.insert(name).second || all_named_ || MUTANT("scheduler.named_set_unread")) continue;
    for (const std::string& unit : {name, StoredUnit(name), DoubtedUnit(name)}) AddAgain(unit);
  }
}

// The kind of what holds room is another now: a rule reads its label.
void Rooms::AddAgain(const std::string& unit) {
  const auto found = state_.holds.find(unit);
  const WorkloadRecord* record = found == state_.holds.end() ? nullptr : RecordOf(unit);
  if (record == nullptr || !record->workload.set.empty()) return;
  const bool room_came = state_.room_came;
  Hold hold = found->second;
  Drop(unit);
  Add(unit, *record, std::move(hold));
  state_.room_came = room_came;
}

// Names that no rule has any more would fill the memory in time. Whoever wants a node is noted after this.
bool Rooms::ForgetNames() {
  if (named_.size() <= 2 * names_after_forgetting_ + kSpareNames) return false;
  named_.clear();
  all_named_ = false;
  for (const auto& [unit, hold] : state_.holds) {
    const WorkloadRecord* record = RecordOf(unit);
    if (record == nullptr) continue;
    const placement::Kind kind = KindOfWorkload(*record, true);
    if (!HasRules(kind)) continue;
    // Those that it names have their label already.
    SetNames names = NamesIn(kind);
    all_named_ = all_named_ || names.all;
    std::ranges::move(names.named, std::inserter(named_, named_.end()));
  }
  return true;
}

void Rooms::Add(const std::string& unit, const WorkloadRecord& record, Hold hold) {
  ForgetKinds();
  placement::Kind kind = KindOfWorkload(record, true);
  NoteRules(kind);
  kind = Alike(std::move(kind), record);
  for (const auto& [name, amount] : hold.request.entries()) {
    if (kind.request.Get(name) != 0) kind.request.Set(name, amount);
  }
  placement::PlacedUnit placed{.unit = {.id = unit,
                                        .kind = placer_.AddKind(kind),
                                        .order = record.workload.created_at.time_since_epoch().count()},
                               .node = hold.node,
                               .devices = hold.devices,
                               .terminating = hold.terminating};
  if (!record.workload.set.empty() && !MUTANT("scheduler.budget_ignored"))
    placed.budgets.push_back(record.workload.set);
  placer_.AddUnit(placed);
  auto& sums = reserved_[hold.node];
  for (const auto& [name, amount] : hold.request.entries()) sums[name] += amount;
  state_.holds[unit] = std::move(hold);
}

// Whether what its edit leaves to others is as it was: others may wait for its labels, its ports or its rules.
bool Rooms::KeepsRules(const WorkloadRecord& next) const {
  const WorkloadRecord* stored = copy_.Find<WorkloadRecord>(next.workload.id);
  if (stored == nullptr) return true;
  placement::Kind before = KindOfWorkload(*stored, true);
  const placement::Kind after = KindOfWorkload(next, true);
  before.request = after.request;
  before.devices = after.devices;
  return before == after;
}

void Rooms::SetHold(const std::string& unit, const WorkloadRecord* record, const std::string& node, std::string basis,
                    const model::Resources& request, bool terminating) {
  const auto found = state_.holds.find(unit);
  const bool wanted = record != nullptr && nodes_.contains(node);
  if (found != state_.holds.end()) {
    const Hold& hold = found->second;
    if (wanted && hold.node == node && hold.basis == basis && hold.terminating == terminating) return;
    const bool keeps = wanted && hold.node == node && hold.terminating == terminating && request.Covers(hold.request) &&
                       KeepsRules(*record);
    const bool room_came = state_.room_came;
    Drop(unit);
    if (keeps) state_.room_came = room_came;
  }
  if (!wanted) return;
  Add(unit, *record, {.node = node, .terminating = terminating, .basis = std::move(basis), .request = request});
}

void Rooms::SyncWorkload(const std::string& id) {
  const WorkloadRecord* next = drafts_.Find<WorkloadRecord>(id);
  const WorkloadRecord* stored = copy_.Find<WorkloadRecord>(id);
  const auto nominated = state_.nominated.find(id);
  const bool room_came = state_.room_came;
  const auto held_before = state_.holds.find(id);
  const std::string left = held_before == state_.holds.end() ? "" : held_before->second.node;
  std::string node;  // where it holds room, or will
  if (next != nullptr && nominated != state_.nominated.end()) {
    node = nominated->second;
    SetHold(id, next, node, next->agent_revision, next->workload.spec.resources, false);
  } else if (next != nullptr && HoldsRoom(*next)) {
    node = next->workload.assigned_node;
    std::string basis = next->agent_revision;
    model::Resources request = next->workload.spec.resources;
    if (stored != nullptr && HoldsRoom(*stored) && stored->workload.assigned_node == node &&
        stored->agent_revision != next->agent_revision) {
      basis += "@" + stored->agent_revision;
      request = model::Max(request, stored->workload.spec.resources);
    }
    // What leaves has no more room than it had, whatever it will ask for elsewhere.
    if (const auto held = state_.holds.find(id);
        next->evict && held != state_.holds.end() && held->second.node == node) {
      request = held->second.request;
    }
    SetHold(id, next, node, std::move(basis), request, next->evict);
  } else {
    SetHold(id, nullptr, "", "", {}, false);
  }
  const bool both = stored != nullptr && HoldsRoom(*stored) && !MUTANT("scheduler.room_freed_early") &&
                    node != stored->workload.assigned_node;
  // The room that its draft leaves is held by its record in the store, until that says so too.
  if (both && left == stored->workload.assigned_node) state_.room_came = room_came;
  SetHold(StoredUnit(id), both ? stored : nullptr, both ? stored->workload.assigned_node : "",
          both ? stored->agent_revision : "", both ? stored->workload.spec.resources : model::Resources{}, true);
  const WorkloadRecord* doubt = drafts_.FindDoubt<WorkloadRecord>(id);
  if (doubt != nullptr && !HoldsRoom(*doubt)) doubt = nullptr;
  SetHold(DoubtedUnit(id), doubt, doubt == nullptr ? "" : doubt->workload.assigned_node,
          doubt == nullptr ? "" : doubt->agent_revision,
          doubt == nullptr ? model::Resources{} : doubt->workload.spec.resources, true);
}

// --- placing

// The nodes that refused it lately and have not registered since. A refusal that would be remembered for longer than
// the memory is of a time before the clock was set back.
std::vector<std::string> Rooms::AvoidedBy(const WorkloadRecord& record, WallTime wall) const {
  std::vector<std::string> avoided;
  for (const auto& [node, refusal] : record.refusals) {
    const NodeRecord* there = copy_.Find<NodeRecord>(node);
    const bool lately = refusal.until > wall && refusal.until - wall <= config_.refusal_memory;
    if (lately && there != nullptr && there->registration == refusal.registration) avoided.push_back(node);
  }
  return avoided;
}

std::vector<placement::Outcome> Rooms::Place(const std::vector<Wanted>& wanted, WallTime wall) {
  std::vector<placement::Unit> units;
  units.reserve(wanted.size());
  ForgetKinds();
  const bool forgot = ForgetNames();
  const bool room_came = state_.room_came;
  std::vector<placement::Kind> kinds;
  kinds.reserve(wanted.size());
  for (const Wanted& one : wanted) {
    const WorkloadRecord& record = *drafts_.Find<WorkloadRecord>(one.workload);
    Drop(one.workload);
    kinds.push_back(KindOfWorkload(record, one.may_preempt, AvoidedBy(record, wall)));
    NoteRules(kinds.back());
  }
  // With the names of those that wait: otherwise many of them would be forgotten and noted again by every batch.
  if (forgot) names_after_forgetting_ = named_.size();
  for (size_t i = 0; i < wanted.size(); ++i) {  // now it is known whose labels are read
    const std::string& id = wanted[i].workload;
    const WorkloadRecord& record = *drafts_.Find<WorkloadRecord>(id);
    units.push_back({.id = id,
                     .kind = placer_.AddKind(Alike(std::move(kinds[i]), record)),
                     .order = record.workload.created_at.time_since_epoch().count()});
  }
  lifted_.clear();
  std::vector<placement::Outcome> outcomes = placer_.Place(units);
  for (const placement::Outcome& outcome : outcomes) {
    for (const std::string& victim : outcome.victims) {
      // The placer has dropped it; its room is counted until its record says that it left.
      const auto found = state_.holds.find(victim);
      auto& sums = reserved_[found->second.node];
      for (const auto& [name, amount] : found->second.request.entries()) sums[name] -= amount;
      if (const std::string& set = RecordOf(victim)->workload.set; !set.empty()) --budgets_[set];
      lifted_[victim] = std::move(found->second);
      state_.holds.erase(found);
    }
    if (outcome.node.empty()) continue;
    const WorkloadRecord& record = *drafts_.Find<WorkloadRecord>(outcome.unit);
    Hold hold{.node = outcome.node,
              .devices = outcome.devices,
              .basis = record.agent_revision,
              .request = record.workload.spec.resources};
    if (!record.workload.set.empty()) {  // the placer knows no budget of what it places
      placer_.RemoveUnit(outcome.unit);
      Add(outcome.unit, record, std::move(hold));
      continue;
    }
    auto& sums = reserved_[hold.node];
    for (const auto& [name, amount] : hold.request.entries()) sums[name] += amount;
    state_.holds[outcome.unit] = std::move(hold);
  }
  state_.room_came = room_came;  // what was dropped to be placed again is no room for others
  return outcomes;
}

void Rooms::TakeBack(const std::vector<placement::Outcome>& outcomes) {
  const bool room_came = state_.room_came;
  for (const placement::Outcome& outcome : outcomes) Drop(outcome.unit);
  for (auto& [victim, hold] : std::exchange(lifted_, {})) {
    const WorkloadRecord& record = *RecordOf(victim);
    if (!record.workload.set.empty()) SetBudget(record.workload.set, budgets_[record.workload.set] + 1);
    Add(victim, record, std::move(hold));
  }
  state_.room_came = room_came;
}

void Rooms::Nominate(const std::string& workload, const std::string& node) { state_.nominated[workload] = node; }

void Rooms::Withdraw(const std::string& workload) {
  if (state_.nominated.erase(workload) > 0) SyncWorkload(workload);
}

void Rooms::SetBudget(const std::string& set, int64_t allowed) {
  budgets_[set] = allowed;
  placer_.SetBudget({.id = set, .allowed = allowed});
}

placement::Kind Rooms::KindAsPlaced(const WorkloadRecord& record, WallTime wall) {
  placement::Kind kind = KindOfWorkload(record, false, AvoidedBy(record, wall));
  NoteRules(kind);
  return Alike(std::move(kind), record);
}

std::vector<placement::NodeVerdict> Rooms::Explain(const placement::Kind& kind) {
  ForgetKinds();
  ++explained_;
  return placer_.Feasible(placer_.AddKind(kind));
}

bool Rooms::FitsInstead(const std::string& node, const model::Resources& before, const model::Resources& after) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return false;
  const placement::Node& there = found->second;
  const auto sums = reserved_.find(node);
  return std::ranges::all_of(after.entries(), [&](const auto& entry) {
    const auto& [name, amount] = entry;
    if (std::ranges::find(there.unlimited, name) != there.unlimited.end()) return true;
    if (amount <= before.Get(name)) return true;
    int64_t taken = 0;
    if (sums != reserved_.end()) {
      if (const auto sum = sums->second.find(name); sum != sums->second.end()) taken = sum->second;
    }
    return taken - before.Get(name) + amount <= there.total.Get(name);
  });
}

model::Resources Rooms::Reserved(std::string_view node) const {
  model::Resources reserved;
  const auto found = reserved_.find(node);
  if (found == reserved_.end()) return reserved;
  for (const auto& [name, amount] : found->second) {
    if (amount > 0) reserved.Set(name, amount);
  }
  return reserved;
}

// --- from journals, and checks

void Rooms::Refill() {
  if (std::exchange(filled_, true)) return;
  const auto saved = std::exchange(state_.holds, {});
  const bool room_came = state_.room_came;
  for (const auto& [unit, hold] : saved) {
    const WorkloadRecord* record = RecordOf(unit);
    if (record != nullptr && nodes_.contains(hold.node)) Add(unit, *record, hold);
  }
  state_.room_came = room_came;
}

void Rooms::CheckInvariants() const {
  std::map<std::string, std::map<std::string, int64_t>, std::less<>> sums;
  for (const auto& [unit, hold] : state_.holds) {
    const WorkloadRecord* record = RecordOf(unit);
    MUSTER_CHECK(record != nullptr, "unit {} holds room on {} and has no record", unit, hold.node);
    const auto nominated = state_.nominated.find(unit);
    MUSTER_CHECK(record->workload.assigned_node == hold.node ||
                     (nominated != state_.nominated.end() && nominated->second == hold.node),
                 "unit {} holds room on {}, its record names {}", unit, hold.node, record->workload.assigned_node);
    for (const auto& [name, amount] : hold.request.entries()) sums[hold.node][name] += amount;
  }
  for (const auto& [node, there] : nodes_) {
    std::map<std::string, placement::Wide> stored;
    for (const std::string& id : copy_.OnNode(node)) {
      const WorkloadRecord& record = *copy_.Find<WorkloadRecord>(id);
      MUSTER_CHECK(!HoldsRoom(record) || state_.holds.contains(id) || state_.holds.contains(StoredUnit(id)),
                   "workload {} is on {} and holds no room", id, node);
      if (!HoldsRoom(record) || record.evict) continue;
      for (const auto& [name, amount] : record.workload.spec.resources.entries()) stored[name] += amount;
    }
    for (const auto& [name, amount] : stored) {
      const bool limited = std::ranges::find(there.unlimited, name) == there.unlimited.end();
      MUSTER_CHECK(state_.shrunk.contains(node) || !limited || name == "gpu-milli" || amount <= there.total.Get(name),
                   "node {}: {} of {} is reserved beyond its total", node, static_cast<int64_t>(amount), name);
    }
    for (const auto& [name, amount] : sums[node]) {
      MUSTER_CHECK(reserved_.at(node).at(name) == amount, "node {}: reserved {} is miscounted", node, name);
    }
  }
  MUSTER_CHECK(placer_.units() == state_.holds.size(), "{} units are placed, {} hold room", placer_.units(),
               state_.holds.size());
  placer_.CheckInvariants();
}

}  // namespace muster::scheduler
