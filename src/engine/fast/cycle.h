// One decision cycle of the fast engine: the rules of reference/, over groups instead of machines.
//
// Read beside the reference: serve.cc is its phase1.cc, acquire.cc its acquire.cc, gang.cc, spread.cc, phase2.cc and
// phase3.cc go by their names, finish.cc makes the next cycle's memory. A rule is explained there, and only there; the
// comments here say how counting machines comes to the same.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/fast/cover.h"
#include "engine/fast/demand.h"
#include "engine/fast/inventory.h"
#include "engine/types.h"

namespace muster::engine::fast {

// What a need takes of a group: the first `count` unclaimed machines.
struct Take {
  GroupId group = kNoId;
  uint32_t count = 0;
};

struct ClaimRow {
  NeedId need = kNoId;
  GroupId group = kNoId;
  uint32_t first = 0;  // ordinal in the group
  uint32_t count = 0;
  uint32_t next_of_group = kNoId;
  uint32_t next_of_need = kNoId;
};

struct FastAction {
  ActionKind kind = ActionKind::kBootstrap;
  model::Reason reason = model::Reason::kNone;
  int32_t grace_seconds = 0;
  MachineId machine = kNoMachine;
  NeedId need = kNoId;
};

// What became of a need.
struct Outcome {
  Amounts shortage;
  uint32_t first_claim = kNoId;
  uint32_t credited = 0;
  uint32_t creating = 0;
  uint32_t bootstraps = 0;
  uint32_t provisions = 0;
  uint32_t victims = 0;
  uint32_t lost = 0;
  uint32_t domain = kNoId;  // gangs
  uint32_t gang = kNoId;    // gangs: row in Cycle::gangs
  bool parked = false;
  bool satisfiable = false;
  bool on_its_way = false;
};

struct GangRow {
  Amounts rest;            // the aggregate less everything it could credit in its domain
  int64_t supply_now = 0;  // machines it could credit or acquire, over all domains
  std::vector<DomainScore> domains;
};

// How many machines of a need lie in each value of each of its spread keys.
class SpreadCounts {
 public:
  SpreadCounts(const Fit& fit, const Filter& filter);
  bool Allows(uint32_t domain) const;
  void Add(uint32_t domain, int64_t count);
  // Whether the skew still holds, or is no worse, with one machine less; if so it is taken out.
  bool Remove(uint32_t domain);

 private:
  int64_t Min(size_t constraint) const;
  const Fit& fit_;
  std::vector<int64_t> skew_;
  std::vector<std::vector<int64_t>> count_;  // [constraint][value]
};

class Cycle {
 public:
  Cycle(Inventory& inventory, Demand& demand, const Policy& policy)
      : inventory_(inventory), demand_(demand), policy_(policy) {}

  // Decides. With `explain`, domains of gangs are ranked also where nothing depends on it.
  void Run(MonoTime now, bool explain);

  const std::vector<FastAction>& actions() const { return actions_; }
  const std::vector<ClaimRow>& claims() const { return claims_; }
  const std::vector<Outcome>& outcomes() const { return outcomes_; }
  size_t unsatisfied() const;
  bool explained() const { return explain_; }

  void RestoreNeed(KeyId key, const NeedMemory& memory);
  const std::vector<std::pair<KeyId, NeedMemory>>& need_memory() const { return remembered_; }
  // Verdicts and names; only after a run with `explain`.
  Decision Explain();

 private:
  using Tie = bool (*)(const Inventory&, GroupId, GroupId);

  const NeedRow& need(NeedId n) const { return *demand_.order()[n]; }
  size_t dims() const { return inventory_.catalogue().dimensions(); }
  Catalogue& catalogue() { return inventory_.catalogue(); }
  bool HasSession(NeedId n) const { return inventory_.cluster(need(n).cluster).state.session; }
  NeedMemory MemoryOf(KeyId key) const;

