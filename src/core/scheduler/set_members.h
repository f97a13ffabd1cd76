// The members of a set as its plan reads them (sets.h): their records, with drafts, or as the store holds them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/scheduler/drafts.h"
#include "core/scheduler/sets.h"
#include "core/scheduler/store_copy.h"

namespace muster::scheduler {

// The number in "<set>-<number>". Nothing if the id is no member's.
std::optional<int32_t> MemberNumber(std::string_view set, std::string_view id);

// By number.
std::vector<SetMember> MembersOf(const std::string& name, const StoreCopy& copy, const Drafts& drafts);
std::vector<SetMember> StoredMembersOf(const std::string& name, const StoreCopy& copy);

}  // namespace muster::scheduler
