// LoopJudge: what the two halves owe each other and their users, checked from outside: against what the stores hold,
// what the provider has, what nodes run and what was said and called. Each scheduler is judged by a SchedulerJudge
// besides.
//
// At every change of a store: a workload that leaves a node which is well has ended there.
// At every roll-up: it says no less than each workload asked for all the while, and no more than each asked for at its
//   highest, corrections apart. Each for itself: a scheduler knows its own writes before those that others made or that
//   were answered with Unknown, so that what it tells of two workloads may be of two moments.
//   Corrections do not grow while machines that would take anything have stood empty for long.
// At every Create: what is paid for does not cover the demand yet. At every Configure: its cluster has a demand.
// At every Drain: the node is cordoned, or its cluster was told and did not answer. When a drain ends: nothing runs
//   there, or the grace is over. At every Delete: nothing runs there, or the machine has failed.
// All the while: an agent lives only on a machine that serves its cluster; nothing runs twice for long on nodes that
//   are well.
// At rest: desired equals actual; the nodes of a cluster are its machines; what is bound covers the demand, or the
//   shard says what is short and nothing could be bought for it; nothing is bound or paid for beyond that; nothing is
//   under way.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "contract/provider.h"
#include "contract/session.h"
#include "core/operators/types.h"
#include "core/shard/types.h"
#include "sim/findings.h"
#include "sim/loop_works.h"
#include "sim/scheduler_judge.h"

namespace muster::sim {

class LoopJudge {
 public:
  // Once, before anything happens. The works outlive the judge.
  void Watch(LoopWorks& works);
  SchedulerJudge& OfCluster(const std::string& cluster) { return *schedulers_.at(cluster); }

  void StoreSeen(const std::string& cluster);
  void Committed(const std::string& cluster, size_t scheduler, const contract::Commit& commit,
                 const contract::CommitDone& done);
  // A scheduler calls a node, or hears the answer.
  void CalledAgent(const std::string& cluster, size_t scheduler, const std::string& node, contract::CallId call,
                   const Status* answer);
  void OperatorDid(const std::string& cluster, const operators::Effect& effect);
  // The shard calls its provider; `zombie`: another has its place.
  void Called(const contract::ProviderRequest& request, bool zombie);
  void ShardDid(const shard::Core::Effect& effect, bool zombie);
  void DrainEnds(const contract::Operation& operation, bool in_time);
  // Looks at everything; now and then.
  void Sample();
  // The node is cordoned, and not by an instruction of the fleet.
  bool IsOutByPeople(const std::string& cluster, const std::string& node) const;
  // From now on nobody acts.
  void BeStill() { still_ = true; }
  void AtRest(const contract::NeedsInspected& needs);

  const std::optional<std::string>& failure() const;
  uint64_t checks() const;

 private:
  using Amounts = std::map<std::pair<std::string, std::string>, int64_t>;  // millicores by cluster and kind
  // What was wanted within a moment: each store is looked at after every change.
  struct Sampled {
    MonoTime when;  // it began
    Amounts most;
  };
  // What a workload asked for, from a moment on.
  struct Asked {
    MonoTime since;
    int64_t amount = 0;
  };
  struct Apart {
    MonoTime when;
    int64_t needs = 0;
  };
  struct Range {
    int64_t least = 0;
    int64_t most = 0;
  };

  template <class What>
  void Check(bool holds, What&& what) {
    works_->findings().Check(holds, std::forward<What>(what));
  }
  MonoTime now() const { return works_->kernel().now().mono; }
  Amounts Wanted() const;
  void Remember();
  // Over the last while, for each kind the most that was wanted.
  Amounts Most(Duration window) const;
  // The sums of what the cluster's workloads asked for over the last while, each at its lowest and its highest.
  Range AskedWithin(const std::string& cluster, Duration window) const;
  int64_t CorrectionOf(const std::string& cluster) const;
  int64_t CorrectedRoom(const std::string& cluster) const;
  // The most needs of single sizes that the cluster had over the last while.
  int64_t ApartWithin(const std::string& cluster) const;
  const model::Machine* FindMachine(const std::string& id) const;
  bool IsWell(const std::string& cluster, const std::string& node) const;
  bool Runs(const std::string& node, const std::string& workload) const;
  // What store and agent say of a workload.
  std::string Told(const std::string& cluster, const std::string& workload, const std::string& node) const;
  // Of a workload or node, as lines.
  std::string LastDecisions(const std::string& cluster, const std::string& subject) const;
  void JudgeMoves(const std::string& cluster);
  void NoteUnwell(const std::string& cluster);
  void JudgeDepartures();
  void JudgeRollup(const std::string& cluster, const contract::Rollup& rollup);
  void JudgeRaise(const std::string& cluster);
  void NoteEmpty(const std::string& cluster);
  void JudgeCreate(const contract::CreateRequest& request);
  void JudgeDrain(const contract::DrainRequest& request);
  void JudgeOwners();
  void JudgeTwins();
  void JudgeClusterAtRest(const std::string& cluster);
  void JudgeMachinesAtRest();
  void JudgeNeedsAtRest();
  void JudgeShortfalls(const contract::NeedsInspected& needs);

  // A workload that was stored elsewhere while it ran on a node that was well.
  struct Departure {
    MonoTime when;
    std::string cluster;
    std::string workload;
    std::string node;
    std::string story;
  };

  LoopWorks* works_ = nullptr;
  std::map<std::string, std::unique_ptr<SchedulerJudge>> schedulers_;  // by cluster
  std::map<std::string, contract::Revision> seen_;                     // of each store
  std::map<std::string, contract::KeyValue> leaders_;                  // the key of the election, as seen
  std::map<std::string, std::map<std::string, std::string>> where_;    // by cluster: workload -> node
  std::map<std::pair<std::string, std::string>, WallTime> status_of_;  // cluster and node: when its status changed last
  struct AgentCall {
    std::string node;
    MonoTime since;
  };
  std::map<std::string, std::map<std::pair<size_t, contract::CallId>, AgentCall>> open_calls_;  // by cluster
  std::map<std::string, std::vector<Apart>> apart_;  // by cluster: needs of single sizes that were said
  std::deque<Departure> departures_;
  std::map<std::pair<std::string, std::string>, MonoTime> unwell_;  // cluster and node: when it was not well last
  std::map<std::pair<std::string, std::string>, MonoTime> empty_;   // cluster and node: since when nothing is there
  std::map<std::string, int64_t> corrected_;                        // by cluster: corrections at the last roll-up
  std::deque<Sampled> samples_;
  std::map<std::string, std::map<std::string, std::deque<Asked>>> asked_;  // by cluster and workload
  std::map<std::string, std::pair<std::string, MonoTime>> told_;           // by machine: instruction, and since when
  std::map<std::pair<std::string, std::string>, MonoTime> twins_;          // cluster and workload: since when
  std::map<std::string, model::Machine> machines_;                         // as the provider had them at the last look
  mutable std::optional<std::string> failure_;
  MonoTime looked_;
  bool still_ = false;
};

}  // namespace muster::sim
