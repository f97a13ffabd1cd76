#include "rpc/provider_conversion.h"

#include <fmt/format.h>

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bigfleet/v1alpha1/provider.pb.h"
#include "model/names.h"
#include "rpc/shared_texts.h"
#include "rpc/wire_parts.h"

namespace muster::rpc {
namespace {

namespace pb = bigfleet::v1alpha1;

// The four transitions write the token in the same three fields, under different numbers.
template <class Wire>
contract::FenceToken Token(const Wire& wire) {
  return {.shard_id = wire.shard_id(), .epoch = wire.shard_epoch(), .sequence = wire.sequence_number()};
}

template <class Request, class Wire>
void WriteTransition(const Request& request, Wire& wire) {
  wire.set_machine_id(request.machine_id);
  wire.set_shard_id(request.fence.shard_id);
  wire.set_shard_epoch(request.fence.epoch);
  wire.set_sequence_number(request.fence.sequence);
}

Result<model::CapacityType> CapacityTypeFromWire(int number) {
  if (number < 0 || number > static_cast<int>(model::CapacityType::kSpot)) {
    return InvalidArgument(fmt::format("{} is not a capacity type; use 1 (bare-metal) to 4 (spot)", number));
  }
  return static_cast<model::CapacityType>(number);
}

Result<model::Machine> ReadNumbers(const pb::Machine& wire, std::string_view path, SharedTexts& texts) {
  model::Machine machine;
  const auto state = StateFromWire(wire.state());
  if (!state) return Refuse(path, "state", state.error().message());
  const auto capacity_type = CapacityTypeFromWire(wire.capacity_type());
  if (!capacity_type) return Refuse(path, "capacity_type", capacity_type.error().message());
  MUSTER_ASSIGN_OR_RETURN(const model::Money price, MoneyFromWire(wire.price_per_hour(), path, "price_per_hour"));
  const auto probability = model::ProbabilityFromDouble(wire.interruption_probability());
  if (!probability) return Refuse(path, "interruption_probability", probability.error().message());
  MUSTER_ASSIGN_OR_RETURN(model::Resources resources, texts.Resources(wire.resources().resources(), path, "resources"));
  machine.state = *state;
  machine.capacity_type = *capacity_type;
  machine.price_per_hour = price;
  machine.interruption_probability = *probability;
  machine.resources = std::move(resources);
  if (wire.has_allocatable()) {
    MUSTER_ASSIGN_OR_RETURN(machine.allocatable, texts.Resources(wire.allocatable().resources(), path, "allocatable"));
  }
  return machine;
}

}  // namespace

Result<contract::CreateRequest> FromWire(const pb::CreateRequest& wire) {
  if (const Status given = CheckMachineId(wire.machine_id(), "machine_id"); !given.ok()) return std::unexpected(given);
  return contract::CreateRequest{.machine_id = wire.machine_id(), .fence = Token(wire)};
}

Result<contract::ConfigureRequest> FromWire(const pb::ConfigureRequest& wire) {
  if (const Status given = CheckMachineId(wire.machine_id(), "machine_id"); !given.ok()) return std::unexpected(given);
  return contract::ConfigureRequest{
      .machine_id = wire.machine_id(),
      .cluster_id = wire.cluster_id(),
      .bootstrap_blob = wire.bootstrap_blob(),
      .fence = Token(wire),
      .shard_metadata = {wire.shard_metadata().begin(), wire.shard_metadata().end()},
  };
}

Result<contract::DrainRequest> FromWire(const pb::DrainRequest& wire) {
  if (const Status given = CheckMachineId(wire.machine_id(), "machine_id"); !given.ok()) return std::unexpected(given);
  return contract::DrainRequest{
      .machine_id = wire.machine_id(), .grace_period_seconds = wire.grace_period_seconds(), .fence = Token(wire)};
}

Result<contract::DeleteRequest> FromWire(const pb::DeleteRequest& wire) {
  if (const Status given = CheckMachineId(wire.machine_id(), "machine_id"); !given.ok()) return std::unexpected(given);
  return contract::DeleteRequest{.machine_id = wire.machine_id(), .fence = Token(wire)};
}

Result<contract::GetRequest> FromWire(const pb::MachineRef& wire) {
  if (const Status given = CheckMachineId(wire.id(), "id"); !given.ok()) return std::unexpected(given);
  return contract::GetRequest{.machine_id = wire.id()};
}

Result<contract::ListRequest> FromWire(const pb::ListFilter& wire) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<model::MachineState> states, StatesFromWire(wire.states()));
  return contract::ListRequest{
      .states = std::move(states), .max_results = wire.max_results(), .since_revision = wire.since_revision()};
}

void ToWire(const contract::CreateRequest& request, pb::CreateRequest& wire) { WriteTransition(request, wire); }

void ToWire(const contract::ConfigureRequest& request, pb::ConfigureRequest& wire) {
  WriteTransition(request, wire);
  wire.set_cluster_id(request.cluster_id);
  wire.set_bootstrap_blob(request.bootstrap_blob);
  WriteMap(request.shard_metadata, *wire.mutable_shard_metadata());
}

void ToWire(const contract::DrainRequest& request, pb::DrainRequest& wire) {
  WriteTransition(request, wire);
  wire.set_grace_period_seconds(request.grace_period_seconds);
}

