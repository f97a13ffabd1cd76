// What every core says to its host, whatever its role: store this, call that, answer him; and what it hears back.
//
// All are plain values with Fields, so that a step can be hashed, journaled and replayed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "base/time.h"

namespace muster::contract {

// Event: a moment the core asked for with NextWake() has come.
struct Wake {
  MUSTER_FIELDS(Wake)
};

// One row of a core's own durable state; no value means the row is removed.
struct Write {
  std::string key;
  std::optional<std::string> value;

  MUSTER_FIELDS(Write, key, value)
};

// Effect, and a barrier: what comes after it happens only once these writes are durable, all of them together.
struct Persist {
  std::vector<Write> writes;

  MUSTER_FIELDS(Persist, writes)
};

// What was durable when a core starts: every row it ever persisted and did not remove.
using Recovered = std::map<std::string, std::string>;

// Names a call among those a core has open. Chosen by the core, never reused within one life of it.
using CallId = uint64_t;

// Effect: ask another party. The host answers with exactly one CallDone while the core lives: the reply, or
// DEADLINE_EXCEEDED after `timeout`, or UNAVAILABLE.
template <class Request>
struct Call {
  CallId id = 0;
  std::string to;
  Request request;
  Duration timeout{};

  MUSTER_FIELDS(Call, id, to, request, timeout)
};

// Event: how a call ended. `reply` is there exactly when `status` is OK.
template <class Reply>
struct CallDone {
  CallId id = 0;
  Status status;
  std::optional<Reply> reply;

  MUSTER_FIELDS(CallDone, id, status, reply)
};

// Names a request somebody made of this core and waits for; the host chose it. An Answer effect carries it back.
using RequestId = uint64_t;

}  // namespace muster::contract
