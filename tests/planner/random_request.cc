#include "planner/random_request.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace muster::planner {
namespace {

constexpr int64_t kGi = int64_t{1000} << 30;
constexpr const char* kHost = "kubernetes.io/hostname";

class Maker {
 public:
  explicit Maker(uint64_t seed) : rng_(seed) {}

  Request Make() {
    zones_ = rng_.Between(1, 3);
    AddCandidates();
    if (rng_.Chance(1, 3)) AddNodes();
    const int64_t apps = rng_.Between(1, 6);
    for (int64_t a = 0; a < apps; ++a) AddApp(a);
    AddResidents();
    request_.world.kinds = kinds_.Take();
    request_.exact = rng_.Chance(1, 2);
    request_.replay_seed = rng_.Next();
    return std::move(request_);
  }

 private:
  std::string Zone(int64_t i) { return fmt::format("zone-{}", static_cast<char>('a' + i)); }
  std::string zone_key() const { return std::string(model::kZoneKey); }

  void AddCandidates() {
    Catalogue catalogue{.source = "random"};
    const int64_t types = rng_.Between(1, 6);
    for (int64_t t = 0; t < types; ++t) {
      const int64_t cpu = rng_.Between(1, 16);
      const int64_t memory = cpu * rng_.Between(1, 8);
      MachineType type{.name = fmt::format("type-{}", t), .arch = rng_.Chance(1, 4) ? "arm64" : "amd64"};
      type.capacity = {{"cpu", cpu * 1000}, {"memory", memory * kGi}, {"pods", rng_.Between(4, 30) * 1000}};
      type.reserved = {{"cpu", rng_.Between(0, 5) * 30}, {"memory", kGi / 3}};
      if (rng_.Chance(1, 3)) type.devices.assign(static_cast<size_t>(rng_.Between(1, 4)), 1000);
      const int64_t price = (cpu * 30'000 + memory * 4'000) * rng_.Between(70, 130) / 100;
      for (int64_t z = 0; z < zones_; ++z) {
        if (z == 0 || !rng_.Chance(1, 6)) type.offers.push_back({.zone = Zone(z), .price = {price + z * 10}});
      }
      catalogue.types.push_back(std::move(type));
    }
    std::vector<Pool> pools{{.name = "default", .labels = {{"pool", "default"}}}};
    if (rng_.Chance(1, 3)) {
      pools.push_back(
          {.name = "special", .labels = {{"pool", "special"}}, .taints = {{.key = "special", .value = "yes"}}});
    }
    request_.candidates = MakeCandidates(catalogue, pools);
  }

  void AddNodes() {
    request_.keep = rng_.Chance(2, 3) ? Keep::kNodes : Keep::kNone;
    const int64_t nodes = rng_.Between(1, 4);
    for (int64_t n = 0; n < nodes; ++n) {
      const Candidate& like = request_.candidates[rng_.Below(request_.candidates.size())];
      placement::Node node{.id = fmt::format("node-{}", n), .labels = like.labels, .taints = like.taints};
      node.labels.emplace(kHost, node.id);
      node.total = like.allocatable;
      node.reserved = {{"cpu", rng_.Between(0, 3) * 100}};
      node.cordoned = rng_.Chance(1, 8);
      node.ready = !rng_.Chance(1, 10);
      node.devices = like.devices;
      NodeFacts facts{.type = like.type, .zone = like.zone, .pool = like.pool};
      if (!rng_.Chance(1, 8)) facts.price = like.price;
      facts.fixed = rng_.Chance(1, 2);
      request_.nodes[node.id] = facts;
      request_.world.nodes.push_back(std::move(node));
    }
  }

  // Units of the nodes themselves, of an app that others have rules about, and now and then with one of their own.
  void AddResidents() {
    for (const placement::Node& node : request_.world.nodes) {
      if (!rng_.Chance(1, 2)) continue;
      placement::Kind kind;
      kind.labels = {{"app", fmt::format("app-{}", rng_.Below(4))}};
      if (rng_.Chance(1, 2)) {
        kind.exclude.push_back({.topology_key = rng_.Chance(1, 2) ? std::string(kHost) : zone_key(),
                                .selector = App(fmt::format("app-{}", rng_.Below(4)))});
      }
      request_.residents.push_back(
          {.unit = {.id = fmt::format("of-{}", node.id), .kind = kinds_.Add(kind)}, .node = node.id});
    }
  }

