// Conformance: the provider contract as questions to a running provider, ours or anybody's. Each check is one sentence
// of docs/provider.md, by the same name.
//
// Checks of fences and of reading leave no trace but marks for machines that do not exist. The others take one
// Speculative machine through a whole life and give it back; they are run only when that is allowed.
//
// Thread-safety: one run at a time per provider, or they disturb each other.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/provider.h"

namespace muster::provider {

enum class Verdict : uint8_t {
  kHolds,
  kBroken,
  kNotShown,  // the provider had nothing to show it with
};

struct CheckResult {
  std::string name;  // "fence-older-epoch"
  std::string rule;  // the sentence
  Verdict verdict = Verdict::kNotShown;
  std::string detail;  // what was seen, unless it holds
};

struct ConformanceOptions {
  bool use_machines = false;  // create, configure, drain and delete one
  std::string cluster = "conformance";
  std::string bootstrap_blob = "conformance";
  int64_t grace_seconds = 5;
  Duration drain_margin = 1min;  // how long after its grace a drain may show as Idle
  Duration patience = 15min;     // for one transition to end
  Duration poll_every = 200ms;
  // Makes the ids of shards and absent machines of this run unlike those of every other run.
  std::string run_id;
  // If given, every token is this shard's: a provider that knows its callers lets nobody speak for another shard. Its
  // epochs are microseconds since 1970, above those of every run before.
  std::string shard_id;
};

// Whether there is a provider to be judged: why not, if a Get shows that nobody is there, that it is no provider, or
// that it does not speak to us.
Status CheckAnswers(contract::ProviderPort& provider, const Clock& clock);

// Every check in order; `seen`, if given, hears of each as it is done. `clock` bounds the waiting.
std::vector<CheckResult> RunConformance(contract::ProviderPort& provider, const ConformanceOptions& options,
                                        const Clock& clock, const std::function<void(const CheckResult&)>& seen = {});

// Name and rule of every check, in order.
std::vector<std::pair<std::string_view, std::string_view>> ConformanceChecks();

}  // namespace muster::provider
