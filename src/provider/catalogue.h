// Catalogue: what the simulated backend offers, as one YAML file (docs/provider.md lists the keys).
//
// Every machine type has a capacity type, resources, a price, a rate of interruption, its share of the fleet, and for
// each operation how long it takes and how often it fails; spot types have moving prices, and any type may run out of
// stock. DefaultCatalogue() is bare metal, reserved, on-demand and spot in three zones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "contract/backend.h"
#include "model/machine.h"
#include "model/money.h"
#include "model/resources.h"
#include "model/text_map.h"

namespace muster::provider {

// How long an operation takes: half of the draws up to the median, all but one in a hundred up to p99, none beyond
// twice p99. And how often it fails instead.
struct Dwell {
  Duration median = 1s;
  Duration p99 = 2s;
  model::Probability fails;
};

struct StockOut {
  model::Probability chance;  // that a window of this length has no machine of the type in a zone
  Duration lasts = 10min;
};

struct PriceMoves {
  Duration every{};             // 0: the price stands
  model::Probability by;        // the largest step, as a share of the price
  uint32_t least_percent = 50;  // of the first price
  uint32_t most_percent = 200;
};

struct MachineType {
  std::string name;
  model::CapacityType capacity_type = model::CapacityType::kOnDemand;
  model::Resources resources;
  model::Resources allocatable;  // empty: not said
  model::Money price;
  model::Probability interruption;  // that it is interrupted within an hour
  uint32_t share = 1;
  bool starts_idle = false;  // owned hardware that is there from the beginning
  bool deletable = true;
  model::TextMap labels;
  std::vector<std::string> zones;  // of the catalogue's; empty: all
  Dwell dwell[4];                  // by contract::OperationKind
  StockOut stock_out;
  PriceMoves price_moves;
};

struct Catalogue {
  std::vector<std::string> zones;
  uint32_t racks = 8;  // per zone
  Duration notice = 2min;
  std::vector<MachineType> types;
};

// INVALID_ARGUMENT with file, line, column and path of the first thing wrong. `source` names the text in errors.
Result<Catalogue> ReadCatalogue(std::string_view text, std::string_view source);
// The built-in text, an example of the format.
std::string_view DefaultCatalogueText();
const Catalogue& DefaultCatalogue();

// `count` machines by share, spread over zones and racks; ids "<name>-000001" and on. A larger count has the machines
// of a smaller one among its own ids.
std::vector<contract::Slot> MakeSlots(const Catalogue& catalogue, std::string_view name, uint64_t count);

}  // namespace muster::provider
