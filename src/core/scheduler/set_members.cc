#include "core/scheduler/set_members.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace muster::scheduler {
namespace {

void AddMember(const std::string& name, const std::string& id, const WorkloadRecord* record,
               std::vector<SetMember>& members) {
  const auto number = MemberNumber(name, id);
  if (record == nullptr || !number || record->workload.set != name) return;
  const bool deleting = record->workload.desired == model::DesiredState::kDeleted;
  members.push_back({.number = *number,
                     .revision = record->workload.revision,
                     .phase = record->workload.phase,
                     .up = record->workload.phase == model::WorkloadPhase::kRunning && !record->evict && !deleting,
                     .deleting = deleting});
}

}  // namespace

std::optional<int32_t> MemberNumber(std::string_view set, std::string_view id) {
  if (!id.starts_with(set) || id.size() < set.size() + 2 || id[set.size()] != '-') return std::nullopt;
  const std::string_view digits = id.substr(set.size() + 1);
  int32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number < 0) return std::nullopt;
  if (digits.size() > 1 && digits.front() == '0') return std::nullopt;
  return number;
}

std::vector<SetMember> MembersOf(const std::string& name, const StoreCopy& copy, const Drafts& drafts) {
  std::set<std::string> ids = copy.MembersOf(name);
  const ObjectId first = WorkloadObject(name + "-");
  const auto& all = drafts.state().drafts;
  for (auto draft = all.lower_bound(first); draft != all.end(); ++draft) {
    if (draft->first.kind != first.kind || !draft->first.name.starts_with(first.name)) break;
    ids.insert(draft->first.name);
  }
  std::vector<SetMember> members;
  for (const std::string& id : ids) AddMember(name, id, drafts.Find<WorkloadRecord>(id), members);
  std::ranges::sort(members, {}, &SetMember::number);
  return members;
}

std::vector<SetMember> StoredMembersOf(const std::string& name, const StoreCopy& copy) {
  std::vector<SetMember> members;
  for (const std::string& id : copy.MembersOf(name)) AddMember(name, id, copy.Find<WorkloadRecord>(id), members);
  std::ranges::sort(members, {}, &SetMember::number);
  return members;
}

}  // namespace muster::scheduler
