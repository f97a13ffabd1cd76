// CallSubject: what an order is about and why it was given, on its way from the service that reads the request to the
// line in the log that tells of the call (server.cc). gRPC has no place of the program's own in a call; this is one, by
// the call's context, for as long as somebody waits for it.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <fmt/format.h>

#include <string>

#include "contract/cluster_views.h"
#include "model/workload.h"

namespace grpc {
class ServerContextBase;
}

namespace muster::rpc {

struct CallSubject {
  std::string object = {};  // "set/web"; empty: the request names none
  std::string reason = {};  // the caller's own words
};

// The server begins to wait for the subject of a call, and takes it, once, before the context ends. Empty if no service
// has said it.
void AwaitSubject(const grpc::ServerContextBase& context);
CallSubject TakeSubject(const grpc::ServerContextBase& context);
// A service says it. Nothing happens where nobody waits.
void SetSubject(const grpc::ServerContextBase& context, CallSubject subject);

// The subject of a request, by the names of its fields.
template <class Request>
CallSubject SubjectOf(const Request& request) {
  CallSubject subject;
  if constexpr (requires { contract::ObjectKindName(request.kind); }) {
    subject.object = fmt::format("{}/{}", contract::ObjectKindName(request.kind), request.name);
  } else if constexpr (requires { request.spec.name; }) {
    const bool alone = request.spec.kind == model::WorkloadKind::kWorkload;
    subject.object = fmt::format("{}/{}", alone ? "workload" : "set", request.spec.name);
  } else if constexpr (requires { request.quota.tenant; }) {
    subject.object = fmt::format("quota/{}", request.quota.tenant);
  } else if constexpr (requires { request.machine_id; }) {
    subject.object = fmt::format("machine/{}", request.machine_id);
  } else if constexpr (requires { request.cluster_id; }) {
    subject.object = request.cluster_id.empty() ? "shard" : fmt::format("cluster/{}", request.cluster_id);
  } else if constexpr (requires { request.workload; }) {
    subject.object = fmt::format("workload/{}", request.workload);
  } else if constexpr (requires { request.set; }) {
    subject.object = fmt::format("set/{}", request.set);
  } else if constexpr (requires { request.node; }) {
    subject.object = fmt::format("node/{}", request.node);
  } else if constexpr (requires { request.facts.node; }) {
    subject.object = fmt::format("node/{}", request.facts.node);
  }
  if constexpr (requires { request.reason; }) subject.reason = request.reason;
  return subject;
}

}  // namespace muster::rpc
