// Losses: machines that turn Failed or vanish from the provider's lists. A few at a time are repaired and replaced as
// they go. When more than a share of a cluster or of the fleet goes within a window, the provider is the likelier
// culprit: an alert latches until an operator accepts the losses, repairs of those machines stop, and what vanished is
// missing: it stays tracked and set aside, and is given up a share at a time. So is, without an alert, what vanishes
// when the cluster's budget of changes (rails.h) is spent. What is shown as Failed while that alert is latched, and
// served a cluster, waits in the same way: it counts as if it served until it is given up. Nothing is given up of a
// cluster that is paused or in dry run, nor while the shard is: who looks at a provider that is broken must find the
// machines as they were.
//
// What happens while the shard is down is counted when it is seen. What failed then is Failed and has no repair; what
// vanished is not known by name. How many machines each cluster had is durable: if the first sweep shows far fewer, the
// alert latches, and those that lack count as if they were there, until they are back, are given up in the same shares,
// or an operator accepts the losses. Until then the cluster may have, with what is on its way to it, what it had less
// what counts as there: a purchase that fails, or that the shard did not live to make, is made again. Of what failed,
// no more count than serve no longer: a Create or a Configure that ended in Failed is no loss then either.
//
// Invariants:
//   1. `missing` holds the tracked machines that are set aside as missing or failing, and no others.
//   2. Within LossLimits::replace_window, no more of them, and of those that lack, are given up than their share of the
//      fleet, and of a cluster no more than its budget of changes (rails.h) leaves, unless an operator accepts the
//      losses.
//   3. Of a cluster that lacks machines since the start, the count of the earlier life stays stored, and the fleet's
//      count has what it lacks.
// Durable: the counts within the windows, by cluster, the alerts, how many machines there are, and how many lack. After
// a restart, losses of an earlier life count as if they had happened then.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/time.h"
#include "contract/tables.h"
#include "core/shard/clusters.h"
#include "core/shard/config.h"
#include "core/shard/loss_window.h"
#include "core/shard/machines.h"
#include "core/shard/step_context.h"
#include "model/machine.h"

namespace muster::shard {

struct LossRow {
  uint64_t failed = 0;  // within the window
  uint64_t vanished = 0;
  uint64_t replaced = 0;
  bool failing = false;  // the alerts; of the fleet in the row without a name
  bool vanishing = false;

  MUSTER_FIELDS(LossRow, failed, vanished, replaced, failing, vanishing)
};

inline constexpr contract::Table<std::string, LossRow> kLossRows{"loss/"};  // cluster; empty: machines of none
inline constexpr contract::Table<std::string, int64_t> kSizeRows{"size/"};  // cluster; empty: the fleet
inline constexpr contract::Table<std::string, int64_t> kLackRows{"lack/"};  // cluster

class ActuationModes;
class ChangeBudget;

class Losses {
 public:
  using Names = std::set<std::string, std::less<>>;  // of clusters, if not said otherwise; the empty name is the fleet
  using Counts = std::map<std::string, int64_t, std::less<>>;  // of machines, by cluster
  struct State {
    LossWindow::State failed;
    LossWindow::State vanished;
    LossWindow::State replaced;  // given up, of the vanished
    Names missing;               // machines, also those that are Failed and set aside
    Names failing;               // alerts
    Names vanishing;
    // Journals read these last (saved_state.cc).
    Counts sizes;    // as stored: of a cluster, or of the fleet
    Counts lacking;  // machines that are not there since the start, and count as if they were

    MUSTER_FIELDS(State, failed, vanished, replaced, missing, failing, vanishing, sizes, lacking)
  };

  // What is referred to outlives this.
  Losses(const Config& config, Clusters& clusters, const Machines& machines, State state);

  void RegisterRows(contract::RowReader& reader);
  void Start(MonoTime now);
  // The machines have been seen for the first time. Those that failed in masses, and are to be set aside.
  std::vector<std::string> OnFirstSweep(ChangeBudget& budget, StepContext& ctx);
  // When a cycle has decided: stores how many machines there are, if that has changed by more than one in a hundred.
  // Those that the shard is about to drain or to delete are left out before a call says so, so that what it takes away
  // itself is never missed.
  void Recount(StepContext& ctx);

  // The machine, of that cluster, has turned Failed. Machines, it or others too, that are to be set aside.
  std::vector<std::string> OnFailed(const std::string& machine, const std::string& cluster, ChangeBudget& budget,
                                    StepContext& ctx);
  // The first sweep shows a machine as Failed that no earlier life has seen fail: it did so while the shard was down.
  // A shard without an earlier life finds what has been so for long. Whether they are too many, and how many of them
  // served before, shows when all are seen; until then nothing of it is stored.
  void OnFoundFailed(const std::string& machine, const std::string& cluster, StepContext& ctx);
  // The provider does not know the machine any more. Whether it is to be dropped; else it is missing from now on.
  bool OnVanished(const model::Machine& machine, ChangeBudget& budget, StepContext& ctx);
  // A tracked machine that an earlier life set aside as missing.
  void RestoreMissing(const std::string& machine);
  // One of those is about to be set aside as failing: an earlier life has counted it, and the share of its cluster is
  // not known before the first sweep is done.
  void RestoreFailing(const std::string& machine);
  // The machine is shown again, or no longer tracked for another reason.
  void OnReturned(const std::string& machine, StepContext& ctx);
  // Machines set aside that are given up now: those that serve a cluster first. Those that lack are given up too. Costs
  // what it gives up, and a step for each cluster that misses machines.
  std::vector<std::string> TakeReplaced(const ActuationModes& modes, ChangeBudget& budget, StepContext& ctx);

