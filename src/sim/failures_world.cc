#include "sim/failures_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/probe.h"
#include "core/shard/lifecycle.h"
#include "core/shard/machines.h"
#include "core/shard/shard.h"
#include "model/money.h"
#include "sim/change_judge.h"
#include "sim/disk.h"
#include "sim/findings.h"
#include "sim/hold_judge.h"
#include "sim/kernel.h"
#include "sim/plain_clusters.h"
#include "sim/queue_judge.h"
#include "sim/sim_host.h"
#include "sim/slow_provider.h"
#include "sim/starvation_judge.h"

namespace muster::sim {
namespace {

using model::MachineState;

constexpr int kOfEachClass = 8;
constexpr Duration kFaultAt = 1min;  // until then everybody has got what he wants
constexpr Duration kFaultLasts = 5min;
constexpr Duration kOutageLasts = 30s;
constexpr Duration kEnd = 11min;
// Without a machine: the longest Create and Configure, a few failures, an outage's pause.
constexpr Duration kStarvesAfter = 75s;
// More for a machine that hangs: two deadlines, and the pauses after them.
constexpr Duration kStarvesForOneThatHangs = 75s;
constexpr Duration kToldWithin = 15s;  // of the end of a transition: a list, and the lines of its step
constexpr Duration kInspectsEvery = 10s;
constexpr std::string_view kFaulty = "a";  // the cluster that has a bad template or answers nothing

enum class Fault : uint8_t {
  kStockOut = 0,
  kBadMachines = 1,
  kBadTemplate = 2,
  kSilentCluster = 3,
  kOutage = 4,
  kStubborn = 5,  // Drains and Deletes fail
  kPriority = 6,  // no fault: one cluster wants more than is free, and comes first
  kTrial = 7,     // no fault: the shard, or one cluster, is in dry run
  kHangs = 8,     // calls for one machine are never answered
};
constexpr uint64_t kFaults = 9;

// What a seed decides, the same with and without an outage.
struct Plan {
  Fault fault = Fault::kStockOut;
  bool ends_failed = false;  // calls are taken, and their transitions end in Failed
  std::string type;          // out of stock; empty: all types
  std::string zone;          // the same
  uint64_t bad_machines = 0;
  bool blob_error = false;  // of a bad template: the cluster has no blob to give
  Code away = Code::kUnavailable;
  std::map<std::string, int64_t> grows;   // by cluster
  std::optional<Duration> falls;          // a cluster wants less, so long after the fault
  std::vector<Duration> restarts;         // the same
  std::optional<int64_t> mistaken_epoch;  // given at the first restart
  Duration grows_after{};
  int64_t takes = 0;         // machines of others, by priority
  bool whole_shard = false;  // of a trial
  std::string hangs;         // a machine
  bool comes_first = false;  // the cluster with a bad template, and it wants every machine
  bool unproven = false;     // it has none before
};

void SetComesFirst(Plan& plan) {
  plan.comes_first = true;
  plan.falls.reset();
}

Plan DrawPlan(Rng rng) {
  const auto draw = [&](Duration least, Duration most) { return Duration(rng.Between(least.count(), most.count())); };
  Plan plan{.fault = static_cast<Fault>(rng.Below(kFaults)), .ends_failed = rng.Chance(1, 2)};
  const uint64_t out = rng.Below(3);  // a type, a zone, or a type in a zone
  if (out != 1) plan.type = rng.Chance(3, 4) ? "cheap" : "plain";
  if (out != 0) plan.zone = fmt::format("z{}", rng.Below(3));
  plan.bad_machines = rng.Between(1, 3);
  plan.blob_error = rng.Chance(1, 3);
  plan.away = rng.Chance(1, 2) ? Code::kUnavailable : Code::kDeadlineExceeded;
  for (const char* cluster : {"a", "b", "c"}) plan.grows[cluster] = rng.Between(3, 8);
  if (plan.fault != Fault::kOutage && rng.Chance(2, 3)) plan.falls = draw(20s, 150s);
  while (rng.Chance(1, 2) && plan.restarts.size() < 3) plan.restarts.push_back(draw(5s, kFaultLasts));
  if (rng.Chance(1, 3)) plan.mistaken_epoch = shard::kHighestEpoch + rng.Between(1, 1000);
  plan.grows_after = draw(0s, 20s);
  plan.takes = rng.Between(4, 8);
  plan.whole_shard = rng.Chance(1, 2);
  if (plan.fault == Fault::kPriority) {
    for (Duration& after : plan.restarts) after = draw(10s, 70s);  // while what it takes is drained
  }
  if (plan.fault == Fault::kStubborn) {  // it grows late, and has machines to give back until then
    plan.grows_after += 4min;
    plan.restarts.push_back(draw(1min, 4min));
  }
  if (plan.fault == Fault::kPriority || plan.fault == Fault::kTrial) plan.falls.reset();
  plan.hangs = fmt::format("m-{:03}", rng.Between(16, 23));  // one of the cheap ones that are still to be bought
  if (plan.fault == Fault::kBadTemplate) plan.restarts.push_back(plan.grows_after + draw(2s, 20s));
  plan.unproven = rng.Chance(1, 2);
  if (plan.fault == Fault::kBadTemplate && rng.Chance(1, 9)) SetComesFirst(plan);
  return plan;
}

Plan DrawPlanOfOneThatComesFirst(Rng rng) {
  Plan plan = DrawPlan(rng);
  plan.fault = Fault::kBadTemplate;
  SetComesFirst(plan);
  return plan;
}

shard::Config WorldConfig(const Plan& plan) {
  shard::Config config;
  config.policy.surplus_hold = 10s;
  config.policy.release_hold_on_demand = 40s;
  config.execute_concurrency = 4;
  config.execute_queue = 20;
  config.blob_timeout = 100s;
  config.retry_longest = 1min;
  config.hold_longest = 2min;
  config.repair_first = 20s;
  config.repair_longest = 1min;
  // A cluster that may not have more machines configured than it has could not fill the queue.
  if (plan.fault == Fault::kSilentCluster) config.first_bootstraps = 0;
  return config;
}

Duration StarvesAfter(const Plan& plan) {
  return kStarvesAfter + (plan.fault == Fault::kHangs ? kStarvesForOneThatHangs : Duration::zero());
}

class FailuresWorld {
 public:
  FailuresWorld(uint64_t seed, bool without_outage, Plan (*draw)(Rng) = DrawPlan)
      : kernel_(seed),
        plan_(draw(kernel_.ForkRng(0x6661696c))),
        without_outage_(without_outage),
        config_(WorldConfig(plan_)),
        disk_(kernel_, {}, 1),
        provider_(kernel_),
        host_(kernel_, disk_,
              {.make_core = [this](const contract::Recovered& rows) { return MakeCore(rows); },
               .start_call = [this](uint64_t life, const auto& call) { OnCall(life, call); },
               .emit = [this](uint64_t life, const auto& effect) { OnEffect(life, effect); },
               .stepped = [this](uint64_t, const auto&, auto effects) { OnStep(effects); }}),
        clusters_(kernel_, host_),
        holds_(config_, findings_),
        queue_(plan_.fault == Fault::kPriority, findings_),
        starvation_(StarvesAfter(plan_), findings_),
        changes_(config_.reclaim_budget, config_.reclaim_window, findings_) {
    int number = 0;
    for (const auto& [type, dollars] : {std::pair("cheap", 1), std::pair("plain", 2), std::pair("dear", 3)}) {
      for (int i = 0; i < 3 * kOfEachClass; ++i) {
        provider_.Put({.id = fmt::format("m-{:03}", number++),
                       .state = MachineState::kSpeculative,
                       .instance_type = type,
                       .zone = fmt::format("z{}", i % 3),
                       .capacity_type = model::CapacityType::kOnDemand,
                       .price_per_hour = {dollars * 1'000'000},
                       .resources = {{"cpu", 1000}}});
      }
    }
    provider_.SetHooks({.refuses = [this](const auto& request) { return Refusal(request); },
                        .hangs = [this](const std::string& id) { return Hangs(id); },
                        .breaks = [this](const auto& machine) { return HowItBreaks(machine); },
                        .ended = [this](const auto& machine) { OnEnded(machine); }});
    const bool priority = plan_.fault == Fault::kPriority;
    const int64_t wanted = plan_.comes_first && plan_.unproven ? 0 : 6;
    clusters_.Add("a", {.priority = plan_.comes_first ? 2000 : 10, .wanted = priority ? 16 : wanted});
    clusters_.Add("b", {.priority = 10, .wanted = priority ? 16 : plan_.fault == Fault::kTrial ? 12 : 6});
    clusters_.Add("c", {.priority = 1000, .wanted = 4});
    if (priority) provider_.SetDrainTime(40s);
    if (plan_.fault == Fault::kStubborn) OfferIdle();
  }

