// OpenCalls: the calls that a client has under way to one server, so that none outlives the client.
//
// Thread-safety: any thread may begin a call. Answers run on gRPC's threads, also while this is destroyed, which
// cancels what is open and waits for it.
#pragma once

#include <fmt/format.h>
#include <google/protobuf/arena.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/status.h"
#include "base/time.h"
#include "rpc/bounded_read.h"
#include "rpc/channel.h"
#include "rpc/message_bounds.h"

namespace muster::rpc {

class OpenCalls {
 public:
  // `server` names it in messages: "provider 127.0.0.1:9100"; `part` what its answers consist of.
  OpenCalls(std::string server, std::string_view part) : server_(std::move(server)), part_(part) {}
  ~OpenCalls() {
    std::unique_lock lock(mu_);
    closing_ = true;
    for (grpc::ClientContext* context : open_) context->TryCancel();
    closed_.wait(lock, [this] { return unfinished_ == 0; });
  }
  OpenCalls(const OpenCalls&) = delete;
  OpenCalls& operator=(const OpenCalls&) = delete;

  const std::string& server() const { return server_; }

  // A call with one answer. The method goes by its path ("/package.Service/Method", a literal); the reply comes to
  // `take` as bytes, not parsed yet, which makes a Result of it. `done` gets that, or the status, explained; a reply
  // that `take` refuses is INTERNAL.
  template <class WireRequest, class Take, class Done>
  void UnaryBytes(const std::shared_ptr<grpc::ChannelInterface>& channel, const char* path, WireRequest request,
                  Duration timeout, Take take, Done done) {
    struct Open {
      grpc::ClientContext context;
      WireRequest request;
      grpc::ByteBuffer reply;
      Take take;
      Done done;
    };
    auto* open = new Open{
        .request = std::move(request), .reply = {}, .take = std::move(take), .done = std::move(done)};  // until End
    Begin(open->context, timeout);
    grpc::TemplatedGenericStub<WireRequest, grpc::ByteBuffer>(channel).UnaryCall(
        &open->context, path, grpc::StubOptions(), &open->request, &open->reply,
        [this, open](const grpc::Status& status) {
          Answer(status, open->reply, open->take, open->done);
          End(std::unique_ptr<Open>(open));
        });
  }
  // The same, with the reply, whose parts `take` may move out, parsed once it is known to be within the bounds.
  template <class WireReply, class WireRequest, class Take, class Done>
  void BoundedUnary(const std::shared_ptr<grpc::ChannelInterface>& channel, const char* path, WireRequest request,
                    Duration timeout, const MessageBounds& bounds, Take take, Done done) {
    UnaryBytes(
        channel, path, std::move(request), timeout,
        [bounds, take = std::move(take)](grpc::ByteBuffer& bytes) -> std::invoke_result_t<Take, WireReply&> {
          google::protobuf::Arena arena;
          auto* reply = google::protobuf::Arena::CreateMessage<WireReply>(&arena);
          if (Status read = ReadBounded(bytes, bounds, *reply); !read.ok()) return std::unexpected(std::move(read));
          return take(*reply);
        },
        std::move(done));
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
  // An answer that cannot be read.
  Status BadAnswer(const Status& wrong) const {
    return {Code::kInternal, fmt::format("{} answers with a bad {}: {}", server_, part_, wrong.message())};
  }

 private:
  template <class WireReply, class Take, class Done>
  void Answer(const grpc::Status& status, WireReply& reply, const Take& take, const Done& done) const {
    if (!status.ok()) return done(std::unexpected(Explain(status)));
    auto taken = take(reply);
    if (!taken) return done(std::unexpected(BadAnswer(taken.error())));
    done(*std::move(taken));
  }

  const std::string server_;
  const std::string part_;
  std::mutex mu_;
  std::condition_variable closed_;
  bool closing_ = false;                 // guarded by mu_
  std::set<grpc::ClientContext*> open_;  // guarded by mu_: calls whose answer was not given yet
  size_t unfinished_ = 0;                // guarded by mu_: these, and those that are being cleared away
};

}  // namespace muster::rpc
