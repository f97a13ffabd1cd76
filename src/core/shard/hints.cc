#include "core/shard/hints.h"

#include <algorithm>

#include "core/shard/narrow.h"

namespace muster::shard {
namespace {

using contract::Confidence;

constexpr int64_t kMostShares = 100;  // of the interval

contract::AvailableCapacity HintOf(const engine::fast::Available& available) {
  const Confidence confidence = available.idle > 0          ? Confidence::kHigh
                                : available.speculative > 0 ? Confidence::kMedium
                                : available.in_use          ? Confidence::kLow
                                                            : Confidence::kNone;
  return {.supersedes_key = "available:" + available.profile.fingerprint(),
          .requirements = available.profile.requirements(),
          .resources = available.each,
          .available_count = Narrow(available.idle + available.speculative),
          .confidence = confidence,
          .cost_per_hour = available.price};
}

}  // namespace

void Hints::Send(StepContext& ctx) {
  if (ctx.now.mono < state_.next) return;
  const auto count = static_cast<int64_t>(deps_.clusters.names().size());
  const int64_t shares = std::clamp<int64_t>(count, 1, kMostShares);
  state_.next = ctx.now.mono + deps_.config.hints_interval / shares;
  for (int64_t i = 0; i < (count + shares - 1) / shares; ++i) {
    auto cluster = deps_.clusters.names().upper_bound(state_.last_cluster);
    if (cluster == deps_.clusters.names().end()) cluster = deps_.clusters.names().begin();
    state_.last_cluster = *cluster;
    if (deps_.sessions.Has(*cluster)) SendTo(*cluster, ctx);
  }
}

void Hints::SendTo(const std::string& cluster, StepContext& ctx) {
  ByKey& sent = state_.sent[cluster];
  ByKey hints;
  for (const engine::fast::Available& available : deps_.engine.engine().AvailableTo(cluster)) {
    contract::AvailableCapacity hint = HintOf(available);
    const auto before = sent.find(hint.supersedes_key);
    if (before == sent.end() || before->second != hint) deps_.sessions.Send(cluster, hint, ctx);
    std::string key = hint.supersedes_key;
    hints.emplace(std::move(key), std::move(hint));
  }
  sent = std::move(hints);
}

}  // namespace muster::shard
