// `muster retry`, `cordon`, `uncordon`, `drain` and `accept`: orders about workloads and nodes.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/cluster.h"
#include "cli/cluster_names.h"
#include "cli/cluster_wait.h"
#include "cli/table.h"
#include "model/text_scalars.h"

namespace muster::cli {
namespace {

constexpr Duration kPollInterval = 500ms;

struct Flags {
  ClusterFlags cluster;
  std::vector<std::string> words;
  std::string reason;
  std::string grace;
  std::string timeout = "0s";
  bool no_wait = false;
};

void PrintDone(std::string_view kind, std::string_view name, std::string_view what, const contract::Done& done) {
  const std::string more = done.message.empty() ? "" : fmt::format(": {}", done.message);
  Print(Printable(fmt::format("{}/{} {}{}", kind, name, what, more)) + "\n");
}

// Gives the same order for each name.
template <class Make>
Result<int> Order(const ClusterAccess& access, const Flags& flags, ClusterKind kind, std::string_view done_text,
                  Make make) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> names, ParseNames(flags.words, kind));
  MUSTER_ASSIGN_OR_RETURN(ClusterSession session, ClusterSession::Open(access, flags.cluster));
  return ForEachObject(names, [&](const std::string& name) -> Status {
    const auto done = session.Ask<contract::Done>(make(name));
    if (!done) return NamedNotFound(done.error(), ClusterKindName(kind), name);
    PrintDone(ClusterKindName(kind), name, done_text, *done);
    return {};
  });
}

// --- drain

struct DrainTimes {
  std::optional<Duration> grace;
  Duration timeout{};
};

Result<DrainTimes> ParseTimes(const Flags& flags) {
  DrainTimes times;
  if (!flags.grace.empty()) {
    const auto grace = model::ParseDuration(flags.grace);
    if (!grace) return InvalidArgument(fmt::format("--grace: {}", grace.error().message()));
    times.grace = *grace;
  }
  const auto timeout = model::ParseDuration(flags.timeout);
  if (!timeout) return InvalidArgument(fmt::format("--timeout: {}", timeout.error().message()));
  times.timeout = *timeout;
  return times;
}

// Until the node has no workloads.
Status WaitUntilEmpty(ClusterSession& session, const std::string& name, Duration timeout) {
  const MonoTime began = session.now().mono;
  Outage outage(true);
  int32_t shown = -1;
  while (true) {
    const auto view = session.Ask<contract::NodeView>(contract::GetNode{.node = name});
    if (const Status lost = outage.Judge(view); !lost.ok()) return NamedNotFound(lost, "node", name);
    if (view && view->workloads == 0) {
      Print(Printable(fmt::format("node/{} drained", name)) + "\n");
      return {};
    }
    if (view && !view->draining) {
      return {Code::kAborted,
              fmt::format("node/{} is no longer being drained; {} workloads are left there", name, view->workloads)};
    }
    if (view && view->workloads != shown) {
      shown = view->workloads;
      Print(Printable(fmt::format("node/{}: {} workload{} left", name, shown, shown == 1 ? "" : "s")) + "\n");
    }
    std::fflush(stdout);
    if (timeout > Duration::zero() && session.now().mono - began >= timeout) {
      return {
          Code::kDeadlineExceeded,
          fmt::format("node/{} {} after {}; it stays cordoned, and the drain goes on; muster get workloads --node {} "
                      "lists them",
                      name,
                      view ? fmt::format("still has {} workloads", view->workloads)
                           : fmt::format("may still have workloads ({})", view.error().message()),
                      model::FormatDuration(timeout), name)};
    }
    session.Pause(kPollInterval);
  }
}

