// NodeCa: the CA by which a scheduler signs join tokens and the certificates of nodes.
//
// A token is a certificate with its key, muster://join/<cluster>, for clients only. A node's certificate is
// muster://node/<cluster>/<node> and the host by which schedulers reach it, for both sides of a connection. Of a
// request nothing is taken but the key, which must be on P-256 and must have signed the request. Serial numbers are 128
// random bits; no certificate outlives its CA, and each begins five minutes ago, for clocks that are behind.
//
// Best it is an intermediate CA of the cluster's own: --tls-ca then needs its root alone, and the root's key no server.
//
// Thread-safety: immutable.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"

namespace muster::rpc {

struct JoinToken {
  std::string pem;  // the chain, the token's own certificate first, then its key
  std::string serial;
  WallTime expires;
};

struct NodeRequest {
  std::string node;
  std::string host;     // IP address or DNS name
  std::string csr_pem;  // 4 KiB at most
};

struct NodeCertificate {
  std::string chain_pem;  // the node's own first
  std::string serial;
  std::string key_digest;  // of the node's public key, hexadecimal
  WallTime expires;
};

class NodeCa {
 public:
  struct Files {
    std::string cert;     // the CA's certificate first, then others up to what is trusted
    std::string key;      // readable for its user alone
    std::string trusted;  // what peers' certificates must come from
  };

  // INVALID_ARGUMENT naming the file: it cannot be read, holds no CA that may sign, not the CA's key, or a CA that does
  // not come from what is trusted, or has expired.
  static Result<NodeCa> Read(const Files& files);

  Result<JoinToken> MakeToken(std::string_view cluster, WallTime now, Duration lifetime) const;
  // INVALID_ARGUMENT naming the field of the request.
  Result<NodeCertificate> SignNode(std::string_view cluster, const NodeRequest& request, WallTime now,
                                   Duration lifetime) const;
  // The text of Files::trusted.
  const std::string& trusted_pem() const { return trusted_; }

 private:
  struct Signer;
  NodeCa(std::shared_ptr<const Signer> signer, std::string trusted)
      : signer_(std::move(signer)), trusted_(std::move(trusted)) {}

  std::shared_ptr<const Signer> signer_;
  std::string trusted_;
};

}  // namespace muster::rpc