  // serve.cc
  void RefreshPledges();
  void Serve(NeedId n);
  void ServePlain(NeedId n);
  void EndPledges(NeedId n);
  void Credit(NeedId n, std::span<const Take> takes);
  void ClaimGroup(NeedId n, const Take& take);
  // Takes machines of groups in lane order, as long as each is useful. `lane_` holds the groups; neighbours for which
  // `ties` holds go by id together. With `names`, the machines in the order taken.
  void TakeLane(std::span<const GroupId> lane, Tie ties, Amounts& shortage, std::vector<Take>& takes,
                std::vector<MachineId>* names);
  void TakeTied(std::span<const GroupId> tied, Amounts& shortage, std::vector<Take>& takes,
                std::vector<MachineId>* names);
  void OwnLane(NeedId n, const Fit& fit, uint32_t domain, std::vector<GroupId>& lane) const;
  void RestLane(NeedId n, const Fit& fit, uint32_t domain, std::vector<GroupId>& lane) const;
  void CreatingLane(NeedId n, const Fit& fit, uint32_t domain, std::vector<GroupId>& lane) const;

  // acquire.cc
  struct Acquisition {
    std::vector<MachineId> machines;  // in the order acquired
    std::vector<Take> takes;
  };
  struct Pool {
    std::vector<PoolKind> kinds;
    std::vector<Stretch> stretches;
    bool mixed = false;
  };
  Acquisition PlanAcquisition(NeedId n, Amounts& shortage, uint32_t domain);
  void Acquire(NeedId n, const Acquisition& plan);
  void PledgedLane(NeedId n, const Fit& fit, uint32_t domain, std::vector<GroupId>& lane);
  // Unbound groups the need may acquire from, those pledged to it left out; `reserved` for those pledged to others.
  struct Offerer {
    GroupId group;
    Cost cost;
    Wide size;
  };
  void Offerers(NeedId n, model::MachineState state, uint32_t domain, std::vector<Offerer>& out);
  const Pool& PoolFor(NeedId n, model::MachineState state, uint32_t domain, Pool& scratch);
  void FillPool(std::vector<Offerer>& offerers, Pool& pool);
  CoverPool View(const Pool& pool, bool idle);
  void NameKind(const PoolKind& kind, int64_t count, std::vector<MachineId>& names, std::vector<Take>* takes);
  void NamePicks(const Pool& pool, const Counts& counts, Acquisition& plan);

  // gang.cc
  struct DomainSupply {  // what one domain has for a gang
    uint32_t domain = kNoId;
    Totals own{};         // its own bound and Creating machines
    Totals creditable{};  // and other needs' machines of the cluster
    Totals total{};       // and what it may acquire
    Totals later{};       // and what drains for it
    int64_t creditable_count = 0;
    int64_t count = 0;
    int64_t pledged = 0;
  };
  struct Rank;
  void ServeGang(NeedId n);
  bool ServeSettledGang(NeedId n, const Fit& fit);
  bool IsParked(NeedId n, int64_t supply_now) const;
  void CollectSupply(NeedId n, const Fit& fit, bool with_free, std::vector<DomainSupply>& supply);
  void ChooseDomain(NeedId n, const Fit& fit, const std::vector<DomainSupply>& supply, bool looks);

  // spread.cc
  struct SpreadLane;
  struct SpreadPick;
  void ServeSpread(NeedId n);
  void CountTakes(const Fit& fit, std::span<const Take> takes, SpreadCounts& counts) const;
  // `offerers` in lane order; neighbours for which `ties` holds go by id together.
  std::vector<SpreadLane> MakeLanes(const Fit& fit, std::span<const Offerer> offerers,
                                    bool (*ties)(const Inventory&, const Offerer&, const Offerer&));
  std::vector<SpreadPick> TakeSpread(std::vector<SpreadLane>& lanes, Amounts& shortage, SpreadCounts& counts);
  void AcquireSpread(NeedId n, const Fit& fit, SpreadCounts& counts);
  SpreadCounts CountClaims(NeedId n);

