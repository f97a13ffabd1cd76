#include "sim/scheduler_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/codec.h"
#include "contract/store_view.h"
#include "core/scheduler/scheduler.h"
#include "host/journal.h"
#include "sim/disk.h"
#include "sim/kernel.h"
#include "sim/kernel_schedule.h"
#include "sim/network.h"
#include "sim/scheduler_judge.h"
#include "sim/sim_agent.h"
#include "sim/sim_host.h"
#include "sim/world_run.h"
#include "store/candidate.h"
#include "store/carry_out.h"
#include "store/memory_store.h"
#include "store/mirror.h"
#include "store/rotating_lease.h"

namespace muster::sim {
namespace {

using Host = SimHost<scheduler::Core>;

constexpr Duration kFaultyTime = 60s;
// Orders that keep work away are taken back in its first 20 s, back-offs of the longest kind end, and attempts are
// forgotten.
constexpr Duration kCalmTime = 2min;
constexpr Duration kWorkTime = 40s;
constexpr Duration kUnwatchedTime = 1min;  // ten node timeouts
constexpr Duration kStillTime = 20s;       // at the end of it nothing happens any more
constexpr std::string_view kLeaderKey = "/leader";
constexpr size_t kSchedulers = 2;
constexpr size_t kAgents = 5;
constexpr uint64_t kNames = 12;  // of workloads
// One in four workloads, and one of the two sets, are of a tenant with a quota, which the largest two workloads exceed.
constexpr std::string_view kTenant = "shop";
constexpr int64_t kTenantCpu = 1600;

scheduler::Config WorldConfig(size_t i) {
  return {.id = fmt::format("scheduler-{}", i),
          .reconcile_interval = 2s,
          .node_timeout = 6s,
          .monitor_interval = 2s,
          .missing_grace = 4s,
          .retry_base = 500ms,
          .retry_cap = 8s,
          .max_attempts = 4,
          .retry_reset = 30s,
          .agent_timeout = 2s,
          .refusal_memory = 10s,
          .preempt_after = 2s,
          .commit_timeout = 2s,
          .event_ttl = 20s,
          .events_per_workload = 6};
}

class SchedulerWorld {
 public:
  SchedulerWorld(uint64_t seed, const SchedulerWorldOptions& options)
      : kernel_(seed),
        rng_(kernel_.ForkRng(0x7363686564)),
        network_(kernel_, {}),
        schedule_(kernel_),
        store_(schedule_, {}, seed),
        judge_(WorldConfig(0)) {
    for (size_t i = 0; i < kSchedulers; ++i) AddScheduler(i);
    for (size_t i = 0; i < kAgents; ++i) AddAgent(i);
    if (options.journal_directory.empty()) return;
    auto journal =
        host::JournalWriter::Open(options.journal_directory + "/scheduler", std::string(scheduler::Core::kName));
    judge_.Check(journal.has_value(), [&] { return journal.error().ToString(); });
    if (!journal) return;
    journal_ = *std::move(journal);
    schedulers_[0].host->SetJournal(journal_.get());
  }

  RunResult RunLoss(StoreLoss loss) {
    for (size_t i = 0; i < kSchedulers; ++i) StartScheduler(i);
    for (auto& agent : agents_) agent->Start();
    Act();
    ApplyQuota();
    kernel_.After(kWorkTime / 2, [this] { backup_ = store_.Rows(); });
    return RunPhases(kernel_, network_, judge_, result_,
                     {{.begin = {}, .lasts = kWorkTime},
                      {.begin = [this] { calm_ = true; }, .lasts = kCalmTime},
                      {.begin = [this, loss] { LoseStore(loss); }, .lasts = kUnwatchedTime},
                      {.begin = [this, loss] { CheckNothingDeleted(loss); }, .lasts = {}},
                      {.begin = [this] { AcceptAll(); }, .lasts = kCalmTime},
                      {.begin = [this] { CheckAtRest(); }}});
  }

