#include "provider/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "model/text_reader.h"
#include "model/yaml_reader.h"

namespace muster::provider {
namespace {

using contract::OperationKind;
using model::TextReader;

constexpr model::Money kHighestPrice{100'000'000'000};
constexpr std::string_view kRackLabel = "topology.bigfleet/rack";

constexpr std::string_view kDefault = R"(# What `muster provider --backend sim` offers when it is given no --catalogue.
zones: [zone-a, zone-b, zone-c]
racks: 8              # in each zone
notice: 2m            # between the warning and the end of an interrupted machine
types:
  - name: metal-64
    capacity: bare-metal
    resources: {cpu: 64, memory: 512Gi}
    price: 1.10
    share: 10
    starts: idle        # owned: it is there from the beginning
    deletable: false    # and cannot be given back
    create: {median: 4m, p99: 12m, fails: 0.002}
    configure: {median: 50s, p99: 3m, fails: 0.002}
    drain: {median: 20s, p99: 2m}
    delete: {median: 3m, p99: 8m}
  - name: metal-8gpu
    capacity: bare-metal
    resources: {cpu: 128, memory: 1Ti, nvidia.com/gpu: 8}
    price: 12.50
    share: 3
    starts: idle
    deletable: false
    labels: {accelerator: gpu}
    create: {median: 5m, p99: 15m, fails: 0.004}
    configure: {median: 80s, p99: 5m, fails: 0.004}
    drain: {median: 20s, p99: 2m}
    delete: {median: 3m, p99: 8m}
  - name: reserved-32
    capacity: reserved
    resources: {cpu: 32, memory: 128Gi}
    price: 0.92
    share: 17
    create: {median: 40s, p99: 3m, fails: 0.001}
    configure: {median: 35s, p99: 2m, fails: 0.001}
    drain: {median: 20s, p99: 2m}
    delete: {median: 10s, p99: 1m}
  - name: on-demand-16
    capacity: on-demand
    resources: {cpu: 16, memory: 64Gi}
    price: 0.77
    share: 30
    create: {median: 40s, p99: 3m, fails: 0.001}
    configure: {median: 35s, p99: 2m, fails: 0.001}
    drain: {median: 20s, p99: 2m}
    delete: {median: 10s, p99: 1m}
    stockOut: {chance: 0.01, lasts: 10m}
  - name: on-demand-64
    capacity: on-demand
    resources: {cpu: 64, memory: 256Gi}
    price: 3.07
    share: 10
    create: {median: 50s, p99: 4m, fails: 0.002}
    configure: {median: 40s, p99: 2m, fails: 0.001}
    drain: {median: 20s, p99: 2m}
    delete: {median: 10s, p99: 1m}
    stockOut: {chance: 0.03, lasts: 15m}
  - name: spot-16
    capacity: spot
    resources: {cpu: 16, memory: 64Gi}
    price: 0.25
    interruption: 0.02
    share: 30
    create: {median: 45s, p99: 4m, fails: 0.004}
    configure: {median: 35s, p99: 2m, fails: 0.002}
    drain: {median: 20s, p99: 2m}
    delete: {median: 10s, p99: 1m}
    stockOut: {chance: 0.06, lasts: 20m}
    priceMoves: {every: 10m, by: 0.08, leastPercent: 60, mostPercent: 300}
)";

void ReadDwell(TextReader reader, Dwell& dwell) {
  if (!reader.present()) return;
  reader.Field("median").Require().Read(dwell.median);
  dwell.p99 = 4 * dwell.median;
  reader.Field("p99").Read(dwell.p99);
  reader.Field("fails").Read(dwell.fails, model::ParseProbability);
  reader.RefuseUnknown();
  if (reader.ok() && (dwell.median > dwell.p99 || dwell.p99 > 24h)) {
    reader.Fail("median must not be above p99, nor p99 above 24h");
  }
}

void ReadStockOut(TextReader reader, StockOut& stock_out) {
  if (!reader.present()) return;
  reader.Field("chance").Require().Read(stock_out.chance, model::ParseProbability);
  reader.Field("lasts").Read(stock_out.lasts);
  reader.RefuseUnknown();
  if (reader.ok() && stock_out.lasts < 1s) reader.Fail("lasts must be 1s or more");
}

void ReadPercent(TextReader reader, uint32_t& percent) {
  uint64_t read = percent;
  reader.Read(read);
  if (read > 1000) return reader.Fail("must be at most 1000");
  percent = static_cast<uint32_t>(read);
}

void ReadPriceMoves(TextReader reader, PriceMoves& moves) {
  if (!reader.present()) return;
  reader.Field("every").Require().Read(moves.every);
  reader.Field("by").Require().Read(moves.by, model::ParseProbability);
  ReadPercent(reader.Field("leastPercent"), moves.least_percent);
  ReadPercent(reader.Field("mostPercent"), moves.most_percent);
  reader.RefuseUnknown();
  if (reader.ok() && moves.every < 1s) reader.Fail("every must be 1s or more");
  if (reader.ok() && moves.least_percent > moves.most_percent) reader.Fail("leastPercent is above mostPercent");
}

MachineType ReadType(TextReader& reader, const Catalogue& catalogue) {
  MachineType type;
  TextReader name = reader.Field("name").Require();
  name.Read(type.name);
  if (name.ok() && type.name.empty()) name.Fail("must not be empty");
  reader.Field("capacity").Require().Read(type.capacity_type, model::ParseCapacityType);
  reader.Field("resources").Require().Read(type.resources);
  reader.Field("allocatable").Read(type.allocatable);
  TextReader price = reader.Field("price").Require();
  price.Read(type.price, model::ParseMoney);
  if (type.price > kHighestPrice) price.Fail("must be at most 100000 dollars an hour");
  reader.Field("interruption").Read(type.interruption, model::ParseProbability);
  uint64_t share = 1;
  TextReader share_field = reader.Field("share");
  share_field.Read(share);
  if (share > 1'000'000) share_field.Fail("must be at most 1000000");
  type.share = static_cast<uint32_t>(share);
  std::string starts = "speculative";
  TextReader starts_field = reader.Field("starts");
  starts_field.Read(starts);
  if (starts != "idle" && starts != "speculative") starts_field.Fail("must be idle or speculative");
  type.starts_idle = starts == "idle";
  reader.Field("deletable").Read(type.deletable);
  reader.Field("labels").Read(type.labels);
  TextReader zones = reader.Field("zones");
  zones.Read(type.zones);
  for (const std::string& zone : type.zones) {
    if (std::ranges::find(catalogue.zones, zone) == catalogue.zones.end()) {
      zones.Fail(fmt::format("{} is not among the zones of the catalogue", zone));
    }
  }
  for (const OperationKind kind :
       {OperationKind::kCreate, OperationKind::kConfigure, OperationKind::kDrain, OperationKind::kDelete}) {
    std::string key(contract::OperationName(kind));
    key[0] = static_cast<char>(key[0] - 'A' + 'a');
    ReadDwell(reader.Field(key), type.dwell[static_cast<size_t>(kind)]);
  }
  ReadStockOut(reader.Field("stockOut"), type.stock_out);
  ReadPriceMoves(reader.Field("priceMoves"), type.price_moves);
  reader.RefuseUnknown();
  return type;
}

}  // namespace

Result<Catalogue> ReadCatalogue(std::string_view text, std::string_view source) {
  MUSTER_ASSIGN_OR_RETURN(const model::TextValue document, model::ReadYamlDocument(text, source));
  model::TextErrors errors{std::string(source)};
  TextReader root(errors, document);
  Catalogue catalogue;
  TextReader zones = root.Field("zones").Require();
  zones.Read(catalogue.zones);
  if (zones.ok() && catalogue.zones.empty()) zones.Fail("name at least one zone");
  const std::set<std::string> names(catalogue.zones.begin(), catalogue.zones.end());
  if (names.size() < catalogue.zones.size()) zones.Fail("a zone is named twice");
  if (names.contains("")) zones.Fail("a zone's name must not be empty");
  TextReader racks = root.Field("racks");
  uint64_t count = catalogue.racks;
  racks.Read(count);
  if (count == 0 || count > 100'000) racks.Fail("must be from 1 to 100000");
  catalogue.racks = static_cast<uint32_t>(count);
  root.Field("notice").Read(catalogue.notice);
  TextReader types = root.Field("types").Require();
  uint64_t shares = 0;
  for (TextReader& item : types.List()) {
    MachineType type = ReadType(item, catalogue);
    const bool again = std::ranges::any_of(catalogue.types, [&](const auto& other) { return other.name == type.name; });
    if (again) item.Fail(fmt::format("two types have the name {}", type.name));
    shares += type.share;
    catalogue.types.push_back(std::move(type));
  }
  if (types.ok() && shares == 0) types.Fail("no type has a share of the fleet; give one a share above 0");
  root.RefuseUnknown();
  if (!errors.ok()) return std::unexpected(errors.status());
  return catalogue;
}

std::string_view DefaultCatalogueText() { return kDefault; }

const Catalogue& DefaultCatalogue() {
  static const Catalogue catalogue = [] {
    auto read = ReadCatalogue(kDefault, "the built-in catalogue");
    MUSTER_CHECK(read.has_value(), "{}", read.error().message());
    return *std::move(read);
  }();
  return catalogue;
}

// Types are dealt out by the largest claim still open, so that every prefix of the ids has the mix of the whole.
std::vector<contract::Slot> MakeSlots(const Catalogue& catalogue, std::string_view name, uint64_t count) {
  std::vector<contract::Slot> slots;
  slots.reserve(count);
  uint64_t shares = 0;
  for (const MachineType& type : catalogue.types) shares += type.share;
  std::vector<uint64_t> dealt(catalogue.types.size(), 0);
  for (uint64_t i = 0; i < count; ++i) {
    size_t chosen = 0;
    int64_t largest = std::numeric_limits<int64_t>::min();
    for (size_t t = 0; t < catalogue.types.size(); ++t) {
      const auto claim =
          static_cast<int64_t>((i + 1) * catalogue.types[t].share) - static_cast<int64_t>(dealt[t] * shares);
      if (claim > largest && catalogue.types[t].share > 0) {
        largest = claim;
        chosen = t;
      }
    }
    const MachineType& type = catalogue.types[chosen];
    const uint64_t turn = dealt[chosen]++;
    const std::vector<std::string>& zones = type.zones.empty() ? catalogue.zones : type.zones;
    model::Machine machine{.id = fmt::format("{}-{:06}", name, i + 1),
                           .state = type.starts_idle ? model::MachineState::kIdle : model::MachineState::kSpeculative,
                           .host = {},
                           .instance_type = type.name,
                           .zone = zones[turn % zones.size()],
                           .capacity_type = type.capacity_type,
                           .price_per_hour = type.price,
                           .interruption_probability = type.interruption,
                           .resources = type.resources,
                           .allocatable = {},
                           .labels = type.labels,
                           .cluster = {},
                           .shard_metadata = {},
                           .last_error = {}};
    if (!type.allocatable.empty()) machine.allocatable = type.allocatable;
    if (type.starts_idle) machine.host = {.provider = std::string(name), .ref = "owned-" + machine.id};
    machine.labels.emplace(std::string(kRackLabel),
                           fmt::format("{}-rack-{}", machine.zone, turn / zones.size() % catalogue.racks + 1));
    slots.push_back({.machine = std::move(machine), .deletable = type.deletable});
  }
  return slots;
}

}  // namespace muster::provider
