// Worlds in which one rule matters: one need's demand sways, and everybody else should hardly notice.
#pragma once

#include <cstdint>

#include "engine/random_world.h"

namespace muster::engine {

enum class Family : uint8_t {
  // A gang that no rack will ever hold, of lower priority than a need that sways. What the need gives back and takes
  // again is of no use to the gang: nothing is ever preempted. [S.whole]
  kHalfGangs,
  // A need waits for machines that drain for it, while one before it in order grows and shrinks beside dearer Idle
  // machines: no more is preempted than the one that waits lacks. [PL.pledgee-first]
  kPledges,
  // A need sways beside surplus and beside machines of lesser needs, all alike to it: the surplus is enough, and no
  // lesser need ever has to buy again. [P2.surplus-first]
  kSurplus,
  // A need sways beside machines of lesser needs and beside surplus of greater ones that the reclaim budget bars: the
  // surplus stands in, and nothing that serves is ever preempted. [P2.instead]
  kBudget,
};

struct Swaying {
  Scene scene;
  size_t need = 0;       // position in World::needs of the one that sways
  int64_t most = 0;      // machines it asks for at most
  int64_t preempts = 0;  // machines that anybody has reason to preempt, over the whole run
};

Swaying RandomSwaying(Choices& choices, Family family);
// A gang that has begun in one rack, where what it lacks is on hold for a moment, beside another rack that could hold
// all of it, and machines of a lesser need: it waits. [H.stays] [H.waits]
Scene RandomHeldGang(Choices& choices);
// The swaying need asks for so many machines from here on.
void SetDemand(Swaying& swaying, int64_t machines);

}  // namespace muster::engine