  RunResult Run() {
    DrawFaults();
    for (size_t i = 0; i < kSchedulers; ++i) StartScheduler(i);
    for (auto& agent : agents_) agent->Start();
    Act();
    ApplyQuota();
    MakeTrouble();
    return RunPhases(kernel_, network_, judge_, result_,
                     {{.begin = {}, .lasts = kFaultyTime},
                      {.begin = [this] { CalmDown(); }, .lasts = kCalmTime},
                      {.begin = [this] { CheckAtRest(); }}});
  }

 private:
  struct Process {
    std::unique_ptr<Disk> disk;
    std::unique_ptr<Host> host;
    std::unique_ptr<store::Mirror> mirror;
    std::unique_ptr<store::Candidate> candidate;
    std::unique_ptr<store::RotatingLease> event_lease;
    std::map<contract::RequestId, std::function<void(Result<contract::ClusterReply>)>> waiting;
    bool paused = false;                           // a zombie to be: nothing reaches it and nothing leaves it
    std::vector<std::function<void()>> held_back;  // what reaches it when the pause ends
  };

  // --- schedulers

  void AddScheduler(size_t i) {
    Process& process = schedulers_[i];
    process.disk = std::make_unique<Disk>(kernel_, DiskFaults{}, 10 + i);
    process.host = std::make_unique<Host>(
        kernel_, *process.disk,
        Host::World{.make_core = [i](const contract::Recovered&) { return scheduler::Core(WorldConfig(i)); },
                    .start_call = [this, i](uint64_t life, const auto& call) { StartCall(i, life, call); },
                    .emit = [this, i](uint64_t life, const auto& effect) { Emit(i, life, effect); },
                    .broken = [this] { return judge_.failure().has_value(); }});
  }

  void StartScheduler(size_t i) {
    Process& process = schedulers_[i];
    if (process.host->alive()) return;
    process.host->Start();
    const uint64_t life = process.host->life();
    process.host->Post(scheduler::LeadershipChanged{});  // it begins as a follower
    process.mirror = std::make_unique<store::Mirror>(
        store_, schedule_, store::MirrorOptions{.range = contract::EveryKey(), .list_timeout = 3s},
        [this, i, life](store::MirrorEvent event) {
          Into(i, life, [this, i, event = std::move(event)] { OnMirror(i, event); });
        });
    process.candidate = std::make_unique<store::Candidate>(
        store_, schedule_, store::CandidateOptions{.key = std::string(kLeaderKey), .value = WorldConfig(i).id},
        [this, i, life](const store::CandidateEvent& event) {
          Into(i, life, [this, i, event] { OnCandidate(i, event); });
        });
    process.event_lease = std::make_unique<store::RotatingLease>(
        store_, schedule_, WorldConfig(i).event_ttl, [this, i, life](contract::LeaseId lease) {
          Into(i, life, [this, i, lease] { schedulers_[i].host->Post(scheduler::EventLease{.lease = lease}); });
        });
  }

  // Runs where the process is: at once, or when its pause ends, or never if that life is over. The judge sees the store
  // before a core can.
  void Into(size_t i, uint64_t life, std::function<void()> action) {
    ShowStore();
    ShowNodes();
    if (judge_.failure()) return;
    Process& process = schedulers_[i];
    if (!process.host->alive() || process.host->life() != life) return;
    if (process.paused) {
      process.held_back.push_back([this, i, life, action = std::move(action)] { Into(i, life, action); });
    } else {
      action();
    }
  }

