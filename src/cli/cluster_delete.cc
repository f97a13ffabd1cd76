// `muster delete`: what a cluster is to run no more, by name or from files, until it is gone.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/cluster.h"
#include "cli/cluster_files.h"
#include "cli/cluster_names.h"
#include "cli/cluster_wait.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "model/text_scalars.h"

namespace muster::cli {
namespace {

constexpr Duration kPollInterval = 200ms;

struct DeleteFlags {
  ClusterFlags cluster;
  std::vector<std::string> words;
  std::vector<std::string> files;
  std::string timeout = "5m";
  bool force = false;
  bool ignore_missing = false;
  bool no_wait = false;
};

struct Deletion {
  contract::ObjectKind kind;
  std::string name;

  std::string Object() const { return fmt::format("{}/{}", contract::ObjectKindName(kind), name); }
  // Workloads stop on their nodes first, and sets wait for their members; the others are gone with the answer.
  bool TakesTime() const { return kind == contract::ObjectKind::kWorkload || kind == contract::ObjectKind::kSet; }
};

Result<std::vector<Deletion>> DeletionsOf(const DeleteFlags& flags) {
  std::vector<Deletion> deletions;
  if (!flags.files.empty()) {
    if (!flags.words.empty()) return InvalidArgument("name objects, or files with -f, but not both");
    MUSTER_ASSIGN_OR_RETURN(const model::WorkloadFile file, ReadWorkloadFiles(flags.files));
    for (const model::WorkloadSpec& spec : file.workloads) {
      const bool plain = spec.kind == model::WorkloadKind::kWorkload;
      deletions.push_back({plain ? contract::ObjectKind::kWorkload : contract::ObjectKind::kSet, spec.name});
    }
    for (const model::Quota& quota : file.quotas) deletions.push_back({contract::ObjectKind::kQuota, quota.tenant});
    return deletions;
  }
  MUSTER_ASSIGN_OR_RETURN(const std::vector<ClusterTarget> targets, ParseNamedTargets(flags.words));
  for (const ClusterTarget& target : targets) {
    switch (target.kind) {
      case ClusterKind::kWorkload: deletions.push_back({contract::ObjectKind::kWorkload, target.name}); break;
      case ClusterKind::kNode: deletions.push_back({contract::ObjectKind::kNode, target.name}); break;
      case ClusterKind::kSet: deletions.push_back({contract::ObjectKind::kSet, target.name}); break;
      case ClusterKind::kQuota: deletions.push_back({contract::ObjectKind::kQuota, target.name}); break;
      case ClusterKind::kEvent: return InvalidArgument("events are not deleted; they expire");
    }
  }
  return deletions;
}

void PrintLine(const std::string& line) { Print(Printable(line) + "\n"); }

// How far a deletion is.
struct Left {
  bool gone = false;
  int64_t members = 0;  // of a set, that there are still
  std::string note;     // what to say besides, once it is gone
  std::string waits;    // what is still there, once it takes too long
};

Result<Left> LookAtWorkload(ClusterSession& session, const std::string& name) {
  const auto view = session.Ask<contract::WorkloadView>(contract::GetWorkload{.workload = name});
  if (!view && view.error().code() == Code::kNotFound) return Left{.gone = true};
  if (!view) return std::unexpected(view.error());
  if (view->desired != model::DesiredState::kDeleted) {
    // A set makes a member again, under its name.
    if (!view->set.empty()) return Left{.gone = true, .note = fmt::format("; set/{} has made it again", view->set)};
    return Error(Code::kAborted, fmt::format("workload/{} was applied again, and is not deleted", name));
  }
  const std::string where = view->node.empty() ? "" : fmt::format(" on node {}", view->node);
  return Left{.waits = fmt::format("it is {}{}", model::WorkloadPhaseName(view->phase), where)};
}

Result<Left> LookAtSet(ClusterSession& session, const std::string& name) {
  const auto view = FindSet(session, name);
  if (!view && view.error().code() == Code::kNotFound) return Left{.gone = true};
  if (!view) return std::unexpected(view.error());
  if (!view->deleting) return Left{.gone = true, .note = ", and applied again since"};
  return Left{.members = view->members,
              .waits = fmt::format("{} member{} left", view->members, view->members == 1 ? " is" : "s are")};
}

// Until it is gone, or the time is over.
Status WaitUntilGone(ClusterSession& session, const Deletion& deletion, MonoTime end, const std::string& timeout) {
  const auto clock = [&session] {
    const auto since = session.now().mono.time_since_epoch();
    return std::chrono::steady_clock::time_point(
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(since));
  };
  std::optional<Progress> progress;
  Outage outage(true);
  int64_t most = 0;
  while (true) {
    const auto left = deletion.kind == contract::ObjectKind::kSet ? LookAtSet(session, deletion.name)
                                                                  : LookAtWorkload(session, deletion.name);
    if (Status lost = outage.Judge(left); !lost.ok()) return lost;
    if (left && left->gone) {
      progress.reset();
      PrintLine(fmt::format("{} deleted{}", deletion.Object(), left->note));
      return {};
    }
    if (left && !progress) {
      most = left->members;
      progress.emplace("deleting " + Printable(deletion.Object()), static_cast<uint64_t>(most), clock);
    }
    if (left) progress->Update(static_cast<uint64_t>(std::max<int64_t>(0, most - left->members)));
    if (session.now().mono >= end) {
      return {Code::kDeadlineExceeded,
              fmt::format("{} is not gone after {}: {}; it goes on being deleted, and muster describe {} says more",
                          deletion.Object(), timeout, left ? left->waits : left.error().message(), deletion.Object())};
    }
    session.Pause(kPollInterval);
  }
}

Result<int> Delete(const ClusterAccess& access, const DeleteFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<Deletion> deletions, DeletionsOf(flags));
  const auto timeout = model::ParseDuration(flags.timeout);
  if (!timeout) return InvalidArgument(fmt::format("--timeout: {}", timeout.error().message()));
  MUSTER_ASSIGN_OR_RETURN(ClusterSession session, ClusterSession::Open(access, flags.cluster));
  // All are ordered first: they stop beside each other.
  std::vector<Deletion> begun;
  const auto order = [&](const Deletion& deletion) -> Status {
    const auto done = session.Ask<contract::Done>(
        contract::DeleteObject{.kind = deletion.kind, .name = deletion.name, .force = flags.force});
    if (!done) {
      if (done.error().code() == Code::kNotFound && flags.ignore_missing) return {};
      return NamedNotFound(done.error(), contract::ObjectKindName(deletion.kind), deletion.name);
    }
    if (!deletion.TakesTime()) {
      PrintLine(fmt::format("{} deleted{}", deletion.Object(), done->message.empty() ? "" : ": " + done->message));
    } else if (flags.no_wait) {
      PrintLine(fmt::format("{} is being deleted", deletion.Object()));
    } else {
      begun.push_back(deletion);
    }
    return {};
  };
  MUSTER_ASSIGN_OR_RETURN(const int ordered, ForEachObject(deletions, order));
  const MonoTime end = *timeout > Duration::zero() ? session.now().mono + *timeout : MonoTime(Duration::max());
  MUSTER_ASSIGN_OR_RETURN(const int waited, ForEachObject(begun, [&](const Deletion& deletion) {
                            return WaitUntilGone(session, deletion, end, flags.timeout);
                          }));
  return ordered == kOk ? waited : ordered;
}

}  // namespace

