#include "role/agent/agent_settings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "model/names.h"
#include "model/quantity.h"
#include "model/workload.h"
#include "role/agent/certificates.h"
#include "role/agent/node_usage.h"
#include "runtime/container_user.h"

namespace muster::agent {
namespace {

host::Parser<std::string> Id() {
  return {.rule = "an id of letters, digits, '.', '_' and '-'",
          .read = [](std::string_view text) -> std::expected<std::string, std::string> {
            if (!model::IsWorkloadId(text)) return host::AgainstRule();
            return std::string(text);
          }};
}

host::Parser<std::string> Address() {
  return {.rule = "HOST:PORT", .read = [](std::string_view text) -> std::expected<std::string, std::string> {
            const size_t colon = text.rfind(':');
            if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size()) return host::AgainstRule();
            return std::string(text);
          }};
}

using Pair = std::pair<std::string, std::string>;
host::Parser<Pair> Label() {
  return {.rule = "KEY=VALUE", .read = [](std::string_view text) -> std::expected<Pair, std::string> {
            const size_t equals = text.find('=');
            if (equals == std::string_view::npos || equals == 0) return host::AgainstRule();
            return Pair(text.substr(0, equals), text.substr(equals + 1));
          }};
}

// KEY[=VALUE]:EFFECT
host::Parser<model::Taint> TaintText() {
  return {.rule = "KEY:EFFECT or KEY=VALUE:EFFECT",
          .read = [](std::string_view text) -> std::expected<model::Taint, std::string> {
            const size_t colon = text.rfind(':');
            if (colon == std::string_view::npos || colon == 0) return host::AgainstRule();
            const std::string_view left = text.substr(0, colon);
            const size_t equals = left.find('=');
            model::Taint taint{.key = std::string(left.substr(0, equals)),
                               .effect = std::string(text.substr(colon + 1))};
            if (equals != std::string_view::npos) taint.value = left.substr(equals + 1);
            if (taint.effect != "NoSchedule" && taint.effect != "PreferNoSchedule" && taint.effect != "NoExecute") {
              return std::unexpected(std::string("an effect is NoSchedule, PreferNoSchedule or NoExecute"));
            }
            return taint;
          }};
}

host::Parser<model::WorkloadType> RuntimeName() {
  return {.rule = "one of process, container, compose, vm",
          .read = [](std::string_view text) -> std::expected<model::WorkloadType, std::string> {
            const auto type = model::ParseWorkloadType(text);
            if (!type) return host::AgainstRule();
            return *type;
          }};
}

host::Parser<runtime::ProcessUser> User() {
  return {.rule = "auto, own, agent or the name of a user",
          .read = [](std::string_view text) -> std::expected<runtime::ProcessUser, std::string> {
            if (text == "auto") text = geteuid() == 0 ? "own" : "agent";
            const auto user = runtime::ParseProcessUser(text);
            if (!user) return std::unexpected(user.error().message());
            return *user;
          }};
}

host::Parser<runtime::ContainerUser> UserOfContainers() {
  return {.rule = "one of tenant, image",
          .read = [](std::string_view text) -> std::expected<runtime::ContainerUser, std::string> {
            const auto user = runtime::ParseContainerUser(text);
            if (!user) return host::AgainstRule();
            return *user;
          }};
}

host::Parser<std::filesystem::path> SocketPath() {
  return {.rule = "a path", .read = [](std::string_view text) -> std::expected<std::filesystem::path, std::string> {
            if (text.empty()) return host::AgainstRule();
            return std::filesystem::path(text);
          }};
}

host::Parser<std::filesystem::path> HostPath() {
  return {.rule = "an absolute path",
          .read = [](std::string_view text) -> std::expected<std::filesystem::path, std::string> {
            if (!text.starts_with('/')) return host::AgainstRule();
            return std::filesystem::path(text);
          }};
}

// A quantity, or nothing for what the host has.
host::Parser<int64_t> Amount() {
  return {.rule = "a quantity such as 4 or 8Gi; empty: what the host has",
          .read = [](std::string_view text) -> std::expected<int64_t, std::string> {
            if (text.empty()) return 0;
            const auto amount = model::ParseQuantity(text);
            if (!amount) return std::unexpected(amount.error().message());
            if (*amount <= 0) return host::AgainstRule();
            return *amount;
          }};
}

// Parts of the options that are put together once all have been read.
struct Parts {
  int64_t cpu = 0;
  int64_t memory = 0;
  int64_t disk = 0;
  std::vector<Pair> labels;
  std::vector<std::string> schedulers;
};

Status Assemble(const Parts& parts, RoleOptions& options) {
  options.total = HostResources();
  if (parts.cpu > 0) options.total.Set("cpu", parts.cpu);
  if (parts.memory > 0) options.total.Set("memory", parts.memory);
  if (parts.disk > 0) options.total.Set("disk", parts.disk);
  options.labels = {parts.labels.begin(), parts.labels.end()};
  options.schedulers.clear();
  for (const std::string& one : parts.schedulers) options.schedulers += (options.schedulers.empty() ? "" : ",") + one;
  if (options.runtimes.empty()) options.runtimes = {model::WorkloadType::kProcess};
  if (options.node.empty()) options.node = HostId();
  return {};
}

// A node that was given a token has its certificate in its data directory, also when it starts again without one. The
// certificate that flags name comes first: a machine that has one is asked for no other. No message has the token.
Status ReadJoin(const Parts& parts, RoleOptions& options) {
  rpc::TlsFiles& tls = options.server.tls;
  options.own_certificate = false;
  if (!tls.cert.empty() || !tls.key.empty() || !tls.ca.empty()) return {};
  const rpc::TlsFiles own = OwnCertificate(options.server.data_dir);
  std::error_code error;
  if (options.join_token.empty() && !std::filesystem::exists(own.cert, error)) return {};
  if (!options.join_token.empty()) {
    const char* missing = options.join_ca.empty()    ? "join-ca"
                          : parts.schedulers.empty() ? "scheduler"
                          : options.cluster.empty()  ? "cluster"
                                                     : nullptr;
    if (missing != nullptr) {
      return {Code::kInvalidArgument, fmt::format("{} is missing: a join token needs it", missing)};
    }
  }
  options.own_certificate = true;
  tls.cert = own.cert;
  tls.key = own.key;
  tls.ca = own.ca;
  return {};
}

}  // namespace

