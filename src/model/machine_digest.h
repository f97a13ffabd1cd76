// What a machine's record says, in short: made where the record is decoded, so that the loop of a shard and its engine
// need not read all of it.
#pragma once

#include <cstdint>

#include "model/machine.h"

namespace muster::model {

struct MachineDigest {
  uint64_t cls = 0;    // of all that machines of one class agree on: all but id, state, host, binding and error
  uint64_t stamp = 0;  // of its metadata; 0: there is none
  uint64_t id = 0;     // Hash() of its id
};
MachineDigest DigestOf(const Machine& machine);

}  // namespace muster::model
