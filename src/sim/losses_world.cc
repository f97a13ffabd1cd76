#include "sim/losses_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/probe.h"
#include "core/shard/demand.h"
#include "core/shard/losses.h"
#include "core/shard/machines.h"
#include "core/shard/rails.h"
#include "core/shard/shard.h"
#include "sim/change_judge.h"
#include "sim/disk.h"
#include "sim/findings.h"
#include "sim/kernel.h"
#include "sim/plain_clusters.h"
#include "sim/sim_host.h"
#include "sim/slow_provider.h"
#include "sim/starvation_judge.h"

namespace muster::sim {
namespace {

using model::MachineState;

constexpr int64_t kBound = 80;     // machines of each cluster
constexpr int kSpeculative = 140;  // that could be bought
constexpr Duration kFaultAt = 2min;
constexpr Duration kOperatorAt = 17min;
constexpr Duration kEnd = 27min;
constexpr Duration kSeenWithin = 1s;     // from the shard's step until it is judged: its disk takes a moment
constexpr Duration kKnownWithin = 8s;    // how long the shard may take to see a change
constexpr Duration kBoughtWithin = 10s;  // from when the shard counts on one no longer until another is bought
constexpr const char* kFleet = "the fleet";
constexpr std::string_view kPaused = "a";  // the cluster that may be paused
constexpr int kFew = 4;                    // machines of a cluster: no mass

enum class Fault : uint8_t {
  kNone = 0,
  kFalseFailed = 1,
  kForgotten = 2,
  kZoneLost = 3,
  kFewFailed = 4,
  kForgottenWhileDown = 5,  // by the provider, while the shard is down
};
constexpr uint64_t kFaults = 6;

// What a cluster says that it does not mean: nothing at all, several times in a row; or less and less.
enum class Mistake : uint8_t { kNone = 0, kEmpties = 1, kSteps = 2 };

shard::Config WorldConfig() {
  shard::Config config{.cycle_interval = 2s, .list_page = 100};
  config.repair_first = 20s;
  return config;
}

class LossesWorld {
 public:
  explicit LossesWorld(uint64_t seed, bool breathes)
      : kernel_(seed),
        rng_(kernel_.ForkRng(0x6c6f7373)),
        later_(kernel_.ForkRng(0x6c617465)),
        latest_(kernel_.ForkRng(0x6e616d65)),
        breathes_(breathes),
        config_(WorldConfig()),
        disk_(kernel_, {}, 1),
        provider_(kernel_),
        host_(kernel_, disk_,
              {.make_core =
                   [this](const contract::Recovered& rows) {
                     auto core = shard::Core::Recover(config_, rows);
                     MUSTER_CHECK(core.has_value(), "{}", core.error().message());
                     return *std::move(core);
                   },
               .start_call = [this](uint64_t life, const auto& call) { OnCall(life, call); },
               .emit = [this](uint64_t, const auto& effect) { OnEffect(effect); }}),
        clusters_(kernel_, host_),
        changes_(config_.reclaim_budget, config_.reclaim_window - kBoughtWithin, findings_),
        taken_(config_.reclaim_budget, config_.reclaim_window - kSeenWithin, findings_),
        fleet_(config_.losses.replaced, config_.losses.replace_window - kBoughtWithin, findings_),
        // A machine that is back and in no list of changes is found by the next sweep.
        starvation_(config_.sweep_interval + kKnownWithin, findings_) {
    provider_.SetHooks({.refuses = [this](const auto& request) { return Refusal(request); }});
    for (const char* name : {"a", "b"}) clusters_.Add(name, {.wanted = kBound});
    for (int i = 0; i < 2 * kBound + kSpeculative; ++i) {
      const bool bound = i < 2 * kBound;
      model::Machine machine{.id = fmt::format("m-{:03}", i),
                             .state = bound ? MachineState::kConfigured : MachineState::kSpeculative,
                             .instance_type = "m",
                             .zone = fmt::format("z{}", i % 3),
                             .capacity_type = model::CapacityType::kOnDemand,
                             .price_per_hour = {1'000'000},
                             .resources = {{"cpu", 1000}}};
      if (bound) {
        machine.host = {.provider = "sim", .ref = machine.id};
        machine.cluster = i % 2 == 0 ? "a" : "b";
      }
      provider_.Put(std::move(machine));
    }
  }

