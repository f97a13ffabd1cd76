// `muster quota`: what a tenant may have and has, and setting it.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/cluster.h"
#include "cli/cluster_names.h"
#include "cli/cluster_objects.h"
#include "cli/cluster_tables.h"
#include "model/quantity.h"

namespace muster::cli {
namespace {

struct Flags {
  ClusterFlags cluster;
  std::vector<std::string> words;
  std::vector<std::string> limits;
  std::string rate;
  int64_t burst = 0;
  std::string output = "table";
};

bool SetsSomething(const Flags& flags) { return !flags.limits.empty() || !flags.rate.empty() || flags.burst != 0; }

// "cpu=100", "workloads=500"; "none" takes the limit away.
Status SetLimit(const std::string& text, model::Quota& quota) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
  const bool known = name == "cpu" || name == "memory" || name == "disk" || name == "gpu" || name == "workloads";
  if (!known || value.empty()) {
    return {Code::kInvalidArgument,
            fmt::format("--limit {}: write NAME=AMOUNT with one of cpu, memory, disk, gpu, workloads", text)};
  }
  int64_t milli = 0;
  if (value != "none") {
    const auto parsed = model::ParseQuantity(value);
    if (!parsed) return {Code::kInvalidArgument, fmt::format("--limit {}: {}", text, parsed.error().message())};
    milli = *parsed;
    if (milli < 0 || (milli == 0 && name != "workloads")) {
      return {Code::kInvalidArgument, fmt::format("--limit {}: the amount must be above 0; none takes it away", text)};
    }
  }
  if (name != "workloads") {
    quota.limits.Set(name, milli);
    return {};
  }
  if (milli % 1000 != 0) return {Code::kInvalidArgument, fmt::format("--limit {}: not a whole number", text)};
  quota.workloads = value == "none" ? -1 : milli / 1000;
  return {};
}

Status SetRate(const Flags& flags, model::Quota& quota) {
  if (!flags.rate.empty()) {
    const auto rate = model::ParseQuantity(flags.rate);
    if (!rate) return {Code::kInvalidArgument, fmt::format("--rate: {}", rate.error().message())};
    if (*rate < 0) return {Code::kInvalidArgument, "--rate must not be below 0; 0 takes it away"};
    quota.applies_milli_hz = *rate;
  }
  if (flags.burst < 0 || flags.burst > INT32_MAX) return {Code::kInvalidArgument, "--burst must not be below 0"};
  if (flags.burst != 0) quota.burst = static_cast<int32_t>(flags.burst);
  if (quota.applies_milli_hz == 0) quota.burst = 0;
  return {};
}

// Changes what is given and leaves the rest of the quota.
Result<int> Set(ClusterSession& session, const Flags& flags, const std::string& tenant) {
  MUSTER_ASSIGN_OR_RETURN(const auto listed,
                          session.Ask<contract::QuotasListed>(contract::ListQuotas{.tenant = tenant}));
  model::Quota quota{.tenant = tenant};
  for (const contract::QuotaView& view : listed.quotas) {
    if (view.quota.tenant == tenant) quota = view.quota;
  }
  for (const std::string& limit : flags.limits) {
    if (const Status status = SetLimit(limit, quota); !status.ok()) return std::unexpected(status);
  }
  if (const Status status = SetRate(flags, quota); !status.ok()) return std::unexpected(status);
  MUSTER_ASSIGN_OR_RETURN(const auto applied, session.Ask<contract::Applied>(contract::ApplyQuota{.quota = quota}));
  Print(Printable(fmt::format("quota/{} {}", tenant, contract::ApplyResultName(applied.result))) + "\n");
  return kOk;
}

Result<int> Show(ClusterSession& session, const Flags& flags, const std::vector<std::string>& tenants) {
  std::vector<ClusterObject> objects;
  if (tenants.empty()) {
    MUSTER_ASSIGN_OR_RETURN(ObjectList list, ListObjects(session, ClusterKind::kQuota, {}));
    objects = std::move(list.objects);
    if (objects.empty()) fmt::print(stderr, "no quotas; every tenant may have what fits\n");
  }
  for (const std::string& tenant : tenants) {
    MUSTER_ASSIGN_OR_RETURN(ClusterObject object, GetObject(session, ClusterKind::kQuota, tenant));
    objects.push_back(std::move(object));
  }
  if (flags.output != "table") {
    DocumentStream documents(flags.output == "yaml");
    for (const ClusterObject& object : objects) Print(documents.Add(DocumentOf(object)));
    return kOk;
  }
  Rows rows = {HeadOf(ClusterKind::kQuota, false)};
  for (const ClusterObject& object : objects) rows.push_back(RowOf(object, {.now = session.now().wall}));
  if (!objects.empty()) Print(FormatTable(rows));
  return kOk;
}

Result<int> Quota(const ClusterAccess& access, const Flags& flags) {
  std::vector<std::string> tenants;
  if (!flags.words.empty()) {
    MUSTER_ASSIGN_OR_RETURN(tenants, ParseNames(flags.words, ClusterKind::kQuota));
  }
  if (SetsSomething(flags) && tenants.size() != 1)
    return InvalidArgument("name the one tenant whose quota is to change");
  MUSTER_ASSIGN_OR_RETURN(ClusterSession session, ClusterSession::Open(access, flags.cluster));
  return SetsSomething(flags) ? Set(session, flags, tenants[0]) : Show(session, flags, tenants);
}

}  // namespace

void AddQuota(CommandLine& app, const ClusterAccess& access) {
  const auto flags = std::make_shared<Flags>();
  Verb verb = app.AddVerb("quota", "Show what tenants have of their quotas, or change one");
  verb.Arguments("TENANT", flags->words, "The tenant; all if left out")
      .NamesOf("quota")
      .Option("--limit", flags->limits, "NAME=AMOUNT of cpu, memory, disk, gpu or workloads; =none takes it away")
      .Option("--rate", flags->rate, "Applies a second; 0 takes it away")
      .Option("--burst", flags->burst, "Applies at once, above the rate")
      .Choice("-o,--output", flags->output, {"table", "json", "yaml"}, "Form; json is one line for each quota");
  AddSchedulerFlags(verb, flags->cluster);
  verb.Example("muster quota")
      .Example("muster quota shop --limit cpu=100 --limit memory=400Gi --limit workloads=500 --rate 10 --burst 50")
      .Run([access, flags] { return Quota(access, *flags); });
}

}  // namespace muster::cli
