#include "model/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <system_error>

#include "model/names.h"

namespace muster::model {
namespace {

constexpr auto kDesiredStates = std::to_array<NameRow<DesiredState>>({{DesiredState::kRunning, "Running"},
                                                                      {DesiredState::kStopped, "Stopped"},
                                                                      {DesiredState::kDeleted, "Deleted"},
                                                                      {DesiredState::kStopped, "stop"},
                                                                      {DesiredState::kDeleted, "delete"}});

constexpr auto kPhases = std::to_array<NameRow<WorkloadPhase>>({{WorkloadPhase::kPending, "Pending"},
                                                                {WorkloadPhase::kScheduled, "Scheduled"},
                                                                {WorkloadPhase::kUpdating, "Updating"},
                                                                {WorkloadPhase::kRetryPending, "RetryPending"},
                                                                {WorkloadPhase::kRunning, "Running"},
                                                                {WorkloadPhase::kStopped, "Stopped"},
                                                                {WorkloadPhase::kCompleted, "Completed"},
                                                                {WorkloadPhase::kFailed, "Failed"},
                                                                {WorkloadPhase::kUnknown, "Unknown"},
                                                                {WorkloadPhase::kDeleting, "Deleting"},
                                                                {WorkloadPhase::kDeleted, "Deleted"}});

constexpr auto kKinds = std::to_array<NameRow<WorkloadKind>>(
    {{WorkloadKind::kWorkload, "Workload"}, {WorkloadKind::kSet, "Set"}, {WorkloadKind::kJob, "Job"}});

constexpr size_t kLongestId = 253;

bool IsLetterOrDigit(char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

std::string FirstProblem(const Workload& workload) {
  if (workload.id.empty()) return "id: missing";
  if (!IsWorkloadId(workload.id)) {
    return "id: write letters, digits, '.', '_' and '-', a letter or digit first, at most 253";
  }
  return TemplateProblem(workload.spec);
}

}  // namespace

std::string_view DesiredStateName(DesiredState state) { return NameOf(kDesiredStates, state); }

Result<DesiredState> ParseDesiredState(std::string_view name) {
  return ParseName(kDesiredStates, "desired state", name, LetterCase::kAny);
}

std::string_view WorkloadPhaseName(WorkloadPhase phase) { return NameOf(kPhases, phase); }

Result<WorkloadPhase> ParseWorkloadPhase(std::string_view name) { return ParseName(kPhases, "workload phase", name); }

std::string_view WorkloadKindName(WorkloadKind kind) { return NameOf(kKinds, kind); }

bool IsWorkloadId(std::string_view id) {
  if (id.empty() || id.size() > kLongestId || !IsLetterOrDigit(id.front())) return false;
  return std::ranges::all_of(id, [](char c) { return IsLetterOrDigit(c) || c == '.' || c == '_' || c == '-'; });
}

int32_t MemberCount::Of(int32_t total) const {
  if (!percent) return amount;
  const int64_t part = (int64_t{amount} * total + 99) / 100;
  return static_cast<int32_t>(std::min<int64_t>(part, std::numeric_limits<int32_t>::max()));
}

Result<MemberCount> ParseMemberCount(std::string_view text) {
  MemberCount count;
  std::string_view digits = text;
  if (digits.ends_with('%')) {
    count.percent = true;
    digits.remove_suffix(1);
  }
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count.amount);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() || count.amount < 0) {
    return InvalidArgument(fmt::format("{} is neither a whole number nor a percentage such as 25%", Quoted(text)));
  }
  if (count.percent && count.amount > 100) return InvalidArgument(fmt::format("{} is above 100%", Quoted(text)));
  return count;
}

std::string FormatMemberCount(MemberCount count) { return fmt::format("{}{}", count.amount, count.percent ? "%" : ""); }

std::string MemberId(const WorkloadSpec& spec, int32_t index) {
  return spec.kind == WorkloadKind::kWorkload ? spec.name : fmt::format("{}-{}", spec.name, index);
}

Status CheckStructure(const Workload& workload) {
  const std::string problem = FirstProblem(workload);
  if (problem.empty()) return {};
  return {Code::kInvalidArgument, fmt::format("workload {}: {}", Quoted(workload.id), problem)};
}

}  // namespace muster::model
