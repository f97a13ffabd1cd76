#include "model/machine_digest.h"

#include <algorithm>

#include "base/hash.h"

namespace muster::model {
namespace {

uint64_t ClassDigest(const Machine& machine) {
  Hasher hasher;
  hasher.Add(machine.instance_type);
  hasher.Add(machine.zone);
  hasher.Add(static_cast<uint64_t>(machine.capacity_type));
  hasher.Add(static_cast<uint64_t>(machine.price_per_hour.micros));
  hasher.Add(static_cast<uint64_t>(machine.interruption_probability.millionths));
  for (const auto& [name, amount] : machine.EffectiveAllocatable().entries()) {
    hasher.Add(name);
    hasher.Add(static_cast<uint64_t>(amount));
  }
  for (const auto& [key, value] : machine.labels) {
    hasher.Add(key);
    hasher.Add(value);
  }
  return hasher.value();
}

}  // namespace

MachineDigest DigestOf(const Machine& machine) {
  MachineDigest digest{.cls = ClassDigest(machine), .id = Hash(machine.id)};
  if (machine.shard_metadata.empty()) return digest;
  Hasher hasher;
  for (const auto& [key, value] : machine.shard_metadata) {
    hasher.Add(key);
    hasher.Add(value);
  }
  digest.stamp = std::max<uint64_t>(hasher.value(), 1);
  return digest;
}

}  // namespace muster::model
