// What a client needs to read a server's stream without trusting the server: its messages as bytes, looked at before
// they are parsed, and a bound on all rows of an answer that is kept as a whole.
//
// Thread-safety: StartRows and StartDialogue have no state; a RowTally is told from one thread at a time.
#pragma once

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/rpc_method.h>
#include <grpcpp/support/client_callback.h>

#include <cstddef>
#include <memory>

#include "base/status.h"

namespace muster::rpc {

// Begins a call whose answer is a stream. The method goes by its path ("/package.Service/Method", a literal).
template <class WireRequest>
void StartRows(const std::shared_ptr<grpc::ChannelInterface>& channel, const char* path, grpc::ClientContext* context,
               const WireRequest* request, grpc::ClientReadReactor<grpc::ByteBuffer>* reactor) {
  const grpc::internal::RpcMethod method(path, grpc::internal::RpcMethod::SERVER_STREAMING);
  grpc::internal::ClientCallbackReaderFactory<grpc::ByteBuffer>::Create(channel.get(), method, context, request,
                                                                        reactor);
}

// The same for a stream in both directions.
template <class WireRequest>
void StartDialogue(const std::shared_ptr<grpc::ChannelInterface>& channel, const char* path,
                   grpc::ClientContext* context, grpc::ClientBidiReactor<WireRequest, grpc::ByteBuffer>* reactor) {
  const grpc::internal::RpcMethod method(path, grpc::internal::RpcMethod::BIDI_STREAMING);
  grpc::internal::ClientCallbackReaderWriterFactory<WireRequest, grpc::ByteBuffer>::Create(channel.get(), method,
                                                                                           context, reactor);
}

// The rows of one answer that is kept as a whole: as many, and as many bytes, as a provider's list may have.
class RowTally {
 public:
  static constexpr size_t kMostRows = 1'000'000;
  static constexpr size_t kMostBytes = 256 << 20;

  // RESOURCE_EXHAUSTED, naming the bound.
  Status Add(size_t bytes) {
    ++rows_;
    bytes_ += bytes;
    if (rows_ > kMostRows) {
      return {Code::kResourceExhausted, fmt::format("there are more than {} rows", kMostRows)};
    }
    if (bytes_ <= kMostBytes) return {};
    return {Code::kResourceExhausted, fmt::format("the first {} rows have more than {} bytes", rows_, kMostBytes)};
  }

 private:
  size_t rows_ = 0;
  size_t bytes_ = 0;
};

}  // namespace muster::rpc