  // Ends the alerts, and begins the windows anew: of the cluster, or all of them if the name is empty. The machines set
  // aside that are given up by that.
  std::vector<std::string> Accept(const std::string& cluster, StepContext& ctx);

  // How many machines clusters may have, with those on their way to them, because what they lack may be there unseen;
  // others have no limit.
  Counts MostOf() const;
  // Whether machines of the cluster may be repaired without an order.
  bool MayRepair(const std::string& cluster) const;
  // Whether the cluster's budget of changes leaves room for a machine that failed or vanished by itself. A few do so in
  // small clusters too.
  bool MayMakeGood(const std::string& cluster, ChangeBudget& budget, StepContext& ctx) const;
  // Those that have lost machines within a window, or of which a count is stored.
  void AddClusters(Clusters::Names& used) const;
  const Names& failing() const { return failing_; }
  const Names& vanishing() const { return vanishing_; }
  // Machines that vanished and are not given up.
  size_t missing() const;
  // Machines that are called Failed in masses and are not given up.
  size_t failing_machines() const { return failed_aside_; }
  const Counts& lacking() const { return lacking_; }

  State state() const;
  void CheckInvariants() const;

 private:
  // Whether the losses in the window, of the cluster or of the fleet, are more than chance explains; latches `alerts`.
  bool AreTooMany(const LossWindow& window, const std::string& cluster, Names& alerts, std::string_view what,
                  StepContext& ctx) const;
  // Machines of the cluster, or of the fleet if the name is empty, missing ones included.
  int64_t SizeOf(const std::string& cluster) const;
  // Of which shares are taken: what serves the cluster, or the fleet, or counts as if it did.
  int64_t CountingFor(const std::string& cluster) const;
  bool IsFailing(const std::string& cluster) const { return failing_.contains("") || failing_.contains(cluster); }
  // Puts those of the failed machines into `missing` that wait to be given up: those that clusters need others for
  // which no cycle has given them yet. What has been bought in the place of others counts as given up.
  std::vector<std::string> PutFailing(const LossWindow::State& failed, ChangeBudget& budget, StepContext& ctx);
  // The machine is about to be no longer set aside.
  void Uncount(const std::string& machine);
  // Whether far fewer machines of the cluster, or of the fleet, are there than an earlier life stored.
  bool IsFarBelow(const std::string& cluster) const;
  bool IsLacking(const std::string& cluster) const;
  int64_t StoredSizeOf(const std::string& cluster) const;
  void StoreSize(const std::string& cluster, int64_t size, StepContext& ctx);
  // Ends alerts of the fleet that its losses no longer give reason for.
  void EndFleetAlerts();
  bool MayReplace(const std::string& cluster, ChangeBudget& budget, StepContext& ctx) const;
  // Whether one more machine of the cluster may be given up: its share, or `least` if that is more.
  bool HasRoom(const std::string& cluster, int64_t least, ChangeBudget& budget, StepContext& ctx) const;
  void CountReplaced(const std::string& machine, const std::string& cluster, ChangeBudget& budget, StepContext& ctx);
  void Expire(StepContext& ctx);
  void Keep(const std::string& cluster, StepContext& ctx) const;
  std::string ClusterOf(const std::string& machine) const;
  void FindLacking(StepContext& ctx);
  // What failed while the shard was down on its way to a cluster is no loss: holds see to that.
  void UncountWhatNeverServed(StepContext& ctx);
  // Machines that serve the cluster, or count as if they did.
  int64_t ServingOf(const std::string& cluster) const;
  void GiveUpLacking(const std::string& cluster, int64_t& lacking, ChangeBudget& budget, StepContext& ctx);
  // Of what the cluster lacked, what was given up within the window and is not there: others may be on their way.
  int64_t GivenUpAndAbsent(const std::string& cluster, int64_t lacking) const;
  void SetLacking(const std::string& cluster, int64_t machines, StepContext& ctx);
  void EndLacking(const std::string& cluster, StepContext& ctx);  // of all if the name is empty
  // Takes from `machines`, which are missing of the cluster, as many as may be given up now.
  void TakeReplaced(const std::string& cluster, Names& machines, std::vector<std::string>& taken, ChangeBudget& budget,
                    StepContext& ctx);

  const Config& config_;
  Clusters& clusters_;
  const Machines& machines_;
  LossWindow failed_;
  LossWindow vanished_;
  LossWindow replaced_;
  std::map<std::string, Names, std::less<>> missing_;  // by cluster; none is empty
  Names failing_;
  Names vanishing_;
  Counts sizes_;
  Counts lacking_;
  size_t failed_aside_ = 0;  // derived from missing_: of them, those that are Failed
};

}  // namespace muster::shard