  // A few more than anybody wants, so that they are given back when nobody takes them.
  void OfferIdle() {
    config_.policy.release_hold_on_demand = kFaultAt + 10s;
    for (const auto& [id, machine] : std::map(provider_.machines())) {
      if (machine.instance_type != "cheap") continue;
      model::Machine idle = machine;
      idle.state = MachineState::kIdle;
      idle.host = {.provider = "sim", .ref = id};
      provider_.Put(std::move(idle));
    }
  }

  bool HasOutage() const { return plan_.fault == Fault::kOutage; }

  RunResult Run() {
    const MonoTime start = kernel_.now().mono;
    host_.Start();
    clusters_.Start();
    fault_from_ = start + kFaultAt;
    fault_until_ = fault_from_ + (HasOutage() ? kOutageLasts : kFaultLasts);
    kernel_.At(fault_from_, [this] { BeginFault(); });
    kernel_.At(fault_from_ + plan_.grows_after, [this] { Grow(); });
    if (plan_.falls) kernel_.At(fault_from_ + *plan_.falls, [this] { clusters_.Of("b").wanted = 3; });
    kernel_.At(fault_until_, [this] { EndFault(); });
    kernel_.After(kInspectsEvery, [this] { Inspect(); });
    for (const Duration after : plan_.restarts) kernel_.At(fault_from_ + after, [this] { Restart(); });
    const auto broken = [this] { return findings_.failure().has_value(); };
    kernel_.RunUntil(start + kEnd, broken);
    if (!broken()) CheckAtRest();
    return {.log_hash = kernel_.log_hash(),
            .events = kernel_.events_run(),
            .steps_checked = findings_.checks(),
            .crashes = crashes_,
            .simulated = kernel_.now().mono - start,
            .failure = findings_.failure()};
  }

