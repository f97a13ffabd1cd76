// What services with one answer to a call share: the way from the request to the port and back, and the encoding of the
// reply, of a long one on a thread that has time for it.
//
// Thread-safety: functions without state.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/status.h"
#include "rpc/call_subject.h"
#include "rpc/channel.h"
#include "rpc/work_budget.h"
#include "rpc/worker.h"

namespace muster::rpc {

template <class Reply, class... Replies>
Reply& Expect(std::variant<Replies...>& answer) {
  auto* reply = std::get_if<Reply>(&answer);
  MUSTER_CHECK(reply != nullptr, "the port answered with the reply of another request");
  return *reply;
}

template <class Reply>
size_t RowsOf(const Reply& reply) {
  if constexpr (requires { reply.machines; }) {
    return reply.machines.size();
  } else if constexpr (requires { reply.actions; }) {
    return reply.actions.size();
  } else if constexpr (requires { reply.nodes.size(); }) {
    return reply.nodes.size();
  } else if constexpr (requires { reply.workloads.size(); }) {
    return reply.workloads.size();
  } else if constexpr (requires { reply.size(); }) {
    return reply.size();
  } else {
    return 0;
  }
}

// `encode` fills `wire_reply`, the message that the reactor's call answers with.
template <class WireReply, class Encode>
void FinishWith(grpc::CallbackServerContext& context, grpc::ServerUnaryReactor* reactor, WireReply& wire_reply,
                Worker& encoders, size_t rows, Encode encode) {
  constexpr size_t kShortList = 256;  // takes less than a millisecond to encode
  auto finish = [&context, reactor, &wire_reply, encode = std::move(encode)] {
    encode();
    reactor->Finish(ToGrpc(TakeForAnswer(context, wire_reply.ByteSizeLong())));
  };
  if (rows <= kShortList) return finish();
  encoders.Post(std::move(finish));
}

// Serves one call. `request` is what was read of it; `ask(request, done)` puts it to the port, or refuses it through
// `done`, and `encode(reply, wire_reply)` writes the answer. gRPC keeps the context and the reply until Finish, which
// happens in the port's answer.
template <class Reply, class Request, class WireReply, class Encode, class Ask>
grpc::ServerUnaryReactor* AnswerCall(grpc::CallbackServerContext& context, Result<Request> request,
                                     WireReply& wire_reply, Worker& encoders, Encode encode, const Ask& ask) {
  grpc::ServerUnaryReactor* reactor = context.DefaultReactor();
  if (!request) {
    reactor->Finish(ToGrpc(request.error()));
    return reactor;
  }
  SetSubject(context, SubjectOf(*request));
  ask(*std::move(request), [&context, reactor, &wire_reply, &encoders, encode](auto answer) {
    if (!answer) return reactor->Finish(ToGrpc(answer.error()));
    auto& reply = Expect<Reply>(*answer);
    const size_t rows = RowsOf(reply);
    FinishWith(context, reactor, wire_reply, encoders, rows,
               [reply = std::move(reply), &wire_reply, encode] { encode(reply, wire_reply); });
  });
  return reactor;
}

}  // namespace muster::rpc

// A unary method of a service whose Serve<Reply>(context, request, reply) calls AnswerCall.
#define MUSTER_UNARY_METHOD(Method, WireRequest, WireReply, Reply)                                                     \
  grpc::ServerUnaryReactor* Method(grpc::CallbackServerContext* context, const WireRequest* request, WireReply* reply) \
      override {                                                                                                       \
    return Serve<Reply>(*context, *request, *reply);                                                                   \
  }                                                                                                                    \
  static_assert(true)
