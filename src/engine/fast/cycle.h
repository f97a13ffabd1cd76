// One decision cycle of the fast engine: plans (planner.h) committed in the order of needs, then phases 2 and 3, over
// groups instead of machines; phase2.cc and phase3.cc go by the names of the reference's files, remember.cc makes the
// next cycle's memory.
//
// With one worker a need is planned and committed in its turn. With more, clusters are credited side by side, and needs
// that are short speculate (broker.cc): their plans are made out of turn against what is committed, and in its turn a
// plan counts only if nothing it read has moved since. So workers change how fast, never what.
#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/parallel.h"
#include "engine/fast/answers.h"
#include "engine/fast/broker_stats.h"
#include "engine/fast/planner.h"

namespace muster::engine::fast {

struct ClaimRow {
  NeedId need = kNoId;
  GroupId group = kNoId;
  uint32_t first = 0;  // ordinal in the group
  uint32_t count = 0;
  ClaimId next_of_group = kNoId;
  ClaimId next_of_need = kNoId;
};

// The cycle's claims, on shelves so that several workers may write, each to its own.
class ClaimLog {
 public:
  static constexpr uint32_t kShelves = 64;

  void Clear() {
    for (auto& shelf : shelves_) shelf.clear();
  }
  ClaimId Add(uint32_t shelf, const ClaimRow& row) {
    shelves_[shelf].push_back(row);
    return ClaimId(shelf << 26 | static_cast<uint32_t>(shelves_[shelf].size() - 1));
  }
  ClaimRow& operator[](ClaimId id) { return shelves_[id.value() >> 26][id.value() & 0x3ffffff]; }
  const ClaimRow& operator[](ClaimId id) const { return shelves_[id.value() >> 26][id.value() & 0x3ffffff]; }
  template <class Visit>
  void ForEach(const Visit& visit) const {
    for (const auto& shelf : shelves_) {
      for (const ClaimRow& row : shelf) visit(row);
    }
  }

 private:
  std::vector<ClaimRow> shelves_[kShelves];
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
  ClaimId first_claim = kNoId;
  uint32_t credited = 0;
  uint32_t creating = 0;
  uint32_t bootstraps = 0;
  uint32_t provisions = 0;
  uint32_t victims = 0;
  uint32_t lost = 0;
  GangId gang = kNoId;
  bool parked = false;
  bool satisfiable = false;
  bool hopeful = false;       // gangs: some domain would hold it, counting all that is on hold
  bool on_its_way = false;    // all it lacks drains for it
  bool lacks_budget = false;  // surplus that the reclaim budget bars would cover it

  bool pending() const { return on_its_way || lacks_budget; }
};

// What a claim on a machine in this state is.
ClaimKind KindOfClaim(model::MachineState state);

class Cycle : private Tables {
 public:
  Cycle(Inventory& inventory, Demand& demand, const Policy& policy);

  // Decides. With `explain`, domains of gangs are ranked also where nothing depends on it.
  // Ages grow if it is to count for them.
  void Run(MonoTime now, bool explain, bool counts_ages, Parallel& parallel);

  const std::vector<FastAction>& actions() const { return actions_; }
  // Every claim: those in the log, and those of needs that settled.
  template <class Visit>
  void ForEachClaim(const Visit& visit) const {
    claims_.ForEach(visit);
    for (const NeedId n : progress_.ids()) {
      if (progress_[n] != Progress::kSettled) continue;
      for (const GroupId g : inventory_.key(need(n).key).own) {
        const uint32_t count = inventory_.SettledClaim(inventory_.group(g));
        if (count > 0) visit(ClaimRow{.need = n, .group = g, .count = count});
      }
    }
  }
  const BrokerStats& broker() const { return stats_; }
  // Clusters that had more to give up than their limit allowed.
  uint64_t reclaims_capped() const { return reclaims_capped_; }
  size_t unsatisfied() const { return short_.size(); }
  const std::vector<NeedId>& short_needs() const { return short_; }  // in order
  const Outcome& outcome(NeedId n) const { return outcomes_[n]; }    // of one that is short

