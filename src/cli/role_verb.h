// RoleVerb: a verb that runs a role until it is told to stop. The role's settings become its flags, its environment
// variables and the keys of its configuration file; the rest is the same for every role: logs, signals, exit code.
//
//   void AddToy(CommandLine& app) {
//     AddRoleVerb<toy::ToyRole>(app, "toy", "Run a toy", {"muster toy --data-dir D"}, toy::DeclareSettings);
//   }
#pragma once

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "cli/command_line.h"
#include "host/role.h"
#include "host/settings.h"
#include "host/signals.h"
#include "rpc/role_server.h"

namespace muster::cli {

// Declares the settings as options of the verb, with --config.
void BindSettings(Verb& verb, host::Settings& settings);

// Runs the role that `make` makes, from signal handling to the exit code. `make` is called after signals are blocked:
// every thread inherits that.
Result<int> ServeRole(const std::function<std::unique_ptr<host::Role>()>& make, log::Level log_level,
                      host::Signals::Options signals = {});

template <class Options>
rpc::RoleServerOptions& ServerOptionsOf(Options& options) {
  if constexpr (requires { options.server; })
    return options.server;
  else
    return options;
}

// The options of a role, and their settings.
template <class Options>
struct Configured {
  Options options;
  host::Settings settings;
};

// Role is made from Options, whose member `server`, or which itself, is a rpc::RoleServerOptions. More may be added to
// the verb that is returned.
template <class Role, class Options>
Verb AddRoleVerb(CommandLine& app, const std::string& name, std::string summary,
                 const std::vector<std::string>& examples, void (*declare)(host::Settings&, Options&)) {
  const auto configured = std::make_shared<Configured<Options>>();
  declare(configured->settings, configured->options);
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing writes the environment
  configured->settings.ReadEnvironment([](const char* variable) { return std::getenv(variable); });
  Verb verb = app.AddVerb(name, std::move(summary));
  BindSettings(verb, configured->settings);
  for (const std::string& example : examples) verb.Example(example);
  verb.Run([configured, build = app.build()]() -> Result<int> {
    if (Status landed = configured->settings.Land(); !landed.ok()) return std::unexpected(std::move(landed));
    Options& options = configured->options;
    rpc::RoleServerOptions& server = ServerOptionsOf(options);
    server.build = build;
    host::Signals::Options signals;
    if constexpr (requires { options.stop_patience(); }) signals.stop_patience = options.stop_patience();
    return ServeRole([&] { return std::make_unique<Role>(std::move(options)); }, server.log_level, signals);
  });
  return verb;
}

}  // namespace muster::cli