void ToWire(const contract::DeleteRequest& request, pb::DeleteRequest& wire) { WriteTransition(request, wire); }

void ToWire(const contract::GetRequest& request, pb::MachineRef& wire) { wire.set_id(request.machine_id); }

void ToWire(const contract::ListRequest& request, pb::ListFilter& wire) {
  for (const model::MachineState state : request.states) wire.add_states(static_cast<pb::MachineState>(state));
  wire.set_max_results(request.max_results);
  wire.set_since_revision(request.since_revision);
}

Result<model::Machine> TakeMachine(pb::Machine& wire, std::string_view path, SharedTexts& texts) {
  MUSTER_ASSIGN_OR_RETURN(model::Machine machine, ReadNumbers(wire, path, texts));
  machine.id = std::move(*wire.mutable_id());
  if (wire.has_host()) {
    machine.host = {.provider = std::move(*wire.mutable_host()->mutable_provider()),
                    .ref = std::move(*wire.mutable_host()->mutable_ref())};
  }
  machine.instance_type = std::move(*wire.mutable_instance_type());
  machine.zone = std::move(*wire.mutable_zone());
  machine.labels = texts.Map(wire.labels());
  machine.last_error = std::move(*wire.mutable_last_error());
  machine.cluster = std::move(*wire.mutable_cluster());
  machine.shard_metadata = texts.Map(wire.shard_metadata());
  if (const std::string problem = model::StructureProblem(machine); !problem.empty()) {
    return InvalidArgument(fmt::format("{}.{}", path, problem));
  }
  return machine;
}

Result<contract::TransitionAck> TakeReply(pb::TransitionAck& wire, SharedTexts& texts) {
  contract::TransitionAck ack{.operation_id = std::move(*wire.mutable_operation_id()), .machine = {}};
  if (wire.has_machine()) {
    MUSTER_ASSIGN_OR_RETURN(model::Machine machine, TakeMachine(*wire.mutable_machine(), "machine", texts));
    ack.machine = contract::MachineRecord(std::move(machine));
  }
  return ack;
}

Result<contract::GetReply> TakeReply(pb::Machine& wire, SharedTexts& texts) {
  MUSTER_ASSIGN_OR_RETURN(model::Machine machine, TakeMachine(wire, "machine", texts));
  return contract::GetReply{.machine = contract::MachineRecord(std::move(machine))};
}

Result<contract::ListReply> TakeReply(pb::MachineList& wire, SharedTexts& texts) {
  contract::ListReply reply{.machines = {}, .revision = std::move(*wire.mutable_revision()), .rejected = {}};
  reply.machines.reserve(static_cast<size_t>(wire.machines_size()));
  std::unordered_map<std::string_view, int> first;  // of each id; the records own the text
  first.reserve(reply.machines.capacity());
  for (int i = 0; i < wire.machines_size(); ++i) {
    pb::Machine& row = *wire.mutable_machines(i);
    const std::string path = fmt::format("machines[{}]", i);
    if (const auto seen = first.find(row.id()); seen != first.end()) {
      std::string reason =
          fmt::format("{}.id: {} is also machines[{}], which counts", path, model::Quoted(row.id()), seen->second);
      reply.rejected.push_back({.id = row.id(), .reason = std::move(reason)});
      continue;
    }
    std::string id = row.id();
    Result<model::Machine> machine = TakeMachine(row, path, texts);
    if (!machine) {
      reply.rejected.push_back({.id = std::move(id), .reason = machine.error().message()});
      continue;
    }
    reply.machines.emplace_back(*std::move(machine));
    first.emplace(reply.machines.back()->id, i);
  }
  return reply;
}

void ToWire(const model::Machine& machine, pb::Machine& wire) {
  wire.set_id(machine.id);
  wire.set_state(static_cast<pb::MachineState>(machine.state));
  if (!machine.host.empty()) {
    wire.mutable_host()->set_provider(machine.host.provider);
    wire.mutable_host()->set_ref(machine.host.ref);
  }
  wire.set_instance_type(machine.instance_type);
  wire.set_zone(machine.zone);
  wire.set_capacity_type(static_cast<pb::CapacityType>(machine.capacity_type));
  wire.set_price_per_hour(model::ToDollars(machine.price_per_hour));
  wire.set_interruption_probability(machine.interruption_probability.millionths / 1e6);
  WriteResources(machine.resources, *wire.mutable_resources());
  if (machine.allocatable) WriteResources(*machine.allocatable, *wire.mutable_allocatable());
  WriteMap(machine.labels, *wire.mutable_labels());
  wire.set_last_error(Readable(machine.last_error));
  wire.set_cluster(machine.cluster);
  WriteMap(machine.shard_metadata, *wire.mutable_shard_metadata());
}

void ToWire(const contract::TransitionAck& reply, pb::TransitionAck& wire) {
  wire.set_operation_id(reply.operation_id);
  ToWire(*reply.machine, *wire.mutable_machine());
}

void ToWire(const contract::GetReply& reply, pb::Machine& wire) { ToWire(*reply.machine, wire); }

void ToWire(const contract::ListReply& reply, pb::MachineList& wire) {
  wire.mutable_machines()->Reserve(static_cast<int>(reply.machines.size()));
  for (const contract::MachineRecord& machine : reply.machines) ToWire(*machine, *wire.add_machines());
  wire.set_revision(reply.revision);
}

}  // namespace muster::rpc
