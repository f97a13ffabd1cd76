// Certificates: the certificate of a node that was given a join token in place of one.
//
//   <data-dir>/tls/key.pem        made here, and never sent
//   <data-dir>/tls/ca.pem         what schedulers' certificates must come from
//   <data-dir>/tls/cert.pem       signed by a scheduler; written last, so that it is there once all is
//   <data-dir>/tls/join/          the token, until the certificate is there
//
// All are private to the agent's user, and replaced whole. The key stays over renewals: one file changes then, and no
// reader sees a pair that does not fit. An agent that starts again has its certificate and needs no token.
//
// Thread-safety: one thread calls everything; renewals run on a thread of their own.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/status.h"
#include "base/time.h"
#include "rpc/enrol_service.h"
#include "rpc/tls_files.h"

namespace muster::agent {

struct CertificatesOptions {
  std::filesystem::path data_dir;
  std::string schedulers;  // HOST:PORT, or several with commas
  std::string node;
  std::string cluster;  // empty: any
  std::string host;     // where schedulers reach the agent
  std::string token;    // empty: none was given
  std::string ca;       // what the token's scheduler comes from
};

// Where an agent has its own certificate.
rpc::TlsFiles OwnCertificate(const std::filesystem::path& data_dir);

class Certificates {
 public:
  // The clock outlives this.
  Certificates(CertificatesOptions options, const Clock& clock) : options_(std::move(options)), clock_(clock) {}
  ~Certificates() { Stop(); }

  // Comes back when the node has a certificate: that of an earlier start, or one that the token has bought. Tried until
  // a scheduler answers. PERMISSION_DENIED and FAILED_PRECONDITION if the token buys none (any more), CANCELLED if
  // `cancelled` is true before. A certificate that has expired is kept if there is no token: nothing else is left.
  Status Enrol(const std::function<bool()>& cancelled);
  // Renews from two thirds of the certificate's life on. Once, after Enrol.
  void Start();
  void Stop();  // idempotent

 private:
  bool HasOwn() const;
  Status Buy(const std::function<bool()>& cancelled);
  Result<rpc::SignedNode> Ask(const rpc::TlsFiles& as, const std::function<bool()>& cancelled) const;
  Status Keep(const rpc::SignedNode& made) const;
  void Renew(const std::stop_token& stop);
  std::filesystem::path JoinDir() const { return options_.data_dir / "tls" / "join"; }

  const CertificatesOptions options_;
  const Clock& clock_;
  std::mutex mu_;
  std::condition_variable_any stops_;
  std::jthread renewals_;
};

}  // namespace muster::agent
