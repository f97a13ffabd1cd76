// SimCluster: a cluster as its shard sees it. It has a demand that moves, says it whole now and then, answers questions
// for its blob and acknowledges instructions; late, wrongly or not at all while there are faults.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "contract/session.h"
#include "sim/kernel.h"

namespace muster::sim {

class SimCluster {
 public:
  // What the world does for it: messages go to its session, in order.
  struct World {
    std::function<void(contract::OperatorMessage)> say;
    std::function<void()> say_garbage;  // a roll-up that no decoder can read
  };

  SimCluster(Kernel& kernel, std::string name, int32_t priority, uint64_t stream, World world);

  const std::string& name() const { return name_; }
  void SetFaults(bool faults) { faults_ = faults; }

  // One row of its demand, in millicores; a gang's machines share a rack.
  struct Row {
    int64_t cpu = 0;
    bool gang = false;
  };
  // Its demand becomes another.
  void MoveDemand();
  void SetDemand(std::vector<Row> rows);
  // All it wants, in millicores.
  int64_t wanted() const;

  // What the session brings.
  void Connected() {
    steady_ = 0;
    SayRollup();
  }
  void Tick();
  void Hear(const contract::ShardMessage& message);

  // --- for the judge
  // Whether it ever said this, and meant it: digests of the rows.
  bool Meant(std::span<const uint64_t> digests) const;
  // Of one that it said and did not mean: ": ..." with what was wrong with it.
  std::string WhyNotMeant(std::span<const uint64_t> digests) const;
  bool Gave(const std::string& blob) const { return blobs_.contains(blob); }

 private:
  void SayRollup();
  contract::NeedRows Rows(const std::vector<Row>& rows) const;
  void Answer(const contract::BootstrapRequest& request);
  void Acknowledge(const contract::ReclaimInstruction& instruction);
  Duration Pause(Duration longest) { return Duration(rng_.Between(1, longest.count())); }

  Kernel& kernel_;
  const std::string name_;
  const int32_t priority_;
  Rng rng_;
  const World world_;
  bool faults_ = true;
  int32_t steady_ = 0;  // roll-ups in a row that said the same, and were meant
  std::vector<Row> demand_;
  std::set<uint64_t> meant_;
  std::map<uint64_t, std::string> not_meant_;  // digest -> what was wrong with it
  std::set<std::string> blobs_;
  uint64_t last_blob_ = 0;
};

}  // namespace muster::sim
