#include "cli/tls_flags.h"

namespace muster::cli {

Result<rpc::TlsFiles> TlsFlags::Files() const { return rpc::TlsFilesFromFlags(cert, key, ca); }

Result<host::Address> TlsFlags::ListenGrpc(std::string_view text, std::string_view flag) const {
  return host::ParseListenAddress(text, insecure || !cert.empty(), flag);
}

Result<host::Address> TlsFlags::ListenHttp(std::string_view text, std::string_view flag) const {
  return host::ParseListenAddress(text, insecure, flag);
}

void AddTlsFlags(Verb& verb, TlsFlags& flags) {
  AddClientTlsFlags(verb, flags);
  verb.Flag("--insecure", flags.insecure,
            "Serve other machines where there is no TLS; :PORT then means every interface");
}

void AddClientTlsFlags(Verb& verb, TlsFlags& flags) {
  verb.Option("--tls-cert", flags.cert, "Certificate in PEM form, read again when it changes; all three or none")
      .Option("--tls-key", flags.key, "Its private key")
      .Option("--tls-ca", flags.ca, "The CA that the other side's certificate must come from");
}

}  // namespace muster::cli
