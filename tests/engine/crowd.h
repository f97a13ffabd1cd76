// Crowds: fleets of many machines and few classes, whose classes tie in price or size and whose needs share keys. An
// engine that counts machines in groups has its hard cases here: groups that merge by id, kinds that tie in a pool,
// machines that leave and come back, classes that change under their machines. As with random worlds, a crowd and its
// history are a function of a string of bytes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/random_world.h"
#include "engine/search.h"

namespace muster::engine {

struct CrowdOptions {
  size_t min_machines = 60;
  size_t max_machines = 300;
  size_t max_needs = 40;
  size_t clusters = 5;
  size_t classes = 6;
  size_t gangs = 1;      // of eight profiles so many are gangs
  size_t spreads = 1;    // and so many spread
  bool cold = false;     // nearly all is free and hardly two classes cost the same: long covers
  bool starved = false;  // nothing is free: the few kinds of needs there are take from each other
};

struct Crowd {
  Scene scene;
  CrowdOptions options;
  std::vector<model::Machine> classes;  // what machines are made like
  std::vector<model::Profile> profiles;
  std::vector<model::Machine> gone;  // removed, and may come back
  size_t next_id = 0;
};

Crowd RandomCrowd(Choices& choices, const CrowdOptions& options);
// Changes many things at once: demand, machines, whole classes, clusters that vanish.
void CrowdChange(Choices& choices, Crowd& crowd);
// Cycles with changes between them. The invariant that broke, if one did.
std::optional<std::string> RunCrowd(Choices& choices, Crowd crowd, int changes, const DecideFn& decide);
// Cycles in each of which a good part of a small fleet is replaced by machines with ids between those that stay: rows
// of machines that went are used again, and ids are squeezed in until there is no room between their neighbours.
std::optional<std::string> RunChurn(Choices& choices, int cycles, const DecideFn& decide);

}  // namespace muster::engine
