#include <fmt/format.h>

#include <memory>

#include "cli/tls_flags.h"
#include "cli/verbs.h"
#include "host/address.h"
#include "host/log_backend.h"
#include "host/role.h"
#include "host/signals.h"
#include "host/text_file.h"
#include "provider/catalogue.h"
#include "role/provider/provider_role.h"

namespace muster::cli {
namespace {

constexpr uint64_t kMostMachines = 1'000'000;

struct Flags {
  std::string listen = ":9100";
  std::string metrics_addr = ":9101";
  std::string data_dir;
  std::string journal;
  std::string name = "sim";
  std::string backend = "sim";
  std::string catalogue;
  uint64_t machines = 100;
  uint64_t seed = 1;
  TlsFlags tls;
  std::string log_level = "info";
  bool print_catalogue = false;
};

Result<provider::Catalogue> CatalogueOf(const Flags& flags) {
  if (flags.catalogue.empty()) return provider::DefaultCatalogue();
  MUSTER_ASSIGN_OR_RETURN(const std::string text, host::ReadTextFile(flags.catalogue));
  return provider::ReadCatalogue(text, flags.catalogue);
}

// A name becomes part of machine ids and file lines.
Status CheckName(const std::string& name) {
  const bool plain = !name.empty() && name.size() <= 64 &&
                     name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
  if (plain) return {};
  return {Code::kInvalidArgument, "--name must be 1 to 64 of a-z, 0-9 and -"};
}

Result<int> Serve(const Flags& flags, const host::BuildInfo& build) {
  if (flags.print_catalogue) {
    Print(provider::DefaultCatalogueText());
    return kOk;
  }
  provider::RoleOptions options{.data_dir = flags.data_dir,
                                .journal = flags.journal,
                                .name = flags.name,
                                .machines = flags.machines,
                                .seed = flags.seed,
                                .build = build};
  if (Status name = CheckName(flags.name); !name.ok()) return std::unexpected(std::move(name));
  if (flags.machines == 0 || flags.machines > kMostMachines) {
    return InvalidArgument(fmt::format("--machines must be from 1 to {}", kMostMachines));
  }
  if (flags.data_dir.empty()) {
    return InvalidArgument("--data-dir is missing; name a directory for the provider's state");
  }
  MUSTER_ASSIGN_OR_RETURN(options.catalogue, CatalogueOf(flags));
  MUSTER_ASSIGN_OR_RETURN(options.tls, flags.tls.Files());
  MUSTER_ASSIGN_OR_RETURN(options.listen, flags.tls.ListenGrpc(flags.listen, "--listen"));
  MUSTER_ASSIGN_OR_RETURN(options.metrics_addr, flags.tls.ListenHttp(flags.metrics_addr, "--metrics-addr"));
  MUSTER_ASSIGN_OR_RETURN(const log::Level level, host::ParseLogLevel(flags.log_level));

  host::Signals signals;  // first: every thread inherits the blocked signals
  host::InstallLogBackend(level);
  provider::ProviderRole role(std::move(options));
  if (Status status = host::RunRole(role, signals); !status.ok()) return std::unexpected(std::move(status));
  return kOk;
}

}  // namespace

void AddProvider(CommandLine& app) {
  const auto flags = std::make_shared<Flags>();
  Verb verb =
      app.AddVerb("provider", "Run a capacity provider: machines that shards create, configure, drain and delete");
  verb.Option("--listen", flags->listen, "gRPC address, HOST:PORT or :PORT for loopback; port 0 picks a free one")
      .Option("--metrics-addr", flags->metrics_addr, "HTTP address, written the same way")
      .Path("--data-dir", flags->data_dir, "Directory for state, made if missing; one process at a time")
      .Path("--journal", flags->journal, "Directory for what the core saw, for muster replay")
      .Option("--name", flags->name, "Name of this provider; machine ids begin with it")
      .Choice("--backend", flags->backend, {"sim"}, "Where machines come from: sim is a simulated cloud")
      .Option("--machines", flags->machines, "How many machines the simulated cloud has")
      .Path("--catalogue", flags->catalogue, "YAML file of machine types; see --print-catalogue")
      .Option("--seed", flags->seed, "Seed of everything the simulated cloud draws")
      .Flag("--print-catalogue", flags->print_catalogue, "Print the built-in catalogue and exit")
      .Choice("--log-level", flags->log_level, {"debug", "info", "warn", "error"}, "Lowest level that is logged");
  AddTlsFlags(verb, flags->tls);
  verb.Example("muster provider --data-dir /var/lib/muster/provider")
      .Example("muster provider --data-dir D --name cloud-a --machines 5000 --catalogue types.yaml --seed 7")
      .Example("muster provider --print-catalogue > types.yaml")
      .Run([flags, build = app.build()] { return Serve(*flags, build); });
}

}  // namespace muster::cli