  // As role/scheduler tells its core.
  void OnMirror(size_t i, const store::MirrorEvent& event) {
    Host& host = *schedulers_[i].host;
    if (const auto* listed = std::get_if<contract::RowsListed>(&event)) {
      host.Post(scheduler::StoreListed{.revision = listed->revision, .rows = listed->rows});
    } else if (const auto* changed = std::get_if<contract::RowsChanged>(&event)) {
      host.Post(scheduler::StoreChanged{.revision = changed->revision, .changes = changed->changes});
    } else if (const auto* lost = std::get_if<contract::StoreLost>(&event)) {
      host.Post(scheduler::StoreLost{.why = lost->status});
    }
  }
  void OnCandidate(size_t i, const store::CandidateEvent& event) {
    scheduler::LeadershipChanged changed;
    if (const auto* leading = std::get_if<contract::Leading>(&event)) {
      changed = {.leading = true,
                 .leader = leading->key.value,
                 .leader_key = leading->key.key,
                 .leader_revision = leading->key.modified};
    } else if (const auto& following = std::get<contract::Following>(event); following.leader) {
      changed.leader = following.leader->value;
    }
    schedulers_[i].host->Post(changed);
  }

  void CrashScheduler(size_t i) {
    Process& process = schedulers_[i];
    if (!process.host->alive()) return;
    process.mirror.reset();
    process.candidate.reset();
    process.event_lease.reset();
    process.host->Crash();
    process.waiting.clear();
    process.held_back.clear();
    process.paused = false;
    judge_.CallsForgotten(i);
    ++result_.crashes;
    kernel_.Note("crash");
    kernel_.After(Duration(rng_.Between(0, Duration(5s).count())), [this, i] { StartScheduler(i); });
  }

  void PauseScheduler(size_t i) {
    Process& process = schedulers_[i];
    if (!process.host->alive() || process.paused) return;
    process.paused = true;
    kernel_.After(Duration(rng_.Between(0, Duration(12s).count())), [this, i] { ResumeScheduler(i); });
  }
  void ResumeScheduler(size_t i) {
    Process& process = schedulers_[i];
    process.paused = false;
    for (auto& action : std::exchange(process.held_back, {})) action();
  }

  void StartCall(size_t i, uint64_t life, const scheduler::Call& call) {
    judge_.CallStarted(i, call, kernel_.now().mono);
    const std::string node = call.to.substr(0, call.to.find(' '));
    const auto at = std::ranges::find(agents_, node, [](const auto& agent) { return agent->node(); });
    const auto open = std::make_shared<bool>(true);
    const auto finish = [this, i, life, call, open](const Status& status,
                                                    const std::optional<contract::AgentReply>& reply) {
      if (!std::exchange(*open, false)) return;
      Into(i, life, [this, i, life, call, status, reply] {
        judge_.CallEnded(i, call, status, kernel_.now().mono);
        schedulers_[i].host->Complete(life, {.id = call.id, .status = status, .reply = reply});
      });
    };
    kernel_.After(call.timeout, [finish] { finish({Code::kDeadlineExceeded, "no answer"}, std::nullopt); });
    if (at == agents_.end()) return;
    SimAgent* const agent = at->get();
    const ProcessId from = SchedulerProcess(i);
    const ProcessId to = AgentProcess(static_cast<size_t>(at - agents_.begin()));
    network_.Send(from, to, [this, agent, call, from, to, finish] {
      if (!agent->alive()) {
        network_.Send(to, from, [finish] { finish({Code::kUnavailable, "connection refused"}, std::nullopt); });
        return;
      }
      agent->Handle(call.request, [this, from, to, finish](Result<contract::AgentReply> reply) {
        network_.Send(to, from, [finish, reply] {
          if (reply) finish({}, *reply);
          if (!reply) finish(reply.error(), std::nullopt);
        });
      });
    });
  }

  void Emit(size_t i, uint64_t life, const scheduler::Effect& effect) {
    if (const auto* commit = std::get_if<contract::Commit>(&effect)) {
      if (still_)
        judge_.Check(false, [&] { return "the store is written at rest: " + codec::Describe(*commit).substr(0, 300); });
      judge_.Sent(commit->transaction, kernel_.now().mono);
      store::CarryOut(store_, *commit, [this, i, life](const contract::CommitDone& done) {
        JudgeWriter(i, done);
        Into(i, life, [this, i, done] { schedulers_[i].host->Post(done); });
      });
    } else if (const auto* answer = std::get_if<scheduler::Answer>(&effect)) {
      auto waiting = schedulers_[i].waiting.extract(answer->request);
      MUSTER_CHECK(!waiting.empty(), "an answer to request {}, which nobody made", answer->request);
      if (answer->status.ok()) {
        waiting.mapped()(*answer->reply);
      } else {
        waiting.mapped()(std::unexpected(answer->status));
      }
    }
  }

