#include "rpc/identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/names.h"

namespace muster::rpc {
namespace {

using Kind = Identity::Kind;

constexpr std::string_view kScheme = "bigfleet://";
constexpr std::string_view kOwnScheme = "muster://";

using Kinds = unsigned;  // one bit per Kind
constexpr Kinds Bit(Kind kind) { return 1U << static_cast<unsigned>(kind); }
constexpr Kinds kCluster = Bit(Kind::kCluster);
constexpr Kinds kShard = Bit(Kind::kShard);
constexpr Kinds kAdmin = Bit(Kind::kAdmin);
constexpr Kinds kReaders = Bit(Kind::kReadonly) | kAdmin;
constexpr Kinds kScheduler = Bit(Kind::kScheduler);
constexpr Kinds kNode = Bit(Kind::kNode);
constexpr Kinds kJoin = Bit(Kind::kJoin);
constexpr Kinds kOperators = kCluster | kAdmin;
// Of these a tenant may change what is its own; the scheduler looks.
constexpr Kinds kChangers = kOperators | Bit(Kind::kTenant);
constexpr Kinds kClients = kReaders | kCluster | Bit(Kind::kTenant);

struct Rule {
  std::string_view method;
  Kinds callers;
};
constexpr auto kRules = std::to_array<Rule>({
    {"/bigfleet.v1alpha1.CapacityProvider/Create", kShard},
    {"/bigfleet.v1alpha1.CapacityProvider/Configure", kShard},
    {"/bigfleet.v1alpha1.CapacityProvider/Drain", kShard},
    {"/bigfleet.v1alpha1.CapacityProvider/Delete", kShard},
    {"/bigfleet.v1alpha1.CapacityProvider/Get", kShard | kReaders},
    {"/bigfleet.v1alpha1.CapacityProvider/List", kShard | kReaders},
    {"/bigfleet.v1alpha1.Shard/Session", kCluster},
    {"/bigfleet.v1alpha1.ShardRead/InspectNeeds", kReaders},
    {"/bigfleet.v1alpha1.Coordinator/ReportShard", kShard},
    {"/bigfleet.v1alpha1.Coordinator/AssignDomain", kAdmin},
    {"/bigfleet.v1alpha1.Coordinator/UnassignDomain", kAdmin},
    {"/bigfleet.v1alpha1.Coordinator/RemoveShard", kAdmin},
    {"/bigfleet.v1alpha1.Coordinator/JoinRaftCluster", kAdmin},
    {"/bigfleet.v1alpha1.Coordinator/SnapshotSave", kAdmin},
    {"/bigfleet.v1alpha1.Coordinator/ListShards", kReaders},
    {"/bigfleet.v1alpha1.Coordinator/ListDomainAssignments", kReaders},
    {"/bigfleet.v1alpha1.Coordinator/ListShardReports", kReaders},
    {"/muster.v1.Fleet/InspectNeeds", kReaders},
    {"/muster.v1.Fleet/ListMachines", kReaders},
    {"/muster.v1.Fleet/ListActions", kReaders},
    {"/muster.v1.Fleet/ListClusters", kReaders},
    {"/muster.v1.Fleet/Explain", kReaders},
    {"/muster.v1.Fleet/ListForgotten", kReaders},
    {"/muster.v1.Fleet/SetActuation", kAdmin},
    {"/muster.v1.Fleet/RepairMachine", kAdmin},
    {"/muster.v1.Fleet/ForgetMachine", kAdmin},
    {"/muster.v1.Fleet/RecallMachine", kAdmin},
    {"/muster.v1.Fleet/AcceptLosses", kAdmin},
    {"/muster.v1.Fleet/DecommissionCluster", kAdmin},
    {"/persys.control.v1.AgentControl/RegisterNode", kNode | kAdmin},
    {"/persys.control.v1.AgentControl/Heartbeat", kNode | kAdmin},
    {"/persys.control.v1.AgentControl/ControlStream", kNode | kAdmin},
    {"/persys.control.v1.AgentControl/ApplyWorkload", kChangers},
    {"/persys.control.v1.AgentControl/DeleteWorkload", kChangers},
    {"/persys.control.v1.AgentControl/RetryWorkload", kChangers},
    {"/persys.control.v1.AgentControl/SubmitAutomationSuggestion", kOperators},
    {"/persys.control.v1.AgentControl/ListNodes", kClients},
    {"/persys.control.v1.AgentControl/GetNode", kClients},
    {"/persys.control.v1.AgentControl/ListWorkloads", kClients},
    {"/persys.control.v1.AgentControl/GetWorkload", kClients},
    {"/persys.control.v1.AgentControl/GetClusterSummary", kClients},
    {"/persys.agent.v1.AgentService/ApplyWorkload", kScheduler | kAdmin},
    {"/persys.agent.v1.AgentService/DeleteWorkload", kScheduler | kAdmin},
    {"/persys.agent.v1.AgentService/GetWorkloadStatus", kScheduler | kReaders},
    {"/persys.agent.v1.AgentService/ListWorkloads", kScheduler | kReaders},
    {"/persys.agent.v1.AgentService/HealthCheck", kScheduler | kReaders},
    {"/persys.agent.v1.AgentService/ListActions", kScheduler | kReaders},
    {"/muster.v1.Agent/Apply", kScheduler | kAdmin},
    {"/muster.v1.Agent/Delete", kScheduler | kAdmin},
    {"/muster.v1.Agent/GetStatus", kScheduler | kReaders},
    {"/muster.v1.Agent/List", kScheduler | kReaders},
    {"/muster.v1.Agent/Logs", kScheduler | kReaders},
    {"/muster.v1.Cluster/Join", kNode},
    {"/muster.v1.Cluster/Watch", kClients},
    {"/muster.v1.Cluster/Logs", kClients},
    {"/muster.v1.Cluster/ListNodes", kClients},
    {"/muster.v1.Cluster/ListWorkloads", kClients},
    {"/muster.v1.Cluster/GetNode", kClients},
    {"/muster.v1.Cluster/GetWorkload", kClients},
    {"/muster.v1.Cluster/ListSets", kClients},
    {"/muster.v1.Cluster/ListQuotas", kClients},
    {"/muster.v1.Cluster/ListEvents", kClients},
    {"/muster.v1.Cluster/GetSummary", kClients},
    {"/muster.v1.Cluster/ExplainWorkload", kClients},
    {"/muster.v1.Cluster/ApplyWorkload", kChangers},
    {"/muster.v1.Cluster/ApplySpec", kChangers},
    {"/muster.v1.Cluster/DeleteObject", kChangers},
    {"/muster.v1.Cluster/RetryWorkload", kChangers},
    {"/muster.v1.Cluster/ScaleSet", kChangers},
    {"/muster.v1.Cluster/RestartSet", kChangers},
    {"/muster.v1.Cluster/CordonNode", kOperators},
    {"/muster.v1.Cluster/DrainNode", kOperators},
    {"/muster.v1.Cluster/AcceptNode", kOperators},
    {"/muster.v1.Cluster/ReportMachines", kCluster},
    {"/muster.v1.Cluster/ApplyQuota", kAdmin},
    {"/muster.v1.Enrol/CreateToken", kOperators},
    {"/muster.v1.Enrol/Sign", kJoin | kNode},
});

// What tells an operator no more than that the server is there and which services it has.
bool IsOpen(std::string_view method) {
  return method.starts_with("/grpc.health.v1.Health/") || method.starts_with("/grpc.reflection.");
}

bool IsOurs(const std::string& uri) { return uri.starts_with(kScheme) || uri.starts_with(kOwnScheme); }

// Of a node's identity, "<cluster>/<id>".
std::string_view NodeOf(const Identity& node) { return std::string_view(node.id).substr(node.id.find('/') + 1); }

const Rule* FindRule(std::string_view method) {
  const auto rule = std::ranges::find(kRules, method, &Rule::method);
  return rule == kRules.end() ? nullptr : &*rule;
}

}  // namespace

std::string Identity::ToString() const {
  switch (kind) {
    case Kind::kCluster: return fmt::format("{}cluster/{}", kScheme, id);
    case Kind::kShard: return fmt::format("{}shard/{}", kScheme, id);
    case Kind::kReadonly: return fmt::format("{}readonly", kScheme);
    case Kind::kAdmin: return fmt::format("{}admin", kScheme);
    case Kind::kScheduler: return fmt::format("{}scheduler/{}", kOwnScheme, id);
    case Kind::kNode: return fmt::format("{}node/{}", kOwnScheme, id);
    case Kind::kTenant: return fmt::format("{}tenant/{}", kOwnScheme, id);
    case Kind::kProvider: return fmt::format("{}provider/{}", kScheme, id);
    case Kind::kCoordinator: return fmt::format("{}coordinator/{}", kScheme, id);
    case Kind::kJoin: return fmt::format("{}join/{}", kOwnScheme, id);
    case Kind::kForeignNode: return fmt::format("a node with the DNS names {}", id);
  }
  return std::string(kScheme);
}

std::string_view Identity::cluster() const {
  const std::string_view text = id;
  if (kind == Kind::kCluster || kind == Kind::kScheduler || kind == Kind::kJoin) return text;
  return kind == Kind::kNode ? text.substr(0, text.find('/')) : std::string_view();
}

Result<Identity> ParseIdentity(std::string_view uri) {
  if (uri == "bigfleet://readonly") return Identity{.kind = Kind::kReadonly, .id = {}};
  if (uri == "bigfleet://admin") return Identity{.kind = Kind::kAdmin, .id = {}};
  for (const auto& [prefix, kind] : {std::pair<std::string_view, Kind>{"bigfleet://cluster/", Kind::kCluster},
                                     {"bigfleet://shard/", Kind::kShard},
                                     {"bigfleet://provider/", Kind::kProvider},
                                     {"bigfleet://coordinator/", Kind::kCoordinator},
                                     {"muster://scheduler/", Kind::kScheduler},
                                     {"muster://node/", Kind::kNode},
                                     {"muster://tenant/", Kind::kTenant},
                                     {"muster://join/", Kind::kJoin}}) {
    if (!uri.starts_with(prefix) || uri.size() == prefix.size()) continue;
    const std::string_view id = uri.substr(prefix.size());
    const size_t slash = id.find('/');
    if (kind == Kind::kNode && (slash == 0 || slash == std::string_view::npos || slash + 1 == id.size())) continue;
    return Identity{.kind = kind, .id = std::string(id)};
  }
  return InvalidArgument(
      fmt::format("{} is no identity: use bigfleet://cluster/<id>, bigfleet://shard/<id>, bigfleet://provider/<name>, "
                  "bigfleet://coordinator/<id>, bigfleet://readonly, bigfleet://admin, muster://scheduler/<cluster>, "
                  "muster://node/<cluster>/<id>, muster://tenant/<tenant> or muster://join/<cluster>",
                  model::Quoted(uri)));
}

Result<Identity> IdentityOf(std::span<const std::string> uris) {
  if (const auto count = std::ranges::count_if(uris, IsOurs); count != 1) {
    return Error(
        Code::kPermissionDenied,
        fmt::format("the caller's certificate has {} bigfleet:// or muster:// URIs; it must have exactly one", count));
  }
  Result<Identity> identity = ParseIdentity(*std::ranges::find_if(uris, IsOurs));
  if (!identity) return Error(Code::kPermissionDenied, "the caller's certificate: " + identity.error().message());
  return identity;
}

bool IsForOperators(std::string_view method) {
  const Rule* rule = FindRule(method);
  return rule != nullptr && (rule->callers & kReaders) != 0;
}

Status Authorise(std::string_view method, std::span<const std::string> uris, ForeignNodes foreign,
                 std::string_view own_cluster, Callers callers) {
  if (callers == Callers::kOperators) {
    const Result<Identity> caller = IdentityOf(uris);
    if (!caller) return caller.error();
    if ((kReaders & Bit(caller->kind)) == 0) {
      return {Code::kPermissionDenied, fmt::format("{} is no operator, and this address is for operators alone",
                                                   model::Quoted(caller->ToString()))};
    }
  }
  if (IsOpen(method)) return {};
  const Rule* rule = FindRule(method);
  if (foreign == ForeignNodes::kAllowed && std::ranges::none_of(uris, IsOurs)) {
    const bool of_persys = method.starts_with("/persys.control.v1.");
    if (of_persys && rule != nullptr && (rule->callers & kNode) != 0) return {};
  }
  const Result<Identity> caller = IdentityOf(uris);
  if (!caller) return caller.error();
  if (rule == nullptr || (rule->callers & Bit(caller->kind)) == 0) {
    return {Code::kPermissionDenied,
            fmt::format("{} may not call {}", model::Quoted(caller->ToString()), model::Quoted(method))};
  }
  const std::string_view cluster = caller->cluster();
  if (own_cluster.empty() || cluster.empty() || cluster == own_cluster) return {};
  return {Code::kPermissionDenied,
          fmt::format("{} is of cluster {}, and this server of cluster {}; call the servers of your own cluster",
                      model::Quoted(caller->ToString()), model::Quoted(cluster), model::Quoted(own_cluster))};
}

Status CheckServer(std::span<const std::string> uris, const ExpectedServer& expected) {
  const auto own = std::ranges::find_if(uris, IsOurs);
  if (own == uris.end()) return {};
  if (expected.foreign) {
    return {Code::kPermissionDenied,
            fmt::format("{} is not who this address must be, which has no such identity; check the address and the "
                        "server's certificate",
                        model::Quoted(*own))};
  }
  if (expected.kinds.empty()) return {};
  const Result<Identity> server = IdentityOf(uris);
  if (!server) return server.error();
  const auto refuse = [&](const std::string& why) {
    return Status(Code::kPermissionDenied, fmt::format("{} {}; check the address and the server's certificate",
                                                       model::Quoted(server->ToString()), why));
  };
  if (std::ranges::find(expected.kinds, server->kind) == expected.kinds.end()) {
    return refuse("is not who this address must be");
  }
  const std::string_view cluster = server->cluster();
  if (!expected.cluster.empty() && !cluster.empty() && cluster != expected.cluster) {
    return refuse(fmt::format("is not of cluster {}", model::Quoted(expected.cluster)));
  }
  if (!expected.node.empty() && server->kind == Kind::kNode && NodeOf(*server) != expected.node) {
    return refuse(fmt::format("is not node {}", model::Quoted(expected.node)));
  }
  return {};
}

Status CheckNode(const std::optional<Identity>& caller, std::string_view node) {
  if (!caller) return {};
  if (caller->kind == Kind::kForeignNode) {
    const std::string names = fmt::format(",{},", caller->id);
    if (names.contains(fmt::format(",{},", node))) return {};
  } else if (caller->kind != Kind::kNode || NodeOf(*caller) == node) {
    return {};
  }
  return {Code::kPermissionDenied,
          fmt::format("{} may not speak for node {}", model::Quoted(caller->ToString()), model::Quoted(node))};
}

bool IsOrder(std::string_view method, const std::optional<Identity>& caller, bool on_socket) {
  const Rule* rule = FindRule(method);
  if (rule == nullptr || (rule->callers & Bit(Kind::kReadonly)) != 0) return false;
  if (on_socket) return true;
  if ((rule->callers & kAdmin) == 0) return false;
  if ((rule->callers & (kNode | kScheduler)) == 0) return true;
  return caller && (caller->kind == Kind::kAdmin || caller->kind == Kind::kCluster);
}

bool HasRule(std::string_view method) { return FindRule(method) != nullptr; }

}  // namespace muster::rpc
