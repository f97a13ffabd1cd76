#include "sim/shard_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/shard/demand.h"
#include "core/shard/executor.h"
#include "core/shard/holds.h"
#include "core/shard/lifecycle.h"
#include "core/shard/machines.h"
#include "model/machine.h"

namespace muster::sim {
namespace {

// "spot in a": a stock class.
std::string NameOf(const std::string& type, const std::string& zone) { return fmt::format("{} in {}", type, zone); }

// Whether a Create that failed says so: by the code of its call, or where the transition ended in Failed, by the code
// that the provider puts into last_error. A refusal with another code may name the last error of its machine.
bool IsStockOut(const contract::ActionView& action) {
  constexpr std::string_view kCode = "RESOURCE_EXHAUSTED";
  return action.outcome == "failed" ? action.error.contains(kCode) : action.error.starts_with(kCode);
}

struct Transition {
  std::string machine;
  contract::FenceToken fence;
};

std::optional<Transition> TransitionOf(const contract::ProviderRequest& request) {
  return std::visit(
      [](const auto& body) -> std::optional<Transition> {
        if constexpr (requires { body.fence; }) {
          return Transition{body.machine_id, body.fence};
        } else {
          return std::nullopt;
        }
      },
      request);
}

}  // namespace

void ShardJudge::Begins(const Who& who, const shard::Config& config, const contract::Recovered& rows, MonoTime now) {
  config_ = config;
  const auto check = [this](bool holds, const std::function<std::string()>& what) { Check(holds, what); };
  lives_.erase(who.node);
  seen_.erase(who.node);
  std::erase_if(inherited_, [&](const auto& known) { return known.first.first == who.node; });
  for (const auto& [key, bytes] : rows) {
    const auto hold = shard::kHoldRows.KeyOf(key);
    if (!hold || !hold->machine.empty()) continue;
    inherited_[{who.node, hold->kind == shard::HoldKind::kCluster
                              ? hold->cluster
                              : NameOf(hold->stock.instance_type, hold->stock.zone)}] = now;
  }
  lives_.emplace(who.node, std::pair(who.life, ShardLife(config, rows, confirmed_[who.node], now, check)));
}

void ShardJudge::Stepped(const Who& who, const shard::Core& core, Now now, const shard::Core::Event& event,
                         std::span<const shard::Core::Effect> effects) {
  auto& [life, judged] = lives_.at(who.node);
  Check(life == who.life, [&] { return fmt::format("node {} lives twice", who.node); });
  judged.Stepped(core, now, event, effects);
  for (const shard::Core::Effect& effect : effects) {
    if (const auto* audit = std::get_if<shard::Audit>(&effect)) {
      CountReclaim(who, core, audit->action, now.mono);
      CountFailure(who, core, audit->action, now.mono);
    }
  }
  FollowSuccesses(who, core, now.mono);
  for (const shard::Core::Effect& effect : effects) {
    if (const auto* call = std::get_if<shard::Core::Call>(&effect)) {
      JudgeHolds(who, core, *call, now.mono);
    }
  }
}

void ShardJudge::FollowSuccesses(const Who& who, const shard::Core& core, MonoTime now) {
  using model::MachineState;
  for (const auto& [id, tracked] : core.machines().tracked()) {
    const MachineState state = tracked.record->state;
    const auto [seen, first] = seen_[who.node].try_emplace(id, state);
    const MachineState before = std::exchange(seen->second, state);
    if (before == state || state != MachineState::kConfigured) continue;
    const auto known = failures_.find({who.node, tracked.record->cluster});
    if (known == failures_.end() || known->second.empty()) continue;
    // One that comes while the cluster is held, together with a failure, or as a surprise, may not count.
    std::deque<Failure>& failures = known->second;
    const bool counts = before == MachineState::kConfiguring && failures.size() < 3 && failures.back().when != now;
    if (counts) {
      failures_.erase(known);
    } else {
      for (Failure& failure : failures) failure.unsure = true;
    }
  }
}

void ShardJudge::ClockSet() {
  for (auto& [key, failures] : failures_) {
    for (Failure& failure : failures) failure.unsure = true;
  }
}

std::string ShardJudge::ClassOf(const shard::Core& core, const std::string& machine) {
  const auto tracked = core.machines().tracked().find(machine);
  if (tracked == core.machines().tracked().end()) return "";
  return NameOf(tracked->second.record->instance_type, tracked->second.record->zone);
}

void ShardJudge::CountFailure(const Who& who, const shard::Core& core, const contract::ActionView& action,
                              MonoTime now) {
  const bool creates = action.kind == "Provision" || action.kind == "Recreate";
  if (!creates && action.kind != "Bootstrap") return;
  const bool refused = action.outcome == "provider_error" && !action.error.starts_with("UNAVAILABLE") &&
                       !action.error.starts_with("DEADLINE_EXCEEDED");
  const bool failed = action.outcome == "failed" || action.outcome == "blob_error" || action.outcome == "blob_timeout";
  if (!refused && !failed) return;
  // Its data went with a session: the cluster's template has not failed.
  if (!creates && refused && action.error.starts_with("ABORTED")) return;
  const std::string key = creates ? ClassOf(core, action.machine_id) : action.cluster_id;
  std::deque<Failure>& failures = failures_[{who.node, key}];
  // What is held already is not held anew. After so long a hold has passed and is forgotten.
  if (!failures.empty() && now - failures.back().when > 5 * config_.hold_longest) failures.clear();
  // One that comes while a hold of an earlier life is in force, or its probe is under way, begins none.
  const auto inherited = inherited_.find({who.node, key});
  const bool may_be_held = inherited != inherited_.end() && now - inherited->second <= 2 * config_.hold_longest;
  const bool unsure = failures.empty() ? may_be_held : failures.front().unsure;
  failures.push_back({.action = action,
                      .when = now,
                      .life = who.life,
                      .out_of_stock = creates && IsStockOut(action),
                      .unsure = unsure});
}

std::optional<MonoTime> ShardJudge::HeldSince(const Who& who, const std::string& key) {
  const auto known = failures_.find({who.node, key});
  if (known == failures_.end()) return std::nullopt;
  std::deque<Failure>& failures = known->second;
  // What an earlier life saw and did not live to write down has not happened.
  std::erase_if(failures, [&](const Failure& failure) { return failure.life != who.life && !failure.durable; });
  if (failures.empty() || failures.front().unsure) return std::nullopt;
  if (failures.front().out_of_stock) return failures.front().when;
  if (failures.size() < 3 || failures[2].when - failures[0].when >= config_.hold_window) return std::nullopt;
  return failures[2].when;
}

void ShardJudge::JudgeHolds(const Who& who, const shard::Core& core, const shard::Core::Call& call, MonoTime now) {
  const auto* create = std::get_if<contract::CreateRequest>(&call.request);
  const auto* configure = std::get_if<contract::ConfigureRequest>(&call.request);
  if (create == nullptr && configure == nullptr) return;
  const std::string& machine = create != nullptr ? create->machine_id : configure->machine_id;
  const auto operation = core.executor().operations().find(machine);
  if (operation == core.executor().operations().end() || operation->second.kind == shard::OperationKind::kRecreate)
    return;
  const std::string key = create != nullptr ? ClassOf(core, machine) : configure->cluster_id;
  const auto since = HeldSince(who, key);
  // Successes of a class are not seen here, so that only a stock-out counts for it.
  if (!since || (create != nullptr && !failures_.at({who.node, key}).front().out_of_stock)) return;
  Check(now - *since >= config_.hold_first, [&] {
    return create != nullptr ? fmt::format("{} is bought while {} is out of stock", machine, key)
                             : fmt::format("{} is bound to {}, whose Configures fail", machine, key);
  });
}

void ShardJudge::CountReclaim(const Who& who, const shard::Core& core, const contract::ActionView& action,
                              MonoTime now) {
  if (action.kind != "Reclaim" || action.outcome != "pending") return;
  Check(core.demand().HasAccepted(action.cluster_id), [&] {
    return fmt::format("{} is reclaimed from {}, whose demand is not known", action.machine_id, action.cluster_id);
  });
  if (who.zombie) return;
  std::deque<Reclaimed>& reclaims = reclaims_[{who.node, action.cluster_id}];
  // What an earlier life decided and did not live to write down has not happened.
  std::erase_if(reclaims, [&](const Reclaimed& reclaimed) {
    return now - reclaimed.when >= config_.reclaim_window || (reclaimed.life != who.life && !reclaimed.durable);
  });
  reclaims.push_back({.when = now, .life = who.life});
  // Clusters here are so small that their budget is one machine.
  Check(reclaims.size() <= 1, [&] {
    return fmt::format("{} loses {} machines within the window of its budget", action.cluster_id, reclaims.size());
  });
}

void ShardJudge::Audited(const Who& who, const contract::ActionView& action) {
  for (auto& [key, failures] : failures_) {
    if (key.first != who.node || action.outcome == "pending" || action.outcome == "success") continue;
    for (Failure& failure : failures) {
      failure.durable = failure.durable || (failure.life == who.life && failure.action == action);
    }
  }
  if (action.kind != "Reclaim" || action.outcome != "pending") return;
  for (Reclaimed& reclaimed : reclaims_[{who.node, action.cluster_id}]) {
    reclaimed.durable = reclaimed.durable || reclaimed.life == who.life;
  }
}

void ShardJudge::Calls(const Who& who, const contract::ProviderRequest& request, const SimCluster* cluster,
                       const contract::Recovered& durable) {
  const auto transition = TransitionOf(request);
  if (!transition) return;
  const contract::FenceToken& fence = transition->fence;
  const auto [owner, first] = epochs_.emplace(std::pair(fence.shard_id, fence.epoch), std::pair(who.node, who.life));
  Check(owner->second == std::pair(who.node, who.life),
        [&] { return fmt::format("two lives of {} use epoch {}", fence.shard_id, fence.epoch); });
  int64_t& highest = highest_[fence.shard_id];
  highest = std::max(highest, fence.epoch);
  const auto stored = durable.find(shard::kEpochRow.key());
  Check(stored != durable.end() && stored->second == shard::kEpochRow.Put(fence.epoch).value,
        [&] { return fmt::format("{} calls with epoch {}, which is not on its disk", fence.shard_id, fence.epoch); });
  const auto* configure = std::get_if<contract::ConfigureRequest>(&request);
  if (configure == nullptr) return;
  Check(cluster != nullptr && cluster->Gave(configure->bootstrap_blob), [&] {
    return fmt::format("{} is bound with a blob that {} never gave", transition->machine, configure->cluster_id);
  });
}

void ShardJudge::Passed(const contract::ProviderRequest& request) {
  const auto transition = TransitionOf(request);
  if (!transition) return;
  const contract::FenceToken& fence = transition->fence;
  const auto [newest, first] = passed_.emplace(std::pair(fence.shard_id, transition->machine), fence.epoch);
  Check(newest->second <= fence.epoch, [&] {
    return fmt::format("a call of epoch {} to {} passed after one of {}", fence.epoch, transition->machine,
                       newest->second);
  });
  newest->second = fence.epoch;
}

void ShardJudge::AfterCycle(const Who& who, const shard::Core& core,
                            const std::map<std::string, SimCluster*>& clusters) {
  Check(core.verdict().ok(), [&] { return fmt::format("node {}: {}", who.node, core.verdict().ToString()); });
  for (const auto& [id, tracked] : core.machines().tracked()) {
    const Status sound = model::CheckStructure(*tracked.record);
    Check(sound.ok(), [&] { return "tracked: " + sound.message(); });
  }
  for (const auto& [name, cluster] : core.demand().clusters()) {
    const auto known = clusters.find(name);
    if (!cluster.accepted || known == clusters.end()) continue;
    Check(known->second->Meant(cluster.came), [&] {
      return fmt::format("a demand is in force that {} never meant{}", name, known->second->WhyNotMeant(cluster.came));
    });
  }
}

void ShardJudge::Disjoint(const shard::Core& a, const shard::Core& b) {
  for (const auto& [id, tracked] : a.machines().tracked()) {
    Check(!b.machines().tracked().contains(id), [&] { return fmt::format("two shards own {}", id); });
  }
}

void ShardJudge::Confirmed(size_t node, const std::string& cluster, contract::ActuationMode mode) {
  confirmed_[node][cluster] = mode;
}

void ShardJudge::Lost(size_t node, const std::string& shard) {
  confirmed_.erase(node);
  std::erase_if(reclaims_, [&](const auto& known) { return known.first.first == node; });
  std::erase_if(failures_, [&](const auto& known) { return known.first.first == node; });
  std::erase_if(epochs_, [&](const auto& known) { return known.first.first == shard; });
}

int64_t ShardJudge::HighestEpoch(const std::string& shard) const {
  const auto known = highest_.find(shard);
  return known == highest_.end() ? 0 : known->second;
}

}  // namespace muster::sim
