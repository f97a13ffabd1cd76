// The provider core's configuration, its events and effects, and the rows of its durable state.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/backend.h"
#include "contract/effects.h"
#include "contract/provider.h"

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

  static constexpr std::string_view kTypeName = "Config";
  static constexpr auto Fields() {
    return std::tuple{Field{"name", &Config::name},
                      Field{"new_lineage", &Config::new_lineage},
                      Field{"create_timeout", &Config::create_timeout},
                      Field{"configure_timeout", &Config::configure_timeout},
                      Field{"drain_timeout", &Config::drain_timeout},
                      Field{"delete_timeout", &Config::delete_timeout}};
  }
};

// Event: somebody asks. Answered once, by an Answer with the same number.
struct Asked {
  contract::RequestId request = 0;
  contract::ProviderRequest body;

  static constexpr std::string_view kTypeName = "Asked";
  static constexpr auto Fields() { return std::tuple{Field{"request", &Asked::request}, Field{"body", &Asked::body}}; }
};

// Event: the backend saw something nobody asked for.
struct Observed {
  contract::Observation body;

  static constexpr std::string_view kTypeName = "Observed";
  static constexpr auto Fields() { return std::tuple{Field{"body", &Observed::body}}; }
};

// Effect. `reply` is there exactly when `status` is OK. Mutable, because whoever carries the effect out takes the reply
// out of it: a list of 100,000 machines is copied by nobody.
struct Answer {
  contract::RequestId request = 0;
  Status status;
  mutable std::optional<contract::ProviderReply> reply;

  static constexpr std::string_view kTypeName = "Answer";
  static constexpr auto Fields() {
    return std::tuple{Field{"request", &Answer::request}, Field{"status", &Answer::status},
                      Field{"reply", &Answer::reply}};
  }
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
  static constexpr std::string_view kTypeName = "Mark";
  static constexpr auto Fields() {
    return std::tuple{Field{"epoch", &Mark::epoch}, Field{"sequence", &Mark::sequence}};
  }
};

// The newest operation of each kind, by the number of the change that accepted it; 0 for none. They are forgotten when
// another life of the machine begins, that is, when it is created again.
struct Operations {
  uint64_t create = 0;
  uint64_t configure = 0;
  uint64_t drain = 0;
  uint64_t remove = 0;

  bool operator==(const Operations&) const = default;
  static constexpr std::string_view kTypeName = "Operations";
  static constexpr auto Fields() {
    return std::tuple{Field{"create", &Operations::create}, Field{"configure", &Operations::configure},
                      Field{"drain", &Operations::drain}, Field{"remove", &Operations::remove}};
  }
};

// What is under way on a machine, with all that is needed to ask for it again.
struct InFlight {
  contract::OperationKind kind = contract::OperationKind::kCreate;
  std::string bootstrap_blob;
  Duration grace{};
  WallTime started;

  bool operator==(const InFlight&) const = default;
  static constexpr std::string_view kTypeName = "InFlight";
  static constexpr auto Fields() {
    return std::tuple{Field{"kind", &InFlight::kind}, Field{"bootstrap_blob", &InFlight::bootstrap_blob},
                      Field{"grace", &InFlight::grace}, Field{"started", &InFlight::started}};
  }
};

// Where numbers come from. A machine without a row has the number of its place among the backend's slots, from
// `first` on; when the slots are not those of the digest, numbering goes on above everything before.
struct Numbering {
  uint64_t lineage = 0;
  uint64_t slots_digest = 0;
  uint64_t slots = 0;
  uint64_t first = 1;

  static constexpr std::string_view kTypeName = "Numbering";
  static constexpr auto Fields() {
    return std::tuple{Field{"lineage", &Numbering::lineage}, Field{"slots_digest", &Numbering::slots_digest},
                      Field{"slots", &Numbering::slots}, Field{"first", &Numbering::first}};
  }
};

// Keys of the rows.
constexpr std::string_view kFormatKey = "format";
constexpr std::string_view kNumberingKey = "numbering";
constexpr std::string_view kMachineKey = "machine/";
constexpr std::string_view kMarkKey = "mark/";
constexpr std::string_view kMarketKey = "market/";
constexpr uint64_t kFormat = 1;

// One machine, durable from its first change on. Until then it is what the backend says.
struct MachineRow {
  contract::MachineRecord machine;
  bool deletable = true;
  bool interrupted = false;  // noticed; its probability stays 1 until the hardware is gone
  uint64_t changed = 0;      // number of its newest change
  Operations operations;
  std::optional<InFlight> in_flight;

  static constexpr std::string_view kTypeName = "MachineRow";
  static constexpr auto Fields() {
    return std::tuple{Field{"machine", &MachineRow::machine},         Field{"deletable", &MachineRow::deletable},
                      Field{"interrupted", &MachineRow::interrupted}, Field{"changed", &MachineRow::changed},
                      Field{"operations", &MachineRow::operations},   Field{"in_flight", &MachineRow::in_flight}};
  }
};

}  // namespace muster::provider
