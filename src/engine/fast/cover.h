// Which machines of a pool to take for a deficit, over counts. The rule is that of reference/cover.cc, machine by
// machine there; here a pool is a row of kinds (equal allocatable and cost) and a cover says how many of each.
#pragma once

#include <cstdint>
#include <functional>
#include <memory_resource>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/fast/amounts.h"
#include "engine/fast/ids.h"

namespace muster::engine::fast {

class Tied;

struct PoolKind {
  ShapeId shape = kNoId;
  const Amounts* each = nullptr;
  Cost cost;
  Wide size = 0;
  int64_t available = 0;
  Tied* tied = nullptr;       // its groups that are not pledged
  std::vector<GroupId> more;  // and those that are, or just were, pledged
};

// How many of each kind, kinds in pool order; kinds of which none is taken are left out. Always the first of a kind.
using Counts = std::pmr::vector<std::pair<uint32_t, int64_t>>;

// A stretch of pool positions held by machines of one kind. One per kind, but where kinds tie in cost and size: there
// machines go by id, whatever their kind.
struct Stretch {
  uint32_t kind = 0;
  int64_t ordinal = 0;   // of its first machine in the kind
  int64_t position = 0;  // of its first machine in the pool
  int64_t count = 0;
};

struct CoverPool {
  std::span<const PoolKind> kinds;     // in pool order, each with machines to offer
  std::span<const Stretch> stretches;  // in pool order
  bool mixed = false;                  // kinds tie somewhere, so that stretches are not simply the kinds
  bool idle = false;                   // Idle: ties go by pool order; Speculative: fewer machines, smaller ids
  // The labels of the first `count` machines of a kind, ascending: read when two covers differ in nothing else.
  std::function<std::vector<uint64_t>(uint32_t kind, int64_t count)> labels;
  std::pmr::memory_resource* memory = std::pmr::get_default_resource();  // of the search and what it finds
};

// The two cases that most needs are, without any memory: one useful kind, or every useful machine covers all of it. How
// many of which kind, the count zero if nothing is useful; nothing: it is neither case.
std::optional<std::pair<uint32_t, int64_t>> CoverOfOneKind(std::span<const PoolKind> kinds, bool mixed, bool idle,
                                                           const Amounts& deficit, size_t dimensions);

// The best cover of `deficit` that the pool offers; empty if nothing in it is useful.
Counts BestCover(const CoverPool& pool, const Amounts& deficit, size_t dimensions);

struct PoolCover {
  CoverPool pool;
  Counts counts;  // what is taken of it
};

// Drops what the rest makes redundant from all covers together, dearest first, at equal cost the later pool's.
void PruneTogether(std::span<PoolCover> covers, const Amounts& deficit, size_t dimensions);

}  // namespace muster::engine::fast
