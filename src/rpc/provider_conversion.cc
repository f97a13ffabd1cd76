#include "rpc/provider_conversion.h"

#include <fmt/format.h>
#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bigfleet/v1alpha1/provider.pb.h"
#include "model/names.h"
#include "rpc/piece_stream.h"
#include "rpc/shared_texts.h"
#include "rpc/wire_parts.h"

namespace muster::rpc {
namespace {

namespace pb = bigfleet::v1alpha1;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

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

// Bounds of a list, which is as large as the fleet.
constexpr int kMostRecordBytes = 64 << 10;
constexpr size_t kMostRecords = 1'000'000;
constexpr uint64_t kArenaBytes = 1 << 20;
// What a record keeps beside its texts, and each entry of its maps, about.
constexpr size_t kRecordMemory = sizeof(model::Machine) + 128;
constexpr size_t kEntryMemory = 128;
// What machines may keep, on average; a machine with twenty labels of its own keeps half of it.
constexpr size_t kMemoryOfMachine = 8 << 10;
constexpr size_t kMemoryOfList = 32 << 20;

// A list as it comes, one record after another.
class ListTaker {
 public:
  explicit ListTaker(SharedTexts& texts) : texts_(texts) {}

  // `bytes` is the record's size on the wire.
  void Add(pb::Machine& row, size_t bytes = 0) {
    memory_ +=
        kRecordMemory + bytes +
        kEntryMemory * static_cast<size_t>(row.labels_size() + row.shard_metadata_size() +
                                           row.resources().resources_size() + row.allocatable().resources_size());
    const size_t index = rows_++;
    const std::string path = fmt::format("machines[{}]", index);
    std::string id = row.id();
    if (const auto seen = first_.find(id); seen != first_.end()) {
      std::string reason =
          fmt::format("{}.id: {} is also machines[{}], which counts", path, model::Quoted(id), seen->second);
      reply_.rejected.push_back({.id = std::move(id), .reason = std::move(reason)});
      return;
    }
    Result<model::Machine> machine = TakeMachine(row, path, texts_);
    if (!machine) {
      reply_.rejected.push_back({.id = std::move(id), .reason = machine.error().message()});
      return;
    }
    reply_.machines.emplace_back(*std::move(machine));
    first_.emplace(reply_.machines.back()->id, index);
  }
  size_t rows() const { return rows_; }
  // Whether what is kept is more than so many machines keep. What is rejected is kept too, and is no machine.
  bool Excessive() const { return memory_ > kMemoryOfList + kMemoryOfMachine * reply_.machines.size(); }
  contract::ListReply Take(std::string revision) {
    reply_.revision = std::move(revision);
    return std::move(reply_);
  }

 private:
  SharedTexts& texts_;
  contract::ListReply reply_;
  std::unordered_map<std::string_view, size_t> first_;  // of each id; the records own the text
  size_t rows_ = 0;
  size_t memory_ = 0;
};

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
  ListTaker taker(texts);
  for (pb::Machine& row : *wire.mutable_machines()) taker.Add(row);
  return taker.Take(std::move(*wire.mutable_revision()));
}

Result<contract::ListReply> ReadMachineList(std::span<const std::string_view> pieces, SharedTexts& texts) {
  const auto too_large = [](std::string_view what) {
    return Error(Code::kResourceExhausted, fmt::format("{}; a provider must answer with less", what));
  };
  const auto unreadable = [] {
    return InvalidArgument("the list cannot be parsed; send the message of the protocol, with texts in UTF-8");
  };
  PieceStream stream(pieces);
  CodedInputStream in(&stream);
  google::protobuf::Arena arena;  // of the last few records
  ListTaker taker(texts);
  std::string revision;
  while (const uint32_t tag = in.ReadTag()) {
    const bool is_machine = tag == WireFormatLite::MakeTag(pb::MachineList::kMachinesFieldNumber,
                                                           WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
    const bool is_revision = tag == WireFormatLite::MakeTag(pb::MachineList::kRevisionFieldNumber,
                                                            WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
    if (!is_machine && !is_revision) {
      if (!WireFormatLite::SkipField(&in, tag)) return unreadable();
      continue;
    }
    int size = 0;
    if (!in.ReadVarintSizeAsInt(&size)) return unreadable();
    if (size > kMostRecordBytes) {
      return too_large(fmt::format("{}: {} bytes, and {} are allowed",
                                   is_machine ? fmt::format("machines[{}]", taker.rows()) : "revision", size,
                                   kMostRecordBytes));
    }
    if (is_revision) {
      if (!in.ReadString(&revision, size)) return unreadable();
      continue;
    }
    if (taker.rows() >= kMostRecords) return too_large(fmt::format("machines: more than {} records", kMostRecords));
    if (arena.SpaceAllocated() > kArenaBytes) arena.Reset();
    auto& row = *google::protobuf::Arena::CreateMessage<pb::Machine>(&arena);
    const CodedInputStream::Limit limit = in.PushLimit(size);
    if (!row.MergeFromCodedStream(&in) || in.BytesUntilLimit() != 0) return unreadable();
    in.PopLimit(limit);
    taker.Add(row, static_cast<size_t>(size));
    if (taker.Excessive()) {
      return too_large(fmt::format("machines: the first {} records take more memory than machines do", taker.rows()));
    }
  }
  if (!in.ConsumedEntireMessage()) return unreadable();
  return taker.Take(std::move(revision));
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