  // phase2.cc
  struct OfferRun {  // machines of one group that are worth the same to a priority
    GroupId group = kNoId;
    ClaimRow claim;  // which of them: those one need claimed, or what is left
    ActionKind kind = ActionKind::kPreempt;
    model::Reason reason = model::Reason::kPreempt;
    int64_t gap = 0;
    Wide score = 0;
    uint32_t tie = 0;  // runs with the same number go by id together
    // What is left of it.
    IdSet::Cursor cursor;
    uint32_t left = 0;
    MachineId head = kNoMachine;  // kNoMachine with left > 0: not looked up yet
  };
  struct Offers {  // everything needs of one fit and priority may take, in order
    std::vector<OfferRun> runs;
    bool valid = false;
  };
  struct Offer {
    uint32_t run = 0;
    MachineId machine = kNoMachine;
  };
  void Phase2();
  Amounts Residual(NeedId n, SpreadCounts* counts);
  uint32_t OffersFor(NeedId n);
  void FillOffers(NeedId n, Offers& offers);
  MachineId HeadOf(OfferRun& run);
  std::vector<Offer> Choose(NeedId n, Offers& offers, Amounts& residual, SpreadCounts* counts);
  std::vector<Offer> PruneOffers(NeedId n, const Offers& offers, std::vector<Offer> chosen, const Amounts& wanted,
                                 SpreadCounts* counts);
  bool IsTaken(MachineId m) const { return m < taken_.size() && taken_[m] == inventory_.cycle(); }
  void MarkTaken(MachineId m);

  // phase3.cc
  void Reclaim();
  void Release();
  bool IsHeld(MachineId m) const;

  // finish.cc
  void Finish();
  void KeepClocks();
  void KeepStamps();
  void Remember();

  // explain.cc
  std::vector<NeedId> Claimers();
  NeedVerdict VerdictOf(NeedId n);
  MachineVerdict VerdictOf(MachineId m, std::span<const NeedId> claimers);
  NeedId FirstOfKey(KeyId key) const;

  Inventory& inventory_;
  Demand& demand_;
  const Policy& policy_;
  MonoTime now_{};
  bool explain_ = false;

  std::vector<Outcome> outcomes_;
  std::vector<GangRow> gangs_;
  std::vector<ClaimRow> claims_;
  std::vector<FastAction> actions_;
  std::vector<int64_t> reclaims_left_;          // by cluster
  std::vector<GroupId> ended_;                  // pledged groups whose pledge ended in this cycle
  std::unordered_map<MachineId, NeedId> held_;  // phase 2: pledged machines single needs count on; never iterated
  std::vector<uint32_t> taken_;                 // by machine: the cycle in which phase 2 took it
  std::vector<Inventory::Resting> waiting_;     // Idle machines by the end of their hold, a heap
  std::vector<Inventory::Resting> due_;         // past their hold and still Idle
  std::vector<int32_t> age_before_;             // by need, with `explain`: how long it was short

  // Pools without pledged groups, kept while free groups and sizes stay as they are.
  struct CachedPool {
    uint64_t version = 0;
    Pool pool;
  };
  std::unordered_map<uint64_t, CachedPool> pools_;  // by (fit, state, bucket); never iterated
  std::vector<Offers> offers_;
  std::unordered_map<uint64_t, uint32_t> offers_of_;  // by (fit, priority); never iterated

  std::vector<std::pair<KeyId, NeedMemory>> remembered_;
  std::vector<uint32_t> memory_row_;  // by key: row in remembered_, kNoId for none

  // Scratch.
  std::vector<GroupId> lane_;
  std::vector<Take> takes_;
  std::vector<Offerer> offerers_;
  std::vector<uint32_t> slot_of_domain_;
  std::vector<DomainSupply> supply_;
};

}  // namespace muster::engine::fast
