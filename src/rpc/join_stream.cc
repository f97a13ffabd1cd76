#include "rpc/join_stream.h"

#include <fmt/format.h>

#include "model/names.h"
#include "rpc/cluster_conversion.h"
#include "rpc/unary_answer.h"

namespace muster::rpc {

Status JoinStream::Silent() {
  return {Code::kDeadlineExceeded, "message: the stream was opened and nothing was said; send join"};
}

void JoinStream::OnReadDone(bool ok) {
  if (!ok)
    return End(node_.empty() ? Status(Code::kInvalidArgument, "join: missing; it must be the first message")
                             : Status());
  heard_.Said();
  in_.Clear();
  if (Status read = heard_.Read(bytes_, {}, in_); !read.ok()) return End({read.code(), "message: " + read.message()});
  Receive();
}

void JoinStream::Answer(JoinAnswer answer) {
  if (waiting() >= kMostUnread) {
    return Drop({Code::kResourceExhausted, "too many answers wait to be read; read them, and join again"});
  }
  Push(std::move(answer));
  ReadOn([this] { StartRead(&bytes_); });
}

void JoinStream::Receive() {
  auto said = FromWire(in_);
  if (!said) return End(said.error());
  if (auto* request = std::get_if<contract::RegisterNode>(&*said)) return Register(std::move(*request));
  Beat(std::move(std::get<contract::Heartbeat>(*said)));
}

void JoinStream::Register(contract::RegisterNode request) {
  if (!node_.empty()) return End({Code::kInvalidArgument, "join: the node has joined; open another stream"});
  if (Status allowed = CheckNode(caller_, request.facts.node); !allowed.ok()) return End(std::move(allowed));
  node_ = request.facts.node;
  cluster_.Ask(std::move(request),
               [self = Shared()](Result<contract::ClusterReply> reply) { self->Registered(std::move(reply)); });
}

void JoinStream::Registered(Result<contract::ClusterReply> reply) {
  if (!reply) return End(reply.error());
  auto& registered = Expect<contract::NodeRegistered>(*reply);
  const bool accepted = registered.accepted;
  {
    const std::lock_guard lock(state_mu_);
    accepted_ = accepted;
  }
  if (accepted) return Answer(std::move(registered));
  Push(std::move(registered));
  End({});
}

void JoinStream::Beat(contract::Heartbeat beat) {
  {
    const std::lock_guard lock(state_mu_);
    if (!accepted_) return End({Code::kInvalidArgument, "heartbeat: the node has not joined; wait for the answer"});
  }
  if (beat.node != node_) {
    return End({Code::kInvalidArgument, fmt::format("heartbeat.node: {} is not the node that joined, {}",
                                                    model::Quoted(beat.node), model::Quoted(node_))});
  }
  cluster_.Ask(std::move(beat), [self = Shared()](Result<contract::ClusterReply> reply) {
    if (!reply) return self->End(reply.error());
    self->Answer(Expect<contract::HeartbeatAck>(*reply));
  });
}

void JoinStream::Encode(const JoinAnswer& answer, v1::JoinReply& out) {
  if (const auto* registered = std::get_if<contract::NodeRegistered>(&answer)) {
    ToWire(*registered, *out.mutable_registered());
  } else {
    ToWire(std::get<contract::HeartbeatAck>(answer), *out.mutable_ack());
  }
}

}  // namespace muster::rpc
