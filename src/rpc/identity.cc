#include "rpc/identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/names.h"

namespace muster::rpc {
namespace {

using Kind = Identity::Kind;

constexpr std::string_view kScheme = "bigfleet://";

using Kinds = unsigned;  // one bit per Kind
constexpr Kinds Bit(Kind kind) { return 1U << static_cast<unsigned>(kind); }
constexpr Kinds kCluster = Bit(Kind::kCluster);
constexpr Kinds kShard = Bit(Kind::kShard);
constexpr Kinds kAdmin = Bit(Kind::kAdmin);
constexpr Kinds kReaders = Bit(Kind::kReadonly) | kAdmin;

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
});

// What tells an operator no more than that the server is there and which services it has.
bool IsOpen(std::string_view method) {
  return method.starts_with("/grpc.health.v1.Health/") || method.starts_with("/grpc.reflection.");
}

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
  }
  return std::string(kScheme);
}

Result<Identity> ParseIdentity(std::string_view uri) {
  if (uri == "bigfleet://readonly") return Identity{.kind = Kind::kReadonly, .id = {}};
  if (uri == "bigfleet://admin") return Identity{.kind = Kind::kAdmin, .id = {}};
  for (const auto& [prefix, kind] : {std::pair<std::string_view, Kind>{"bigfleet://cluster/", Kind::kCluster},
                                     std::pair<std::string_view, Kind>{"bigfleet://shard/", Kind::kShard}}) {
    if (uri.starts_with(prefix) && uri.size() > prefix.size()) {
      return Identity{.kind = kind, .id = std::string(uri.substr(prefix.size()))};
    }
  }
  return InvalidArgument(
      fmt::format("{} is no identity: use bigfleet://cluster/<id>, bigfleet://shard/<id>, "
                  "bigfleet://readonly or bigfleet://admin",
                  model::Quoted(uri)));
}

Result<Identity> IdentityOf(std::span<const std::string> uris) {
  const auto ours = [](const std::string& uri) { return uri.starts_with(kScheme); };
  if (const auto count = std::ranges::count_if(uris, ours); count != 1) {
    return Error(Code::kPermissionDenied,
                 fmt::format("the caller's certificate has {} bigfleet:// URIs; it must have exactly one", count));
  }
  Result<Identity> identity = ParseIdentity(*std::ranges::find_if(uris, ours));
  if (!identity) return Error(Code::kPermissionDenied, "the caller's certificate: " + identity.error().message());
  return identity;
}

Status Authorise(std::string_view method, std::span<const std::string> uris) {
  if (IsOpen(method)) return {};
  const Result<Identity> caller = IdentityOf(uris);
  if (!caller) return caller.error();
  const Rule* rule = FindRule(method);
  if (rule != nullptr && (rule->callers & Bit(caller->kind)) != 0) return {};
  return {Code::kPermissionDenied,
          fmt::format("{} may not call {}", model::Quoted(caller->ToString()), model::Quoted(method))};
}

bool HasRule(std::string_view method) { return FindRule(method) != nullptr; }

}  // namespace muster::rpc
