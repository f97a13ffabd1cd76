#include "bench/plan_shapes.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "host/text_file.h"
#include "model/quantity.h"

namespace muster::bench {
namespace {

using placement::Kind;

constexpr auto kShapes = std::to_array<PlanShape>({{"plan-generic", true},
                                                   {"plan-diverse", true},
                                                   {"plan-51k", false},
                                                   {"plan-ec2", true},
                                                   {"plan-dump", true, true},
                                                   {"plan-dump-consolidate", true, true}});
constexpr std::string_view kHostname = "kubernetes.io/hostname";
constexpr int64_t kMilli = 1000;
constexpr int64_t kMiB = int64_t{1} << 20;
constexpr const char* kEc2File = "/ec2-us-east-1.csv";
constexpr std::array<const char*, 3> kZones = {"zone-a", "zone-b", "zone-c"};

using Row = std::vector<std::string>;

Result<std::vector<Row>> ReadRows(const std::string& path, size_t columns) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, host::ReadTextFile(path));
  std::vector<Row> rows;
  size_t line_number = 0;
  for (size_t at = 0; at < text.size(); ++line_number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line(text.data() + at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line_number == 0 || line.empty()) continue;
    Row row;
    for (size_t from = 0; from <= line.size();) {
      const size_t comma = std::min(line.find(',', from), line.size());
      row.emplace_back(line.substr(from, comma - from));
      from = comma + 1;
    }
    if (row.size() != columns) {
      return InvalidArgument(
          fmt::format("{}:{}: {} columns instead of {}", path, line_number + 1, row.size(), columns));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<int64_t> Number(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return InvalidArgument(fmt::format("{} is not a whole number", text));
  }
  return value;
}

std::pair<std::string, std::string> Split(const std::string& label) {
  const size_t equals = label.find('=');
  return {label.substr(0, equals), equals == std::string::npos ? "" : label.substr(equals + 1)};
}

placement::Selector SelectorFor(const std::string& label) {
  const auto [key, value] = Split(label);
  return {.given = true, .all = {{.key = key, .op = model::Operator::kIn, .values = {value}}}};
}

// The rule of a pod by the name of its kind in the file.
Status AddRule(const std::string& rule, const std::string& selector, Kind& kind) {
  const std::string zone(model::kZoneKey);
  const std::string host(kHostname);
  if (rule == "generic") return {};
  if (rule == "spread_zone") {
    kind.spread.push_back({.topology_key = zone, .selector = SelectorFor(selector)});
  } else if (rule == "spread_host") {
    kind.spread.push_back({.topology_key = host, .selector = SelectorFor(selector)});
  } else if (rule == "affinity_zone") {
    kind.colocate.push_back({.topology_key = zone, .selector = SelectorFor(selector)});
  } else if (rule == "antiaff_host") {
    kind.exclude.push_back({.topology_key = host, .selector = SelectorFor(selector)});
  } else {
    return {Code::kInvalidArgument, fmt::format("{} is not a kind of pod", rule)};
  }
  return {};
}

Status AddPods(const std::string& path, planner::Request& request) {
  auto rows = ReadRows(path, 6);  // idx, kind, cpu_m, mem_MiB, label, selector
  if (!rows) return std::move(rows).error();
  placement::KindTable kinds;
  for (const Row& row : *rows) {
    const Result<int64_t> cpu = Number(row[2]);
    const Result<int64_t> memory = Number(row[3]);
    if (!cpu || !memory) return {Code::kInvalidArgument, fmt::format("{}: pod {}: bad amounts", path, row[0])};
    Kind kind;
    kind.request = {{"cpu", *cpu}, {"memory", *memory * kMiB * kMilli}, {"pods", kMilli}};
    const auto [key, value] = Split(row[4]);
    kind.labels.emplace(key, value);
    MUSTER_RETURN_IF_ERROR(AddRule(row[1], row[5], kind));
    request.pending.push_back({.id = fmt::format("default/pod-{}", row[0]), .kind = kinds.Add(kind)});
  }
  request.world.kinds = kinds.Take();
  return {};
}

// Type i has i+1 vCPU, 2(i+1) GiB and 10(i+1) pods, of which 0.1 vCPU and 10 MiB are reserved.
planner::Catalogue LinearTypes() {
  planner::Catalogue catalogue{.source = "400 types, each a step larger"};
  for (int64_t i = 0; i < 400; ++i) {
    planner::MachineType type{.name = fmt::format("type-{:03}", i)};
    type.capacity = {
        {"cpu", (i + 1) * kMilli}, {"memory", 2 * (i + 1) * 1024 * kMiB * kMilli}, {"pods", 10 * (i + 1) * kMilli}};
    type.reserved = {{"cpu", 100}, {"memory", 10 * kMiB * kMilli}};
    const auto price = static_cast<int64_t>(std::llround(314748.3648 * static_cast<double>(i + 1)));
    for (const char* zone : kZones) type.offers.push_back({.zone = zone, .price = {price}});
    catalogue.types.push_back(std::move(type));
  }
  return catalogue;
}

// Category c, m or r, generation 3 or later, neither metal nor flex.
bool IsGeneralType(std::string_view name) {
  if (name.size() < 3 || std::string_view("cmr").find(name[0]) == std::string_view::npos) return false;
  const bool generation = name[1] >= '3' && name[1] <= '9';
  return generation && name.find("metal") == std::string_view::npos && name.find("flex") == std::string_view::npos;
}

Result<planner::Catalogue> Ec2Types(const std::string& path, const std::vector<std::string>& zones) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<Row> rows, ReadRows(path, 11));
  planner::Catalogue catalogue{.source = "on-demand list prices, us-east-1"};
  for (const Row& row : rows) {
    if (row[1] != "amd64" || row[10].empty() || !IsGeneralType(row[0])) continue;
    planner::MachineType type{.name = row[0]};
    MUSTER_ASSIGN_OR_RETURN(const int64_t pods, Number(row[6]));
    MUSTER_ASSIGN_OR_RETURN(const model::Money price, model::ParseMoney(row[10]));
    Status status = type.capacity.Parse("cpu", row[4]);
    if (status.ok()) status = type.capacity.Parse("memory", row[5]);
    if (!status.ok()) return std::unexpected(std::move(status));
    type.capacity.Set("pods", pods * kMilli);
    for (const std::string& zone : zones) type.offers.push_back({.zone = zone, .price = price});
    catalogue.types.push_back(std::move(type));
  }
  return catalogue;
}

