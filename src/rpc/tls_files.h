// TlsFiles: certificate, key and CA as files, and their rereading while a process runs.
//
// A rotation may write the files in any order and at any pace: what does not belong together is passed over, and the
// last material that did stays in use until the files agree again.
//
// Thread-safety: TlsFiles and TlsMaterial are value types; a TlsWatcher is for one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "base/time.h"

namespace muster::rpc {

struct TlsFiles {
  std::string cert;  // chain, the own certificate first
  std::string key;
  std::string ca;         // what peers' certificates must come from
  std::string crl = {};   // what the CA has revoked; empty: no list
  bool insecure = false;  // plaintext to and from other machines is allowed
  // How long a connection may outlive the certificates it was made with, of servers and of clients; 0: for ever.
  Duration connection_age = 0s;

  bool given() const { return !cert.empty(); }
  bool operator==(const TlsFiles&) const = default;
};

// From the values of --tls-cert, --tls-key and --tls-ca: all three, or none (a TlsFiles that is not given()); --tls-crl
// only with them. INVALID_ARGUMENT naming the flag that is missing.
Result<TlsFiles> TlsFilesFromFlags(std::string cert, std::string key, std::string ca, std::string crl = {},
                                   bool insecure = false);

struct TlsMaterial {
  std::string cert_chain;
  std::string private_key;
  std::string ca;
};

// Reads all three. The error names the file: it cannot be read, holds no PEM of its kind, the key is not the
// certificate's, or every user of this machine may read the key. An expired certificate is read, with a warning in the
// log: peers refuse it until it is renewed.
Result<TlsMaterial> ReadTlsMaterial(const TlsFiles& files);

class TlsWatcher {
 public:
  explicit TlsWatcher(TlsFiles files) : files_(std::move(files)) {}

  // The material, if any file has changed since the last time it was given and all three are fit for use; nothing
  // otherwise. The first call always looks. Unfit files are logged once for each change of them.
  std::optional<TlsMaterial> Changed();

 private:
  // What tells one content of a file from the next without reading it.
  struct Stamp {
    int64_t modified_nanos = 0;
    uint64_t inode = 0;
    int64_t size = -1;  // -1: not there
    bool operator==(const Stamp&) const = default;
  };
  using Stamps = std::array<Stamp, 3>;
  static Stamp Look(const std::string& file);

  const TlsFiles files_;
  std::optional<Stamps> given_;    // of the material given last
  std::optional<Stamps> refused_;  // of the files complained about last
};

}  // namespace muster::rpc
