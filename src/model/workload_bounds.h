// Bounds: how large a workload, a set or a selector may be, whoever declares it. A scheduler keeps, plans and sends
// what it takes, and one declaration must not cost it, its store or its clients more than they have.
//
// The problems begin with the field as it is written in files, and are empty if there is none. They are asked for where
// something is declared, and nowhere else: what an earlier version stored goes on.
//
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/weight.h"
#include "model/requirement.h"
#include "model/workload.h"

namespace muster::model {

inline constexpr int32_t kMostReplicas = 100'000;   // of a set or job, surge members besides
inline constexpr int64_t kMostWorkloads = 250'000;  // that one scheduler has, members of sets included
inline constexpr size_t kMostNodes = 50'000;        // that one scheduler has

// Of every list and map of a template or of what a node says of itself, and of each text in it.
inline constexpr MostOf kMostParts{.entries = 1'000, .bytes = 32 << 10};
inline constexpr size_t kMostTemplateWeight = 512 << 10;  // base/weight.h; a compose file may have half of it
inline constexpr size_t kMostTextsWeight = 128 << 10;     // labels, or metadata
inline constexpr size_t kMostMembersWeight = 1 << 30;     // template and labels, as often as the set may have members
inline constexpr size_t kMostNodeWeight = 256 << 10;
inline constexpr size_t kMostDimensions = 64;  // of resources
// What a need says of the workload, in texts with their lengths: a list of requirements, spread and group. A shard
// takes a little more (need.h), and refuses a roll-up with a larger need: with it the demand of the whole cluster.
inline constexpr size_t kMostNeedTexts = 48 << 10;
inline constexpr MostOf kMostSelector{.entries = 100, .bytes = 1'024};

// Replicas and counts of members.
std::string CountsProblem(const WorkloadSpec& spec);
// All members together, surge members besides; of counts without a problem. Each member's record is a copy.
std::string MembersProblem(const WorkloadSpec& spec);
std::string SizeProblem(const WorkloadTemplate& spec);
std::string TextsProblem(std::string_view field, const std::map<std::string, std::string>& texts);
// At most 100 requirements with 100 values each.
std::string SelectorSizeProblem(const std::vector<Requirement>& selector);

}  // namespace muster::model
