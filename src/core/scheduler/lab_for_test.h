// Lab: a scheduler with a store and agents around it that do what the test says. Time moves only when the test lets it.
//
// The store commits at once, tells the scheduler, and shows the change in its watch; switches make it lose answers, or
// refuse. Agents work as real ones do: they accept a launch, and the workload runs a little later; switches make them
// refuse, fail, hang or vanish. Several labs may share one store. After every step the scheduler's invariants are
// checked.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/scheduler/parts.h"
#include "core/scheduler/scheduler.h"

namespace muster::scheduler {

struct LabStore {
  virtual ~LabStore() = default;
  std::map<std::string, contract::KeyValue> rows;
  contract::Revision revision = 1;
  uint64_t commits = 0;
  uint64_t writes = 0;

  // The changes of the transaction, if its conditions hold.
  virtual std::optional<std::vector<contract::Change>> Commit(const contract::Transaction& transaction) {
    for (const contract::Compare& compare : transaction.compares) {
      const auto found = rows.find(compare.key);
      const bool holds = compare.value ? found != rows.end() && found->second.value == *compare.value
                                       : (found == rows.end() ? 0 : found->second.modified) == compare.modified;
      if (!holds) return std::nullopt;
    }
    std::vector<contract::Change> changes;
    if (transaction.writes.empty()) return changes;
    ++revision;
    ++commits;
    for (const contract::StoreWrite& write : transaction.writes) {
      ++writes;
      if (write.value) {
        contract::KeyValue& row = rows[write.key];
        if (row.created == 0) row.created = revision;
        row.key = write.key;
        row.value = *write.value;
        row.modified = revision;
        row.lease = write.lease;
        changes.push_back({.deleted = false, .now = row});
      } else if (rows.erase(write.key) > 0) {
        changes.push_back({.deleted = true, .now = {.key = write.key, .value = {}, .modified = revision}});
      }
    }
    return changes;
  }
};

struct LabAgent {
  struct Workload {
    contract::WorkloadStatus status;
    MonoTime settles;  // when a pending one becomes what it will be
    contract::ActualState then = contract::ActualState::kRunning;
    std::string then_message;
    std::optional<int32_t> then_exit;
  };
  std::map<std::string, Workload> workloads;
  bool unreachable = false;  // UNAVAILABLE
  bool hangs = false;        // no answer before the deadline
  bool native = false;
  uint64_t epoch = 0;
  Duration start_takes = 100ms;
  Duration stop_takes{};
  std::function<std::optional<Status>(const contract::ApplyOnAgent&)> refuses;        // the call fails
  std::function<std::optional<std::string>(const contract::ApplyOnAgent&)> declines;  // applied=false
  std::map<std::string, std::string> fails;  // workloads that fail once started, and what they say
  std::map<std::string, int32_t> exits;      // workloads that stop once started, with their code
  std::optional<model::Resources> used;      // what the node measures, for its heartbeats
  Status status_error;                       // of GetWorkloadStatus, if not OK
  Status delete_error;                       // of DeleteWorkload, if not OK
  std::vector<contract::ApplyOnAgent> applied;
  std::vector<contract::DeleteOnAgent> deleted;
  int statuses_asked = 0;
  int lists_asked = 0;
};

class Lab {
 public:
  explicit Lab(Config config = {}, std::shared_ptr<LabStore> shared = std::make_shared<LabStore>())
      : store(std::move(shared)), core(config) {
    Post(LeadershipChanged{.leading = true});
    Post(ListedNow());
  }