Result<int> Drain(const ClusterAccess& access, const Flags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> names, ParseNames(flags.words, ClusterKind::kNode));
  MUSTER_ASSIGN_OR_RETURN(const DrainTimes times, ParseTimes(flags));
  MUSTER_ASSIGN_OR_RETURN(ClusterSession session, ClusterSession::Open(access, flags.cluster));
  return ForEachObject(names, [&](const std::string& name) -> Status {
    const auto done = session.Ask<contract::Done>(
        contract::DrainNode{.node = name, .grace = times.grace, .reason = flags.reason, .instruction = {}});
    if (!done) return NamedNotFound(done.error(), "node", name);
    PrintDone("node", name, "is cordoned; its workloads are being moved away", *done);
    return flags.no_wait ? Status() : WaitUntilEmpty(session, name, times.timeout);
  });
}

void AddDrain(CommandLine& app, const ClusterAccess& access) {
  const auto flags = std::make_shared<Flags>();
  Verb verb = app.AddVerb("drain", "Cordon nodes and move their workloads away, within min-available");
  verb.Arguments("NODE", flags->words, "The nodes")
      .NamesOf("node")
      .Option("--grace", flags->grace, "The longest that a workload may take to stop, such as 30s; its own if left out")
      .Option("--reason", flags->reason, "Why, for those who look at the node")
      .Option("--timeout", flags->timeout, "Stop waiting after this long, with exit code 1; 0s waits for ever")
      .Flag("--no-wait", flags->no_wait, "Return once the order is stored");
  AddSchedulerFlags(verb, flags->cluster);
  verb.Example("muster drain n7 --reason 'kernel update' --timeout 15m").Run([access, flags] {
    return Drain(access, *flags);
  });
}

// --- the others

void AddCordon(CommandLine& app, const ClusterAccess& access, bool cordoned) {
  const auto flags = std::make_shared<Flags>();
  Verb verb = app.AddVerb(cordoned ? "cordon" : "uncordon",
                          cordoned ? "Place nothing new on nodes" : "Let nodes take workloads again, and end a drain");
  verb.Arguments("NODE", flags->words, "The nodes").NamesOf("node");
  if (cordoned) verb.Option("--reason", flags->reason, "Why, for those who look at the node");
  AddSchedulerFlags(verb, flags->cluster);
  verb.Example(cordoned ? "muster cordon n7 --reason 'flaky disk'" : "muster uncordon n7")
      .Run([access, flags, cordoned] {
        return Order(access, *flags, ClusterKind::kNode, cordoned ? "cordoned" : "uncordoned",
                     [&](const std::string& name) {
                       return contract::CordonNode{.node = name, .cordoned = cordoned, .reason = flags->reason};
                     });
      });
}

void AddRetry(CommandLine& app, const ClusterAccess& access) {
  const auto flags = std::make_shared<Flags>();
  Verb verb = app.AddVerb("retry", "Try workloads again now: their attempts begin anew, and a back-off ends");
  verb.Arguments("NAME", flags->words, "The workloads").NamesOf("workload");
  AddSchedulerFlags(verb, flags->cluster);
  verb.Example("muster retry web-3").Run([access, flags] {
    return Order(access, *flags, ClusterKind::kWorkload, "is tried again",
                 [](const std::string& name) { return contract::RetryWorkload{.workload = name}; });
  });
}

void AddAccept(CommandLine& app, const ClusterAccess& access) {
  Verb accept = app.AddVerb("accept", "Let something through that the scheduler holds back");
  accept.Example("muster accept node n7");
  const auto flags = std::make_shared<Flags>();
  Verb verb = accept.AddVerb("node", "Delete the workloads of a node that the store does not hold, however many");
  verb.Arguments("NODE", flags->words, "The nodes").NamesOf("node");
  AddSchedulerFlags(verb, flags->cluster);
  verb.Example("muster accept node n7").Run([access, flags] {
    return Order(access, *flags, ClusterKind::kNode, "accepted",
                 [](const std::string& name) { return contract::AcceptNode{.node = name}; });
  });
}

}  // namespace

void AddClusterOrders(CommandLine& app, const ClusterAccess& access) {
  AddRetry(app, access);
  AddCordon(app, access, true);
  AddCordon(app, access, false);
  AddDrain(app, access);
  AddAccept(app, access);
}

}  // namespace muster::cli