  void JudgeWriter(size_t i, const contract::CommitDone& done) {
    const auto* committed = std::get_if<contract::Committed>(&done.outcome);
    if (committed == nullptr || unjudged_) return;
    for (const contract::KeyValue& row : store_.Rows().rows) {
      if (row.key == kLeaderKey) judge_.Wrote(WorldConfig(i).id, committed->revision, row);
    }
  }

  // --- requests

  // Asks one of the schedulers, the leader first as far as the asker knows; `done` may never be called.
  void Ask(ProcessId from, size_t which, const contract::ClusterRequest& request,
           const std::function<void(Result<contract::ClusterReply>)>& done) {
    const ProcessId to = SchedulerProcess(which);
    // A request may be lost or late; a connection delivers it once.
    const auto fresh = std::make_shared<bool>(true);
    network_.Send(from, to, [this, from, to, which, request, done, fresh] {
      Process& process = schedulers_[which];
      if (!std::exchange(*fresh, false) || !process.host->alive()) return;
      const uint64_t life = process.host->life();
      Into(which, life, [this, from, to, which, request, done] {
        const contract::RequestId id = ++last_request_;
        schedulers_[which].waiting.emplace(
            id, [this, from, to, which, done, request](const Result<contract::ClusterReply>& reply) {
              if (reply) JudgeAnswer(request, *reply);
              if (!reply && reply.error().code() == Code::kUnavailable) leader_ = 1 - which;
              network_.Send(to, from, [done, reply] { done(reply); });
            });
        schedulers_[which].host->Post(scheduler::Asked{.request = id, .body = request});
      });
    });
  }

  void JudgeAnswer(const contract::ClusterRequest& request, const contract::ClusterReply& reply) {
    const auto* asked = std::get_if<contract::RegisterNode>(&request);
    if (asked != nullptr) judge_.Registered(asked->facts.node, std::get<contract::NodeRegistered>(reply));
  }

  // --- agents

  void AddAgent(size_t i) {
    const bool foreign = i == 4;
    agents_.push_back(std::make_unique<SimAgent>(
        kernel_,
        SimAgent::Options{
            .node = fmt::format("n{}", i),
            .zone = i % 2 == 0 ? "a" : "b",
            .native = !foreign,
            .claims = i == 1 ? std::vector{model::WorkloadType::kVm} : std::vector<model::WorkloadType>()},
        100 + i, SimAgent::World{.ask = [this, i](const contract::ClusterRequest& request, const auto& done) {
          // Agents know all schedulers; one that does not lead sends them to the other.
          const size_t first = rng_.Chance(1, 8) ? 1 - leader_ : leader_;
          Ask(AgentProcess(i), first, request, [this, i, first, request, done](Result<contract::ClusterReply> reply) {
            if (reply || reply.error().code() != Code::kUnavailable) return done(std::move(reply));
            Ask(AgentProcess(i), 1 - first, request, done);
          });
        }}));
  }

  // --- clients

