// TlsFlags: --tls-cert, --tls-key, --tls-ca, --tls-crl and --insecure, the same for every verb that calls a server.
// Roles that serve declare theirs with rpc/role_server.h.
//
//   AddTlsFlags(verb, flags->tls);
//   MUSTER_ASSIGN_OR_RETURN(const rpc::TlsFiles tls, flags.tls.Files());
#pragma once

#include <string>

#include "base/status.h"
#include "cli/command_line.h"
#include "rpc/tls_files.h"

namespace muster::cli {

struct TlsFlags {
  std::string cert;
  std::string key;
  std::string ca;
  std::string crl;
  bool insecure = false;

  // The three files, or none of them; INVALID_ARGUMENT for some.
  Result<rpc::TlsFiles> Files() const;
};

// The variables live until Main returns, as with every option.
void AddTlsFlags(Verb& verb, TlsFlags& flags);

}  // namespace muster::cli
