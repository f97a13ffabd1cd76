// Why a unit has no place in a plan, and which type comes nearest to taking it.
#pragma once

#include <map>
#include <string>

#include "placement/types.h"
#include "planner/plan.h"
#include "planner/problem.h"

namespace muster::planner {

// Units that ask the same of nodes have the same answer, which is found once. Thread-safety: none.
class UnplacedExplainer {
 public:
  // The problem is that of the request; both outlive the explainer.
  UnplacedExplainer(const Request& request, const Problem& problem) : request_(request), problem_(problem) {}

  // `refused`: the rule between units that barred it, if that is known; kNone: find out. The nearest type is the one
  // that lacks the fewest things and then the smallest share of what the unit asks for; of equals, the cheapest.
  Unplaced Explain(const placement::Unit& unit, placement::Reason refused);

 private:
  Unplaced ExplainKind(const placement::Kind& kind, placement::Reason refused) const;
  const Candidate* NearestOf(const placement::Kind& kind) const;

  const Request& request_;
  const Problem& problem_;
  std::map<std::string, Unplaced> known_;  // by what the kind asks of nodes, and the rule
};

}  // namespace muster::planner
