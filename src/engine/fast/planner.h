// Planner: what one need would take, given what is claimed so far. Phase 1 of the rules, over groups; claims nothing.
//
// Read beside the reference: credit.cc is its phase1.cc; acquire.cc, gang.cc and spread.cc go by their names. A rule is
// explained there, and only there; comments here say how counting machines comes to the same.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <memory_resource>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/fast/claim_view.h"
#include "engine/fast/cover.h"
#include "engine/fast/demand.h"
#include "engine/fast/id_merge.h"
#include "engine/fast/inventory.h"
#include "engine/fast/tables.h"
#include "engine/fast/tied.h"
#include "engine/types.h"

namespace muster::engine::fast {

// What a need takes of a group: the first `count` unclaimed machines.
struct Take {
  GroupId group = kNoId;
  uint32_t count = 0;
};

struct Acquisition {
  std::vector<MachineId> machines;  // in the order acquired
  std::vector<Take> takes;

  void clear() {
    machines.clear();
    takes.clear();
  }
};

struct GangPlan {
  // What completing it in one domain begins from.
  struct Part {
    DomainId domain = kNoId;
    Amounts rest;      // the aggregate less everything it could credit there
    bool own = false;  // of which some is its own
  };
  DomainId domain = kNoId;
  bool parked = false;
  bool satisfiable = false;
  bool hopeful = false;              // some domain would hold it, counting all that is on hold
  Amounts rest;                      // the aggregate less everything it could credit in its domain
  int64_t supply_now = 0;            // machines it could credit or acquire, over all domains
  std::vector<DomainScore> domains;  // with `explain`
  std::vector<GroupId> holds;        // pledged groups it counts on
  std::vector<GroupId> keeps;        // own bound groups elsewhere that stay with it
  std::vector<Part> parts;           // if no domain holds it: all with something to credit, by name
};

struct Plan {
  std::vector<Take> credits;
  Acquisition acquired;
  Amounts shortage;      // what is left
  bool settles = false;  // all of it comes from its own groups, of which no other need had claimed anything
  GangPlan gang;

  void Clear(const Amounts& aggregate);
};

// How many machines of a need lie in each value of each of its spread keys.
class SpreadCounts {
 public:
  SpreadCounts(const Fit& fit, const Filter& filter, std::pmr::memory_resource* memory);
  bool Allows(DomainId domain) const;
  void Add(DomainId domain, int64_t count);
  // Whether the skew still holds, or is no worse, with one machine less; if so it is taken out.
  bool Remove(DomainId domain);

 private:
  int64_t Min(size_t constraint) const;
  const Fit& fit_;
  std::pmr::vector<int64_t> skew_;
  std::pmr::vector<std::pmr::vector<int64_t>> count_;  // [constraint][value]
};

// A free group a need may acquire from, and at what cost.
struct Offerer {
  GroupId group = kNoId;
  Cost cost;
  Wide size = 0;
};

class Planner : private Tables {
 public:
  // `need_memory` as the last cycle left it.
  Planner(Inventory& inventory, Demand& demand, const Policy& policy, const Rows<KeyId, NeedMemory>& need_memory)
      : Tables(inventory, demand),
        policy_(policy),
        need_memory_(need_memory),
        view_(inventory),
        merge_(view_),
        walk_(view_) {}

  ClaimView& view() { return view_; }
  std::pmr::memory_resource* scratch() { return &scratch_; }
  void set_explain(bool explain) { explain_ = explain; }

  // What the cluster's own machines give. Of a gang only if they cover it, as free machines have no say then; false:
  // its choice depends on them, and only Whole() can plan it.
  bool Credit(NeedId n, Plan& plan);
  // What a plain need acquires beyond `plan.credits`.
  void Acquire(NeedId n, Plan& plan);
  // Both.
  void Whole(NeedId n, Plan& plan);

  // Free groups that are on hold one by one for the need's cluster, and that it could acquire from otherwise.
  void OnHold(NeedId n, DomainId domain, std::vector<Offerer>& out) const;
  // Free groups the need may acquire from, those pledged to it left out; at a reserved cost those pledged to others.
  void Offerers(NeedId n, model::MachineState state, DomainId domain, std::vector<Offerer>& out) const;
  NeedMemory MemoryOf(KeyId key) const { return need_memory_.Has(key) ? need_memory_[key] : NeedMemory{}; }

