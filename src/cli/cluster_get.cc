// `muster get`: lists objects of a cluster, and watches them.
#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cli/cluster.h"
#include "cli/cluster_documents.h"
#include "cli/cluster_objects.h"
#include "cli/cluster_watch.h"

namespace muster::cli {
namespace {

constexpr Duration kBeforeWatchingAgain = 1s;

struct Flags {
  ClusterFlags cluster;
  std::vector<std::string> words;
  std::string output = "table";
  std::string selector;
  bool watch = false;
  ObjectFilter filter;  // without names and selector
};

// One kind with the names that were asked for; none: all of the kind.
struct Wanted {
  ClusterKind kind = ClusterKind::kWorkload;
  std::vector<std::string> names;
};

std::vector<Wanted> Grouped(const std::vector<ClusterTarget>& targets) {
  std::vector<Wanted> groups;
  for (const ClusterTarget& target : targets) {
    auto at = std::ranges::find(groups, target.kind, &Wanted::kind);
    if (at == groups.end()) at = groups.insert(groups.end(), {.kind = target.kind, .names = {}});
    if (!target.name.empty()) at->names.push_back(target.name);
  }
  return groups;
}

// Lists what is wanted, prints it, and goes on with what changes.
class Getter {
 public:
  Getter(ClusterSession& session, const Flags& flags, ObjectFilter filter, std::vector<Wanted> wanted)
      : session_(session), flags_(flags), filter_(std::move(filter)), wanted_(std::move(wanted)) {}

  Result<int> Run() {
    if (flags_.watch) return Watch();
    bool empty = true;
    for (const Wanted& wanted : wanted_) {
      MUSTER_ASSIGN_OR_RETURN(const std::vector<ClusterObject> objects, Fetch(wanted));
      if (!objects.empty() && !empty && is_table()) Print("\n");
      empty = empty && objects.empty();
      PrintList(wanted.kind, objects);
    }
    if (empty && code_ == kOk) fmt::print(stderr, "nothing found\n");
    return code_;
  }

 private:
  bool is_table() const { return flags_.output == "table" || flags_.output == "wide"; }
  RowStyle Style() const {
    return {.now = session_.now().wall, .wide = flags_.output == "wide", .typed = wanted_.size() > 1};
  }
  ObjectFilter FilterFor(const Wanted& wanted) const {
    ObjectFilter filter = filter_;
    filter.names = wanted.names;
    return filter;
  }

  // By name where names are given, so that a missing one is an error.
  Result<std::vector<ClusterObject>> Fetch(const Wanted& wanted) {
    if (wanted.names.empty() || wanted.kind == ClusterKind::kEvent) {
      MUSTER_ASSIGN_OR_RETURN(ObjectList list, ListObjects(session_, wanted.kind, FilterFor(wanted)));
      return std::move(list.objects);
    }
    std::vector<ClusterObject> objects;
    for (const std::string& name : wanted.names) {
      Result<ClusterObject> object = GetObject(session_, wanted.kind, name);
      if (object) {
        objects.push_back(*std::move(object));
        continue;
      }
      if (wanted.names.size() == 1 && wanted_.size() == 1) return std::unexpected(std::move(object).error());
      PrintError(object.error());
      code_ = kFailed;
    }
    return objects;
  }

  void PrintList(ClusterKind kind, const std::vector<ClusterObject>& objects) {
    if (!is_table()) {
      for (const ClusterObject& object : objects) PrintDocument(DocumentOf(object), kind, NameOf(object));
      return;
    }
    if (objects.empty()) return;
    Rows rows;
    TableStream& table = tables_[kind];
    if (headed_.insert(kind).second) rows.push_back(HeadOf(kind, flags_.output == "wide"));
    for (const ClusterObject& object : objects) rows.push_back(RowOf(object, Style()));
    Print(table.AddAll(rows));
  }

  void PrintDocument(const Document& document, ClusterKind kind, const std::string& name) {
    if (flags_.output == "name") {
      Print(Printable(fmt::format("{}/{}", ClusterKindName(kind), name)) + "\n");
    } else {
      Print(documents_.Add(document));
    }
  }

  // --- watching

  Result<int> Watch() {
    contract::WatchCluster what;
    for (const Wanted& wanted : wanted_) {
      what.nodes |= wanted.kind == ClusterKind::kNode;
      what.workloads |= wanted.kind == ClusterKind::kWorkload;
      what.sets |= wanted.kind == ClusterKind::kSet;
      what.decisions |= wanted.kind == ClusterKind::kEvent;
      if (wanted.kind == ClusterKind::kQuota) return InvalidArgument("quotas cannot be watched; ask again without -w");
    }
    ChangeQueue changes(session_.client());
    MUSTER_ASSIGN_OR_RETURN(what.from, ListForWatch());
    changes.Watch(what);
    while (true) {
      const Result<contract::ClusterChange> change = changes.Next();
      if (change) {
        what.from = std::max(what.from, PrintChange(*change));
        std::fflush(stdout);
        continue;
      }
      if (change.error().code() == Code::kOutOfRange) {
        MUSTER_ASSIGN_OR_RETURN(what.from, ListForWatch());
      } else if (change.error().code() == Code::kUnavailable) {
        PrintError(session_.Explained(change.error()));
        session_.Pause(kBeforeWatchingAgain);
      } else {
        return std::unexpected(session_.Explained(change.error()));
      }
      changes.Watch(what);
    }
  }

