// A text case of tests/cases/scheduler: a cluster on virtual time, what happens to it, and what the scheduler makes of
// it. docs/development.md has the keys.
//
// Thread-safety: none.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "core/scheduler/types.h"

namespace muster::scheduler {

class Lab;

struct SchedulerCase {
  struct Step {
    Duration at{};
    std::vector<std::function<void(Lab&, std::string&)>> actions;  // may add to what is told
  };
  std::string about;
  Config config;
  std::vector<Step> steps;  // in the order of time
  Duration lasts{};
  std::optional<std::string> expect;
};

// The error is INVALID_ARGUMENT with file, line, column and path.
Result<SchedulerCase> ReadSchedulerCase(std::string_view text, std::string_view source);
// What is seen of the cluster, in the order of time: a line for every change of a node or workload, for every decision,
// and for everything that a node is told to change.
std::string PlaySchedulerCase(const SchedulerCase& input);

}  // namespace muster::scheduler
