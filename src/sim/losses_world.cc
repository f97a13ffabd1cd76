#include "sim/losses_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/probe.h"
#include "core/shard/losses.h"
#include "core/shard/machines.h"
#include "core/shard/shard.h"
#include "sim/disk.h"
#include "sim/kernel.h"
#include "sim/sim_host.h"
#include "sim/slow_provider.h"

namespace muster::sim {
namespace {

using model::MachineState;

constexpr int kBound = 80;         // machines of each cluster
constexpr int kSpeculative = 140;  // that could be bought
constexpr Duration kFaultAt = 2min;
constexpr Duration kOperatorAt = 14min;
constexpr Duration kEnd = 24min;
constexpr Duration kSeenWithin = 1s;   // from the shard's step until it is judged: its disk takes a moment
constexpr Duration kKnownWithin = 8s;  // how long the shard may take to see a change

enum class Fault : uint8_t { kNone = 0, kFalseFailed = 1, kForgotten = 2, kZoneLost = 3 };

shard::Config WorldConfig() {
  shard::Config config{.cycle_interval = 2s, .list_page = 100};
  config.verify_decisions = false;
  return config;
}

class LossesWorld {
 public:
  explicit LossesWorld(uint64_t seed, bool breathes)
      : kernel_(seed),
        rng_(kernel_.ForkRng(0x6c6f7373)),
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
               .emit = [this](uint64_t, const auto& effect) { OnEffect(effect); }}) {
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
    host_.Start();
    for (const std::string cluster : {"a", "b"}) Tick(cluster);
    if (!breathes_) {
      fault_ = static_cast<Fault>(rng_.Below(4));
      provider_.RefuseDeletes(rng_.Chance(1, 3));
      kernel_.After(kFaultAt, [this] { MakeFault(); });
      if (rng_.Chance(1, 2))
        kernel_.After(kFaultAt + 1min + Duration(rng_.Between(1, Duration(3min).count())), [this] { Restart(); });
      kernel_.After(kOperatorAt, [this] { OperatorLooks(); });
    }
    const auto broken = [this] { return failure_.has_value(); };
    kernel_.RunUntil(start + (breathes_ ? Duration(24h) : kEnd), broken);
    if (!broken() && !breathes_) CheckAtRest();
    if (!broken() && breathes_) CheckMoves();
    RunResult result{.log_hash = kernel_.log_hash(), .events = kernel_.events_run(), .steps_checked = checks_};
    result.simulated = kernel_.now().mono - start;
    result.failure = failure_;
    return result;
  }

 private:
  template <class What>
  void Check(bool holds, What&& what) {
    ++checks_;
    if (!holds && !failure_) failure_ = what();
  }
  MonoTime now() const { return kernel_.now().mono; }

  // --- clusters

  int Wanted(const std::string& cluster) const {
    if (!breathes_) return kBound;
    const bool high = (now().time_since_epoch() / Duration(30min)) % 2 == (cluster == "a" ? 0 : 1);
    return high ? 100 : 40;
  }

  void Tick(const std::string& cluster) {
    kernel_.After(10s, [this, cluster] { Tick(cluster); });
    if (!host_.alive()) return;
    auto& session = sessions_[cluster];
    if (session.second != host_.life()) {
      session = {++last_session_, host_.life()};
      host_.Post(shard::SessionOpened{
          session.first, {.cluster_id = cluster, .protocol_version = std::string(contract::kProtocolVersion)}});
    }
    model::Need need{.profile = model::Profile({.priority = 10}),
                     .aggregate = {{"cpu", Wanted(cluster) * 1000}},
                     .min_unit = {{"cpu", 1000}}};
    host_.Post(shard::Received{
        session.first,
        contract::Rollup{.cluster_id = cluster, .timestamp = kernel_.now().wall, .rows = contract::NeedRows({need})}});
  }

  void OnEffect(const shard::Core::Effect& effect) {
    if (const auto* send = std::get_if<shard::Send>(&effect)) {
      if (const auto* asked = std::get_if<contract::BootstrapRequest>(&send->message)) {
        Say(send->session, contract::BootstrapResponse{.request_id = asked->request_id, .user_data = "join"});
      } else if (const auto* told = std::get_if<contract::ReclaimInstruction>(&send->message)) {
        Say(send->session, contract::ReclaimAck{.instruction_id = told->instruction_id, .nodes_started = 1});
      }
    } else if (std::holds_alternative<shard::CycleEnded>(effect)) {
      JudgeCycle();
    } else if (const auto* audit = std::get_if<shard::Audit>(&effect)) {
      if (audit->action.kind == "Repair" && audit->action.outcome == "pending") JudgeRepair(audit->action.machine_id);
    }
  }
  void Say(contract::SessionId session, contract::OperatorMessage message) {
    kernel_.After(50ms,
                  [this, session, message = std::move(message)] { host_.Post(shard::Received{session, message}); });
  }

  // --- faults