  void RestoreNeed(KeyId key, const NeedMemory& memory);
  const std::vector<KeyId>& remembered() const { return remembered_; }
  const NeedMemory& need_memory(KeyId key) const { return need_memory_[key]; }
  ShortChanges TakeShortChanges(const ShortVisitor& visit);
  Action Name(const FastAction& action) const;
  // Names and verdicts; what only a run with `explain` knows is left out after one without.
  Decision Explain();
  // The first invariant of the last cycle that does not hold; empty if all do: what is claimed of a group are its first
  // machines, as many as it counts, by needs that they can serve.
  std::string Verify() const;

 private:
  // phase1.cc
  enum class Progress : uint8_t { kWaiting, kCredited, kSettled, kDone };
  void Begin(MonoTime now, bool explain);
  bool Settle(NeedId n);
  void KeepSettled(NeedRow& row, std::span<const Take> takes);
  void RefreshPledges();
  void PrepareFits();
  void ServeInTurn();
  void CreditSideBySide(Parallel& parallel);
  void CreditCluster(ClusterId cluster, Planner& planner, Plan& plan, uint32_t shelf);
  void CommitCredit(NeedId n, const Plan& plan, uint32_t shelf);
  void CommitAcquisition(NeedId n, const Plan& plan);
  void Claim(NeedId n, const Take& take, uint32_t shelf);
  void Keep(NeedId n, GroupId g);
  bool IsCovered(NeedId n) const;  // so far
  void EndTurn(NeedId n);
  void EndPledges(NeedId n);

  // broker.cc
  struct Proposal {
    NeedId need = kNoId;
    Plan plan;
    uint64_t nanos = 0;          // it took to plan
    std::vector<uint64_t> read;  // Bucket sequence numbers, parallel to the fit's types
    bool rejected = false;
    bool displaced = false;
  };
  static constexpr uint64_t kPoison = uint64_t{1} << 32;  // a move of a bucket that no speculation can have seen
  ModeStats& ModeOf(NeedId n) { return stats_.of(need(n).is_gang); }
  uint64_t Moved() const { return stats_.incremental.conflicts + stats_.incremental.displacements; }
  void ServeBySpeculation(Parallel& parallel);
  bool MaySpeculate(NeedId n) const;
  void Speculate(std::span<const NeedId> window, Parallel& parallel);
  void SpeculateChain(size_t worker, std::span<Proposal* const> chain, Parallel& parallel);
  void Submit(Proposal& proposal);
  bool StillHolds(const Proposal& proposal) const;
  bool IsOvertaken(const Proposal& proposal) const;
  void TellPlanTime(NeedId n, uint64_t nanos, Parallel& parallel) const;
  void SettleProposal(Proposal& proposal, Parallel& parallel);
  void PlanInTurn(NeedId n, Plan& plan, Parallel& parallel);
  void BeginFromCredit(NeedId n, Plan& plan) const;
  void Bump(const Fit& fit, uint64_t by);

