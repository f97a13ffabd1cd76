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
  bool on_its_way = false;
};

// What a claim on a machine in this state is.
ClaimKind KindOfClaim(model::MachineState state);

class Cycle : private Tables {
 public:
  Cycle(Inventory& inventory, Demand& demand, const Policy& policy);

  // Decides. With `explain`, domains of gangs are ranked also where nothing depends on it.
  void Run(MonoTime now, bool explain, Parallel& parallel);

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
  void ServeBySpeculation(Parallel& parallel);
  bool MaySpeculate(NeedId n) const;
  void Speculate(std::span<const NeedId> window, Parallel& parallel);
  void SpeculateChain(size_t worker, std::span<Proposal* const> chain, Parallel& parallel);
  void Submit(Proposal& proposal);
  bool StillHolds(const Proposal& proposal) const;
  bool IsOvertaken(const Proposal& proposal) const;
  void SettleProposal(Proposal& proposal, const Parallel& parallel);
  void PlanInTurn(NeedId n, Plan& plan, const Parallel& parallel);
  void BeginFromCredit(NeedId n, Plan& plan) const;
  void Bump(const Fit& fit, uint64_t by);

  // phase2.cc
  struct OfferRun {  // machines of one group that are worth the same to a priority
    GroupId group = kNoId;
    ClaimRow claim;  // which of them: those one need claimed, or what is left
    ActionKind kind = ActionKind::kPreempt;
    model::Reason reason = model::Reason::kPreempt;
    int32_t grace_seconds = 0;
    const Amounts* each = nullptr;
    Wide score = 0;
    uint32_t tie = 0;  // runs with the same number go by id together
    // What is left of it.
    IdSet::Cursor passed;  // at the head
    IdSet::Cursor cursor;  // behind it
    uint32_t left = 0;
    MachineId head = kNoMachine;  // kNoMachine with left > 0: not looked up yet
  };
  struct Offers {  // everything needs of one fit and priority may take, in order
    std::vector<OfferRun> runs;
    bool valid = false;
  };
  struct Offered {  // the next machine of a run
    uint64_t label = 0;
    uint32_t run = 0;
  };
  struct Offer {
    uint32_t run = 0;
    MachineId machine = kNoMachine;
  };
  void Phase2();
  Amounts Residual(NeedId n, SpreadCounts* counts);
  SpreadCounts CountClaims(NeedId n);
  uint32_t OffersFor(NeedId n);
  void FillOffers(NeedId n, Offers& offers);
  MachineId HeadOf(OfferRun& run);
  bool MayTake(NeedId n, OfferRun& run);
  bool IsLimited(const OfferRun& run) const;
  void TakeHead(Offers& offers, uint32_t run);
  void GiveBack(const Offers& offers, const Offer& offer);
  void Choose(NeedId n, Offers& offers, Amounts& residual);
  void ChooseSpread(NeedId n, Offers& offers, Amounts& residual, SpreadCounts& counts);
  void PruneOffers(NeedId n, const Offers& offers, const Amounts& wanted, SpreadCounts* counts);
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

  // explain.cc
  Rows<MachineId, NeedId> Claimers() const;
  NeedVerdict VerdictOf(NeedId n);
  MachineVerdict VerdictOf(MachineId m, const Rows<MachineId, NeedId>& claimers);
  model::Reason ShortReason(NeedId n, const SupplyCount& supply) const;
  NeedId FirstOfKey(KeyId key) const;

  const Policy& policy_;
  MonoTime now_{};
  bool explain_ = false;
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
  Rows<NeedId, int32_t> age_before_;     // with `explain`: how long it was short
  std::vector<Offers> offers_;           // and spare ones

  Rows<KeyId, NeedMemory> need_memory_;
  std::vector<KeyId> remembered_;  // keys whose memory says something
  std::vector<std::pair<KeyId, NeedMemory>> next_memory_;
  struct Told {  // what TakeShortChanges last said of a key
    NeedMemory memory;
    uint32_t cycle = 0;  // 0: nothing
    int32_t priority = 0;
  };
  Rows<KeyId, Told> told_;
  std::vector<KeyId> told_short_;  // keys it said are short, and restored ones

  std::vector<std::unique_ptr<Planner>> planners_;  // the first one works in turn, all of them side by side
  std::vector<Plan> plans_;                         // one for each planner
  IdMerge merge_;
  // Never iterated; from the first planner's scratch.
  std::pmr::unordered_map<MachineId, NeedId, IdHash> held_;  // phase 2: pledged machines single needs count on
  std::pmr::unordered_map<uint64_t, uint32_t> offers_of_;    // by (fit, priority)
  std::vector<Offerer> offerers_;
  std::vector<Offered> offered_;
  std::vector<Offer> chosen_;

  // Speculation.
  BrokerStats stats_;
  std::vector<Proposal> proposals_;
  Rows<TypeId, uint64_t> sequence_;    // of a bucket: how often it has moved
  Rows<MachineId, NeedId> winner_;     // the need that acquired it in this cycle
  Rows<MachineId, NeedId> tentative_;  // the need whose accepted proposal holds it
};

}  // namespace muster::engine::fast
