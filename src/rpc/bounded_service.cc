#include "rpc/bounded_service.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <grpc/byte_buffer.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>

#include <functional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "rpc/awaited_request.h"
#include "rpc/bounded_read.h"
#include "rpc/channel.h"
#include "rpc/message_bounds.h"
#include "rpc/server_credentials.h"

namespace muster::rpc {
namespace {

using grpc::ByteBuffer;
using grpc::internal::MethodHandler;
using grpc::internal::RpcMethod;
using AnyUnary = grpc::internal::CallbackUnaryHandler<ByteBuffer, ByteBuffer>;
using AnyStream = grpc::internal::CallbackBidiHandler<ByteBuffer, ByteBuffer>;

// What a request may weigh that is kept as long as its stream lasts: all streams of an identity have what a caller has
// whatever others have, and no request that means something comes near it.
constexpr size_t kMostOfStream = 64 << 10;

Status StreamTooLarge(size_t weight) {
  return {Code::kResourceExhausted,
          fmt::format("the request takes {} bytes, and one that begins a stream may take {}; send less", weight,
                      kMostOfStream)};
}

std::vector<std::string_view> PiecesOf(const grpc_byte_buffer& bytes) {
  std::vector<std::string_view> pieces;
  const grpc_slice_buffer& slices = bytes.data.raw.slice_buffer;
  for (size_t i = 0; i < slices.count; ++i) {
    const grpc_slice& slice = slices.slices[i];
    pieces.emplace_back(reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice));
  }
  return pieces;
}

RpcMethod::RpcType TypeOf(const google::protobuf::MethodDescriptor& method) {
  if (method.client_streaming()) {
    return method.server_streaming() ? RpcMethod::BIDI_STREAMING : RpcMethod::CLIENT_STREAMING;
  }
  return method.server_streaming() ? RpcMethod::SERVER_STREAMING : RpcMethod::NORMAL_RPC;
}

// A stream that ends as it begins; frees itself.
class RefusedStream final : public grpc::ServerBidiReactor<ByteBuffer, ByteBuffer> {
 public:
  explicit RefusedStream(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace

Status OpenStreams::Open(const std::string& who, bool identified) {
  const std::lock_guard lock(mu_);
  return open_.Add(who, identified ? bounds_.of_identity : bounds_.of_address, bounds_.of_all);
}

void OpenStreams::Close(const std::string& who) {
  const std::lock_guard lock(mu_);
  open_.Remove(who);
}

Result<std::shared_ptr<void>> OpenStreams::Unheard(const std::string& who) {
  const std::lock_guard lock(mu_);
  if (Status fit = unheard_.Add(who, bounds_.unheard, bounds_.unheard_of_all); !fit.ok()) {
    return std::unexpected(std::move(fit));
  }
  // The pointer carries nothing but its end.
  return std::shared_ptr<void>(this, [who](void* streams) {
    auto& self = *static_cast<OpenStreams*>(streams);
    const std::lock_guard end(self.mu_);
    self.unheard_.Remove(who);
  });
}

class BoundedService::Handler final : public MethodHandler {
 public:
  Handler(const google::protobuf::MethodDescriptor& method, std::string_view path, MethodHandler& inner,
          OpenStreams& streams, CallBudgets& budgets, Refused refused)
      : method_(method),
        type_(TypeOf(method)),
        path_(path),
        inner_(inner),
        streams_(streams),
        budgets_(budgets),
        refused_(std::move(refused)) {}

  // Every method is registered as a stream: the message is read here.
  void* Deserialize(grpc_call* /*call*/, grpc_byte_buffer* /*bytes*/, grpc::Status* /*status*/,
                    void** /*handler_data*/) override {
    MUSTER_CHECK(false, "{} is registered as a stream", path_);
    return nullptr;
  }

  void RunHandler(const HandlerParameter& call) override {
    if (method_.client_streaming()) return Begin(call, nullptr);
    const Status fit =
        AwaitRequest(&streams_, CallerName(*call.server_context), call.call->call(), *call.server_context,
                     [this, call](grpc_byte_buffer* bytes, bool silent) {
                       if (!silent) return Begin(call, bytes);
                       Refuse(call, bytes, kSilent, {Code::kDeadlineExceeded, "the call was made and no message came"});
                     });
    if (!fit.ok()) Refuse(call, nullptr, kTooMany, fit);
  }

 private:
  void Begin(const HandlerParameter& call, grpc_byte_buffer* bytes) {
    std::string who = CallerName(*call.server_context);
    if (method_.client_streaming()) return BeginStream(call, bytes, who, call.call_requester);
    const Result<size_t> weight = WeighRequest(bytes);
    if (!weight) {
      const bool large = weight.error().code() == Code::kResourceExhausted;
      return Refuse(call, bytes, large ? kTooLarge : kNoMessage, weight.error());
    }
    if (type_ == RpcMethod::SERVER_STREAMING && *weight > kMostOfStream) {
      return Refuse(call, bytes, kTooLarge, StreamTooLarge(*weight));
    }
    auto share = budgets_.requests.Take(who, *weight);
    if (!share) return Refuse(call, bytes, kTooMany, share.error());
    // What gRPC calls when the call is over.
    auto over = [share = *std::move(share), began = BeginCall(*call.server_context, budgets_, who),
                 requester = call.call_requester]() mutable {
      began.reset();
      share.reset();
      requester();
    };
    if (type_ == RpcMethod::NORMAL_RPC) return Pass(call, bytes, std::move(over));
    BeginStream(call, bytes, who, std::move(over));
  }

  void BeginStream(const HandlerParameter& call, grpc_byte_buffer* bytes, const std::string& who,
                   std::function<void()> over) {
    const Status fit = streams_.Open(who, CallerOf(*call.server_context).has_value());
    if (!fit.ok()) return Refuse(call, bytes, kTooMany, fit);
    if (method_.client_streaming()) {
      auto unheard = streams_.Unheard(who);
      if (!unheard) {
        streams_.Close(who);
        return Refuse(call, bytes, kTooMany, unheard.error());
      }
      // It may be told when this handler is gone.
      begun_stream = {.unheard = *std::move(unheard),
                      .too_large = [refused = refused_, path = path_, who](const Status& why) {
                        refused({kTooLarge, who, path, why.message()});
                      }};
    }
    Pass(call, bytes, [this, who, over = std::move(over)] {
      streams_.Close(who);
      over();
    });
    begun_stream = {};  // a stream that may be silent has not taken it
  }

  Result<size_t> WeighRequest(const grpc_byte_buffer* bytes) const {
    if (bytes == nullptr) {
      return InvalidArgument("no message came: there is none, or it is compressed, too large or cut off");
    }
    if (bytes->data.raw.compression != GRPC_COMPRESS_NONE) {
      return Error(Code::kUnimplemented, "compressed messages are not read here; send it as it is");
    }
    return WeighMessage(*method_.input_type(), PiecesOf(*bytes), {});
  }

  void Pass(const HandlerParameter& call, grpc_byte_buffer* bytes, std::function<void()> over) {
    grpc::Status parsed;
    void* data = nullptr;
    void* request = method_.client_streaming() ? nullptr : inner_.Deserialize(call.call->call(), bytes, &parsed, &data);
    inner_.RunHandler({call.call, call.server_context, request, parsed, data, std::move(over)});
  }

  void Refuse(const HandlerParameter& call, grpc_byte_buffer* bytes, std::string_view reason, const Status& fit) {
    refused_({reason, CallerName(*call.server_context), path_, fit.message()});
    const grpc::Status status = ToGrpc(fit);
    if (method_.client_streaming()) {
      AnyStream stream([&](grpc::CallbackServerContext*) { return new RefusedStream(status); });
      return stream.RunHandler(call);
    }
    AnyUnary unary([&](grpc::CallbackServerContext* context, const ByteBuffer*, ByteBuffer*) {
      grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
      reactor->Finish(status);
      return reactor;
    });
    grpc::Status taken;
    void* data = nullptr;
    void* request = unary.Deserialize(call.call->call(), bytes, &taken, &data);  // owns the bytes
    unary.RunHandler({call.call, call.server_context, request, taken, data, call.call_requester});
  }

  const google::protobuf::MethodDescriptor& method_;
  const RpcMethod::RpcType type_;
  const std::string path_;
  MethodHandler& inner_;
  OpenStreams& streams_;
  CallBudgets& budgets_;
  const Refused refused_;
};

BoundedService::BoundedService(std::string_view name, grpc::Service& inner, OpenStreams& streams, CallBudgets& budgets,
                               const Refused& refused, Callers callers) {
  const auto* service = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(std::string(name));
  MUSTER_CHECK(service != nullptr, "{} is no service of ours", name);
  const auto handler_of = &BoundedService::GetHandler;  // protected, so it goes by the name of this class
  int added = 0;
  for (int i = 0; i < service->method_count(); ++i) {
    const google::protobuf::MethodDescriptor& method = *service->method(i);
    const std::string& path = paths_.emplace_back(fmt::format("/{}/{}", name, method.name()));
    if (callers == Callers::kOperators && !IsForOperators(path)) continue;
    MethodHandler* handler = (inner.*handler_of)(i);
    MUSTER_CHECK(handler != nullptr, "{} has no handler", path);
    AddMethod(new grpc::internal::RpcServiceMethod(path.c_str(), RpcMethod::BIDI_STREAMING, nullptr));
    MarkMethodCallback(added++, new Handler(method, path, *handler, streams, budgets, refused));
  }
}

}  // namespace muster::rpc
