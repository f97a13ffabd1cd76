#include "placement/fast/node_table.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/check.h"
#include "base/codec.h"
#include "base/probe.h"
#include "placement/arithmetic.h"

namespace muster::placement::fast {
namespace {

// The part of a node that its class stands for.
Node ClassPart(const Node& node) {
  Node part;
  part.ready = node.ready;
  part.fresh = node.fresh;
  part.cordoned = node.cordoned;
  part.taints = node.taints;
  part.supported_types = node.supported_types;
  return part;
}

bool SameStatic(const Node& a, const Node& b) {
  return a.ready == b.ready && a.fresh == b.fresh && a.cordoned == b.cordoned && a.labels == b.labels &&
         a.taints == b.taints && a.supported_types == b.supported_types;
}

// Values of the leading keys, then of all others, as one text to sort by.
std::string LayoutKey(const Node& node, const std::vector<std::string>& leading) {
  std::string text;
  const auto add = [&](const std::string& key) {
    const auto it = node.labels.find(key);
    if (it != node.labels.end()) text += it->second;
    text += '\0';
  };
  for (const std::string& key : leading) add(key);
  return text;
}

constexpr std::array<std::string_view, 2> kScored = {"cpu", "memory"};

}  // namespace

NodeTable::NodeTable(Strategy strategy) : strategy_(strategy) {
  for (const std::string_view name : kScored) Dim(name);
}

void NodeTable::Load(const std::vector<Node>& nodes, const std::vector<std::string>& leading) {
  std::vector<std::pair<std::string, const Node*>> layout;
  layout.reserve(nodes.size());
  for (const Node& node : nodes) layout.emplace_back(LayoutKey(node, leading), &node);
  std::ranges::stable_sort(layout, {}, &std::pair<std::string, const Node*>::first);
  Grow(nodes.size());
  for (size_t row = 0; row < layout.size(); ++row) {
    const auto position = static_cast<Position>(row);
    nodes_[row] = *layout[row].second;
    in_use_.Set(row);
    MUSTER_CHECK(by_id_.emplace(nodes_[row].id, position).second, "node {} is there twice", nodes_[row].id);
    WriteClass(position);
    WriteAmounts(position);
  }
  Renumber();
}

void NodeTable::Grow(size_t rows) {
  nodes_.resize(rows);
  const size_t blocks = (rows + kBlock - 1) / kBlock;
  Bitmap in_use(rows);
  for (size_t row = 0; row < rows && row / 64 < in_use_.words(); ++row) {
    if (in_use_.Test(row)) in_use.Set(row);
  }
  in_use_ = std::move(in_use);
  rank_.resize(rows);
  class_of_.resize(rows);
  load_.resize(rows);
  order_.resize(rows, kNoOrder);
  block_order_.resize(blocks, kNoOrder);
  for (auto& column : left_) column.resize(rows, kNothing);
  for (auto& column : taken_) column.resize(rows, 0);
  for (auto& column : block_left_) column.resize(blocks, kNothing);
}

Position NodeTable::FreeRow() {
  if (free_rows_.empty()) {
    const size_t old = nodes_.size();
    Grow(std::max<size_t>(kBlock, old * 2));
    for (size_t row = nodes_.size(); row-- > old;) free_rows_.push_back(static_cast<Position>(row));
  }
  const Position row = free_rows_.back();
  free_rows_.pop_back();
  return row;
}

Position NodeTable::Add(const Node& node) {
  MUSTER_CHECK(!by_id_.contains(node.id), "node {} is there already", node.id);
  const Position row = FreeRow();
  nodes_[row] = node;
  in_use_.Set(row);
  by_id_.emplace(node.id, row);
  rank_[row] = NewRank(node.id);
  columns_.clear();
  WriteClass(row);
  WriteAmounts(row);
  Settle(row);
  return row;
}

bool NodeTable::Update(Position row, const Node& node) {
  const bool changed = !SameStatic(nodes_[row], node);
  nodes_[row] = node;
  if (changed) {
    columns_.clear();
    WriteClass(row);
  }
  WriteAmounts(row);
  Settle(row);
  return changed;
}

void NodeTable::Remove(Position row) {
  by_id_.erase(nodes_[row].id);
  nodes_[row] = {};
  in_use_.Clear(row);
  free_rows_.push_back(row);
  for (auto& column : left_) column[row] = kNothing;
  for (auto& column : taken_) column[row] = 0;
  columns_.clear();
  Settle(row);
}

Position NodeTable::Find(std::string_view id) const {
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? kNoValue : it->second;
}

DimIndex NodeTable::Dim(std::string_view resource) {
  const size_t before = dims_.size();
  const DimIndex dim = dims_.Intern(resource);
  if (dims_.size() == before) return dim;
  left_.emplace_back(nodes_.size(), kNothing);
  taken_.emplace_back(nodes_.size(), 0);
  block_left_.emplace_back(blocks(), kNothing);
  in_use_.ForEach([&](size_t row) {
    const Node& node = nodes_[row];
    const bool unlimited = std::ranges::find(node.unlimited, resource) != node.unlimited.end();
    left_.back()[row] = unlimited ? kUnlimited : node.total.Get(resource) - node.reserved.Get(resource);
  });
  for (size_t block = 0; block < blocks(); ++block) SummariseBlock(block);
  return dim;
}

void NodeTable::WriteAmounts(Position row) {
  const Node& node = nodes_[row];
  for (size_t i = 0; i < kScored.size(); ++i) {
    load_[row].total[i] = node.total.Get(kScored[i]);
    load_[row].reserved[i] = node.reserved.Get(kScored[i]);
    load_[row].used[i] = node.used.Get(kScored[i]);
  }
  for (size_t i = 0; i < dims_.size(); ++i) {
    const std::string_view resource = dims_.Text(DimIndex::Of(i));
    const bool unlimited = std::ranges::find(node.unlimited, resource) != node.unlimited.end();
    left_[i][row] = unlimited ? kUnlimited : node.total.Get(resource) - node.reserved.Get(resource) - taken_[i][row];
  }
}

void NodeTable::WriteClass(Position row) {
  const Node part = ClassPart(nodes_[row]);
  const auto [it, added] = class_index_.emplace(codec::ToBytes(part), static_cast<uint32_t>(classes_.size()));
  if (added) classes_.push_back(part);
  class_of_[row] = it->second;
}

// Halfway between the neighbours, so that a node that joins moves no other; when there is no room, all are renumbered.
// A node behind all others is put a step behind the last: halfway, 32 nodes in the order of their ids would use up the
// room.
uint32_t NodeTable::NewRank(const std::string& id) {
  constexpr uint64_t kStep = uint64_t{1} << 14;
  const auto it = by_id_.find(id);
  const uint64_t below = it == by_id_.begin() ? 0 : rank_[std::prev(it)->second];
  const uint64_t above = std::next(it) == by_id_.end() ? uint64_t{1} << 32 : rank_[std::next(it)->second];
  if (above - below < 2) {
    PROBE("placement.ranks_renumbered");
    Renumber();
    return rank_[it->second];
  }
  const uint64_t halfway = (below + above) / 2;
  return static_cast<uint32_t>(std::next(it) == by_id_.end() ? std::min(below + kStep, halfway) : halfway);
}

void NodeTable::Renumber() {
  const uint64_t step = (uint64_t{1} << 32) / (by_id_.size() + 1);
  uint64_t rank = 0;
  for (const auto& [id, row] : by_id_) {
    rank += step;
    rank_[row] = static_cast<uint32_t>(rank);
    order_[row] = OrderOf(row);
  }
  for (size_t block = 0; block < blocks(); ++block) SummariseBlock(block);
}

uint64_t NodeTable::OrderOf(Position row) const {
  if (!in_use_.Test(row)) return kNoOrder;
  const Scored& load = load_[row];
  int64_t sum = 0;
  for (size_t i = 0; i < kScored.size(); ++i) {
    const int64_t reserved = load.reserved[i] + taken_[i][row];
    const int64_t busy = MUTANT("placement.used_ignored") ? reserved : std::max(reserved, load.used[i]);
    sum += Share(busy, load.total[i]);
  }
  const int64_t key = strategy_ == Strategy::kSpread ? sum : 2 * kShareMost - sum;
  return static_cast<uint64_t>(key) << 32 | (MUTANT("placement.tie_by_row") ? row : rank_[row]);
}

void NodeTable::Settle(Position row) {
  order_[row] = OrderOf(row);
  SummariseBlock(row / kBlock);
}

void NodeTable::SummariseBlock(size_t block) {
  const size_t first = block * kBlock;
  const size_t last = std::min(first + kBlock, nodes_.size());
  block_order_[block] =
      *std::min_element(order_.begin() + static_cast<ptrdiff_t>(first), order_.begin() + static_cast<ptrdiff_t>(last));
  for (size_t dim = 0; dim < left_.size(); ++dim) {
    int64_t most = kNothing;
    for (size_t row = first; row < last; ++row) most = std::max(most, left_[dim][row]);
    block_left_[dim][block] = most;
  }
}

const LabelColumn& NodeTable::Column(const std::string& key) {
  const auto [it, added] = columns_.try_emplace(key);
  if (added) BuildColumn(key, it->second);
  return it->second;
}

void NodeTable::BuildColumn(const std::string& key, LabelColumn& column) {
  column.value.assign(nodes_.size(), kNoValue);
  column.uniform.assign(blocks(), kNoValue);
  in_use_.ForEach([&](size_t row) {
    const auto label = nodes_[row].labels.find(key);
    if (label != nodes_[row].labels.end()) column.value[row] = column.texts.Intern(label->second).value();
  });
  for (size_t block = 0; block < blocks(); ++block) {
    uint64_t word = in_use_.word(block);
    if (word == 0) continue;
    const uint32_t value = column.value[block * kBlock + static_cast<size_t>(std::countr_zero(word))];
    bool same = true;
    for (; word != 0; word &= word - 1) {
      same = same && column.value[block * kBlock + static_cast<size_t>(std::countr_zero(word))] == value;
    }
    if (same) column.uniform[block] = value;
  }
}

void NodeTable::CheckInvariants() const {
  uint64_t rank = 0;
  for (const auto& [id, row] : by_id_) {
    MUSTER_CHECK(rank_[row] > rank, "ranks ascend with ids: {} has {} after {}", id, rank_[row], rank);
    rank = rank_[row];
    MUSTER_CHECK(order_[row] == OrderOf(row), "order of {}: {} is not {}", id, order_[row], OrderOf(row));
  }
  for (size_t block = 0; block < blocks(); ++block) {
    uint64_t least = kNoOrder;
    std::vector<int64_t> most(left_.size(), kNothing);
    for (size_t row = block * kBlock; row < std::min((block + 1) * kBlock, nodes_.size()); ++row) {
      least = std::min(least, order_[row]);
      for (size_t dim = 0; dim < left_.size(); ++dim) most[dim] = std::max(most[dim], left_[dim][row]);
    }
    MUSTER_CHECK(least == block_order_[block], "summary of block {}: order", block);
    for (size_t dim = 0; dim < left_.size(); ++dim) {
      MUSTER_CHECK(most[dim] == block_left_[dim][block], "summary of block {}: resource {}", block, dim);
    }
  }
}

}  // namespace muster::placement::fast