  placement::Selector App(const std::string& app) {
    return {.given = true, .all = {{.key = "app", .op = model::Operator::kIn, .values = {app}}}};
  }

  void AddRules(placement::Kind& kind, const std::string& own, const std::string& other) {
    switch (rng_.Below(14)) {
      case 0: kind.spread.push_back({.topology_key = zone_key(), .selector = App(own)}); break;
      case 1:
        kind.spread.push_back(
            {.topology_key = kHost, .max_skew = static_cast<int32_t>(rng_.Between(1, 3)), .selector = App(own)});
        break;
      case 2: kind.exclude.push_back({.topology_key = kHost, .selector = App(own)}); break;
      case 3: kind.exclude.push_back({.topology_key = kHost, .selector = App(other)}); break;
      case 4: kind.colocate.push_back({.topology_key = zone_key(), .selector = App(own)}); break;
      case 5: kind.colocate.push_back({.topology_key = kHost, .selector = App(own)}); break;
      case 6: kind.exclude.push_back({.topology_key = zone_key(), .selector = App(other)}); break;
      case 7: kind.ports.push_back({.port = 8080}); break;
      case 8: kind.ports.push_back({.ip = rng_.Chance(1, 2) ? "10.0.0.1" : "10.0.0.2", .port = 8080}); break;
      case 9: kind.colocate.push_back({.topology_key = kHost, .selector = App(other)}); break;
      case 10: kind.spread.push_back({.topology_key = zone_key(), .max_skew = 2, .selector = App(other)}); break;
      default: break;
    }
  }

  void AddApp(int64_t a) {
    const std::string own = fmt::format("app-{}", a);
    const std::string other = fmt::format("app-{}", rng_.Below(static_cast<uint64_t>(a + 1)));
    placement::Kind kind;
    kind.labels = {{"app", own}};
    kind.request = {{"cpu", rng_.Between(1, 20) * 100}, {"memory", rng_.Between(1, 16) * kGi / 4}, {"pods", 1000}};
    AddRules(kind, own, other);
    if (rng_.Chance(1, 4)) AddRules(kind, own, other);
    if (rng_.Chance(1, 6))
      kind.requirements.push_back({.key = "kubernetes.io/arch", .op = model::Operator::kIn, .values = {"amd64"}});
    if (rng_.Chance(1, 6)) kind.tolerations.push_back({.key = "special", .exists = true});
    if (rng_.Chance(1, 10))
      kind.requirements.push_back({.key = "pool", .op = model::Operator::kIn, .values = {"special"}});
    if (rng_.Chance(1, 8)) (rng_.Chance(1, 2) ? kind.devices.whole : kind.devices.milli) = rng_.Chance(1, 2) ? 1 : 2;
    if (kind.devices.milli > 0) kind.devices.milli = static_cast<int32_t>(rng_.Between(1, 999));
    const placement::KindIndex index = kinds_.Add(kind);
    const int64_t count = rng_.Between(1, 12);
    for (int64_t i = 0; i < count; ++i) {
      placement::Unit unit{.id = fmt::format("{}-{}", own, i), .kind = index};
      if (!PlacedAlready(unit, kind)) request_.pending.push_back(std::move(unit));
    }
  }

  // A few units without rules are on nodes already, as far as those have room.
  bool PlacedAlready(const placement::Unit& unit, const placement::Kind& kind) {
    const bool plain = kind.spread.empty() && kind.colocate.empty() && kind.ports.empty() && kind.devices.empty();
    if (request_.world.nodes.empty() || !plain || !rng_.Chance(1, 3)) return false;
    const placement::Node& node = request_.world.nodes[rng_.Below(request_.world.nodes.size())];
    model::Resources& taken = taken_[node.id];
    const auto sum = model::Add(taken, kind.request);
    if (!sum || !model::SubtractSaturating(node.total, node.reserved).Covers(*sum)) return false;
    taken = *sum;
    request_.world.placed.push_back({.unit = unit, .node = node.id, .terminating = rng_.Chance(1, 10)});
    return true;
  }

  Rng rng_;
  int64_t zones_ = 1;
  Request request_;
  placement::KindTable kinds_;
  std::map<std::string, model::Resources> taken_;
};

}  // namespace

Request RandomRequest(uint64_t seed) { return Maker(seed).Make(); }

}  // namespace muster::planner
