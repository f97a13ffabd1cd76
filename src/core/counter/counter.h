// Counter: the example core, small enough to read in one sitting and complete enough to show every rule of
// contract/core.h: a persisted value, a remote call with a timeout, requests answered after the barrier, a timer.
//
// Clients add to the counter; a request is named by (client, sequence) and counts once however often it arrives. After
// each change the counter calls its peer to mirror the new value, one call at a time, and tries again after a pause
// when the call fails. The peer, another Counter, keeps the mirrored value beside its own.
//
// Invariants: (1) an answered Add is in the durable value; (2) no peer ever mirrors a value that is not durable here;
// (3) a mirrored value never goes down. Thread-safety: none, as for every core.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/effects.h"
#include "contract/tables.h"

namespace muster::counter {

struct Config {
  std::string peer;  // the counter that mirrors this one; empty: none
  Duration call_timeout = 1s;
  Duration retry_after = 500ms;

  MUSTER_FIELDS(Config, peer, call_timeout, retry_after)
};

// Event: a client's request. `sequence` grows by one with each new request of a client, from 1.
struct Add {
  contract::RequestId request = 0;
  std::string client;
  uint64_t sequence = 0;
  int64_t amount = 0;

  MUSTER_FIELDS(Add, request, client, sequence, amount)
};

// What is asked of a peer. As an event it carries the RequestId to answer to.
struct MirrorValue {
  int64_t value = 0;
  uint64_t version = 0;  // number of changes made so far: a late or repeated call is recognised by it

  MUSTER_FIELDS(MirrorValue, value, version)
};
struct Mirror {
  contract::RequestId request = 0;
  MirrorValue mirror;

  MUSTER_FIELDS(Mirror, request, mirror)
};

// Effect: the answer to an Add (the value after it) or a Mirror (the version held).
struct Answer {
  contract::RequestId request = 0;
  Status status;
  int64_t value = 0;
  uint64_t version = 0;

  MUSTER_FIELDS(Answer, request, status, value, version)
};
struct MirrorReply {
  uint64_t version = 0;

  MUSTER_FIELDS(MirrorReply, version)
};

struct Snapshot {
  int64_t value = 0;
  uint64_t version = 0;
  MirrorValue held_for_peer;
  uint64_t mirrored_version = 0;  // the peer is known to hold this version of ours
};

// Of the durable rows. A row that an older build cannot read raises it.
inline constexpr uint64_t kFormat = 1;

class Core {
 public:
  static constexpr std::string_view kName = "counter";
  using Call = contract::Call<MirrorValue>;
  using CallDone = contract::CallDone<MirrorReply>;
  using Event = std::variant<contract::Wake, Add, Mirror, CallDone>;
  using Effect = std::variant<contract::Persist, Call, Answer>;
  using Snapshot = counter::Snapshot;

  // A core with what an earlier life left durable. DATA_LOSS, naming the row, if that cannot be read.
  static Result<Core> Recover(Config config, const contract::Recovered& recovered);
  static std::optional<Core> Load(std::string_view saved);
  std::string Save() const;

  void Step(const Event& event, Now now, std::vector<Effect>& out);
  std::optional<MonoTime> NextWake() const { return state_.retry_at; }
  std::shared_ptr<const Snapshot> View() const;
  void CheckInvariants() const;

 private:
  // The last request of a client and the value after it, to answer a repetition the same way.
  struct Done {
    uint64_t sequence = 0;
    int64_t value = 0;

    MUSTER_FIELDS(Done, sequence, value)
  };
  static constexpr contract::Table<std::string, Done> kClients{"client/"};
  struct State {
    uint64_t layout = 1;  // raised with each other form of the state, an event or an effect
    Config config;
    // Durable: written in the step that changes them.
    int64_t value = 0;
    uint64_t version = 0;
    MirrorValue held_for_peer;
    std::map<std::string, Done> clients;
    // Forgotten by a restart.
    uint64_t mirrored_version = 0;
    contract::CallId last_call = 0;
    std::optional<contract::CallId> open_call;
    std::optional<MonoTime> retry_at;

    MUSTER_FIELDS(State, layout, config, value, version, held_for_peer, clients, mirrored_version, last_call, open_call,
                  retry_at)
  };

  explicit Core(State state) : state_(std::move(state)) {}

  void OnAdd(const Add& add, std::vector<Effect>& out);
  void OnMirror(const Mirror& mirror, std::vector<Effect>& out);
  void OnCallDone(const CallDone& done, Now now);
  // Calls the peer if it lacks our version, no call is open and no pause is running.
  void MirrorIfNeeded(std::vector<Effect>& out);

  State state_;
};

}  // namespace muster::counter
