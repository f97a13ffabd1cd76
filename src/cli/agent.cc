#include "cli/role_verb.h"
#include "cli/verbs.h"
#include "role/agent/agent_role.h"

namespace muster::cli {

void AddAgent(CommandLine& app) {
  AddRoleVerb<agent::AgentRole>(
      app, "agent", "Run the agent of a node: it starts, watches and stops workloads as a scheduler says",
      {"muster agent --data-dir /var/lib/muster/agent --scheduler 10.0.0.1:8085",
       "muster agent --data-dir D --scheduler a:8085,b:8085 --node-id n1 --cpu 4 --memory 8Gi --labels zone=a,disk=ssd",
       "muster agent --data-dir D --runtimes process --process-user nobody"},
      agent::DeclareSettings);
}

}  // namespace muster::cli
