// What a reader of messages needs to be safe from its peer: messages that are looked at before they are parsed and, for
// the reading half of a server's stream, an end for a stream that says nothing.
//
// Thread-safety: ReadBounded and BytePieces have no state that changes; a Heard is of one thread at a time, but for
// Read.
#pragma once

#include <google/protobuf/descriptor.h>
#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "base/time.h"
#include "rpc/message_bounds.h"

namespace muster::rpc {

// How long a stream that a caller has opened may say nothing.
inline constexpr Duration kFirstWordTimeout = 8s;

// The bytes of a message where they lie; nothing if it has none.
class BytePieces {
 public:
  explicit BytePieces(const grpc::ByteBuffer& bytes) {
    if (!bytes.Dump(&slices_).ok()) slices_.clear();
    pieces_.reserve(slices_.size());
    for (const grpc::Slice& slice : slices_) {
      pieces_.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
  }
  std::span<const std::string_view> all() const { return pieces_; }

 private:
  std::vector<grpc::Slice> slices_;
  std::vector<std::string_view> pieces_;
};

// RESOURCE_EXHAUSTED for a message beyond the bounds, INVALID_ARGUMENT for bytes that are none. The bytes are freed
// unless they are refused.
template <class Message>
Status ReadBounded(grpc::ByteBuffer& bytes, const MessageBounds& bounds, Message& message) {
  if (!bytes.Valid()) return {Code::kInvalidArgument, "the message has no bytes"};
  MUSTER_RETURN_IF_ERROR(CheckBounds(*Message::descriptor(), BytePieces(bytes).all(), bounds));
  if (grpc::SerializationTraits<Message>::Deserialize(&bytes, &message).ok()) return {};
  return {Code::kInvalidArgument, "cannot be parsed; send the message of the protocol, with texts in UTF-8"};
}

// The handler of a method that reads a stream as bytes and writes messages. `service` is the full name of the service;
// `mark` its MarkMethodCallback, which only the service can call.
template <class Reply, class Mark, class Begin>
void ReadAsBytes(std::string_view service, const std::string& method, const Mark& mark, Begin begin) {
  const auto* described = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(std::string(service));
  MUSTER_CHECK(described != nullptr, "{} is no service of ours", service);
  const auto* found = described->FindMethodByName(method);
  MUSTER_CHECK(found != nullptr, "{} has no method {}", service, method);
  mark(found->index(), new grpc::internal::CallbackBidiHandler<grpc::ByteBuffer, Reply>(std::move(begin)));
}

// What the server knows of a stream that begins: BoundedService leaves it here meanwhile, and the stream's Heard takes
// it.
struct BegunStream {
  std::shared_ptr<void> unheard = nullptr;                            // counts it until its first word
  std::function<void(const Status&)> too_large = [](const auto&) {};  // counts a message beyond the bounds
};
inline thread_local BegunStream begun_stream;

// The reading half of a stream of a server: it ends unless the peer says something in time, and its messages are
// bounded.
class Heard {
 public:
  // On the thread that begins the stream.
  Heard() : begun_(std::exchange(begun_stream, {})) {}

  // As ReadBounded; what is beyond the bounds is counted.
  template <class Message>
  Status Read(grpc::ByteBuffer& bytes, const MessageBounds& bounds, Message& message) const {
    Status read = ReadBounded(bytes, bounds, message);
    if (read.code() == Code::kResourceExhausted) begun_.too_large(read);
    return read;
  }

  // `silent` runs on a thread of gRPC, at most once; it may still run while Said is called.
  void Await(std::function<void()> silent) {
    alarm_.Set(std::chrono::system_clock::now() +
                   std::chrono::duration_cast<std::chrono::system_clock::duration>(kFirstWordTimeout),
               [silent = std::move(silent)](bool rang) {
                 if (rang) silent();
               });
  }
  void Said() {
    alarm_.Cancel();
    begun_.unheard.reset();
  }

 private:
  grpc::Alarm alarm_;
  BegunStream begun_;
};

}  // namespace muster::rpc