  // What the machines that are paid for cost an hour.
  model::Money Cost() const {
    model::Money cost{};
    for (const auto& [id, machine] : provider_.machines()) {
      if (machine.state != MachineState::kSpeculative) cost.micros += machine.price_per_hour.micros;
    }
    return cost;
  }

 private:
  MonoTime now() const { return kernel_.now().mono; }

  // --- faults

  bool IsFaulty() const { return now() >= fault_from_ && now() < fault_until_; }
  bool IsAway() const { return HasOutage() && IsFaulty() && !without_outage_; }

  bool IsOutOfStock(const model::Machine& machine) const {
    return plan_.fault == Fault::kStockOut && (plan_.type.empty() || machine.instance_type == plan_.type) &&
           (plan_.zone.empty() || machine.zone == plan_.zone);
  }
  // One to three of four.
  bool IsBad(const std::string& id) const { return std::stoull(id.substr(2)) * 7 % 11 % 4 < plan_.bad_machines; }
  bool Hangs(const std::string& id) const {
    if (plan_.fault != Fault::kHangs || id != plan_.hangs || !IsFaulty()) return false;
    PROBE("sim.machine_hangs");
    return true;
  }
  bool CannotBeCreated(const model::Machine& machine) const {
    return IsOutOfStock(machine) || (plan_.fault == Fault::kHangs && machine.id == plan_.hangs) ||
           (plan_.fault == Fault::kBadMachines && IsBad(machine.id));
  }

  void BeginFault() {
    if (plan_.fault == Fault::kSilentCluster) {
      PROBE("sim.silent_cluster");
      clusters_.Of(std::string(kFaulty)) = {.priority = 100, .wanted = 40, .silent = true};
    }
    if (plan_.fault == Fault::kBadTemplate && plan_.blob_error) {
      clusters_.Of(std::string(kFaulty)).blob_error = "no template of that name";
    }
    if (plan_.fault == Fault::kTrial) {
      PROBE("sim.trial");
      clusters_.Of("b").wanted = 4;
      SetMode(contract::ActuationMode::kDryRun);
    }
  }

