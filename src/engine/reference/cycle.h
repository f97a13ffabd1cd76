// One decision cycle of the reference engine: the state its rules work on, and the rules.
//
// The reference engine is the meaning of docs/engine.md: one thread, machine by machine, plain loops, nothing kept
// between cycles but Memory. Rule ids in brackets ([P1.own-first]) are those of docs/engine.md.
//
// Read in this order: prepare.cc (what a cycle starts from), normalise.cc, phase1.cc with acquire.cc,
// cover.cc, gang.cc and spread.cc, then phase2.cc, phase3.cc and verdicts.cc.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/index.h"
#include "engine/arithmetic.h"
#include "engine/types.h"

namespace muster::engine::reference {

using MachineIndex = Index<struct MachineTag>;
using NeedIndex = Index<struct NeedTag>;

// One amount per dimension of the cycle (Cycle::dimensions), in milli-units.
using Amounts = std::vector<int64_t>;
// A value for each topology key of a gang or spread, in the order of the keys.
using Domain = std::vector<std::string>;

struct MachineRow {
  const model::Machine* machine = nullptr;
  Amounts allocatable;
  Wide size = 0;                   // sum of allocatable / largest of any machine
  model::Attribution attribution;  // bound machines: whose it is, updated by claims
  model::Attribution keep;         // the same as it stood at the start: keep order reads this
  bool attributed = false;         // false: the attribution is only the default
  std::optional<NeedKey> pledge;   // Creating, Draining, Idle: whom it was bought or taken for
  NeedIndex claimed_by;            // invalid: nobody
  NeedIndex held_for;              // pledged and not claimed: the row of its key that counts on it
  NeedIndex awaited_by;            // on hold: the need that waits for it rather than take somebody else's
  bool taken = false;              // phase 2 gave it an action
  bool instead = false;            // Draining, or taken: surplus beyond the budget, instead of a serving machine
  model::Reason reason = model::Reason::kNone;

  model::MachineState state() const { return machine->state; }
};

struct NeedRow {
  // What it is. Set by Normalise.
  model::Need need;
  NeedKey key;
  std::vector<size_t> rows;  // positions in World::needs
  Amounts aggregate;
  Amounts min_unit;
  std::vector<std::string> same_keys;  // of a gang; empty otherwise
  std::vector<model::Spread> spread;   // the binding constraints; none for a gang
  ClusterState cluster;                // of its cluster

  // What phase 1 did.
  Amounts shortage;                   // aggregate less claims
  std::vector<MachineIndex> credits;  // Configured and Configuring, in the order claimed
  std::vector<MachineIndex> creating;
  std::vector<MachineIndex> bootstraps;
  std::vector<MachineIndex> provisions;
  bool parked = false;
  bool satisfiable = false;          // gangs: the domain holds enough, single machines on hold included
  bool hopeful = false;              // gangs: some domain does, counting all that is on hold
  std::optional<Domain> domain;      // gangs: the chosen one
  std::vector<DomainScore> domains;  // gangs: best first
  std::map<Domain, std::vector<MachineIndex>> creditable;  // gangs: all it could credit, by domain
  int64_t supply_now = 0;  // gangs: machines it could credit or acquire, over all domains

  // What phase 2 did.
  bool on_its_way = false;    // all it lacks is draining for it
  bool lacks_budget = false;  // surplus that the reclaim budget bars would cover it
  std::vector<MachineIndex> victims;
  int64_t lost = 0;

  bool is_gang() const { return !same_keys.empty(); }
};

struct Cycle {
  const World& world;
  const Policy& policy;
  MonoTime now;
  Memory memory;  // as it was at the start; NextMemory() makes the next one

