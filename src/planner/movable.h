// Movable: a running cluster in dense form, the units of nodes that may go being the ones to move.
//
// How units may move makes every hard rule hold at every moment on the way, in whatever order they do:
// (1) a unit that has a rule over zones or other large domains, or is counted by one, moves within its cell and between
//     nodes of one look (labels and taints), so no domain ever counts more or fewer of anything;
// (2) it moves only if its rules hold where it is: a scheduler would not put it back otherwise; and it stays if a
// spread
//     over hosts relies on it, because some host has more units than the skew;
// (3) nodes that stay only gain units: what fits and is allowed there in the end is so at any time before;
// (4) where a spread counts domains, machines are bought only beside nodes of the same cell and look, and a domain that
//     minDomains may need keeps a node: none appears, and none that matters is lost.
// Units that must share a node with others do not move; the caller leaves them out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "planner/plan.h"
#include "planner/problem.h"

namespace muster::planner {

struct Movable {
  Request request;                         // every node is kept; the units that may move are pending
  std::vector<uint32_t> origin;            // by pending unit: position of its node in the world, as in Problem::fixed
  std::unique_ptr<const Problem> problem;  // kinds are parted by look where (1) asks for it
  std::vector<Lot> lots;                   // of the units that may move
  std::vector<uint32_t> lot_of;            // by pending unit
  std::map<uint32_t, std::string> must_stay;  // nodes by position, with a sentence each, for (2) and (4)
};

// `may_go`: positions of nodes in the world.
Movable MakeMovable(const Request& request, const std::set<uint32_t>& may_go);

}  // namespace muster::planner
