// IdTexts: the ids of machines, or the names of keys, by row, one behind the other in one block. A fleet has millions
// of them, most too long to fit into a std::string without a block of their own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engine/fast/ids.h"

namespace muster::engine::fast {

template <class Id>
class IdTexts {
 public:
  // Good until the next Set.
  std::string_view operator[](Id row) const { return std::string_view(text_).substr(at_[row].begin, at_[row].size); }

  void Reserve(size_t count) { at_.reserve(count); }
  // Gives a row its id: the next row, or one whose machine or key went.
  void Set(Id row, std::string_view id) {
    if (row.value() == at_.size()) {
      at_.Add({});
    } else {
      unused_ += at_[row].size;
      at_[row].size = 0;
      if (unused_ > 4096 && unused_ * 2 > text_.size()) DropUnused();
    }
    MUSTER_CHECK(text_.size() + id.size() < kNoId, "the ids of {} rows take more than 4 GiB", at_.size());
    at_[row] = {.begin = static_cast<uint32_t>(text_.size()), .size = static_cast<uint32_t>(id.size())};
    text_ += id;
  }

  // Empty, or what is wrong: every row's text lies inside the block, and what no row has is counted as unused.
  std::string Verify() const {
    size_t used = 0;
    for (const Place& place : at_) {
      if (place.begin + size_t{place.size} > text_.size()) return fmt::format("ids: a text ends behind the block");
      used += place.size;
    }
    return used + unused_ == text_.size()
               ? ""
               : fmt::format("ids: {} bytes used and {} not, of {}", used, unused_, text_.size());
  }

 private:
  struct Place {
    uint32_t begin = 0;
    uint32_t size = 0;
  };

  void DropUnused() {
    const std::string old = std::exchange(text_, {});
    for (Place& place : at_) {
      const auto begin = static_cast<uint32_t>(text_.size());
      text_ += std::string_view(old).substr(place.begin, place.size);
      place.begin = begin;
    }
    unused_ = 0;
  }

  std::string text_;
  Rows<Id, Place> at_;
  size_t unused_ = 0;  // bytes of text_ that no row needs any more
};

}  // namespace muster::engine::fast
