#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "cli/ask.h"
#include "cli/fleet.h"
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

// A pause may come before the cluster does, and a name may be mistyped.
Result<bool> IsKnown(const ShardFlags& flags, const std::string& cluster) {
  MUSTER_ASSIGN_OR_RETURN(const contract::ClustersListed reply,
                          AskShardFor<contract::ClustersListed>(flags, contract::ListClusters{}));
  return std::ranges::find(reply.clusters, cluster, &contract::ClusterView::cluster_id) != reply.clusters.end();
}

Result<int> SetMode(const ModeFlags& flags, ActuationMode mode) {
  // An empty word is a variable that was not set, and must not stop the fleet.
  if (flags.cluster.empty()) {
    return InvalidArgument("--cluster is empty: give a cluster's id, or leave it out for the whole shard");
  }
  const std::string cluster = flags.cluster == kWholeShard ? "" : flags.cluster;
  MUSTER_ASSIGN_OR_RETURN(const bool known, cluster.empty() ? Result<bool>(true) : IsKnown(flags.shard, cluster));
  MUSTER_ASSIGN_OR_RETURN(
      const contract::ActuationSet reply,
      AskShardFor<contract::ActuationSet>(
          flags.shard, contract::SetActuation{.cluster_id = cluster, .mode = mode, .reason = flags.reason}));
  Print(fmt::format("{} is {} now (was {})\n", cluster.empty() ? "the shard" : fmt::format("cluster {}", cluster),
                    contract::ActuationModeName(mode), contract::ActuationModeName(reply.previous)));
  if (!known) Print(fmt::format("the shard has not heard of a cluster {} yet; is the name right?\n", cluster));
  return kOk;
}

struct MachineFlags {
  ShardFlags shard;
  std::string machine;
};

template <class Order>
Result<int> Give(const MachineFlags& flags, std::string_view done) {
  MUSTER_ASSIGN_OR_RETURN(const contract::OrderTaken reply,
                          AskShardFor<contract::OrderTaken>(flags.shard, Order{.machine_id = flags.machine}));
  static_cast<void>(reply);
  Print(fmt::format("machine {}: {}\n", flags.machine, done));
  return kOk;
}

template <class Order>
void AddMachineOrder(Verb& fleet, const std::string& name, const std::string& summary, std::string_view done) {
  const auto flags = std::make_shared<MachineFlags>();
  Verb verb = fleet.AddVerb(name, summary);
  verb.Argument("MACHINE", flags->machine, "Id of the machine");
  AddOrderFlags(verb, flags->shard);
  verb.Example(fmt::format("muster fleet {} sim-m-17", name)).Run([flags, done] { return Give<Order>(*flags, done); });
}

}  // namespace

void AddFleetOrders(Verb& fleet) {
  const auto pausing = std::make_shared<ModeFlags>();
  Verb pause = fleet.AddVerb("pause", "Go on deciding, but do nothing; until resume, over restarts too");
  pause.Option("--cluster", pausing->cluster, "Only what touches this cluster; * is the whole shard")
      .Option("--reason", pausing->reason, "Why, for the audit log")
      .Flag("--dry-run", pausing->dry_run, "Let what has begun go on, and log what would have been done");
  AddOrderFlags(pause, pausing->shard);
  pause.Example("muster fleet pause --cluster blue --reason 'network change tonight'").Run([pausing] {
    return SetMode(*pausing, pausing->dry_run ? ActuationMode::kDryRun : ActuationMode::kPaused);
  });

  const auto resuming = std::make_shared<ModeFlags>();
  Verb resume = fleet.AddVerb("resume", "Have decisions carried out again");
  resume
      .Option("--cluster", resuming->cluster,
              "Only this cluster; * is the whole shard, but not what is set for a cluster")
      .Option("--reason", resuming->reason, "Why, for the audit log");
  AddOrderFlags(resume, resuming->shard);
  resume.Example("muster fleet resume --cluster blue").Run([resuming] {
    return SetMode(*resuming, ActuationMode::kActive);
  });

  AddMachineOrder<contract::RepairMachine>(fleet, "repair", "Give a Failed machine back and get it again, now",
                                           "it is given back and made again; watch it with muster fleet machines");
  AddMachineOrder<contract::ForgetMachine>(fleet, "forget",
                                           "Drop a Failed machine until the provider reports another state of it",
                                           "forgotten until the provider reports another state of it");
}

}  // namespace muster::cli
