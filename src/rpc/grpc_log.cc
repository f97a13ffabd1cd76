#include "rpc/grpc_log.h"

#include <grpc/support/log.h>

#include "base/log.h"

namespace muster::rpc {

void RouteGrpcLog() {
  gpr_set_log_function([](gpr_log_func_args* line) {
    log::Debug("grpc", {{"severity", gpr_log_severity_string(line->severity)},
                        {"text", line->message},
                        {"file", line->file},
                        {"line", line->line}});
  });
}

}  // namespace muster::rpc