void AddAlike(planner::Request& request, int64_t cpu, int64_t count) {
  Kind kind;
  kind.request = {{"cpu", cpu}, {"pods", kMilli}};
  const auto index = placement::KindIndex::Of(request.world.kinds.size());
  request.world.kinds.push_back(std::move(kind));
  for (int64_t i = 0; i < count; ++i) {
    request.pending.push_back({.id = fmt::format("default/pod-{}", request.pending.size()), .kind = index});
  }
}

planner::Request FiftyOneThousand() {
  planner::Request request;
  AddAlike(request, 50, 50'000);
  AddAlike(request, 95, 1'000);
  planner::MachineType type{.name = "node",
                            .capacity = {{"cpu", 1'000}, {"memory", 1024 * kMiB * kMilli}, {"pods", 100 * kMilli}}};
  type.offers.push_back({.zone = kZones[0], .price = {1'000'000}});
  request.candidates = planner::MakeCandidates({.source = "one type", .types = {type}}, {planner::Pool{}});
  return request;
}

}  // namespace

std::span<const PlanShape> PlanShapes() { return kShapes; }

Result<planner::Catalogue> Ec2Catalogue(const std::string& data_dir) { return Ec2Types(data_dir + kEc2File, {""}); }

Result<planner::Request> MakePlanShape(std::string_view name, const std::string& data_dir) {
  if (name == "plan-51k") return FiftyOneThousand();
  if (data_dir.empty()) {
    return InvalidArgument(fmt::format("{}: its pods are read from files: give their directory with --data DIR", name));
  }
  planner::Request request;
  const bool diverse = name == "plan-diverse";
  const std::string pods = fmt::format("{}/pods-{}-5000.csv", data_dir, diverse ? "diverse" : "generic");
  if (Status status = AddPods(pods, request); !status.ok()) return std::unexpected(std::move(status));
  planner::Catalogue catalogue = LinearTypes();
  if (name == "plan-ec2") {
    MUSTER_ASSIGN_OR_RETURN(catalogue, Ec2Types(data_dir + kEc2File, {kZones.begin(), kZones.end()}));
  }
  request.candidates = planner::MakeCandidates(catalogue, {planner::Pool{}});
  return request;
}

}  // namespace muster::bench
