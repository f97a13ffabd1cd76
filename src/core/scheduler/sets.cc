#include "core/scheduler/sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "base/codec.h"
#include "base/hash.h"
#include "base/probe.h"

namespace muster::scheduler {
namespace {

using Members = std::span<const SetMember>;

struct Limits {
  int32_t count = 0;
  int32_t unavailable = 0;
  int32_t surge = 0;

  int32_t end() const { return count + surge; }  // numbers from here on are none of the set's
};

Limits LimitsOf(const model::WorkloadSpec& spec) {
  Limits limits{.count = std::max(0, spec.replicas),
                .unavailable = std::max(0, spec.max_unavailable.Of(spec.replicas)),
                .surge = std::max(0, spec.max_surge.Of(spec.replicas))};
  if (limits.unavailable == 0 && limits.surge == 0) limits.unavailable = 1;
  limits.surge = std::min({limits.surge, limits.count, std::numeric_limits<int32_t>::max() - limits.count});
  return limits;
}

bool IsUp(const SetMember& member) { return member.up && !member.deleting; }

// From the highest number on.
void DeleteFrom(Members members, int32_t number, std::vector<SetStep>& steps) {
  for (size_t i = members.size(); i-- > 0 && members[i].number >= number;) {
    if (!members[i].deleting) steps.push_back({SetAction::kDelete, members[i].number});
  }
}

// One plan for a set that is not a job.
class Rollout {
 public:
  Rollout(const SetRecord& set, Members members) : revision_(set.revision), limits_(LimitsOf(set.spec)) {
    if (!MUTANT("scheduler.surplus_members_stay")) DeleteFrom(members, limits_.end(), steps_);
    const auto beyond = std::ranges::lower_bound(members, limits_.end(), {}, &SetMember::number);
    members_ = Members(members.begin(), beyond);
    budget_ = static_cast<int64_t>(std::ranges::count_if(members_, IsUp)) - (limits_.count - limits_.unavailable);
  }

  std::vector<SetStep> Plan() && {
    if (!WaitsForChange()) DeleteSurge();
    Change();
    CreateMissing();
    CreateSurge();
    return std::move(steps_);
  }

 private:
  bool IsOutdated(const SetMember& member) const { return !member.deleting && member.revision != revision_; }
  bool IsSurge(const SetMember& member) const { return member.number >= limits_.count; }
  bool WaitsForChange() const {
    return std::ranges::any_of(members_, [&](const SetMember& m) { return !IsSurge(m) && IsOutdated(m); });
  }

  // Whether a member may be taken down; one that is up costs a part of the budget.
  bool Spend(const SetMember& member) {
    if (!IsUp(member)) return true;
    if (budget_ <= 0) return false;
    --budget_;
    return true;
  }

  void DeleteSurge() {
    for (size_t i = members_.size(); i-- > 0 && IsSurge(members_[i]);) {
      if (members_[i].deleting || !Spend(members_[i])) continue;
      steps_.push_back({SetAction::kDelete, members_[i].number});
      removed_.insert(members_[i].number);
    }
  }

  // The highest number first: the lowest members of many services are the ones that the others follow.
  void Change() {
    for (size_t i = members_.size(); i-- > 0;) {
      const SetMember& member = members_[i];
      if (!IsOutdated(member) || removed_.contains(member.number)) continue;
      if (member.number == 0 && MUTANT("scheduler.first_member_stays")) continue;
      if (Spend(member)) {
        steps_.push_back({SetAction::kUpdate, member.number});
      } else if (!IsSurge(member)) {
        ++waiting_;
      }
    }
  }

  void Create(int32_t first, int32_t end, int32_t most) {
    auto at = std::ranges::lower_bound(members_, first, {}, &SetMember::number);
    for (int32_t number = first; number < end && most > 0; ++number) {
      if (at != members_.end() && at->number == number) {
        ++at;
        continue;
      }
      steps_.push_back({SetAction::kCreate, number});
      --most;
    }
  }

