// Loop: the whole product in one virtual world: the cores that ship of scheduler, operator, agents, shard and provider,
// joined as their shells join them. What is applied becomes demand, demand becomes machines, machines run agents,
// agents run workloads; and back again.
//
//   sim::Loop loop(start);                                          // nothing has happened yet
//   auto applied = loop.Ask("home", contract::ApplySpec{.spec = spec});
//   auto settled = loop.RunUntilSettled();
//   sim::LoopView view = loop.View();
//
// One thread, one virtual clock that runs only inside these functions; the same start and the same calls give the same
// answers. Nothing fails unless it is told to: faults are the business of worlds built on this (loop_world.h).
//
// The shard begins without memory of its own. Needs are as old as the start, and holds begin anew.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "contract/backend.h"
#include "contract/cluster.h"
#include "contract/shard.h"
#include "model/need.h"
#include "sim/loop_start.h"
#include "sim/loop_view.h"

namespace muster::sim {

class LoopWorks;

struct SettleOptions {
  // So long nothing may change. Zero: as long as the longest pause that the settings know before a machine is given up
  // or demand is corrected. Shorter is quicker, and shows a fleet that has not given back what it holds for a while.
  Duration quiet{};
  Duration longest = 4h;  // of virtual time
  // Called after each second of virtual time; nothing that is asked there may change the loop.
  std::function<void()> second_passed = {};
};
struct Settled {
  bool settled = false;
  Duration took{};                     // until the last change
  std::vector<std::string> in_flight;  // what is still under way, as sentences; empty if all is at rest
};

class Loop {
 public:
  // Everything starts, and runs until every cluster has a session and every node of the start has joined.
  // INVALID_ARGUMENT naming what the start has wrong: a machine that is none, a node of a machine that serves another.
  static Result<std::unique_ptr<Loop>> Make(const LoopStart& start);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Asks a cluster's scheduler what clients may ask, and runs until the answer is there.
  Result<contract::ClusterReply> Ask(const std::string& cluster, const contract::ClusterRequest& request);
  // The same of the shard.
  Result<contract::ShardReply> AskShard(contract::ShardRequest request);

  // --- what happens besides
  void SetDemand(const std::string& cluster, std::vector<model::Need> needs);  // of a cluster of `others`
  void RestartOperator(const std::string& cluster);                            // of a native cluster
  void Observe(const contract::Observation& observation);  // prices move, hardware is lost or will be
  // Machines for which this is false cannot be created: "out of stock". All are in stock at first.
  void SetStock(std::function<bool(const model::Machine&)> in_stock);

  // --- time
  void Run(Duration time);
  Settled RunUntilSettled(const SettleOptions& options = {});
  Duration now() const;  // since the start

  LoopView View();

 private:
  explicit Loop(std::unique_ptr<LoopWorks> works);
  const std::unique_ptr<LoopWorks> works_;
};

}  // namespace muster::sim
