// Parts that many messages have, between the wire and the model: states, quantities, requirements, penalties, maps.
//
// Reading validates. An error is INVALID_ARGUMENT and names the field by its path: `path` is where the message stands
// ("needs[17]", or empty at the top), `field` the field in it. Writing cannot fail.
//
// Thread-safety: functions without state.
#pragma once

#include <google/protobuf/map.h>
#include <google/protobuf/repeated_ptr_field.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "model/machine.h"
#include "model/money.h"
#include "model/reason.h"
#include "model/requirement.h"
#include "model/resources.h"

namespace bigfleet::v1alpha1 {
class NodeSelectorRequirement;
class Resources;
}  // namespace bigfleet::v1alpha1

namespace muster::rpc {

using WireMap = google::protobuf::Map<std::string, std::string>;
using WireRequirements = google::protobuf::RepeatedPtrField<bigfleet::v1alpha1::NodeSelectorRequirement>;

std::unexpected<Status> Refuse(std::string_view path, std::string_view field, std::string_view why);

// "machine_id: missing; name the machine" unless it is given.
Status CheckMachineId(const std::string& id, std::string_view field);
// A count or a duration, which is zero or more.
template <class Number>
Result<Number> CountFromWire(Number number, std::string_view path, std::string_view field) {
  if (number >= 0) return number;
  return Refuse(path, field, std::to_string(number) + " is negative; use zero or more");
}

// A number that a newer or careless peer sent may be none of ours, and must not be cut down to one of ours.
Result<model::MachineState> StateFromWire(int number);

// States of a filter, each once, so that a filter is never larger than there are states.
template <class Numbers>
Result<std::vector<model::MachineState>> StatesFromWire(const Numbers& numbers);

// The error is that of the first name in bytewise order: a protobuf map has none of its own.
Result<model::Resources> ResourcesFromWire(const WireMap& wire, std::string_view path, std::string_view field);
void WriteResources(const model::Resources& resources, WireMap& wire);
void WriteResources(const model::Resources& resources, bigfleet::v1alpha1::Resources& wire);

// From an amount of dollars.
Result<model::Money> MoneyFromWire(double dollars, std::string_view path, std::string_view field);

// Operator 0 is taken, and matches nothing. One without a number on the wire (Gt, Lt) is written as ours, and refused
// by whoever reads it.
Result<std::vector<model::Requirement>> RequirementsFromWire(const WireRequirements& wire, std::string_view path);
void WriteRequirements(const std::vector<model::Requirement>& requirements, WireRequirements& wire);

std::map<std::string, std::string> TakeMap(WireMap& wire);
void WriteMap(const std::map<std::string, std::string>& map, WireMap& wire);

// What the world says of a failure may be any bytes; one that is no UTF-8 would make the whole message unreadable.
std::string Readable(std::string text);

inline WallTime TimeFromWire(int64_t unix_nanos) { return WallTime(Duration(unix_nanos)); }
inline int64_t TimeToWire(WallTime time) { return time.time_since_epoch().count(); }

// By name. One that this build does not know, of a newer shard, is none it could tell.
model::Reason ReasonFromWire(std::string_view name);

template <class Numbers>
Result<std::vector<model::MachineState>> StatesFromWire(const Numbers& numbers) {
  std::vector<model::MachineState> states;
  unsigned seen = 0;
  for (int i = 0; i < numbers.size(); ++i) {
    const auto state = StateFromWire(numbers.Get(i));
    if (!state) return Refuse("", "states[" + std::to_string(i) + "]", state.error().message());
    const unsigned bit = 1U << static_cast<unsigned>(*state);
    if ((seen & bit) == 0) states.push_back(*state);
    seen |= bit;
  }
  return states;
}

}  // namespace muster::rpc
