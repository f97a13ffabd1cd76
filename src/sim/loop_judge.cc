#include "sim/loop_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>
#include <vector>

#include "base/codec.h"
#include "core/scheduler/agent_calls.h"
#include "model/requirement.h"

namespace muster::sim {
namespace {

using model::MachineState;
using model::WorkloadPhase;

constexpr Duration kMemory = 90s;    // how far back a demand may still move the fleet
constexpr Duration kLag = 40s;       // how far back an operator may be
constexpr Duration kTwinTime = 30s;  // how long a message may be on its way that ends a run
constexpr Duration kBefore = 12s;    // a node that is back may have been given up before
constexpr Duration kAfterwards = 5s;
constexpr Duration kAnswerTime = 1s;           // how long the answer to a heartbeat may be on its way
constexpr int64_t kLargest = 8000;             // millicores of a machine
constexpr int64_t kMemoryOfEach = 16'000'000;  // of every machine
constexpr std::string_view kZoneOfAll = "b";   // no requirement of the world excludes it
constexpr std::string_view kOver = " over ";
constexpr int kTried = 2;  // empty machines there that a need may have been tried with

std::string KindOf(const model::WorkloadTemplate& spec) {
  std::string kind = fmt::format("{}", spec.priority);
  for (const model::NeighbourRule& rule : spec.colocate) kind += " with " + rule.topology_key;
  for (const model::SpreadRule& rule : spec.spread) kind += std::string(kOver) + rule.spread.topology_key;
  if (spec.requirements.empty()) return kind;
  for (const model::Requirement& requirement : spec.requirements.front()) kind += " " + ToString(requirement);
  return kind;
}

// Machines that a need may have beyond what it asks for, in a world of two zones.
int64_t Unfilled(const std::string& kind) { return kind.contains(kOver) ? 2 : 1; }

// What it waits for may be neither room nor a machine.
bool HasNeighbourRules(const model::WorkloadTemplate& spec) {
  return !spec.colocate.empty() || !spec.exclude.empty() || !spec.spread.empty();
}

// From its apply until it is stopped, completed, deleted or finally failed; what is on a node holds its room.
bool Counts(const scheduler::WorkloadRecord& record) {
  switch (record.workload.phase) {
    case WorkloadPhase::kStopped:
    case WorkloadPhase::kCompleted:
    case WorkloadPhase::kDeleted:
    case WorkloadPhase::kFailed: return false;
    default: break;
  }
  return record.workload.desired == model::DesiredState::kRunning || !record.workload.assigned_node.empty();
}

bool HasHardware(const model::Machine& machine) {
  return machine.state == MachineState::kCreating ||
         (!machine.host.empty() && machine.state != MachineState::kFailed && machine.state != MachineState::kDeleting);
}

}  // namespace

void LoopJudge::Watch(LoopWorks& works) {
  works_ = &works;
  for (const auto& [id, cluster] : works.clusters()) {
    schedulers_[id] = std::make_unique<SchedulerJudge>(works.settings().scheduler);
  }
}

const std::optional<std::string>& LoopJudge::failure() const {
  if (failure_) return failure_;
  failure_ = works_->findings().failure();
  for (const auto& [id, judge] : schedulers_) {
    if (!failure_ && judge->failure()) failure_ = fmt::format("{}: {}", id, *judge->failure());
  }
  return failure_;
}

uint64_t LoopJudge::checks() const {
  uint64_t all = works_->findings().checks();
  for (const auto& [id, judge] : schedulers_) all += judge->checks();
  return all;
}

// --- what is true

LoopJudge::Amounts LoopJudge::Wanted() const {
  Amounts wanted;
  for (const auto& [cluster, judge] : schedulers_) {
    for (const auto& [id, record] : judge->workloads()) {
      if (!Counts(record)) continue;
      wanted[{cluster, KindOf(record.workload.spec)}] += record.workload.spec.resources.Get("cpu");
    }
  }
  return wanted;
}

void LoopJudge::Remember() {
  const Amounts wanted = Wanted();
  if (samples_.empty() || now() - samples_.back().when >= 1s) {
    // What was wanted when the moment began counts for it too.
    samples_.push_back({.when = now(), .most = wanted});
    while (samples_.front().when < now() - kMemory) samples_.pop_front();
  }
  Sampled& last = samples_.back();
  for (const auto& [key, amount] : wanted) last.most[key] = std::max(last.most[key], amount);
  for (const auto& [cluster, judge] : schedulers_) {
    auto& asked = asked_[cluster];
    for (const auto& [id, record] : judge->workloads()) asked.try_emplace(id);
    for (auto& [id, story] : asked) {
      const auto record = judge->workloads().find(id);
      const bool counts = record != judge->workloads().end() && Counts(record->second);
      const int64_t amount = counts ? record->second.workload.spec.resources.Get("cpu") : 0;
      if (story.empty()) story.push_back({});  // it asked for nothing before
      if (story.back().amount != amount) story.push_back({.since = now(), .amount = amount});
      while (story.size() > 1 && story[1].since < now() - kMemory) story.pop_front();
    }
  }
}

LoopJudge::Amounts LoopJudge::Most(Duration window) const {
  Amounts most;
  for (const Sampled& sample : samples_) {
    if (sample.when < now() - window) continue;
    for (const auto& [key, amount] : sample.most) most[key] = std::max(most[key], amount);
  }
  return most;
}

LoopJudge::Range LoopJudge::AskedWithin(const std::string& cluster, Duration window) const {
  Range sum;
  const auto workloads = asked_.find(cluster);
  if (workloads == asked_.end()) return sum;
  for (const auto& [id, story] : workloads->second) {
    Range own{.least = std::numeric_limits<int64_t>::max()};
    for (size_t i = 0; i < story.size(); ++i) {
      const bool over = i + 1 < story.size() && story[i + 1].since < now() - window;
      if (over) continue;
      own.least = std::min(own.least, story[i].amount);
      own.most = std::max(own.most, story[i].amount);
    }
    sum.least += own.least;
    sum.most += own.most;
  }
  return sum;
}

int64_t LoopJudge::CorrectionOf(const std::string& cluster) const {
  const LoopCluster& of = *works_->clusters().at(cluster);
  if (!of.operator_alive()) return 0;
  int64_t extra = 0;
  const auto view = of.operator_core().View();
  for (const operators::CorrectionView& correction : view->corrections) {
    extra += correction.extra.Get("cpu");
  }
  return extra;
}

// Millicores of the machines that corrections may ask for: those that are raised in memory alone have processors too.
int64_t LoopJudge::CorrectedRoom(const std::string& cluster) const {
  const LoopCluster& of = *works_->clusters().at(cluster);
  if (!of.operator_alive()) return 0;
  int64_t room = 0;
  const auto view = of.operator_core().View();
  for (const operators::CorrectionView& correction : view->corrections) {
    room += std::max(correction.extra.Get("cpu"), correction.extra.Get("memory") * kLargest / kMemoryOfEach);
  }
  return room;
}

int64_t LoopJudge::ApartWithin(const std::string& cluster) const {
  int64_t most = 0;
  const auto said = apart_.find(cluster);
  if (said == apart_.end()) return most;
  for (const Apart& one : said->second) {
    if (one.when >= now() - kMemory) most = std::max(most, one.needs);
  }
  return most;
}

bool LoopJudge::IsWell(const std::string& cluster, const std::string& node) const {
  const auto& records = schedulers_.at(cluster)->nodes();
  const auto record = records.find(node);
  const auto here = works_->nodes().find(node);
  return record != records.end() && here != works_->nodes().end() && here->second->alive() &&
         here->second->cluster() == cluster && record->second.status == model::NodeStatus::kReady &&
         !record->second.unreachable && here->second->core().View()->epoch == record->second.epoch &&
         now() - here->second->heard() < works_->settings().scheduler.node_timeout - kAnswerTime;
}

bool LoopJudge::Runs(const std::string& node, const std::string& workload) const {
  const auto here = works_->nodes().find(node);
  if (here == works_->nodes().end()) return false;
  const auto run = here->second->runtime().runs().find(workload);
  return run != here->second->runtime().runs().end() && run->second.running;
}

std::string LoopJudge::Told(const std::string& cluster, const std::string& workload, const std::string& node) const {
  std::string text;
  const auto& workloads = schedulers_.at(cluster)->workloads();
  if (const auto record = workloads.find(workload); record != workloads.end()) {
    text += fmt::format("\n  stored: {} on \"{}\": {}", model::WorkloadPhaseName(record->second.workload.phase),
                        record->second.workload.assigned_node, record->second.message);
  }
  const auto view = works_->nodes().at(node)->core().View();
  for (const contract::WorkloadStatus& status : *view->statuses) {
    if (status.workload != workload) continue;
    text += fmt::format("\n  the agent: {} {}: {}", status.revision, contract::ActualStateName(status.actual),
                        status.message);
  }
  return text;
}

std::string LoopJudge::LastDecisions(const std::string& cluster, const std::string& subject) const {
  std::string text;
  int left = 6;
  const auto& decisions = works_->decisions();
  for (auto at = decisions.rbegin(); at != decisions.rend() && left > 0; ++at) {
    if (at->cluster != cluster || (at->decision.workload != subject && at->decision.node != subject)) continue;
    text = fmt::format("\n  {:.1f}s {} {}: {}", std::chrono::duration<double>(at->at).count(),
                       contract::DecisionKindName(at->decision.kind), at->decision.node, at->decision.message) +
           text;
    --left;
  }
  return fmt::format(" at {:.1f}s{}", std::chrono::duration<double>(works_->since_start()).count(), text);
}

// --- stores

void LoopJudge::StoreSeen(const std::string& cluster) {
  store::MemoryStore& store = works_->FindCluster(cluster)->store();
  if (store.revision() == seen_[cluster]) return;
  seen_[cluster] = store.revision();
  const std::vector<contract::KeyValue> rows = store.Rows().rows;
  const auto leader = std::ranges::find(rows, LoopCluster::kLeaderKey, &contract::KeyValue::key);
  leaders_[cluster] = leader == rows.end() ? contract::KeyValue{} : *leader;
  schedulers_.at(cluster)->StoreHolds(rows, now());
  JudgeMoves(cluster);
  Remember();
}

void LoopJudge::JudgeMoves(const std::string& cluster) {
  std::map<std::string, std::string>& where = where_[cluster];
  const auto& workloads = schedulers_.at(cluster)->workloads();
  const auto leaves = [&](const std::string& workload, const std::string& node) {
    if (node.empty() || !IsWell(cluster, node) || !Runs(node, workload)) return;
    departures_.push_back({.when = now(),
                           .cluster = cluster,
                           .workload = workload,
                           .node = node,
                           .story = LastDecisions(cluster, workload) + Told(cluster, workload, node)});
  };
  for (auto at = where.begin(); at != where.end();) {
    const bool gone = !workloads.contains(at->first);
    if (gone) leaves(at->first, at->second);
    at = gone ? where.erase(at) : std::next(at);
  }
  for (const auto& [id, record] : workloads) {
    std::string& node = where[id];
    if (node != record.workload.assigned_node) leaves(id, node);
    node = record.workload.assigned_node;
  }
  NoteUnwell(cluster);
}

void LoopJudge::CalledAgent(const std::string& cluster, size_t scheduler, const std::string& node,
                            contract::CallId call, const Status* answer) {
  auto& open = open_calls_[cluster];
  if (answer == nullptr) {
    open.insert_or_assign({scheduler, call}, AgentCall{.node = node, .since = now()});
    return;
  }
  open.erase({scheduler, call});
  if (scheduler::IsUnreachable(*answer)) unwell_[{cluster, node}] = now();
}

// A node whose heartbeats were not answered for as long as a scheduler waits is not well, whatever is stored of it: the
// next heartbeat may come before the scheduler has stored that it gave the node up. Nor is one that did not answer a
// call in time: what the scheduler stores of the node may be lost, and the node be back before it is stored again.
void LoopJudge::NoteUnwell(const std::string& cluster) {
  std::erase_if(open_calls_[cluster], [&](const auto& open) {
    const bool late = now() - open.second.since >= works_->settings().scheduler.agent_timeout;
    if (late) unwell_[{cluster, open.second.node}] = now();
    return late;
  });
  for (const auto& [id, record] : schedulers_.at(cluster)->nodes()) {
    const bool changed = std::exchange(status_of_[{cluster, id}], record.status_updated_at) != record.status_updated_at;
    if (changed || !IsWell(cluster, id)) unwell_[{cluster, id}] = now();
  }
}

// A scheduler that gives a node up stores so about when it stores where its workloads go: they may overtake each other,
// and the node may be back in between.
void LoopJudge::JudgeDepartures() {
  while (!departures_.empty() && departures_.front().when < now() - kAfterwards) {
    const Departure gone = departures_.front();
    departures_.pop_front();
    const auto unwell = unwell_.find({gone.cluster, gone.node});
    Check(unwell != unwell_.end() && unwell->second >= gone.when - kBefore, [&] {
      return fmt::format("{} of {} left {}, which was well all the while, and still ran there{}", gone.workload,
                         gone.cluster, gone.node, gone.story);
    });
  }
}

void LoopJudge::Committed(const std::string& cluster, size_t scheduler, const contract::Commit& commit,
                          const contract::CommitDone& done) {
  const auto* committed = std::get_if<contract::Committed>(&done.outcome);
  if (committed == nullptr) return;
  Check(!still_ || commit.transaction.writes.empty(), [&] {
    return fmt::format("the store of {} is written at rest: {}", cluster, codec::Describe(commit).substr(0, 300));
  });
  StoreSeen(cluster);
  const contract::KeyValue& leader = leaders_[cluster];
  if (leader.key.empty()) return;
  schedulers_.at(cluster)->Wrote(fmt::format("{}-scheduler-{}", cluster, scheduler), committed->revision, leader);
}

// --- operators

void LoopJudge::OperatorDid(const std::string& cluster, const operators::Effect& effect) {
  const auto* send = std::get_if<operators::Send>(&effect);
  if (send == nullptr) return;
  if (const auto* rollup = std::get_if<contract::Rollup>(&send->message)) JudgeRollup(cluster, *rollup);
}

void LoopJudge::JudgeRollup(const std::string& cluster, const contract::Rollup& rollup) {
  StoreSeen(cluster);
  int64_t says = 0;
  int64_t apart = 0;
  for (const model::Need& need : rollup.rows.needs()) {
    says += need.aggregate.Get("cpu");
    apart += need.group.empty() ? 0 : 1;  // nobody asks for gangs here
  }
  if (apart > 0) apart_[cluster].push_back({.when = now(), .needs = apart});
  const Range asked = AskedWithin(cluster, kLag);
  Check(says >= asked.least,
        [&] { return fmt::format("{} says {} and asked for {} all the while", cluster, says, asked.least); });
  JudgeRaise(cluster);
  const int64_t most = asked.most + CorrectionOf(cluster);
  Check(says <= most, [&] {
    std::string rows;
    for (const model::Need& need : rollup.rows.needs()) {
      rows += fmt::format("\n  {} {}", need.profile.fingerprint(), need.aggregate.ToString());
    }
    return fmt::format("{} says {} and never asked for more than {} at {:.1f}s{}", cluster, says, most,
                       std::chrono::duration<double>(works_->since_start()).count(), rows);
  });
}

// A machine that stands empty says that another one would as well.
void LoopJudge::JudgeRaise(const std::string& cluster) {
  const int64_t extra = CorrectionOf(cluster);
  const bool grew = std::exchange(corrected_[cluster], extra) < extra;
  // What the first roll-up of a life carries was raised in an earlier one.
  if (!grew || works_->clusters().at(cluster)->operator_core().View()->rollups <= 1) return;
  int empty = 0;
  for (const auto& [key, since] : empty_) empty += key.first == cluster && now() - since >= kLag ? 1 : 0;
  Check(empty <= kTried,
        [&] { return fmt::format("{} raises its demand although {} machines stand empty there", cluster, empty); });
}

void LoopJudge::NoteEmpty(const std::string& cluster) {
  const SchedulerJudge& judge = *schedulers_.at(cluster);
  std::set<std::string_view> used;
  for (const auto& [id, record] : judge.workloads()) used.insert(record.workload.assigned_node);
  std::erase_if(empty_, [&](const auto& entry) {
    const auto& [of, node] = entry.first;
    return of == cluster && (!IsWell(cluster, node) || judge.nodes().at(node).cordoned || used.contains(node));
  });
  for (const auto& [id, record] : judge.nodes()) {
    const model::Machine* const machine = FindMachine(id);
    if (machine == nullptr || machine->zone != kZoneOfAll || used.contains(id)) continue;
    if (IsWell(cluster, id) && !record.cordoned) empty_.try_emplace({cluster, id}, now());
  }
}

bool LoopJudge::IsOutByPeople(const std::string& cluster, const std::string& node) const {
  const auto& nodes = schedulers_.at(cluster)->nodes();
  const auto record = nodes.find(node);
  return record != nodes.end() && record->second.cordoned &&
         (!record->second.drain || record->second.drain->instruction.empty());
}

// --- the fleet

const model::Machine* LoopJudge::FindMachine(const std::string& id) const {
  const auto machine = machines_.find(id);
  return machine == machines_.end() ? nullptr : &machine->second;
}

void LoopJudge::Called(const contract::ProviderRequest& request, bool zombie) {
  const bool reads =
      std::holds_alternative<contract::ListRequest>(request) || std::holds_alternative<contract::GetRequest>(request);
  if (reads || zombie) return;
  Check(!still_, [&] { return std::string("the shard still acts when all is done"); });
  Sample();
  if (const auto* create = std::get_if<contract::CreateRequest>(&request)) JudgeCreate(*create);
  if (const auto* drain = std::get_if<contract::DrainRequest>(&request)) JudgeDrain(*drain);
}

// Each need has machines of its own, and ends with one that it does not fill.
void LoopJudge::JudgeCreate(const contract::CreateRequest& request) {
  int64_t paid = 0;
  for (const auto& [id, machine] : machines_) {
    if (id != request.machine_id && HasHardware(machine)) paid += machine.EffectiveAllocatable().Get("cpu");
  }
  int64_t limit = 0;
  for (const auto& [key, amount] : Most(kMemory)) {
    limit += amount == 0 ? 0 : amount + Unfilled(key.second) * kLargest;
  }
  for (const auto& [cluster, judge] : schedulers_) limit += CorrectedRoom(cluster) + ApartWithin(cluster) * kLargest;
  Check(paid < limit, [&] {
    return fmt::format("{} is bought: {} is paid for and no more than {} was wanted", request.machine_id, paid, limit);
  });
}

void LoopJudge::JudgeDrain(const contract::DrainRequest& request) {
  const model::Machine* const machine = FindMachine(request.machine_id);
  if (machine == nullptr || machine->state != MachineState::kConfigured || !schedulers_.contains(machine->cluster))
    return;
  StoreSeen(machine->cluster);
  const auto& nodes = schedulers_.at(machine->cluster)->nodes();
  const auto node = nodes.find(machine->id);
  if (node == nodes.end() || node->second.cordoned) return;
  const auto told = told_.find(machine->id);
  const Duration waited = told == told_.end() ? Duration() : now() - told->second.second;
  // What is said waits for a disk that may stall; the time counts from the decision.
  Check(told != told_.end() && waited >= works_->settings().shard.ack_timeout - 1800ms, [&] {
    return fmt::format("{} is drained, and its node in {} is not cordoned (told {} ago{})", machine->id,
                       machine->cluster, waited / 1ms, LastDecisions(machine->cluster, machine->id));
  });
}

void LoopJudge::ShardDid(const shard::Core::Effect& effect, bool zombie) {
  if (zombie) return;
  if (const auto* send = std::get_if<shard::Send>(&effect)) {
    const auto* told = std::get_if<contract::ReclaimInstruction>(&send->message);
    if (told == nullptr) return;
    for (const std::string& machine : told->nodes) {
      auto& known = told_[machine];
      if (known.first != told->instruction_id) known = {told->instruction_id, now()};
    }
  } else if (const auto* stop = std::get_if<shard::Stop>(&effect)) {
    Check(false, [&] { return "the shard that serves stops: " + stop->why.message(); });
  }
}

void LoopJudge::DrainEnds(const contract::Operation& operation, bool in_time) {
  const std::string& machine = operation.machine->id;
  const auto node = works_->nodes().find(machine);
  if (node == works_->nodes().end()) return;
  for (const auto& [workload, run] : node->second->runtime().runs()) {
    Check(!run.running || !in_time, [&] {
      return fmt::format("{} ends on {} while {} runs there", contract::OperationName(operation.kind), machine,
                         workload);
    });
  }
}

// --- now and then

void LoopJudge::Sample() {
  for (const auto& [cluster, judge] : schedulers_) StoreSeen(cluster);
  if (works_->fleet().provider().alive()) {
    machines_.clear();
    for (const contract::MachineRecord& machine : works_->fleet().provider().Machines()) {
      machines_.emplace(machine->id, *machine);
    }
  }
  Remember();
  if (now() - looked_ >= 500ms) {
    looked_ = now();
    for (const auto& [cluster, judge] : schedulers_) NoteUnwell(cluster);
    for (const auto& [cluster, judge] : schedulers_) NoteEmpty(cluster);
    JudgeDepartures();
    JudgeOwners();
    JudgeTwins();
  }
}

void LoopJudge::JudgeOwners() {
  if (!works_->fleet().provider().alive()) return;
  for (const auto& [id, node] : works_->nodes()) {
    const model::Machine* const machine = FindMachine(id);
    const bool goes =
        machine != nullptr && (machine->state == MachineState::kFailed || machine->state == MachineState::kDeleting);
    if (machine == nullptr || !node->alive() || goes) continue;
    Check(machine->cluster == node->cluster(), [&] {
      return fmt::format("the agent of {} is in {}, and the machine is {} for \"{}\"", id, node->cluster(),
                         model::StateName(machine->state), machine->cluster);
    });
  }
}

void LoopJudge::JudgeTwins() {
  std::map<std::pair<std::string, std::string>, int> live;
  for (const auto& [id, node] : works_->nodes()) {
    if (!node->configured() || !IsWell(node->cluster(), id)) continue;
    for (const auto& [workload, run] : node->runtime().runs()) {
      if (run.running) ++live[{node->cluster(), workload}];
    }
  }
  std::erase_if(twins_, [&](const auto& entry) { return live[entry.first] < 2; });
  for (const auto& [key, count] : live) {
    if (count < 2) continue;
    const MonoTime since = twins_.emplace(key, now()).first->second;
    Check(now() - since < kTwinTime,
          [&] { return fmt::format("{} of {} runs on {} nodes that are well", key.second, key.first, count); });
  }
}

// --- rest

void LoopJudge::AtRest(const contract::NeedsInspected& needs) {
  Sample();
  for (const auto& [cluster, judge] : schedulers_) JudgeClusterAtRest(cluster);
  JudgeMachinesAtRest();
  JudgeNeedsAtRest();
  JudgeShortfalls(needs);
  for (const std::string& what : works_->InFlight()) Check(false, [&] { return "at rest, " + what; });
}

void LoopJudge::JudgeClusterAtRest(const std::string& cluster) {
  SchedulerJudge& judge = *schedulers_.at(cluster);
  std::vector<JudgedNode> nodes;
  for (const auto& [id, node] : works_->nodes()) {
    if (node->cluster() != cluster) continue;
    JudgedNode seen{.node = id, .alive = node->alive(), .types = works_->settings().runtimes};
    if (node->alive()) {
      const auto view = node->core().View();
      for (const contract::WorkloadStatus& status : *view->statuses) {
        seen.has[status.workload] = status.revision;
      }
    }
    for (const auto& [workload, run] : node->runtime().runs()) {
      seen.has[workload] = run.revision;
      if (run.running) seen.running[workload] = run.revision;
    }
    nodes.push_back(std::move(seen));
  }
  judge.AtRest(nodes);
  for (const auto& [id, record] : judge.nodes()) {
    const model::Machine* const machine = FindMachine(id);
    Check(machine == nullptr || (machine->cluster == cluster && machine->state == MachineState::kConfigured), [&] {
      return fmt::format("{} is a node of {}, and its machine is {} for \"{}\"", id, cluster,
                         model::StateName(machine->state), machine->cluster);
    });
    Check(record.status == model::NodeStatus::kReady && !record.cordoned, [&] {
      return fmt::format("node {} of {} is of no use at rest: {} {}", id, cluster, record.status_reason,
                         record.cordoned ? record.cordon_reason : "") +
             fmt::format(" (it calls {}, the agent is {})", record.facts.endpoint,
                         works_->nodes().contains(id) && works_->nodes().at(id)->alive() ? "alive" : "dead");
    });
  }
}

void LoopJudge::JudgeMachinesAtRest() {
  for (const auto& [id, machine] : machines_) {
    Check(model::IsStable(machine.state), [&] {
      return fmt::format("{} is {} for ever ({})", id, model::StateName(machine.state), machine.last_error);
    });
    const bool rented =
        machine.capacity_type == model::CapacityType::kOnDemand || machine.capacity_type == model::CapacityType::kSpot;
    Check(machine.state != MachineState::kIdle || !rented, [&] { return id + " is paid for and serves nobody"; });
    if (machine.state != MachineState::kConfigured) continue;
    const auto cluster = schedulers_.find(machine.cluster);
    Check(cluster != schedulers_.end() && cluster->second->nodes().contains(id),
          [&] { return fmt::format("{} serves {}, which has no such node", id, machine.cluster); });
  }
}

void LoopJudge::JudgeNeedsAtRest() {
  if (!works_->fleet().provider().alive()) return;  // there is no fleet
  const Amounts wanted = Wanted();
  std::map<std::string, int64_t> bound;
  for (const auto& [id, machine] : machines_) {
    if (machine.state == MachineState::kConfigured) bound[machine.cluster] += machine.EffectiveAllocatable().Get("cpu");
  }
  const auto view = works_->fleet().shard(works_->fleet().serving()).core().View();
  for (const auto& [cluster, judge] : schedulers_) {
    int64_t sum = 0;
    int64_t kinds = 0;
    for (const auto& [key, amount] : wanted) {
      sum += key.first == cluster ? amount : 0;
      kinds += key.first == cluster && amount > 0 ? Unfilled(key.second) : 0;
    }
    Check(bound[cluster] >= sum || view->shortfalls > 0, [&] {
      return fmt::format("{} wants {}, has {}, and nothing is said to be short", cluster, sum, bound[cluster]);
    });
    const int64_t most = sum + kinds * kLargest + CorrectedRoom(cluster);
    Check(bound[cluster] <= most,
          [&] { return fmt::format("{} wants {} and still has {}", cluster, sum, bound[cluster]); });
    for (const auto& [id, record] : judge->workloads()) {
      const bool waits = Counts(record) && record.workload.assigned_node.empty() &&
                         record.workload.desired == model::DesiredState::kRunning &&
                         !HasNeighbourRules(record.workload.spec);
      if (!waits || view->shortfalls > 0) continue;
      // Its neighbours may refuse it everywhere.
      const bool excluded = std::ranges::any_of(
          judge->workloads(), [&](const auto& entry) { return MayExclude(entry.second.workload, record.workload); });
      if (excluded) continue;
      Check(false, [&] {
        return fmt::format("{} of {} waits, and nothing is said to be short: {}", id, cluster, record.message);
      });
    }
  }
  Check(view->operations == 0, [&] { return fmt::format("the shard has {} operations open", view->operations); });
}

// A need is short only for a reason, and only while nothing that it could have is free.
void LoopJudge::JudgeShortfalls(const contract::NeedsInspected& needs) {
  for (const contract::NeedView& view : needs.needs) {
    if (view.satisfied) continue;
    Check(view.reason != model::Reason::kNone,
          [&] { return fmt::format("a need of {} is short for no reason", view.need.cluster); });
    // What is free may make it uneven, or hold a part that is of no use.
    const bool of_one_domain = std::ranges::any_of(view.need.profile.requirements(), [](const auto& requirement) {
      return requirement.op == model::Operator::kSame;
    });
    if (!view.need.profile.spread().empty() ||
        (of_one_domain && view.reason == model::Reason::kTopologyUnsatisfiable)) {
      continue;
    }
    for (const auto& [id, machine] : machines_) {
      const bool free = machine.state == MachineState::kSpeculative || machine.state == MachineState::kIdle;
      const bool matches =
          std::ranges::all_of(view.need.profile.requirements(), [&](const model::Requirement& requirement) {
            return Matches(requirement, machine.Attribute(requirement.key));
          });
      Check(!free || !matches || !machine.EffectiveAllocatable().Covers(view.need.min_unit), [&] {
        return fmt::format("{} is short of {} [{}], and {} is free", view.need.cluster, view.residual.ToString(),
                           model::ReasonName(view.reason), id);
      });
    }
  }
}

}  // namespace muster::sim
