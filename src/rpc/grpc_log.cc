#include "rpc/grpc_log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "rpc/refusal.h"

namespace muster::rpc {
namespace {

struct Listeners {
  std::mutex mu;
  std::map<const void*, std::function<void(std::string_view)>> all;  // guarded by mu
};
Listeners& OfRefused() {
  static auto* listeners = new Listeners;  // for the life of the process: gRPC may write until its end
  return *listeners;
}

// The reason, if the line says that something was refused. Written once: for each call, with the status that the caller
// gets, and for each connection that a server has accepted and that ends without a handshake.
std::string_view ReasonIn(std::string_view text) {
  if (text.starts_with("Compression algorithm '") && text.ends_with("' is disabled.")) return kCompressed;
  if (text.starts_with("Handshaking failed: ")) return kHandshake;
  return {};
}

}  // namespace

void TellOfRefused(const void* who, std::function<void(std::string_view)> told) {
  Listeners& listeners = OfRefused();
  const std::lock_guard lock(listeners.mu);
  if (told) {
    listeners.all.insert_or_assign(who, std::move(told));
  } else {
    listeners.all.erase(who);
  }
}

void RouteGrpcLog() {
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_DEBUG);  // that of the line of a handshake
  gpr_set_log_function([](gpr_log_func_args* line) {
    if (const std::string_view reason = ReasonIn(line->message); !reason.empty()) {
      log::Warn("refused by gRPC", {{"reason", reason}, {"why", line->message}});
      Listeners& listeners = OfRefused();
      const std::lock_guard lock(listeners.mu);
      for (const auto& [who, told] : listeners.all) told(reason);
    }
    log::Debug("grpc", {{"severity", gpr_log_severity_string(line->severity)},
                        {"text", line->message},
                        {"file", line->file},
                        {"line", line->line}});
  });
  google::protobuf::SetLogHandler(
      [](google::protobuf::LogLevel level, const char* file, int line, const std::string& text) {
        log::Debug("protobuf", {{"level", static_cast<int>(level)}, {"text", text}, {"file", file}, {"line", line}});
      });
}

}  // namespace muster::rpc
