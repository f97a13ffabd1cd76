#include "sim/loop_works.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "base/codec.h"
#include "core/shard/operation.h"

namespace muster::sim {
namespace {

using model::MachineState;

constexpr Duration kRepeat = 10s;
constexpr Duration kReconnect = 500ms;

// Owned hardware cannot be given back.
std::vector<contract::Slot> SlotsOf(const LoopStart& start) {
  std::vector<contract::Slot> slots;
  for (const model::Machine& machine : start.machines) {
    const bool rented =
        machine.capacity_type == model::CapacityType::kOnDemand || machine.capacity_type == model::CapacityType::kSpot;
    slots.push_back({.machine = AtRest(machine), .deletable = rented});
  }
  return slots;
}

// A shard without memory must begin above what its machines show.
shard::Config ShardConfig(const LoopStart& start) {
  shard::Config config = start.settings.shard;
  for (const model::Machine& machine : start.machines) {
    if (const auto binder = shard::BoundBy(machine)) {
      config.epoch_at_least = std::max(config.epoch_at_least, binder->epoch + 1);
    }
  }
  return config;
}

// What makes an object different for those who wait until nothing changes any more: not how often it was tried.
uint64_t ShapeOf(const contract::ObjectChanged& change) {
  std::string text(contract::ObjectKindName(change.kind));
  if (const auto* workload = std::get_if<contract::WorkloadView>(&change.now)) {
    const bool waits = workload->node.empty() && (workload->phase == model::WorkloadPhase::kPending ||
                                                  workload->phase == model::WorkloadPhase::kRetryPending);
    text += fmt::format("/{}/{}/{}/{}/{}", workload->node, waits ? 0 : 1 + static_cast<int>(workload->phase),
                        workload->revision, static_cast<int>(workload->actual), static_cast<int>(workload->desired));
  } else if (const auto* node = std::get_if<contract::NodeView>(&change.now)) {
    text += fmt::format("/{}/{}/{}/{}", static_cast<int>(node->status), node->cordoned, node->draining, node->epoch);
  } else if (const auto* set = std::get_if<contract::SetView>(&change.now)) {
    text += fmt::format("/{}/{}/{}", set->revision, set->spec.replicas, set->deleting);
  }
  return Hash(text);
}

}  // namespace

Status LoopWorks::Check(const LoopStart& start) {
  std::set<std::string> clusters;
  for (const LoopClusterStart& cluster : start.clusters) {
    if (!model::IsWorkloadId(cluster.id) || !clusters.insert(cluster.id).second) {
      return {Code::kInvalidArgument,
              fmt::format("cluster {}: no id, or one that another has", codec::Quote(cluster.id))};
    }
  }
  for (const LoopDemand& other : start.others) {
    if (other.cluster.empty() || !clusters.insert(other.cluster).second) {
      return {Code::kInvalidArgument,
              fmt::format("other cluster {}: no id, or one that another has", codec::Quote(other.cluster))};
    }
  }
  std::map<std::string, const model::Machine*> machines;
  for (const model::Machine& machine : start.machines) machines[machine.id] = &machine;
  for (const LoopClusterStart& cluster : start.clusters) {
    for (const contract::NodeView& node : cluster.nodes) {
      const auto machine = machines.find(node.node);
      if (machine == machines.end() || machine->second->cluster == cluster.id) continue;
      return {Code::kInvalidArgument, fmt::format("node {} of cluster {}: its machine serves {}", node.node, cluster.id,
                                                  codec::Quote(machine->second->cluster))};
    }
  }
  const auto core = provider::Core::Recover({.name = "loop"}, SlotsOf(start), {});
  return core ? Status() : core.error();
}

LoopWorks::LoopWorks(const LoopStart& start, LoopHooks hooks)
    : settings_(start.settings),
      hooks_(std::move(hooks)),
      ceilings_(start.ceilings),
      kernel_(start.seed),
      rng_(kernel_.ForkRng(0x6c6f6f70)),
      network_(kernel_, {}),
      start_(kernel_.now().mono),
      start_wall_(kernel_.now().wall),
      last_change_(start_) {
  LoopCloud::World cloud{.node = [this](const std::string& machine) -> LoopNode& { return NodeOf(machine); },
                         .has_scheduler = [this](const std::string& cluster) { return clusters_.contains(cluster); }};
  if (hooks_.operation_fails) cloud.fails = hooks_.operation_fails;
  if (hooks_.operation_late) cloud.late = hooks_.operation_late;
  if (hooks_.machine_emptied) cloud.empties = hooks_.machine_emptied;
  auto backend = std::make_unique<LoopCloud>(kernel_, SlotsOf(start), settings_, std::move(cloud));
  cloud_ = backend.get();
  provider::Config provider = hooks_.provider;
  provider.name = "loop";
  provider.new_lineage = 1 + start.seed;
  LoopFleet::World fleet = hooks_.fleet;
  fleet.emitted = [this, also = fleet.emitted](size_t shard, const shard::Core::Effect& effect) {
    if (const auto* audit = std::get_if<shard::Audit>(&effect)) Audited(audit->action);
    if (also) also(shard, effect);
  };
  fleet_ = std::make_unique<LoopFleet>(kernel_, network_, rng_, delays_, ShardConfig(start), std::move(backend),
                                       std::move(provider), std::move(fleet));
  for (const LoopClusterStart& cluster : start.clusters) AddCluster(cluster);
  for (const LoopDemand& other : start.others) plain_[other.cluster].needs = other.needs;
}

void LoopWorks::AddCluster(const LoopClusterStart& cluster) {
  const std::string& id = cluster.id;
  LoopCluster::World world{
      .call_agent = [this](const std::string& node, const std::string& endpoint, const contract::AgentRequest& request,
                           LoopCluster::AgentDone done) { NodeOf(node).Ask(endpoint, request, std::move(done)); },
      .process_of = [this](const std::string& node) { return ProcessOf(node); },
      .published = [this, id](const contract::ClusterChange& change) { Published(id, change); },
      .operator_did =
          [this, id](const operators::Effect& effect) {
            const auto* notice = std::get_if<operators::Notice>(&effect);
            if (notice != nullptr && notice->what == "demand was corrected") Changed();
            if (hooks_.operator_did) hooks_.operator_did(id, effect);
          },
      .broken = [this] { return findings_.failure().has_value(); }};
  if (hooks_.store_seen) world.store_seen = [this, id] { hooks_.store_seen(id); };
  if (hooks_.agent_called) {
    world.agent_called = [this, id](size_t i, const std::string& node, contract::CallId call, const Status* answer) {
      hooks_.agent_called(id, i, node, call, answer);
    };
  }
  if (hooks_.committed) {
    world.committed = [this, id](size_t i, const contract::Commit& commit, const contract::CommitDone& done) {
      hooks_.committed(id, i, commit, done);
    };
  }
  clusters_.emplace(id, std::make_unique<LoopCluster>(
                            kernel_, network_, rng_, delays_, *fleet_,
                            LoopCluster::Options{.id = id,
                                                 .schedulers = hooks_.schedulers,
                                                 .scheduler = settings_.scheduler,
                                                 .operators = settings_.operators,
                                                 .rows = StoreRows(cluster),
                                                 .asked = cluster.asked,
                                                 .seed = kernel_.ForkRng(0x73746f72 + clusters_.size()).Next(),
                                                 .processes = static_cast<uint32_t>(100 + 10 * clusters_.size()),
                                                 .has_operator = hooks_.has_fleet},
                            std::move(world)));
  for (const contract::NodeView& view : cluster.nodes) {
    LoopNode& node = NodeOf(view.node);
    node.Remember(MemoryOf(view, cluster.workloads, kernel_.now().wall));
    node.Configure({.node = view.node,
                    .cluster = id,
                    .agent_version = view.agent_version,
                    .total = view.total,
                    .supported_types = view.supported_types,
                    .labels = view.labels,
                    .taints = view.taints});
    const auto slots = cloud_->Slots();
    if (std::ranges::find(slots, view.node, [](const auto& slot) { return slot.machine.id; }) == slots.end()) {
      computers_.push_back(view.node);
    }
  }
}

void LoopWorks::Start() {
  for (const auto& [id, cluster] : clusters_) cluster->Start();
  if (hooks_.has_fleet) fleet_->Start();
  if (hooks_.has_fleet && !ceilings_.empty()) fleet_->shard(fleet_->serving()).Post(shard::CeilingsSet{ceilings_});
  for (const std::string& computer : computers_) NodeOf(computer).Start();
  for (const auto& [id, plain] : plain_) ConnectPlain(id);
}

LoopCluster* LoopWorks::FindCluster(const std::string& id) {
  const auto cluster = clusters_.find(id);
  return cluster == clusters_.end() ? nullptr : cluster->second.get();
}

LoopNode& LoopWorks::NodeOf(const std::string& id) {
  auto& node = nodes_[id];
  if (node == nullptr) {
    node = std::make_unique<LoopNode>(
        kernel_, id, Hash(id), findings_, settings_, hooks_.job_time,
        LoopNode::World{
            .dial = [this](const std::string& cluster, size_t turn) -> std::shared_ptr<Stream> {
              LoopCluster* const to = FindCluster(cluster);
              return to == nullptr ? nullptr : to->Dial(turn);
            },
            .ask = [this, id](
                       const std::shared_ptr<Stream>& stream, const contract::ClusterRequest& request,
                       auto done) { FindCluster(NodeOf(id).cluster())->AskOver(stream, request, std::move(done)); },
            .changed =
                [this, id] {
                  Changed();
                  if (hooks_.node_changed) hooks_.node_changed(id);
                }});
  }
  return *node;
}

ProcessId LoopWorks::ProcessOf(const std::string& node) {
  const auto [at, fresh] = processes_.try_emplace(node);
  if (fresh) at->second = ProcessId::Of(1000 + processes_.size());
  return at->second;
}

void LoopWorks::KillAgent(const std::string& node, bool computer_too) {
  LoopNode& dies = NodeOf(node);
  computer_too ? dies.PowerCut() : dies.Kill();
  cloud_->AgentDied(node);
  if (std::ranges::find(computers_, node) != computers_.end()) {
    kernel_.After(1s, [this, node] { NodeOf(node).Start(); });
  }
}

// --- what is noted

void LoopWorks::Published(const std::string& cluster, const contract::ClusterChange& change) {
  if (const auto* decision = std::get_if<contract::Decision>(&change)) {
    decisions_.push_back({.at = since_start(), .cluster = cluster, .decision = *decision});
    return;
  }
  const auto& object = std::get<contract::ObjectChanged>(change);
  uint64_t& shape = shapes_[fmt::format("{}/{}/{}", cluster, static_cast<int>(object.kind), object.name)];
  const uint64_t now = ShapeOf(object);
  if (std::exchange(shape, now) != now) Changed();
}

// Its end takes the place of the decision.
void LoopWorks::Audited(const contract::ActionView& action) {
  Changed();
  const auto known = std::ranges::find_if(actions_.rbegin(), actions_.rend(), [&](const LoopAction& other) {
    return other.action.outcome == "pending" && other.action.cycle == action.cycle &&
           other.action.kind == action.kind && other.action.machine_id == action.machine_id;
  });
  if (known != actions_.rend()) {
    known->action = action;
  } else {
    actions_.push_back({.at = since_start(), .action = action});
  }
}

std::vector<std::string> LoopWorks::InFlight() const {
  std::vector<std::string> all;
  const auto machines = hooks_.has_fleet ? fleet_->provider().Machines() : std::vector<contract::MachineRecord>();
  for (const contract::MachineRecord& machine : machines) {
    if (!model::IsStable(machine->state) && machine->state != MachineState::kFailed) {
      all.push_back(fmt::format("machine {} is {}", machine->id, model::StateName(machine->state)));
    }
  }
  for (const auto& [id, cluster] : clusters_) {
    for (size_t i = 0; i < cluster->schedulers(); ++i) {
      if (!cluster->alive(i)) continue;
      const uint64_t commits = cluster->scheduler(i).View()->commits_in_flight;
      if (commits > 0) all.push_back(fmt::format("{} commits of cluster {} are open", commits, id));
    }
    if (!cluster->operator_alive()) continue;
    const auto view = cluster->operator_core().View();
    for (const operators::ReclaimView& reclaim : view->reclaims) {
      if (!reclaim.acknowledged) all.push_back(fmt::format("instruction {} is not acknowledged", reclaim.instruction));
    }
  }
  return all;
}

// --- clusters of which only the demand is known

void LoopWorks::SetDemand(const std::string& cluster, std::vector<model::Need> needs) {
  Plain& plain = plain_[cluster];
  plain.needs = std::move(needs);
  Changed();
  if (plain.open) SayDemand(cluster, plain);
  if (plain.session == nullptr) ConnectPlain(cluster);
}

void LoopWorks::ConnectPlain(const std::string& cluster) {
  Plain& plain = plain_[cluster];
  const auto ended = [this, cluster] {
    plain_[cluster].session.reset();
    plain_[cluster].open = false;
    ++plain_[cluster].turn;
    kernel_.After(kReconnect, [this, cluster] {
      if (plain_[cluster].session == nullptr) ConnectPlain(cluster);
    });
  };
  plain.session = fleet_->Open(
      cluster, false, [this, cluster](const contract::ShardMessage& message) { HearPlain(cluster, message); }, ended);
  if (plain.session == nullptr) ended();
}

void LoopWorks::SayDemand(const std::string& cluster, Plain& plain) {
  std::vector<model::Need> needs = plain.needs;
  for (model::Need& need : needs) need.cluster = cluster;
  fleet_->Say(plain.session, contract::Rollup{.cluster_id = cluster,
                                              .timestamp = kernel_.now().wall,
                                              .rows = contract::NeedRows(std::move(needs))});
}

void LoopWorks::RepeatDemand(const std::string& cluster, uint64_t turn) {
  Plain& plain = plain_[cluster];
  if (plain.turn != turn || !plain.open) return;
  SayDemand(cluster, plain);
  kernel_.After(kRepeat, [this, cluster, turn] { RepeatDemand(cluster, turn); });
}

void LoopWorks::HearPlain(const std::string& cluster, const contract::ShardMessage& message) {
  Plain& plain = plain_[cluster];
  if (const auto* ack = std::get_if<contract::Acknowledgement>(&message)) {
    if (ack->echo != "hello") return;
    plain.open = true;
    RepeatDemand(cluster, ++plain.turn);
  } else if (const auto* request = std::get_if<contract::BootstrapRequest>(&message)) {
    fleet_->Say(plain.session, contract::BootstrapResponse{.request_id = request->request_id,
                                                           .user_data = fmt::format("cluster: {}\n", cluster)});
  } else if (const auto* told = std::get_if<contract::ReclaimInstruction>(&message)) {
    fleet_->Say(plain.session, contract::ReclaimAck{.instruction_id = told->instruction_id,
                                                    .nodes_started = static_cast<int32_t>(told->nodes.size())});
  }
}

}  // namespace muster::sim
