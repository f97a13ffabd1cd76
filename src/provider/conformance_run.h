// What the checks of conformance.cc have in common: asking and waiting, and the one machine they take through its life.
// Private to this folder.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "contract/provider.h"
#include "provider/conformance.h"

namespace muster::provider {

// Nothing: the rule holds. Otherwise what was seen.
struct Finding {
  Verdict verdict = Verdict::kHolds;
  std::string detail;
};
Finding Holds();
Finding Broken(std::string detail);
Finding NotShown(std::string detail);

class ConformanceRun {
 public:
  ConformanceRun(contract::ProviderPort& provider, const ConformanceOptions& options, const Clock& clock);

  const ConformanceOptions& options() const { return options_; }
  // Blocks for the answer.
  Result<contract::ProviderReply> Ask(contract::ProviderRequest request);
  Code CodeOf(contract::ProviderRequest request);
  // Errors for a reply of another kind too.
  Result<contract::TransitionAck> Transition(contract::ProviderRequest request);
  Result<model::Machine> Get(const std::string& id);
  Result<contract::ListReply> List(const contract::ListRequest& request = {});
  // Polls until the machine is in one of the states, or Failed (ABORTED), or the patience ends.
  Result<model::Machine> WaitFor(const std::string& id, const std::vector<model::MachineState>& states) {
    return WaitFor(id, states, options_.patience);
  }
  Result<model::Machine> WaitFor(const std::string& id, const std::vector<model::MachineState>& states,
                                 Duration patience);

  // Ids that belong to this run and this name only.
  std::string Ghost(std::string_view name) const;
  // Of a shard that belongs to this run and this name only. Where one shard has to do, the name has epochs of its own
  // instead, above those of the names before it; (0, 0) is then still (0, 0).
  contract::FenceToken Token(std::string_view name, int64_t epoch, int64_t sequence);

  // For calls that are not about fences: newer than every other token of the run, in epoch and in sequence.
  contract::FenceToken NextToken();

  // The machine the checks use, with what was acknowledged and seen on its way. Empty: none could be had.
  std::string machine;
  std::string no_machine = "not allowed to use machines";  // why there is none
  std::optional<contract::TransitionAck> created;
  std::optional<contract::TransitionAck> configured;
  std::optional<contract::TransitionAck> drained;
  bool drain_ended = false;
  std::optional<contract::TransitionAck> deleted;

 private:
  contract::ProviderPort& provider_;
  const ConformanceOptions& options_;
  const Clock& clock_;
  int64_t calls_ = 0;
  std::map<std::string, int64_t, std::less<>> epochs_;  // with one shard: where those of a name begin
  int64_t next_epochs_ = 0;                             // and where those of the next name will
};

// One check.
struct ConformanceCheck {
  std::string_view name;
  std::string_view rule;
  Finding (*run)(ConformanceRun&);
};
std::vector<ConformanceCheck> FenceChecks();
std::vector<ConformanceCheck> ListChecks();
std::vector<ConformanceCheck> LifeChecks();

}  // namespace muster::provider