  void EndFault() {
    PlainClusters::Cluster& faulty = clusters_.Of(std::string(kFaulty));
    faulty.silent = false;
    faulty.blob_error.clear();
    if (plan_.fault == Fault::kPriority) clusters_.Of("c").wanted = 8;
    if (plan_.comes_first) faulty.wanted = 6;
    if (plan_.fault != Fault::kTrial) return;
    JudgeTrial();
    // More than once: the shard may be down.
    for (const Duration pause : {Duration(0s), Duration(5s), Duration(10s)}) {
      kernel_.After(pause, [this] { SetMode(contract::ActuationMode::kActive); });
    }
  }

  void SetMode(contract::ActuationMode mode) {
    host_.Post(shard::Asked{
        ++last_request_,
        contract::SetActuation{.cluster_id = plan_.whole_shard ? "" : "b", .mode = mode, .reason = "sim"}});
  }

  void Grow() {
    if (plan_.fault == Fault::kTrial) return;
    if (plan_.comes_first) {
      clusters_.Of(std::string(kFaulty)).wanted = std::ssize(provider_.machines());
      return;
    }
    if (plan_.fault == Fault::kPriority) {
      PROBE("sim.priority");
      clusters_.Of("c").wanted = std::ssize(provider_.machines()) - 2 * 16 + plan_.takes;
      return;
    }
    for (const auto& [name, by] : plan_.grows) {
      const bool silent = plan_.fault == Fault::kSilentCluster && name == kFaulty;
      if (!silent) clusters_.Of(name).wanted += by;
    }
  }

  Status Refusal(const contract::ProviderRequest& request) const {
    if (IsAway()) return {plan_.away, "it restarts"};
    if (!IsFaulty()) return {};
    const bool stubborn = plan_.fault == Fault::kStubborn;
    if (const auto* create = std::get_if<contract::CreateRequest>(&request)) {
      const model::Machine& machine = provider_.machines().at(create->machine_id);
      if (plan_.ends_failed || !CannotBeCreated(machine)) return {};
      if (IsOutOfStock(machine)) return {Code::kResourceExhausted, "no more of these"};
      return {Code::kInternal, "it does not boot"};
    }
    if (const auto* configure = std::get_if<contract::ConfigureRequest>(&request)) {
      const bool bad = plan_.fault == Fault::kBadTemplate && configure->cluster_id == kFaulty;
      return bad && !plan_.ends_failed ? Status(Code::kInternal, "the bootstrap script ended with 1") : Status();
    }
    const bool gives_back = std::holds_alternative<contract::DrainRequest>(request) ||
                            std::holds_alternative<contract::DeleteRequest>(request);
    return stubborn && gives_back ? Status(Code::kInternal, "it is in use") : Status();
  }

  std::string HowItBreaks(const model::Machine& machine) const {
    if (!IsFaulty() || !plan_.ends_failed) return "";
    if (machine.state == MachineState::kCreating && IsOutOfStock(machine))
      return "RESOURCE_EXHAUSTED: no more of these";
    if (machine.state == MachineState::kCreating && CannotBeCreated(machine)) return "it does not boot";
    const bool bad = plan_.fault == Fault::kBadTemplate && machine.cluster == kFaulty;
    return machine.state == MachineState::kConfiguring && bad ? "the bootstrap script ended with 1" : "";
  }

  void Restart() {
    if (!host_.alive()) return;
    Crash();
    if (plan_.mistaken_epoch) config_.epoch_at_least = *std::exchange(plan_.mistaken_epoch, std::nullopt);
    StartAfter(2s);
  }

  void Crash() {
    host_.Crash();
    ++crashes_;
    holds_.Crashed(now());
    queue_.Crashed();
    untold_.clear();
    ages_.clear();
    binding_.clear();
    taking_.clear();
  }
  void StartAfter(Duration pause) {
    born_ = now() + pause;
    kernel_.After(pause, [this] { host_.Start(); });
  }

  // --- the shard

  shard::Core MakeCore(const contract::Recovered& rows) {
    auto core = shard::Core::Recover(config_, rows);
    MUSTER_CHECK(core.has_value(), "{}", core.error().message());
    return *std::move(core);
  }

