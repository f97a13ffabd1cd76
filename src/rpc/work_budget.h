// WorkBudget: how many bytes of a server's calls may be in its hands at a time, of one caller and of all: requests from
// when they are read until their call is over, answers until they are taken, and what waits to be read on a stream of
// answers (Watch, Logs).
//
// The bounds of one message do not help against a hundred that are just within them, nor against answers that nobody
// reads. So every call takes what its request is estimated to be in memory (message_bounds.h), and its answer what it
// has in bytes, and a call beyond the budget is refused.
//
// The answer is made by a service, which does not know the server: BeginCall leaves there what the call may take from,
// by its context, and TakeForAnswer and StreamBudget find it.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace grpc {
class ServerContextBase;
}

namespace muster::rpc {

struct WorkBounds {
  size_t of_caller = 0;
  size_t of_all = 0;
  size_t of_each = 0;   // a caller may have so much whatever others have, up to
  size_t of_both = 0;   // so much of all together
  size_t harmless = 0;  // a share up to here is never refused
  // A caller that has nothing is given one share whatever its size, though others may have all: of answers, which are
  // as large as a fleet, and not of what callers choose.
  bool first_of_caller = false;
};

// Copies take from the same.
class WorkBudget {
 public:
  // `what` and `advice`, which are literals, are for the refusal: "requests", "wait for those".
  WorkBudget(std::string_view what, WorkBounds bounds, std::string_view advice = "wait for those")
      : what_(what), advice_(advice), bounds_(bounds) {}

  // Taken as long as the result lives, which may be longer than this. RESOURCE_EXHAUSTED, naming the bound. Where
  // nothing is taken, one share of any size is given; so is one that is `always` given.
  Result<std::shared_ptr<void>> Take(const std::string& who, size_t bytes, bool always = false);
  size_t taken() const;

 private:
  struct Taken {
    std::mutex mu;
    size_t all = 0;                    // guarded by mu
    std::map<std::string, size_t> of;  // guarded by mu: callers that have nothing have no entry
  };
  static void GiveBack(Taken& taken, const std::string& who, size_t bytes);

  const std::string_view what_;
  const std::string_view advice_;
  const WorkBounds bounds_;
  const std::shared_ptr<Taken> taken_ = std::make_shared<Taken>();
};

// What a server lends to its calls.
struct CallBudgets {
  WorkBudget requests{"requests", {.of_caller = 16 << 20, .of_all = 32 << 20, .of_each = 4 << 20, .of_both = 96 << 20}};
  WorkBudget answers{"answers",
                     {.of_caller = 64 << 20, .of_all = 256 << 20, .harmless = 64 << 10, .first_of_caller = true}};
  WorkBudget streams{"answers on streams",
                     {.of_caller = 64 << 20, .of_all = 256 << 20, .of_each = 4 << 20, .of_both = 320 << 20},
                     "read faster, and begin again"};
};

// As long as the result lives, TakeForAnswer takes for this call, and the answer has what it took. `budgets` outlive
// the call.
std::shared_ptr<void> BeginCall(const grpc::ServerContextBase& context, CallBudgets& budgets, const std::string& who);
// The answer takes so much, in place of what it took before. RESOURCE_EXHAUSTED if it may not. OK for a call that no
// server has begun so.
Status TakeForAnswer(const grpc::ServerContextBase& context, size_t bytes);

// What the items of one stream of answers take while they wait to be read. It may outlive the call and the server.
class StreamBudget {
 public:
  explicit StreamBudget(const grpc::ServerContextBase& context);

  // For one item, as long as the result lives. `first`: no other item of the stream waits; it is given whatever others
  // have. RESOURCE_EXHAUSTED, naming the bound.
  Result<std::shared_ptr<void>> Take(size_t bytes, bool first);

 private:
  std::string who_;
  std::optional<WorkBudget> budget_;  // nothing: no server has begun the call so
};

}  // namespace muster::rpc