  RunResult Run() {
    const MonoTime start = kernel_.now().mono;
    for (const auto& [name, cluster] : clusters_.all()) {  // before the first cycle
      changes_.Has(name, kBound, start);
      taken_.Has(name, kBound, start);
    }
    host_.Start();
    if (breathes_) {
      Breathe();
      for (int i = 1; i <= 3; ++i) kernel_.After(i * 6h + Draw(30min), [this] { Restart(); });
    }
    clusters_.Start();
    if (!breathes_) ScheduleFaults();
    if (!breathes_ && later_.Chance(1, 2)) no_whole_lists_until_ = start + Duration(later_.Between(10, 40) * 1s);
    const auto broken = [this] { return findings_.failure().has_value(); };
    kernel_.RunUntil(start + (breathes_ ? Duration(24h) : kEnd), broken);
    if (!broken() && !breathes_) CheckAtRest();
    if (!broken() && breathes_) CheckMoves();
    return {.log_hash = kernel_.log_hash(),
            .events = kernel_.events_run(),
            .steps_checked = findings_.checks(),
            .crashes = lives_ - 1,
            .simulated = kernel_.now().mono - start,
            .failure = findings_.failure()};
  }

 private:
  MonoTime now() const { return kernel_.now().mono; }
  Duration Draw(Duration longest) { return Duration(rng_.Between(1, longest.count())); }

  // Each wants more when the other wants less; and both a little less for a while, which is no reason to move anything.
  void Breathe() {
    const bool high = (now().time_since_epoch() / Duration(30min)) % 2 == 0;
    const int64_t dip = (now().time_since_epoch() / Duration(30s)) % 2 == 0 ? 0 : 3;
    clusters_.Of("a").wanted = (high ? 100 : 40) - dip;
    clusters_.Of("b").wanted = (high ? 40 : 100) - dip;
    kernel_.After(30s, [this] { Breathe(); });
  }

  void OnEffect(const shard::Core::Effect& effect) {
    if (const auto* send = std::get_if<shard::Send>(&effect)) {
      clusters_.Hear(*send);
    } else if (std::holds_alternative<shard::CycleEnded>(effect)) {
      JudgeCycle();
    } else if (const auto* audit = std::get_if<shard::Audit>(&effect)) {
      const contract::ActionView& action = audit->action;
      if (action.kind == "Repair") OnRepair(action);
      if (action.kind == "Provision" && action.outcome == "pending") bought_for_[action.machine_id] = action.cluster_id;
      // What is repaired after the losses were accepted, is by that order.
      const bool ordered = action.kind == "Repair" && accepted_;
      if (ordered) return;
      const MonoTime decided = now() - (kernel_.now().wall - action.decided);
      changes_.Audited(action, decided);
      taken_.Audited(action, decided);
    }
  }

  // --- faults

  void ScheduleFaults() {
    fault_ = static_cast<Fault>(rng_.Below(kFaults));
    provider_.RefuseDeletes(rng_.Chance(1, 2));
    kernel_.After(kFaultAt, [this] { MakeFault(); });
    if (rng_.Chance(1, 2)) kernel_.After(kFaultAt + 1min + Draw(3min), [this] { Restart(); });
    if (fault_ == Fault::kForgotten && rng_.Chance(3, 4)) {
      kernel_.After(kFaultAt + 2min + Draw(6min), [this] { Remember(); });
    }
    mistake_ = static_cast<Mistake>(rng_.Below(3));
    // Between two roll-ups that are meant.
    kernel_.After(3min + rng_.Between(0, 50) * Duration(10s) + 1s, [this] { MakeMistake(); });
    if (rng_.Chance(1, 2)) kernel_.After(kFaultAt + Draw(4min), [this] { WantLess(); });
    kernel_.After(kOperatorAt, [this] { OperatorLooks(); });
    const bool vanish = fault_ == Fault::kForgotten || fault_ == Fault::kZoneLost;
    if (vanish && later_.Chance(1, 2)) SchedulePause(kFaultAt + 90s + later_.Between(0, 60) * 1s);
    if (fault_ == Fault::kFalseFailed && latest_.Chance(1, 2)) SchedulePause(kFaultAt + latest_.Between(0, 150) * 1s);
    unnamed_ = latest_.Chance(1, 3);
  }

  // Somebody looks at the provider, and wants nothing to change meanwhile.
  void SchedulePause(Duration after) {
    kernel_.After(after, [this] { SetMode(contract::ActuationMode::kPaused); });
    // More than once: the shard may be down.
    for (const Duration more : {Duration(0s), Duration(5s), Duration(10s)}) {
      kernel_.After(after + 2min + more, [this] { SetMode(contract::ActuationMode::kActive); });
    }
  }

