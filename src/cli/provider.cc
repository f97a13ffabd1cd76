#include <memory>

#include "cli/role_verb.h"
#include "cli/verbs.h"
#include "provider/catalogue.h"
#include "role/provider/provider_role.h"

namespace muster::cli {

void AddProvider(CommandLine& app) {
  Verb verb = AddRoleVerb<provider::ProviderRole>(
      app, "provider", "Run a capacity provider: machines that shards create, configure, drain and delete",
      {"muster provider --data-dir /var/lib/muster/provider",
       "muster provider --data-dir D --name cloud-a --machines 5000 --catalogue types.yaml --seed 7",
       "muster provider --print-catalogue > types.yaml"},
      provider::DeclareSettings);
  verb.Instead("--print-catalogue", "Print the built-in catalogue and exit", [] {
    Print(provider::DefaultCatalogueText());
    return kOk;
  });
}

}  // namespace muster::cli
