#include "core/scheduler/json_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "model/names.h"
#include "model/quantity.h"
#include "model/text_scalars.h"

namespace muster::scheduler {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// Every value up to `last` by its name. The first that has it counts.
template <class E, class Name>
Status ParseEnum(std::string_view text, std::string_view what, E last, Name name, E& out) {
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    const E value = static_cast<E>(i);
    if (name(value) != text) continue;
    out = value;
    return {};
  }
  return {Code::kInvalidArgument, fmt::format("unknown {} {}", what, model::Quoted(text))};
}

template <class T>
Status Take(Result<T> parsed, T& out) {
  if (!parsed) return std::move(parsed).error();
  out = *std::move(parsed);
  return {};
}

}  // namespace

std::string JsonText(WallTime time) {
  // One second short of the last nanosecond: what ParseWallTime takes.
  static constexpr int64_t kLast = (INT64_MAX / kSecond - 1) * kSecond;
  const int64_t since_1970 = std::clamp<int64_t>(time.time_since_epoch().count(), 0, kLast);
  const std::chrono::sys_time<Duration> instant{Duration(since_1970)};
  const auto day = std::chrono::floor<std::chrono::days>(instant);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::seconds>(instant - day));
  std::string text = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                                 static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                                 clock.hours().count(), clock.minutes().count(), clock.seconds().count());
  if (const int64_t nanos = since_1970 % kSecond; nanos != 0) {
    text += fmt::format(".{:09}", nanos);
    text.erase(text.find_last_not_of('0') + 1);
  }
  return text + "Z";
}

bool IsZeroTime(std::string_view text) { return text.starts_with("0001-01-01T"); }

Status ParseJsonText(std::string_view text, WallTime& out) {
  if (IsZeroTime(text)) {
    out = {};
    return {};
  }
  return Take(model::ParseWallTime(text), out);
}

std::string JsonText(Duration duration) { return model::FormatDuration(duration); }
Status ParseJsonText(std::string_view text, Duration& out) {
  const bool negative = text.starts_with('-');
  MUSTER_RETURN_IF_ERROR(Take(model::ParseDuration(text.substr(negative ? 1 : 0)), out));
  if (negative) out = -out;
  return {};
}

std::string JsonText(model::MemberCount count) { return model::FormatMemberCount(count); }
Status ParseJsonText(std::string_view text, model::MemberCount& out) {
  return Take(model::ParseMemberCount(text), out);
}

std::string JsonText(model::WorkloadType value) { return std::string(model::WorkloadTypeName(value)); }
Status ParseJsonText(std::string_view text, model::WorkloadType& out) {
  return ParseEnum(text, "workload type", model::WorkloadType::kVm, model::WorkloadTypeName, out);
}

std::string JsonText(model::DesiredState value) { return std::string(model::DesiredStateName(value)); }
Status ParseJsonText(std::string_view text, model::DesiredState& out) {
  return Take(model::ParseDesiredState(text), out);
}

std::string JsonText(model::WorkloadPhase value) { return std::string(model::WorkloadPhaseName(value)); }
Status ParseJsonText(std::string_view text, model::WorkloadPhase& out) {
  // A virtual machine is written as "Stopped (ip=...)" by another program.
  return Take(model::ParseWorkloadPhase(text.substr(0, text.find(" ("))), out);
}

std::string JsonText(model::NodeStatus value) { return std::string(model::NodeStatusName(value)); }
Status ParseJsonText(std::string_view text, model::NodeStatus& out) { return Take(model::ParseNodeStatus(text), out); }

std::string JsonText(model::RestartPolicy value) { return std::string(model::RestartPolicyName(value)); }
Status ParseJsonText(std::string_view text, model::RestartPolicy& out) {
  return Take(model::ParseRestartPolicy(text), out);
}

std::string JsonText(model::PortProtocol value) { return std::string(model::PortProtocolName(value)); }
Status ParseJsonText(std::string_view text, model::PortProtocol& out) {
  return Take(model::ParsePortProtocol(text), out);
}

std::string JsonText(model::Operator value) { return std::string(model::OperatorName(value)); }
Status ParseJsonText(std::string_view text, model::Operator& out) {
  return ParseEnum(text, "operator", model::Operator::kLt, model::OperatorName, out);
}

std::string JsonText(model::WhenUnsatisfiable value) { return std::string(model::WhenUnsatisfiableName(value)); }
Status ParseJsonText(std::string_view text, model::WhenUnsatisfiable& out) {
  return ParseEnum(text, "name", model::WhenUnsatisfiable::kScheduleAnyway, model::WhenUnsatisfiableName, out);
}

std::string JsonText(model::PenaltyBucket value) { return model::BucketLabel(value); }
Status ParseJsonText(std::string_view text, model::PenaltyBucket& out) {
  return ParseEnum(text, "penalty", model::PenaltyBucket::kPinned, model::BucketLabel, out);
}

std::string JsonText(model::WorkloadKind value) { return std::string(model::WorkloadKindName(value)); }
Status ParseJsonText(std::string_view text, model::WorkloadKind& out) {
  return ParseEnum(text, "kind", model::WorkloadKind::kJob, model::WorkloadKindName, out);
}

std::string JsonText(contract::ActualState value) { return std::string(contract::ActualStateName(value)); }
Status ParseJsonText(std::string_view text, contract::ActualState& out) {
  return ParseEnum(text, "state", contract::ActualState::kMissing, contract::ActualStateName, out);
}

void WriteJson(JsonWriter& out, const model::Resources& resources) {
  out.BeginObject();
  for (const auto& [name, milli] : resources.entries()) {
    out.Key(name);
    out.Text(model::FormatQuantityFor(name, milli));
  }
  out.EndObject();
}

void ReadJson(JsonCursor& in, model::Resources& resources) {
  resources = {};
  in.Object([&](std::string_view key) {
    const std::string name(key);
    std::string quantity;
    in.ReadAsText(quantity);
    if (!in.ok()) return;
    const auto milli = model::ParseQuantity(quantity);
    if (!milli) return in.Fail(milli.error().message());
    if (name.empty() || *milli < 0) return in.Fail("an amount needs a name and is not negative");
    resources.Set(name, *milli);
  });
}

}  // namespace muster::scheduler
