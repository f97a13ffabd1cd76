// Conformance: the contract of store.h as questions to a running store, ours or another implementation. Each check is
// one sentence of docs/store.md, by the same name.
//
// All keys of a run lie below one prefix, and are deleted in the end. The checks of compaction forget the history of
// the whole store: they are run only when that is allowed.
//
// Thread-safety: one run at a time per store, with nothing else writing to it; or revisions are not what they expect.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "store/schedule.h"
#include "store/store.h"

namespace muster::store {

enum class Verdict : uint8_t {
  kHolds,
  kBroken,
  kNotShown,  // it was not allowed to be shown
};

struct CheckResult {
  std::string name;  // "compare-revision"
  std::string rule;  // the sentence
  Verdict verdict = Verdict::kNotShown;
  std::string detail;  // what was seen, unless it holds
};

struct ConformanceOptions {
  std::string prefix = "/conformance/";  // unused so far
  bool compact = true;
  std::string only = {};  // the name of one check; all unless given
  uint64_t seed = 1;
  int histories = 3;        // concurrent ones
  Duration patience = 30s;  // for a watch or an election
};

// Every check in order; `seen`, if given, is told of each as it is done. The schedule is that of campaigns.
std::vector<CheckResult> RunConformance(Store& store, Schedule& schedule, const ConformanceOptions& options,
                                        const Clock& clock, const std::function<void(const CheckResult&)>& seen = {});

// Name and rule of every check, in order.
std::vector<std::pair<std::string_view, std::string_view>> ConformanceChecks();

}  // namespace muster::store