  void CreateMissing() { Create(0, limits_.count, limits_.count); }

  void CreateSurge() {
    const auto is_live = [&](const SetMember& m) { return IsSurge(m) && !m.deleting && !removed_.contains(m.number); };
    const auto live = static_cast<int32_t>(std::ranges::count_if(members_, is_live));
    Create(limits_.count, limits_.end(), std::min(limits_.surge, waiting_) - live);
  }

  const std::string& revision_;
  const Limits limits_;
  Members members_;            // below the end
  int64_t budget_ = 0;         // members that are up and may be taken down
  int32_t waiting_ = 0;        // members that are up and could not be changed yet
  std::set<int32_t> removed_;  // surge members that this plan deletes
  std::vector<SetStep> steps_;
};

std::vector<SetStep> PlanJob(const SetRecord& set, Members members) {
  std::vector<SetStep> steps;
  const int32_t count = std::max(0, set.spec.replicas);
  DeleteFrom(members, count, steps);
  const std::vector<int32_t> completed = Completions(set, members);
  const auto is_done = [&](int32_t number) { return std::ranges::binary_search(completed, number); };
  for (const SetMember& member : members) {
    if (member.number >= count || member.deleting || member.up || is_done(member.number)) continue;
    if (member.revision != set.revision) steps.push_back({SetAction::kUpdate, member.number});
  }
  auto at = members.begin();
  for (int32_t number = 0; number < count; ++number) {
    if (at != members.end() && at->number == number) {
      ++at;
    } else if (!is_done(number)) {
      steps.push_back({SetAction::kCreate, number});
    }
  }
  return steps;
}

}  // namespace

std::vector<SetStep> PlanSet(const SetRecord& set, Members members) {
  if (set.deleting) {
    std::vector<SetStep> steps;
    DeleteFrom(members, 0, steps);
    return steps;
  }
  if (set.spec.kind == model::WorkloadKind::kJob) return PlanJob(set, members);
  return Rollout(set, members).Plan();
}

int32_t EvictionsAllowed(const SetRecord& set, Members members) {
  if (set.deleting) return 0;
  const auto up = static_cast<int32_t>(std::ranges::count_if(members, IsUp));
  return std::max(0, up - set.spec.min_available.Of(set.spec.replicas));
}

std::vector<int32_t> Completions(const SetRecord& set, Members members) {
  std::vector<int32_t> completed = set.completed;
  for (const SetMember& member : members) {
    if (member.phase == model::WorkloadPhase::kCompleted) completed.push_back(member.number);
  }
  std::ranges::sort(completed);
  completed.erase(std::ranges::unique(completed).begin(), completed.end());
  return completed;
}

std::string SpecRevision(const model::WorkloadSpec& spec, uint64_t restarts) {
  Hasher hasher;
  hasher.Add(codec::ToBytes(spec.tenant));
  hasher.Add(codec::ToBytes(spec.labels));
  hasher.Add(RevisionBytes(spec.spec));
  hasher.Add(restarts);
  return fmt::format("{:016x}", hasher.value());
}

contract::SetView ViewOf(const SetRecord& set, Members members) {
  contract::SetView view{.spec = set.spec,
                         .revision = set.revision,
                         .members = static_cast<int32_t>(members.size()),
                         .deleting = set.deleting,
                         .created_at = set.created_at};
  for (const SetMember& member : members) {
    const bool current = member.revision == set.revision;
    if (current) ++view.current;
    if (member.phase == model::WorkloadPhase::kRunning) ++view.running;
    if (current && IsUp(member)) ++view.available;
    if (member.phase == model::WorkloadPhase::kFailed) ++view.failed;
  }
  if (set.spec.kind == model::WorkloadKind::kJob) {
    for (const int32_t number : Completions(set, members)) {
      if (number < set.spec.replicas) ++view.completed;
    }
  }
  return view;
}

}  // namespace muster::scheduler
