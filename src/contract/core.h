// Core: the shape of every role. A single-threaded state machine: an event and the time in, effects out.
//
// Inside a core there is no clock, thread, socket, file, log or entropy; the same object runs under a thread
// (host/thread_host.h) and under the simulator (sim/sim_host.h). Rules a host relies on:
//   1. Step depends on nothing but the core's state, the event and `now`. Same in, same out, byte for byte.
//   2. Effects happen in order; those after a Persist wait until it is durable, also across steps.
//   3. A continuation is a row: the core keeps what it needs to know about an open call under its CallId, and expects
//      exactly one CallDone for it. After a restart the rows are gone, and so are the calls.
//   4. NextWake() may change with every step; at or after that moment the host sends Wake.
//   5. Save() is the whole state, config included; a core loaded from it behaves the same from there on. Journals
//      start from it.
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "contract/effects.h"

namespace muster::contract {

template <class C>
concept Core = requires(C core, const C const_core, const typename C::Event& event, Now now,
                        std::vector<typename C::Effect>& out, std::string_view bytes) {
  typename C::Call;      // contract::Call<...>, an alternative of Effect
  typename C::CallDone;  // contract::CallDone<...>, an alternative of Event
  typename C::Snapshot;  // immutable view for readers on other threads
  { C::kName } -> std::convertible_to<std::string_view>;
  { core.Step(event, now, out) } -> std::same_as<void>;
  { const_core.NextWake() } -> std::same_as<std::optional<MonoTime>>;
  { const_core.View() } -> std::same_as<std::shared_ptr<const typename C::Snapshot>>;
  { const_core.CheckInvariants() } -> std::same_as<void>;
  { const_core.Save() } -> std::same_as<std::string>;
  { C::Load(bytes) } -> std::same_as<std::optional<C>>;
};

}  // namespace muster::contract
