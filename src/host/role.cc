#include "host/role.h"

#include <cstdlib>
#include <mutex>
#include <string_view>

#include "base/log.h"
#include "base/probe.h"

namespace muster::host {

Status RunRole(Role& role, Signals& signals) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing writes the environment
  if (const char* spec = std::getenv("MUSTER_CRASH_POINT"); spec != nullptr && faults::Compiled()) {
    MUSTER_RETURN_IF_ERROR(faults::EnableCrashPoint(spec));
  }
  std::mutex mu;
  Status failure;
  role.OnFailure([&](std::string_view literal_reason, const Status& why) {
    {
      const std::lock_guard lock(mu);
      failure = why;
    }
    signals.RequestStop(literal_reason);
  });
  const Status started = role.Start(signals.stop_token());
  const bool cut_short = started.code() == Code::kCancelled && signals.stop_token().stop_requested();
  if (!started.ok() && !cut_short) {
    role.Stop();
    return started;
  }
  if (!cut_short) log::Info("ready");
  log::Info("stopping", {{"reason", signals.WaitForStop()}});
  role.Stop();
  log::Info("stopped");
  const std::lock_guard lock(mu);
  return failure;
}

}  // namespace muster::host
