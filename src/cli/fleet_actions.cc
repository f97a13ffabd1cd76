#include <fmt/format.h>

#include <memory>

#include "cli/ask.h"
#include "cli/document.h"
#include "cli/fleet.h"
#include "cli/table.h"
#include "contract/shard.h"
#include "model/reason.h"
#include "model/text_scalars.h"

namespace muster::cli {
namespace {

struct Flags {
  ShardFlags shard;
  std::string cluster;
  int64_t limit = 20;
};

Document DocumentOf(const contract::ActionView& view) {
  return Document::Map()
      .Add("cycle", int64_t{view.cycle})
      .Add("decided", model::FormatWallTime(view.decided))
      .Add("kind", view.kind)
      .Add("machine", view.machine_id)
      .Add("cluster", view.cluster_id)
      .Add("need", view.need_fingerprint)
      .Add("group", view.need_group)
      .Add("reason", model::ReasonName(view.reason))
      .Add("graceSeconds", int64_t{view.grace_seconds})
      .Add("outcome", view.outcome)
      .Add("error", view.error);
}

Result<int> Show(const Flags& flags) {
  if (flags.limit < 0 || flags.limit > INT32_MAX) return InvalidArgument("--limit must not be below 0; 0 shows all");
  MUSTER_ASSIGN_OR_RETURN(
      const contract::ActionsListed reply,
      AskShardFor<contract::ActionsListed>(
          flags.shard, contract::ListActions{.cluster_id = flags.cluster, .limit = static_cast<int32_t>(flags.limit)}));
  if (IsDocument(flags.shard.output)) {
    DocumentStream documents(flags.shard.output == "yaml");
    for (const contract::ActionView& view : reply.actions) Print(documents.Add(DocumentOf(view)));
    return kOk;
  }
  Rows rows = {{"CYCLE", "DECIDED", "ACTION", "MACHINE", "CLUSTER", "REASON", "OUTCOME", "ERROR"}};
  if (flags.shard.output == "wide") rows[0].insert(rows[0].end(), {"GRACE", "GROUP", "NEED"});
  for (const contract::ActionView& view : reply.actions) {
    rows.push_back({std::to_string(view.cycle), model::FormatWallTime(view.decided), view.kind, view.machine_id,
                    OrDash(view.cluster_id), std::string(model::ReasonName(view.reason)), view.outcome,
                    OrDash(view.error)});
    if (flags.shard.output != "wide") continue;
    rows.back().insert(rows.back().end(), {fmt::format("{}s", view.grace_seconds), OrDash(view.need_group),
                                           OrDash(view.need_fingerprint)});
  }
  Print(FormatTable(rows));
  return kOk;
}

}  // namespace

void AddFleetActions(Verb& fleet) {
  const auto flags = std::make_shared<Flags>();
  Verb verb = fleet.AddVerb("actions", "List what was decided lately and what became of it, the latest first");
  AddShardFlags(verb, flags->shard);
  verb.Option("--cluster", flags->cluster, "Only actions for or against this cluster")
      .Option("--limit", flags->limit, "Show at most so many; 0 shows all that the shard keeps")
      .Example("muster fleet actions --cluster blue")
      .Run([flags] { return Show(*flags); });
}

}  // namespace muster::cli
