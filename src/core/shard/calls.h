// Calls: the calls to the provider and the coordinator that have not ended, and what each was for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/fields.h"
#include "contract/effects.h"
#include "core/shard/machines.h"

namespace muster::shard {

struct OpenCall {
  enum class Kind : uint8_t { kTransition = 0, kGet = 1, kList = 2, kReport = 3 };
  Kind kind = Kind::kTransition;
  std::string machine;
  Moment begun = 0;

  MUSTER_FIELDS(OpenCall, kind, machine, begun)
};

class Calls {
 public:
  struct State {
    std::map<contract::CallId, OpenCall> open;
    contract::CallId last = 0;

    MUSTER_FIELDS(State, open, last)
  };

  explicit Calls(State state) : state_(std::move(state)) {}

  contract::CallId Open(OpenCall call) {
    state_.open.emplace(++state_.last, std::move(call));
    return state_.last;
  }
  // What the call was for. It must be open, and no longer is.
  OpenCall Close(contract::CallId id) {
    const auto found = state_.open.find(id);
    MUSTER_CHECK(found != state_.open.end(), "the host ended call {}, which is not open", id);
    OpenCall call = std::move(found->second);
    state_.open.erase(found);
    return call;
  }
  bool IsOpen(contract::CallId id) const { return state_.open.contains(id); }
  int64_t Count(OpenCall::Kind kind) const {
    return std::ranges::count_if(state_.open, [&](const auto& call) { return call.second.kind == kind; });
  }

  const State& state() const { return state_; }

 private:
  State state_;
};

}  // namespace muster::shard
