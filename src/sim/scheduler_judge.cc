#include "sim/scheduler_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/resources.h"

namespace muster::sim {
namespace {

using model::DesiredState;
using model::WorkloadPhase;
using scheduler::RecordKind;

constexpr std::string_view kLeaderKey = "/leader";
constexpr std::string_view kHostLabel = "kubernetes.io/hostname";
// Fifteen heartbeats of a node: each leads to a comparison in the store and a call, either of which may be lost.
constexpr Duration kTold = 30s;

// "<node id> <host:port>"
std::string NodeOf(const scheduler::Call& call) { return call.to.substr(0, call.to.find(' ')); }

// The number that a client put into a revision: "r17" and "r17-<hash>" are 17.
int64_t NumberOf(const std::string& revision) {
  return revision.starts_with('r') ? std::atoll(revision.c_str() + 1) : 0;
}

// It goes to no host on which another member of its set is.
bool KeepsApart(const model::Workload& member) {
  return !member.set.empty() && std::ranges::any_of(member.spec.exclude, [](const model::NeighbourRule& rule) {
    return rule.topology_key == kHostLabel && !rule.selector && rule.weight == 0;
  });
}

}  // namespace

void SchedulerJudge::StoreHolds(const std::vector<contract::KeyValue>& rows, MonoTime now) {
  now_ = now;
  std::map<std::string, Row, std::less<>> before = std::exchange(rows_, {});
  for (const contract::KeyValue& row : rows) {
    if (row.key == kLeaderKey && row.modified != leads_.first) leads_ = {row.modified, now};
    auto known = before.extract(row.key);
    if (!known.empty() && known.mapped().modified == row.modified) {
      rows_.insert(std::move(known));
    } else if (const auto key = scheduler::ParseKey(config_.prefix, row.key)) {
      rows_.emplace(row.key, Row{.modified = row.modified, .kind = key->kind, .id = key->id, .owner = {}});
      Read(row, rows_.at(row.key));
    }
  }
  for (const auto& [key, row] : before) {
    if (rows_.contains(key)) continue;
    if (row.kind == RecordKind::kNode) nodes_.erase(row.id);
    if (row.kind == RecordKind::kWorkload) workloads_.erase(row.id);
    if (row.kind == RecordKind::kSet) sets_.erase(row.id);
    if (row.kind == RecordKind::kQuota) quotas_.erase(row.id);
  }
  std::map<std::string, int> events;
  for (const auto& [key, row] : rows_) {
    if (!row.owner.empty()) ++events[row.owner];
  }
  for (const auto& [workload, count] : events) {
    Check(count <= config_.events_per_workload,
          [&] { return fmt::format("workload {} has {} events in the store", workload, count); });
  }
  CheckCapacity();
  CheckNeighbours();
  CheckPromises();
  CheckQuotas();
}

void SchedulerJudge::Read(const contract::KeyValue& stored, Row& row) {
  const std::string& id = row.id;
  if (row.kind == RecordKind::kNode) {
    auto node = scheduler::DecodeNode(stored.value);
    Check(node.has_value(), [&] { return fmt::format("node {}: {}", id, node.error().message()); });
    if (!node) return;
    uint64_t& epoch = epochs_[id];
    Check(node->epoch >= epoch, [&] { return fmt::format("the epoch of node {} fell to {}", id, node->epoch); });
    epoch = node->epoch;
    CheckNode(id, *node, stored.modified, SendingOf(stored, row));
    if (node->cordoned) cordoned_.emplace(id, now_);
    if (!node->cordoned) cordoned_.erase(id);
    nodes_.insert_or_assign(id, *std::move(node));
  } else if (row.kind == RecordKind::kWorkload) {
    auto workload = scheduler::DecodeWorkload(stored.value);
    Check(workload.has_value(), [&] { return fmt::format("workload {}: {}", id, workload.error().message()); });
    if (!workload) return;
    CheckProgress(id, *workload, SendingOf(stored, row).at);
    workloads_.insert_or_assign(id, *std::move(workload));
  } else if (row.kind == RecordKind::kSet) {
    if (auto set = scheduler::DecodeSet(stored.value)) sets_.insert_or_assign(id, *std::move(set));
  } else if (row.kind == RecordKind::kQuota) {
    if (auto quota = scheduler::DecodeQuota(stored.value)) quotas_.insert_or_assign(id, *std::move(quota));
  } else if (row.kind == RecordKind::kEvent) {
    if (const auto event = scheduler::DecodeEvent(stored.value)) row.owner = event->workload;
  }
}

// The leader's ages begin with its election, and a call is answered before a node can be reached again.
void SchedulerJudge::CheckNode(const std::string& id, const scheduler::NodeRecord& node, contract::Revision modified,
                               const Sending& sending) {
  const auto before = nodes_.find(id);
  if (before == nodes_.end()) return;
  const bool lost = before->second.status == model::NodeStatus::kReady && node.status == model::NodeStatus::kNotReady;
  // Several revisions may be looked at at once: what was written before the election is the work of who led before.
  const bool of_leader = modified > leads_.first;
  Check(!lost || !of_leader || node.status_updated_by != "monitor" || now_ - leads_.second >= config_.node_timeout,
        [&] { return fmt::format("node {} is lost for ages from before the leader was elected", id); });
  // A world that tells nothing of its calls is not judged by them.
  if (node.unreachable && !before->second.unreachable) {
    if (sending.calls) unreachable_[id] = *sending.calls;
  }
  const auto since = unreachable_.find(id);
  if (!node.unreachable && before->second.unreachable && since != unreachable_.end()) {
    const auto answered = answered_.find(id);
    Check(answered != answered_.end() && answered->second >= since->second,
          [&] { return fmt::format("node {} is reachable again, and no call was answered", id); });
  }
}

void SchedulerJudge::CheckProgress(const std::string& id, const scheduler::WorkloadRecord& record, MonoTime decided) {
  const auto known = progress_.find(id);
  const bool is_new = known == progress_.end() || !workloads_.contains(id);
  Progress& progress = progress_[id];
  const std::string& node = record.workload.assigned_node;
  const uint64_t sequence = record.stamp.sequence;
  Check(sequence >= progress.sequence || sequence == 0,
        [&] { return fmt::format("the assignment sequence of {} fell to {}", id, sequence); });
  const bool moved = !node.empty() && !is_new && node != progress.node;
  Check(!moved || sequence > progress.sequence,
        [&] { return fmt::format("{} moved to {} under the sequence {} that it had", id, node, sequence); });
  if (moved) CheckTarget(id, node);
  if (!node.empty() && (is_new || node != progress.node)) placed_.insert(id);
  progress.sequence = std::max(progress.sequence, sequence);
  progress.node = node;
  if (!node.empty()) assignments_[id].emplace(sequence, node);
  CheckAttempts(id, record, is_new, decided, progress);
}

// A node that is cordoned gets no workload. Decisions that were on their way at that time are.
void SchedulerJudge::CheckTarget(const std::string& id, const std::string& node) {
  const auto cordoned = cordoned_.find(node);
  Check(cordoned == cordoned_.end() || now_ - cordoned->second < 3 * config_.commit_timeout,
        [&] { return fmt::format("{} was placed on {}, which is cordoned", id, node); });
}

void SchedulerJudge::CheckAttempts(const std::string& id, const scheduler::WorkloadRecord& record, bool is_new,
                                   MonoTime decided, Progress& progress) {
  const int32_t attempts = record.retry.attempts;
  Check(attempts <= config_.max_attempts, [&] { return fmt::format("{} has {} attempts", id, attempts); });
  Check(attempts < config_.max_attempts || record.workload.phase != WorkloadPhase::kRetryPending,
        [&] { return fmt::format("{} is tried again after {} attempts", id, attempts); });
  const bool changed = is_new || record.agent_revision != progress.revision;
  Check(!changed || attempts == 0,
        [&] { return fmt::format("revision {} of {} begins with {} attempts", record.agent_revision, id, attempts); });
  if (!changed && attempts > progress.attempts) {
    Check(!record.workload.assigned_node.empty(),
          [&] { return fmt::format("{} waits for a node, and that counts as an attempt", id); });
    Check(!record.message.contains("runtime not available"),
          [&] { return fmt::format("{} lacks a runtime on its node, and that counts as an attempt", id); });
    // What is evicted meanwhile begins at once where it goes.
    Check(progress.attempts == 0 || progress.evicted || decided - progress.counted >= config_.retry_base,
          [&] { return fmt::format("{} was tried again without a back-off", id); });
  }
  if (attempts != progress.attempts) {
    progress.counted = decided;
    progress.evicted = false;
  }
  progress.evicted |= record.evict;
  progress.attempts = attempts;
  progress.revision = record.agent_revision;
}

void SchedulerJudge::CheckCapacity() {
  std::map<std::string, model::Resources> reserved;
  for (const auto& [id, record] : workloads_) {
    const std::string& node = record.workload.assigned_node;
    // What leaves holds what it had, whatever its record asks for elsewhere.
    if (node.empty() || record.evict || record.workload.phase == WorkloadPhase::kCompleted) continue;
    if (auto sum = model::Add(reserved[node], record.workload.spec.resources)) reserved[node] = *std::move(sum);
  }
  for (const auto& [node, sum] : reserved) {
    const auto at = nodes_.find(node);
    if (at == nodes_.end()) continue;
    Check(at->second.facts.total.Covers(sum), [&] {
      return fmt::format("node {} has {} reserved of {}", node, sum.ToString(), at->second.facts.total.ToString());
    });
  }
}

// The quota of a world does not change once it is there, and was there before the tenant asked for anything.
void SchedulerJudge::CheckQuotas() {
  for (const auto& [tenant, quota] : quotas_) {
    for (const auto& [name, limit] : quota.limits.entries()) {
      int64_t asked = 0;
      std::string whose;
      const auto add = [&](const std::string& what, int64_t amount) {
        asked += amount;
        if (amount > 0) whose += fmt::format(" {} {}", what, amount);
      };
      for (const auto& [id, record] : workloads_) {
        const model::Workload& workload = record.workload;
        const bool ended = workload.phase == WorkloadPhase::kCompleted || workload.phase == WorkloadPhase::kFailed;
        if (workload.tenant != tenant || !workload.set.empty()) continue;
        if (workload.desired == DesiredState::kRunning && !ended) add(id, workload.spec.resources.Get(name));
      }
      for (const auto& [id, set] : sets_) {
        if (set.spec.tenant != tenant || set.deleting) continue;
        add(id, set.spec.replicas * set.spec.spec.resources.Get(name));
      }
      Check(asked <= limit, [&] {
        return fmt::format("tenant {} was given {} of {}, its quota is {}:{}", tenant, asked, name, limit, whose);
      });
    }
  }
}

// Members that were placed since the last look: by their own rules, which were decided with their places. A rule that
// came to the others at the same moment may be younger.
void SchedulerJudge::CheckNeighbours() {
  for (const std::string& id : std::exchange(placed_, {})) {
    const auto placed = workloads_.find(id);
    if (placed == workloads_.end() || !KeepsApart(placed->second.workload)) continue;
    const model::Workload& member = placed->second.workload;
    for (const auto& [other, record] : workloads_) {
      const model::Workload& there = record.workload;
      const bool beside = other != id && there.set == member.set && there.assigned_node == member.assigned_node &&
                          there.phase != WorkloadPhase::kCompleted;
      Check(!beside, [&] {
        return fmt::format("{} was placed beside {} on {}, and its rule keeps them apart", id, other,
                           member.assigned_node);
      });
    }
  }
}

// The number of the apply that the store holds. Nothing: the object is gone, or going.
std::optional<int64_t> SchedulerJudge::StoredNumber(const Object& object) const {
  const auto& [kind, name] = object;
  if (kind == contract::ObjectKind::kSet) {
    const auto set = sets_.find(name);
    if (set == sets_.end() || set->second.deleting) return std::nullopt;
    const auto label = set->second.spec.labels.find(std::string(kApplyLabel));
    return label == set->second.spec.labels.end() ? kAtFirst : std::atoll(label->second.c_str());
  }
  const auto workload = workloads_.find(name);
  if (workload == workloads_.end() || workload->second.workload.desired == DesiredState::kDeleted) return std::nullopt;
  return NumberOf(workload->second.workload.revision);
}

void SchedulerJudge::CheckPromises() {
  for (const auto& [object, promise] : promises_) {
    const std::optional<int64_t> stored = StoredNumber(object);
    const auto may_be_gone = [&promise] {
      return std::ranges::any_of(promise.leave_nothing,
                                 [&](int64_t number) { return promise.possible.contains(number); });
    };
    Check(stored ? promise.possible.contains(*stored) : may_be_gone(), [&] {
      const bool set = object.first == contract::ObjectKind::kSet;
      const std::string what = fmt::format("{}{}", set ? "set " : "", object.second);
      if (!stored) return fmt::format("the acknowledged apply of {} is gone", what);
      const bool deleted = promise.leave_nothing.contains(*promise.answered.rbegin());
      return fmt::format("the acknowledged {} of {} is lost: the store has {}", deleted ? "delete" : "apply", what,
                         *stored);
    });
  }
}

SchedulerJudge::Promise& SchedulerJudge::NoteRequest(const Object& object, int64_t number) {
  Promise& promise = promises_[object];
  promise.possible.insert(number);
  promise.before[number] = promise.answered;
  return promise;
}

void SchedulerJudge::Asked(const std::string& name, int64_t number, contract::ObjectKind kind) {
  NoteRequest({kind, name}, number);
}

void SchedulerJudge::AskedToDelete(const std::string& name, int64_t number, contract::ObjectKind kind) {
  NoteRequest({kind, name}, number).leave_nothing.insert(number);
}

void SchedulerJudge::Acknowledged(const std::string& name, int64_t number, contract::ObjectKind kind) {
  // What was answered before this one was asked for is overwritten. Others were under way together with it, and their
  // answers may arrive in another order than they were carried out in.
  Promise& promise = promises_[{kind, name}];
  for (const int64_t other : promise.before[number]) promise.possible.erase(other);
  promise.answered.insert(number);
}

void SchedulerJudge::Sent(const contract::Transaction& transaction, MonoTime now) {
  for (const contract::StoreWrite& write : transaction.writes) {
    const auto key = scheduler::ParseKey(config_.prefix, write.key);
    if (!write.value || !key) continue;
    if (key->kind == RecordKind::kNode || key->kind == RecordKind::kWorkload) {
      sent_[{write.key, *write.value}] = SendingAt(key->id, now);
    }
  }
}

SchedulerJudge::Sending SchedulerJudge::SendingAt(const std::string& node, MonoTime now) const {
  Sending sending{.at = now};
  if (const auto answered = answered_.find(node); answered != answered_.end()) sending.calls = answered->second;
  if (const auto failing = failing_.find(node); failing != failing_.end()) sending.calls = failing->second;
  return sending;
}

SchedulerJudge::Sending SchedulerJudge::SendingOf(const contract::KeyValue& stored, const Row& row) const {
  const auto sent = sent_.find({stored.key, stored.value});
  return sent == sent_.end() ? SendingAt(row.id, now_) : sent->second;
}

void SchedulerJudge::Wrote(const std::string& scheduler, contract::Revision revision,
                           const contract::KeyValue& leader) {
  Check(leader.value == scheduler || leader.modified > revision, [&] {
    return fmt::format("{} wrote at revision {} although {} leads since {}", scheduler, revision, leader.value,
                       leader.modified);
  });
}

// --- calls

void SchedulerJudge::CallStarted(size_t process, const scheduler::Call& call, MonoTime now) {
  const std::string node = NodeOf(call);
  auto& open = open_[{process, node}];
  // A call is over at its deadline, whatever the world does then.
  std::erase_if(open, [&](const auto& other) { return other.second <= now; });
  open[call.id] = now + call.timeout;
  Check(open.size() <= static_cast<size_t>(config_.agent_calls),
        [&] { return fmt::format("{} calls are open for node {}", open.size(), node); });
}

void SchedulerJudge::CallEnded(size_t process, const scheduler::Call& call, const Status& status, MonoTime now) {
  const std::string node = NodeOf(call);
  open_[{process, node}].erase(call.id);
  if (status.code() == Code::kUnavailable || status.code() == Code::kDeadlineExceeded) {
    failing_.emplace(node, now);
  } else {
    failing_.erase(node);
    answered_[node] = now;
  }
}

void SchedulerJudge::CallsForgotten(size_t process) {
  std::erase_if(open_, [&](const auto& entry) { return entry.first.first == process; });
}

void SchedulerJudge::Registered(const std::string& node, const contract::NodeRegistered& answer) {
  if (!answer.accepted || answer.state.epoch == 0) return;
  Check(told_epochs_[node].insert(answer.state.epoch).second,
        [&] { return fmt::format("two registrations of node {} have the epoch {}", node, answer.state.epoch); });
}

// --- what nodes have

void SchedulerJudge::Live(const std::vector<LiveCopy>& copies, std::optional<MonoTime> quiet, MonoTime now) {
  std::map<std::pair<std::string, uint64_t>, std::string> places;  // by workload and sequence
  std::map<std::string, std::vector<std::string>> running;         // nodes by workload, with valid epochs
  for (const LiveCopy& copy : copies) {
    const std::string& id = copy.workload;
    const auto [place, is_new] = places.try_emplace({id, copy.stamp.sequence}, copy.node);
    Check(is_new, [&] {
      return fmt::format("{} is on {} and {} by one assignment, {}", id, place->second, copy.node, copy.stamp.sequence);
    });
    const auto& given = assignments_[id];
    const auto assigned = given.find(copy.stamp.sequence);
    Check(assigned != given.end() && assigned->second == copy.node, [&] {
      return fmt::format("{} has {} by the assignment {}, which the store never gave it", copy.node, id,
                         copy.stamp.sequence);
    });
    const uint64_t epoch = epochs_[copy.node];
    Check(copy.stamp.epoch <= epoch, [&] {
      return fmt::format("{} has {} by the epoch {}, and its own is {}", copy.node, id, copy.stamp.epoch, epoch);
    });
    if (copy.running && copy.stamp.epoch == epoch) running[id].push_back(copy.node);
  }
  std::erase_if(running, [](const auto& entry) { return entry.second.size() < 2; });
  std::erase_if(twice_, [&](const auto& entry) { return !running.contains(entry.first); });
  for (const auto& [id, nodes] : running) {
    MonoTime& since = twice_.try_emplace(id, now).first->second;
    since = std::max(since, quiet.value_or(now));
    Check(now - since < kTold, [&] {
      return fmt::format("{} runs on {} and {} with valid epochs, though all can be reached", id, nodes[0], nodes[1]);
    });
  }
}

// --- rest

// Whether the node would take the workload, as far as the judge can tell.
bool MayExclude(const model::Workload& one, const model::Workload& other) {
  return std::ranges::any_of(one.spec.exclude, [&](const model::NeighbourRule& rule) {
    return rule.selector || (!one.set.empty() && one.set == other.set);
  });
}

bool SchedulerJudge::HasRoom(const JudgedNode& candidate, const model::Workload& workload) const {
  const auto node = nodes_.find(candidate.node);
  if (!candidate.alive || node == nodes_.end() || node->second.cordoned) return false;
  model::Resources used;
  for (const auto& [id, record] : workloads_) {
    if (record.workload.assigned_node != candidate.node) continue;
    if (auto sum = model::Add(used, record.workload.spec.resources)) used = *std::move(sum);
  }
  const auto with = model::Add(used, workload.spec.resources);
  return with && node->second.facts.total.Covers(*with) &&
         std::ranges::find(candidate.types, workload.spec.type) != candidate.types.end() &&
         workload.spec.requirements.empty() && workload.spec.spread.empty() && workload.spec.exclude.empty() &&
         workload.spec.colocate.empty() && std::ranges::none_of(workloads_, [&](const auto& other) {
           return MayExclude(other.second.workload, workload);
         });
}

// Members 0 to N-1 are there, by the template of the set. While so few are up that none may be taken down, those that
// are up keep what they have, and surge members stay. A job has those that have not completed, and none that did not
// run is of an older template.
void SchedulerJudge::CheckSet(const std::string& name, const scheduler::SetRecord& set) {
  Check(!set.deleting, [&] { return fmt::format("set {} is never deleted", name); });
  std::map<int64_t, const scheduler::WorkloadRecord*> members;
  for (const auto& [id, record] : workloads_) {
    if (record.workload.set == name) members[std::atoll(id.c_str() + name.size() + 1)] = &record;
  }
  const auto is_up = [](const scheduler::WorkloadRecord& record) {
    return record.workload.phase == WorkloadPhase::kRunning && !record.evict;
  };
  const model::WorkloadSpec& spec = set.spec;
  const bool job = spec.kind == model::WorkloadKind::kJob;
  const int64_t surge = std::min(spec.max_surge.Of(spec.replicas), spec.replicas);
  const int64_t unavailable = std::max<int64_t>(spec.max_unavailable.Of(spec.replicas), surge == 0 ? 1 : 0);
  const int64_t up = std::ranges::count_if(members, [&](const auto& member) { return is_up(*member.second); });
  const bool held = !job && up <= spec.replicas - unavailable;
  bool outdated = false;
  for (int32_t number = 0; number < spec.replicas; ++number) {
    const auto member = members.find(number);
    const bool done = job && std::ranges::binary_search(set.completed, number);
    Check(member != members.end() || done, [&] { return fmt::format("set {} lacks its member {}", name, number); });
    if (member == members.end() || done) continue;
    const scheduler::WorkloadRecord& record = *member->second;
    const bool current = record.workload.revision == set.revision;
    outdated |= !current;
    Check(current || (is_up(record) && (job || held)), [&] {
      return fmt::format("member {} keeps the template {}, its set has {}: {}", record.workload.id,
                         record.workload.revision, set.revision, record.message);
    });
  }
  for (auto member = members.lower_bound(spec.replicas); member != members.end(); ++member) {
    const bool stays = held && member->first < spec.replicas + surge && (outdated || is_up(*member->second));
    Check(stays, [&] {
      return fmt::format("member {} is one too many of a set of {}", member->second->workload.id, spec.replicas);
    });
  }
}

void SchedulerJudge::AtRest(const std::vector<JudgedNode>& nodes) {
  for (const auto& [name, set] : sets_) CheckSet(name, set);
  std::map<std::string, std::vector<const JudgedNode*>> where;
  for (const JudgedNode& node : nodes) {
    for (const auto& [id, revision] : node.running) where[id].push_back(&node);
    for (const auto& [id, revision] : node.has) {
      Check(workloads_.contains(id) && workloads_.at(id).workload.assigned_node == node.node,
            [&] { return fmt::format("node {} still has {}, which is not its own", node.node, id); });
    }
  }
  for (const auto& [id, record] : workloads_) {
    const model::Workload& workload = record.workload;
    const size_t live = where[id].size();
    Check(live <= 1, [&] { return fmt::format("{} runs on {} nodes", id, live); });
    Check(workload.desired != DesiredState::kDeleted, [&] { return fmt::format("{} is never deleted", id); });
    Check(workload.set.empty() || sets_.contains(workload.set),
          [&] { return fmt::format("{} is left of set {}, which is gone", id, workload.set); });
    if (workload.desired == DesiredState::kStopped) {
      Check(live == 0, [&] { return fmt::format("{} is to be stopped and runs on {}", id, where[id][0]->node); });
      continue;
    }
    if (workload.phase == WorkloadPhase::kFailed || workload.phase == WorkloadPhase::kCompleted) continue;
    if (workload.assigned_node.empty()) {
      Check(!record.message.empty(), [&] { return fmt::format("{} waits and nothing says why", id); });
      const auto fits = std::ranges::find_if(nodes, [&](const JudgedNode& node) { return HasRoom(node, workload); });
      Check(fits == nodes.end(),
            [&] { return fmt::format("{} waits although {} has room ({})", id, fits->node, record.message); });
      continue;
    }
    const auto home = std::ranges::find(nodes, workload.assigned_node, &JudgedNode::node);
    // What its node has left it without waits for another one, and has the old one in its record.
    const bool gone = home == nodes.end() && !nodes_.contains(workload.assigned_node);
    if (gone || (home != nodes.end() && !home->alive)) {
      const auto fits = std::ranges::find_if(nodes, [&](const JudgedNode& node) { return HasRoom(node, workload); });
      Check(fits == nodes.end(), [&] {
        return fmt::format("{} is left on {}, which is dead, although {} has room", id, workload.assigned_node,
                           fits->node);
      });
      Check(!gone || workload.phase == WorkloadPhase::kRetryPending, [&] {
        return fmt::format("{} is {} on {}, which is no node", id, model::WorkloadPhaseName(workload.phase),
                           workload.assigned_node);
      });
      continue;
    }
    Check(live == 1, [&] {
      return fmt::format("{} is to run on {} and does not: {} {}", id, workload.assigned_node,
                         model::WorkloadPhaseName(workload.phase), record.message);
    });
    if (live != 1) continue;
    const std::string& revision = where[id][0]->running.at(id);
    Check(revision == record.agent_revision,
          [&] { return fmt::format("{} runs revision {} and {} is wanted", id, revision, record.agent_revision); });
    Check(workload.phase == WorkloadPhase::kRunning,
          [&] { return fmt::format("{} runs and is shown as {}", id, model::WorkloadPhaseName(workload.phase)); });
  }
}

}  // namespace muster::sim