  void OnStep(std::span<const shard::Core::Effect> effects) {
    holds_.Stepped(host_.core(), now(), effects);
    queue_.Stepped(host_.core(), effects);
    for (const shard::Core::Effect& effect : effects) {
      if (const auto* audit = std::get_if<shard::Audit>(&effect)) ExcuseTry(audit->action);
      if (const auto* audit = std::get_if<shard::Audit>(&effect); audit != nullptr && audit->action.outcome == "failed")
        untold_.erase(audit->action.machine_id);
    }
  }

  void OnEffect(uint64_t life, const shard::Core::Effect& effect) {
    if (const auto* send = std::get_if<shard::Send>(&effect)) {
      clusters_.Hear(*send);
    } else if (const auto* audit = std::get_if<shard::Audit>(&effect)) {
      holds_.Audited(audit->action);
      JudgeTaking(audit->action);
      if (audit->action.kind == "Reclaim" && audit->action.outcome == "dryrun") tried_.insert(audit->action.machine_id);
      JudgeInTrial(audit->action);
      // The wall clock is never set here.
      if (audit->action.kind == "Reclaim")
        changes_.Audited(audit->action, now() - (kernel_.now().wall - audit->action.decided));
    } else if (std::holds_alternative<shard::CycleEnded>(effect)) {
      JudgeCycle();
    } else if (const auto* answer = std::get_if<shard::Answer>(&effect)) {
      if (answer->reply && std::holds_alternative<contract::NeedsInspected>(*answer->reply)) {
        JudgeAges(std::get<contract::NeedsInspected>(*answer->reply));
      }
    } else if (std::holds_alternative<shard::Stop>(effect)) {
      PROBE("sim.stopped_by_a_mistake");
      kernel_.After(Duration::zero(), [this, life] {  // its keeper reads the message
        if (!host_.alive() || host_.life() != life) return;
        Crash();
        config_.epoch_at_least = 0;
        StartAfter(2s);
      });
    }
  }

  void OnCall(uint64_t life, const shard::Core::Call& call) {
    std::visit(
        [&](const auto& request) {
          if constexpr (requires { request.fence; }) {
            findings_.Check(
                request.fence.epoch > last_epoch_ || (request.fence.epoch == last_epoch_ && life == last_life_),
                [&] { return fmt::format("epoch {} comes after {}", request.fence.epoch, last_epoch_); });
            findings_.Check(request.fence.epoch <= shard::kHighestEpoch, [&] {
              return fmt::format("a call has epoch {}, which leaves no room for later ones", request.fence.epoch);
            });
            last_epoch_ = request.fence.epoch;
            last_life_ = life;
            JudgeTransition(request);
          }
        },
        call.request);
    const auto* configure = std::get_if<contract::ConfigureRequest>(&call.request);
    const std::string bound = configure == nullptr ? "" : configure->machine_id;
    provider_.Ask(call, [this, life, bound](const shard::Core::CallDone& done) {
      if (!done.status.ok()) binding_.erase(bound);
      host_.Complete(life, done);
    });
  }

  // --- judges

  void Inspect() {
    kernel_.After(kInspectsEvery, [this] { Inspect(); });
    host_.Post(shard::Asked{++last_request_, contract::InspectNeeds{}});
  }

  // Of a need that stays short, at most one cycle counts in each interval.
  void JudgeAges(const contract::NeedsInspected& inspected) {
    for (const contract::NeedView& need : inspected.needs) {
      const Age age{.cycles = need.age_cycles_unmet, .when = inspected.computed_at};
      const auto [known, first] = ages_.try_emplace(need.need.cluster, age);
      const Age before = std::exchange(known->second, age);
      const int64_t most = (age.when - before.when) / config_.cycle_interval + 1;
      findings_.Check(age.cycles - before.cycles <= most, [&] {
        return fmt::format("a need of {} grows {} cycles older within {} ms", need.need.cluster,
                           age.cycles - before.cycles, (age.when - before.when) / 1ms);
      });
    }
  }

  // What is on its way to a need is not taken once more, not even after a restart.
  template <class Request>
  void JudgeTransition(const Request& request) {
    if constexpr (std::is_same_v<Request, contract::DrainRequest>) {
      if (plan_.fault != Fault::kPriority || !IsFaulty()) return;
      taken_.insert(request.machine_id);
      findings_.Check(std::ssize(taken_) <= plan_.takes, [&] {
        return fmt::format("{} machines are taken by priority where {} are enough", taken_.size(), plan_.takes);
      });
    }
    if constexpr (std::is_same_v<Request, contract::ConfigureRequest>) {
      binding_[request.machine_id] = request.cluster_id;
      JudgeGrowth(request.cluster_id);
    }
  }

