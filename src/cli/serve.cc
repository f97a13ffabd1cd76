#include "cli/role_verb.h"
#include "cli/verbs.h"
#include "role/diagnostic/diagnostic.h"

namespace muster::cli {

void AddServe(CommandLine& app) {
  AddRoleVerb<diagnostic::Diagnostic>(
      app, "serve", "Run a diagnostic server: gRPC health and reflection, /livez /readyz /metrics /version",
      {"muster serve", "muster serve --data-dir /var/lib/muster --journal /var/lib/muster/journal",
       "muster serve --listen :0 --metrics-addr :0 --log-level debug"},
      diagnostic::DeclareSettings);
}

}  // namespace muster::cli
