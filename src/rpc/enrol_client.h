// EnrolClient: tokens and certificates of a cluster, from one of its schedulers (muster.v1.Enrol).
//
// A call goes from scheduler to scheduler until one answers otherwise than UNAVAILABLE; each is asked once.
// UNIMPLEMENTED says that the cluster's schedulers have no CA for nodes.
//
// Thread-safety: any thread may ask. Answers run on gRPC's threads, also while the client is destroyed, which cancels
// what is open and waits for it; so no answer may destroy the client.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "base/time.h"
#include "rpc/enrol_service.h"
#include "rpc/tls_files.h"

namespace muster::rpc {

struct TokenText {
  std::string token_pem;
  std::string ca_pem;
  WallTime expires;
};

class EnrolClient {
 public:
  using TokenDone = std::function<void(Result<TokenText>)>;
  using SignDone = EnrolPort::Done;

  virtual ~EnrolClient() = default;
  virtual void CreateToken(TokenDone done) = 0;
  virtual void Sign(const NodeRequest& request, SignDone done) = 0;
};

// `schedulers` is HOST:PORT, or several with commas; the error is that of MakeChannel.
Result<std::unique_ptr<EnrolClient>> MakeEnrolClient(const std::string& schedulers, const TlsFiles& tls,
                                                     const std::string& cluster = {});

}  // namespace muster::rpc