 private:
  using Tie = bool (*)(const Inventory&, GroupId, GroupId);
  struct Pool {
    std::vector<PoolKind> kinds;
    std::vector<Stretch> stretches;
    bool mixed = false;
    std::vector<std::unique_ptr<Tied>> tied;  // of `kinds`, and spare ones
    uint64_t filling = 0;                     // KeptPools::filling it is of
  };
  struct DomainSupply {  // what one domain has for a gang
    DomainId domain = kNoId;
    Totals own{};         // its own bound and Creating machines
    Totals creditable{};  // and other needs' machines of the cluster
    Totals free{};        // and what it may acquire
    Totals total{};       // and single machines on hold
    Totals all{};         // and what is out of stock
    Totals draining{};    // what drains for it
    int64_t own_count = 0;
    int64_t creditable_count = 0;
    int64_t count = 0;  // of `total`
    int64_t out_of_stock = 0;
    int64_t pledged = 0;
  };
  struct Rank {
    DomainId domain = kNoId;
    bool satisfiable_now = false;
    bool satisfiable = false;
    bool satisfiable_later = false;
    int64_t pledged = 0;
    Wide kept = 0;
    Wide capped_total = 0;
    Wide capped_creditable = 0;
    Wide capped_own = 0;
    Wide tightness = 0;
    int64_t count = 0;
    bool operator<(const Rank& other) const;  // better
  };
  struct SpreadKind;
  struct SpreadLane;
  struct SpreadPick;
  using SpreadLanes = std::pmr::vector<SpreadLane>;
  using SpreadPicks = std::pmr::vector<SpreadPick>;

  // Pools in the order in which they are used. What costs a need infinitely much is in the last two.
  enum PoolId : uint8_t { kIdlePool, kSpeculativePool, kInfiniteIdlePool, kInfiniteSpeculativePool };
  static constexpr size_t kPools = 4;
  static bool IsInfinite(PoolId pool) { return pool >= kInfiniteIdlePool; }
  static model::MachineState StateOf(PoolId pool) {
    const bool idle = pool == kIdlePool || pool == kInfiniteIdlePool;
    return idle ? model::MachineState::kIdle : model::MachineState::kSpeculative;
  }
  // Those that may have something for the need.
  std::span<const PoolId> PoolsOf(NeedId n) const {
    static constexpr std::array<PoolId, kPools> kAll = {kIdlePool, kSpeculativePool, kInfiniteIdlePool,
                                                        kInfiniteSpeculativePool};
    return std::span(kAll).first(model::UpperBound(BucketOf(n)).pinned ? 4 : 2);
  }

  // credit.cc
  // Takes machines of groups in lane order, as long as each is useful; neighbours for which `ties` holds go by id
  // together. With `names`, the machines in the order taken.
  void TakeLane(std::span<const GroupId> lane, Tie ties, Amounts& shortage, std::vector<Take>& takes,
                std::vector<MachineId>* names);
  void TakeTied(std::span<const GroupId> tied, Amounts& shortage, std::vector<Take>& takes,
                std::vector<MachineId>* names);
  bool TakeAsLastTime(std::span<const GroupId> tied, Amounts& shortage, std::vector<Take>& takes) const;
  void NoteSplit(std::span<const Take> takes);
  bool TakeAllTied(std::span<const GroupId> tied, Amounts& shortage, std::vector<Take>& takes) const;
  // Groups that can serve the need, have a machine left and lie in the domain, if one is given: its own (whether all of
  // them were still untouched), the rest of its cluster's, those being made for it, Idle ones that are pledged to it.
  bool OwnLane(NeedId n, DomainId domain, std::vector<GroupId>& lane) const;
  void RestLane(NeedId n, DomainId domain, std::vector<GroupId>& lane) const;
  void CreatingLane(NeedId n, DomainId domain, std::vector<GroupId>& lane) const;
  void PledgedLane(NeedId n, DomainId domain, std::vector<Offerer>& lane) const;
  template <class Also>
  void FillLane(NeedId n, std::span<const GroupId> from, DomainId domain, std::vector<GroupId>& lane,
                const Also& also) const;

