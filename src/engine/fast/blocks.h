// Blocks: rows that stay where they are as more come, many to a piece of memory.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace muster::engine::fast {

template <class Row>
class Blocks {
 public:
  size_t size() const { return size_; }
  Row& operator[](size_t i) { return blocks_[i / kRows][i % kRows]; }
  const Row& operator[](size_t i) const { return blocks_[i / kRows][i % kRows]; }
  // A row as Row() makes it, at the end.
  Row& Add() {
    if (size_ == blocks_.size() * kRows) blocks_.push_back(std::make_unique<Row[]>(kRows));
    return (*this)[size_++];
  }

 private:
  static constexpr size_t kRows = 64;
  std::vector<std::unique_ptr<Row[]>> blocks_;
  size_t size_ = 0;
};

}  // namespace muster::engine::fast
