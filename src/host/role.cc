#include "host/role.h"

#include <cstdlib>

#include "base/log.h"
#include "base/probe.h"

namespace muster::host {

Status RunRole(Role& role, Signals& signals) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing writes the environment
  if (const char* spec = std::getenv("MUSTER_CRASH_POINT"); spec != nullptr && faults::Compiled()) {
    MUSTER_RETURN_IF_ERROR(faults::EnableCrashPoint(spec));
  }
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
