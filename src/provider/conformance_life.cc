// One machine's whole life, and what may be asked of it on the way. The checks go in the order of that life.
#include <fmt/format.h>

#include <algorithm>

#include "provider/conformance_run.h"

namespace muster::provider {
namespace {

using contract::TransitionAck;
using model::MachineState;

constexpr int kTries = 5;  // machines that may fail before there is none

const std::map<std::string, std::string>& Metadata() {
  static const std::map<std::string, std::string> metadata = {{"plain", "value"},
                                                              {"empty", ""},
                                                              {"nul", std::string("a\0b", 3)},
                                                              {"unicode", "caf\u00e9 \u2603"},
                                                              {"", "no key"}};
  return metadata;
}

contract::ConfigureRequest ConfigureOf(ConformanceRun& run, std::string cluster) {
  return {.machine_id = run.machine,
          .cluster_id = std::move(cluster),
          .bootstrap_blob = run.options().bootstrap_blob,
          .fence = run.NextToken(),
          .shard_metadata = Metadata()};
}

Finding Create(ConformanceRun& run) {
  if (!run.options().use_machines) return NotShown(run.no_machine);
  std::string why = "no Speculative machine";
  for (int i = 0; i < kTries; ++i) {
    const auto list = run.List({.states = {MachineState::kSpeculative}, .max_results = 1});
    if (!list || list->machines.empty()) break;
    run.machine = list->machines[0]->id;
    const auto ack = run.Transition(contract::CreateRequest{.machine_id = run.machine, .fence = run.NextToken()});
    if (!ack) return Broken(fmt::format("Create of a Speculative machine: {}", ack.error().ToString()));
    if (ack->operation_id.empty()) return Broken("the acknowledgement has no operation id");
    if (ack->machine->id != run.machine) return Broken("the acknowledgement shows another machine");
    const auto idle = run.WaitFor(run.machine, {MachineState::kIdle});
    if (idle && idle->host.empty()) return Broken("Idle without a host");
    if (idle) {
      run.created = *ack;
      return Holds();
    }
    if (idle.error().code() != Code::kAborted) return Broken(idle.error().ToString());
    why = idle.error().message();
  }
  run.machine.clear();
  run.no_machine = why;
  return NotShown(why);
}

Finding CreateAgain(ConformanceRun& run) {
  if (!run.created) return NotShown(run.no_machine);
  const auto again = run.Transition(contract::CreateRequest{.machine_id = run.machine, .fence = run.NextToken()});
  if (!again) return Broken(again.error().ToString());
  return again->operation_id == run.created->operation_id ? Holds()
                                                          : Broken("a repeated Create got another operation id");
}

Finding FenceFirst(ConformanceRun& run) {
  if (!run.created) return NotShown(run.no_machine);
  const std::string_view name = "fence-before-repetition";
  run.CodeOf(contract::CreateRequest{.machine_id = run.machine, .fence = run.Token(name, 2, 9)});
  const Code code = run.CodeOf(contract::CreateRequest{.machine_id = run.machine, .fence = run.Token(name, 1, 1)});
  return code == Code::kFailedPrecondition ? Holds() : Broken(fmt::format("an older token got {}", CodeName(code)));
}

Finding Configure(ConformanceRun& run) {
  if (!run.created) return NotShown(run.no_machine);
  const auto ack = run.Transition(ConfigureOf(run, run.options().cluster));
  if (!ack) return Broken(ack.error().ToString());
  const auto ready = run.WaitFor(run.machine, {MachineState::kConfigured});
  if (!ready) return Broken(ready.error().ToString());
  run.configured = *ack;
  return ready->cluster == run.options().cluster ? Holds() : Broken(fmt::format("the cluster is {}", ready->cluster));
}

Finding Echo(ConformanceRun& run) {
  if (!run.configured) return NotShown(run.no_machine);
  const auto got = run.Get(run.machine);
  const auto list = run.List({.states = {MachineState::kConfigured}});
  if (!got || !list) return Broken("the machine cannot be read");
  const auto listed =
      std::ranges::find(list->machines, run.machine, [](const auto& m) -> const std::string& { return m->id; });
  if (run.configured->machine->shard_metadata != Metadata()) return Broken("the acknowledgement has other metadata");
  if (got->shard_metadata != Metadata()) return Broken("Get has other metadata");
  if (listed == list->machines.end()) return Broken("List does not show the machine");
  return (*listed)->shard_metadata == Metadata() ? Holds() : Broken("List has other metadata");
}

Finding Delta(ConformanceRun& run) {
  if (!run.created) return NotShown(run.no_machine);
  // The cursor is from before the drain that follows.
  const auto before = run.List();
  if (!before) return Broken(before.error().ToString());
  if (!run.configured) return NotShown("the machine was never Configured");
  const auto ack = run.Transition(contract::DrainRequest{
      .machine_id = run.machine, .grace_period_seconds = run.options().grace_seconds, .fence = run.NextToken()});
  if (!ack) return Broken(fmt::format("Drain: {}", ack.error().ToString()));
  run.drained = *ack;
  const auto delta = run.List({.states = {}, .max_results = 0, .since_revision = before->revision});
  if (!delta) return Broken(delta.error().ToString());
  const bool shown =
      std::ranges::any_of(delta->machines, [&](const auto& machine) { return machine->id == run.machine; });
  if (!shown) return Broken("a machine that changed is not in the list since the revision before");
  return delta->revision != before->revision ? Holds() : Broken("the revision did not advance");
}

Finding ConfigureAgain(ConformanceRun& run) {
  if (!run.configured) return NotShown(run.no_machine);
  const auto again = run.Transition(ConfigureOf(run, run.options().cluster));
  if (!again) return Broken(again.error().ToString());
  return again->operation_id == run.configured->operation_id ? Holds()
                                                             : Broken("a repeated Configure got another operation id");
}

Finding OtherCluster(ConformanceRun& run) {
  if (!run.configured) return NotShown(run.no_machine);
  const auto stolen = run.Transition(ConfigureOf(run, run.options().cluster + "-other"));
  return stolen ? Broken("Configure for another cluster was acknowledged") : Holds();
}

Finding DeleteBound(ConformanceRun& run) {
  if (!run.configured) return NotShown(run.no_machine);
  const Code code = run.CodeOf(contract::DeleteRequest{.machine_id = run.machine, .fence = run.NextToken()});
  if (code == Code::kOk) return Broken("a Configured machine was deleted");
  return code == Code::kFailedPrecondition ? Broken("refused as fenced") : Holds();
}

Finding DrainGrace(ConformanceRun& run) {
  if (!run.drained) return NotShown(run.no_machine);
  const auto idle = run.WaitFor(run.machine, {MachineState::kIdle},
                                std::chrono::seconds(run.options().grace_seconds) + run.options().drain_margin);
  if (!idle) return Broken(idle.error().ToString());
  run.drain_ended = true;
  return Holds();
}

Finding DrainClears(ConformanceRun& run) {
  if (!run.drain_ended) return NotShown(run.no_machine);
  const auto idle = run.Get(run.machine);
  if (!idle) return Broken(idle.error().ToString());
  if (!idle->cluster.empty()) return Broken(fmt::format("the cluster is still {}", idle->cluster));
  return idle->shard_metadata.empty() ? Holds() : Broken("the metadata is still there");
}

Finding DrainAgain(ConformanceRun& run) {
  if (!run.drain_ended) return NotShown(run.no_machine);
  const auto again = run.Transition(contract::DrainRequest{
      .machine_id = run.machine, .grace_period_seconds = run.options().grace_seconds, .fence = run.NextToken()});
  if (!again) return Broken(again.error().ToString());
  return again->operation_id == run.drained->operation_id ? Holds()
                                                          : Broken("a repeated Drain got another operation id");
}

Finding Delete(ConformanceRun& run) {
  if (!run.created) return NotShown(run.no_machine);
  if (run.configured && !run.drain_ended) return NotShown("the drain has not ended");
  const auto ack = run.Transition(contract::DeleteRequest{.machine_id = run.machine, .fence = run.NextToken()});
  if (!ack && ack.error().code() == Code::kUnimplemented) return NotShown("this machine cannot be given back");
  if (!ack) return Broken(ack.error().ToString());
  const auto gone = run.WaitFor(run.machine, {MachineState::kSpeculative});
  if (!gone) return Broken(gone.error().ToString());
  run.deleted = *ack;
  return gone->host.empty() ? Holds() : Broken("Speculative with a host");
}

Finding DeleteAgain(ConformanceRun& run) {
  if (!run.deleted) return NotShown(run.no_machine);
  const auto again = run.Transition(contract::DeleteRequest{.machine_id = run.machine, .fence = run.NextToken()});
  if (!again) return Broken(again.error().ToString());
  return again->operation_id == run.deleted->operation_id ? Holds()
                                                          : Broken("a repeated Delete got another operation id");
}

}  // namespace

std::vector<ConformanceCheck> LifeChecks() {
  return {
      {"create", "Create takes a Speculative machine to Idle, with a host, under an operation id.", Create},
      {"create-again", "A repeated Create gets the same operation id.", CreateAgain},
      {"fence-before-repetition", "The fence is looked at before the repetition.", FenceFirst},
      {"configure", "Configure takes an Idle machine to Configured, bound to the cluster.", Configure},
      {"configure-echo", "shard_metadata comes back byte for byte from the acknowledgement, Get and List.", Echo},
      {"configure-again", "A repeated Configure gets the same operation id.", ConfigureAgain},
      {"configure-other-cluster", "A bound machine is not given to another cluster.", OtherCluster},
      {"delete-bound", "Delete of a Configured machine is refused, and not as fenced.", DeleteBound},
      {"list-delta", "A list since a revision holds what changed, and its revision advances.", Delta},
      {"drain", "A drain ends, at the latest when its grace is over.", DrainGrace},
      {"drain-clears", "cluster and shard_metadata are cleared together when a drain ends.", DrainClears},
      {"drain-again", "A repeated Drain gets the same operation id.", DrainAgain},
      {"delete", "Delete takes an Idle machine back to Speculative, without a host, under the same id.", Delete},
      {"delete-again", "A repeated Delete gets the same operation id.", DeleteAgain},
  };
}

}  // namespace muster::provider
