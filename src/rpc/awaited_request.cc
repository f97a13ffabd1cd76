#include "rpc/awaited_request.h"

#include <grpcpp/server_context.h>

#include <chrono>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "base/check.h"
#include "host/system_clock.h"
#include "rpc/bounded_read.h"

namespace muster::rpc {
namespace {

class AwaitedRequests;

// One call, until its message has come; then it frees itself.
class Awaited final : public grpc_completion_queue_functor {
 public:
  Awaited(AwaitedRequests& all, grpc::ServerContextBase& context, RequestCame came)
      : grpc_completion_queue_functor{}, all_(all), context_(context), came_(std::move(came)) {
    functor_run = [](grpc_completion_queue_functor* self, int /*ok*/) { static_cast<Awaited*>(self)->Came(); };
    inlineable = 0;
  }
  void Read(grpc_call* call) {
    grpc_op op = {};
    op.op = GRPC_OP_RECV_MESSAGE;
    op.data.recv_message.recv_message = &message_;
    const grpc_call_error error =
        grpc_call_start_batch(call, &op, 1, static_cast<grpc_completion_queue_functor*>(this), nullptr);
    MUSTER_CHECK(error == GRPC_CALL_OK, "{}", static_cast<int>(error));
  }

 private:
  friend class AwaitedRequests;
  void Came();

  AwaitedRequests& all_;
  grpc::ServerContextBase& context_;
  const RequestCame came_;
  grpc_byte_buffer* message_ = nullptr;
  // Guarded by the mutex of all_.
  MonoTime until_;
  std::pair<const void*, std::string> who_;
  std::list<Awaited*>::iterator place_;
  bool silent_ = false;
};

class AwaitedRequests {
 public:
  AwaitedRequests() {
    std::thread([this] { Run(); }).detach();  // for the life of the process, as this is
  }

  Status Add(Awaited& request, std::pair<const void*, std::string> who) {
    const MonoTime now = host::SystemClock().Read().mono;
    const std::lock_guard lock(mu_);
    MUSTER_RETURN_IF_ERROR(count_.Add(who.first, who.second));
    request.until_ = now + kFirstWordTimeout;
    request.who_ = std::move(who);
    request.place_ = all_.insert(all_.end(), &request);
    return {};
  }
  // Whether the request had been too long in coming.
  bool Remove(Awaited& request) {
    const std::lock_guard lock(mu_);
    all_.erase(request.place_);
    count_.Remove(request.who_.first, request.who_.second);
    return request.silent_;
  }

 private:
  void Run() {
    while (true) {
      std::this_thread::sleep_for(std::chrono::milliseconds(250));
      const MonoTime now = host::SystemClock().Read().mono;
      const std::lock_guard lock(mu_);  // none of them ends meanwhile
      for (Awaited* request : all_) {   // in the order of their time
        if (request->until_ > now) break;
        if (std::exchange(request->silent_, true)) continue;
        request->context_.TryCancel();
      }
    }
  }

  std::mutex mu_;
  std::list<Awaited*> all_;  // guarded by mu_
  AwaitedCount count_;       // guarded by mu_
};

AwaitedRequests& AllAwaited() {
  static auto* all = new AwaitedRequests;
  return *all;
}

void Awaited::Came() {
  const bool silent = all_.Remove(*this);
  const RequestCame came = came_;
  grpc_byte_buffer* message = message_;
  delete this;
  came(message, silent);
}

}  // namespace

Status AwaitedCount::Add(const void* server, const std::string& who) {
  const auto of = of_.try_emplace(server, "calls open without a message", "send those first").first;
  return of->second.Add(who, kMostAwaited, kMostAwaitedOfAll);
}

void AwaitedCount::Remove(const void* server, const std::string& who) {
  const auto of = of_.find(server);
  MUSTER_CHECK(of != of_.end(), "no call of {} is awaited there", who);
  of->second.Remove(who);
  if (of->second.all() == 0) of_.erase(of);
}

Status AwaitRequest(const void* server, std::string who, grpc_call* call, grpc::ServerContextBase& context,
                    RequestCame came) {
  auto request = std::make_unique<Awaited>(AllAwaited(), context, std::move(came));
  MUSTER_RETURN_IF_ERROR(AllAwaited().Add(*request, {server, std::move(who)}));
  request.release()->Read(call);
  return {};
}

}  // namespace muster::rpc
