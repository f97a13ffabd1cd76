#include "cli/agent_conformance.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>

namespace muster::cli {
namespace {

using contract::ActualState;
using provider::Verdict;
using Service = rpc::AgentProbe::Service;

struct Finding {
  Verdict verdict = Verdict::kHolds;
  std::string detail;
};
Finding Holds() { return {}; }
Finding Broken(std::string detail) { return {.verdict = Verdict::kBroken, .detail = std::move(detail)}; }
Finding NotShown(std::string detail) { return {.verdict = Verdict::kNotShown, .detail = std::move(detail)}; }

// What the checks share.
class Run {
 public:
  Run(rpc::AgentProbe& of, const AgentConformanceOptions& with, const Clock& clock)
      : agent(of), options(with), clock_(clock) {}

  // By which service the workloads of this run are applied.
  Service service() const { return options.image.empty() ? Service::kNative : Service::kPersys; }
  std::string Name(std::string_view what) const { return fmt::format("conformance-{}-{}", options.run_id, what); }

  contract::ApplyOnAgent Request(std::string_view what, std::string revision, const std::string& script) const {
    contract::ApplyOnAgent apply{.workload = Name(what), .revision = std::move(revision)};
    apply.spec.type = options.image.empty() ? model::WorkloadType::kProcess : model::WorkloadType::kContainer;
    apply.spec.image = options.image;
    apply.spec.command = {"/bin/sh", "-c", script};
    apply.spec.grace = 1s;
    return apply;
  }
  Result<contract::AppliedOnAgent> Apply(const contract::ApplyOnAgent& apply) {
    MUSTER_ASSIGN_OR_RETURN(contract::AgentReply reply, agent.Ask(service(), apply));
    made_.insert(apply.workload);
    return std::get<contract::AppliedOnAgent>(std::move(reply));
  }
  Result<contract::WorkloadStatus> Get(const std::string& workload) {
    MUSTER_ASSIGN_OR_RETURN(contract::AgentReply reply,
                            agent.Ask(service(), contract::GetStatusOnAgent{.workload = workload}));
    return std::get<contract::WorkloadStatus>(std::move(reply));
  }
  Result<contract::DeletedOnAgent> Delete(const std::string& workload) {
    MUSTER_ASSIGN_OR_RETURN(contract::AgentReply reply,
                            agent.Ask(service(), contract::DeleteOnAgent{.workload = workload, .grace = 1s}));
    return std::get<contract::DeletedOnAgent>(std::move(reply));
  }
  Result<contract::ListedOnAgent> List(Service by) {
    MUSTER_ASSIGN_OR_RETURN(contract::AgentReply reply, agent.Ask(by, contract::ListOnAgent{}));
    return std::get<contract::ListedOnAgent>(std::move(reply));
  }
  // Waits until the workload is in the state; why not, if it does not come there.
  Finding WaitFor(const std::string& workload, ActualState state, const std::string& revision = "") {
    const MonoTime end = clock_.Read().mono + options.patience;
    while (true) {
      const auto seen = Get(workload);
      if (seen && seen->actual == state && (revision.empty() || seen->revision == revision)) return Holds();
      const bool over = clock_.Read().mono >= end;
      const bool failed = seen && seen->actual == ActualState::kFailed;
      if (!seen && seen.error().code() != Code::kUnavailable) return Broken("its status: " + seen.error().ToString());
      if (seen && (over || failed)) {
        return Broken(fmt::format("it is {} and not {}: {}", contract::ActualStateName(seen->actual),
                                  contract::ActualStateName(state), seen->message));
      }
      if (over) return Broken("its status: " + seen.error().ToString());
      Pause();
    }
  }
  // Until the agent does not have it any more.
  bool WaitUntilGone(const std::string& workload) {
    for (const MonoTime end = clock_.Read().mono + options.patience; clock_.Read().mono < end; Pause()) {
      if (const auto seen = Get(workload); !seen && SaysNotFound(seen.error())) return true;
    }
    return false;
  }
  static bool SaysNotFound(const Status& status) {
    std::string text = status.message();
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return status.code() == Code::kNotFound || text.contains("not found");
  }
  bool ServesNative() {
    if (!native_) {
      const auto list = agent.Ask(Service::kNative, contract::ListOnAgent{});
      native_ = list.has_value() || list.error().code() != Code::kUnimplemented;
    }
    return *native_;
  }
  // Takes away whatever the checks have left.
  void CleanUp() {
    for (const std::string& workload : made_) {
      if (Delete(workload)) WaitUntilGone(workload);
    }
  }

