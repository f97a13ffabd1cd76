// CertificateCheck: whether a peer's certificate still holds, looked at again while a connection lasts: that it has not
// expired, and that the CA has not revoked it (a list in PEM form, read again when it changes).
//
// The handshake has shown that the certificate comes from the CA; what may change afterwards is here. A list that is
// not signed by the CA, or cannot be read, is passed over and named in the log; the last one that was fit stays in use.
//
// Thread-safety: Check may be called from any thread.
#pragma once

#include <cstdint>
#include <ctime>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"
#include "rpc/tls_files.h"

namespace muster::rpc {

// The serial numbers that the CA has revoked. INVALID_ARGUMENT naming the file: it cannot be read, holds no list, or
// one that none of the CA's certificates has signed.
Result<std::set<std::string>> ReadRevoked(const TlsFiles& files);

class CertificateCheck {
 public:
  explicit CertificateCheck(TlsFiles files) : files_(std::move(files)) {}

  // The certificate in PEM form. PERMISSION_DENIED, with the reason.
  Status Check(std::string_view pem);

 private:
  struct Known {
    std::time_t until = 0;
    std::string serial;
  };
  // Under mu_.
  void LookAtList(MonoTime now);
  Result<const Known*> Find(std::string_view pem);

  const TlsFiles files_;
  std::mutex mu_;
  // Guarded by mu_.
  MonoTime looked_{Duration::min()};
  std::string stamp_;  // of the list that was read last, fit or not
  std::set<std::string> revoked_;
  std::map<std::string, Known, std::less<>> known_;  // certificates that were taken apart, by their text
};

}  // namespace muster::rpc
