// Renumbering: where the rows of a table are once some are gone. Those that are kept stay in their order, so what lists
// them in the order of ids stays in it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/fast/ids.h"

namespace muster::engine::fast {

template <class Id>
class Renumbering {
 public:
  // Of a table with so many rows; keeps(id) says which stay.
  template <class Keeps>
  Renumbering(size_t rows, const Keeps& keeps) : before_(rows + 1, 0) {
    for (const Id id : IdRange<Id>(rows)) before_[id.value() + size_t{1}] = before_[id.value()] + (keeps(id) ? 1 : 0);
  }

  // The row's number from now on; none if it is gone, or was none.
  Id operator()(Id id) const {
    if (id == kNoId || before_[id.value()] == before_[id.value() + size_t{1}]) return {};
    return Id(before_[id.value()]);
  }
  // How many of the first `rows` are kept.
  size_t KeptOf(size_t rows) const { return before_[rows]; }

  // How many of these are.
  size_t KeptIn(std::span<const Id> list) const {
    return static_cast<size_t>(std::ranges::count_if(list, [&](Id id) { return (*this)(id) != kNoId; }));
  }

  template <class T>
  void ApplyTo(Rows<Id, T>& table) const {
    for (const Id id : table.ids()) {
      const Id to = (*this)(id);
      if (to != kNoId && to != id) table[to] = std::move(table[id]);
    }
    table.resize(before_.back());
  }
  void ApplyTo(std::vector<Id>& list) const {
    size_t kept = 0;
    for (const Id id : list) {
      if (const Id to = (*this)(id); to != kNoId) list[kept++] = to;
    }
    list.resize(kept);
  }

 private:
  std::vector<uint32_t> before_;  // by row, and behind the last: how many before it are kept
};

}  // namespace muster::engine::fast
