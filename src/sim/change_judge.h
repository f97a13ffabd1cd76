// ChangeJudge: nothing but priority or an order takes more than a tenth of a cluster's machines, or one machine, within
// two minutes.
//
// A change is a step by which the shard takes a machine away that its cluster has: a Reclaim, from the decision on,
// because the cluster is told at once; the repair of a machine that served and is shown as Failed; and that the shard
// gives up a machine which vanished or is shown as Failed with many others, and buys another in its place. All count
// together. No changes are
//   - Preempt, and surplus that goes instead of a victim: that is priority
//   - what an order does: a repair by hand; repairs and machines given up after an operator accepted the losses, which
//   a
//     world does not tell
//   - what a cluster gains, and machines that it never had: Creates, Configures, and what they leave behind when they
//     fail
//   - what the provider takes: machines that fail or vanish
// A demand that falls is no exemption: a cluster that asks for less gives machines up at the same rate.
//
// The share is that of the cluster as it was: the most machines that it had within the window, and those that it gave
// up meanwhile.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"
#include "contract/shard.h"
#include "model/machine.h"
#include "sim/findings.h"

namespace muster::sim {

class ChangeJudge {
 public:
  ChangeJudge(model::Probability share, Duration window, Findings& findings)
      : share_(share), window_(window), findings_(findings) {}

  // So many machines serve the cluster now.
  void Has(const std::string& cluster, int64_t machines, MonoTime now);
  // A line of the audit log: whether it is a change, it is for the judge to know. What is not durable has not happened,
  // so lines are shown when they are; `decided`: when the shard decided.
  void Audited(const contract::ActionView& action, MonoTime decided);
  // A machine that the cluster had is given up.
  void GivenUp(const std::string& cluster, MonoTime when) { Count(cluster, kGivenUp, when); }
  // The last one that counts as given up was not: what was bought in its place has gone to another cluster.
  void TakeBackGivenUp(const std::string& cluster);

 private:
  static constexpr std::string_view kGivenUp = "given up";
  struct Cluster {
    std::deque<std::pair<MonoTime, int64_t>> sizes;             // since when it has had so many
    std::deque<std::pair<MonoTime, std::string_view>> changes;  // when, and how
  };

  void Count(const std::string& cluster, std::string_view how, MonoTime when);

  const model::Probability share_;
  const Duration window_;
  Findings& findings_;
  std::map<std::string, Cluster> clusters_;
};

}  // namespace muster::sim
