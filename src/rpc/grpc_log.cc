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

namespace muster::rpc {
namespace {

struct Listeners {
  std::mutex mu;
  std::map<const void*, std::function<void()>> all;  // guarded by mu
};
Listeners& OfCompressed() {
  static auto* listeners = new Listeners;  // for the life of the process: gRPC may write until its end
  return *listeners;
}

// Written once for each call, with the status that the caller gets.
bool IsOfCompression(std::string_view text) {
  return text.starts_with("Compression algorithm '") && text.ends_with("' is disabled.");
}

}  // namespace

void TellOfCompressed(const void* who, std::function<void()> told) {
  Listeners& listeners = OfCompressed();
  const std::lock_guard lock(listeners.mu);
  if (told) {
    listeners.all.insert_or_assign(who, std::move(told));
  } else {
    listeners.all.erase(who);
  }
}

void RouteGrpcLog() {
  gpr_set_log_function([](gpr_log_func_args* line) {
    if (IsOfCompression(line->message)) {
      log::Warn("compressed message refused", {{"why", line->message}});
      Listeners& listeners = OfCompressed();
      const std::lock_guard lock(listeners.mu);
      for (const auto& [who, told] : listeners.all) told();
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
