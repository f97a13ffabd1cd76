#include "cli/cluster.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>
#include <variant>

#include "cli/table.h"
#include "model/text_scalars.h"

namespace muster::cli {
namespace {

std::optional<WallTime> StaleSince(const contract::ClusterReply& reply) {
  return std::visit(
      [](const auto& one) -> std::optional<WallTime> {
        if constexpr (requires { one.stale_since; }) return one.stale_since;
        return std::nullopt;
      },
      reply);
}

}  // namespace

std::string DefaultScheduler() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing writes the environment
  const char* given = std::getenv("MUSTER_SCHEDULER");
  return given != nullptr && *given != '\0' ? given : "127.0.0.1:8085";
}

void AddSchedulerFlags(Verb& verb, ClusterFlags& flags) {
  flags.scheduler = DefaultScheduler();
  verb.Option("--scheduler", flags.scheduler,
              "HOST:PORT of the scheduler, or several with commas (MUSTER_SCHEDULER): they are tried in order");
  AddTlsFlags(verb, flags.tls);
}

Result<ClusterSession> ClusterSession::Open(const ClusterAccess& access, const ClusterFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<rpc::ClusterClient> client, access.connect(flags));
  return ClusterSession(std::move(client), access, flags.scheduler);
}

Status ClusterSession::Explained(Status status) const {
  if (status.code() == Code::kUnavailable || status.code() == Code::kDeadlineExceeded) {
    const bool named = status.message().starts_with("scheduler ");
    return {status.code(), fmt::format("{}{}; is it running? Name another one with --scheduler",
                                       named ? "" : fmt::format("scheduler {}: ", target_), status.message())};
  }
  if (status.code() == Code::kUnimplemented) {
    return {status.code(), fmt::format("scheduler {} does not serve muster.v1.Cluster: {}", target_, status.message())};
  }
  return status;
}

Result<contract::ClusterReply> ClusterSession::AskAny(contract::ClusterRequest request) {
  Result<contract::ClusterReply> reply =
      WaitFor<contract::ClusterReply>([&](auto done) { client_->Ask(std::move(request), std::move(done)); });
  if (!reply) return std::unexpected(Explained(std::move(reply).error()));
  if (const auto since = StaleSince(*reply); since && !std::exchange(noted_stale_, true)) {
    std::fflush(stdout);
    fmt::print(stderr, "the scheduler has lost its store; this is what it knew at {}\n", model::FormatWallTime(*since));
  }
  return reply;
}

Result<contract::WorkloadsListed> ListAll(ClusterSession& session, contract::ListWorkloads what) {
  return AllPages<contract::WorkloadsListed>(
      [&](auto page) { return session.Ask<contract::WorkloadsListed>(std::move(page)); }, std::move(what),
      &contract::WorkloadsListed::workloads);
}
Result<contract::NodesListed> ListAll(ClusterSession& session, contract::ListNodes what) {
  return AllPages<contract::NodesListed>([&](auto page) { return session.Ask<contract::NodesListed>(std::move(page)); },
                                         std::move(what), &contract::NodesListed::nodes);
}
Result<contract::SetsListed> ListAll(ClusterSession& session, contract::ListSets what) {
  return AllPages<contract::SetsListed>([&](auto page) { return session.Ask<contract::SetsListed>(std::move(page)); },
                                        std::move(what), &contract::SetsListed::sets);
}

Result<contract::SetView> FindSet(ClusterSession& session, const std::string& name) {
  Result<contract::SetsListed> listed = ListAll(session, contract::ListSets{.name = name});
  if (!listed) return std::unexpected(NamedNotFound(std::move(listed).error(), "set", name));
  for (contract::SetView& view : listed->sets) {
    if (view.spec.name == name) return std::move(view);
  }
  return std::unexpected(NamedNotFound(Status(Code::kNotFound, ""), "set", name));
}

void PrintError(const Status& status) {
  std::fflush(stdout);
  fmt::print(stderr, "muster: {}\n", Printable(status.message()));
}

Status NamedNotFound(Status status, std::string_view kind, std::string_view name) {
  if (status.code() != Code::kNotFound) return status;
  return {Code::kNotFound, fmt::format("{}/{} does not exist; muster get {}s lists those that do", kind, name, kind)};
}

}  // namespace muster::cli