  // --- what the test may set and look at
  std::shared_ptr<LabStore> store;
  std::map<std::string, LabAgent> agents;
  std::map<std::string, std::string> renamed;  // a node under another id: whose agent and address it has
  std::set<std::string> beating;               // nodes that send a heartbeat every 10 s
  Duration beat_every = 10s;
  bool lose_answers = false;   // commits happen, and the answer is Unknown
  bool lose_requests = false;  // commits do not happen, and the answer is Unknown
  Status refuses_commits;      // the answer of every commit, if not OK
  bool watch_held = false;     // the watch shows nothing
  bool reload = false;         // the core is saved and loaded before every step
  std::map<contract::RequestId, Answer> answers;
  std::vector<contract::Decision> decisions;
  std::vector<contract::ObjectChanged> changes;
  std::vector<Notice> notices;
  std::map<std::string, int> reconciled;  // by action
  Now now{.mono = MonoTime(1h), .wall = WallTime(1'700'000'000s)};
  Core core;
  int most_in_flight = 0;                                             // calls to one node
  std::function<void(const Effect&)> observe = [](const Effect&) {};  // told of every effect before it is carried out

  // --- time
  void Post(Event event, Duration in = {}) { events_.emplace(now.mono + in, std::move(event)); }
  void Run(Duration time = {}) {
    const MonoTime end = now.mono + time;
    int at_once = 0;
    while (true) {
      MonoTime next = end + 1ns;
      if (!events_.empty()) next = std::min(next, events_.begin()->first);
      if (!beats_.empty()) next = std::min(next, beats_.begin()->first);
      const auto wake = core.NextWake();
      if (wake) next = std::min(next, std::max(*wake, now.mono));
      if (next > end) break;
      at_once = next > now.mono ? 0 : at_once + 1;
      ASSERT_LT(at_once, 100000) << "the scheduler does not come to rest";
      Advance(next - now.mono);
      if (!beats_.empty() && beats_.begin()->first <= now.mono) {
        SendBeat();
      } else if (!events_.empty() && events_.begin()->first <= now.mono) {
        const Event event = std::move(events_.begin()->second);
        events_.erase(events_.begin());
        Step(event);
      } else {
        Step(contract::Wake{});
      }
    }
    Advance(end - now.mono);
  }

  // --- requests
  contract::RequestId Ask(contract::ClusterRequest body) {
    const contract::RequestId id = ++requests_;
    Post(Asked{.request = id, .body = std::move(body)});
    return id;
  }
  // The status of a request that is answered at once, or within `within`.
  Status Try(contract::ClusterRequest body, Duration within = 10ms) {
    const contract::RequestId id = Ask(std::move(body));
    Run(within);
    if (!answers.contains(id)) return {Code::kDeadlineExceeded, "no answer"};
    return answers.at(id).status;
  }
  template <class Reply>
  Reply Get(contract::ClusterRequest body, Duration within = 10ms) {
    const contract::RequestId id = Ask(std::move(body));
    Run(within);
    if (!answers.contains(id)) {
      ADD_FAILURE() << "no answer";
      return {};
    }
    const Answer& answer = answers.at(id);
    if (!answer.reply) {
      ADD_FAILURE() << answer.status.ToString();
      return {};
    }
    return std::get<Reply>(*answer.reply);
  }
  contract::WorkloadView Workload(const std::string& id) {
    return Get<contract::WorkloadView>(contract::GetWorkload{id});
  }
  contract::NodeView Node(const std::string& id) { return Get<contract::NodeView>(contract::GetNode{id}); }
  std::string Phase(const std::string& id) { return std::string(model::WorkloadPhaseName(Workload(id).phase)); }

  // --- nodes
  std::string AgentOf(const std::string& node) const {
    const auto found = renamed.find(node);
    return found == renamed.end() ? node : found->second;
  }
  contract::NodeFacts Facts(const std::string& node) {
    contract::NodeFacts facts{
        .node = node, .endpoint = AgentOf(node) + ":50051", .native = agents[AgentOf(node)].native};
    facts.total = {{"cpu", 8000}, {"memory", int64_t{16} << 40}};
    facts.supported_types = {model::WorkloadType::kContainer, model::WorkloadType::kProcess};
    return facts;
  }
  contract::NodeRegistered Register(contract::NodeFacts facts) {
    const std::string node = facts.node;
    const bool is_native = facts.native;
    contract::RegisterNode body{.facts = std::move(facts)};
    if (is_native) {
      body.running = StatusesOf(node);
      body.epoch = agents[node].epoch;
    }
    auto reply = Get<contract::NodeRegistered>(std::move(body));
    if (is_native && reply.state.epoch < agents[node].epoch)
      return reply;  // a join that is too late: the agent drops it
    agents[node].epoch = reply.state.epoch;
    if (is_native && reply.accepted) {
      std::set<std::string> listed;
      for (const auto& apply : reply.state.workloads) listed.insert(apply.workload);
      if (reply.state.remove_others) {
        std::erase_if(agents[node].workloads, [&](const auto& entry) { return !listed.contains(entry.first); });
      }
    }
    return reply;
  }
  // Registers a node with 8 cpu and 16 Gi and lets it beat.
  void AddNode(const std::string& node) {
    EXPECT_TRUE(Register(Facts(node)).accepted);
    StartBeating(node);
  }
  void StartBeating(const std::string& node) {
    beating.insert(node);
    beats_.emplace(now.mono + beat_every, node);
  }
  void StopBeating(const std::string& node) { beating.erase(node); }
  Status Beat(const std::string& node) {
    const contract::RequestId id = ++requests_;
    Step(Asked{.request = id, .body = BeatOf(node)});
    Run(10ms);
    return answers.at(id).status;
  }
  std::vector<contract::WorkloadStatus> StatusesOf(const std::string& node) {
    std::vector<contract::WorkloadStatus> statuses;
    for (auto& [id, workload] : agents[AgentOf(node)].workloads) {
      Settle(workload);
      statuses.push_back(workload.status);
    }
    return statuses;
  }
  // What the node runs, of this workload: its state, or Missing.
  contract::ActualState On(const std::string& node, const std::string& workload) {
    const auto found = agents[node].workloads.find(workload);
    if (found == agents[node].workloads.end()) return contract::ActualState::kMissing;
    Settle(found->second);
    return found->second.status.actual;
  }

  // --- workloads
  static model::WorkloadTemplate Template(int64_t cpu_milli = 1000, int64_t memory_gi = 1) {
    model::WorkloadTemplate spec;
    spec.type = model::WorkloadType::kContainer;
    spec.image = "busybox";
    spec.resources = {{"cpu", cpu_milli}, {"memory", memory_gi * 1000 << 30}};
    return spec;
  }
  static contract::ApplyWorkload ApplyOf(const std::string& id, model::WorkloadTemplate spec = Template()) {
    return {.workload = id, .revision = "rev-1", .spec = std::move(spec)};
  }
  contract::Applied Apply(const std::string& id, model::WorkloadTemplate spec = Template()) {
    return Get<contract::Applied>(ApplyOf(id, std::move(spec)));
  }
  Status Delete(const std::string& id) {
    return Try(contract::DeleteObject{.kind = contract::ObjectKind::kWorkload, .name = id});
  }
  bool Exists(const std::string& id) { return core.copy().Find<WorkloadRecord>(id) != nullptr; }
  std::vector<std::string> EventsOf(const std::string& id) {
    std::vector<std::string> types;
    for (const auto& event : Get<contract::EventsListed>(contract::ListEvents{.workload = id}).events) {
      types.push_back(event.type);
    }
    std::ranges::reverse(types);
    return types;
  }
  int Decided(contract::DecisionKind kind) const {
    return static_cast<int>(std::ranges::count(decisions, kind, &contract::Decision::kind));
  }

  // --- the store
  StoreListed ListedNow() const {
    StoreListed listed{.revision = store->revision, .rows = {}};
    for (const auto& [key, row] : store->rows) listed.rows.push_back(row);
    return listed;
  }
  // Another program writes.
  void WriteBehind(const std::string& key, std::optional<std::string> value) {
    const auto changed = store->Commit({.compares = {}, .writes = {{.key = key, .value = std::move(value)}}});
    ShowChanges(*changed);
  }
  void LoseStore() { Post(StoreLost{Status(Code::kUnavailable, "connection refused")}); }
  void ReturnStore() { Post(ListedNow()); }
  // A new life on the same store.
  void Restart() {
    core = Core(config());
    events_.clear();
    Post(LeadershipChanged{.leading = true});
    Post(ListedNow());
  }
  const Config& config() const { return core.parts().config; }
  void Step(const Event& event) {
    if (reload) {
      auto loaded = Core::Load(core.Save());
      ASSERT_TRUE(loaded.has_value());
      core = *std::move(loaded);
    }
    std::vector<Effect> effects;
    core.Step(event, now, effects);
    // Checks cost as much as there are workloads.
    if (++steps_ % std::max<size_t>(1, core.copy().All<WorkloadRecord>().size() / 20) == 0) core.CheckInvariants();
    for (Effect& effect : effects) {
      observe(effect);
      std::visit([&](auto& one) { CarryOut(one); }, effect);
    }
  }

 private:
  void Advance(Duration by) {
    now.mono += by;
    now.wall += by;
  }

  contract::Heartbeat BeatOf(const std::string& node) {
    return {
        .node = node, .epoch = agents[node].epoch, .used = agents[AgentOf(node)].used, .statuses = StatusesOf(node)};
  }
  void SendBeat() {
    const std::string node = beats_.begin()->second;
    beats_.erase(beats_.begin());
    if (!beating.contains(node)) return;
    beats_.emplace(now.mono + beat_every, node);
    Step(Asked{.request = ++requests_, .body = BeatOf(node)});
  }

  void Settle(LabAgent::Workload& workload) const {
    if (workload.status.actual != contract::ActualState::kPending || workload.settles > now.mono) return;
    workload.status.actual = workload.then;
    workload.status.message = workload.then_message;
    workload.status.exit_code = workload.then_exit;
  }

  // --- effects
  void CarryOut(const contract::Persist&) { ADD_FAILURE() << "a scheduler persists nothing of its own"; }
  void CarryOut(const Answer& answer) { EXPECT_TRUE(answers.emplace(answer.request, answer).second); }
  void CarryOut(const Notice& notice) { notices.push_back(notice); }
  void CarryOut(const Reconciled& done) { ++reconciled[done.action]; }
  void CarryOut(const Publish& publish) {
    if (const auto* decision = std::get_if<contract::Decision>(&publish.change)) decisions.push_back(*decision);
    if (const auto* changed = std::get_if<contract::ObjectChanged>(&publish.change)) changes.push_back(*changed);
  }

  void ShowChanges(const std::vector<contract::Change>& shown) {
    if (shown.empty() || watch_held) return;
    Post(StoreChanged{.revision = store->revision, .changes = shown}, 1ms);
  }
  void CarryOut(const contract::Commit& commit) {
    EXPECT_LE(commit.transaction.writes.size(), contract::kMaxTransactionWrites);
    EXPECT_LE(commit.transaction.compares.size(), contract::kMaxTransactionCompares);
    contract::CommitOutcome outcome = contract::Unknown{Status(Code::kDeadlineExceeded, "no answer")};
    if (!refuses_commits.ok()) {
      outcome = contract::Unknown{refuses_commits};
    } else if (!lose_requests) {
      const auto changed = store->Commit(commit.transaction);
      if (changed) ShowChanges(*changed);
      if (!lose_answers && changed) outcome = contract::Committed{store->revision};
      if (!lose_answers && !changed) outcome = contract::Conflict{store->revision};
    }
    Post(contract::CommitDone{.id = commit.id, .outcome = std::move(outcome)}, 1ms);
  }

  void CarryOut(const Call& call) {
    const std::string node = call.to.substr(0, call.to.find(' '));
    EXPECT_EQ(call.to, node + " " + AgentOf(node) + ":50051");
    most_in_flight = std::max(most_in_flight, ++in_flight_[node]);
    LabAgent& agent = agents[AgentOf(node)];
    CallDone done{.id = call.id, .status = {}, .reply = std::nullopt};
    Duration in = 1ms;
    if (agent.hangs) {
      done.status = Status(Code::kDeadlineExceeded, "no answer in time");
      in = call.timeout;
    } else if (agent.unreachable) {
      done.status = Status(Code::kUnavailable, "connection refused");
    } else {
      std::visit([&](const auto& request) { Serve(agent, request, done); }, call.request);
    }
    --in_flight_[node];  // counted while it is carried out; the scheduler's own invariant bounds what is under way
    Post(std::move(done), in);
  }

  void Serve(LabAgent& agent, const contract::ApplyOnAgent& request, CallDone& done) {
    agent.applied.push_back(request);
    if (agent.refuses) {
      if (const auto refused = agent.refuses(request)) {
        done.status = *refused;
        return;
      }
    }
    if (agent.native && request.stamp.epoch != agent.epoch) {
      done.status = Status(Code::kFailedPrecondition, "another epoch");
      return;
    }
    contract::AppliedOnAgent reply{.applied = true};
    if (agent.declines) {
      if (const auto declined = agent.declines(request)) {
        done.reply = contract::AppliedOnAgent{.applied = false, .skipped = false, .message = *declined};
        return;
      }
    }
    LabAgent::Workload& workload = agent.workloads[request.workload];
    Settle(workload);
    const bool same =
        workload.status.revision == request.revision &&
        workload.status.actual == (request.run ? contract::ActualState::kRunning : contract::ActualState::kStopped);
    if (same) {
      reply.skipped = true;
      workload.status.stamp = request.stamp;
    } else {
      workload.status = {.workload = request.workload,
                         .type = request.spec.type,
                         .revision = request.revision,
                         .wanted_running = request.run,
                         .actual = contract::ActualState::kPending,
                         .stamp = request.stamp};
      workload.settles = now.mono + (request.run ? agent.start_takes : agent.stop_takes);
      workload.then = request.run ? contract::ActualState::kRunning : contract::ActualState::kStopped;
      workload.then_message.clear();
      workload.then_exit.reset();
      const auto fails = agent.fails.find(request.workload);
      if (request.run && fails != agent.fails.end()) {
        workload.then = contract::ActualState::kFailed;
        workload.then_message = fails->second;
      }
      const auto exits = agent.exits.find(request.workload);
      if (request.run && exits != agent.exits.end()) {
        workload.then = exits->second == 0 ? contract::ActualState::kStopped : contract::ActualState::kFailed;
        workload.then_exit = exits->second;
      }
    }
    reply.status = workload.status;
    done.reply = std::move(reply);
  }
  void Serve(LabAgent& agent, const contract::DeleteOnAgent& request, CallDone& done) {
    agent.deleted.push_back(request);
    if (!agent.delete_error.ok()) {
      done.status = agent.delete_error;
      return;
    }
    agent.workloads.erase(request.workload);
    done.reply = contract::DeletedOnAgent{.success = true};
  }
  void Serve(LabAgent& agent, const contract::GetStatusOnAgent& request, CallDone& done) {
    ++agent.statuses_asked;
    const auto found = agent.workloads.find(request.workload);
    if (!agent.status_error.ok()) {
      done.status = agent.status_error;
    } else if (found == agent.workloads.end()) {
      done.status = Status(Code::kNotFound, "status not found");
    } else {
      Settle(found->second);
      done.reply = found->second.status;
    }
  }
  void Serve(LabAgent& agent, const contract::ListOnAgent&, CallDone& done) {
    ++agent.lists_asked;
    contract::ListedOnAgent listed;
    for (auto& [id, workload] : agent.workloads) {
      Settle(workload);
      listed.workloads.push_back(workload.status);
    }
    done.reply = std::move(listed);
  }

  std::multimap<MonoTime, Event> events_;
  std::set<std::pair<MonoTime, std::string>> beats_;
  std::map<std::string, int> in_flight_;
  contract::RequestId requests_ = 0;
  size_t steps_ = 0;
};

}  // namespace muster::scheduler
