// Any bytes as the messages of a session, both ways. What is read is written as it was and read again the same; what is
// refused is refused by name. Roll-ups of one input are read with one table of profiles, as those of a session are:
// what it remembers, of refused ones too, changes nothing about what is read, equal profiles are one object, and it
// holds no more than the latest roll-up.
//
// The input is a row of frames (frames.h).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "base/check.h"
#include "bigfleet/v1alpha1/shard.pb.h"
#include "frames.h"
#include "refusal.h"
#include "rpc/rollup_conversion.h"
#include "rpc/session_conversion.h"

namespace {

namespace pb = bigfleet::v1alpha1;
using namespace muster;

class Session {
 public:
  void Hear(const std::string& bytes) {
    pb::OperatorMessage wire;
    if (!wire.ParseFromString(bytes)) return;
    switch (wire.payload_case()) {
      case pb::OperatorMessage::kHello: return Check(rpc::TakeHello(*wire.mutable_hello()));
      case pb::OperatorMessage::kRollup: return HearRollup(wire.rollup());
      case pb::OperatorMessage::kBootstrapResponse:
        return Check(rpc::TakeBootstrapResponse(*wire.mutable_bootstrap_response()));
      case pb::OperatorMessage::kReclaimAck: return Check(rpc::TakeReclaimAck(*wire.mutable_reclaim_ack()));
      case pb::OperatorMessage::PAYLOAD_NOT_SET: return;
    }
  }

 private:
  void HearRollup(const pb::ClusterCapacityNeeds& wire) {
    const auto rollup = rpc::ReadRollup(wire, profiles_);
    MUSTER_CHECK(profiles_.size() <= static_cast<size_t>(wire.needs_size()), "the table grows");
    rpc::ProfileTable fresh;
    const auto alone = rpc::ReadRollup(wire, fresh);
    MUSTER_CHECK(rollup == alone, "what came before changed what is read");
    Check(rollup);
    if (!rollup) return;
    MUSTER_CHECK(rollup->rows.size() == static_cast<size_t>(wire.needs_size()));
    std::map<std::string, const void*> objects;
    for (const model::Need& need : rollup->rows.needs()) {
      const std::string& fingerprint = need.profile.fingerprint();
      MUSTER_CHECK(objects.try_emplace(fingerprint, &fingerprint).first->second == &fingerprint, "two objects");
      MUSTER_CHECK(need.cluster == wire.cluster_id() && need.arrival == WallTime());
    }
  }

  template <class Message>
  void Check(const Result<Message>& message) {
    if (!message) return CheckRefusal(message.error());
    pb::OperatorMessage wire;
    rpc::ToWire(*message, wire);
    pb::OperatorMessage again;
    MUSTER_CHECK(again.ParseFromString(wire.SerializeAsString()));
    const auto read = Read(again, *message);
    MUSTER_CHECK(read == message, "a message that was read is not written as it was");
  }
  static Result<contract::Hello> Read(pb::OperatorMessage& wire, const contract::Hello& /*as*/) {
    return rpc::TakeHello(*wire.mutable_hello());
  }
  static Result<contract::Rollup> Read(pb::OperatorMessage& wire, const contract::Rollup& /*as*/) {
    rpc::ProfileTable profiles;
    return rpc::ReadRollup(wire.rollup(), profiles);
  }
  static Result<contract::BootstrapResponse> Read(pb::OperatorMessage& wire,
                                                  const contract::BootstrapResponse& /*as*/) {
    return rpc::TakeBootstrapResponse(*wire.mutable_bootstrap_response());
  }
  static Result<contract::ReclaimAck> Read(pb::OperatorMessage& wire, const contract::ReclaimAck& /*as*/) {
    return rpc::TakeReclaimAck(*wire.mutable_reclaim_ack());
  }

  rpc::ProfileTable profiles_;
};

void HearShard(const std::string& bytes) {
  pb::ShardMessage wire;
  if (!wire.ParseFromString(bytes)) return;
  const auto message = rpc::TakeShardMessage(wire);
  if (!message) return CheckRefusal(message.error());
  pb::ShardMessage again;
  rpc::ToWire(*message, again);
  pb::ShardMessage arrived;
  MUSTER_CHECK(arrived.ParseFromString(again.SerializeAsString()));
  MUSTER_CHECK(rpc::TakeShardMessage(arrived) == message, "a message that was read is not written as it was");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Session session;
  EachFrame(data, size, 4, [&](uint8_t kind, const std::string& bytes) {
    if (kind == 3) {
      HearShard(bytes);
    } else {
      session.Hear(bytes);
    }
  });
  return 0;
}
