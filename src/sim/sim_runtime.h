// SimRuntime: what runs workloads on a simulated node, behind the agent that ships: starts, stops, removes and lists
// runs, and keeps the rules of contract/runtime.h. It outlives its agent; a power cut ends every run.
//
// It judges what the agent asks of it: nothing is started beside an older run, and nothing is removed while it runs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/rng.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/runtime.h"
#include "sim/findings.h"
#include "sim/kernel.h"

namespace muster::sim {

struct RuntimeFaults {
  uint32_t start_fails_per_mille = 0;  // it ends as soon as it was started
  uint32_t ends_per_mille = 0;         // a run ends by itself within a minute
  uint32_t unavailable_per_mille = 0;  // a call is answered with UNAVAILABLE, done or not
  uint32_t hangs_per_mille = 0;        // a call is done and never answered
};
struct RuntimeTimes {
  Duration start = 100ms;
  Duration stop = 100ms;             // if the grace allows
  std::optional<Duration> job = {};  // how long what is not to be started again runs; nothing: it runs on
};

class SimRuntime {
 public:
  using Done = std::function<void(Result<contract::RuntimeReply>)>;
  using Ended = std::function<void(const contract::Run&)>;

  // What is referred to outlives this. `ended` is called for each run that ends by itself.
  SimRuntime(Kernel& kernel, std::string node, uint64_t stream, Findings& findings, RuntimeTimes times, Ended ended);

  // `type` is the name of the workload type whose runtime is asked.
  void Ask(const std::string& type, const contract::RuntimeRequest& request, Done done);
  // What runs from the beginning, and of which type it is.
  void Adopt(std::map<std::string, contract::Run> runs, std::map<std::string, std::string> types) {
    runs_ = std::move(runs);
    types_ = std::move(types);
  }
  // The agent is gone, and with it what it was about to do.
  void AgentDied() { ++power_; }
  // The node is off for a moment: what ran has ended, nobody knows how.
  void PowerCut();
  // Everything of the node is gone.
  void Clear();
  void SetFaults(RuntimeFaults faults) { faults_ = faults; }

  const std::map<std::string, contract::Run>& runs() const { return runs_; }

 private:
  bool Chance(uint32_t per_mille) { return rng_.Below(1000) < per_mille; }
  void Start(const contract::StartRun& start);
  void End(const std::string& workload, uint64_t launch, std::optional<int32_t> code, const char* how, bool told);
  void EndLater(const std::string& workload, uint64_t launch, Duration after, int32_t code);
  contract::RuntimeReply RunOf(const std::string& workload) const;
  void Answer(const Done& done, const std::string& workload);

  Kernel& kernel_;
  const std::string node_;
  Rng rng_;
  Findings& findings_;
  const RuntimeTimes times_;
  const Ended ended_;
  RuntimeFaults faults_;
  std::map<std::string, contract::Run> runs_;  // by workload: the newest launch
  std::map<std::string, std::string> types_;   // by workload
  uint64_t power_ = 0;                         // counts deaths of agent and node: what was under way is over
  uint64_t cuts_ = 0;                          // of them those of the node: what ran is over too
};

}  // namespace muster::sim
