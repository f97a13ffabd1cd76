// What a cluster's operator and its shard say to each other over a session, as plain values, and the two ports between
// the stream and the shard. Fields are those of the wire (docs/wire.md), one to one; amounts and prices are the model's
// integers, because they are parsed once, at the border.
//
// A session begins with Hello. One session per cluster: a newer one takes the place of the older. A roll-up is the
// cluster's whole demand and replaces what it said before.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
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
#include "model/money.h"
#include "model/need.h"
#include "model/requirement.h"
#include "model/resources.h"
#include "model/text_map.h"

namespace muster::contract {

// What Hello must say.
inline constexpr std::string_view kProtocolVersion = "v1alpha1";

// --- from the cluster to the shard

struct Hello {
  std::string cluster_id;
  std::string protocol_version;

  bool operator==(const Hello&) const = default;
  MUSTER_FIELDS(Hello, cluster_id, protocol_version)
};

// Rows of a roll-up that many may hold and nobody changes, with a digest of each: whoever decodes them makes it on its
// own thread, and the shard tells by it what changed. Arrivals of rows are zero: the shard stamps them.
class NeedRows {
 public:
  NeedRows() = default;
  explicit NeedRows(std::vector<model::Need> needs) {
    auto body = std::make_shared<Body>();
    for (const model::Need& need : needs) body->digests.push_back(model::RowDigest(need));
    body->needs = std::move(needs);
    body_ = std::move(body);
  }

  std::span<const model::Need> needs() const {
    return body_ ? std::span<const model::Need>(body_->needs) : std::span<const model::Need>();
  }
  std::span<const uint64_t> digests() const {
    return body_ ? std::span<const uint64_t>(body_->digests) : std::span<const uint64_t>();
  }
  size_t size() const { return needs().size(); }
  bool operator==(const NeedRows& other) const {
    return size() == other.size() && std::equal(needs().begin(), needs().end(), other.needs().begin());
  }

  friend void Encode(codec::Writer& writer, const NeedRows& rows) {
    writer.Varint(rows.size());
    for (const model::Need& need : rows.needs()) codec::Encode(writer, need);
  }
  friend bool Decode(codec::Reader& reader, NeedRows& rows) {
    std::vector<model::Need> needs;
    if (!codec::Decode(reader, needs)) return false;
    rows = NeedRows(std::move(needs));
    return true;
  }
  friend std::string Describe(const NeedRows& rows) { return fmt::format("{} rows", rows.size()); }

 private:
  struct Body {
    std::vector<model::Need> needs;
    std::vector<uint64_t> digests;
  };
  std::shared_ptr<const Body> body_;
};

struct Rollup {
  std::string cluster_id;
  WallTime timestamp;
  NeedRows rows;

  bool operator==(const Rollup&) const = default;
  MUSTER_FIELDS(Rollup, cluster_id, timestamp, rows)
};

// The blob makes a machine a node and is a secret. `ttl` zero: it stays good. `error` not empty: there is no blob, and
// this machine's bootstrap failed.
struct BootstrapResponse {
  std::string request_id;
  std::string user_data;
  std::chrono::seconds ttl{};
  std::string error;

  bool operator==(const BootstrapResponse&) const = default;
  MUSTER_FIELDS(BootstrapResponse, request_id, user_data, ttl, error)
};

// The nodes are cordoned; eviction goes on.
struct ReclaimAck {
  std::string instruction_id;
  int32_t nodes_started = 0;

  bool operator==(const ReclaimAck&) const = default;
  MUSTER_FIELDS(ReclaimAck, instruction_id, nodes_started)
};

using OperatorMessage = std::variant<Hello, Rollup, BootstrapResponse, ReclaimAck>;

// --- from the shard to the cluster

// `echo` is "hello" or "rollup"; for a roll-up that is held, "rollup: " and why. A roll-up is acknowledged when it was
// applied or held; a refused one is not.
struct Acknowledgement {
  std::string echo;
  int64_t coordinator_term = 0;
  int64_t shard_epoch = 0;

