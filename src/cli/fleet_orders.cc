#include <fmt/format.h>

#include <memory>

#include "cli/ask.h"
#include "cli/fleet.h"
#include "contract/shard.h"

namespace muster::cli {
namespace {

using contract::ActuationMode;

struct ModeFlags {
  ShardFlags shard;
  std::string cluster;
  std::string reason;
  bool dry_run = false;
};

Result<int> SetMode(const ModeFlags& flags, ActuationMode mode) {
  MUSTER_ASSIGN_OR_RETURN(
      const contract::ActuationSet reply,
      AskShardFor<contract::ActuationSet>(
          flags.shard, contract::SetActuation{.cluster_id = flags.cluster, .mode = mode, .reason = flags.reason}));
  Print(fmt::format("{} is {} now (was {})\n",
                    flags.cluster.empty() ? "the shard" : fmt::format("cluster {}", flags.cluster),
                    contract::ActuationModeName(mode), contract::ActuationModeName(reply.previous)));
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
  pause.Option("--cluster", pausing->cluster, "Only what touches this cluster; the whole shard unless given")
      .Option("--reason", pausing->reason, "Why, for the audit log")
      .Flag("--dry-run", pausing->dry_run, "Let what has begun go on, and log what would have been done");
  AddOrderFlags(pause, pausing->shard);
  pause.Example("muster fleet pause --cluster blue --reason 'network change tonight'").Run([pausing] {
    return SetMode(*pausing, pausing->dry_run ? ActuationMode::kDryRun : ActuationMode::kPaused);
  });

  const auto resuming = std::make_shared<ModeFlags>();
  Verb resume = fleet.AddVerb("resume", "Have decisions carried out again");
  resume.Option("--cluster", resuming->cluster, "Only this cluster; the whole shard unless given")
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