  rpc::AgentProbe& agent;
  const AgentConformanceOptions& options;

 private:
  void Pause() const {
    std::mutex mu;
    std::condition_variable nobody;
    std::unique_lock lock(mu);
    nobody.wait_for(lock, options.poll_every);
  }

  const Clock& clock_;
  std::optional<bool> native_;
  std::set<std::string> made_;
};

struct Check {
  std::string_view name;
  std::string_view rule;
  bool uses_workloads = false;
  Finding (*ask)(Run&);
};

Finding Refusal(const Status& error) { return Broken("it answered " + error.ToString()); }

// --- reading

Finding CheckHealth(Run& run) {
  const auto health = run.agent.Health();
  if (!health) return Refusal(health.error());
  if (health->version.empty()) return Broken("it has no version");
  if (health->runtimes.empty()) return Broken("it names no runtime");
  for (const double percent : {health->memory_percent, health->cpu_percent, health->disk_percent}) {
    if (percent < 0 || percent > 100) return Broken(fmt::format("{} is no share in percent", percent));
  }
  return Holds();
}

Finding CheckStatusUnknown(Run& run) {
  const auto reply = run.agent.Ask(Service::kPersys, contract::GetStatusOnAgent{.workload = run.Name("nothing")});
  if (reply) return Broken("it answered with a status");
  return Run::SaysNotFound(reply.error()) ? Holds() : Refusal(reply.error());
}

Finding CheckDeleteUnknown(Run& run) {
  const auto reply = run.agent.Ask(Service::kPersys, contract::DeleteOnAgent{.workload = run.Name("nothing")});
  if (!reply) return Run::SaysNotFound(reply.error()) ? Holds() : Refusal(reply.error());
  const auto& deleted = std::get<contract::DeletedOnAgent>(*reply);
  if (deleted.success || Run::SaysNotFound(Status(Code::kUnknown, deleted.message))) return Holds();
  return Broken("success is false: " + deleted.message);
}

Finding CheckListStates(Run& run) {
  const auto list = run.List(Service::kPersys);
  if (!list) return Refusal(list.error());
  if (list->workloads.empty()) return NotShown("the agent has no workload");
  std::set<std::string> ids;
  for (const contract::WorkloadStatus& status : list->workloads) {
    if (status.workload.empty()) return Broken("a row has no id");
    if (!ids.insert(status.workload).second) return Broken(status.workload + " is listed twice");
  }
  return Holds();
}

Finding CheckListFilter(Run& run) {
  const auto all = run.agent.ListOfType(model::WorkloadType::kUnspecified);
  if (!all) return Refusal(all.error());
  if (all->workloads.empty()) return NotShown("the agent has no workload");
  for (const model::WorkloadType type :
       {model::WorkloadType::kContainer, model::WorkloadType::kCompose, model::WorkloadType::kVm}) {
    const auto some = run.agent.ListOfType(type);
    if (!some) return Refusal(some.error());
    for (const contract::WorkloadStatus& status : some->workloads) {
      if (status.type == type) continue;
      return Broken(fmt::format("a list of {} has {}, which is a {}", model::WorkloadTypeName(type), status.workload,
                                model::WorkloadTypeName(status.type)));
    }
  }
  return Holds();
}

Finding CheckActionsLimit(Run& run) {
  const auto all = run.agent.Actions({});
  if (!all) return Refusal(all.error());
  if (all->size() < 2) return NotShown("the agent tells of fewer than two actions");
  const auto one = run.agent.Actions({.limit = 1});
  if (!one) return Refusal(one.error());
  return one->size() == 1 ? Holds() : Broken(fmt::format("a limit of 1 gave {} actions", one->size()));
}

Finding CheckActionsNewest(Run& run) {
  const auto actions = run.agent.Actions({.newest_first = true});
  if (!actions) return Refusal(actions.error());
  if (actions->size() < 2) return NotShown("the agent tells of fewer than two actions");
  const bool sorted = std::ranges::is_sorted(*actions, std::ranges::greater(), &rpc::AgentAction::created_at);
  return sorted ? Holds() : Broken("an older action comes before a newer one");
}

// --- refusing

Finding RefusedAndNotKept(Run& run, const Result<contract::AppliedOnAgent>& reply, const std::string& workload) {
  if (reply && reply->applied) return Broken("it was applied");
  const auto list = run.List(Service::kPersys);
  if (!list) return Refusal(list.error());
  for (const contract::WorkloadStatus& status : list->workloads) {
    if (status.workload == workload) return Broken("it was refused, and is listed");
  }
  return Holds();
}

Result<contract::AppliedOnAgent> ApplyByPersys(Run& run, const contract::ApplyOnAgent& apply) {
  MUSTER_ASSIGN_OR_RETURN(contract::AgentReply reply, run.agent.Ask(Service::kPersys, apply));
  return std::get<contract::AppliedOnAgent>(std::move(reply));
}

Finding CheckApplyNoId(Run& run) {
  contract::ApplyOnAgent apply{.revision = "1"};
  apply.spec.type = model::WorkloadType::kContainer;
  apply.spec.image = "localhost/conformance";
  return RefusedAndNotKept(run, ApplyByPersys(run, apply), "");
}

Finding CheckApplyNoSpec(Run& run) {
  const std::string name = run.Name("no-spec");
  return RefusedAndNotKept(run, run.agent.ApplyWithoutSpec(name), name);
}

Finding CheckNoRuntime(Run& run) {
  const auto health = run.agent.Health();
  if (!health) return Refusal(health.error());
  const auto vm = health->runtimes.find("vm");
  const bool may_have = vm != health->runtimes.end() && vm->second.contains("ok");
  if (may_have || health->runtimes.contains("libvirt")) return NotShown("the agent has a runtime for VMs");
  contract::ApplyOnAgent apply{.workload = run.Name("vm"), .revision = "1"};
  apply.spec.type = model::WorkloadType::kVm;
  apply.spec.image = "none";
  const auto reply = ApplyByPersys(run, apply);
  const std::string text = reply ? reply->message : reply.error().message();
  if (reply && reply->applied) return Broken("a VM was accepted without a runtime for it");
  if (!text.contains("runtime not available")) return Broken("the refusal does not say so: " + text);
  return Holds();
}

// --- muster.v1.Agent

Finding CheckNativeStatus(Run& run) {
  if (!run.ServesNative()) return NotShown("the agent does not serve muster.v1.Agent");
  const auto reply = run.agent.Ask(Service::kNative, contract::GetStatusOnAgent{.workload = run.Name("nothing")});
  if (reply) return Broken("it answered with a status");
  return reply.error().code() == Code::kNotFound ? Holds() : Refusal(reply.error());
}

Finding CheckNativeEpoch(Run& run) {
  if (!run.ServesNative()) return NotShown("the agent does not serve muster.v1.Agent");
  contract::ApplyOnAgent apply = run.Request("epoch", "1", "exit 0");
  apply.spec.type = model::WorkloadType::kProcess;
  apply.spec.image.clear();
  apply.stamp = {.epoch = UINT64_C(1) << 60, .sequence = 1};
  const auto reply = run.agent.Ask(Service::kNative, apply);
  if (reply) return Broken("a request of an epoch that never was is accepted");
  return reply.error().code() == Code::kFailedPrecondition ? Holds() : Refusal(reply.error());
}

Finding CheckNativeLogs(Run& run) {
  if (!run.ServesNative()) return NotShown("the agent does not serve muster.v1.Agent");
  const auto logs = run.agent.Logs(run.Name("nothing"));
  if (logs) return Broken("it has logs");
  return logs.error().code() == Code::kNotFound ? Holds() : Refusal(logs.error());
}

// --- the life of a workload

// The first process of a container ends by SIGTERM only if it says so.
constexpr const char* kStays = "trap 'exit 0' TERM; echo first words; while :; do sleep 0.1; done";

Finding CheckApplied(Run& run) {
  const auto reply = run.Apply(run.Request("life", "1", kStays));
  if (!reply) return Refusal(reply.error());
  if (!reply->applied) return Broken("applied is false: " + reply->message);
  if (reply->skipped) return Broken("a new workload was skipped");
  const contract::WorkloadStatus& status = reply->status;
  if (status.workload != run.Name("life") || status.revision != "1")
    return Broken("the status is not that of the workload");
  return Holds();
}

Finding CheckRuns(Run& run) { return run.WaitFor(run.Name("life"), ActualState::kRunning, "1"); }

Finding CheckSkipped(Run& run) {
  const auto reply = run.Apply(run.Request("life", "1", kStays));
  if (!reply) return Refusal(reply.error());
  return reply->skipped ? Holds() : Broken("it was applied again");
}

Finding CheckListed(Run& run) {
  const auto list = run.List(run.service());
  if (!list) return Refusal(list.error());
  for (const contract::WorkloadStatus& status : list->workloads) {
    if (status.workload != run.Name("life")) continue;
    return status.revision == "1" ? Holds() : Broken("it is listed with revision " + status.revision);
  }
  return Broken("it is not listed");
}

Finding CheckLogs(Run& run) {
  if (!run.ServesNative()) return NotShown("the agent does not serve muster.v1.Agent");
  const auto logs = run.agent.Logs(run.Name("life"));
  if (!logs) return Refusal(logs.error());
  return logs->contains("first words") ? Holds() : Broken("they do not have what it wrote: " + logs->substr(0, 200));
}

Finding CheckRevision(Run& run) {
  const auto reply = run.Apply(run.Request("life", "2", kStays));
  if (!reply) return Refusal(reply.error());
  if (!reply->applied || reply->skipped) return Broken("a new revision was not applied: " + reply->message);
  return run.WaitFor(run.Name("life"), ActualState::kRunning, "2");
}

Finding CheckStopped(Run& run) {
  contract::ApplyOnAgent apply = run.Request("life", "2", kStays);
  apply.run = false;
  const auto reply = run.Apply(apply);
  if (!reply) return Refusal(reply.error());
  return run.WaitFor(run.Name("life"), ActualState::kStopped);
}

Finding CheckStartedAgain(Run& run) {
  const auto reply = run.Apply(run.Request("life", "2", kStays));
  if (!reply) return Refusal(reply.error());
  return run.WaitFor(run.Name("life"), ActualState::kRunning);
}

Finding JobEnds(Run& run, std::string_view what, const std::string& script, ActualState state) {
  contract::ApplyOnAgent apply = run.Request(what, "1", script);
  apply.spec.restart = model::RestartPolicy::kNever;
  const auto reply = run.Apply(apply);
  if (!reply) return Refusal(reply.error());
  const Finding ended = run.WaitFor(apply.workload, state);
  if (ended.verdict != Verdict::kHolds) return ended;
  if (state != ActualState::kFailed) return Holds();
  const auto status = run.Get(apply.workload);
  if (!status) return Refusal(status.error());
  return status->message.empty() ? Broken("its message does not say why") : Holds();
}

Finding CheckJobDone(Run& run) { return JobEnds(run, "done", "exit 0", ActualState::kStopped); }
Finding CheckJobFailed(Run& run) { return JobEnds(run, "failed", "echo no luck; exit 3", ActualState::kFailed); }

Finding CheckActionsTell(Run& run) {
  const auto actions = run.agent.Actions({.workload = run.Name("life")});
  if (!actions) return Refusal(actions.error());
  for (const rpc::AgentAction& action : *actions) {
    if (action.workload != run.Name("life")) return Broken("an action of another workload is listed");
    if (action.type == "apply_workload" && action.status == "completed") return Holds();
  }
  return Broken("no apply_workload of it is completed");
}

Finding CheckDeleted(Run& run) {
  const auto reply = run.Delete(run.Name("life"));
  if (!reply) return Refusal(reply.error());
  if (!reply->success) return Broken("success is false: " + reply->message);
  return run.WaitUntilGone(run.Name("life")) ? Holds() : Broken("its status is still known");
}

Finding CheckDeletedAgain(Run& run) {
  const auto reply = run.Delete(run.Name("life"));
  if (!reply) return Refusal(reply.error());
  return reply->success ? Holds() : Broken("success is false: " + reply->message);
}

constexpr Check kChecks[] = {
    {"applied", "A new workload is applied, not skipped, and its status has its id and revision", true, CheckApplied},
    {"runs", "What was applied is Running in the end, at its revision", true, CheckRuns},
    {"skipped", "The revision that runs is skipped when it is applied again", true, CheckSkipped},
    {"listed", "ListWorkloads has it, once, at its revision", true, CheckListed},
    {"logs", "muster.v1.Agent/Logs has what it wrote", true, CheckLogs},
    {"revision", "Another revision replaces what runs", true, CheckRevision},
    {"stopped", "With desired state Stopped it is Stopped, and known", true, CheckStopped},
    {"started-again", "With desired state Running it runs again", true, CheckStartedAgain},
    {"job-done", "A workload that is not restarted and exits with 0 is Stopped", true, CheckJobDone},
    {"job-failed", "One that exits with another code is Failed, and its message says why", true, CheckJobFailed},
    {"health", "HealthCheck has a version, the state of each runtime, and shares in percent", false, CheckHealth},
    {"status-unknown", "The status of a workload that it does not have is an error with \"not found\"", false,
     CheckStatusUnknown},
    {"delete-unknown", "Deleting a workload that it does not have is no failure", false, CheckDeleteUnknown},
    {"list-states", "Every workload is listed once, with an id", false, CheckListStates},
    {"list-filter", "ListWorkloads with a type has workloads of that type only", false, CheckListFilter},
    {"actions-limit", "ListActions gives no more than its limit", false, CheckActionsLimit},
    {"actions-newest", "ListActions with newest_first begins with the newest", false, CheckActionsNewest},
    {"apply-no-id", "An apply without an id is refused, and nothing is kept", false, CheckApplyNoId},
    {"apply-no-spec", "An apply that does not say what to run is refused, and nothing is kept", false,
     CheckApplyNoSpec},
    {"no-runtime", "A type without a runtime is refused with \"runtime not available\"", false, CheckNoRuntime},
    {"native-status-unknown", "muster.v1.Agent/GetStatus of an unknown workload is NOT_FOUND", false,
     CheckNativeStatus},
    {"native-epoch", "A stamp of another epoch is refused with FAILED_PRECONDITION", false, CheckNativeEpoch},
    {"native-logs-unknown", "muster.v1.Agent/Logs of an unknown workload is NOT_FOUND", false, CheckNativeLogs},
    {"actions-tell", "ListActions tells that a workload was applied", true, CheckActionsTell},
    {"deleted", "A workload that was deleted ends, and is not known any more", true, CheckDeleted},
    {"deleted-again", "Deleting it again succeeds", true, CheckDeletedAgain},
};

}  // namespace

std::vector<std::pair<std::string_view, std::string_view>> AgentConformanceChecks() {
  std::vector<std::pair<std::string_view, std::string_view>> all;
  for (const Check& check : kChecks) all.emplace_back(check.name, check.rule);
  return all;
}

std::vector<provider::CheckResult> RunAgentConformance(rpc::AgentProbe& agent, const AgentConformanceOptions& options,
                                                       const Clock& clock,
                                                       const std::function<void(const provider::CheckResult&)>& seen) {
  Run run(agent, options, clock);
  std::vector<provider::CheckResult> results;
  for (const Check& check : kChecks) {
    const bool skipped = check.uses_workloads && !options.use_workloads;
    const Finding finding = skipped ? NotShown("it needs a workload; --use-workloads allows that") : check.ask(run);
    results.push_back({.name = std::string(check.name),
                       .rule = std::string(check.rule),
                       .verdict = finding.verdict,
                       .detail = finding.detail});
    if (seen) seen(results.back());
  }
  if (options.use_workloads) run.CleanUp();
  return results;
}

}  // namespace muster::cli
