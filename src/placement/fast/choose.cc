#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "base/probe.h"
#include "placement/arithmetic.h"
#include "placement/fast/state.h"

namespace muster::placement::fast {
namespace {

constexpr int64_t kWithoutKey = int64_t{1} << 20;

// Lower is better, member by member; `order` decides between nodes that are equally preferred.
struct Rank {
  int64_t avoided = INT64_MAX;
  int64_t minus_weight = 0;
  int64_t soft_spread = 0;
  int64_t device_cost = 0;
  uint64_t order = kNoOrder;

  auto operator<=>(const Rank&) const = default;
};

}  // namespace

// Whether the block has enough left of everything, and does not lie as a whole in a domain that is closed.
bool Placer::State::BlockMayHold(const KindRow& kind, size_t block) const {
  for (const Amount& amount : kind.request) {
    if (amount.milli > nodes.block_left(block, amount.dim)) return false;
  }
  for (const SpreadRow& spread : kind.spread) {
    const Counter& counter = counters[spread.counter.value()];
    const uint32_t value = counter.column->uniform[block];
    if (value == kNoValue) continue;
    if (MUTANT("placement.block_closed")) return false;
    const int64_t least = counter.values >= spread.min_domains ? counter.least : 0;
    if (counter.count[value] + spread.self - least > spread.max_skew) return false;
  }
  return true;
}

// A kind without preferences goes to the fitting node with the smallest order. Blocks whose smallest order is no better
// than the best node found so far are not looked into.
Position Placer::State::ChoosePlain(KindIndex index) const {
  const KindRow& kind = kind_rows[index.value()];
  const Bitmap& mask = masks[kind.mask.value()].all;
  const bool simple = kinds[index.value()].ports.empty() && kinds[index.value()].devices.empty() &&
                      kind.spread.empty() && kind.colocate.empty() && kind.exclude.empty() && kind.excluded_by.empty();
  Position best = kNoValue;
  uint64_t best_order = kNoOrder;
  for (size_t block = 0; block < mask.words(); ++block) {
    uint64_t word = mask.word(block);
    if (word == 0 || nodes.block_order(block) >= best_order || !BlockMayHold(kind, block)) continue;
    for (; word != 0; word &= word - 1) {
      const auto row = static_cast<Position>(block * kBlock + static_cast<size_t>(std::countr_zero(word)));
      if (nodes.order(row) >= best_order || !Fits(kind, row)) continue;
      if (!simple && CheckRest(index, row) != Reason::kNone) continue;
      best = row;
      best_order = nodes.order(row);
    }
  }
  return best;
}

int64_t Placer::State::CostOfDevices(KindIndex index, Position row) {
  const Node& node = nodes.node(row);
  if (node.devices.empty()) return 0;
  KindRow& kind = kind_rows[index.value()];
  kind.device_cost.resize(nodes.rows());
  kind.device_cost_at.resize(nodes.rows());
  if (kind.device_cost_at[row] != row_change[row]) {
    const DeviceRoom room{.cpu = nodes.left(row, nodes.Dim("cpu")),
                          .memory = nodes.left(row, nodes.Dim("memory")),
                          .free = free_devices[row],
                          .size = node.devices};
    kind.device_cost[row] = DeviceCost(kinds[index.value()], room, device_mix);
    kind.device_cost_at[row] = row_change[row];
  }
  return kind.device_cost[row];
}

Position Placer::State::ChooseRanked(KindIndex index) {
  const KindRow& kind = kind_rows[index.value()];
  const Bitmap& mask = masks[kind.mask.value()].all;
  Position best = kNoValue;
  Rank best_rank;
  mask.ForEach([&](size_t bit) {
    const auto row = static_cast<Position>(bit);
    if (!Fits(kind, row) || CheckRest(index, row) != Reason::kNone) return;
    Rank rank{.avoided = kind.avoided.empty() || MUTANT("placement.soft_taints") ? 0 : kind.avoided[row],
              .minus_weight = kind.node_weight.empty() ? 0 : -kind.node_weight[row]};
    for (const WeightRow& weight : kind.soft_units) {
      if (counters[weight.counter.value()].At(row) > 0) rank.minus_weight -= weight.weight;
    }
    for (const SpreadRow& spread : kind.soft_spread) {
      const Counter& counter = counters[spread.counter.value()];
      rank.soft_spread += counter.column->value[row] == kNoValue ? kWithoutKey : counter.At(row);
    }
    if (any_devices) rank.device_cost = CostOfDevices(index, row);
    rank.order = nodes.order(row);
    if (rank < best_rank) {
      best = row;
      best_rank = rank;
    }
  });
  return best;
}

Position Placer::State::Choose(KindIndex index) {
  Compile(index);
  return kind_rows[index.value()].ranked ? ChooseRanked(index) : ChoosePlain(index);
}

}  // namespace muster::placement::fast
