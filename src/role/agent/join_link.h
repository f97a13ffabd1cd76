// JoinLink: the node's end of a scheduler. It registers the node, hands the full state to the agent, and sends
// heartbeats: as often as the scheduler says, and at once when a workload has another state.
//
// Thread-safety: Beat and the questions from any thread. Start and Stop from one; nothing is called after Stop.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/status.h"
#include "base/time.h"
#include "contract/cluster.h"
#include "rpc/join_client.h"
#include "rpc/tls_files.h"

namespace muster::agent {

struct JoinOptions {
  std::string schedulers;  // HOST:PORT, or several with commas
  std::string cluster;     // with TLS, that of the schedulers; empty: any
  rpc::TlsFiles tls;
  Duration heartbeat = 10s;  // until the scheduler says otherwise
  // Between two heartbeats, however much changes: this much, and more the more workloads there are, up to `most_pause`.
  Duration least_pause = 10ms;
  Duration most_pause = 100ms;
};

// What the link asks of the agent. Called from threads of the link; none of them blocks.
struct JoinPorts {
  std::function<contract::RegisterNode()> registration;
  std::function<contract::Heartbeat()> heartbeat;  // without the epoch, which the link adds
  std::function<void(contract::FullState)> joined;
};

class JoinLink final : private rpc::JoinHandler {
 public:
  JoinLink(JoinOptions options, JoinPorts ports) : options_(std::move(options)), ports_(std::move(ports)) {}
  ~JoinLink() override { Stop(); }

  Status Start();
  void Stop();  // idempotent; waits
  // A workload has another state.
  void Beat();
  // What the node offers has changed: it registers anew.
  void Rejoin();
  // Comes back when the node was accepted for the first time; false if `cancelled` is true before.
  bool WaitForJoin(const std::function<bool()>& cancelled);
  // OK, or why the node is not joined at this moment.
  Status status() const;

 private:
  contract::RegisterNode Registration() override { return ports_.registration(); }
  void Joined(const std::string& scheduler, contract::NodeRegistered registered) override;
  void Acked(contract::HeartbeatAck ack) override;
  void Left(const std::string& scheduler, Status why) override;
  void SendHeartbeats();
  Duration PauseAfter(size_t workloads) const;

  const JoinOptions options_;
  const JoinPorts ports_;

  mutable std::mutex mu_;
  std::condition_variable wakes_;
  bool stopping_ = false;                                // guarded by mu_
  bool due_ = false;                                     // guarded by mu_: a heartbeat is to be sent at once
  bool accepted_ = false;                                // guarded by mu_: at some time
  bool drains_ = false;                                  // guarded by mu_: the scheduler empties the node
  Status status_{Code::kUnavailable, "not joined yet"};  // guarded by mu_
  uint64_t epoch_ = 0;                                   // guarded by mu_
  Duration interval_{};                                  // guarded by mu_
  std::unique_ptr<rpc::JoinClient> client_;
  std::thread heartbeats_;
};

}  // namespace muster::agent
