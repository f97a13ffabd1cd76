// The searches that the engine's rules are the result of: worlds that settle, histories that keep every invariant.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "engine/directed_world.h"
#include "engine/types.h"

namespace muster::engine {

using DecideFn = std::function<Decision(const World&, Memory&, MonoTime, const Policy&)>;

// One decision, checked. The invariant that broke, if one did.
std::optional<std::string> CheckOnce(const Scene& scene, const DecideFn& decide);

struct SettleResult {
  std::optional<std::string> broken;  // an invariant
  bool loops = false;                 // still acting after 60 rounds
  bool buys_again = false;            // nobody was short, all was carried out and nothing changed, yet it takes more
  bool buys_in_flight = false;        // the same while what it began is still under way
  bool too_long = false;              // silent later than 4 + 2 x (distinct priorities) after the last change
  int rounds = 0;                     // rounds with actions after the last change of supply
  Scene end;
};

// Rounds with nothing from outside, actions carried out, holds passed. A reclaim, or another set of folded gangs,
// counts as a change of supply. To take is to acquire or to preempt.
SettleResult Settle(Scene scene, const DecideFn& decide);

// A history: cycles with changes from outside between them and slow transitions. The invariant that broke, if one did.
std::optional<std::string> RunHistory(Choices& choices, Scene scene, int changes, const DecideFn& decide);

struct SwayResult {
  std::optional<std::string> broken;  // an invariant
  int64_t preempts = 0;               // machines preempted, over the whole run
  int64_t bought_again = 0;           // machines acquired for needs that stood still and had been covered
};

// Cycles of 10 s in which the demand of one need goes up and down, carried out with the scene's dwell.
SwayResult Sway(Choices& choices, Swaying swaying, int cycles, const DecideFn& decide);

// Machines that enter and leave clusters per round when demand moves by up to 5 % a round.
struct FlapResult {
  double in_per_round = 0;
  double out_per_round = 0;
};
FlapResult Flap(uint64_t seed, Duration surplus_hold, int rounds, const DecideFn& decide);

}  // namespace muster::engine
