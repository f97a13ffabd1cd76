#include "sim/shard_judge.h"

#include <fmt/format.h>

#include "model/machine.h"

namespace muster::sim {
namespace {

// Effects wait behind the disk, which may stall for two seconds and more than once: what was true when the core decided
// may be over for so long when the call leaves.
constexpr Duration kSlack = 7s;
constexpr Duration kLogSlack = 4s;  // where it waits for one write only

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

void ShardJudge::Calls(const Who& who, const contract::ProviderRequest& request, const SimCluster* cluster,
                       std::optional<MonoTime> session, MonoTime now) {
  const auto transition = TransitionOf(request);
  if (!transition) return;
  const contract::FenceToken& fence = transition->fence;
  const auto [owner, first] = epochs_.emplace(std::pair(fence.shard_id, fence.epoch), who);
  Check(owner->second.node == who.node && owner->second.life == who.life,
        [&] { return fmt::format("two lives of {} use epoch {}", fence.shard_id, fence.epoch); });
  Check(fence.epoch > 0, [&] { return fmt::format("{} calls without an epoch", fence.shard_id); });
  const auto fenced = fenced_.find(who);
  Check(fenced == fenced_.end() || now - fenced->second < kLogSlack,
        [&] { return fmt::format("{} goes on though it was fenced", fence.shard_id); });
  const auto not_paused = [&](const std::string& name) {
    const auto paused = paused_.find({who.node, name});
    Check(paused == paused_.end() || now - paused->second < kSlack, [&] {
      return fmt::format("{} moves {} though {} is paused", fence.shard_id, transition->machine,
                         name.empty() ? "it" : name);
    });
  };
  not_paused("");
  if (cluster == nullptr) return;
  not_paused(cluster->name());
  Check(session && now - *session < kSlack, [&] {
    return fmt::format("{} moves {} for {}, which has no session", fence.shard_id, transition->machine,
                       cluster->name());
  });
  if (const auto* configure = std::get_if<contract::ConfigureRequest>(&request)) {
    const auto blob = cluster->blobs().find(configure->bootstrap_blob);
    Check(blob != cluster->blobs().end() && blob->second.cluster == configure->cluster_id, [&] {
      return fmt::format("{} is bound with a blob that {} never gave", transition->machine, cluster->name());
    });
    const bool fresh = blob == cluster->blobs().end() || !blob->second.until || now <= *blob->second.until;
    Check(fresh, [&] { return fmt::format("{} is bound with a blob that is too old", transition->machine); });
  } else {
    Check(cluster->WasTold(transition->machine),
          [&] { return fmt::format("{} is drained and {} was never told", transition->machine, cluster->name()); });
  }
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

void ShardJudge::Audits(const Who& who, const shard::Core& core, const contract::ActionView& action, MonoTime now) {
  if (action.kind != "Reclaim" || action.outcome != "pending" || who.zombie) return;
  const auto cluster = core.clusters().find(action.cluster_id);
  Check(cluster != core.clusters().end() && cluster->second.accepted, [&] {
    return fmt::format("{} is reclaimed from {}, whose demand is not known", action.machine_id, action.cluster_id);
  });
  std::deque<MonoTime>& reclaims = reclaims_[{who.node, action.cluster_id}];
  // Clusters here are so small that their budget is one machine. The line of the log came after the disk.
  while (!reclaims.empty() && now - reclaims.front() >= reclaim_window_ - kLogSlack) reclaims.pop_front();
  reclaims.push_back(now);
  Check(reclaims.size() <= 1, [&] {
    return fmt::format("{} loses {} machines within the window of its budget", action.cluster_id, reclaims.size());
  });
}

void ShardJudge::AfterCycle(const Who& who, const shard::Core& core,
                            const std::map<std::string, SimCluster*>& clusters) {
  Check(core.verdict().ok(), [&] { return fmt::format("node {}: {}", who.node, core.verdict().ToString()); });
  for (const auto& [id, tracked] : core.machines()) {
    const Status sound = model::CheckStructure(*tracked.record);
    Check(sound.ok(), [&] { return "tracked: " + sound.message(); });
  }
  for (const auto& [name, cluster] : core.clusters()) {
    const auto known = clusters.find(name);
    if (!cluster.accepted || known == clusters.end()) continue;
    Check(known->second->Meant(cluster.came),
          [&] { return fmt::format("a demand is in force that {} never meant", name); });
  }
}

void ShardJudge::Disjoint(const shard::Core& a, const shard::Core& b) {
  for (const auto& [id, tracked] : a.machines()) {
    Check(!b.machines().contains(id), [&] { return fmt::format("two shards own {}", id); });
  }
}

}  // namespace muster::sim
