// Interner: gives equal strings one small index, so that decisions compare numbers.
//
// Thread-safety: none. Invariants: (1) indexes are dense, in order of first sight; (2) a string keeps its index and its
// address for the life of the interner. Index order is arrival order: never sort a decision by it.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/index.h"

namespace muster {

template <class I>
class Interner {
 public:
  Interner() = default;
  // Not copied: the copy's map would point into the original's strings. Moving keeps every address.
  Interner(const Interner&) = delete;
  Interner& operator=(const Interner&) = delete;
  Interner(Interner&&) = default;
  Interner& operator=(Interner&&) = default;

  // The index of `text`, new on first sight.
  I Intern(std::string_view text) {
    if (const auto it = index_of_.find(text); it != index_of_.end()) return it->second;
    const I index = I::Of(texts_.size());
    index_of_.emplace(texts_.emplace_back(text), index);
    return index;
  }
  // The index of `text`, or the invalid index if it was never interned.
  I Find(std::string_view text) const {
    const auto it = index_of_.find(text);
    return it == index_of_.end() ? I() : it->second;
  }
  std::string_view Text(I index) const {
    MUSTER_CHECK(index.value() < texts_.size(), "index {} of {}", index.value(), texts_.size());
    return texts_[index.value()];
  }
  size_t size() const { return texts_.size(); }

 private:
  std::deque<std::string> texts_;  // a deque never moves its strings, so the map may point into them
  std::unordered_map<std::string_view, I> index_of_;
};

}  // namespace muster
