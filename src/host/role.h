// Role: the life of every long-running part of the product, and the function that lives it.
//
// A role is made from checked options, started once, and stopped once it was started, also when the start failed half
// way. Start comes back when the role serves, with the reason if it cannot; Stop comes back when nothing of it runs. A
// stop may be asked for while Start still waits for something: Start then comes back with CANCELLED.
#pragma once

#include <functional>
#include <stop_token>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "host/signals.h"

namespace muster::host {

class Role {
 public:
  virtual ~Role() = default;
  virtual Status Start(std::stop_token stop) = 0;
  // Idempotent; waits, a few seconds at most for calls that are under way. Nothing can be started again.
  virtual void Stop() = 0;

  // Called when a started role must not go on: at most once, from any thread. Set before Start.
  using Failed = std::function<void(std::string_view literal_reason, const Status& why)>;
  void OnFailure(Failed failed) { failed_ = std::move(failed); }

 protected:
  // The reason is for the log, as "the shard cannot go on"; the status is what the process ends with.
  void Fail(std::string_view literal_reason, const Status& why) { failed_(literal_reason, why); }

 private:
  Failed failed_ = [](std::string_view, const Status&) {};
};

// Starts the role, waits for the stop, stops it; logs "ready", "stopping" and "stopped". Returns the error of Start, or
// the failure of a role that could not go on; a start cut short by the stop is no error.
Status RunRole(Role& role, Signals& signals);

}  // namespace muster::host