  void MakeFault() {
    for (const auto& [id, machine] : std::map(provider_.machines())) {
      if (machine.state != MachineState::kConfigured && fault_ != Fault::kZoneLost) continue;
      switch (fault_) {
        case Fault::kNone: break;
        case Fault::kFalseFailed:
          if (!rng_.Chance(1, 2)) break;
          PROBE("sim.false_failed");
          provider_.SetState(id, MachineState::kFailed);
          break;
        case Fault::kForgotten:
          if (!rng_.Chance(1, 2)) break;
          PROBE("sim.machine_forgotten");
          Forget(id);
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

  void Forget(const std::string& id) {
    const model::Machine& machine = provider_.machines().at(id);
    if (machine.state != MachineState::kSpeculative) lost_.emplace(id, machine);
    provider_.Lose(id);
  }

  void Restart() {
    host_.Crash();
    born_ = now() + 2s;
    kernel_.After(2s, [this] { host_.Start(); });
  }

  // The provider is well again, and what is lost indeed is accepted.
  void OperatorLooks() {
    faulty_ = false;
    accepted_ = true;
    provider_.RefuseDeletes(false);
    if (fault_ == Fault::kFalseFailed) {
      for (const auto& [id, machine] : std::map(provider_.machines())) {
        if (machine.state == MachineState::kFailed) provider_.SetState(id, MachineState::kConfigured);
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
    Check(!lost_.contains(request.machine_id) || now() - fault_at_ < config_.sweep_interval + kKnownWithin, [&] {
      return fmt::format("{} is called for though the lists have not shown it for long", request.machine_id);
    });
  }

  // --- judges

  void JudgeRepair(const std::string& machine) {
    Check(!faulty_ || now() - born_ < kKnownWithin,
          [&] { return fmt::format("{} is repaired while machines fail in masses", machine); });
    std::erase_if(repairing_, [&](const std::string& id) {
      const auto found = provider_.machines().find(id);
      if (found == provider_.machines().end()) return true;
      const MachineState state = found->second.state;
      return state != MachineState::kDeleting && !provider_.IsAsked(id);
    });
    repairing_.insert(machine);
    const auto most = std::max<size_t>(1, host_.core().machines().tracked().size() / 100);
    Check(repairing_.size() <= most,
          [&] { return fmt::format("{} machines are under repair at a time, not {}", repairing_.size(), most); });
  }

  void JudgeCycle() {
    JudgeGivenUp();
    if (breathes_ || now() - born_ < 20s) return;
    const auto& tracked = host_.core().machines().tracked();
    for (const auto& [id, machine] : provider_.machines()) {
      if (now() - provider_.ChangedAt(id) < kKnownWithin || provider_.IsAsked(id)) continue;
      const auto known = tracked.find(id);
      Check(known != tracked.end() && *known->second.record == machine, [&] {
        return fmt::format("{} is {} for long, and not known as that", id, model::StateName(machine.state));
      });
    }
  }

  // Of the machines that the provider lost, no more than a tenth of the fleet is given up within two minutes.
  void JudgeGivenUp() {
    if (lost_.empty() || accepted_) return;
    const auto& tracked = host_.core().machines().tracked();
    for (const auto& [id, machine] : lost_) {
      if (tracked.contains(id) || !given_up_.insert(id).second) continue;
      times_.push_back(now());
      while (now() - times_.front() >= 2min - kSeenWithin) times_.pop_front();
      const size_t most = 2 * kBound / 10;
      Check(times_.size() <= most, [&] {
        return fmt::format("{} lost machines are given up within two minutes, not {}", times_.size(), most);
      });
    }
  }

  void CheckAtRest() {
    std::map<std::string, int> bound;
    for (const auto& [id, machine] : provider_.machines()) {
      if (machine.state == MachineState::kConfigured) ++bound[machine.cluster];
    }
    for (const std::string cluster : {"a", "b"}) {
      Check(bound[cluster] >= kBound,
            [&] { return fmt::format("{} wants {} machines and has {}", cluster, kBound, bound[cluster]); });
    }
    Check(host_.core().losses().missing() == 0, [&] { return std::string("machines are missing for ever"); });
  }

  // A swing moves sixty machines of each cluster: a Drain here and a Configure there, and where the budget is slow, a
  // Create and a Delete.
  void CheckMoves() {
    const uint64_t most = 48 * 60 * 5;
    Check(moves_ <= most, [&] { return fmt::format("{} transitions in a day, not {}", moves_, most); });
    Check(moves_ > 1000, [&] { return std::string("nothing moves"); });
  }

  Kernel kernel_;
  Rng rng_;
  const bool breathes_;
  const shard::Config config_;
  Disk disk_;
  SlowProvider provider_;
  SimHost<shard::Core> host_;
  Fault fault_ = Fault::kNone;
  bool faulty_ = false;    // machines are shown as Failed in masses
  bool accepted_ = false;  // an operator has accepted the losses
  MonoTime born_;          // when the shard was started last
  MonoTime fault_at_;
  std::map<std::string, model::Machine> lost_;  // machines that cost money, as they were
  std::set<std::string> given_up_;              // of them, those that are no longer tracked
  std::deque<MonoTime> times_;                  // when the last of them were
  std::set<std::string> repairing_;
  std::map<std::string, std::pair<contract::SessionId, uint64_t>> sessions_;  // by cluster: session and life
  contract::SessionId last_session_ = 0;
  uint64_t moves_ = 0;
  uint64_t checks_ = 0;
  std::optional<std::string> failure_;
};

}  // namespace

RunResult RunLossesWorld(uint64_t seed) { return LossesWorld(seed, false).Run(); }
RunResult RunBreathingWorld(uint64_t seed) { return LossesWorld(seed, true).Run(); }

}  // namespace muster::sim
