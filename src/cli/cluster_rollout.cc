// `muster scale` and `muster rollout`: how many members a set has, and how far a new template is.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/cluster.h"
#include "cli/cluster_names.h"
#include "cli/cluster_wait.h"
#include "cli/table.h"
#include "model/text_scalars.h"
#include "model/workload_bounds.h"

namespace muster::cli {
namespace {

constexpr Duration kPollInterval = 500ms;

// --- scale

struct ScaleFlags {
  ClusterFlags cluster;
  std::vector<std::string> words;
  int64_t replicas = -1;
};

Result<int> Scale(const ClusterAccess& access, const ScaleFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const std::string name, ParseSetName(flags.words));
  if (flags.replicas < 0) {
    return InvalidArgument("--replicas is missing; say how many members the set is to have, 0 or more");
  }
  if (flags.replicas > model::kMostReplicas) {
    return InvalidArgument(
        fmt::format("--replicas: {} are too many; a set has at most {}", flags.replicas, model::kMostReplicas));
  }
  MUSTER_ASSIGN_OR_RETURN(ClusterSession session, ClusterSession::Open(access, flags.cluster));
  const auto done =
      session.Ask<contract::Done>(contract::ScaleSet{.set = name, .replicas = static_cast<int32_t>(flags.replicas)});
  if (!done) return std::unexpected(NamedNotFound(done.error(), "set", name));
  Print(Printable(fmt::format("set/{} scaled to {}", name, flags.replicas)) + "\n");
  return kOk;
}

// --- rollout

struct RolloutFlags {
  ClusterFlags cluster;
  std::vector<std::string> words;
  std::string timeout = "0s";
  bool once = false;
};

bool IsRolledOut(const contract::SetView& view) {
  const int32_t wanted = view.spec.replicas;
  if (view.spec.kind == model::WorkloadKind::kJob) return view.completed >= wanted;
  return view.members == wanted && view.current == wanted && view.available == wanted;
}

std::string ProgressOf(const contract::SetView& view) {
  const int32_t wanted = view.spec.replicas;
  const std::string failed = view.failed == 0 ? "" : fmt::format(", {} failed", view.failed);
  if (view.spec.kind == model::WorkloadKind::kJob) {
    return fmt::format("job/{}: {} of {} completed, {} running{}", view.spec.name, view.completed, wanted, view.running,
                       failed);
  }
  const int32_t surplus = view.members - wanted;
  return fmt::format("set/{}: {} of {} members have the revision, {} are available{}{}", view.spec.name,
                     std::min(view.current, wanted), wanted, view.available,
                     surplus > 0 ? fmt::format(", {} to be removed", surplus) : "", failed);
}

// OK while the roll-out can still come to its end. A member of the current template that was given up stays Failed
// until it is retried or applied anew; those of an earlier template are replaced.
Status CheckCanEnd(ClusterSession& session, const contract::SetView& view) {
  if (view.failed == 0) return {};
  const std::string& set = view.spec.name;
  const auto members = ListAll(session, contract::ListWorkloads{.set = set});
  if (!members) return members.error();
  const contract::WorkloadView* first = nullptr;
  size_t given_up = 0;
  for (const contract::WorkloadView& member : members->workloads) {
    const bool final = member.phase == model::WorkloadPhase::kFailed && member.revision == view.revision &&
                       member.desired == model::DesiredState::kRunning;
    if (!final) continue;
    if (given_up++ == 0) first = &member;
  }
  if (first == nullptr) return {};
  const std::string& why = first->message.empty() ? first->reason : first->message;
  return {Code::kFailedPrecondition,
          fmt::format("{}/{} comes to no end: {} {} given up, {}{} after {} attempts{}; muster explain {} says more, "
                      "muster retry {} tries it again",
                      view.spec.kind == model::WorkloadKind::kJob ? "job" : "set", set, given_up,
                      given_up == 1 ? "member was" : "members were", given_up == 1 ? "" : "the first ", first->workload,
                      first->attempts, why.empty() ? "" : ": " + why, first->workload, first->workload)};
}

// How far it is.
struct Rollout {
  std::string progress;
  bool done = false;
  Status can_end;  // as CheckCanEnd says
};

Result<Rollout> LookAt(ClusterSession& session, const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(const contract::SetView view, FindSet(session, name));
  if (view.deleting) return Error(Code::kFailedPrecondition, fmt::format("set/{} is being deleted", name));
  Rollout rollout{.progress = ProgressOf(view), .done = IsRolledOut(view), .can_end = {}};
  if (rollout.done) {
    rollout.progress += view.spec.kind == model::WorkloadKind::kJob ? "; done" : "; rolled out";
    return rollout;
  }
  rollout.can_end = CheckCanEnd(session, view);
  const Code code = rollout.can_end.code();
  if (code != Code::kOk && code != Code::kFailedPrecondition) return std::unexpected(std::move(rollout.can_end));
  return rollout;
}

Result<int> Follow(const ClusterAccess& access, const RolloutFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const std::string name, ParseSetName(flags.words));
  const auto timeout = model::ParseDuration(flags.timeout);
  if (!timeout) return InvalidArgument(fmt::format("--timeout: {}", timeout.error().message()));
  MUSTER_ASSIGN_OR_RETURN(ClusterSession session, ClusterSession::Open(access, flags.cluster));
  const MonoTime began = session.now().mono;
  Outage outage(false);
  std::string shown;
  while (true) {
    const Result<Rollout> rollout = LookAt(session, name);
    if (Status lost = outage.Judge(rollout); !lost.ok()) return std::unexpected(std::move(lost));
    if (rollout) {
      if (rollout->progress != shown) Print(Printable(rollout->progress) + "\n");
      std::fflush(stdout);
      shown = rollout->progress;
      if (rollout->done) return kOk;
      if (flags.once) return kFailed;
      if (!rollout->can_end.ok()) return std::unexpected(rollout->can_end);
    }
    if (*timeout > Duration::zero() && session.now().mono - began >= *timeout) {
      return Error(Code::kDeadlineExceeded,
                   fmt::format("set/{} is not rolled out after {}{}; muster describe set/{} shows its members", name,
                               flags.timeout, rollout ? "" : ": " + rollout.error().message(), name));
    }
    session.Pause(kPollInterval);
  }
}