  // acquire.cc
  model::PenaltyBucket BucketOf(NeedId n) const;
  Cost CostTo(NeedId n, ClassId c) const;
  void PlanAcquisition(NeedId n, Amounts& shortage, DomainId domain, Acquisition& plan);
  void TakePledged(NeedId n, DomainId domain, Amounts& shortage, Acquisition& plan);
  void CoverOfPools(NeedId n, DomainId domain, Pool& idle, Amounts& shortage, Acquisition& plan);
  bool MayUse(NeedId n, const Group& group, DomainId domain) const;
  bool IsPledgedTo(NeedId n, GroupId g) const;
  void FreeOfferers(NeedId n, model::MachineState state, DomainId domain, std::vector<Offerer>& out) const;
  void HeldOfferers(NeedId n, model::MachineState state, DomainId domain, std::vector<Offerer>& out) const;
  void PledgedOfferers(NeedId n, DomainId domain, std::vector<Offerer>& out) const;
  Pool& PoolFor(NeedId n, PoolId of, DomainId domain, const Amounts& deficit, Pool& scratch);
  Pool& FreePool(NeedId n, PoolId of, DomainId domain);
  PoolKind KindOf(const Offerer& offerer) const;
  void FillPool(std::vector<Offerer>& offerers, Pool& pool) const;
  void FillStretches(Pool& pool);
  CoverPool View(Pool& pool, bool idle);
  void NameKind(const PoolKind& kind, int64_t count, std::vector<MachineId>& names, std::vector<Take>* takes);
  void NamePicks(const Pool& pool, const Counts& counts, Acquisition& plan);

  // gang.cc
  void PlanGang(NeedId n, Plan& plan);
  bool CreditOwnGang(NeedId n, Plan& plan);
  bool ChooseSettled(NeedId n, GangPlan& gang);
  void CompleteGang(NeedId n, bool may_acquire, Plan& plan);
  void NoteParts(NeedId n, GangPlan& gang);
  void KeepElsewhere(NeedId n, GangPlan& gang);
  bool IsParked(NeedId n, int64_t supply_now) const;
  void CollectSupply(NeedId n, bool with_free, std::vector<DomainSupply>& supply);
  void ChooseDomain(NeedId n, const std::vector<DomainSupply>& supply, bool looks, GangPlan& gang);

  // spread.cc
  void CreditSpread(NeedId n, Plan& plan);
  void AcquireSpread(NeedId n, Plan& plan);
  void CountTakes(const Fit& fit, std::span<const Take> takes, SpreadCounts& counts) const;
  // `offerers` in lane order; neighbours for which `ties` holds go by id together.
  SpreadLanes MakeLanes(const Fit& fit, std::span<const Offerer> offerers,
                        bool (*ties)(const Inventory&, const Offerer&, const Offerer&));
  SpreadLanes EmptyLanes(const Fit& fit);
  SpreadLanes PoolLanes(NeedId n, PoolId of, const Amounts& deficit);
  TiedWalk& WalkOf(SpreadKind& kind);
  void EndWalks();
  SpreadPicks TakeSpread(SpreadLanes& lanes, Amounts& shortage, SpreadCounts& counts,
                         size_t most = std::numeric_limits<size_t>::max());
  SpreadPicks PruneSpread(SpreadPicks picks, const Amounts& deficit, SpreadCounts& counts);

  const Policy& policy_;
  const Rows<KeyId, NeedMemory>& need_memory_;
  ClaimView view_;
  bool explain_ = false;

  // Pools without pledged groups, kept while free groups, sizes and domains stay as they are.
  struct KeptPools {
    uint64_t version = 0;
    size_t classes = 0;
    uint64_t filling = 0;                      // counts changes of the two
    std::vector<std::unique_ptr<Pool>> pools;  // of all domains, then by domain; filled when asked for
  };
  std::unordered_map<uint64_t, KeptPools> pools_;  // by (fit, pool, bucket); never iterated
  uint64_t sweeps_ = 0;                            // of Catalogue: how often ids of fits have become others'

  // Scratch, so that a steady cycle allocates nothing.
  std::pmr::unsynchronized_pool_resource scratch_{{.max_blocks_per_chunk = 0, .largest_required_pool_block = 1 << 16}};
  IdMerge merge_;
  TiedWalk walk_;
  std::deque<TiedWalk> walks_;  // of spread lanes
  size_t walks_used_ = 0;
  std::vector<GroupId> lane_;
  std::vector<GroupId> own_;
  std::vector<GroupId> creating_;
  std::vector<Offerer> offerers_;
  Rows<DomainId, uint32_t> slot_of_domain_;
  std::vector<DomainSupply> supply_;
  std::vector<Rank> ranks_;
};

}  // namespace muster::engine::fast
