#include "cli/role_verb.h"
#include "cli/verbs.h"
#include "role/scheduler/scheduler_settings.h"

namespace muster::cli {

void AddScheduler(CommandLine& app) {
  AddRoleVerb<scheduler::SchedulerRole>(
      app, "scheduler", "Run a scheduler: keeps the workloads of a cluster as they are wanted, on its nodes",
      {"muster scheduler --store sqlite:/var/lib/muster/scheduler",
       "muster scheduler --store etcd://10.0.0.1:2379,10.0.0.2:2379/prod --insecure",
       "muster scheduler --config /etc/muster/scheduler.yaml --node-timeout 30s"},
      scheduler::DeclareSettings);
}

}  // namespace muster::cli