  std::vector<std::string> dimensions;  // sorted by name
  IndexVector<MachineIndex, MachineRow> machines;
  std::vector<MachineIndex> by_id;                         // every machine, by id
  std::map<std::string, std::vector<MachineIndex>> bound;  // Configured and Configuring by cluster, in keep order
  std::vector<MachineIndex> idle;                          // by id
  std::vector<MachineIndex> speculative;                   // by id
  std::vector<MachineIndex> creating;                      // by price, id
  IndexVector<NeedIndex, NeedRow> needs;                   // in the order of decision
  std::map<NeedKey, NeedIndex> first_of_key;               // first need in order with this key
  std::map<std::string, int64_t> reclaims_left;            // by cluster
  std::vector<Action> actions;
};

// --- prepare.cc: the world as rows, memory brought up to date with it.
Cycle Prepare(const World& world, const Memory& memory, MonoTime now, const Policy& policy);
ClusterState StateOf(const Cycle& cycle, const std::string& cluster);

// --- amounts: element-wise, all of the cycle's dimensions.
Amounts Dense(const Cycle& cycle, const model::Resources& resources);
model::Resources Sparse(const Cycle& cycle, const Amounts& amounts);
bool IsZero(const Amounts& amounts);
bool Covers(const Amounts& supply, const Amounts& demand);
void SubtractSaturating(Amounts& from, const Amounts& amount);
// Adds to a dimension that is still short.
bool IsUseful(const Amounts& allocatable, const Amounts& shortage);

// --- match.cc: the one feasibility function.
bool MatchesProfile(const model::Machine& machine, const model::Profile& profile);
// Matches the profile, covers MinUnit, and has every topology key the need spreads over.
bool CanServe(const Cycle& cycle, const NeedRow& need, MachineIndex machine);
// The machine's values of these keys; nothing if it lacks one.
std::optional<Domain> DomainOf(const model::Machine& machine, const std::vector<std::string>& keys);
bool IsOwn(const Cycle& cycle, const NeedRow& need, MachineIndex machine);
std::string DomainText(const Domain& domain);

// --- normalise.cc: fold gangs that fit one machine, put needs in order.
void Normalise(Cycle& cycle);

// --- phase1.cc
void Phase1(Cycle& cycle);
void ClaimCredit(Cycle& cycle, NeedIndex need, MachineIndex machine);
void ClaimAcquisition(Cycle& cycle, NeedIndex need, MachineIndex machine);
// Machines of `from` that are unclaimed and can serve the need: its own first, then the rest, each in the given order.
std::vector<MachineIndex> OwnFirst(const Cycle& cycle, const NeedRow& need, const std::vector<MachineIndex>& from);
std::vector<MachineIndex> OwnCreating(const Cycle& cycle, const NeedRow& need);

// --- acquire.cc
// Whether the need may not acquire the machine for now, and what that means for it.
enum class Hold : uint8_t {
  kNone,
  kSingle,  // this machine: the need takes the next best, or waits for it
  kClass,   // all that is sold from its stock: the need looks elsewhere
};
Hold HoldOf(const Cycle& cycle, const NeedRow& need, MachineIndex machine);
using Filter = std::function<bool(MachineIndex)>;
struct Candidate {
  MachineIndex machine;
  Cost cost;
};
// Unclaimed machines of a state that the need may acquire, in pool order. Those pledged to it are left out.
std::vector<Candidate> Pool(const Cycle& cycle, NeedIndex need, model::MachineState state, const Filter& filter);
// The same in the order in which they are used: Idle, Speculative, and those that cost the need infinitely much, Idle
// and Speculative again.
std::array<std::vector<Candidate>, 4> Pools(const Cycle& cycle, NeedIndex need, const Filter& filter);
// Unclaimed machines that the need could acquire but for a hold of this kind, those pledged to it too: Idle, then
// Speculative, each in pool order.
std::vector<MachineIndex> OnHold(const Cycle& cycle, NeedIndex need, Hold hold, const Filter& filter);
// Machines pledged to the need that no row of its key before it counts on, unclaimed, by id.
std::vector<MachineIndex> PledgedTo(const Cycle& cycle, NeedIndex need);
// Idle machines pledged to the need, in pool order.
std::vector<Candidate> PledgedIdle(const Cycle& cycle, NeedIndex need, const Filter& filter);
struct Acquisition {
  std::vector<MachineIndex> pledged;
  std::vector<MachineIndex> idle;
  std::vector<MachineIndex> speculative;
};
// What the need would acquire for this shortage. Claims nothing; `shortage` is reduced by it.
Acquisition PlanAcquisition(const Cycle& cycle, NeedIndex need, Amounts& shortage, const Filter& filter);

// --- cover.cc
// Positions in `pool` of the machines that best cover the deficit, in pool order.
std::vector<size_t> BestCover(const Cycle& cycle, const std::vector<Candidate>& pool, const Amounts& deficit);
// Drops what the rest makes redundant, dearest first, as long as `may_drop` agrees.
std::vector<Candidate> Prune(const Cycle& cycle, std::vector<Candidate> picks, const Amounts& deficit,
                             const std::function<bool(const Candidate&)>& may_drop = {});

// --- gang.cc, spread.cc
void ServeGang(Cycle& cycle, NeedIndex need);
void ServeSpread(Cycle& cycle, NeedIndex need);

// How many machines of a need lie in each domain of each of its spread constraints.
class SpreadCounts {
 public:
  // Domains are those of all machines that match the need and are not Failed.
  SpreadCounts(const Cycle& cycle, const NeedRow& need);
  bool Allows(const model::Machine& machine) const;
  void Add(const model::Machine& machine);
  // Whether the skew still holds, or is no worse, without this machine; if so it is taken out.
  bool Remove(const model::Machine& machine);

 private:
  struct Constraint {
    std::string key;
    int64_t skew;
    std::map<std::string, int64_t> count;
    int64_t Min() const;
  };
  std::vector<Constraint> constraints_;
};

// --- phase2.cc, phase3.cc
void Phase2(Cycle& cycle);
void Phase3(Cycle& cycle);

// --- verdicts.cc
Decision Conclude(const Cycle& cycle);
Memory NextMemory(const Cycle& cycle);

}  // namespace muster::engine::reference
