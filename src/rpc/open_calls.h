// OpenCalls: the calls that a client has under way to one server, so that none outlives the client.
//
// Thread-safety: any thread may begin a call. Answers run on gRPC's threads, also while this is destroyed, which
// cancels what is open and waits for it.
#pragma once

#include <fmt/format.h>
#include <google/protobuf/arena.h>
#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "base/status.h"
#include "base/time.h"
#include "rpc/channel.h"

namespace muster::rpc {

class OpenCalls {
 public:
  // `server` names it in messages: "provider 127.0.0.1:9100".
  explicit OpenCalls(std::string server) : server_(std::move(server)) {}
  ~OpenCalls() {
    std::unique_lock lock(mu_);
    closing_ = true;
    for (grpc::ClientContext* context : open_) context->TryCancel();
    closed_.wait(lock, [this] { return unfinished_ == 0; });
  }
  OpenCalls(const OpenCalls&) = delete;
  OpenCalls& operator=(const OpenCalls&) = delete;

  const std::string& server() const { return server_; }

  // A call with one answer. `call(context, request, reply, finished)` starts it; `done` gets the status, explained, and
  // the reply, which is the caller's to take.
  template <class WireReply, class WireRequest, class Call>
  void Unary(WireRequest request, Duration timeout, const Call& call, std::function<void(Status, WireReply&)> done) {
    struct Open {
      grpc::ClientContext context;
      WireRequest request;
      // The parts of an answer of thousands of rows lie together, and go at once.
      google::protobuf::Arena arena;
      WireReply* const reply = google::protobuf::Arena::CreateMessage<WireReply>(&arena);
      std::function<void(Status, WireReply&)> done;
    };
    auto* open = new Open;  // until Finished
    open->request = std::move(request);
    open->done = std::move(done);
    Begin(open->context, timeout);
    grpc::ClientContext* context = &open->context;
    const WireRequest* wire_request = &open->request;
    WireReply* wire_reply = open->reply;
    const std::function<void(grpc::Status)> finished = [this, open](const grpc::Status& status) {
      open->done(Explain(status), *open->reply);
      End(std::unique_ptr<Open>(open));
    };
    call(context, wire_request, wire_reply, finished);
  }

  // For calls of another shape. `Open` has a `context`, owns all that the call needs, and is freed by End, after the
  // answer was given.
  void Begin(grpc::ClientContext& context, Duration timeout) {
    SetDeadline(context, timeout);
    const std::lock_guard lock(mu_);
    if (closing_) context.TryCancel();  // an answer began it
    open_.insert(&context);
    ++unfinished_;
  }
  template <class Open>
  void End(std::unique_ptr<Open> open) {
    {
      const std::lock_guard lock(mu_);
      open_.erase(&open->context);
    }
    // The context holds the channel, and whoever lets go of a channel last waits for gRPC's threads, of which this is
    // one. So it goes before the client can.
    open.reset();
    const std::lock_guard lock(mu_);
    --unfinished_;
    closed_.notify_all();  // under the lock: after it, the client may be gone
  }

  // The status as it came; where nobody answered, with the name of who did not.
  Status Explain(const grpc::Status& grpc_status) const {
    const Status status = FromGrpc(grpc_status);
    const bool silent = status.code() == Code::kUnavailable || status.code() == Code::kDeadlineExceeded;
    if (!silent) return status;
    return {status.code(), fmt::format("{} does not answer: {}", server_, status.message())};
  }

 private:
  const std::string server_;
  std::mutex mu_;
  std::condition_variable closed_;
  bool closing_ = false;                 // guarded by mu_
  std::set<grpc::ClientContext*> open_;  // guarded by mu_: calls whose answer was not given yet
  size_t unfinished_ = 0;                // guarded by mu_: these, and those that are being cleared away
};

}  // namespace muster::rpc
