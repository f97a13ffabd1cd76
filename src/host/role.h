// Role: the life of every long-running part of the product, and the function that lives it.
//
// A role is made from checked options, started once, and stopped once it was started, also when the start failed half
// way. Start comes back when the role serves, with the reason if it cannot; Stop comes back when nothing of it runs. A
// stop may be asked for while Start still waits for something: Start then comes back with CANCELLED.
#pragma once

#include <stop_token>

#include "base/status.h"
#include "host/signals.h"

namespace muster::host {

class Role {
 public:
  virtual ~Role() = default;
  virtual Status Start(std::stop_token stop) = 0;
  // Idempotent; waits, a few seconds at most for calls that are under way. Nothing can be started again.
  virtual void Stop() = 0;
};

// Starts the role, waits for the stop, stops it; logs "ready", "stopping" and "stopped". An error of Start comes back
// as it is; a start cut short by the stop is none.
Status RunRole(Role& role, Signals& signals);

}  // namespace muster::host