  ptrdiff_t Has(const std::string& cluster) const {
    return std::ranges::count_if(provider_.machines(), [&](const auto& row) {
      return row.second.state == MachineState::kConfigured && row.second.cluster == cluster;
    });
  }

  // The cluster that comes first is on trial while it has nothing, and from when the shard tells that a Configure for
  // it failed until the next one ends well. What it took before then is on its way.
  void JudgeTaking(const contract::ActionView& action) {
    if (!plan_.comes_first) return;
    const bool failed = action.outcome != "pending" && action.outcome != "success";
    if (action.kind == "Bootstrap" && action.cluster_id == kFaulty && failed) template_failed_ = true;
    if (action.kind != "Preempt") return;
    if (failed) taking_.erase(action.machine_id);
    if (action.outcome != "pending" || !IsFaulty()) return;
    taking_.insert(action.machine_id);
    const auto has = Has(std::string(kFaulty));
    if (has > 0 && !template_failed_) {
      PROBE("sim.taken_by_one_that_is_proven");
      return;
    }
    PROBE("sim.taken_by_one_on_trial");
    findings_.Check(std::ssize(taking_) <= std::max<ptrdiff_t>(config_.first_bootstraps, has), [&] {
      return fmt::format("{} machines are taken at once for {}, which has {}", taking_.size(), kFaulty, has);
    });
  }

  // A cluster shows with a few machines, or as many as it has, whether its template is good.
  void JudgeGrowth(const std::string& cluster) {
    if (config_.first_bootstraps == 0) return;
    const auto has = Has(cluster);
    const auto at_once = std::ranges::count(binding_, cluster, [](const auto& row) { return row.second; });
    findings_.Check(at_once <= std::max<ptrdiff_t>(config_.first_bootstraps, has), [&] {
      return fmt::format("{} machines are configured at once for {}, which has {}", at_once, cluster,
                         has == 0 ? "none" : std::to_string(has));
    });
  }

  void JudgeInTrial(const contract::ActionView& action) {
    const bool in_trial = plan_.fault == Fault::kTrial && IsFaulty() && action.cluster_id == "b";
    findings_.Check(!in_trial || action.kind != "Reclaim" || action.outcome != "pending",
                    [&] { return fmt::format("{} is reclaimed from b in a trial", action.machine_id); });
  }

  // A trial shows all that going live would do, and does nothing.
  void JudgeTrial() {
    int64_t has = 0;
    for (const auto& [id, machine] : provider_.machines()) {
      if (machine.state == MachineState::kConfigured && machine.cluster == "b") ++has;
    }
    findings_.Check(has == 12, [&] { return fmt::format("b has {} machines after a trial, not 12", has); });
    const int64_t surplus = has - clusters_.Of("b").wanted;
    findings_.Check(std::ssize(tried_) == surplus, [&] {
      return fmt::format("a trial shows {} Reclaims where going live would lead to {}", tried_.size(), surplus);
    });
  }

  // How a transition ended has to be told.
  void OnEnded(const model::Machine& machine) {
    binding_.erase(machine.id);
    taking_.erase(machine.id);
    if (machine.state == MachineState::kConfigured && machine.cluster == kFaulty) template_failed_ = false;
    untold_.erase(machine.id);
    if (machine.state != MachineState::kFailed || !host_.alive()) return;
    // A life that never saw it otherwise knows of no transition.
    if (host_.core().machines().tracked().contains(machine.id)) untold_[machine.id] = now();
  }

  void JudgeCycle() {
    for (const auto& [id, since] : untold_) {
      findings_.Check(now() - since <= kToldWithin,
                      [&] { return fmt::format("that {} ended in Failed is not told as a failure", id); });
    }
    std::map<std::string, int64_t> has;
    for (const auto& [id, machine] : provider_.machines()) {
      if (machine.state == MachineState::kConfigured) ++has[machine.cluster];
    }
    const auto is_short = [&](const auto& cluster) { return has[cluster.first] < cluster.second.wanted; };
    const auto lacking = std::ranges::count_if(clusters_.all(), is_short);
    for (const auto& [name, cluster] : clusters_.all()) {
      changes_.Has(name, has[name], now());
      const bool faulty =
          name == kFaulty && (plan_.fault == Fault::kBadTemplate || plan_.fault == Fault::kSilentCluster);
      // What one that comes first asks for, others lack.
      const bool excused =
          (faulty || plan_.comes_first) && now() >= fault_from_ && now() < fault_until_ + config_.hold_longest;
      const std::string free = excused || holds_.IsClusterHeld(name, now()) ? "" : FreeFor(lacking == 1);
      starvation_.See(name, {.has = has[name], .wants = cluster.wanted, .free = free}, now());
    }
  }