  // offers.cc
  struct OfferRun {  // machines of one group that are worth the same to a priority
    GroupId group = kNoId;
    ClaimRow claim;  // which of them: those one need claimed, or what is left
    ActionKind kind = ActionKind::kPreempt;
    model::Reason reason = model::Reason::kPreempt;
    int32_t grace_seconds = 0;
    const Amounts* each = nullptr;
    const Stamp* stamp = nullptr;  // whose they are
    Wide score = 0;
    uint32_t tie = 0;  // runs with the same number go by id together
    // What is left of it.
    IdSet::Cursor passed;  // at the head
    IdSet::Cursor cursor;  // behind it
    uint32_t left = 0;
    MachineId head = kNoMachine;  // kNoMachine with left > 0: not looked up yet
  };
  struct Offer {
    uint32_t run = 0;
    MachineId machine = kNoMachine;
    model::Reason reason = model::Reason::kNone;
  };
  struct Offers {  // everything needs of one fit and priority may take, in order
    std::vector<OfferRun> runs;
    std::vector<std::vector<uint32_t>> in_domain;  // of gangs: runs by domain; otherwise all of them; empty: not made
    std::vector<Offer> unused;                     // surplus past its hold that may stand in for victims
    bool knows_unused = false;
    bool valid = false;
  };
  struct Offered {  // the next machine of a run
    uint64_t label = 0;
    uint32_t run = 0;
  };
  struct Wanting {  // what a need looks for
    Amounts residual;
    SpreadCounts* counts = nullptr;  // of a spread
    DomainId domain = kNoId;         // of a gang
  };
  uint32_t OffersFor(NeedId n);
  void FillOffers(NeedId n, Offers& offers);
  MachineId HeadOf(OfferRun& run);
  bool Concerns(NeedId n, DomainId domain, const OfferRun& run) const;
  bool MayTake(NeedId n, DomainId domain, OfferRun& run);
  bool IsLimited(const OfferRun& run) const;
  void TakeOffer(Offers& offers, uint32_t run, MachineId machine, model::Reason reason);
  void GiveBack(const Offers& offers, const Offer& offer);
  std::span<const uint32_t> RunsIn(NeedId n, DomainId domain, Offers& offers);
  template <class Visit>
  void ForEachUntaken(OfferRun& run, const Visit& visit);
  const std::vector<Offer>& UnusedOf(Offers& offers);
  bool IsOfUse(NeedId n, const OfferRun& run, const Wanting& wanting) const;
  int64_t CountVictims(NeedId n, Offers& offers, const Wanting& wanting, int64_t enough);
  const Offer* StandInFor(NeedId n, const Amounts& each, Offers& offers, const Wanting& wanting);
  bool TakeVictim(NeedId n, OfferRun& best, Offers& offers, Wanting& wanting);
  void Choose(NeedId n, Offers& offers, Wanting& wanting);
  void ChooseOneByOne(NeedId n, Offers& offers, Wanting& wanting);
  bool LacksBudget(NeedId n, Offers& offers, const Wanting& wanting);
  void PruneOffers(NeedId n, const Offers& offers, const Amounts& wanted, SpreadCounts* counts);

  // phase2.cc
  struct Harm {  // what completing a gang costs others; least first
    bool away = false;
    int64_t pinned = 0;
    Wide penalties = 0;
    size_t machines = 0;
    DomainId domain = kNoId;

    bool operator<(const Harm& other) const {
      return std::tie(away, pinned, penalties, machines, domain) <
             std::tie(other.away, other.pinned, other.penalties, other.machines, other.domain);
    }
  };
  void Phase2();
  SpreadCounts CountClaims(NeedId n);
  Amounts GangResidual(NeedId n, DomainId domain, Amounts rest);
  void CountPledges(NeedId n, Wanting& wanting);
  void CountAwaited(NeedId n, Wanting& wanting, std::vector<MachineId>& awaited);
  int64_t StandingInFor(NeedId n);
  bool HasPledge(NeedId n);
  void TakeIn(NeedId n, DomainId domain);
  void ChooseAll(NeedId n, Offers& offers, Wanting& wanting);
  bool MayComplete(NeedId n, Offers& offers, const Wanting& wanting);
  std::optional<Harm> HarmIn(NeedId n, DomainId domain, const GangPlan::Part* part);
  void TakeWhereItHarmsLeast(NeedId n);
  void Commit(NeedId n, const Offers& offers);
  void PassTaken();
  bool IsTaken(MachineId m) const { return taken_in_ == inventory_.cycle() && taken_[m]; }

  // phase3.cc
  // What a cluster's bound groups were like when phase 3 last looked: while nothing but needs that did not settle can
  // have changed that, only their groups are looked at again.
  struct Surplus {
    uint64_t version = 0;         // Cluster::version
    uint64_t listed = 0;          // Demand::ListedIn
    bool shared = true;           // a need claimed machines of another key
    std::vector<GroupId> groups;  // Configured with unclaimed machines or running clocks, in keep order
    std::vector<GroupId> again;   // to be looked at again
  };
  void Reclaim();
  std::span<const GroupId> Candidates(ClusterId c);
  bool MayReclaimFrom(GroupId g) const;
  void Release();
  bool IsHeld(MachineId m) const;

  // remember.cc
  void Finish();
  void KeepClocks();
  void KeepClocks(GroupId g);
  void KeepStamps();
  void Remember();
  int32_t AgeAfter(const Outcome& outcome, int32_t before) const;

