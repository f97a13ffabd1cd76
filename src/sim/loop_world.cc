#include "sim/loop_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/probe.h"
#include "core/shard/lifecycle.h"
#include "sim/loop_judge.h"
#include "sim/loop_works.h"
#include "sim/world_run.h"

namespace muster::sim {
namespace {

using model::MachineState;

constexpr Duration kFaultyTime = 60s;
constexpr Duration kCalmTime = 150s;  // roll-ups may be held for 30 s of it, and attempts of the longest kind end
constexpr Duration kStillTime = 15s;  // the last of it: nobody acts
constexpr uint64_t kNames = 6;        // of workloads in each cluster
constexpr size_t kComputers = 5;

// What a world is made of.
struct Plan {
  bool fleet = true;
  std::vector<std::string> clusters = {"blue", "green"};
  Duration calm = kCalmTime;
};

LoopSettings WorldSettings() {
  LoopSettings settings;
  settings.scheduler = {.reconcile_interval = 3s,
                        .node_timeout = 6s,
                        .monitor_interval = 2s,
                        .missing_grace = 4s,
                        .retry_base = 500ms,
                        .retry_cap = 8s,
                        .max_attempts = 4,
                        .retry_reset = 30s,
                        .agent_timeout = 2s,
                        .refusal_memory = 10s,
                        .preempt_after = 5s,
                        .commit_timeout = 2s,
                        .events_per_workload = 6};
  settings.operators = {.rollup_interval = 3s, .call_timeout = 3s, .stuck_after = 6s, .forget_after = 10s};
  settings.agent = {.restart_base = 500ms,
                    .restart_cap = 4s,
                    .start_timeout = 5s,
                    .stop_slack = 3s,
                    .list_timeout = 3s,
                    .list_interval = 10s,
                    .runtime_retry = 500ms};
  shard::Config& shard = settings.shard;
  shard.policy.surplus_hold = 3s;
  shard.policy.release_hold_on_demand = 5s;
  shard.policy.release_hold_spot = 4s;
  shard.restart_grace = 3s;
  shard.sweep_interval = 8s;
  shard.list_page = 6;
  shard.list_timeout = 4s;
  shard.call_timeout = 3s;
  shard.reclaim_budget = {500'000};
  shard.reclaim_window = 8s;
  shard.blob_timeout = 3s;
  shard.ack_timeout = 3s;
  shard.give_up = 5s;
  shard.retry_first = 300ms;
  shard.retry_longest = 3s;
  shard.hold_first = 1s;
  shard.hold_longest = 4s;
  shard.hold_window = 6s;
  shard.outage_longest = 2s;
  shard.repair_first = 500ms;
  shard.repair_longest = 4s;
  shard.losses.window = 6s;
  shard.losses.replace_window = 2s;
  shard.hints_interval = 10s;
  settings.runtimes = {model::WorkloadType::kProcess};
  settings.dwell = {300ms, 200ms, 200ms, 200ms};
  return settings;
}

model::Machine MachineOf(const std::string& id, const std::string& type, model::CapacityType capacity,
                         int64_t cpu_milli, const std::string& zone, int64_t micros) {
  model::Machine machine;
  machine.id = id;
  machine.state = MachineState::kSpeculative;
  machine.instance_type = type;
  machine.zone = zone;
  machine.capacity_type = capacity;
  machine.price_per_hour = {micros};
  machine.resources = {{"cpu", cpu_milli}, {"memory", int64_t{16'000'000}}};
  return machine;
}

LoopStart WorldStart(const Plan& plan, uint64_t seed) {
  LoopStart start{.settings = WorldSettings(), .seed = seed};
  for (const std::string& cluster : plan.clusters) start.clusters.push_back({.id = cluster});
  if (!plan.fleet) {
    for (size_t i = 0; i < kComputers; ++i) {
      start.clusters[0].nodes.push_back({.node = fmt::format("n{}", i),
                                         .status = model::NodeStatus::kReady,
                                         .total = {{"cpu", 4000}, {"memory", 16'000'000}},
                                         .supported_types = start.settings.runtimes,
                                         .labels = {{std::string(model::kZoneKey), i % 2 == 0 ? "a" : "b"}}});
    }
    return start;
  }
  for (int i = 0; i < 8; ++i) {
    start.machines.push_back(MachineOf(fmt::format("small-{}", i), "small", model::CapacityType::kOnDemand, 4000,
                                       i % 2 == 0 ? "a" : "b", 100'000));
  }
  for (int i = 0; i < 3; ++i) {
    start.machines.push_back(MachineOf(fmt::format("large-{}", i), "large", model::CapacityType::kOnDemand, 8000,
                                       i % 2 == 0 ? "a" : "b", 190'000));
  }
  for (int i = 0; i < 2; ++i) {
    start.machines.push_back(
        MachineOf(fmt::format("spot-{}", i), "spot", model::CapacityType::kSpot, 4000, i % 2 == 0 ? "a" : "b", 40'000));
  }
  model::Machine owned = MachineOf("owned", "metal", model::CapacityType::kBareMetal, 8000, "a", 50'000);
  owned.state = MachineState::kIdle;
  owned.host = {.provider = "loop", .ref = "rack-1"};
  start.machines.push_back(std::move(owned));
  return start;
}

class LoopWorld {
 public:
  LoopWorld(Plan plan, uint64_t seed)
      : plan_(std::move(plan)), works_(WorldStart(plan_, seed), Hooks()), rng_(works_.kernel().ForkRng(0x776f726c64)) {
    judge_.Watch(works_);
  }

  RunResult Run() {
    works_.Start();
    // What the stores hold at first is there before they fail.
    works_.kernel().RunUntil(works_.kernel().now().mono + 1ms);
    DrawFaults();
    Act();
    MakeTrouble();
    Look();
    return RunPhases(works_.kernel(), works_.network(), judge_, result_,
                     {{.begin = {}, .lasts = kFaultyTime},
                      {.begin = [this] { CalmDown(); }, .lasts = plan_.calm - kStillTime},
                      {.begin = [this] { judge_.BeStill(); }, .lasts = kStillTime},
                      {.begin = [this] { Inspect(); }, .lasts = 100ms},
                      {.begin = [this] { judge_.AtRest(needs_); }}});
  }

 private:
  LoopHooks Hooks() {
    LoopHooks hooks{.schedulers = 2, .has_fleet = plan_.fleet, .job_time = 5s};
    hooks.provider = {.create_timeout = 6s, .configure_timeout = 10s, .drain_timeout = 6s, .delete_timeout = 6s};
    hooks.operation_fails = [this](const contract::Operation& operation) { return OperationFails(operation); };
    hooks.operation_late = [this] { return calm_ || !rng_.Chance(1, 5) ? Duration() : Draw(3s); };
    hooks.machine_emptied = [this](const auto& operation, bool in_time) { judge_.DrainEnds(operation, in_time); };
    hooks.fleet.called = [this](size_t shard, const auto& request) { judge_.Called(request, IsZombie(shard)); };
    hooks.fleet.emitted = [this](size_t shard, const auto& effect) {
      judge_.ShardDid(effect, IsZombie(shard));
      if (IsZombie(shard)) ZombieDid(shard, effect);
    };
    hooks.fleet.refuses = [this](const contract::ProviderRequest&) {
      const bool away = !calm_ && works_.kernel().now().mono < away_until_;
      return away ? Status(Code::kUnavailable, "it restarts") : Status();
    };
    hooks.fleet.broken = [this] { return judge_.failure().has_value(); };
    hooks.store_seen = [this](const std::string& cluster) { judge_.StoreSeen(cluster); };
    hooks.committed = [this](const std::string& cluster, size_t scheduler, const auto& commit, const auto& done) {
      judge_.Committed(cluster, scheduler, commit, done);
    };
    hooks.agent_called = [this](const std::string& cluster, size_t scheduler, const std::string& node,
                                contract::CallId call,
                                const Status* answer) { judge_.CalledAgent(cluster, scheduler, node, call, answer); };
    hooks.operator_did = [this](const std::string& cluster, const auto& effect) {
      judge_.OperatorDid(cluster, effect);
    };
    return hooks;
  }

  Duration Draw(Duration longest) { return Duration(rng_.Between(1, longest.count())); }
  bool PerMille(uint32_t chance) { return rng_.Below(1000) < chance; }
  bool IsZombie(size_t shard) { return shard != works_.fleet().serving(); }
  LoopCluster& AnyCluster() { return *works_.FindCluster(plan_.clusters[rng_.Below(plan_.clusters.size())]); }
  void Look() {
    judge_.Sample();
    works_.kernel().After(500ms, [this] { Look(); });
  }

  // --- clients

  void Act() {
    works_.kernel().After(Draw(1200ms), [this] { Act(); });
    if (calm_) return;
    LoopCluster& cluster = AnyCluster();
    const uint64_t dice = rng_.Below(100);
    const std::string name = fmt::format("w{}", rng_.Below(kNames));
    if (dice < 45) return ApplyWorkload(cluster, name);
    // The first half of the names is never deleted: what is acknowledged of them stays.
    if (dice < 55) {
      const std::string gone = fmt::format("w{}", kNames / 2 + rng_.Below(kNames / 2));
      judge_.OfCluster(cluster.id()).AskedToDelete(gone);
      return Order(cluster, contract::DeleteObject{.kind = contract::ObjectKind::kWorkload, .name = gone});
    }
    if (dice < 80) return ApplySet(cluster);
    if (dice < 85) return Order(cluster, contract::DeleteObject{.kind = contract::ObjectKind::kSet, .name = "set"});
    if (dice < 90) return Order(cluster, contract::RetryWorkload{.workload = name});
    if (plan_.fleet && dice < 93) return TakeOutANode(cluster);
    const std::string node = fmt::format("n{}", rng_.Below(kComputers));
    if (!plan_.fleet && dice < 94)
      return Order(cluster, contract::CordonNode{.node = node, .cordoned = rng_.Chance(1, 3)});
    if (!plan_.fleet && dice < 96) return Order(cluster, contract::DrainNode{.node = node});
    Order(cluster, contract::ScaleSet{.set = "set", .replicas = static_cast<int32_t>(rng_.Below(6))});
  }

  // People take it back in the calm: what the fleet drains is not theirs to uncordon.
  void TakeOutANode(LoopCluster& cluster) {
    std::vector<std::string> there;
    for (const auto& [id, node] : works_.nodes()) {
      if (node->cluster() == cluster.id()) there.push_back(id);
    }
    if (there.empty()) return;
    PROBE("sim.node_taken_out");
    const std::string& node = there[rng_.Below(there.size())];
    if (rng_.Chance(1, 2)) return Order(cluster, contract::CordonNode{.node = node, .cordoned = true});
    Order(cluster, contract::DrainNode{.node = node});
  }

  model::WorkloadTemplate DrawTemplate() {
    model::WorkloadTemplate spec;
    spec.type = model::WorkloadType::kProcess;
    spec.command = {"serve"};
    spec.resources = {{"cpu", static_cast<int64_t>(500 * (1 + rng_.Below(6)))}, {"memory", 100'000}};
    spec.priority = rng_.Chance(1, 4) ? 600'000 : 0;
    spec.grace = 1s;
    if (rng_.Chance(1, 6)) {
      spec.requirements = {{{.key = std::string(model::kZoneKey), .op = model::Operator::kIn, .values = {"b"}}}};
    }
    if (plan_.fleet) DrawNeighbours(spec);
    return spec;
  }

  // Rules that some of the machines break, or all that there are.
  void DrawNeighbours(model::WorkloadTemplate& spec) {
    const std::string zone(model::kZoneKey);
    switch (rng_.Below(24)) {
      case 0: spec.exclude = {{.topology_key = zone}}; break;
      case 1: spec.spread = {{.spread = {.topology_key = zone}}}; break;
      case 2:
        spec.colocate = {{.topology_key = zone,
                          .selector = std::vector<model::Requirement>{
                              {.key = "app", .op = model::Operator::kIn, .values = {"nobody"}}}}};
        break;
      default: break;
    }
  }

  void ApplyWorkload(LoopCluster& cluster, const std::string& name) {
    const int64_t number = ++last_number_;
    contract::ApplyWorkload apply{.workload = name, .revision = fmt::format("r{}", number), .spec = DrawTemplate()};
    if (rng_.Chance(1, 6)) apply.desired = model::DesiredState::kStopped;
    if (rng_.Chance(1, 8)) apply.spec->restart = model::RestartPolicy::kNever;
    SchedulerJudge& judge = judge_.OfCluster(cluster.id());
    judge.Asked(name, number);
    cluster.Ask(LoopWorks::kClient, apply, [&judge, name, number](const Result<contract::ClusterReply>& reply) {
      if (reply) judge.Acknowledged(name, number);
    });
  }

  void ApplySet(LoopCluster& cluster) {
    contract::ApplySpec apply;
    apply.spec.kind = model::WorkloadKind::kSet;
    apply.spec.name = "set";
    apply.spec.replicas = static_cast<int32_t>(rng_.Below(6));
    apply.spec.max_surge = {.amount = static_cast<int32_t>(rng_.Below(2))};
    apply.spec.spec = DrawTemplate();
    Order(cluster, apply);
  }

  static void Order(LoopCluster& cluster, const contract::ClusterRequest& request) {
    cluster.Ask(LoopWorks::kClient, request, [](const Result<contract::ClusterReply>&) {});
  }

  // --- trouble

  void DrawFaults() {
    works_.network().SetFaults({.lost_per_mille = static_cast<uint32_t>(rng_.Below(60)),
                                .doubled_per_mille = static_cast<uint32_t>(rng_.Below(60)),
                                .slow_per_mille = static_cast<uint32_t>(rng_.Below(60))});
    works_.stream_delays().longest = Duration(rng_.Between(Duration(2ms).count(), Duration(500ms).count()));
    for (const std::string& id : plan_.clusters) {
      works_.FindCluster(id)->store().SetFaults({.max_delay = 20ms,
                                                 .slow_per_mille = static_cast<uint32_t>(rng_.Below(20)),
                                                 .slow = 4s,
                                                 .lost_request_per_mille = static_cast<uint32_t>(rng_.Below(20)),
                                                 .lost_answer_per_mille = static_cast<uint32_t>(rng_.Below(20)),
                                                 .max_watch_lag = Draw(500ms),
                                                 .compact_per_mille = static_cast<uint32_t>(rng_.Below(10))});
    }
    runtime_faults_ = {.start_fails_per_mille = static_cast<uint32_t>(rng_.Below(150)),
                       .ends_per_mille = static_cast<uint32_t>(rng_.Below(150)),
                       .unavailable_per_mille = static_cast<uint32_t>(rng_.Below(60)),
                       .hangs_per_mille = static_cast<uint32_t>(rng_.Below(40))};
    operation_fails_ = static_cast<uint32_t>(rng_.Below(80));
    const DiskFaults disk{.stall_per_mille = static_cast<uint32_t>(rng_.Below(50)), .stall = 1500ms};
    works_.fleet().disk(0).SetFaults(disk);
    works_.fleet().provider().disk().SetFaults(disk);
    trouble_every_ = Duration(rng_.Between(Duration(1s).count(), Duration(6s).count()));
  }

  Status OperationFails(const contract::Operation& operation) {
    if (calm_ || !PerMille(operation_fails_)) return {};
    PROBE("sim.operation_fails");
    return {Code::kInternal, fmt::format("{} did not work", contract::OperationName(operation.kind))};
  }

  void MakeTrouble() {
    works_.kernel().After(Draw(2 * trouble_every_), [this] {
      if (calm_) return;
      MakeTrouble();
      OneTrouble();
    });
  }

  void OneTrouble() {
    LoopCluster& cluster = AnyCluster();
    const size_t scheduler = rng_.Below(cluster.schedulers());
    Kernel& kernel = works_.kernel();
    for (const auto& [id, node] : works_.nodes()) node->runtime().SetFaults(runtime_faults_);
    // Of a world without a fleet, those that concern the cluster half.
    switch (plan_.fleet ? rng_.Below(16) : rng_.Below(8)) {
      case 0:
        if (cluster.alive(scheduler)) Crashed();
        cluster.CrashScheduler(scheduler);
        return kernel.After(Draw(5s), [&cluster, scheduler] { cluster.StartScheduler(scheduler); });
      case 1:
        PROBE("sim.scheduler_paused");
        cluster.PauseScheduler(scheduler);
        return kernel.After(Draw(12s), [&cluster, scheduler] { cluster.ResumeScheduler(scheduler); });
      case 2:
        PROBE("sim.store_away");
        cluster.store().SetReachable(false);
        return kernel.After(Draw(12s), [&cluster] { cluster.store().SetReachable(true); });
      case 3:
      case 4: return KillSomeAgent();
      case 5: return cluster.BreakAStream(rng_);
      case 6: return kernel.JumpWall(Duration(rng_.Between(-Duration(1h).count(), Duration(1h).count())));
      case 7: return CutSomeLink(cluster.SchedulerProcess(scheduler));
      case 8: return cluster.BreakAStream(rng_);
      case 9:
        PROBE("sim.operator_crashed");
        if (cluster.operator_alive()) Crashed();
        cluster.CrashOperator();
        return kernel.After(Draw(5s), [&cluster] { cluster.StartOperator(); });
      case 10: return CrashShard(Draw(4s));
      case 11: return TakeOver();
      case 12:
        if (works_.fleet().provider().alive()) Crashed();
        works_.fleet().CrashProvider();
        return kernel.After(Draw(4s), [this] { StartProvider(); });
      case 13: return LoseSomeMachine();
      case 14:
        PROBE("sim.loop_out_of_stock");
        works_.cloud().SetStock([zone = rng_.Chance(1, 2) ? "a" : "b",
                                 type = rng_.Chance(1, 2) ? "small" : "large"](const model::Machine& machine) {
          return machine.zone != zone || machine.instance_type != type;
        });
        return kernel.After(Draw(15s), [this] { works_.cloud().SetStock([](const auto&) { return true; }); });
      default: away_until_ = kernel.now().mono + Draw(6s);
    }
  }

  void Crashed() {
    ++result_.crashes;
    works_.kernel().Note("crash");
  }

  void StartProvider() {
    works_.fleet().StartProvider();
    works_.cloud().LookForLost(works_.kernel().now().mono);
    works_.fleet().provider().Look();
  }

  void CrashShard(Duration pause) {
    LoopFleet& fleet = works_.fleet();
    const size_t i = fleet.serving();
    if (fleet.shard(i).alive()) Crashed();
    fleet.CrashShard(i);
    works_.kernel().After(pause, [this, i] {
      if (!IsZombie(i)) works_.fleet().StartShard(i);
    });
  }

  // Not in the moment in which it takes its epoch: two copies of one directory would then take the same.
  void TakeOver() {
    LoopFleet& fleet = works_.fleet();
    const size_t i = fleet.serving();
    if (fleet.shards() > 1 || !fleet.shard(i).alive()) return;
    const int64_t epoch = fleet.shard(i).core().lifecycle().epoch();
    const auto row = fleet.disk(i).durable().find(shard::kEpochRow.key());
    if (epoch == 0 || row == fleet.disk(i).durable().end() || row->second != shard::kEpochRow.Put(epoch).value) return;
    PROBE("sim.loop_taken_over");
    fleet.TakeOver();
  }

  void ZombieDid(size_t shard, const shard::Core::Effect& effect) {
    const auto* notice = std::get_if<shard::Notice>(&effect);
    const bool ends =
        std::holds_alternative<shard::Stop>(effect) || (notice != nullptr && notice->reason == model::Reason::kHalted);
    if (!ends) return;
    works_.kernel().After(Duration::zero(), [this, shard] {
      PROBE("sim.loop_zombie_stopped");
      works_.fleet().CrashShard(shard);
    });
  }

  // One direction between a scheduler and a node, or between shard and provider.
  void CutSomeLink(ProcessId scheduler) {
    ProcessId from = scheduler;
    ProcessId to = LoopFleet::kProvider;
    if (works_.nodes().empty() || (plan_.fleet && rng_.Chance(1, 3))) {
      from = LoopFleet::ShardProcess(works_.fleet().serving());
    } else {
      auto node = works_.nodes().begin();
      std::advance(node, static_cast<int64_t>(rng_.Below(works_.nodes().size())));
      to = works_.ProcessOf(node->first);
    }
    rng_.Chance(1, 2) ? works_.network().Cut(from, to) : works_.network().Cut(to, from);
    works_.kernel().After(Draw(15s), [this] { works_.network().Heal(); });
  }

  void KillSomeAgent() {
    std::vector<std::string> alive;
    for (const auto& [id, node] : works_.nodes()) {
      if (node->alive()) alive.push_back(id);
    }
    if (alive.empty()) return;
    Crashed();
    const bool computer = rng_.Chance(1, 2);
    if (computer) PROBE("sim.power_cut");
    works_.KillAgent(alive[rng_.Below(alive.size())], computer);
  }

  void LoseSomeMachine() {
    std::vector<std::string> there;
    for (const auto& [id, node] : works_.nodes()) {
      if (!works_.cloud().HostOf(id).empty() && id != "owned") there.push_back(id);
    }
    if (there.empty()) return;
    PROBE("sim.machine_lost");
    const std::string& id = there[rng_.Below(there.size())];
    works_.cloud().Observe(
        contract::MachineLost{
            .machine_id = id, .host_ref = works_.cloud().HostOf(id), .reason = "its hardware is gone"},
        works_.kernel().now().mono);
    works_.fleet().provider().Look();
  }

  // --- calm

  void CalmDown() {
    calm_ = true;
    works_.network().SetFaults({});
    works_.network().Heal();
    works_.stream_delays().longest = 5ms;
    if (plan_.fleet) CalmFleet();
    runtime_faults_ = {};
    for (const auto& [id, node] : works_.nodes()) node->runtime().SetFaults({});
    for (const std::string& id : plan_.clusters) {
      LoopCluster& cluster = *works_.FindCluster(id);
      cluster.store().SetFaults({.max_delay = 5ms});
      cluster.store().SetReachable(true);
      for (size_t i = 0; i < cluster.schedulers(); ++i) {
        cluster.ResumeScheduler(i);
        cluster.StartScheduler(i);
      }
      if (plan_.fleet) cluster.StartOperator();
    }
    // People let through what the rails hold back, until one of their orders was heard.
    for (Duration pause = 0s; pause < plan_.calm / 2; pause += 5s) {
      works_.kernel().After(pause, [this] { AcceptAll(); });
    }
  }

  void CalmFleet() {
    LoopFleet& fleet = works_.fleet();
    works_.cloud().SetStock([](const auto&) { return true; });
    fleet.provider().disk().SetFaults({});
    StartProvider();
    for (size_t i = 0; i < fleet.shards(); ++i) {
      fleet.disk(i).SetFaults({});
      if (IsZombie(i)) fleet.CrashShard(i);
    }
    fleet.StartShard(fleet.serving());
  }

  void AcceptAll() {
    if (plan_.fleet) works_.fleet().Ask(contract::AcceptLosses{}, [](const auto&) {});
    for (const std::string& id : plan_.clusters) {
      for (const auto& [name, node] : works_.nodes()) {
        if (node->cluster() != id) continue;
        Order(*works_.FindCluster(id), contract::AcceptNode{.node = name});
        // What people have cordoned; the fleet takes its own orders back by itself.
        if (plan_.fleet && !judge_.IsOutByPeople(id, name)) continue;
        Order(*works_.FindCluster(id), contract::CordonNode{.node = name, .cordoned = false});
      }
    }
  }

  void Inspect() {
    if (!plan_.fleet) return;
    works_.fleet().Ask(contract::InspectNeeds{}, [this](Result<contract::ShardReply> reply) {
      if (reply) needs_ = std::get<contract::NeedsInspected>(*std::move(reply));
    });
  }

  const Plan plan_;
  LoopJudge judge_;
  LoopWorks works_;
  Rng rng_;
  RuntimeFaults runtime_faults_;
  uint32_t operation_fails_ = 0;
  Duration trouble_every_{};
  MonoTime away_until_;  // the provider
  int64_t last_number_ = 0;
  bool calm_ = false;
  contract::NeedsInspected needs_;
  RunResult result_;
};

}  // namespace

RunResult RunLoopWorld(uint64_t seed) { return LoopWorld({}, seed).Run(); }

RunResult RunAgentsWorld(uint64_t seed) {
  return LoopWorld({.fleet = false, .clusters = {"home"}, .calm = 90s}, seed).Run();
}

}  // namespace muster::sim
