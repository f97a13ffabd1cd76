// SimCluster: a cluster as its shard sees it. It has a demand that moves, says it whole now and then, answers questions
// for its blob and acknowledges instructions; late, wrongly or not at all while there are faults.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
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

  // Its demand becomes another. In millicores.
  void MoveDemand();
  void SetDemand(std::vector<int64_t> rows);
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
  struct Blob {
    std::string cluster;
    std::optional<MonoTime> until;
  };
  const std::map<std::string, Blob>& blobs() const { return blobs_; }
  bool WasTold(const std::string& machine) const { return told_.contains(machine); }

 private:
  void SayRollup();
  contract::NeedRows Rows(const std::vector<int64_t>& rows) const;
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
  std::vector<int64_t> demand_;
  std::set<uint64_t> meant_;
  std::map<std::string, Blob> blobs_;  // by their bytes
  std::set<std::string> told_;         // machines it was told to give up
  uint64_t last_blob_ = 0;
};

}  // namespace muster::sim
