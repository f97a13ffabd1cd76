#include "host/role.h"

#include "base/log.h"

namespace muster::host {

Status RunRole(Role& role, Signals& signals) {
  if (Status started = role.Start(); !started.ok()) {
    role.Stop();
    return started;
  }
  log::Info("ready");
  log::Info("stopping", {{"reason", signals.WaitForStop()}});
  role.Stop();
  log::Info("stopped");
  return {};
}

}  // namespace muster::host