  bool operator==(const Acknowledgement&) const = default;
  MUSTER_FIELDS(Acknowledgement, echo, coordinator_term, shard_epoch)
};

struct BootstrapRequest {
  std::string request_id;
  std::vector<model::Requirement> requirements;  // of the need the machine is for
  std::string cluster_id;

  bool operator==(const BootstrapRequest&) const = default;
  MUSTER_FIELDS(BootstrapRequest, request_id, requirements, cluster_id)
};

// Cordon these nodes and evict what runs there within the grace. The same id again is the same instruction.
struct ReclaimInstruction {
  std::string instruction_id;
  std::vector<std::string> nodes;  // machine ids
  int64_t grace_period_seconds = 0;
  int32_t preemptor_priority = 0;  // 0: nobody preempts

  bool operator==(const ReclaimInstruction&) const = default;
  MUSTER_FIELDS(ReclaimInstruction, instruction_id, nodes, grace_period_seconds, preemptor_priority)
};

struct Taint {
  std::string key;
  std::string value;
  std::string effect;

  bool operator==(const Taint&) const = default;
  MUSTER_FIELDS(Taint, key, value, effect)
};

// An update with a supersedes_key makes an unsent earlier one of the same key void.
struct NodeStateUpdate {
  std::string supersedes_key;  // "node:<machine id>"
  std::string machine_id;
  std::string cluster_id;
  model::MachineState state = model::MachineState::kUnspecified;
  std::string node_name;
  std::string provider_id;
  std::string last_error;
  model::TextMap labels;
  model::Resources resources;
  std::vector<Taint> taints;

  bool operator==(const NodeStateUpdate&) const = default;
  MUSTER_FIELDS(NodeStateUpdate, supersedes_key, machine_id, cluster_id, state, node_name, provider_id, last_error,
                labels, resources, taints)
};

// Numbers are the wire's. High: Idle machines are there. Medium: some could be bought. Low: all that match serve
// somebody. None: nothing matches.
enum class Confidence : uint8_t { kUnspecified = 0, kNone = 1, kLow = 2, kMedium = 3, kHigh = 4 };

// What the shard could give for a profile: a hint, not a promise.
struct AvailableCapacity {
  std::string supersedes_key;  // "available:<fingerprint>"
  std::vector<model::Requirement> requirements;
  model::Resources resources;  // of one machine, the cheapest
  int32_t available_count = 0;
  Confidence confidence = Confidence::kUnspecified;
  model::Money cost_per_hour;

  bool operator==(const AvailableCapacity&) const = default;
  MUSTER_FIELDS(AvailableCapacity, supersedes_key, requirements, resources, available_count, confidence, cost_per_hour)
};

using ShardMessage =
    std::variant<Acknowledgement, BootstrapRequest, ReclaimInstruction, NodeStateUpdate, AvailableCapacity>;

// --- the ports

// Names a stream among all of one life of the shard; the shell chose it.
using SessionId = uint64_t;

// The stream, as the shard sees it. Thread-safety: any thread may call; neither blocks.
class SessionSink {
 public:
  virtual ~SessionSink() = default;
  virtual void Send(ShardMessage message) = 0;
  // Ends the stream with this status. What was sent before it goes out first, as far as the peer reads it.
  virtual void Close(Status status) = 0;
};

// The shard, as a stream sees it. Thread-safety: any thread may call; no call blocks.
class SessionPort {
 public:
  virtual ~SessionPort() = default;
  // A stream whose Hello names a cluster that its identity may speak for. The shard answers through the sink, with an
  // acknowledgement or with Close.
  virtual SessionId Open(Hello hello, std::shared_ptr<SessionSink> sink) = 0;
  // `until_taken` is let go when the shard has looked at the message, or never will: what a stream says after it may
  // wait until then.
  virtual void Receive(SessionId session, OperatorMessage message, std::shared_ptr<void> until_taken = nullptr) = 0;
  // A roll-up that could not be read: INVALID_ARGUMENT naming the row and the field. `until_taken` as above.
  virtual void RefuseRollup(SessionId session, Status why, std::shared_ptr<void> until_taken = nullptr) = 0;
  // The stream has ended. The sink is not used any more.
  virtual void Closed(SessionId session) = 0;
};

}  // namespace muster::contract
