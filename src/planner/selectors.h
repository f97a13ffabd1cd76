// SelectorTable: the selectors that rules of any kind use, numbered, and which kinds each of them matches.
//
// A selector is a conjunction of placement's UnitSelectors (co-location terms count a unit only if it matches every
// one), or the users of a host port. Kinds are found by namespace and label, not one by one: a dump has thousands of
// both.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "placement/match.h"
#include "placement/types.h"

namespace muster::planner {

class SelectorTable {
 public:
  // The world outlives the table.
  explicit SelectorTable(const placement::World& world) : world_(&world) {}

  // The number of a selector; equal ones share it.
  uint32_t Add(std::vector<placement::UnitSelector> all);
  // The selector that a unit with this port must be alone in on its node.
  uint32_t AddPort(const placement::HostPort& port);

  // Finds the matches. Nothing is added afterwards.
  void Match();

  size_t size() const { return size_; }
  // Of a kind of the world: the selectors that match its units, ascending.
  const std::vector<uint32_t>& MatchesOf(size_t kind) const { return matches_[kind]; }
  bool Matches(uint32_t selector, size_t kind) const;

 private:
  using PortKey = std::tuple<std::string, int32_t, std::string>;  // protocol, port, address; "" is every address

  void IndexKinds();
  const std::vector<uint32_t>* KindsThatMay(const placement::UnitSelector& selector) const;
  void MatchPorts();

  const placement::World* world_;
  uint32_t size_ = 0;
  std::map<std::vector<placement::UnitSelector>, uint32_t> selectors_;
  std::map<PortKey, uint32_t> ports_;
  std::vector<std::vector<uint32_t>> matches_;
  std::map<std::pair<std::string, std::string>, std::vector<uint32_t>> kinds_by_label_;
  std::vector<uint32_t> all_kinds_;
};

}  // namespace muster::planner