Result<int> Restart(const ClusterAccess& access, const RolloutFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const std::string name, ParseSetName(flags.words));
  MUSTER_ASSIGN_OR_RETURN(ClusterSession session, ClusterSession::Open(access, flags.cluster));
  const auto done = session.Ask<contract::Done>(contract::RestartSet{.set = name});
  if (!done) return std::unexpected(NamedNotFound(done.error(), "set", name));
  Print(Printable(fmt::format("set/{} restarts; muster rollout status set/{} follows it", name, name)) + "\n");
  return kOk;
}

}  // namespace

void AddScale(CommandLine& app, const ClusterAccess& access) {
  const auto flags = std::make_shared<ScaleFlags>();
  Verb verb = app.AddVerb("scale", "Set how many members a set has");
  verb.Arguments("set/NAME", flags->words, "The set")
      .NamesOf("set")
      .Option("--replicas", flags->replicas, "How many members it is to have");
  AddSchedulerFlags(verb, flags->cluster);
  verb.Example("muster scale set/web --replicas 10").Run([access, flags] { return Scale(access, *flags); });
}

void AddRollout(CommandLine& app, const ClusterAccess& access) {
  Verb rollout = app.AddVerb("rollout", "Follow the update of a set, or replace its members");
  rollout.Example("muster rollout status set/web").Example("muster rollout restart set/web");

  const auto status = std::make_shared<RolloutFlags>();
  Verb of_status = rollout.AddVerb("status", "Wait until a set has its template on every member, or a job is done");
  of_status.Arguments("set/NAME", status->words, "The set or job")
      .NamesOf("set")
      .Option("--timeout", status->timeout, "Give up after this long, with exit code 1; 0s waits for ever")
      .Flag("--once", status->once, "Do not wait: exit code 1 if it is not done");
  AddSchedulerFlags(of_status, status->cluster);
  of_status.Example("muster rollout status set/web --timeout 10m").Run([access, status] {
    return Follow(access, *status);
  });

  const auto restart = std::make_shared<RolloutFlags>();
  Verb of_restart = rollout.AddVerb("restart", "Replace every member of a set, within the limits of an update");
  of_restart.Arguments("set/NAME", restart->words, "The set").NamesOf("set");
  AddSchedulerFlags(of_restart, restart->cluster);
  of_restart.Example("muster rollout restart set/web").Run([access, restart] { return Restart(access, *restart); });
}

}  // namespace muster::cli
