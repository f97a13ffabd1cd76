// TlsFlags: --tls-cert, --tls-key, --tls-ca and --insecure, the same for every verb that listens or calls.
//
//   AddTlsFlags(verb, flags->tls);                               // a server; AddClientTlsFlags leaves out --insecure
//   MUSTER_ASSIGN_OR_RETURN(const rpc::TlsFiles tls, flags.tls.Files());
//   MUSTER_ASSIGN_OR_RETURN(options.listen, flags.tls.ListenGrpc(flags.listen, "--listen"));
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "cli/command_line.h"
#include "host/address.h"
#include "rpc/tls_files.h"

namespace muster::cli {

struct TlsFlags {
  std::string cert;
  std::string key;
  std::string ca;
  bool insecure = false;

  // The three files, or none of them; INVALID_ARGUMENT for some.
  Result<rpc::TlsFiles> Files() const;
  // Where to listen for gRPC: beyond this machine only with TLS or --insecure.
  Result<host::Address> ListenGrpc(std::string_view text, std::string_view flag) const;
  // Where to listen for HTTP, which has no TLS: beyond this machine only with --insecure.
  Result<host::Address> ListenHttp(std::string_view text, std::string_view flag) const;
};

// The variables live until Main returns, as with every option.
void AddTlsFlags(Verb& verb, TlsFlags& flags);
void AddClientTlsFlags(Verb& verb, TlsFlags& flags);

}  // namespace muster::cli