  void Act() {
    kernel_.After(Duration(rng_.Between(0, Duration(600ms).count())), [this] { Act(); });
    if (calm_) return;
    const std::string name = fmt::format("w{}", rng_.Below(kNames));
    const uint64_t dice = rng_.Below(100);
    if (dice < 45) return ApplyWorkload(name);
    // The first half of the names is never deleted: what is acknowledged of them stays.
    if (dice < 55)
      return Delete(contract::ObjectKind::kWorkload, fmt::format("w{}", kNames / 2 + rng_.Below(kNames / 2)));
    if (dice < 75) return ApplySet(fmt::format("set{}", rng_.Below(2)));
    if (dice < 78) return Delete(contract::ObjectKind::kSet, fmt::format("set{}", rng_.Below(2)));
    if (dice < 84) return Order(contract::RetryWorkload{.workload = name});
    const std::string node = fmt::format("n{}", rng_.Below(kAgents));
    if (dice < 90) return Order(contract::CordonNode{.node = node, .cordoned = rng_.Chance(1, 3)});
    if (dice < 93) return Order(contract::DrainNode{.node = node});
    if (dice < 96) return Order(contract::ScaleSet{.set = "set0", .replicas = static_cast<int32_t>(rng_.Below(6))});
    Order(contract::ListWorkloads{});
  }

  // Until it is there, the tenant applies nothing.
  void ApplyQuota() {
    if (limited_) return;
    kernel_.After(1s, [this] { ApplyQuota(); });
    Ask(kClient, leader_, contract::ApplyQuota{{.tenant = std::string(kTenant), .limits = {{"cpu", kTenantCpu}}}},
        [this](const Result<contract::ClusterReply>& reply) { limited_ = limited_ || reply.has_value(); });
  }

