// Bind stamps: what a shard writes into shard_metadata when it binds a machine, so that a shard that knows nothing but
// the provider's list knows whose each machine is. Keys and forms are those of the existing fleet protocol.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "engine/types.h"
#include "model/machine.h"
#include "model/profile.h"

namespace muster::engine {

// A bind stamp as it lies in the metadata: names are good for as long as that is.
struct BindStamp {
  std::string_view fingerprint;
  std::string_view group;
  int32_t priority = 0;
  model::Penalty interruption;
  model::Penalty reclamation;
};

// Absent keys leave their default, malformed values are skipped, others are ignored. Nothing if no key is there.
std::optional<BindStamp> ReadBindStamp(const std::map<std::string, std::string>& metadata);
std::optional<model::Attribution> DecodeBindStamp(const std::map<std::string, std::string>& metadata);
// Of that, the bucket of the interruption penalty alone; kZero if there is none.
model::PenaltyBucket BoundInterruption(const std::map<std::string, std::string>& metadata);
std::map<std::string, std::string> EncodeBindStamp(const model::Attribution& attribution);
// Of a machine that is bound for this need.
std::map<std::string, std::string> BindStampOf(const NeedKey& need, const model::Profile& profile);

}  // namespace muster::engine