  // Prints all that is wanted; the revision after which changes follow.
  Result<contract::Revision> ListForWatch() {
    std::optional<contract::Revision> first;
    for (const Wanted& wanted : wanted_) {
      MUSTER_ASSIGN_OR_RETURN(const ObjectList list, ListObjects(session_, wanted.kind, FilterFor(wanted)));
      PrintList(wanted.kind, list.objects);
      if (wanted.kind != ClusterKind::kEvent) first = std::min(first.value_or(list.revision), list.revision);
    }
    std::fflush(stdout);
    return first.value_or(0);
  }

  const Wanted* WantedOf(ClusterKind kind) const {
    const auto at = std::ranges::find(wanted_, kind, &Wanted::kind);
    return at == wanted_.end() ? nullptr : &*at;
  }

  // Prints a change that is asked for; its revision, 0 if it has none.
  contract::Revision PrintChange(const contract::ClusterChange& change) {
    if (const auto* decision = std::get_if<contract::Decision>(&change)) {
      PrintObject(*decision);
      return 0;
    }
    const auto& changed = std::get<contract::ObjectChanged>(change);
    if (const auto* node = std::get_if<contract::NodeView>(&changed.now)) {
      PrintObject(*node);
    } else if (const auto* workload = std::get_if<contract::WorkloadView>(&changed.now)) {
      PrintObject(*workload);
    } else if (const auto* set = std::get_if<contract::SetView>(&changed.now)) {
      PrintObject(*set);
    } else {
      PrintDeleted(changed);
    }
    return changed.revision;
  }

  void PrintObject(const ClusterObject& object) {
    const Wanted* wanted = WantedOf(KindOf(object));
    if (wanted == nullptr || !Passes(object, FilterFor(*wanted))) return;
    PrintList(wanted->kind, {object});
  }

  void PrintDeleted(const contract::ObjectChanged& changed) {
    const ClusterKind kind = changed.kind == contract::ObjectKind::kWorkload ? ClusterKind::kWorkload
                             : changed.kind == contract::ObjectKind::kNode   ? ClusterKind::kNode
                                                                             : ClusterKind::kSet;
    const Wanted* wanted = WantedOf(kind);
    if (wanted == nullptr) return;
    if (!wanted->names.empty() && std::ranges::find(wanted->names, changed.name) == wanted->names.end()) return;
    if (!is_table()) return PrintDocument(DeletedDocument(changed.kind, changed.name), kind, changed.name);
    Print(tables_[kind].Add(DeletedRow(kind, changed.name, Style())));
  }

  ClusterSession& session_;
  const Flags& flags_;
  const ObjectFilter filter_;
  const std::vector<Wanted> wanted_;
  std::map<ClusterKind, TableStream> tables_;
  std::set<ClusterKind> headed_;
  DocumentStream documents_{flags_.output == "yaml"};
  int code_ = kOk;
};

Result<int> Get(const ClusterAccess& access, const Flags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<ClusterTarget> targets, ParseTargets(flags.words));
  ObjectFilter filter = flags.filter;
  MUSTER_ASSIGN_OR_RETURN(filter.selector, ParseSelector(flags.selector));
  MUSTER_ASSIGN_OR_RETURN(ClusterSession session, ClusterSession::Open(access, flags.cluster));
  return Getter(session, flags, std::move(filter), Grouped(targets)).Run();
}

}  // namespace

void AddGet(CommandLine& app, const ClusterAccess& access) {
  const auto flags = std::make_shared<Flags>();
  Verb verb = app.AddVerb("get", "List workloads, nodes, sets, quotas or events of a cluster");
  verb.Arguments("TYPE[/NAME]", flags->words,
                 "TYPE[,TYPE...] [NAME...] or TYPE/NAME ...; types: workloads, nodes, sets, jobs, quotas, events")
      .NamesOf("targets")
      .Choice("-o,--output", flags->output, {"table", "wide", "json", "yaml", "name"},
              "Form; json is one line for each object")
      .Flag("-w,--watch", flags->watch, "Go on with what changes; of events, the scheduler's decisions")
      .Option("-l,--selector", flags->selector, "Only what has these labels: app=web,tier!=db,zone in (a,b),!gpu")
      .Option("--tenant", flags->filter.tenant, "Only of this tenant")
      .Option("--node", flags->filter.node, "Only what is on this node")
      .Option("--set", flags->filter.set, "Only members of this set")
      .Option("--status", flags->filter.status, "Only workloads or nodes in this state");
  AddSchedulerFlags(verb, flags->cluster);
  verb.Example("muster get workloads,nodes")
      .Example("muster get workloads -l app=web -o wide -w")
      .Example("muster get set/web node/n1 -o yaml")
      .Run([access, flags] { return Get(access, *flags); });
}

}  // namespace muster::cli
