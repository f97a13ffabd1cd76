#include "provider/conformance.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "provider/conformance_run.h"

namespace muster::provider {
namespace {

constexpr int64_t kEpochsOfAName = 16;  // no check goes further up

std::vector<ConformanceCheck> AllChecks() {
  std::vector<ConformanceCheck> all = FenceChecks();
  for (const auto& part : {ListChecks(), LifeChecks()}) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

ConformanceRun::ConformanceRun(contract::ProviderPort& provider, const ConformanceOptions& options, const Clock& clock)
    : provider_(provider),
      options_(options),
      clock_(clock),
      next_epochs_(
          std::chrono::duration_cast<std::chrono::microseconds>(clock.Read().wall.time_since_epoch()).count()) {}

Finding Holds() { return {}; }
Finding Broken(std::string detail) { return {.verdict = Verdict::kBroken, .detail = std::move(detail)}; }
Finding NotShown(std::string detail) { return {.verdict = Verdict::kNotShown, .detail = std::move(detail)}; }

Result<contract::ProviderReply> ConformanceRun::Ask(contract::ProviderRequest request) {
  // Shared with the answer, which may come after we have given up.
  struct Slot {
    std::mutex mu;
    std::condition_variable answered;
    std::optional<Result<contract::ProviderReply>> result;
  };
  const auto slot = std::make_shared<Slot>();
  const Duration timeout = std::holds_alternative<contract::ListRequest>(request) ? contract::kProviderListTimeout
                                                                                  : contract::kProviderCallTimeout;
  provider_.Ask(std::move(request), timeout, [slot](Result<contract::ProviderReply> result) {
    {
      const std::lock_guard lock(slot->mu);
      slot->result = std::move(result);
    }
    slot->answered.notify_all();
  });
  std::unique_lock lock(slot->mu);
  if (!slot->answered.wait_for(lock, timeout + 5s, [&] { return slot->result.has_value(); })) {
    return Error(Code::kDeadlineExceeded, "no answer");
  }
  return *std::move(slot->result);
}

Code ConformanceRun::CodeOf(contract::ProviderRequest request) {
  const auto reply = Ask(std::move(request));
  return reply ? Code::kOk : reply.error().code();
}

Result<contract::TransitionAck> ConformanceRun::Transition(contract::ProviderRequest request) {
  MUSTER_ASSIGN_OR_RETURN(contract::ProviderReply reply, Ask(std::move(request)));
  if (auto* ack = std::get_if<contract::TransitionAck>(&reply)) return std::move(*ack);
  return Error(Code::kInternal, "a reply of another kind");
}

Result<model::Machine> ConformanceRun::Get(const std::string& id) {
  MUSTER_ASSIGN_OR_RETURN(contract::ProviderReply reply, Ask(contract::GetRequest{id}));
  if (auto* got = std::get_if<contract::GetReply>(&reply)) return *got->machine;
  return Error(Code::kInternal, "a reply of another kind");
}

Result<contract::ListReply> ConformanceRun::List(const contract::ListRequest& request) {
  MUSTER_ASSIGN_OR_RETURN(contract::ProviderReply reply, Ask(request));
  if (auto* list = std::get_if<contract::ListReply>(&reply)) return std::move(*list);
  return Error(Code::kInternal, "a reply of another kind");
}

Result<model::Machine> ConformanceRun::WaitFor(const std::string& id, const std::vector<model::MachineState>& states,
                                               Duration patience) {
  const MonoTime give_up = clock_.Read().mono + patience;
  std::mutex mu;
  std::condition_variable nobody;
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(model::Machine seen, Get(id));
    if (std::ranges::find(states, seen.state) != states.end()) return seen;
    if (seen.state == model::MachineState::kFailed) {
      return Error(Code::kAborted, fmt::format("{} failed: {}", id, seen.last_error));
    }
    if (clock_.Read().mono >= give_up) {
      return Error(Code::kDeadlineExceeded, fmt::format("{} is still {}", id, model::StateName(seen.state)));
    }
    std::unique_lock lock(mu);
    nobody.wait_for(lock, options_.poll_every);
  }
}

std::string ConformanceRun::Ghost(std::string_view name) const {
  return fmt::format("conformance-{}-{}", options_.run_id, name);
}

contract::FenceToken ConformanceRun::Token(std::string_view name, int64_t epoch, int64_t sequence) {
  if (options_.shard_id.empty()) return {.shard_id = Ghost(name), .epoch = epoch, .sequence = sequence};
  if (epoch == 0 && sequence == 0) return {.shard_id = options_.shard_id};
  const auto [first, is_new] = epochs_.try_emplace(std::string(name), next_epochs_);
  if (is_new) next_epochs_ += kEpochsOfAName;
  return {.shard_id = options_.shard_id, .epoch = first->second + epoch, .sequence = sequence};
}

contract::FenceToken ConformanceRun::NextToken() {
  ++calls_;
  if (options_.shard_id.empty()) return Token("life", 1000 + calls_, calls_);
  return Token(fmt::format("life-{}", calls_), 1, calls_);
}

std::vector<std::pair<std::string_view, std::string_view>> ConformanceChecks() {
  std::vector<std::pair<std::string_view, std::string_view>> names;
  for (const ConformanceCheck& check : AllChecks()) names.emplace_back(check.name, check.rule);
  return names;
}

Status CheckAnswers(contract::ProviderPort& provider, const Clock& clock) {
  const ConformanceOptions options;
  const auto reply = ConformanceRun(provider, options, clock).Ask(contract::GetRequest{"conformance"});
  const Code code = reply ? Code::kOk : reply.error().code();
  const bool silent = code == Code::kUnavailable || code == Code::kDeadlineExceeded || code == Code::kUnimplemented ||
                      code == Code::kUnauthenticated || code == Code::kPermissionDenied;
  return silent ? reply.error() : Status();
}

std::vector<CheckResult> RunConformance(contract::ProviderPort& provider, const ConformanceOptions& options,
                                        const Clock& clock, const std::function<void(const CheckResult&)>& seen) {
  ConformanceRun run(provider, options, clock);
  std::vector<CheckResult> results;
  for (const ConformanceCheck& check : AllChecks()) {
    const Finding finding = check.run(run);
    results.push_back({.name = std::string(check.name),
                       .rule = std::string(check.rule),
                       .verdict = finding.verdict,
                       .detail = finding.detail});
    if (seen) seen(results.back());
  }
  return results;
}

}  // namespace muster::provider
