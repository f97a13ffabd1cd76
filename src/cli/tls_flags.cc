#include "cli/tls_flags.h"

namespace muster::cli {

Result<rpc::TlsFiles> TlsFlags::Files() const { return rpc::TlsFilesFromFlags(cert, key, ca, crl, insecure); }

void AddTlsFlags(Verb& verb, TlsFlags& flags) {
  verb.Option("--tls-cert", flags.cert, "Certificate in PEM form, read again when it changes; all three or none")
      .Option("--tls-key", flags.key, "Its private key")
      .Option("--tls-ca", flags.ca, "The CA that the other side's certificate must come from")
      .Option("--tls-crl", flags.crl, "What the CA has revoked, in PEM form")
      .Flag("--insecure", flags.insecure, "Call another machine though there is no TLS");
}

}  // namespace muster::cli
