// Row numbers of the fast engine's tables. Each table has a type of its own (base/index.h), so that a machine's number
// does not open the table of groups; they cost what plain 32-bit numbers cost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/index.h"

namespace muster::engine::fast {

using MachineId = Index<struct MachineTag>;
using ShapeId = Index<struct ShapeTag>;      // an allocatable vector
using ClassId = Index<struct ClassTag>;      // machines that differ in nothing but id and state
using TypeId = Index<struct TypeTag>;        // an instance type
using GroupId = Index<struct GroupTag>;      // machines of one class, state and attribution or pledge
using ClusterId = Index<struct ClusterTag>;  // a cluster's name
using KeyId = Index<struct KeyTag>;          // (cluster, fingerprint, group)
using StampId = Index<struct StampTag>;      // an attribution
using ProfileId = Index<struct ProfileTag>;  // a fingerprint, and the profile behind it if one is known
using FilterId = Index<struct FilterTag>;    // what a profile requires of a machine
using FitId = Index<struct FitTag>;          // which classes can serve a need
using DomainId = Index<struct DomainTag>;    // a domain of a fit, by name
using NeedId = Index<struct NeedTag>;        // a need of this cycle, by its place in the order of decision
using GangId = Index<struct GangTag>;        // a gang of this cycle
using ClaimId = Index<struct ClaimTag>;      // a claim of this cycle

// The invalid id of every kind.
struct NoId {
  template <class Tag>
  constexpr operator Index<Tag>() const {  // NOLINT(google-explicit-constructor): kNoId compares with every kind
    return {};
  }
  constexpr operator uint32_t() const { return 0xffffffff; }  // NOLINT(google-explicit-constructor): as above
};
inline constexpr NoId kNoId;
inline constexpr MachineId kNoMachine;

template <class Tag>
constexpr Index<Tag> After(Index<Tag> id) {
  return Index<Tag>(id.value() + 1);
}

struct IdHash {
  template <class Tag>
  size_t operator()(Index<Tag> id) const {
    return std::hash<uint32_t>()(id.value());
  }
};

// The ids from the first to before `end`: for (const ClusterId c : IdRange<ClusterId>(count)).
template <class Id>
class IdRange {
 public:
  explicit constexpr IdRange(size_t end, size_t first = 0)
      : first_(static_cast<uint32_t>(first)), end_(static_cast<uint32_t>(end)) {}
  struct Iterator {
    uint32_t at;
    constexpr Id operator*() const { return Id(at); }
    constexpr Iterator& operator++() {
      ++at;
      return *this;
    }
    constexpr bool operator==(const Iterator&) const = default;
  };
  constexpr Iterator begin() const { return {first_}; }
  constexpr Iterator end() const { return {end_}; }

 private:
  uint32_t first_;
  uint32_t end_;
};

// A table that only its own ids open. Builds with MUSTER_FAULTS check that the row exists.
template <class Id, class T>
class Rows {
 public:
  decltype(auto) operator[](Id id) { return rows_[At(id)]; }
  decltype(auto) operator[](Id id) const { return rows_[At(id)]; }
  bool Has(Id id) const { return id.value() < rows_.size(); }
  IdRange<Id> ids() const { return IdRange<Id>(rows_.size()); }

  Id Add(T row) {
    rows_.push_back(std::move(row));
    return Id(static_cast<uint32_t>(rows_.size() - 1));
  }
  // Makes room for the id and all before it.
  void Cover(Id id) {
    if (!Has(id)) rows_.resize(id.value() + size_t{1});
  }
  size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.empty(); }
  size_t capacity() const { return rows_.capacity(); }
  void resize(size_t size) { rows_.resize(size); }
  void resize(size_t size, const T& fill) { rows_.resize(size, fill); }
  void assign(size_t size, const T& fill) { rows_.assign(size, fill); }
  void reserve(size_t size) { rows_.reserve(size); }
  void clear() { rows_.clear(); }

  auto begin() { return rows_.begin(); }
  auto end() { return rows_.end(); }
  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }

 private:
  size_t At(Id id) const {
#ifdef MUSTER_FAULTS
    MUSTER_CHECK(Has(id), "row {} of {}", id.value(), rows_.size());
#endif
    return id.value();
  }
  std::vector<T> rows_;
};

}  // namespace muster::engine::fast
