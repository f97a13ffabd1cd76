// `muster config check`: whether a role would take its configuration file, before it is started with it.
#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/cluster.h"
#include "cli/config_check.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "model/names.h"
#include "model/text_scalars.h"
#include "role/agent/agent_settings.h"
#include "role/diagnostic/diagnostic.h"
#include "role/operators/operator_role.h"
#include "role/provider/provider_role.h"
#include "role/scheduler/scheduler_settings.h"
#include "role/shard/shard_settings.h"

namespace muster::cli {
namespace {

struct RoleFile {
  std::string role;
  std::function<Result<ConfigVerdict>(const std::string& path)> check;
};

template <class Options>
RoleFile FileOf(std::string_view role, void (*declare)(host::Settings&, Options&)) {
  return {.role = std::string(role), .check = [declare](const std::string& path) {
            Options options;
            host::Settings settings;
            declare(settings, options);
            return CheckConfig(path, settings);
          }};
}

// Those that verbs_test.cc finds with --config.
std::vector<RoleFile> RoleFiles() {
  return {FileOf("shard", shard::DeclareSettings),       FileOf("scheduler", scheduler::DeclareSettings),
          FileOf("agent", agent::DeclareSettings),       FileOf("operator", operators::DeclareSettings),
          FileOf("provider", provider::DeclareSettings), FileOf("serve", diagnostic::DeclareSettings)};
}

struct ConfigFlags {
  std::string file;
  std::string role;
};

// The role that is named, or else the one that the file is named after: /etc/muster/shard.yaml.
Result<RoleFile> RoleOf(const ConfigFlags& flags) {
  const std::string role = flags.role.empty() ? std::filesystem::path(flags.file).stem().string() : flags.role;
  std::vector<std::string> names;
  for (const RoleFile& file : RoleFiles()) {
    if (file.role == role) return file;
    names.push_back(file.role);
  }
  if (!flags.role.empty()) {
    const std::string nearest = model::NearestName(role, names);
    return InvalidArgument(fmt::format("--role {} is unknown{}; there are {}", role,
                                       nearest.empty() ? "" : fmt::format(", did you mean {}?", nearest),
                                       fmt::join(names, ", ")));
  }
  return InvalidArgument(
      fmt::format("{} does not say whose it is: give --role, one of {}", flags.file, fmt::join(names, ", ")));
}

Result<int> Check(const ConfigFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const RoleFile of, RoleOf(flags));
  MUSTER_ASSIGN_OR_RETURN(const ConfigVerdict verdict, of.check(flags.file));
  for (const std::string& problem : verdict.problems) PrintError(Status(Code::kInvalidArgument, problem));
  for (const std::string& flag : verdict.missing) {
    Print(Printable(fmt::format("{}: {} is not in it, and muster {} needs it: give it as a flag, or in the environment",
                                flags.file, flag.substr(2), of.role)) +
          "\n");
  }
  if (!verdict.problems.empty()) return kUsage;
  Print(Printable(fmt::format("{}: {} setting{} for muster {}, nothing wrong", flags.file, verdict.settings,
                              verdict.settings == 1 ? "" : "s", of.role)) +
        "\n");
  return kOk;
}

}  // namespace

void AddConfig(CommandLine& app) {
  Verb config = app.AddVerb("config", "Look at configuration files");
  config.Example("muster config check /etc/muster/shard.yaml");
  const auto flags = std::make_shared<ConfigFlags>();
  Verb check = config.AddVerb("check", "Say what is wrong with the file behind --config, line by line");
  check.Argument("FILE", flags->file, "The configuration file of a role")
      .Option("--role", flags->role,
              "Whose it is: shard, scheduler, agent, operator, provider or serve; the name of the file if left out")
      .Example("muster config check /etc/muster/shard.yaml")
      .Example("muster config check --role agent node.yaml")
      .Run([flags] { return Check(*flags); });
}

}  // namespace muster::cli
