#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>

#include "cli/ask.h"
#include "cli/fleet.h"
#include "cli/table.h"
#include "contract/shard.h"

namespace muster::cli {
namespace {

using contract::ActuationMode;

constexpr std::string_view kWholeShard = "*";

struct ModeFlags {
  ShardFlags shard;
  std::string cluster{kWholeShard};
  std::string reason;
  bool dry_run = false;
};

void AddReason(Verb& verb, std::string& reason) { verb.Option("--reason", reason, "Why, for the audit log"); }

// The id, or nothing for the whole shard. An empty word is a variable that was not set, and must not stop the fleet.
Result<std::string> ClusterOrAll(const std::string& cluster) {
  if (cluster.empty()) {
    return InvalidArgument("--cluster is empty: give a cluster's id, or leave it out for the whole shard");
  }
  return cluster == kWholeShard ? std::string() : cluster;
}

Result<int> SetMode(const ModeFlags& flags, ActuationMode mode) {
  MUSTER_ASSIGN_OR_RETURN(const std::string cluster, ClusterOrAll(flags.cluster));
  MUSTER_ASSIGN_OR_RETURN(
      const contract::ActuationSet reply,
      AskShardFor<contract::ActuationSet>(
          flags.shard, contract::SetActuation{.cluster_id = cluster, .mode = mode, .reason = flags.reason}));
  Print(fmt::format("{} is {} now (was {})\n",
                    cluster.empty() ? "the shard" : fmt::format("cluster {}", Printable(cluster)),
                    contract::ActuationModeName(mode), contract::ActuationModeName(reply.previous)));
  return kOk;
}

Result<int> Accept(const ModeFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const std::string cluster, ClusterOrAll(flags.cluster));
  MUSTER_ASSIGN_OR_RETURN(const contract::LossesAccepted reply,
                          AskShardFor<contract::LossesAccepted>(
                              flags.shard, contract::AcceptLosses{.cluster_id = cluster, .reason = flags.reason}));
  Print(fmt::format("{} missing machines are given up, {} failed ones may be repaired\n", reply.missing, reply.failed));
  return kOk;
}

struct SubjectFlags {
  ShardFlags shard;
  std::string subject;  // a machine or a cluster
  std::string reason;
};

template <class Order>
Result<int> Give(const SubjectFlags& flags, std::string_view done) {
  Order order{};
  constexpr bool kOfCluster = requires { order.cluster_id; };
  if constexpr (kOfCluster) {
    order.cluster_id = flags.subject;
  } else {
    order.machine_id = flags.subject;
  }
  order.reason = flags.reason;
  MUSTER_ASSIGN_OR_RETURN(const contract::OrderTaken reply,
                          AskShardFor<contract::OrderTaken>(flags.shard, std::move(order)));
  static_cast<void>(reply);
  Print(fmt::format("{} {}: {}\n", kOfCluster ? "cluster" : "machine", Printable(flags.subject), done));
  return kOk;
}

template <class Order>
void AddMachineOrder(Verb& fleet, const std::string& name, const std::string& summary, std::string_view done) {
  const auto flags = std::make_shared<SubjectFlags>();
  Verb verb = fleet.AddVerb(name, summary);
  verb.Argument("MACHINE", flags->subject, "Id of the machine").NamesOf("machine");
  AddReason(verb, flags->reason);
  AddOrderFlags(verb, flags->shard);
  verb.Example(fmt::format("muster fleet {} sim-m-17 --reason 'disk replaced'", name)).Run([flags, done] {
    return Give<Order>(*flags, done);
  });
}

void AddModes(Verb& fleet) {
  const auto pausing = std::make_shared<ModeFlags>();
  Verb pause = fleet.AddVerb("pause", "Go on deciding, but do nothing; until resume, over restarts too");
  pause.Option("--cluster", pausing->cluster, "Only what touches this cluster; * is the whole shard")
      .Flag("--dry-run", pausing->dry_run, "Let what has begun go on, and log what would have been done");
  AddReason(pause, pausing->reason);
  AddOrderFlags(pause, pausing->shard);
  pause.Example("muster fleet pause --cluster blue --reason 'network change tonight'").Run([pausing] {
    return SetMode(*pausing, pausing->dry_run ? ActuationMode::kDryRun : ActuationMode::kPaused);
  });

  const auto resuming = std::make_shared<ModeFlags>();
  Verb resume = fleet.AddVerb("resume", "Have decisions carried out again");
  resume.Option("--cluster", resuming->cluster,
                "Only this cluster; * is the whole shard, but not what is set for a cluster");
  AddReason(resume, resuming->reason);
  AddOrderFlags(resume, resuming->shard);
  resume.Example("muster fleet resume --cluster blue").Run([resuming] {
    return SetMode(*resuming, ActuationMode::kActive);
  });
}

void AddLosses(Verb& fleet) {
  const auto accepting = std::make_shared<ModeFlags>();
  Verb accept = fleet.AddVerb("accept", "Machines that vanished or failed in large numbers are lost: replace them");
  accept.Option("--cluster", accepting->cluster, "Only machines of this cluster; * is all of them");
  AddReason(accept, accepting->reason);
  AddOrderFlags(accept, accepting->shard);
  accept.Example("muster fleet accept --reason 'zone b burnt down'").Run([accepting] { return Accept(*accepting); });

  const auto ending = std::make_shared<SubjectFlags>();
  Verb decommission = fleet.AddVerb("decommission", "A cluster is gone: end its demand and reclaim its machines");
  decommission.Argument("CLUSTER", ending->subject, "Id of the cluster");
  AddReason(decommission, ending->reason);
  AddOrderFlags(decommission, ending->shard);
  decommission.Example("muster fleet decommission blue --reason 'moved to green'").Run([ending] {
    return Give<contract::DecommissionCluster>(*ending, "its demand has ended; its machines are reclaimed");
  });
}

}  // namespace

void AddFleetOrders(Verb& fleet) {
  AddModes(fleet);
  AddMachineOrder<contract::RepairMachine>(fleet, "repair", "Give a Failed machine back and get it again, now",
                                           "it is given back and made again; watch it with muster fleet machines");
  AddMachineOrder<contract::ForgetMachine>(fleet, "forget",
                                           "Drop a Failed machine until the provider reports another state of it",
                                           "forgotten until the provider reports another state of it");
  AddMachineOrder<contract::RecallMachine>(fleet, "recall", "Take a forgotten machine back",
                                           "it is taken back with the next list of the provider");
  AddLosses(fleet);
}

}  // namespace muster::cli
