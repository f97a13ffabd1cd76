#include "cli/role_verb.h"
#include "cli/verbs.h"
#include "role/operators/operator_role.h"

namespace muster::cli {

void AddOperator(CommandLine& app) {
  AddRoleVerb<operators::OperatorRole>(
      app, "operator", "Run the operator of a cluster: says its demand to the fleet, and gives machines up",
      {"muster operator --cluster blue --scheduler 127.0.0.1:8085 --shard-addr 127.0.0.1:7780",
       "muster operator --cluster blue --bootstrap-template /etc/muster/join.yaml"},
      operators::DeclareSettings);
}

}  // namespace muster::cli
