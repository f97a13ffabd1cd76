// The provider core's configuration, its events and effects, and the rows of its durable state.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/backend.h"
#include "contract/effects.h"
#include "contract/provider.h"
#include "contract/tables.h"
#include "model/machine.h"

namespace muster::provider {

struct Config {
  std::string name = "provider";
  // A number drawn at random by the host: names the state if this start creates it. Cursors and operation ids of other
  // states are thereby strangers.
  uint64_t new_lineage = 0;
  // How long an operation may take before its machine is Failed. A drain has its grace besides.
  Duration create_timeout = 30min;
  Duration configure_timeout = 30min;
  Duration drain_timeout = 10min;
  Duration delete_timeout = 30min;

  MUSTER_FIELDS(Config, name, new_lineage, create_timeout, configure_timeout, drain_timeout, delete_timeout)
};

// Event: somebody asks. Answered once, by an Answer with the same number.
struct Asked {
  contract::RequestId request = 0;
  contract::ProviderRequest body;

  MUSTER_FIELDS(Asked, request, body)
};

// Event: the backend saw something nobody asked for.
struct Observed {
  contract::Observation body;

  MUSTER_FIELDS(Observed, body)
};

// Effect. `reply` is there exactly when `status` is OK. Mutable, because whoever carries the effect out takes the reply
// out of it: a list of 100,000 machines is copied by nobody.
struct Answer {
  contract::RequestId request = 0;
  Status status;
  mutable std::optional<contract::ProviderReply> reply;

  MUSTER_FIELDS(Answer, request, status, reply)
};

struct Snapshot {
  std::map<model::MachineState, uint64_t> machines;  // how many in each state
  uint64_t newest_change = 0;
  uint64_t operations_open = 0;
  uint64_t fenced = 0;  // calls refused since the start
};

// A fence: the newest token seen.
struct Mark {
  int64_t epoch = 0;
  int64_t sequence = 0;

  auto operator<=>(const Mark&) const = default;
  MUSTER_FIELDS(Mark, epoch, sequence)
};

// The newest operation of each kind, by the number of the change that accepted it; 0 for none. They are forgotten when
// another life of the machine begins, that is, when it is created again.
struct Operations {
  uint64_t create = 0;
  uint64_t configure = 0;
  uint64_t drain = 0;
  uint64_t remove = 0;

  bool operator==(const Operations&) const = default;
  MUSTER_FIELDS(Operations, create, configure, drain, remove)
};

// What is under way on a machine, with all that is needed to ask for it again.
struct InFlight {
  contract::OperationKind kind = contract::OperationKind::kCreate;
  std::string bootstrap_blob;
  Duration grace{};
  WallTime started;

  bool operator==(const InFlight&) const = default;
  MUSTER_FIELDS(InFlight, kind, bootstrap_blob, grace, started)
};

// Where numbers come from. A machine without a row has the number of its place among the backend's slots, from
// `first` on; when the slots are not those of the digest, numbering goes on above everything before.
struct Numbering {
  uint64_t lineage = 0;
  uint64_t slots_digest = 0;
  uint64_t slots = 0;
  uint64_t first = 1;

  MUSTER_FIELDS(Numbering, lineage, slots_digest, slots, first)
};

// One machine, durable from its first change on. Until then it is what the backend says.
struct MachineRow {
  contract::MachineRecord machine;
  bool deletable = true;
  bool interrupted = false;  // noticed; its probability stays 1 until the hardware is gone
  uint64_t changed = 0;      // number of its newest change
  Operations operations;
  std::optional<InFlight> in_flight;

  MUSTER_FIELDS(MachineRow, machine, deletable, interrupted, changed, operations, in_flight)
};

// A market: machines that share a price and a rate of interruption.
struct MarketKey {
  std::string instance_type;
  std::string zone;
  model::CapacityType capacity_type = model::CapacityType::kUnspecified;

  auto operator<=>(const MarketKey&) const = default;
  MUSTER_FIELDS(MarketKey, instance_type, zone, capacity_type)
};
inline MarketKey MarketOf(const contract::MarketMoved& moved) {
  return {.instance_type = moved.instance_type, .zone = moved.zone, .capacity_type = moved.capacity_type};
}

// The durable rows, and the format that says which form they have.
inline constexpr uint64_t kFormat = 1;
inline constexpr contract::Single<Numbering> kNumbering{"numbering"};
inline constexpr contract::Table<std::string, MachineRow> kMachines{"machine/"};
inline constexpr contract::Table<std::pair<std::string, std::string>, Mark> kMarks{"mark/"};  // by shard and machine
inline constexpr contract::Table<MarketKey, contract::MarketMoved> kMarkets{"market/"};

}  // namespace muster::provider
