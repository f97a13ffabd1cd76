#include "role/diagnostic/diagnostic.h"

#include <utility>

#include "base/log.h"

namespace muster::diagnostic {

Diagnostic::Diagnostic(Options options)
    : options_(std::move(options)),
      ops_(options_.metrics_addr, options_.build, metrics_),
      rpc_({.address = options_.listen}) {
  metrics_
      .AddGauge("muster_build_info", "1, with the build in the labels.",
                {{"version", options_.build.version}, {"commit", options_.build.commit}})
      .Set(1);
  ops_.SetReadyCheck("grpc", [] { return Status(Code::kUnavailable, "not started"); });
}

Diagnostic::~Diagnostic() { Stop(); }

Status Diagnostic::Start() {
  if (!options_.data_dir.empty()) {
    auto dir = host::DataDir::Open(options_.data_dir, "--data-dir");
    if (!dir) return dir.error();
    data_dir_ = *std::move(dir);
  }
  MUSTER_RETURN_IF_ERROR(ops_.Start());
  MUSTER_RETURN_IF_ERROR(rpc_.Start());
  log::Info("listening", {{"grpc", rpc_.address().ToString()}, {"http", ops_.address().ToString()}});
  rpc_.SetServing(true);
  ops_.SetReadyCheck("grpc", [] { return Status(); });
  return {};
}

void Diagnostic::Stop() {
  ops_.SetReadyCheck("grpc", [] { return Status(Code::kUnavailable, "stopping"); });
  rpc_.Stop();
  ops_.Stop();
  data_dir_.reset();
}

}  // namespace muster::diagnostic
