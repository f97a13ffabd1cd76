#include <memory>

#include "cli/tls_flags.h"
#include "cli/verbs.h"
#include "host/address.h"
#include "host/log_backend.h"
#include "host/role.h"
#include "host/signals.h"
#include "role/diagnostic/diagnostic.h"

namespace muster::cli {
namespace {

struct Flags {
  std::string listen = ":7600";
  std::string metrics_addr = ":7601";
  std::string data_dir;
  std::string journal;
  TlsFlags tls;
  std::string log_level = "info";
};

Result<int> Serve(const Flags& flags, const host::BuildInfo& build) {
  diagnostic::Options options = {.listen = {},
                                 .metrics_addr = {},
                                 .tls = {},
                                 .data_dir = flags.data_dir,
                                 .journal = flags.journal,
                                 .build = build};
  MUSTER_ASSIGN_OR_RETURN(options.tls, flags.tls.Files());
  MUSTER_ASSIGN_OR_RETURN(options.listen, flags.tls.ListenGrpc(flags.listen, "--listen"));
  MUSTER_ASSIGN_OR_RETURN(options.metrics_addr, flags.tls.ListenHttp(flags.metrics_addr, "--metrics-addr"));
  MUSTER_ASSIGN_OR_RETURN(const log::Level level, host::ParseLogLevel(flags.log_level));

  host::Signals signals;  // first: every thread inherits the blocked signals
  host::InstallLogBackend(level);
  diagnostic::Diagnostic role(std::move(options));
  if (Status status = host::RunRole(role, signals); !status.ok()) return std::unexpected(std::move(status));
  return kOk;
}

}  // namespace

void AddServe(CommandLine& app) {
  const auto flags = std::make_shared<Flags>();
  Verb verb =
      app.AddVerb("serve", "Run a diagnostic server: gRPC health and reflection, /livez /readyz /metrics /version");
  verb.Option("--listen", flags->listen, "gRPC address, HOST:PORT or :PORT for loopback; port 0 picks a free one")
      .Option("--metrics-addr", flags->metrics_addr, "HTTP address, written the same way")
      .Path("--data-dir", flags->data_dir, "Directory for state, made if missing; one process at a time")
      .Path("--journal", flags->journal, "Directory for what the core saw, for muster replay; needs --data-dir")
      .Choice("--log-level", flags->log_level, {"debug", "info", "warn", "error"}, "Lowest level that is logged");
  AddTlsFlags(verb, flags->tls);
  verb.Example("muster serve")
      .Example("muster serve --data-dir /var/lib/muster --journal /var/lib/muster/journal")
      .Example("muster serve --listen :0 --metrics-addr :0 --log-level debug")
      .Run([flags, build = app.build()] { return Serve(*flags, build); });
}

}  // namespace muster::cli
