#include "rpc/control_stream.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

#include "model/names.h"
#include "rpc/control_conversion.h"
#include "rpc/unary_answer.h"

namespace muster::rpc {
namespace {

constexpr size_t kMostCommands = 10'000;

}  // namespace

bool ControlStream::Send(const contract::AgentRequest& command) {
  if (waiting() >= kMostCommands) {
    Drop({Code::kResourceExhausted, "too many commands wait to be read; read faster, and connect again"});
  }
  return Push(command);
}

Status ControlStream::Silent() {
  return {Code::kDeadlineExceeded, "message: the stream was opened and nothing was said; send register or heartbeat"};
}

void ControlStream::OnReadDone(bool ok) {
  if (!ok) return End({});
  heard_.Said();
  in_.Clear();
  if (Status read = heard_.Read(bytes_, {}, in_); !read.ok()) return End({read.code(), "message: " + read.message()});
  Receive();
}

void ControlStream::Receive() {
  auto said = FromWire(in_);
  if (!said) return End(said.error());
  if (auto* request = std::get_if<contract::RegisterNode>(&*said)) return Register(std::move(*request));
  Beat(std::move(std::get<contract::Heartbeat>(*said)));
}

bool ControlStream::SpeaksFor(const std::string& node) {
  if (Status allowed = CheckNode(caller_, node); !allowed.ok()) {
    End(std::move(allowed));
    return false;
  }
  if (node_.empty()) node_ = node;
  if (node_ == node) return true;
  End({Code::kInvalidArgument,
       fmt::format("node_id: {} is not the node of this stream, {}", model::Quoted(node), model::Quoted(node_))});
  return false;
}

void ControlStream::Register(contract::RegisterNode request) {
  if (!SpeaksFor(request.facts.node)) return;
  cluster_.Ask(std::move(request), [self = Shared(), node = node_](Result<contract::ClusterReply> reply) {
    if (!reply) return self->End(reply.error());
    const auto& registered = Expect<contract::NodeRegistered>(*reply);
    if (!registered.accepted) return self->End({Code::kFailedPrecondition, registered.reason});
    self->Accepted(node, nullptr);
  });
}

void ControlStream::Beat(contract::Heartbeat beat) {
  if (!SpeaksFor(beat.node)) return;
  auto statuses = beat.statuses;
  cluster_.Ask(std::move(beat),
               [self = Shared(), node = node_, statuses = std::move(statuses)](Result<contract::ClusterReply> reply) {
                 if (!reply) return self->End(reply.error());
                 self->Accepted(node, &statuses);
               });
}

void ControlStream::Accepted(const std::string& node, const std::vector<contract::WorkloadStatus>* statuses) {
  {
    const std::lock_guard lock(streams_mu_);
    if (closed_) return;
    if (!id_) id_ = streams_.Opened(node, Shared());
    if (statuses != nullptr) streams_.Beat(*id_, *statuses);
  }
  ReadOn([this] { StartRead(&bytes_); });
}

void ControlStream::Ended() {
  const std::lock_guard lock(streams_mu_);
  closed_ = true;
  if (id_) streams_.Closed(*id_);
}

void ControlStream::Encode(const contract::AgentRequest& command, Message& out) {
  if (const auto* apply = std::get_if<contract::ApplyOnAgent>(&command)) {
    ToWire(*apply, out);
  } else if (const auto* remove = std::get_if<contract::DeleteOnAgent>(&command)) {
    ToWire(*remove, out);
  }
}

}  // namespace muster::rpc