  model::WorkloadTemplate DrawTemplate() {
    model::WorkloadTemplate spec;
    spec.type = rng_.Chance(1, 30) ? model::WorkloadType::kVm : model::WorkloadType::kProcess;
    spec.command = {"serve"};
    if (spec.type == model::WorkloadType::kVm) spec.image = "disk";
    spec.resources = {{"cpu", static_cast<int64_t>(100 * (1 + rng_.Below(15)))}, {"memory", 256'000}};
    spec.priority = static_cast<int32_t>(rng_.Below(3));
    spec.grace = 1s;
    if (rng_.Chance(1, 6)) spec.restart = model::RestartPolicy::kNever;
    return spec;
  }

  void ApplyWorkload(const std::string& name) {
    const int64_t number = ++last_number_;
    contract::ApplyWorkload apply{.workload = name, .revision = fmt::format("r{}", number), .spec = DrawTemplate()};
    if (rng_.Chance(1, 6)) apply.desired = model::DesiredState::kStopped;
    if (limited_ && (name.back() - '0') % 4 == 1) apply.tenant = kTenant;
    judge_.Asked(name, number);
    OrderPromised(apply, name, number, contract::ObjectKind::kWorkload);
  }

  // Of the two the first is the tenant's: a rule of a set is about the members of one tenant. The second is a job.
  void ApplySet(const std::string& name) {
    const int64_t number = ++last_number_;
    const bool job = name == "set1";
    contract::ApplySpec apply;
    apply.spec.kind = job ? model::WorkloadKind::kJob : model::WorkloadKind::kSet;
    apply.spec.name = name;
    apply.spec.labels = {{std::string(kApplyLabel), fmt::format("{}", number)}};
    if (name == "set0") apply.spec.tenant = kTenant;
    apply.spec.replicas = static_cast<int32_t>(rng_.Below(5));
    apply.spec.max_surge = {.amount = static_cast<int32_t>(rng_.Below(2))};
    apply.spec.spec = DrawTemplate();
    apply.spec.spec.restart = job ? model::RestartPolicy::kNever : model::RestartPolicy::kAlways;
    if (rng_.Chance(1, 3)) apply.spec.spec.exclude = {{.topology_key = "kubernetes.io/hostname"}};
    if (!limited_ && !apply.spec.tenant.empty()) return;
    judge_.Asked(name, number, contract::ObjectKind::kSet);
    OrderPromised(apply, name, number, contract::ObjectKind::kSet);
  }

  void Delete(contract::ObjectKind kind, const std::string& name) {
    const int64_t number = ++last_number_;
    judge_.AskedToDelete(name, number, kind);
    OrderPromised(contract::DeleteObject{.kind = kind, .name = name}, name, number, kind);
  }
  // Once it is acknowledged, the judge holds the schedulers to it.
  void OrderPromised(const contract::ClusterRequest& request, const std::string& name, int64_t number,
                     contract::ObjectKind kind) {
    Ask(kClient, leader_, request, [this, name, number, kind](const Result<contract::ClusterReply>& reply) {
      if (reply) judge_.Acknowledged(name, number, kind);
    });
  }
  void Order(const contract::ClusterRequest& request) {
    Ask(kClient, leader_, request, [](const Result<contract::ClusterReply>&) {});
  }

  // --- trouble

  void DrawFaults() {
    network_.SetFaults({.lost_per_mille = static_cast<uint32_t>(rng_.Below(100)),
                        .doubled_per_mille = static_cast<uint32_t>(rng_.Below(100)),
                        .slow_per_mille = static_cast<uint32_t>(rng_.Below(100))});
    store_.SetFaults({.max_delay = 20ms,
                      .slow_per_mille = static_cast<uint32_t>(rng_.Below(30)),
                      .slow = 4s,
                      .lost_request_per_mille = static_cast<uint32_t>(rng_.Below(30)),
                      .lost_answer_per_mille = static_cast<uint32_t>(rng_.Below(30)),
                      .max_watch_lag = Duration(rng_.Between(0, Duration(500ms).count())),
                      .compact_per_mille = static_cast<uint32_t>(rng_.Below(20))});
    if (rng_.Chance(1, 3)) always_fails_ = fmt::format("w{}", rng_.Below(kNames));
    for (auto& agent : agents_) {
      agent->SetFaults({.fails_per_mille = static_cast<uint32_t>(rng_.Below(200)),
                        .refuses_per_mille = static_cast<uint32_t>(rng_.Below(60)),
                        .hangs_per_mille = static_cast<uint32_t>(rng_.Below(40)),
                        .vanishes_per_mille = static_cast<uint32_t>(rng_.Below(20)),
                        .lies_per_mille = static_cast<uint32_t>(rng_.Below(50)),
                        .always_fails = always_fails_});
    }
    trouble_every_ = Duration(rng_.Between(Duration(1s).count(), Duration(10s).count()));
  }

  void MakeTrouble() {
    kernel_.After(Duration(rng_.Between(0, 2 * trouble_every_.count())), [this] {
      if (calm_) return;
      MakeTrouble();
      const uint64_t dice = rng_.Below(100);
      if (dice < 20) return CrashScheduler(rng_.Below(kSchedulers));
      if (dice < 35) return PauseScheduler(rng_.Below(kSchedulers));
      if (dice < 45) {
        SetStoreReachable(false);
        kernel_.After(Duration(rng_.Between(0, Duration(15s).count())), [this] { SetStoreReachable(true); });
        return;
      }
      if (dice < 50) return kernel_.JumpWall(Duration(rng_.Between(-Duration(1h).count(), Duration(1h).count())));
      if (dice < 65) {
        const ProcessId node = AgentProcess(rng_.Below(kAgents));
        const ProcessId scheduler = SchedulerProcess(rng_.Below(kSchedulers));
        network_.Cut(rng_.Chance(1, 2) ? node : scheduler, rng_.Chance(1, 2) ? scheduler : node);
        cut_ = true;
        kernel_.After(Duration(rng_.Between(0, Duration(20s).count())), [this] { Heal(); });
        return;
      }
      SimAgent& agent = *agents_[rng_.Below(kAgents)];
      agent.Crash(rng_.Chance(1, 2));
      kernel_.After(Duration(rng_.Between(0, Duration(20s).count())), [&agent] { agent.Start(); });
    });
  }

  void Heal() {
    network_.Heal();
    cut_ = false;
  }
  void SetStoreReachable(bool reachable) {
    store_.SetReachable(reachable);
    store_reachable_ = reachable;
  }

  void CalmDown() {
    calm_ = true;
    network_.SetFaults({});
    Heal();
    store_.SetFaults({.max_delay = 5ms});
    SetStoreReachable(true);
    for (size_t i = 0; i < kSchedulers; ++i) {
      ResumeScheduler(i);
      StartScheduler(i);
    }
    // One node may be gone for good.
    const size_t dead = rng_.Below(3 * kAgents);
    for (size_t i = 0; i < kAgents; ++i) {
      agents_[i]->SetFaults({.always_fails = always_fails_});
      if (i == dead) agents_[i]->Crash(true);
      if (i != dead) agents_[i]->Start();
    }
    // Orders that would keep work away are taken back, until one of them was heard.
    for (int turn = 0; turn < 10; ++turn) {
      kernel_.After(turn * 2s, [this] {
        for (auto& agent : agents_) Order(contract::CordonNode{.node = agent->node(), .cordoned = false});
        for (auto& agent : agents_) Order(contract::AcceptNode{.node = agent->node()});
      });
    }
    kernel_.After(kCalmTime - kStillTime, [this] { still_ = true; });
  }

  // --- another store in place of the one before

  // From here on the judge does not follow what happens: it knows the store before. What the one in its place has never
  // given to where it runs may be deleted there as an orphan alone.
  void LoseStore(StoreLoss loss) {
    unjudged_ = true;
    judge_.Check(backup_.revision < store_.revision(), [] { return "the backup is as new as the store"; });
    store_.GoBackTo(loss == StoreLoss::kRestored ? backup_ : store::RangeReply{.revision = 1});
    std::map<std::string, scheduler::WorkloadRecord> stored;
    for (const contract::KeyValue& row : store_.Rows().rows) {
      const auto key = scheduler::ParseKey("", row.key);
      if (!key || key->kind != scheduler::RecordKind::kWorkload) continue;
      if (auto record = scheduler::DecodeWorkload(row.value)) stored.emplace(key->id, *std::move(record));
    }
    for (const auto& agent : agents_) {
      for (const auto& [id, running] : agent->running()) {
        const auto record = stored.find(id);
        const bool later = record != stored.end() && record->second.workload.assigned_node != agent->node() &&
                           running.stamp.sequence > record->second.stamp.sequence;
        if (record == stored.end() || later) unknown_.emplace(agent->node(), id);
      }
    }
    judge_.Check(!unknown_.empty(), [] { return "the store that took its place knows all that runs"; });
  }
  void CheckNothingDeleted(StoreLoss loss) {
    std::string gone;
    size_t count = 0;
    size_t runs = 0;
    for (const auto& agent : agents_) {
      runs += agent->running().size();
      for (const auto& [node, id] : unknown_) {
        if (node != agent->node() || agent->running().contains(id)) continue;
        gone += fmt::format(" {} on {}", id, node);
        ++count;
      }
    }
    // What a backup has runs again, and counts.
    const size_t most = loss == StoreLoss::kRestored ? std::max<size_t>(5, (runs + count) / 2) : 0;
    judge_.Check(count <= most, [&] {
      return fmt::format("of {} workloads {} that the store does not know are deleted:{}", runs + count, count, gone);
    });
    const auto nodes = std::ranges::count_if(
        store_.Rows().rows, [](const contract::KeyValue& row) { return row.key.ends_with("/status"); });
    judge_.Check(nodes == kAgents, [&] { return fmt::format("{} nodes are in the store that took its place", nodes); });
  }
  // Agents refuse what is older than they know, until they join again.
  void AcceptAll() {
    for (auto& agent : agents_) {
      agent->Crash(false);
      agent->Start();
    }
    for (int turn = 0; turn < 10; ++turn) {
      kernel_.After(turn * 2s, [this] {
        for (auto& agent : agents_) Order(contract::CordonNode{.node = agent->node(), .cordoned = false});
        for (auto& agent : agents_) Order(contract::AcceptNode{.node = agent->node()});
      });
    }
  }

  // The judge sees the store without its faults.
  void ShowStore() {
    if (unjudged_ || store_.revision() == seen_) return;
    seen_ = store_.revision();
    judge_.StoreHolds(store_.Rows().rows, kernel_.now().mono);
  }

  // The judge sees what native nodes have, ten times a second.
  void ShowNodes() {
    if (unjudged_) return;
    const MonoTime now = kernel_.now().mono;
    const bool quiet = !cut_ && store_reachable_ && std::ranges::all_of(agents_, [](const auto& agent) {
      return agent->alive();
    }) && std::ranges::all_of(schedulers_, [](const Process& one) { return one.host->alive() && !one.paused; });
    if (!quiet) quiet_since_.reset();
    if (quiet && !quiet_since_) quiet_since_ = now;
    if (now - nodes_seen_ < 100ms) return;
    nodes_seen_ = now;
    std::vector<LiveCopy> copies;
    for (const auto& agent : agents_) {
      if (!agent->options().native) continue;
      for (const auto& [id, running] : agent->running()) {
        copies.push_back({.workload = id,
                          .node = agent->node(),
                          .running = running.actual == contract::ActualState::kRunning,
                          .stamp = running.stamp});
      }
    }
    judge_.Live(copies, quiet_since_, now);
  }

  void CheckAtRest() {
    SchedulerJudge other(WorldConfig(0));  // knows nothing of the store before
    SchedulerJudge& judge = unjudged_ ? other : judge_;
    judge.StoreHolds(store_.Rows().rows, kernel_.now().mono);
    std::vector<JudgedNode> nodes;
    for (const auto& agent : agents_) {
      JudgedNode node{.node = agent->node(), .alive = agent->alive(), .types = agent->options().types};
      for (const auto& [id, running] : agent->running()) {
        node.has[id] = running.revision;
        if (running.actual == contract::ActualState::kRunning) node.running[id] = running.revision;
      }
      nodes.push_back(std::move(node));
    }
    judge.AtRest(nodes);
    judge_.Check(!other.failure(), [&] { return *other.failure(); });
  }

  static constexpr ProcessId kClient = ProcessId(0);
  static ProcessId SchedulerProcess(size_t i) { return ProcessId::Of(1 + i); }
  static ProcessId AgentProcess(size_t i) { return ProcessId::Of(1 + kSchedulers + i); }

  Kernel kernel_;
  Rng rng_;
  Network network_;
  KernelSchedule schedule_;
  store::MemoryStore store_;
  SchedulerJudge judge_;
  std::unique_ptr<host::JournalWriter> journal_;
  std::array<Process, kSchedulers> schedulers_;
  std::vector<std::unique_ptr<SimAgent>> agents_;
  size_t leader_ = 0;  // whom clients and agents ask first
  contract::RequestId last_request_ = 0;
  int64_t last_number_ = 0;
  contract::Revision seen_ = 0;
  MonoTime nodes_seen_;
  std::optional<MonoTime> quiet_since_;  // all can be reached
  bool cut_ = false;                     // a connection
  bool store_reachable_ = true;
  Duration trouble_every_{};
  bool limited_ = false;      // the tenant's quota is there
  std::string always_fails_;  // a workload; empty: none
  bool calm_ = false;         // no faults
  bool still_ = false;        // and nothing happens
  // Of a world whose store is lost.
  store::RangeReply backup_;
  std::set<std::pair<std::string, std::string>> unknown_;  // nodes, and what they had that the store does not know
  bool unjudged_ = false;                                  // the store is another one
  RunResult result_;
};

}  // namespace

RunResult RunSchedulerWorld(uint64_t seed, const SchedulerWorldOptions& options) {
  return SchedulerWorld(seed, options).Run();
}

RunResult RunStoreLoss(uint64_t seed, StoreLoss loss) { return SchedulerWorld(seed, {}).RunLoss(loss); }

}  // namespace muster::sim