void DeclareSettings(host::Settings& settings, RoleOptions& options) {
  const auto parts = std::make_shared<Parts>();
  // Before the server's own check, which looks at what TLS allows.
  settings.Check([parts, &options] { return ReadJoin(*parts, options); });
  rpc::DeclareServerSettings(settings, options.server, ":50051", ":50052");
  const auto optional = [](const host::Parser<std::string>& parser) {
    return host::Parser<std::string>{
        .rule = parser.rule,
        .read = [read = parser.read](std::string_view text) -> std::expected<std::string, std::string> {
          return text.empty() ? std::string() : read(text);
        }};
  };
  settings.Require("--data-dir", "name a directory for the agent's state and the files of its workloads")
      .List("--scheduler", parts->schedulers, Address(),
            "Scheduler to join; several, with commas, if one may lead or another")
      .Add("--node-id", options.node, "", optional(Id()), "Id of this node; the name of the host if left out")
      .Add("--cluster", options.cluster, "", host::Text("a name"),
           "Cluster this node is for: a scheduler of another one refuses it, and with TLS it refuses the schedulers of "
           "others")
      .Add("--join-token", options.join_token, "", host::Text("certificate and key in PEM form"),
           "What buys this node its certificate, as its operator sends it; for configuration files, not for command "
           "lines, which others see")
      .Add("--join-ca", options.join_ca, "", host::Text("certificates in PEM form"),
           "The CA that the scheduler's certificate must come from when the token is used")
      .Add("--advertise", options.advertise, "", optional(Address()),
           "Where schedulers reach this agent; where it listens if left out")
      .Add("--cpu", parts->cpu, "", Amount(), "Processors for workloads")
      .Add("--memory", parts->memory, "", Amount(), "Memory for workloads")
      .Add("--disk", parts->disk, "", Amount(), "Disk for workloads; not counted if left out")
      .List("--labels", parts->labels, Label(), "Labels of the node")
      .List("--taints", options.taints, TaintText(), "Taints of the node")
      .List("--runtimes", options.runtimes, RuntimeName(), "What runs here; process if left out")
      .Add("--process-user", options.process_user, "auto", User(),
           "As whom processes run: own is a user for each workload, agent the agent's; auto is own where the agent is "
           "root")
      .Add(
          "--container-user", options.container_user, "tenant", UserOfContainers(),
          "As whom containers run: tenant is a user for each tenant, unless the image names one by a number other than "
          "0; image is what the image says")
      .Add("--docker-socket", options.docker_socket, "/var/run/docker.sock", SocketPath(),
           "Socket of the container engine, dockerd or podman's service")
      .List("--host-paths", options.host_paths, HostPath(),
            "Paths of the node that containers may mount, with what is below; none if left out")
      .Switch("--retire", options.retire, "Stop every workload of the data directory, and end")
      .Add("--log-bytes", options.log_bytes, "4MiB", host::ByteSize(4096),
           "Size at which a log file of a process is rotated; two are kept")
      .Add("--max-restarts", options.config.max_restarts, "3", host::WholeNumber<int32_t>(0, 1000),
           "Restarts of a workload in a row before it is Failed")
      .Add("--restart-pause", options.config.restart_base, "1s", host::PositiveDuration(),
           "Pause before the first restart; it doubles up to two minutes")
      .Add("--heartbeat", options.heartbeat, "10s", host::PositiveDuration(),
           "Between two heartbeats, unless the scheduler says how often")
      .Add("--usage-interval", options.usage_interval, "10s", host::PositiveDuration(),
           "Between two measurements of what workloads use")
      .Check([parts, &options] { return Assemble(*parts, options); });
}

}  // namespace muster::agent
