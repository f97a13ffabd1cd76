// What services with one answer to a call share: the reply that belongs to the request, and its encoding, of a long one
// on a thread that has time for it.
//
// Thread-safety: functions without state.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <utility>
#include <variant>

#include "base/check.h"
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
  } else {
    return 0;
  }
}

// `encode` fills the message that the reactor's call answers with.
template <class Encode>
void FinishWith(grpc::ServerUnaryReactor* reactor, Worker& encoders, size_t rows, Encode encode) {
  constexpr size_t kShortList = 256;  // takes less than a millisecond to encode
  auto finish = [reactor, encode = std::move(encode)] {
    encode();
    reactor->Finish(grpc::Status::OK);
  };
  if (rows <= kShortList) return finish();
  encoders.Post(std::move(finish));
}

}  // namespace muster::rpc
