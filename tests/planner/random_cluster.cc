#include "planner/random_cluster.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "placement/reference/place.h"

namespace muster::planner {
namespace {

constexpr const char* kHost = "kubernetes.io/hostname";
constexpr const char* kRack = "example.com/rack";

class Maker {
 public:
  explicit Maker(uint64_t seed) : rng_(seed) {}

  Request Make() {
    zones_ = rng_.Between(1, 3);
    AddCandidates();
    AddNodes();
    const int64_t apps = rng_.Between(1, 6);
    for (int64_t a = 0; a < apps; ++a) AddApp(a);
    request_.world.kinds = kinds_.Take();
    placement::reference::Place(request_.world, units_, {});
    Thin();
    return std::move(request_);
  }

 private:
  std::string Zone(int64_t i) { return fmt::format("zone-{}", static_cast<char>('a' + i)); }
  std::string zone_key() const { return std::string(model::kZoneKey); }

  void AddCandidates() {
    Catalogue catalogue{.source = "random"};
    const int64_t types = rng_.Between(1, 4);
    for (int64_t t = 0; t < types; ++t) {
      const int64_t cpu = rng_.Between(1, 8);
      MachineType type{.name = fmt::format("type-{}", t), .capacity = {{"cpu", cpu * 1000}, {"pods", 20'000}}};
      // Now and then a zone that has no node.
      const int64_t zones = zones_ + (rng_.Chance(1, 4) ? 1 : 0);
      for (int64_t z = 0; z < zones; ++z) {
        type.offers.push_back({.zone = Zone(z), .price = {cpu * 30'000 * rng_.Between(60, 140) / 100}});
      }
      catalogue.types.push_back(std::move(type));
    }
    std::vector<Pool> pools{{.name = "default", .labels = {{"pool", "default"}, {kRack, "r0"}}}};
    if (rng_.Chance(1, 3)) pools.push_back({.name = "other", .labels = {{"pool", "other"}, {kRack, "r1"}}});
    request_.candidates = MakeCandidates(catalogue, pools);
  }

  void AddNodes() {
    const int64_t nodes = rng_.Between(2, 9);
    for (int64_t n = 0; n < nodes; ++n) {
      const int64_t cpu = rng_.Between(2, 8);
      placement::Node node{.id = fmt::format("node-{}", n)};
      node.labels = {{kHost, node.id},
                     {zone_key(), Zone(static_cast<int64_t>(rng_.Below(static_cast<uint64_t>(zones_))))},
                     {"pool", rng_.Chance(1, 4) ? "other" : "default"},
                     {kRack, rng_.Chance(1, 3) ? "r1" : "r0"}};
      node.total = {{"cpu", cpu * 1000}, {"pods", 20'000}};
      NodeFacts facts;
      if (!rng_.Chance(1, 10)) facts.price = model::Money{cpu * 30'000};
      if (rng_.Chance(1, 10)) facts.stays_because = "kept by the test";
      request_.nodes[node.id] = facts;
      request_.world.nodes.push_back(std::move(node));
    }
  }

  placement::Selector App(const std::string& app) {
    return {.given = true, .all = {{.key = "app", .op = model::Operator::kIn, .values = {app}}}};
  }

  void AddRule(placement::Kind& kind, const std::string& own, const std::string& other) {
    const std::string key = rng_.Chance(1, 4) ? kRack : zone_key();
    const auto skew = static_cast<int32_t>(rng_.Between(1, 3));
    switch (rng_.Below(10)) {
      case 0:
      case 1:
        kind.spread.push_back({.topology_key = key, .max_skew = skew, .selector = App(own)});
        if (rng_.Chance(1, 4)) kind.spread.back().min_domains = 2;
        break;
      case 2: kind.spread.push_back({.topology_key = kHost, .max_skew = skew, .selector = App(own)}); break;
      case 3: kind.spread.push_back({.topology_key = key, .max_skew = skew, .selector = App(other)}); break;
      case 4: kind.exclude.push_back({.topology_key = kHost, .selector = App(own)}); break;
      case 5: kind.exclude.push_back({.topology_key = key, .selector = App(other)}); break;
      case 6: kind.colocate.push_back({.topology_key = key, .selector = App(own)}); break;
      case 7: kind.colocate.push_back({.topology_key = rng_.Chance(1, 2) ? kHost : key, .selector = App(other)}); break;
      case 8: kind.ports.push_back({.port = 8080}); break;
      default: break;
    }
  }

  void AddApp(int64_t a) {
    const std::string own = fmt::format("app-{}", a);
    const std::string other = fmt::format("app-{}", rng_.Below(static_cast<uint64_t>(a + 1)));
    placement::Kind kind;
    kind.labels = {{"app", own}};
    kind.request = {{"cpu", rng_.Between(1, 20) * 100}, {"pods", 1000}};
    AddRule(kind, own, other);
    if (rng_.Chance(1, 4)) AddRule(kind, own, other);
    if (rng_.Chance(1, 5)) {
      kind.requirements.push_back({.key = "pool", .op = model::Operator::kIn, .values = {"default"}});
    }
    const placement::KindIndex index = kinds_.Add(kind);
    budgets_.push_back(rng_.Chance(1, 3) ? own : "");
    if (!budgets_.back().empty()) request_.world.budgets.push_back({own, rng_.Between(0, 3)});
    const int64_t count = rng_.Between(1, 10);
    for (int64_t i = 0; i < count; ++i) units_.push_back({.id = fmt::format("{}/{}", own, i), .kind = index});
  }

  // A part of the units ends, others are about to; what is left has its budget.
  void Thin() {
    const uint64_t percent = rng_.Below(70);
    std::erase_if(request_.world.placed, [&](const placement::PlacedUnit&) { return rng_.Chance(percent, 100); });
    for (placement::PlacedUnit& placed : request_.world.placed) {
      placed.terminating = rng_.Chance(1, 20);
      placed.may_evict = !rng_.Chance(1, 30);
      const std::string app = placed.unit.id.substr(0, placed.unit.id.find('/'));
      for (const std::string& budget : budgets_) {
        if (budget == app) placed.budgets = {app};
      }
    }
  }

  Rng rng_;
  int64_t zones_ = 1;
  Request request_;
  placement::KindTable kinds_;
  std::vector<placement::Unit> units_;
  std::vector<std::string> budgets_;
};

}  // namespace

Request RandomCluster(uint64_t seed) { return Maker(seed).Make(); }

}  // namespace muster::planner
