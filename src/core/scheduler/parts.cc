#include "core/scheduler/parts.h"

#include <utility>

#include "base/codec.h"

namespace muster::scheduler {

Parts::Parts(SavedState state)
    : config(std::move(state.config)),
      standing(std::move(state.standing)),
      copy(config, std::move(state.copy)),
      drafts(config, copy, std::move(state.drafts)),
      health(config, copy, drafts, std::move(state.health)),
      rooms(config, copy, drafts, std::move(state.rooms)),
      quota(copy, drafts, std::move(state.quota)),
      refusals(std::move(state.refusals)),
      calls(config, std::move(state.calls)),
      orphans(config, copy, health, drafts, calls, std::move(state.orphans)),
      transitions(config, copy, drafts),
      coming(std::move(state.coming)),
      placements(config, copy, drafts, health, rooms, transitions, coming, std::move(state.placements)),
      reconciler({.config = config,
                  .copy = copy,
                  .drafts = drafts,
                  .health = health,
                  .rooms = rooms,
                  .transitions = transitions,
                  .placements = placements,
                  .calls = calls},
                 std::move(state.reconciler)),
      edits(config, drafts, rooms),
      sets(copy, drafts, edits, std::move(state.sets)),
      evictions(copy, drafts, transitions, std::move(state.evictions)),
      requests({.config = config,
                .standing = standing,
                .copy = copy,
                .drafts = drafts,
                .edits = edits,
                .health = health,
                .calls = calls,
                .sets = sets,
                .quota = quota,
                .refusals = refusals,
                .orphans = orphans,
                .reconciler = reconciler},
               std::move(state.requests)),
      views(copy, health, rooms, orphans, reconciler),
      queries(standing, copy, rooms, quota, views),
      next_pass(state.next_pass),
      passes(state.passes),
      next_wave(state.next_wave) {}

std::string Parts::Save() const {
  std::string bytes;
  codec::Writer writer(bytes);
  const auto save = [&](const auto&... states) { (codec::Encode(writer, states), ...); };
  save(kLayout, config, standing.state(), copy.state(), drafts.state(), health.state(), rooms.state(), quota.state(),
       refusals.state(), calls.state(), orphans.state(), coming.state(), placements.state(), reconciler.state(),
       sets.state(), evictions.state(), requests.state(), next_pass, passes, next_wave);
  return bytes;
}

void Parts::Rebuild() {
  for (const auto& [id, record] : copy.All<NodeRecord>()) rooms.SyncNode(id, health.Now(id));
  rooms.Refill();
  quota.Rebuild();
}

void Parts::CheckInvariants() const {
  copy.CheckInvariants();
  drafts.CheckInvariants();
  health.CheckInvariants();
  rooms.CheckInvariants();
  quota.CheckInvariants();
  calls.CheckInvariants();
  orphans.CheckInvariants();
  placements.CheckInvariants();
  reconciler.CheckInvariants();
  evictions.CheckInvariants();
  requests.CheckInvariants();
}

}  // namespace muster::scheduler
