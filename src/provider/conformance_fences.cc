// Ids and fences. Nearly all of it is asked about machines that do not exist: NOT_FOUND says that the fence was passed.
//
// Tokens that must be refused here are older in both epoch and sequence, unless the check is about one of the two: so
// each check breaks for its own reason only.
#include <fmt/format.h>

#include "provider/conformance_run.h"

namespace muster::provider {
namespace {

Finding Expect(std::string_view what, Code found, Code expected) {
  if (found == expected) return Holds();
  return Broken(fmt::format("{}: {} instead of {}", what, CodeName(found), CodeName(expected)));
}

// Create calls on an absent machine, one after the other: each passes (NOT_FOUND) or is fenced.
Code CreateCode(ConformanceRun& run, const std::string& machine, const contract::FenceToken& token) {
  return run.CodeOf(contract::CreateRequest{.machine_id = machine, .fence = token});
}

Finding EmptyId(ConformanceRun& run) {
  const contract::ProviderRequest requests[] = {contract::CreateRequest{}, contract::ConfigureRequest{},
                                                contract::DrainRequest{}, contract::DeleteRequest{},
                                                contract::GetRequest{}};
  constexpr std::string_view kNames[] = {"Create", "Configure", "Drain", "Delete", "Get"};
  for (size_t i = 0; i < 5; ++i) {
    Finding finding = Expect(kNames[i], run.CodeOf(requests[i]), Code::kInvalidArgument);
    if (finding.verdict != Verdict::kHolds) return finding;
  }
  return Holds();
}

Finding UnknownId(ConformanceRun& run) {
  const std::string ghost = run.Ghost("unknown-id");
  const contract::ProviderRequest requests[] = {
      contract::CreateRequest{.machine_id = ghost, .fence = run.NextToken()},
      contract::ConfigureRequest{.machine_id = ghost, .cluster_id = "c", .fence = run.NextToken()},
      contract::DrainRequest{.machine_id = ghost, .fence = run.NextToken()},
      contract::DeleteRequest{.machine_id = ghost, .fence = run.NextToken()}, contract::GetRequest{ghost}};
  constexpr std::string_view kNames[] = {"Create", "Configure", "Drain", "Delete", "Get"};
  for (size_t i = 0; i < 5; ++i) {
    Finding finding = Expect(kNames[i], run.CodeOf(requests[i]), Code::kNotFound);
    if (finding.verdict != Verdict::kHolds) return finding;
  }
  return Holds();
}

// Both tokens on one machine, the second has to give `expected`; the first one passes.
Finding Pair(ConformanceRun& run, std::string_view name, std::pair<int64_t, int64_t> first,
             std::pair<int64_t, int64_t> second, Code expected) {
  const contract::FenceToken opening = run.Token(name, first.first, first.second);
  const contract::FenceToken token = run.Token(name, second.first, second.second);
  const std::string ghost = run.Ghost(name);
  Finding passed = Expect("the first token", CreateCode(run, ghost, opening), Code::kNotFound);
  if (passed.verdict != Verdict::kHolds) return passed;
  return Expect(fmt::format("({}, {}) after ({}, {})", second.first, second.second, first.first, first.second),
                CreateCode(run, ghost, token), expected);
}

// As Pair, where the second token has to be fenced. A provider that keeps no marks for absent machines breaks another
// rule; here it may show this one on a machine that exists, by drains that cannot be accepted.
Finding FencedPair(ConformanceRun& run, std::string_view name, std::pair<int64_t, int64_t> first,
                   std::pair<int64_t, int64_t> second) {
  Finding absent = Pair(run, name, first, second, Code::kFailedPrecondition);
  if (absent.verdict == Verdict::kHolds) return absent;
  const auto list = run.List({.states = {model::MachineState::kSpeculative}, .max_results = 1});
  if (!list || list->machines.empty()) return absent;
  const std::string& id = list->machines[0]->id;
  run.CodeOf(contract::DrainRequest{.machine_id = id, .fence = run.Token(name, first.first, first.second)});
  const Code code =
      run.CodeOf(contract::DrainRequest{.machine_id = id, .fence = run.Token(name, second.first, second.second)});
  return code == Code::kFailedPrecondition ? Holds() : absent;
}

Finding OlderSequence(ConformanceRun& run) { return FencedPair(run, "fence-older-sequence", {2, 9}, {2, 8}); }
Finding OlderEpoch(ConformanceRun& run) { return FencedPair(run, "fence-older-epoch", {2, 3}, {1, 9}); }
Finding SameToken(ConformanceRun& run) { return FencedPair(run, "fence-same-token", {2, 9}, {2, 9}); }
Finding NewEpoch(ConformanceRun& run) { return Pair(run, "fence-new-epoch", {2, 9}, {3, 1}, Code::kNotFound); }
Finding UnknownMachine(ConformanceRun& run) {
  return Pair(run, "fence-unknown-machine", {2, 9}, {1, 1}, Code::kFailedPrecondition);
}
Finding ZeroToken(ConformanceRun& run) { return FencedPair(run, "fence-zero-token", {1, 1}, {0, 0}); }

Finding PerMachine(ConformanceRun& run) {
  const std::string_view name = "fence-per-machine";
  CreateCode(run, run.Ghost("fence-per-machine-a"), run.Token(name, 9, 9));
  return Expect("a first token for another machine",
                CreateCode(run, run.Ghost("fence-per-machine-b"), run.Token(name, 9, 1)), Code::kNotFound);
}

Finding PerShard(ConformanceRun& run) {
  if (!run.options().shard_id.empty()) return NotShown("the calls are those of one shard");
  const std::string ghost = run.Ghost("fence-per-shard");
  CreateCode(run, ghost, run.Token("fence-per-shard-a", 9, 9));
  return Expect("a first token of another shard", CreateCode(run, ghost, run.Token("fence-per-shard-b", 1, 1)),
                Code::kNotFound);
}

Finding NoToken(ConformanceRun& run) {
  const std::string ghost = run.Ghost("fence-no-token");
  CreateCode(run, ghost, run.Token("fence-no-token", 9, 9));
  for (int i = 0; i < 2; ++i) {
    const Code code = CreateCode(run, ghost, {});
    if (code == Code::kInvalidArgument)
      return NotShown("the provider demands a token with every call, as one with TLS may");
    Finding finding = Expect("a call without a token", code, Code::kNotFound);
    if (finding.verdict != Verdict::kHolds) return finding;
  }
  return Holds();
}

Finding FailedCall(ConformanceRun& run) {
  const auto list = run.List({.states = {model::MachineState::kSpeculative}, .max_results = 1});
  if (!list || list->machines.empty()) return NotShown("no Speculative machine");
  const std::string id = list->machines[0]->id;
  const std::string_view name = "fence-failed-call";
  const Code failed = run.CodeOf(contract::DrainRequest{.machine_id = id, .fence = run.Token(name, 2, 9)});
  if (failed == Code::kOk) return Broken("a Drain of a Speculative machine was accepted");
  return Expect("an older token after a call that failed",
                run.CodeOf(contract::DrainRequest{.machine_id = id, .fence = run.Token(name, 1, 1)}),
                Code::kFailedPrecondition);
}

Finding OnlyFences(ConformanceRun& run) {
  const auto list = run.List({.states = {model::MachineState::kSpeculative}, .max_results = 1});
  if (!list || list->machines.empty()) return NotShown("no Speculative machine");
  const Code code = run.CodeOf(contract::DrainRequest{.machine_id = list->machines[0]->id, .fence = run.NextToken()});
  if (code == Code::kOk) return Broken("a Drain of a Speculative machine was accepted");
  if (code == Code::kFailedPrecondition) return Broken("a Drain of a Speculative machine was called fenced");
  return Holds();
}

}  // namespace

std::vector<ConformanceCheck> FenceChecks() {
  return {
      {"empty-id", "A call without a machine id is refused with INVALID_ARGUMENT.", EmptyId},
      {"unknown-id", "A call on a machine that does not exist is refused with NOT_FOUND.", UnknownId},
      {"fence-older-sequence", "A token with an older sequence in the same epoch is fenced.", OlderSequence},
      {"fence-older-epoch", "A token with an older epoch is fenced, whatever its sequence.", OlderEpoch},
      {"fence-same-token", "A token used before is fenced.", SameToken},
      {"fence-new-epoch", "A newer epoch passes, whatever its sequence.", NewEpoch},
      {"fence-unknown-machine", "The mark is kept for machines that do not exist, and looked at before existence.",
       UnknownMachine},
      {"fence-zero-token", "With a shard named, (0, 0) is an ordinary token.", ZeroToken},
      {"fence-per-machine", "A mark belongs to one machine.", PerMachine},
      {"fence-per-shard", "A mark belongs to one shard.", PerShard},
      {"fence-no-token", "A call without a token is not fenced.", NoToken},
      {"fence-failed-call", "A token that passed is spent, also when the call then fails.", FailedCall},
      {"precondition-means-fenced", "FAILED_PRECONDITION means fenced and nothing else.", OnlyFences},
  };
}

}  // namespace muster::provider
