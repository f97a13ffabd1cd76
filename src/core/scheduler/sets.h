// Sets: what to do next with the members of a set, given how they are. Plans a roll-out, a scale, a deletion and a job.
//
// Member i of a set has the number i. A set of N members has the numbers 0 to N-1; while a new template is rolled out,
// up to max-surge members more have the numbers from N. A plan is made anew whenever a member or the set changes. Its
// steps may be taken all at once: the plan made on their result continues where they end.
//
// "Up" is a member that runs and that nothing takes down: neither deleted, nor evicted, nor being changed.
//
// Invariants of a plan, for a set of N members with max unavailable U and max surge S (1 and 0 if both come to 0):
// 1. A member that is up is changed, and a surge member that is up is deleted, only while at least N-U others stay up.
//    A member that is not up is changed at once: that makes nothing worse.
// 2. Members that are not being deleted number at most N+S after the steps. Those missing of 0 to N-1 are created at
//    once. Surge members are created only while members that are up wait for their change.
// 3. Members from N+S on are deleted at once, the highest number first: to scale down is an order, and 1 does not limit
//    it. Those from N to N+S-1 stay as surge members until the others have the revision and 1 allows it.
// 4. Nothing is asked twice: a member that has the revision, or is being deleted, gets no step for it.
// 5. Once every member of 0 to N-1 is up with the revision and no other member exists, the plan is empty.
//
// A job has no surge and no limits: each of 0 to N-1 is created and runs until it has completed. Numbers that have
// completed are not created again, even if their member is gone. A new template reaches the members that do not run; a
// running one ends with the template with which it began.
//
// Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "contract/cluster_views.h"
#include "core/scheduler/records.h"
#include "model/workload.h"

namespace muster::scheduler {

struct SetMember {
  int32_t number = 0;
  std::string revision;  // that it is to have
  model::WorkloadPhase phase = model::WorkloadPhase::kPending;
  bool up = false;  // it runs, with the revision above, and is not being evicted
  bool deleting = false;
};

enum class SetAction : uint8_t { kCreate, kUpdate, kDelete };
struct SetStep {
  SetAction action = SetAction::kCreate;
  int32_t number = 0;

  bool operator==(const SetStep&) const = default;
};

// `members` by number, each once. Deletions come first, then changes, then creations.
std::vector<SetStep> PlanSet(const SetRecord& set, std::span<const SetMember> members);

// How many members that are up may be evicted now: as many as stay above min-available. Evicting a member that is not
// up costs nothing and needs no leave. 0 for a set that is being deleted: its members go anyway.
int32_t EvictionsAllowed(const SetRecord& set, std::span<const SetMember> members);

// `completed` of the record with the members that have completed since, in order. Equal to what the record has if there
// is nothing to write.
std::vector<int32_t> Completions(const SetRecord& set, std::span<const SetMember> members);

// The revision of a spec's members: a digest of what reaches an agent or changes placement (template, labels, tenant)
// and of the restarts, so that a restart is an update. Counts and limits are no part of it. A plain workload has 0.
std::string SpecRevision(const model::WorkloadSpec& spec, uint64_t restarts);

// The set as clients see it, without its revision in the store.
contract::SetView ViewOf(const SetRecord& set, std::span<const SetMember> members);

}  // namespace muster::scheduler
