// CertificateCheck: whether a peer's certificate still holds, looked at again while a connection lasts: that it has not
// expired, and that no CA has revoked it (lists in PEM form in one file, read again when it or that of the CAs
// changes).
//
// The handshake has shown that the certificate comes from a CA of the file; what may change afterwards is here. A file
// with a list that none of the CAs has signed, or with anything but words before its first list and nothing behind it,
// is passed over and named in the log; the last one that was fit stays in use. A list that is past its nextUpdate stays
// in use too, with a warning.
//
// Thread-safety: Check may be called from any thread.
#pragma once

#include <cstddef>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"
#include "rpc/tls_files.h"

struct X509_name_st;

namespace muster::rpc {

struct RevokedCertificate {
  std::shared_ptr<const X509_name_st> issuer;
  std::string serial;

  // A CA may write its name in another encoding on its lists than on its certificates.
  bool operator<(const RevokedCertificate& other) const;
};

struct Revoked {
  std::set<RevokedCertificate> certificates = {};
  size_t lists = 0;
  std::optional<std::time_t> until = {};  // the first nextUpdate of a list
};

// What the lists in the file revoke. INVALID_ARGUMENT naming the file: it holds no list, something before the first
// that looks like one or behind it that is none, or a list that its issuer among the CA's certificates has not signed.
Result<Revoked> ReadRevoked(const TlsFiles& files);

class CertificateCheck {
 public:
  explicit CertificateCheck(TlsFiles files) : files_(std::move(files)) {}

  // The certificate in PEM form. PERMISSION_DENIED, with the reason.
  Status Check(std::string_view pem);
  // OK if there is a list in use, or no file for one; else what ReadRevoked says.
  Status Fit();

 private:
  struct Known {
    std::time_t until = 0;
    RevokedCertificate name;
  };
  // Under mu_.
  void LookAtLists(MonoTime now);
  void WarnOfAge(std::time_t now);
  Result<const Known*> Find(std::string_view pem);

  const TlsFiles files_;
  std::mutex mu_;
  // Guarded by mu_.
  MonoTime looked_{Duration::min()};
  std::string stamp_;  // of the files that were read last, fit or not
  Status unfit_;       // why they are not
  Revoked revoked_;
  bool warned_ = false;                              // of the age of these
  std::map<std::string, Known, std::less<>> known_;  // certificates that were taken apart, by their text
};

}  // namespace muster::rpc
