#include "model/decode.h"

#include <utility>

namespace muster::model {
namespace {

HostRef ReadHost(TextReader reader) {
  HostRef host;
  reader.Field("provider").Read(host.provider);
  reader.Field("ref").Read(host.ref);
  reader.RefuseUnknown();
  return host;
}

void FailUnlessOk(TextReader& reader, const Status& status) {
  if (!status.ok()) reader.Fail(status.message());
}

}  // namespace

Requirement ReadRequirement(TextReader& reader) {
  Requirement requirement;
  reader.Field("key").Require().Read(requirement.key);
  TextReader op = reader.Field("operator");
  TextReader values = reader.Field("values");
  if (!op.present() && values.present()) requirement.op = Operator::kIn;
  if (!op.present() && !values.present()) op.Require();
  op.Read(requirement.op, ParseOperator);
  values.Read(requirement.values);
  reader.RefuseUnknown();
  FailUnlessOk(reader, Validate(requirement));
  return requirement;
}

Spread ReadSpread(TextReader& reader) {
  Spread spread;
  reader.Field("topologyKey").Require().Read(spread.topology_key);
  TextReader skew = reader.Field("maxSkew");
  skew.Read(spread.max_skew);
  if (skew.present() && spread.max_skew < 1) skew.Fail("expected a whole number of at least 1");
  reader.Field("whenUnsatisfiable").Read(spread.when, ParseWhenUnsatisfiable);
  reader.RefuseUnknown();
  FailUnlessOk(reader, Validate(spread));
  return spread;
}

ProfileParts ReadProfileParts(TextReader& reader) {
  ProfileParts parts;
  for (TextReader& item : reader.Field("requirements").List()) parts.requirements.push_back(ReadRequirement(item));
  for (TextReader& item : reader.Field("spread").List()) parts.spread.push_back(ReadSpread(item));
  reader.Field("priority").Read(parts.priority);
  reader.Field("interruptionPenalty").Read(parts.interruption, ParseBucket);
  reader.Field("reclamationPenalty").Read(parts.reclamation, ParseBucket);
  return parts;
}

Need ReadNeed(TextReader& reader, const std::string& cluster) {
  Need need;
  need.cluster = cluster;
  need.profile = Profile(ReadProfileParts(reader));
  reader.Field("aggregate").Require().Read(need.aggregate);
  reader.Field("minUnit").Read(need.min_unit);
  reader.Field("group").Read(need.group);
  reader.Field("arrival").Read(need.arrival);
  reader.RefuseUnknown();
  return need;
}

Machine ReadMachine(TextReader& reader) {
  Machine machine;
  reader.Field("id").Require().Read(machine.id);
  reader.Field("state").Require().Read(machine.state, ParseState);
  machine.host = ReadHost(reader.Field("host"));
  reader.Field("instanceType").Read(machine.instance_type);
  reader.Field("zone").Read(machine.zone);
  reader.Field("capacityType").Read(machine.capacity_type, ParseCapacityType);
  reader.Field("price").Read(machine.price_per_hour, ParseMoney);
  reader.Field("interruptionProbability").Read(machine.interruption_probability, ParseProbability);
  reader.Field("resources").Read(machine.resources);
  if (TextReader allocatable = reader.Field("allocatable"); allocatable.present()) {
    allocatable.Read(machine.allocatable.emplace());
  }
  reader.Field("labels").Read(machine.labels);
  reader.Field("cluster").Read(machine.cluster);
  reader.Field("metadata").Read(machine.shard_metadata);
  TextReader last_error = reader.Field("lastError");
  if (machine.state == MachineState::kFailed) last_error.Require();
  last_error.Read(machine.last_error);
  FailUnlessOk(reader, CheckStructure(machine));
  return machine;
}

}  // namespace muster::model
