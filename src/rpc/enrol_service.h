// muster.v1.Enrol in front of an EnrolPort: how a machine without a certificate gets one.
//
// The service knows who calls and hands that on: a join token by its serial number, or a node for itself. Without TLS
// nobody is known, and nothing is signed.
//
// Thread-safety: the port is called from gRPC's threads, many at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"
#include "rpc/node_ca.h"

namespace grpc {
class Service;
}

namespace muster::rpc {

// For Server::SetServing.
constexpr std::string_view kEnrolService = "muster.v1.Enrol";

struct MadeToken {
  JoinToken token;
  std::string ca_pem;
};

// With whose certificate a node's is asked for.
struct TokenUse {
  std::string serial;
  WallTime expires;
};
struct SignNode {
  NodeRequest request;
  std::optional<TokenUse> token;  // absent: the node's own, which is to be renewed
  std::string own_key;            // of a node that renews: the digest of the key that it has shown
};
struct SignedNode {
  std::string chain_pem;
  std::string ca_pem;
};

class EnrolPort {
 public:
  using Done = std::function<void(Result<SignedNode>)>;

  virtual ~EnrolPort() = default;
  virtual Result<MadeToken> CreateToken() = 0;
  // `done` is called exactly once, perhaps before this returns.
  virtual void Sign(SignNode request, Done done) = 0;
};

// The port outlives the service, the service the server it is registered with.
std::shared_ptr<grpc::Service> MakeEnrolService(EnrolPort& port);

}  // namespace muster::rpc