  // explain.cc
  Rows<MachineId, NeedId> Claimers() const;
  NeedVerdict VerdictOf(NeedId n);
  MachineVerdict VerdictOf(MachineId m, const Rows<MachineId, NeedId>& claimers);
  model::Reason ShortReason(NeedId n, const SupplyCount& supply);
  bool IsOutOfStock(NeedId n);
  bool IsHeldFrom(NeedId n, const Group& group) const;
  bool AsksForTheUnknown(NeedId n) const;
  NeedId FirstOfKey(KeyId key) const;

  const Policy& policy_;
  MonoTime now_{};
  bool explain_ = false;
  bool counts_ages_ = true;
  std::tuple<size_t, uint64_t, uint64_t> prepared_{};  // what fits were prepared for

  Rows<NeedId, Progress> progress_;
  Rows<NeedId, Outcome> outcomes_;  // of a need that settled, an older cycle's
  std::vector<NeedId> served_;      // needs that did not settle, in order
  std::vector<NeedId> short_;       // needs that phase 1 left short, in order
  Rows<GangId, GangPlan> gangs_;
  ClaimLog claims_;
  std::vector<ClaimId> restamps_[ClaimLog::kShelves];  // claims on machines that were another need's
  std::vector<FastAction> actions_;
  Rows<ClusterId, int64_t> reclaims_left_;
  uint64_t reclaims_capped_ = 0;
  Rows<ClusterId, Surplus> surplus_;
  std::vector<GroupId> found_;   // scratch
  std::vector<GroupId> ended_;   // pledged groups whose pledge ended in this cycle
  Rows<MachineId, bool> taken_;  // phase 2 took it
  uint32_t taken_in_ = 0;        // the cycle for which it holds
  struct Waiting {
    MonoTime until;  // the end of the hold it had when it came
    Inventory::Resting resting;
  };
  std::vector<Waiting> waiting_;         // Idle machines by the end of their hold, a heap
  std::vector<Inventory::Resting> due_;  // past their hold and still Idle
  Amounts most_;                         // with `explain`: the most that any machine has
  Rows<NeedId, int32_t> age_before_;     // with `explain`: how long it was short
  std::vector<Offers> offers_;           // and spare ones

  Rows<KeyId, NeedMemory> need_memory_;
  std::vector<KeyId> remembered_;  // keys whose memory says something
  std::vector<std::pair<KeyId, NeedMemory>> next_memory_;
  struct Told {  // what TakeShortChanges last said of a key
    NeedMemory memory;
    uint32_t cycle = 0;    // 0: nothing
    uint32_t counted = 0;  // cycles that counted for ages
    int32_t priority = 0;
  };
  Rows<KeyId, Told> told_;
  std::vector<KeyId> told_short_;  // keys it said are short, and restored ones
  uint32_t counted_ = 0;           // cycles that counted for ages

  std::vector<std::unique_ptr<Planner>> planners_;  // the first one works in turn, all of them side by side
  std::vector<Plan> plans_;                         // one for each planner
  IdMerge merge_;
  // Never iterated; from the first planner's scratch.
  std::pmr::unordered_map<MachineId, NeedId, IdHash> held_;  // phase 2: pledged machines single needs count on
  std::pmr::unordered_map<uint64_t, uint32_t> offers_of_;    // by (fit, priority)
  std::vector<Offerer> offerers_;
  std::vector<Offered> offered_;
  std::vector<Offer> chosen_;
  int64_t standing_in_ = 0;    // machines that drain, or will, for the need instead of ones that serve others
  bool trying_ = false;        // what is taken is given back at once
  bool out_of_order_ = false;  // machines were taken that do not come first in their run
  std::unordered_set<MachineId, IdHash> awaited_;  // on hold, and a need waits for them; never iterated
  std::vector<MachineId> awaiting_;                // by the need whose turn it is

  // Speculation.
  BrokerStats stats_;
  std::vector<Proposal> proposals_;
  Rows<TypeId, uint64_t> sequence_;    // of a bucket: how often it has moved
  Rows<MachineId, NeedId> winner_;     // the need that acquired it in this cycle
  Rows<MachineId, NeedId> tentative_;  // the need whose accepted proposal holds it
};

}  // namespace muster::engine::fast
