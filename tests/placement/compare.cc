#include "placement/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/codec.h"
#include "placement/reference/place.h"
#include "placement/reference/rules.h"

namespace muster::placement {
namespace {

std::string Shown(Reason reason) { return std::string(ReasonName(reason)); }
template <class T>
std::string Shown(const T& value) {
  return codec::Describe(value);
}

// The fields that differ, with what the reference has and what the fast placer has instead.
template <class T>
std::string Differing(const T& reference, const T& fast) {
  std::string text;
  const auto add = [&](std::string_view name, const auto& right, const auto& wrong) {
    if (right != wrong) {
      text += fmt::format("{}{}: {}, not {}", text.empty() ? "" : "; ", name, Shown(right), Shown(wrong));
    }
  };
  T::TakeFields([&](const auto&... field) { (add(field.name, reference.*(field.member), fast.*(field.member)), ...); });
  return text;
}

template <class T>
std::string FirstDifference(std::string_view what, const std::vector<T>& reference, const std::vector<T>& fast) {
  if (reference.size() != fast.size()) {
    return fmt::format("{}: {} of them, not {}", what, reference.size(), fast.size());
  }
  for (size_t i = 0; i < reference.size(); ++i) {
    if (reference[i] == fast[i]) continue;
    return fmt::format("{} {}\n  number {}\n  reference {}\n  fast      {}", what, Differing(reference[i], fast[i]), i,
                       codec::Describe(reference[i]), codec::Describe(fast[i]));
  }
  return "";
}

std::vector<PlacedUnit> ById(std::vector<PlacedUnit> placed) {
  std::ranges::sort(placed, {}, [](const PlacedUnit& unit) { return unit.unit.id; });
  return placed;
}

}  // namespace

Comparison::Comparison(const Scene& scene, Reach& reach)
    : reach_(reach), policy_(scene.policy), world_(scene.world), placer_(scene.policy) {
  reference::AssignDevices(world_);
  placer_.Load(scene.world);
  for (size_t i = 0; i < world_.kinds.size(); ++i) indexes_.emplace_back(KindIndex::Of(i));
  CompareState();
}

KindIndex Comparison::InPlacer(KindIndex kind) {
  std::optional<KindIndex>& index = indexes_[kind.value()];
  if (!index) index = placer_.AddKind(world_.kinds[kind.value()]);
  return *index;
}

Unit Comparison::InPlacer(Unit unit) {
  unit.kind = InPlacer(unit.kind);
  return unit;
}

// Which member of the score tells the two best nodes apart.
void Comparison::CountScores(const Unit& unit) {
  const Kind& kind = world_.kinds[unit.kind.value()];
  std::vector<reference::Score> scores;
  for (const Node& node : world_.nodes) {
    if (reference::Check(world_, kind, node).reason != Reason::kNone) continue;
    scores.push_back(reference::ScoreOf(world_, kind, node, policy_));
  }
  if (scores.size() < 2) return;
  std::ranges::sort(scores);
  const auto& [a, b] = std::tie(scores[0], scores[1]);
  const std::array same = {a.avoided_taints == b.avoided_taints, a.minus_weight == b.minus_weight,
                           a.soft_spread == b.soft_spread,       a.device_cost == b.device_cost,
                           a.utilisation == b.utilisation,       false};
  ++reach_.decided_by[static_cast<size_t>(std::ranges::find(same, false) - same.begin())];
}

void Comparison::Place(const std::vector<Unit>& batch) {
  if (!difference_.empty()) return;
  CountScores(batch.front());
  const std::vector<Outcome> expected = reference::Place(world_, batch, policy_);
  std::vector<Unit> same;
  for (const Unit& unit : batch) same.push_back(InPlacer(unit));
  const std::vector<Outcome> outcomes = placer_.Place(same);
  difference_ = FirstDifference("outcome", expected, outcomes);
  ++reach_.batches;
  reach_.units += batch.size();
  for (const Outcome& outcome : expected) {
    ++reach_.reasons[std::string(ReasonName(outcome.reason))];
    for (const RefusalCount& refusal : outcome.refusals) ++reach_.reasons[std::string(ReasonName(refusal.reason))];
  }
  CompareState();
}

void Comparison::CompareState() {
  if (!difference_.empty()) return;
  placer_.CheckInvariants();
  std::vector<PlacedUnit> expected_units = ById(world_.placed);
  for (PlacedUnit& placed : expected_units) placed.unit = InPlacer(placed.unit);
  difference_ = FirstDifference("placed", expected_units, placer_.Placed());
  for (size_t i = 0; i < world_.kinds.size() && difference_.empty(); ++i) {
    std::vector<NodeVerdict> expected = reference::Feasible(world_, world_.kinds[i]);
    std::ranges::sort(expected, {}, &NodeVerdict::node);
    difference_ =
        FirstDifference(fmt::format("kind {} on node", i), expected, placer_.Feasible(InPlacer(KindIndex::Of(i))));
  }
}

void Comparison::ChangeNode(Rng& rng) {
  const size_t i = rng.Below(world_.nodes.size());
  Node& node = world_.nodes[i];
  Node other = RandomNode(rng, 0);
  other.id = node.id;
  switch (rng.Below(5)) {
    case 0: node = other; break;
    case 1: node.used = other.used; break;
    case 2: node.labels = other.labels; break;
    case 3: node.taints = other.taints; break;
    default: node.total = other.total; node.devices = other.devices;
  }
  placer_.UpsertNode(node);
}

void Comparison::RemoveNode(Rng& rng) {
  if (world_.nodes.size() < 2) return;
  const size_t i = rng.Below(world_.nodes.size());
  const std::string id = world_.nodes[i].id;
  world_.nodes.erase(world_.nodes.begin() + static_cast<ptrdiff_t>(i));
  std::erase_if(world_.placed, [&](const PlacedUnit& placed) { return placed.node == id; });
  if (!placer_.RemoveNode(id)) difference_ = "the fast placer lacks node " + id;
}

void Comparison::ChangeSettings(Rng& rng) {
  switch (rng.Below(3)) {
    case 0: {
      model::TextMap labels;
      if (rng.Chance(2, 3)) labels["team"] = "blue";
      const std::string name = rng.Chance(1, 2) ? "third" : "other";
      world_.namespaces[name] = labels;
      placer_.SetNamespace(name, labels);
      return;
    }
    case 1: {
      const Budget budget{.id = "b1", .allowed = rng.Between(0, 2)};
      std::erase_if(world_.budgets, [&](const Budget& other) { return other.id == budget.id; });
      world_.budgets.push_back(budget);
      placer_.SetBudget(budget);
      return;
    }
    default:
      if (rng.Chance(1, 3)) {
        world_.quotas.erase("t1");
        placer_.RemoveQuota("t1");
      } else {
        world_.quotas["t1"] = {{"cpu", rng.Between(1, 6) * 1000}};
        placer_.SetQuota("t1", world_.quotas["t1"]);
      }
  }
}

void Comparison::AddToPlacer(PlacedUnit placed) {
  placed.unit = InPlacer(placed.unit);
  placer_.AddUnit(placed);
}

void Comparison::AddKind(const Kind& kind) {
  const KindIndex index = placer_.AddKind(kind);
  if (std::ranges::find(indexes_, std::optional(index)) != indexes_.end()) return;  // the world has an equal one
  world_.kinds.push_back(kind);
  indexes_.emplace_back(index);
}

void Comparison::ForgetKinds() {
  std::set<KindIndex> used;
  for (const PlacedUnit& placed : world_.placed) used.insert(InPlacer(placed.unit.kind));
  placer_.ForgetKinds();
  for (std::optional<KindIndex>& index : indexes_) {
    if (index && !used.contains(*index)) index.reset();
  }
}

void Comparison::RandomChange(Rng& rng) {
  if (!difference_.empty()) return;
  switch (rng.Below(9)) {
    case 0:
      ++reach_.changes["node changed"];
      ChangeNode(rng);
      break;
    case 1:
      ++reach_.changes["node removed"];
      RemoveNode(rng);
      break;
    case 2:
      ++reach_.changes["node added"];
      world_.nodes.push_back(RandomNode(rng, next_++));
      placer_.UpsertNode(world_.nodes.back());
      break;
    case 3:
      ++reach_.changes["unit added"];
      world_.placed.push_back(RandomPlaced(rng, world_, next_));
      AddToPlacer(world_.placed.back());
      reference::AssignDevices(world_);
      break;
    case 4:
      ++reach_.changes["kind added"];
      AddKind(RandomKind(rng));
      break;
    case 5:
      ++reach_.changes["settings changed"];
      ChangeSettings(rng);
      break;
    case 6:
      ++reach_.changes["kinds forgotten"];
      ForgetKinds();
      break;
    default:
      ++reach_.changes["unit removed"];
      if (world_.placed.empty()) break;
      const size_t i = rng.Below(world_.placed.size());
      const std::string id = world_.placed[i].unit.id;
      world_.placed.erase(world_.placed.begin() + static_cast<ptrdiff_t>(i));
      if (!placer_.RemoveUnit(id)) difference_ = "the fast placer lacks unit " + id;
  }
  CompareState();
}

std::string CompareScene(uint64_t seed, Reach& reach) {
  Rng rng(seed);
  const Scene scene = RandomScene(rng);
  Comparison comparison(scene, reach);
  comparison.Place(scene.batch);
  return comparison.difference();
}

std::string CompareWide(uint64_t seed, Reach& reach) {
  Rng rng(seed);
  const Scene scene = WideScene(rng);
  Comparison comparison(scene, reach);
  comparison.Place(scene.batch);
  for (int i = 0; i < 3; ++i) comparison.RandomChange(rng);
  comparison.Place(RandomBatch(rng, comparison.world(), comparison.next(), 10));
  return comparison.difference();
}

std::string CompareCrowded(uint64_t seed, Reach& reach) {
  Rng rng(seed);
  const Scene scene = CrowdedScene(rng);
  Comparison comparison(scene, reach);
  comparison.Place(scene.batch);
  return comparison.difference();
}

std::string CompareHistory(uint64_t seed, int changes, Reach& reach) {
  Rng rng(seed);
  const Scene scene = RandomScene(rng);
  Comparison comparison(scene, reach);
  for (int i = 0; i < changes; ++i) {
    comparison.RandomChange(rng);
    if (i % 2 == 0) comparison.Place(RandomBatch(rng, comparison.world(), comparison.next(), 3));
  }
  return comparison.difference();
}

}  // namespace muster::placement
