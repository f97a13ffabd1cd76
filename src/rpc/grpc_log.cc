#include "rpc/grpc_log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <string>

#include "base/log.h"

namespace muster::rpc {

void RouteGrpcLog() {
  gpr_set_log_function([](gpr_log_func_args* line) {
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