  // Nobody can tell bad machines from good ones, and a cheaper one whose hold is over, or that was repaired, comes
  // before a dearer one that was never tried: dozens of tries in a row may fail.
  void ExcuseTry(const contract::ActionView& action) {
    const bool failed = action.outcome == "failed" || action.outcome == "provider_error";
    if (plan_.fault != Fault::kBadMachines || action.kind != "Provision" || !failed || !IsBad(action.machine_id))
      return;
    starvation_.Excuse(action.cluster_id, kernel_.now().wall - action.decided, now());
  }

  // A machine that a cluster which is short could have; an Idle one may be pledged to another one that is short too.
  std::string FreeFor(bool alone) const {
    if (IsAway() || now() - born_ < config_.restart_grace) return "";
    for (const auto& [id, machine] : provider_.machines()) {
      if (machine.state == MachineState::kIdle && alone) return id;
      if (machine.state != MachineState::kSpeculative || holds_.IsCreateHeld(machine, now())) continue;
      if (!IsFaulty() || !CannotBeCreated(machine)) return id;
    }
    return "";
  }

  void CheckAtRest() {
    std::map<std::string, int64_t> has;
    for (const auto& [id, machine] : provider_.machines()) {
      if (machine.state == MachineState::kConfigured) ++has[machine.cluster];
    }
    for (const auto& [name, cluster] : clusters_.all()) {
      findings_.Check(has[name] >= cluster.wanted, [&] {
        return fmt::format("{} wants {} machines and has {} at the end", name, cluster.wanted, has[name]);
      });
    }
  }

  Kernel kernel_;
  Plan plan_;
  const bool without_outage_;
  shard::Config config_;
  Disk disk_;
  SlowProvider provider_;
  SimHost<shard::Core> host_;
  PlainClusters clusters_;
  Findings findings_;
  HoldJudge holds_;
  QueueJudge queue_;
  StarvationJudge starvation_;
  ChangeJudge changes_;
  MonoTime fault_from_;
  MonoTime fault_until_;
  MonoTime born_;  // when the shard was started last
  struct Age {
    int32_t cycles = 0;
    WallTime when;
  };
  std::map<std::string, Age> ages_;             // by cluster: when last inspected in this life
  std::set<std::string> taken_;                 // machines drained for a need that comes first
  std::map<std::string, std::string> binding_;  // machines being configured: for which cluster
  std::set<std::string> taking_;                // machines decided to be taken for one that comes first
  bool template_failed_ = false;                // of that one, the last Configure that ended
  std::set<std::string> tried_;                 // machines that a trial would have reclaimed
  std::map<std::string, MonoTime> untold_;      // machines whose last transition ended in Failed: when
  int64_t last_epoch_ = 0;
  uint64_t last_life_ = 0;
  contract::RequestId last_request_ = 0;
  uint64_t crashes_ = 0;
};

}  // namespace

RunResult RunFailuresWorld(uint64_t seed) {
  FailuresWorld world(seed, false);
  RunResult result = world.Run();
  if (result.failure || !world.HasOutage()) return result;
  FailuresWorld without(seed, true);
  const RunResult other = without.Run();
  result.failure = other.failure;
  if (!result.failure && world.Cost() > without.Cost()) {
    result.failure = fmt::format("an outage of {} s makes the fleet cost {} an hour, not {}", kOutageLasts / 1s,
                                 model::FormatMoney(world.Cost()), model::FormatMoney(without.Cost()));
  }
  return result;
}

RunResult RunBadTemplateThatComesFirst(uint64_t seed) {
  return FailuresWorld(seed, false, DrawPlanOfOneThatComesFirst).Run();
}

}  // namespace muster::sim