void AddDelete(CommandLine& app, const ClusterAccess& access) {
  const auto flags = std::make_shared<DeleteFlags>();
  Verb verb = app.AddVerb("delete", "Delete workloads, sets, quotas or nodes; a set takes its members along");
  verb.Arguments("TYPE/NAME", flags->words, "What to delete: TYPE/NAME ..., or TYPE NAME ...")
      .NamesOf("targets")
      .Option("-f,--filename", flags->files, "Delete what this workload file declares; may be repeated")
      .Flag("--force", flags->force, "Delete a node that still has workloads; they move to others")
      .Flag("--ignore-not-found", flags->ignore_missing, "What does not exist is no error")
      .Option("--timeout", flags->timeout,
              "Stop waiting until it is gone after this long, with exit code 1; 0s waits for ever")
      .Flag("--no-wait", flags->no_wait, "Return once the order is stored; it may stop for a while yet");
  AddSchedulerFlags(verb, flags->cluster);
  verb.Example("muster delete set/web workload/db")
      .Example("muster delete -f examples/workloads/shop.yaml && muster apply -f examples/workloads/shop.yaml")
      .Example("muster delete set/web --no-wait")
      .Example("muster delete node n7 --force")
      .Run([access, flags] { return Delete(access, *flags); });
}

}  // namespace muster::cli
