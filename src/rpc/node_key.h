// What a node needs to ask for a certificate: a key, the request, and what a certificate says.
//
// Thread-safety: functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace muster::rpc {

struct CertificateFacts {
  std::string serial;  // hexadecimal
  WallTime from;
  WallTime until;
  std::vector<std::string> uris;  // of its subject alternative names
  std::string key_digest;         // of its public key, SHA-256, hexadecimal
};

// The first certificate of a text in PEM form. INVALID_ARGUMENT if there is none, or its times cannot be read.
Result<CertificateFacts> ReadCertificate(std::string_view pem);

// A new private key on P-256, in PEM form.
std::string MakeNodeKey();

// A request for a certificate of that key, in PEM form. INVALID_ARGUMENT if the text holds no key.
Result<std::string> MakeCertificateRequest(std::string_view key_pem);

}  // namespace muster::rpc
