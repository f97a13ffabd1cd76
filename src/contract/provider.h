// What a shard and a provider say to each other: the six calls of the capacity provider as plain values, and the one
// asynchronous port both ends share. The provider's shell implements it in front of its core; the gRPC client
// implements it in front of somebody else's provider; whoever calls cannot tell them apart.
//
// The fields are those of the wire (docs/wire.md), one to one, with two differences: amounts, prices and probabilities
// are the model's integers, because they are parsed once, at the border; and a token is one value, because its three
// parts mean nothing alone.
//
// Codes a provider answers with, in the order it looks: INVALID_ARGUMENT (no machine id), FAILED_PRECONDITION (fenced,
// and nothing else), NOT_FOUND, then ABORTED for a machine that is not where the call needs it; UNIMPLEMENTED where the
// kind of machine cannot do it; UNAVAILABLE while its state cannot be stored.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/codec.h"
#include "base/fields.h"
#include "base/status.h"
#include "base/time.h"
#include "model/machine.h"
#include "model/machine_digest.h"

namespace muster::contract {

// Client deadlines: a transition is only accepted, not waited for; a list may be large.
constexpr Duration kProviderCallTimeout = 30s;
constexpr Duration kProviderListTimeout = 2min;

// Which attempt of which shard this is. Every attempt draws a new sequence, retries too; a restart of the shard a
// higher epoch. All three empty is a call without a token, which is not fenced; with a shard named, (0, 0) is an
// ordinary token.
struct FenceToken {
  std::string shard_id;
  int64_t epoch = 0;
  int64_t sequence = 0;

  bool given() const { return !shard_id.empty() || epoch != 0 || sequence != 0; }
  bool operator==(const FenceToken&) const = default;
  MUSTER_FIELDS(FenceToken, shard_id, epoch, sequence)
};

// Speculative -> Creating -> Idle.
struct CreateRequest {
  std::string machine_id;
  FenceToken fence;

  bool operator==(const CreateRequest&) const = default;
  MUSTER_FIELDS(CreateRequest, machine_id, fence)
};

// Idle -> Configuring -> Configured. The blob makes the machine a node of the cluster and is a secret. The metadata is
// the shard's own memory: any bytes, echoed as given while the machine is bound.
struct ConfigureRequest {
  std::string machine_id;
  std::string cluster_id;
  std::string bootstrap_blob;
  FenceToken fence;
  std::map<std::string, std::string> shard_metadata;

  bool operator==(const ConfigureRequest&) const = default;
  MUSTER_FIELDS(ConfigureRequest, machine_id, cluster_id, bootstrap_blob, fence, shard_metadata)
};

// Configured -> Draining -> Idle, at the latest when the grace is over.
struct DrainRequest {
  std::string machine_id;
  int64_t grace_period_seconds = 0;
  FenceToken fence;

  bool operator==(const DrainRequest&) const = default;
  MUSTER_FIELDS(DrainRequest, machine_id, grace_period_seconds, fence)
};

// Idle (or, to repair it, Failed) -> Deleting -> Speculative.
struct DeleteRequest {
  std::string machine_id;
  FenceToken fence;

  bool operator==(const DeleteRequest&) const = default;
  MUSTER_FIELDS(DeleteRequest, machine_id, fence)
};

struct GetRequest {
  std::string machine_id;

  bool operator==(const GetRequest&) const = default;
  MUSTER_FIELDS(GetRequest, machine_id)
};

// `states` empty: all of them. `max_results` 0: no cap; a negative one counts as 0. `since_revision` is what a list
// answered: only what changed since, or the rest of a capped one; empty, or anything the provider does not know:
// everything.
struct ListRequest {
  std::vector<model::MachineState> states;
  int32_t max_results = 0;
  std::string since_revision;

  bool operator==(const ListRequest&) const = default;
  MUSTER_FIELDS(ListRequest, states, max_results, since_revision)
};

// A machine record that many may hold and nobody changes: a list of 100,000 copies pointers, and whoever encodes it
// does so on its own thread. Its digest is made with it, by whoever decoded it. Never empty: the default is a record
// without an id.
class MachineRecord {
 public:
  MachineRecord() = default;
  explicit MachineRecord(model::Machine machine) : body_(std::make_shared<const Body>(std::move(machine))) {}

  const model::Machine& operator*() const { return body().machine; }
  const model::Machine* operator->() const { return &**this; }
  const model::MachineDigest& digest() const { return body().digest; }
  bool operator==(const MachineRecord& other) const { return **this == *other; }
  // Asks for the memory of the record, for whoever will copy it in a moment: thousands of them lie all over the place.
  void Prefetch() const { __builtin_prefetch(body_.get(), 1); }

  friend void Encode(codec::Writer& writer, const MachineRecord& record) { codec::Encode(writer, *record); }
  friend bool Decode(codec::Reader& reader, MachineRecord& record) {
    model::Machine machine;
    if (!codec::Decode(reader, machine)) return false;
    record = MachineRecord(std::move(machine));
    return true;
  }
  friend std::string Describe(const MachineRecord& record) { return codec::Describe(*record); }

 private:
  struct Body {
    explicit Body(model::Machine from) : machine(std::move(from)), digest(model::DigestOf(machine)) {}
    model::Machine machine;
    model::MachineDigest digest;
  };
  const Body& body() const {
    static const Body nobody{model::Machine{}};
    return body_ ? *body_ : nobody;
  }
  std::shared_ptr<const Body> body_;
};

// The transition is accepted and durable; its end is seen by Get or List. A repeated call for the same target gives the
// same operation id.
struct TransitionAck {
  std::string operation_id;
  MachineRecord machine;

  bool operator==(const TransitionAck&) const = default;
  MUSTER_FIELDS(TransitionAck, operation_id, machine)
};

struct GetReply {
  MachineRecord machine;

  bool operator==(const GetReply&) const = default;
  MUSTER_FIELDS(GetReply, machine)
};

// A record of a list that is no machine: what the client read of it, and which field is wrong with what.
struct RejectedMachine {
  std::string id;
  std::string reason;

  bool operator==(const RejectedMachine&) const = default;
  MUSTER_FIELDS(RejectedMachine, id, reason)
};

// `revision` is any bytes: the cursor of the next call. `rejected` is filled by clients only.
struct ListReply {
  std::vector<MachineRecord> machines;
  std::string revision;
  std::vector<RejectedMachine> rejected;

  bool operator==(const ListReply&) const = default;
  MUSTER_FIELDS(ListReply, machines, revision, rejected)
};

// The four transitions are answered with a TransitionAck.
using ProviderRequest =
    std::variant<CreateRequest, ConfigureRequest, DrainRequest, DeleteRequest, GetRequest, ListRequest>;
using ProviderReply = std::variant<TransitionAck, GetReply, ListReply>;

// The port. Thread-safety: any thread may ask, and `done` may run on any thread, also before Ask returns; it must not
// block.
class ProviderPort {
 public:
  using Done = std::function<void(Result<ProviderReply>)>;

  virtual ~ProviderPort() = default;
  // `done` runs exactly once: the reply that belongs to the request, or why there is none. A client gives up with
  // DEADLINE_EXCEEDED after `timeout`; a server answers when it can.
  virtual void Ask(ProviderRequest request, Duration timeout, Done done) = 0;
};

}  // namespace muster::contract