  void SetMode(contract::ActuationMode mode) {
    if (!host_.alive()) return;
    PROBE("sim.paused_while_missing");
    host_.Post(
        shard::Asked{2, contract::SetActuation{.cluster_id = std::string(kPaused), .mode = mode, .reason = "sim"}});
  }

  Status Refusal(const contract::ProviderRequest& request) const {
    const auto* list = std::get_if<contract::ListRequest>(&request);
    if (list == nullptr || list->max_results > 0 || now() >= no_whole_lists_until_) return {};
    PROBE("sim.no_whole_lists");
    return {Code::kUnavailable, "try later"};
  }

  // A cluster that gives up machines of its own, while the provider loses others of it.
  void WantLess() {
    PROBE("sim.demand_falls");
    clusters_.Of(rng_.Chance(1, 2) ? "a" : "b").wanted = rng_.Between(kBound / 2, kBound - 1);
  }

  void MakeMistake() {
    const std::string name = rng_.Chance(1, 2) ? "a" : "b";
    if (mistake_ == Mistake::kEmpties) {
      PROBE("sim.empty_rollups");
      const int64_t times = rng_.Between(3, 6);
      for (int64_t i = 0; i < times; ++i) {
        kernel_.After(i * Duration(5ms), [this, name] { clusters_.SayByMistake(name, 0); });
      }
    } else if (mistake_ == Mistake::kSteps) {
      PROBE("sim.shrinking_rollups");
      for (const auto& [after, machines] : {std::pair(1s, 16), std::pair(3s, 3), std::pair(5s, 1), std::pair(7s, 0)}) {
        kernel_.After(after, [this, name, machines] { clusters_.SayByMistake(name, machines); });
      }
    }
  }

  void MakeFault() {
    const bool unseen = fault_ == Fault::kFalseFailed && later_.Chance(1, 3);
    if (fault_ == Fault::kForgottenWhileDown || unseen) Restart();
    if (unseen && latest_.Chance(1, 2)) {  // once more, within its first sweep
      kernel_.After(2s + Duration(latest_.Between(0, 3000) * 1ms), [this] { Restart(); });
    }
    std::map<std::string, int> failed;  // by cluster
    for (const auto& [id, machine] : std::map(provider_.machines())) {
      if (machine.state != MachineState::kConfigured && fault_ != Fault::kZoneLost) continue;
      switch (fault_) {
        case Fault::kNone: break;
        case Fault::kFalseFailed:
          if (!rng_.Chance(1, 2)) break;
          PROBE("sim.false_failed");
          shown_failed_.emplace(id, machine);
          // Nothing says by name whose machine it is, if the shard was down and its record does not.
          if (unseen && unnamed_) {
            ++unseen_[machine.cluster];
          } else {
            failed_.emplace(id, machine);
          }
          Fail(id);
          break;
        case Fault::kForgotten:
          if (!rng_.Chance(1, 2)) break;
          PROBE("sim.machine_forgotten");
          Forget(id);
          break;
        case Fault::kForgottenWhileDown:
          if (!rng_.Chance(1, 2)) break;
          PROBE("sim.forgotten_while_down");
          ++unseen_[machine.cluster];
          provider_.Lose(id);
          break;
        case Fault::kFewFailed:
          if (++failed[machine.cluster] > kFew) break;
          PROBE("sim.few_failed");
          Fail(id);
          break;
        case Fault::kZoneLost:
          if (machine.zone != "z1") break;
          PROBE("sim.zone_lost");
          Forget(id);
          break;
      }
    }
    fault_at_ = now();
    faulty_ = fault_ == Fault::kFalseFailed;
  }

  void Fail(const std::string& id) {
    provider_.SetState(id, MachineState::kFailed);
    if (!unnamed_) return;
    PROBE("sim.failed_of_nobody");
    model::Machine machine = provider_.machines().at(id);
    machine.cluster.clear();
    machine.shard_metadata.clear();
    provider_.Put(std::move(machine));
  }

  void Forget(const std::string& id) {
    const model::Machine& machine = provider_.machines().at(id);
    if (machine.state != MachineState::kSpeculative) lost_.emplace(id, machine);
    provider_.Lose(id);
  }

  // The provider shows half of the machines again that it forgot.
  void Remember() {
    for (const auto& [id, machine] : std::map(lost_)) {
      if (!rng_.Chance(1, 2)) continue;
      PROBE("sim.machine_remembered");
      provider_.Put(machine);
      lost_.erase(id);
      given_up_.erase(id);
    }
  }

