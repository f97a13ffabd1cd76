// What every measurement of a scheduler has: nodes and workloads that are all alike, agents in this process that do at
// once what they are told, and requests that are asked many at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "contract/cluster.h"
#include "role/scheduler/local_scheduler.h"
#include "rpc/agent_client.h"

namespace muster::cli {

std::string BenchNode(size_t index);
contract::RegisterNode BenchRegistration(size_t index);
// A container of 100m and 128 Mi.
contract::ApplyWorkload BenchWorkload(size_t index);

// What the nodes run. Outlives the clients that are made of it.
//
// Thread-safety: any thread.
class BenchNodes {
 public:
  // The agents of all nodes; they answer on the thread that asks. With `hold` they never answer.
  std::unique_ptr<rpc::AgentClient> Agents(bool hold);
  // The node runs the workload, without having been told.
  void Adopt(const std::string& node, const std::string& workload, const std::string& revision);
  uint64_t lists() const;

 private:
  class Client;
  Result<contract::AgentReply> Answer(const std::string& node, const contract::AgentRequest& request);

  mutable std::mutex mu_;
  std::map<std::string, std::map<std::string, contract::WorkloadStatus>> running_;  // by node; guarded by mu_
  uint64_t lists_ = 0;                                                              // guarded by mu_
};

// How many requests were answered, how fast.
struct BenchAnswers {
  double seconds = 0;
  std::vector<double> samples_us;  // from the question to the answer, sorted

  double rate() const { return static_cast<double>(samples_us.size()) / seconds; }
  double At(double share) const;
};
// Asks `make(0)` to `make(count - 1)`, `at_once` of them at a time, and waits for all answers. The first refusal ends
// it.
Result<BenchAnswers> AskMany(contract::ClusterPort& cluster, size_t count, size_t at_once,
                             const std::function<contract::ClusterRequest(size_t)>& make);

// A scheduler on the store, its core in this process. It leads when this returns.
Result<std::unique_ptr<scheduler::LocalScheduler>> StartBenchScheduler(const std::string& store,
                                                                       std::unique_ptr<rpc::AgentClient> agents);
// Whether so many workloads run, within `patience`.
Status WaitUntilRunning(const scheduler::LocalScheduler& scheduler, size_t workloads, Duration patience);

}  // namespace muster::cli
