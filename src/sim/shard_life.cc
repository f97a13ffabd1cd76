#include "sim/shard_life.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/shard/demand.h"
#include "core/shard/executor.h"
#include "core/shard/machines.h"
#include "core/shard/reconcile.h"
#include "model/machine.h"

namespace muster::sim {
namespace {

// "Create", or of a Configure its cluster: what another cluster asks for is another thing.
template <class Request>
std::string WhatOf(const Request& request) {
  if constexpr (requires { request.cluster_id; }) return "Configure for " + request.cluster_id;
  return std::string(Request::kTypeName);
}

bool IsLimited(const contract::ActionView& action) { return action.outcome == "pending" && action.kind != "Preempt"; }

}  // namespace

ShardLife::ShardLife(shard::Config config, const contract::Recovered& rows, Modes modes, MonoTime now, Check check)
    : config_(std::move(config)), began_(now), check_(std::move(check)), modes_(std::move(modes)) {
  for (const auto& [cluster, mode] : modes_) inherited_.insert(cluster);
  for (const auto& [key, bytes] : rows) {
    if (const auto need = shard::kArrivalRows.KeyOf(key)) awaited_.insert(need->cluster);
  }
}

void ShardLife::Stepped(const shard::Core& core, Now now, const shard::Core::Event& event,
                        std::span<const shard::Core::Effect> effects) {
  ++steps_;
  Hear(event, effects, now.mono);
  // A page that waited was read before anything else in this step.
  std::optional<uint64_t> believed = std::exchange(page_, std::nullopt);
  if (const auto* done = std::get_if<shard::Core::CallDone>(&event)) {
    if (const auto read = reads_.find(done->id); read == reads_.end()) {
      HearAnswer(core, *done, now.mono);
    } else {
      if (done->status.ok())
        (core.reconcile().page_waits() ? page_ : believed) = std::max(believed.value_or(0), read->second);
      reads_.erase(read);
    }
  }
  if (believed) JudgeReads(core, *believed);
  std::erase_if(failed_, [&](const auto& failed) {
    const auto tracked = core.machines().tracked().find(failed.first);
    return tracked == core.machines().tracked().end() || tracked->second.record->state != failed.second.state;
  });
  int64_t limited = 0;
  for (const shard::Core::Effect& effect : effects) {
    if (const auto* call = std::get_if<shard::Core::Call>(&effect)) {
      std::visit(
          [&](const auto& request) {
            if constexpr (requires { request.fence; }) {
              JudgeTransition(core, call->id, {.machine = request.machine_id, .what = WhatOf(request)}, request.fence,
                              now.mono);
            } else {
              reads_[call->id] = steps_;
            }
          },
          call->request);
      if (const auto* configure = std::get_if<contract::ConfigureRequest>(&call->request)) {
        JudgeConfigure(*configure, now.mono);
      } else if (const auto* drain = std::get_if<contract::DrainRequest>(&call->request)) {
        JudgeDrain(core, *drain, now.mono);
      }
    } else if (const auto* send = std::get_if<shard::Send>(&effect)) {
      check_(sessions_.contains(send->session), [&] { return "something is said in a session that is not there"; });
      if (const auto* told = std::get_if<contract::ReclaimInstruction>(&send->message)) {
        Told& known = told_[told->nodes.front()];
        if (known.instruction != told->instruction_id) known = {.instruction = told->instruction_id, .when = now.mono};
      }
    } else if (const auto* audit = std::get_if<shard::Audit>(&effect)) {
      if (audit->action.outcome == "pending") JudgeDecision(core, audit->action);
      limited += IsLimited(audit->action) ? 1 : 0;
    } else if (std::holds_alternative<shard::CycleEnded>(effect)) {
      JudgeCycle(now.mono);
    }
  }
  if (const auto* opened = std::get_if<shard::SessionOpened>(&event)) {
    JudgeReconnect(core, opened->hello.cluster_id, effects);
  }
  const int64_t most = config_.max_actions_per_cycle;
  check_(most == 0 || limited <= most, [&] { return fmt::format("{} actions begin in one cycle", limited); });
  check_(!last_cycle_ || now.mono - *last_cycle_ <= config_.cycle_interval,
         [&] { return config_.id + " misses a cycle"; });
}

void ShardLife::JudgeCycle(MonoTime now) {
  check_(last_cycle_ || awaited_.empty() || now - began_ >= config_.restart_grace,
         [&] { return fmt::format("{} decides before it has heard from {}", config_.id, *awaited_.begin()); });
  last_cycle_ = now;
}

// What the cluster was told and has not acknowledged is told again.
void ShardLife::JudgeReconnect(const shard::Core& core, const std::string& cluster,
                               std::span<const shard::Core::Effect> effects) {
  for (const auto& [machine, told] : told_) {
    const auto operation = core.executor().operations().find(machine);
    if (operation == core.executor().operations().end() || operation->second.cluster != cluster) continue;
    if (operation->second.token != told.instruction || told.acknowledged) continue;
    const bool again = std::ranges::any_of(effects, [&](const shard::Core::Effect& effect) {
      const auto* send = std::get_if<shard::Send>(&effect);
      const auto* said = send == nullptr ? nullptr : std::get_if<contract::ReclaimInstruction>(&send->message);
      return said != nullptr && said->instruction_id == told.instruction;
    });
    check_(again, [&] { return fmt::format("{} is back and not told again that {} goes", cluster, machine); });
  }
}

void ShardLife::Hear(const shard::Core::Event& event, std::span<const shard::Core::Effect> effects, MonoTime now) {
  if (const auto* opened = std::get_if<shard::SessionOpened>(&event)) {
    std::erase_if(sessions_, [&](const auto& known) { return known.second == opened->hello.cluster_id; });
    sessions_[opened->session] = opened->hello.cluster_id;
  } else if (const auto* closed = std::get_if<shard::SessionClosed>(&event)) {
    sessions_.erase(closed->session);
  } else if (const auto* received = std::get_if<shard::Received>(&event)) {
    HearMessage(received->session, received->message, now);
  } else if (const auto* asked = std::get_if<shard::Asked>(&event)) {
    const auto* order = std::get_if<contract::SetActuation>(&asked->body);
    const bool refused = std::ranges::any_of(effects, [&](const shard::Core::Effect& effect) {
      const auto* answer = std::get_if<shard::Answer>(&effect);
      return answer != nullptr && answer->request == asked->request && !answer->status.ok();
    });
    if (order == nullptr || refused) return;  // a cluster that the shard does not know
    modes_[order->cluster_id] = order->mode;
    if (order->cluster_id.empty() && order->mode == contract::ActuationMode::kActive) fenced_.clear();
    inherited_.erase(order->cluster_id);
  }
}

void ShardLife::HearMessage(contract::SessionId session, const contract::OperatorMessage& message, MonoTime now) {
  if (!sessions_.contains(session)) return;
  if (const auto* blob = std::get_if<contract::BootstrapResponse>(&message)) {
    const bool limited = blob->ttl > Duration::zero();
    blobs_[blob->user_data] = limited ? std::optional(now + blob->ttl) : std::nullopt;
  } else if (const auto* rollup = std::get_if<contract::Rollup>(&message)) {
    awaited_.erase(rollup->cluster_id);
  } else if (const auto* ack = std::get_if<contract::ReclaimAck>(&message)) {
    for (auto& [machine, told] : told_) told.acknowledged |= told.instruction == ack->instruction_id;
  }
}

void ShardLife::HearAnswer(const shard::Core& core, const shard::Core::CallDone& done, MonoTime now) {
  const auto call = open_.find(done.id);
  if (call == open_.end()) return;
  const auto [machine, what] = call->second;
  open_.erase(call);
  const bool fenced = done.status.code() == Code::kFailedPrecondition;
  if (fenced) fenced_.insert(machine);
  const auto tracked = core.machines().tracked().find(machine);
  // A call that was fenced has done nothing: reads that began before its answer are as good as later ones.
  if (tracked != core.machines().tracked().end() && !fenced)
    ended_[machine] = {.step = steps_, .record = tracked->second.record};
  if (done.status.ok() || tracked == core.machines().tracked().end()) {
    failed_.erase(machine);
  } else {
    failed_[machine] = {.when = now, .state = tracked->second.record->state, .what = what};
  }
}

void ShardLife::JudgeReads(const shard::Core& core, uint64_t begun) {
  std::erase_if(ended_, [&](const auto& ended) {
    const auto tracked = core.machines().tracked().find(ended.first);
    if (tracked == core.machines().tracked().end() || tracked->second.record == ended.second.record) return false;
    check_(begun >= ended.second.step, [&] { return fmt::format("an old read of {} is believed", ended.first); });
    return true;
  });
}

bool ShardLife::HasSession(const std::string& cluster) const {
  return std::ranges::any_of(sessions_, [&](const auto& session) { return session.second == cluster; });
}

std::string ShardLife::ForWhom(const shard::Core& core, const std::string& machine) {
  const auto operation = core.executor().operations().find(machine);
  if (operation == core.executor().operations().end() || !operation->second.need) return "";
  return operation->second.need->cluster;
}

void ShardLife::JudgeDecision(const shard::Core& core, const contract::ActionView& action) {
  for (const std::string& cluster : {action.cluster_id, ForWhom(core, action.machine_id)}) {
    MayDecide(action.machine_id, cluster);
    const bool repairs = action.kind == "Repair" || action.kind == "Recreate";
    check_(cluster.empty() || repairs || HasSession(cluster), [&] {
      return fmt::format("{} of {} is decided for {}, which has no session", action.kind, action.machine_id, cluster);
    });
  }
}

void ShardLife::MayAct(const std::string& machine, const std::string& cluster, ActuationMode strictest) {
  for (const std::string& name : {std::string(), cluster}) {
    const auto mode = modes_.find(name);
    check_(mode == modes_.end() || mode->second <= strictest, [&] {
      return fmt::format("{} moves {} though {} is {}{}", config_.id, machine, name.empty() ? "it" : name,
                         contract::ActuationModeName(mode->second),
                         inherited_.contains(name) ? " since an earlier life" : "");
    });
  }
}

void ShardLife::JudgeTransition(const shard::Core& core, contract::CallId call, const Asked& asked,
                                const contract::FenceToken& fence, MonoTime now) {
  const std::string& machine = asked.machine;
  check_(fence.sequence > last_sequence_, [&] { return fmt::format("{} uses a sequence twice", config_.id); });
  last_sequence_ = fence.sequence;
  check_(fenced_.size() < 2 && !fenced_.contains(machine), [&] {
    return fmt::format("{} goes on with {} though it was fenced for {} machines", config_.id, machine, fenced_.size());
  });
  MayCall(machine, ForWhom(core, machine));
  const bool twice = std::ranges::any_of(open_, [&](const auto& open) { return open.second.machine == machine; });
  check_(!twice, [&] { return fmt::format("{} is in two transitions at once", machine); });
  open_[call] = asked;
  check_(open_.size() <= static_cast<size_t>(config_.execute_concurrency),
         [&] { return fmt::format("{} calls are in the provider's hands", open_.size()); });
  const auto failed = failed_.find(machine);
  const auto tracked = core.machines().tracked().find(machine);
  if (failed == failed_.end() || tracked == core.machines().tracked().end() || failed->second.what != asked.what)
    return;
  check_(now - failed->second.when >= config_.retry_first,
         [&] { return fmt::format("{} is tried again at once", machine); });
}

void ShardLife::JudgeConfigure(const contract::ConfigureRequest& request, MonoTime now) {
  MayCall(request.machine_id, request.cluster_id);
  check_(HasSession(request.cluster_id), [&] {
    return fmt::format("{} is bound to {}, which has no session", request.machine_id, request.cluster_id);
  });
  const auto blob = blobs_.find(request.bootstrap_blob);
  check_(blob != blobs_.end(), [&] { return fmt::format("{} is bound with a blob nobody sent", request.machine_id); });
  check_(blob == blobs_.end() || !blob->second || now < *blob->second,
         [&] { return fmt::format("{} is bound with a blob that is too old", request.machine_id); });
}

void ShardLife::JudgeDrain(const shard::Core& core, const contract::DrainRequest& request, MonoTime now) {
  const auto tracked = core.machines().tracked().find(request.machine_id);
  const std::string cluster = tracked == core.machines().tracked().end() ? "" : tracked->second.record->cluster;
  MayCall(request.machine_id, cluster);
  check_(HasSession(cluster),
         [&] { return fmt::format("{} is taken from {}, which has no session", request.machine_id, cluster); });
  const auto told = told_.find(request.machine_id);
  const bool waited =
      told != told_.end() && (told->second.acknowledged || now - told->second.when >= config_.ack_timeout);
  check_(waited, [&] { return fmt::format("{} is drained before {} could know", request.machine_id, cluster); });
}

}  // namespace muster::sim
