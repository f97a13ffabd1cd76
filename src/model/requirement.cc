#include "model/requirement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "model/names.h"

namespace muster::model {
namespace {

constexpr auto kOperators = std::to_array<NameRow<Operator>>({{Operator::kIn, "In"},
                                                              {Operator::kNotIn, "NotIn"},
                                                              {Operator::kExists, "Exists"},
                                                              {Operator::kDoesNotExist, "DoesNotExist"},
                                                              {Operator::kSame, "Same"},
                                                              {Operator::kGt, "Gt"},
                                                              {Operator::kLt, "Lt"}});

constexpr auto kWhen = std::to_array<NameRow<WhenUnsatisfiable>>(
    {{WhenUnsatisfiable::kDoNotSchedule, "DoNotSchedule"}, {WhenUnsatisfiable::kScheduleAnyway, "ScheduleAnyway"}});

// All of `text` as a number, with a sign or without. Nothing if it is not one or does not fit.
std::optional<int64_t> ParseInteger(std::string_view text) {
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool MatchesOrder(const Requirement& requirement, std::string_view attribute) {
  if (requirement.values.size() != 1) return false;
  const std::optional<int64_t> bound = ParseInteger(requirement.values.front());
  const std::optional<int64_t> number = ParseInteger(attribute);
  if (!bound || !number) return false;
  return requirement.op == Operator::kGt ? *number > *bound : *number < *bound;
}

std::string NotAnInteger(std::string_view value) {
  return fmt::format("values[0]: {} is not a 64-bit integer", Quoted(value));
}

// What is wrong with the values, or nothing.
std::string CheckValues(const Requirement& requirement) {
  const std::vector<std::string>& values = requirement.values;
  const std::string_view op = OperatorName(requirement.op);
  switch (requirement.op) {
    case Operator::kIn:
    case Operator::kNotIn: return values.empty() ? fmt::format("values: {} needs at least one", op) : "";
    case Operator::kExists:
    case Operator::kDoesNotExist: return values.empty() ? "" : fmt::format("values: {} takes none", op);
    case Operator::kSame: return "";
    case Operator::kGt:
    case Operator::kLt:
      if (values.size() != 1) return fmt::format("values: {} takes exactly one, not {}", op, values.size());
      return ParseInteger(values.front()) ? "" : NotAnInteger(values.front());
    case Operator::kUnspecified: break;
  }
  return "operator: missing; use one of In, NotIn, Exists, DoesNotExist, Same, Gt, Lt";
}

}  // namespace

std::string_view OperatorName(Operator op) {
  return op == Operator::kUnspecified ? "Unspecified" : NameOf(kOperators, op);
}

Result<Operator> ParseOperator(std::string_view name) { return ParseName(kOperators, "operator", name); }

bool Matches(const Requirement& requirement, std::optional<std::string_view> attribute) {
  const auto listed = [&] { return std::ranges::find(requirement.values, *attribute) != requirement.values.end(); };
  switch (requirement.op) {
    case Operator::kIn: return attribute && listed();
    case Operator::kNotIn: return !attribute || !listed();
    case Operator::kExists: return attribute.has_value();
    case Operator::kDoesNotExist: return !attribute;
    case Operator::kSame: return attribute && (requirement.values.empty() || listed());
    case Operator::kGt:
    case Operator::kLt: return attribute && MatchesOrder(requirement, *attribute);
    case Operator::kUnspecified: break;
  }
  return false;
}

Status Validate(const Requirement& requirement) {
  std::string problem =
      requirement.key.empty() ? "key: missing; name a label, the zone or the instance type" : CheckValues(requirement);
  return problem.empty() ? Status() : Status(Code::kInvalidArgument, std::move(problem));
}

std::string ToString(const Requirement& requirement) {
  const std::string head = fmt::format("{} {}", requirement.key, OperatorName(requirement.op));
  return requirement.values.empty() ? head : fmt::format("{} [{}]", head, fmt::join(requirement.values, ", "));
}

std::string_view WhenUnsatisfiableName(WhenUnsatisfiable when) {
  return when == WhenUnsatisfiable::kUnspecified ? "Unspecified" : NameOf(kWhen, when);
}

Result<WhenUnsatisfiable> ParseWhenUnsatisfiable(std::string_view name) {
  return ParseName(kWhen, "whenUnsatisfiable", name);
}

Status Validate(const Spread& spread) {
  if (spread.topology_key.empty()) {
    return {Code::kInvalidArgument, "topologyKey: missing; name the label to spread over"};
  }
  if (NameOf(kWhen, spread.when) == "invalid") {
    return {Code::kInvalidArgument, "whenUnsatisfiable: missing; use one of DoNotSchedule, ScheduleAnyway"};
  }
  return {};
}

}  // namespace muster::model