  void Restart() {
    host_.Crash();
    ++lives_;
    for (auto& [id, acknowledged] : repairing_) acknowledged = true;  // who asked is dead
    born_ = now() + 2s;
    kernel_.After(2s, [this] { host_.Start(); });
  }

  // The provider is well again, and what is lost indeed is accepted.
  void OperatorLooks() {
    if (fault_ == Fault::kZoneLost || fault_ == Fault::kForgottenWhileDown) CheckReplaced();
    faulty_ = false;
    accepted_ = true;
    provider_.RefuseDeletes(false);
    if (fault_ == Fault::kFalseFailed) {
      for (const auto& [id, machine] : std::map(provider_.machines())) {
        if (machine.state == MachineState::kFailed) provider_.Put(shown_failed_.at(id));
      }
    }
    if (host_.alive()) host_.Post(shard::Asked{1, contract::AcceptLosses{.reason = "seen"}});
  }

  // --- the provider's calls

  void OnCall(uint64_t life, const shard::Core::Call& call) {
    std::visit(
        [&](const auto& request) {
          if constexpr (requires { request.fence; }) JudgeTransition(request);
        },
        call.request);
    provider_.Ask(call, [this, life](const shard::Core::CallDone& done) { host_.Complete(life, done); });
  }

  template <class Request>
  void JudgeTransition(const Request& request) {
    ++moves_;
    if constexpr (std::is_same_v<Request, contract::DeleteRequest>) JudgeDelete(request.machine_id);
    if constexpr (std::is_same_v<Request, contract::CreateRequest>) OnBought(request.machine_id);
    if constexpr (std::is_same_v<Request, contract::ConfigureRequest>) OnGiven(request.machine_id, request.cluster_id);
    findings_.Check(
        !lost_.contains(request.machine_id) || now() - fault_at_ < config_.sweep_interval + kKnownWithin, [&] {
          return fmt::format("{} is called for though the lists have not shown it for long", request.machine_id);
        });
  }

  // --- judges

  // Of a machine that the provider refuses to delete, each life of the shard may find that out.
  void JudgeDelete(const std::string& id) {
    const auto found = provider_.machines().find(id);
    const bool failed = found != provider_.machines().end() && found->second.state == MachineState::kFailed;
    if (!failed || !provider_.refuses_deletes()) return;
    const auto most = static_cast<uint64_t>(config_.losses.refusals) * lives_;
    findings_.Check(++refused_[id] <= most, [&] {
      return fmt::format("the provider is asked {} times to delete {}, which it refuses", refused_[id], id);
    });
  }

  // What is bought after machines went while the shard was down, is bought in the place of one of them.
  void OnBought(const std::string& id) {
    const auto machine = provider_.machines().find(id);
    if (machine == provider_.machines().end() || machine->second.state != MachineState::kSpeculative) return;
    const auto bought = bought_for_.find(id);
    const auto unseen = bought == bought_for_.end() ? unseen_.end() : unseen_.find(bought->second);
    if (unseen == unseen_.end() || accepted_) return;
    fleet_.GivenUp(kFleet, now());
    changes_.GivenUp(bought->second, now());
    InPlaceOfOne(bought->second);
    in_place_[id] = bought->second;
    bought_for_.erase(bought);
  }

  void InPlaceOfOne(const std::string& cluster) {
    const auto unseen = unseen_.find(cluster);
    if (unseen != unseen_.end() && --unseen->second == 0) unseen_.erase(unseen);
  }

  // A machine that was bought for one cluster may go to another that comes first.
  void OnGiven(const std::string& id, const std::string& cluster) {
    const auto bought = in_place_.find(id);
    if (bought == in_place_.end() || accepted_) return;
    if (bought->second != cluster) {
      changes_.TakeBackGivenUp(bought->second);
      ++unseen_[bought->second];
      InPlaceOfOne(cluster);
    }
    in_place_.erase(bought);
  }

  void OnRepair(const contract::ActionView& action) {
    if (action.outcome == "pending") return JudgeRepair(action.machine_id);
    if (action.outcome != "success") {
      repairing_.erase(action.machine_id);
    } else if (const auto found = repairing_.find(action.machine_id); found != repairing_.end()) {
      found->second = true;
    }
  }

