// NodeTable: the nodes as columns: what is left of each resource, labels as small numbers, and the order in which equal
// units fill them.
//
// Rows lie in blocks of 64. Each block keeps the largest amount left per resource and the smallest order key, so that a
// search skips blocks that cannot hold the answer. Load lays rows out so that nodes of one domain share blocks.
//
// Thread-safety: none. Invariants, for rows in use: (1) left = total - reserved - requests of the units there, or
// kUnlimited; (2) order = (utilisation key, rank), ranks ascend with ids; (3) a block's summary is the exact maximum or
// minimum over its rows; rows not in use have nothing left and the largest order.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/interner.h"
#include "placement/arithmetic.h"
#include "placement/fast/bitmap.h"
#include "placement/fast/ids.h"

namespace muster::placement::fast {

inline constexpr int64_t kNothing = INT64_MIN / 2;
inline constexpr uint64_t kNoOrder = ~uint64_t{0};
inline constexpr size_t kBlock = 64;

// A label key: a value for each row, and the values' texts.
struct LabelColumn {
  std::vector<uint32_t> value;  // by row; kNoValue: the node lacks the key
  Interner<Index<struct ValueTag>> texts;
  std::vector<uint32_t> uniform;  // by block: the value all rows in use share, else kNoValue
};

class NodeTable {
 public:
  explicit NodeTable(Strategy strategy);

  // --- Rows. `leading` are label keys by which rows are laid out first.
  void Load(const std::vector<Node>& nodes, const std::vector<std::string>& leading);
  Position Add(const Node& node);
  // New facts about a node; what its units took stays taken. True if labels, taints, types or states changed.
  bool Update(Position row, const Node& node);
  void Remove(Position row);
  Position Find(std::string_view id) const;  // kNoValue: there is none
  size_t rows() const { return nodes_.size(); }
  size_t blocks() const { return in_use_.words(); }
  size_t size() const { return by_id_.size(); }
  const Bitmap& in_use() const { return in_use_; }
  const Node& node(Position row) const { return nodes_[row]; }
  // Rows in the order of ids.
  const std::map<std::string, Position, std::less<>>& by_id() const { return by_id_; }

  // --- Amounts.
  DimIndex Dim(std::string_view resource);
  std::string_view DimName(DimIndex dim) const { return dims_.Text(dim); }
  // Takes `amount` of a resource from a row, or gives it back if negative, without touching order and summaries.
  void Shift(Position row, DimIndex dim, int64_t amount) {
    int64_t& left = left_[dim.value()][row];
    if (left != kUnlimited) left -= amount;
    taken_[dim.value()][row] += amount;
  }
  // Brings order and summaries of a row up to date after shifts.
  void Settle(Position row);
  int64_t left(Position row, DimIndex dim) const { return left_[dim.value()][row]; }
  uint64_t order(Position row) const { return order_[row]; }
  int64_t block_left(size_t block, DimIndex dim) const { return block_left_[dim.value()][block]; }
  uint64_t block_order(size_t block) const { return block_order_[block]; }
  const std::vector<int64_t>& left_column(DimIndex dim) const { return left_[dim.value()]; }

  // --- Labels and classes.
  const LabelColumn& Column(const std::string& key);
  // Nodes of one class agree in state, taints and types.
  uint32_t class_of(Position row) const { return class_of_[row]; }
  const std::vector<Node>& classes() const { return classes_; }

  // What must hold between columns, recomputed; a bug ends the program.
  void CheckInvariants() const;

 private:
  // What the utilisation of a row is computed from, besides what units took: cpu and memory, the first two resources.
  struct Scored {
    std::array<int64_t, 2> total{};
    std::array<int64_t, 2> reserved{};
    std::array<int64_t, 2> used{};
  };

  Position FreeRow();
  void Grow(size_t rows);
  void Write(Position row, const Node& node);
  void WriteAmounts(Position row);
  void WriteClass(Position row);
  uint32_t NewRank(const std::string& id);
  void Renumber();
  uint64_t OrderOf(Position row) const;
  void SummariseBlock(size_t block);
  void BuildColumn(const std::string& key, LabelColumn& column);

  const Strategy strategy_;
  std::vector<Node> nodes_;  // by row
  Bitmap in_use_;
  std::vector<Position> free_rows_;
  std::map<std::string, Position, std::less<>> by_id_;
  std::vector<uint32_t> rank_;

  Interner<DimIndex> dims_;
  std::vector<std::vector<int64_t>> left_;   // by resource and row
  std::vector<std::vector<int64_t>> taken_;  // by resource and row: what units took
  std::vector<std::vector<int64_t>> block_left_;
  std::vector<Scored> load_;  // by row
  std::vector<uint64_t> order_;
  std::vector<uint64_t> block_order_;

  std::map<std::string, LabelColumn> columns_;  // of the keys asked for; dropped when a node's labels change
  std::vector<uint32_t> class_of_;
  std::vector<Node> classes_;  // of each class, a node with nothing but what it stands for
  std::map<std::string, uint32_t> class_index_;
};

}  // namespace muster::placement::fast
