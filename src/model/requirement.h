// Requirements: what a machine must be to serve a need, and how its topology may be used.
//
// A requirement is a test on one attribute: instance type, zone or a label. NotIn and DoesNotExist hold for an absent
// attribute, as in Kubernetes. Same means "all machines of the need share one value of this key": for one machine it
// only asks that the key is there, and in `values` if any are given. An unspecified operator matches nothing.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "base/status.h"

namespace muster::model {

inline constexpr std::string_view kInstanceTypeKey = "node.kubernetes.io/instance-type";
inline constexpr std::string_view kZoneKey = "topology.kubernetes.io/zone";

enum class Operator : uint8_t {
  kUnspecified = 0,
  kIn = 1,
  kNotIn = 2,
  kExists = 3,
  kDoesNotExist = 4,
  kSame = 5,
  kGt = 6,  // Gt and Lt compare integers; the wire has no number for them
  kLt = 7,
};
std::string_view OperatorName(Operator op);  // "In", "NotIn", ... "Unspecified"
// Every name but "Unspecified".
Result<Operator> ParseOperator(std::string_view name);

struct Requirement {
  std::string key;
  Operator op = Operator::kUnspecified;
  std::vector<std::string> values;

  auto operator<=>(const Requirement&) const = default;
  MUSTER_FIELDS(Requirement, key, op, values)
};

// Whether an attribute with this value (nothing = the machine lacks the key) passes.
bool Matches(const Requirement& requirement, std::optional<std::string_view> attribute);

// A key and an operator; values where the operator takes them and only there; one integer for Gt and Lt. The message
// begins with the part: "values: In needs at least one".
Status Validate(const Requirement& requirement);

// "zone In [a, b]", "gpu Exists".
std::string ToString(const Requirement& requirement);

enum class WhenUnsatisfiable : uint8_t { kUnspecified = 0, kDoNotSchedule = 1, kScheduleAnyway = 2 };
std::string_view WhenUnsatisfiableName(WhenUnsatisfiable when);  // "DoNotSchedule", "ScheduleAnyway", "Unspecified"
Result<WhenUnsatisfiable> ParseWhenUnsatisfiable(std::string_view name);  // every name but "Unspecified"

struct Spread {
  std::string topology_key;
  int32_t max_skew = 1;  // below 1 is read as 1
  WhenUnsatisfiable when = WhenUnsatisfiable::kDoNotSchedule;

  auto operator<=>(const Spread&) const = default;
  MUSTER_FIELDS(Spread, topology_key, max_skew, when)
};
// A key, and what to do when it cannot be kept. The message begins with the part, as it is written in files.
Status Validate(const Spread& spread);

}  // namespace muster::model