  void JudgeRepair(const std::string& machine) {
    findings_.Check(!faulty_ || now() - born_ < kKnownWithin,
                    [&] { return fmt::format("{} is repaired while machines fail in masses", machine); });
    std::erase_if(repairing_, [&](const auto& repair) {
      const auto& [id, acknowledged] = repair;
      const auto found = provider_.machines().find(id);
      const bool deleting = found != provider_.machines().end() && found->second.state == MachineState::kDeleting;
      return acknowledged && !deleting && !provider_.IsAsked(id);
    });
    repairing_[machine] = false;
    const auto most = std::max<size_t>(1, host_.core().machines().tracked().size() / 100);
    findings_.Check(repairing_.size() <= most, [&] {
      return fmt::format("{} machines are under repair at a time, not {}", repairing_.size(), most);
    });
  }

  void JudgeCycle() {
    JudgeClusters();
    JudgeGivenUp();
    was_paused_ = IsPaused(std::string(kPaused));
    if (breathes_ || now() - born_ < 20s) return;
    const auto& tracked = host_.core().machines().tracked();
    for (const auto& [id, machine] : provider_.machines()) {
      if (now() - provider_.ChangedAt(id) < kKnownWithin || provider_.IsAsked(id)) continue;
      const auto known = tracked.find(id);
      // The shard puts into its record whose it was.
      const bool unnamed = machine.state == MachineState::kFailed && machine.cluster.empty();
      const auto is_known = [&](const model::Machine& as) {
        return unnamed ? as.state == machine.state : as == machine;
      };
      findings_.Check(known != tracked.end() && is_known(*known->second.record), [&] {
        return fmt::format("{} is {} for long, and not known as that", id, model::StateName(machine.state));
      });
    }
  }

  // Machines that serve each cluster.
  std::map<std::string, int64_t> Serving() const {
    std::map<std::string, int64_t> has;
    for (const auto& [id, machine] : provider_.machines()) {
      if (machine.state == MachineState::kConfigured) ++has[machine.cluster];
    }
    return has;
  }

  // The same, with lost ones, which count until they are given up.
  std::map<std::string, int64_t> Counting() const {
    std::map<std::string, int64_t> has = Serving();
    if (accepted_) return has;
    for (const auto* lost : {&lost_, &failed_}) {
      for (const auto& [id, machine] : *lost) has[machine.cluster] += given_up_.contains(id) ? 0 : 1;
    }
    for (const auto& [cluster, machines] : unseen_) has[cluster] += machines;
    return has;
  }

  void JudgeClusters() {
    std::map<std::string, int64_t> has = Counting();
    int64_t fleet = has["a"] + has["b"];
    std::string free;
    for (const auto& [id, machine] : provider_.machines()) {
      const bool costs = machine.state != MachineState::kSpeculative && machine.state != MachineState::kDeleting;
      fleet += costs && machine.state != MachineState::kConfigured ? 1 : 0;
      if (machine.state == MachineState::kSpeculative && now() - born_ > 20s) free = id;
    }
    fleet_.Has(kFleet, fleet, now());
    for (const auto& [name, cluster] : clusters_.all()) {
      changes_.Has(name, has[name], now());
      taken_.Has(name, has[name], now());
      starvation_.See(name, {.has = has[name], .wants = cluster.wanted, .free = IsPaused(name) ? "" : free}, now());
      JudgeDemand(name, cluster.wanted);
    }
  }

  // A demand that fell below a tenth within ten minutes is in force only if the cluster said so for half a minute,
  // which none here does.
  void JudgeDemand(const std::string& name, int64_t wanted) {
    const shard::ClusterDemand& demand = host_.core().demand().Of(name);
    if (!demand.accepted) return;
    int64_t in_force = 0;
    for (const model::Need& need : demand.rows) in_force += need.aggregate.Get("cpu") / 1000;
    findings_.Check(in_force * 10 >= wanted, [&] {
      return fmt::format("a demand for {} machines is in force of {}, which wants {}: {}", in_force, name, wanted,
                         mistake_ == Mistake::kSteps ? "it fell in steps" : "it fell for a moment");
    });
  }

  // Whether the shard counts on a machine that the provider lost, or has not seen yet that it shows it as Failed.
  bool IsCountedOn(const std::string& id) const {
    const shard::Machines& machines = host_.core().machines();
    const shard::Tracked* tracked = machines.Find(id);
    if (!failed_.contains(id)) return tracked != nullptr;
    return tracked == nullptr || tracked->record->state != MachineState::kFailed ||
           machines.AsideOf(id) != shard::SetAside::kNo;
  }

