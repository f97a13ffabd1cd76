// BoundedService: a service as the server registers it, with every call looked at before the service sees it.
//
//   - A request beyond MessageBounds is refused before it is parsed. Methods that read a stream check each message
//     themselves (bounded_read.h), because gRPC parses those without asking.
//   - Streams are bounded, of one caller and of all: a caller beyond the bound is refused, and the others are served.
//   - So are, more tightly, those that have not said anything yet (Heard): one costs 20 KiB.
//   - What all requests take that are being worked on is bounded, of one caller and of all, and so are the answers that
//     are not taken yet (work_budget.h). A request that begins a stream of answers is kept as long as that, and bounded
//     to 64 KiB.
//   - A server for operators has the methods that they may call, and no others, also in plaintext.
//
// gRPC has no hook between the bytes of a request and its parsing that a program can register. What it has is the
// handler of a method, an object behind an interface; this service takes those of another and puts its own before them.
//
// Thread-safety: as grpc::Service. The inner service outlives this one.
#pragma once

#include <grpcpp/impl/service_type.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/status.h"
#include "rpc/caller_count.h"
#include "rpc/identity.h"
#include "rpc/refusal.h"
#include "rpc/work_budget.h"

namespace grpc {
class ServerContextBase;
}

namespace muster::rpc {

struct StreamBounds {
  size_t of_identity = 64;    // under TLS, of one identity
  size_t of_address = 2'048;  // in plaintext, of one address
  size_t of_all = 16'384;
  size_t unheard = 128;  // of one caller, before their first message
  size_t unheard_of_all = 4'096;
};

// The streams that are open at a server.
class OpenStreams {
 public:
  explicit OpenStreams(StreamBounds bounds) : bounds_(bounds) {}

  // RESOURCE_EXHAUSTED, naming the bound; if OK, Close follows.
  Status Open(const std::string& who, bool identified);
  void Close(const std::string& who);

  // Counts a stream of which nothing was heard yet, as long as the result lives, which this outlives.
  // RESOURCE_EXHAUSTED, naming the bound.
  Result<std::shared_ptr<void>> Unheard(const std::string& who);

 private:
  const StreamBounds bounds_;
  std::mutex mu_;
  CallerCount open_{"streams open", "close some"};                                     // guarded by mu_
  CallerCount unheard_{"streams open that have said nothing", "send on those first"};  // guarded by mu_
};

class BoundedService final : public grpc::Service {
 public:
  // `name` is the service's full name. `streams` and `budgets`, which are the server's, outlive this.
  BoundedService(std::string_view name, grpc::Service& inner, OpenStreams& streams, CallBudgets& budgets,
                 const Refused& refused, Callers callers = Callers::kAll);

 private:
  class Handler;
  std::deque<std::string> paths_;  // gRPC keeps pointers to them
};

}  // namespace muster::rpc
