// Blocks: rows that stay where they are as more come, many to a piece of memory.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/fast/ids.h"

namespace muster::engine::fast {

template <class Id, class Row>
class Blocks {
 public:
  size_t size() const { return size_; }
  Row& operator[](Id id) { return blocks_[id.value() / kRows][id.value() % kRows]; }
  const Row& operator[](Id id) const { return blocks_[id.value() / kRows][id.value() % kRows]; }
  IdRange<Id> ids() const { return IdRange<Id>(size_); }
  // A row as Row() makes it, at the end.
  Id Add() {
    if (size_ == blocks_.size() * kRows) blocks_.push_back(std::make_unique<Row[]>(kRows));
    return Id::Of(size_++);
  }

 private:
  static constexpr size_t kRows = 64;
  std::vector<std::unique_ptr<Row[]>> blocks_;
  size_t size_ = 0;
};

}  // namespace muster::engine::fast