  // Machines that the provider lost or shows as Failed, and the shard no longer counts on.
  void JudgeGivenUp() {
    if (accepted_) return;
    std::map<std::string, model::Machine> all = lost_;
    all.insert(failed_.begin(), failed_.end());
    for (const auto& [id, machine] : all) {
      if (IsCountedOn(id) || !given_up_.insert(id).second) continue;
      // What a new life has never seen, it does not give up.
      const bool paused = machine.cluster == kPaused && was_paused_ && IsPaused(machine.cluster);
      findings_.Check(!paused || now() - born_ < 30s, [&] {
        return fmt::format("{} is missing and given up while {} is paused", id, machine.cluster);
      });
      if (!machine.cluster.empty()) {
        changes_.GivenUp(machine.cluster, now());
        taken_.GivenUp(machine.cluster, now());
      }
      fleet_.GivenUp(kFleet, now());
    }
  }

  bool IsPaused(const std::string& cluster) const { return host_.core().rails().modes().IsKeptBack(cluster); }

  // Before an operator looked: a lost zone does not wait for a person.
  void CheckReplaced() {
    std::map<std::string, int64_t> has = Serving();
    for (const auto& [name, cluster] : clusters_.all()) {
      findings_.Check(has[name] >= cluster.wanted, [&] {
        return fmt::format("{} wants {} machines and has {}: a lost zone waits for a person", name, cluster.wanted,
                           has[name]);
      });
    }
  }

  void CheckAtRest() {
    std::map<std::string, int64_t> has = Serving();
    for (const auto& [name, cluster] : clusters_.all()) {
      findings_.Check(has[name] >= cluster.wanted,
                      [&] { return fmt::format("{} wants {} machines and has {}", name, cluster.wanted, has[name]); });
    }
    findings_.Check(host_.core().losses().missing() == 0, [&] { return std::string("machines are missing for ever"); });
  }

  // A swing moves sixty machines of each cluster: a Drain here and a Configure there, and where the budget is slow, a
  // Create and a Delete.
  void CheckMoves() {
    const uint64_t most = 48 * 60 * 5;
    findings_.Check(moves_ <= most, [&] { return fmt::format("{} transitions in a day, not {}", moves_, most); });
    findings_.Check(moves_ > 1000, [&] { return std::string("nothing moves"); });
  }

  Kernel kernel_;
  Rng rng_;
  Rng later_;   // for what was added later, so that the rest of a seed stays as it is
  Rng latest_;  // the same, and later still
  const bool breathes_;
  const shard::Config config_;
  Disk disk_;
  SlowProvider provider_;
  SimHost<shard::Core> host_;
  PlainClusters clusters_;
  Findings findings_;
  ChangeJudge changes_;
  ChangeJudge taken_;  // the same without what is bought in the place of machines that nobody named, to the second
  ChangeJudge fleet_;  // what is given up of the whole fleet
  StarvationJudge starvation_;
  Mistake mistake_ = Mistake::kNone;
  Fault fault_ = Fault::kNone;
  bool faulty_ = false;    // machines are shown as Failed in masses
  bool accepted_ = false;  // an operator has accepted the losses
  MonoTime born_;          // when the shard was started last
  MonoTime fault_at_;
  MonoTime no_whole_lists_until_;
  bool was_paused_ = false;                             // in the cycle before
  std::map<std::string, model::Machine> lost_;          // machines that cost money, as they were
  std::map<std::string, model::Machine> failed_;        // shown as Failed in masses, as they were
  std::map<std::string, model::Machine> shown_failed_;  // the same, and those that nothing says whose they are
  bool unnamed_ = false;                                // records of Failed machines do not name their cluster
  std::map<std::string, int64_t> unseen_;          // by cluster: lost while the shard was down, and nothing bought yet
  std::map<std::string, std::string> bought_for_;  // by machine: the cluster of the last Provision
  std::map<std::string, std::string> in_place_;    // the same, of those bought in the place of unseen ones
  std::set<std::string> given_up_;                 // of lost_ and failed_, those that the shard no longer counts on
  std::map<std::string, bool> repairing_;          // whether the provider has acknowledged that
  std::map<std::string, uint64_t> refused_;        // Deletes, by machine
  uint64_t lives_ = 1;
  uint64_t moves_ = 0;
};

}  // namespace

RunResult RunLossesWorld(uint64_t seed) { return LossesWorld(seed, false).Run(); }
RunResult RunBreathingWorld(uint64_t seed) { return LossesWorld(seed, true).Run(); }

}  // namespace muster::sim
