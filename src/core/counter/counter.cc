#include "core/counter/counter.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/codec.h"
#include "base/overloaded.h"
#include "base/probe.h"
#include "contract/core.h"

namespace muster::counter {
namespace {

// Rows of the durable state, besides those of the clients.
constexpr contract::Single<MirrorValue> kValue{"value"};
constexpr contract::Single<MirrorValue> kHeld{"held"};

}  // namespace

static_assert(contract::Core<Core>);

Result<Core> Core::Recover(Config config, const contract::Recovered& recovered) {
  State state{.config = std::move(config)};
  contract::RowReader reader("counter", "restore it from a backup");
  reader.Format(kFormat);
  reader.On(kValue, [&](const MirrorValue& row) {
    state.value = row.value;
    state.version = row.version;
  });
  reader.On(kHeld, [&](const MirrorValue& row) { state.held_for_peer = row; });
  reader.On(kClients, [&](const std::string& client, const Done& done) { state.clients[client] = done; });
  if (Status read = reader.Read(recovered); !read.ok()) return std::unexpected(std::move(read));
  // Versions the peer may miss are found by calling it: the wake is due at once.
  state.retry_at = MonoTime{};
  return Core(std::move(state));
}

std::optional<Core> Core::Load(std::string_view saved) {
  auto state = codec::FromBytes<State>(saved);
  if (!state || state->layout != State{}.layout) return std::nullopt;
  return Core(*std::move(state));
}

std::string Core::Save() const { return codec::ToBytes(state_); }

void Core::Step(const Event& event, Now now, std::vector<Effect>& out) {
  std::visit(Overloaded{
                 [&](const contract::Wake&) {
                   if (state_.retry_at && *state_.retry_at <= now.mono) state_.retry_at.reset();
                 },
                 [&](const Add& add) { OnAdd(add, out); },
                 [&](const Mirror& mirror) { OnMirror(mirror, out); },
                 [&](const CallDone& done) { OnCallDone(done, now); },
             },
             event);
  MirrorIfNeeded(out);
}

void Core::OnAdd(const Add& add, std::vector<Effect>& out) {
  const auto known = state_.clients.find(add.client);
  const Done last = known == state_.clients.end() ? Done{} : known->second;
  if (add.sequence == last.sequence && add.sequence > 0) {
    PROBE("counter.repeated_add");
    out.push_back(Answer{.request = add.request, .status = {}, .value = last.value, .version = state_.version});
    return;
  }
  if (add.sequence != last.sequence + 1) {
    PROBE("counter.stale_add");
    out.push_back(
        Answer{.request = add.request,
               .status = Status(Code::kFailedPrecondition, fmt::format("client {} sent sequence {}, expected {}",
                                                                       add.client, add.sequence, last.sequence + 1))});
    return;
  }
  int64_t sum = 0;
  if (__builtin_add_overflow(state_.value, add.amount, &sum)) {
    out.push_back(Answer{.request = add.request,
                         .status = Status(Code::kOutOfRange, fmt::format("adding {} to {} does not fit 64 bits",
                                                                         add.amount, state_.value))});
    return;
  }
  state_.value = sum;
  ++state_.version;
  const Done done{.sequence = add.sequence, .value = sum};
  state_.clients[add.client] = done;
  if (!MUTANT("counter.skip_persist")) {
    out.push_back(contract::Persist{{contract::kFormatRow.Put(kFormat),
                                     kValue.Put({.value = state_.value, .version = state_.version}),
                                     kClients.Put(add.client, done)}});
  }
  out.push_back(Answer{.request = add.request, .status = {}, .value = sum, .version = state_.version});
}

void Core::OnMirror(const Mirror& mirror, std::vector<Effect>& out) {
  if (mirror.mirror.version > state_.held_for_peer.version) {
    state_.held_for_peer = mirror.mirror;
    out.push_back(contract::Persist{{contract::kFormatRow.Put(kFormat), kHeld.Put(state_.held_for_peer)}});
  } else {
    PROBE("counter.old_mirror");
    if (MUTANT("counter.mirror_goes_back")) state_.held_for_peer = mirror.mirror;
  }
  out.push_back(Answer{.request = mirror.request, .status = {}, .version = state_.held_for_peer.version});
}

void Core::OnCallDone(const CallDone& done, Now now) {
  MUSTER_CHECK(state_.open_call == done.id, "the host ended call {}, which is not open", done.id);
  state_.open_call.reset();
  if (done.status.ok()) {
    MUSTER_CHECK(done.reply.has_value(), "call {} ended well without a reply", done.id);
    state_.mirrored_version = std::max(state_.mirrored_version, done.reply->version);
    return;
  }
  PROBE("counter.mirror_failed");
  state_.retry_at = now.mono + state_.config.retry_after;
}

void Core::MirrorIfNeeded(std::vector<Effect>& out) {
  if (state_.config.peer.empty() || state_.open_call || state_.retry_at) return;
  if (state_.mirrored_version >= state_.version) return;
  state_.open_call = ++state_.last_call;
  out.push_back(Call{.id = state_.last_call,
                     .to = state_.config.peer,
                     .request = {.value = state_.value, .version = state_.version},
                     .timeout = state_.config.call_timeout});
}

std::shared_ptr<const Snapshot> Core::View() const {
  return std::make_shared<const Snapshot>(Snapshot{.value = state_.value,
                                                   .version = state_.version,
                                                   .held_for_peer = state_.held_for_peer,
                                                   .mirrored_version = state_.mirrored_version});
}

void Core::CheckInvariants() const {
  MUSTER_CHECK(state_.open_call.value_or(0) <= state_.last_call);
  uint64_t changes = 0;
  for (const auto& [client, done] : state_.clients) changes += done.sequence;
  MUSTER_CHECK(changes == state_.version, "{} changes by clients, version {}", changes, state_.version);
}

}  // namespace muster::counter
