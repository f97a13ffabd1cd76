// EtcdConnection: the members of an etcd cluster: which one is called, with which token, and when a call is repeated.
//
// Thread-safety: any thread. Answers run on gRPC's threads or on the schedule's. Shutdown ends retries and timers; the
// destructor cancels what is open and waits for it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "etcd/rpc.grpc.pb.h"
#include "host/thread_schedule.h"
#include "rpc/etcd_store.h"
#include "rpc/open_calls.h"

namespace muster::rpc {

struct EtcdMember {
  std::string target;
  std::shared_ptr<grpc::ChannelInterface> channel;
  std::unique_ptr<etcdserverpb::KV::Stub> kv;
  std::unique_ptr<etcdserverpb::Watch::Stub> watch;
  std::unique_ptr<etcdserverpb::Lease::Stub> lease;
  std::unique_ptr<etcdserverpb::Auth::Stub> auth;
};

struct EtcdCall {
  using Finish = std::function<void(grpc::Status)>;
  // Begins one attempt at a member; `finish` is called when it has ended. What it refers to lives until then.
  std::function<void(EtcdMember&, grpc::ClientContext*, Finish finish)> start;
  // The status of the last attempt, and how many there were.
  std::function<void(const Status&, int attempts)> done;
  Duration timeout{};
  bool repeatable = true;  // doing it twice does no harm
};

class EtcdConnection {
 public:
  static Result<std::unique_ptr<EtcdConnection>> Make(const EtcdOptions& options);
  ~EtcdConnection() { Shutdown(); }
  EtcdConnection(const EtcdConnection&) = delete;
  EtcdConnection& operator=(const EtcdConnection&) = delete;

  const EtcdOptions& options() const { return options_; }
  store::Schedule& schedule() { return schedule_; }
  OpenCalls& calls() { return calls_; }
  void Shutdown() { schedule_.Stop(); }

  void Call(EtcdCall call);

  // The member to call now, and a word that it did not answer: the next one is called from then on.
  size_t current() const;
  EtcdMember& member(size_t index) { return members_[index]; }
  void MemberFailed(size_t index);

  // `then` gets the token for metadata, empty without a user; or why there is none.
  void WithToken(Duration timeout, const std::function<void(Result<std::string>)>& then);
  void TokenRefused(const std::string& token);
  // Whether a call failed for its token alone.
  static bool IsTokenRefusal(const Status& status);

 private:
  struct Attempt;
  explicit EtcdConnection(const EtcdOptions& options);
  void TryOnce(const std::shared_ptr<Attempt>& attempt);
  void Send(const std::shared_ptr<Attempt>& attempt, const std::string& token);
  void Ended(const std::shared_ptr<Attempt>& attempt, size_t member, const std::string& token, const Status& status);
  void RetryLater(std::shared_ptr<Attempt> attempt);
  void Authenticate(Duration timeout);
  void Authenticated(const Result<std::string>& token);

  // Set at construction.
  const EtcdOptions options_;
  std::vector<EtcdMember> members_;

  mutable std::mutex mu_;
  size_t current_ = 0;                                               // guarded by mu_
  std::string token_;                                                // guarded by mu_: empty if there is none yet
  std::vector<std::function<void(Result<std::string>)>> for_token_;  // guarded by mu_: they wait for one Authenticate

  host::ThreadSchedule schedule_;
  OpenCalls calls_;  // last: its end waits for answers, which use the rest
};

}  // namespace muster::rpc
