// StandardStreams: bounds of the streams of gRPC's own service, reflection.
//
// gRPC makes and registers this service itself, so no BoundedService can stand in front of it. Its one method reads a
// stream, which gRPC shows as it begins: the server's interceptor sees every call, also one without a message. A stream
// beyond the bounds, and one that says nothing for kFirstWordTimeout, is cancelled (the caller hears CANCELLED), told
// to `refused`, and does not count any more. Each holds a thread, so they are few.
//
// Thread-safety: any thread may begin a stream; a Stream is for one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "rpc/bounded_service.h"
#include "rpc/refusal.h"

namespace grpc {
class ServerContextBase;
}

namespace muster::rpc {

class StandardStreams {
 public:
  // One stream while it is open.
  class Stream {
   public:
    virtual ~Stream() = default;
    // Its caller has said something.
    virtual void Heard() = 0;
  };

  // Whether the method, by its path, is a stream of this service.
  static bool Has(std::string_view method);

  explicit StandardStreams(Refused refused) : refused_(std::move(refused)) {}

  // When the call's metadata has come. Nothing if it was cancelled, being one too many. This and the context outlive
  // the stream.
  std::unique_ptr<Stream> Begin(grpc::ServerContextBase& context, std::string_view method);

 private:
  const Refused refused_;
  OpenStreams streams_{{.of_identity = 4, .of_address = 16, .of_all = 32}};
};

}  // namespace muster::rpc
