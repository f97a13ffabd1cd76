#include "role/scheduler/scheduler_settings.h"

#include <algorithm>
#include <cctype>
#include <expected>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "host/text_file.h"
#include "model/workload.h"

namespace muster::scheduler {
namespace {

using host::AnyDuration;
using host::Parser;
using host::Text;
using host::WholeNumber;

// Below this, timers would take more time than the work.
constexpr Duration kShortest = 50ms;
Parser<Duration> Interval() {
  return {.rule = "a duration of 50ms or more",
          .read = [any = AnyDuration()](std::string_view text) -> std::expected<Duration, std::string> {
            auto value = any.read(text);
            if (value && *value < kShortest) return host::AgainstRule();
            return value;
          }};
}

Parser<std::string> Id() {
  return host::Name("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.",
                    "letters, digits, '-', '_' and '.'");
}

// Variables of another make may hold bare seconds.
std::string DurationText(const std::string& value) {
  const bool bare = std::ranges::all_of(value, [](unsigned char c) { return std::isdigit(c) != 0; });
  return bare ? value + "s" : value;
}
std::string PortText(const std::string& value) { return ":" + value; }
std::string EtcdText(const std::string& value) {
  return "etcd://" + (value.starts_with("http://") ? value.substr(7) : value);
}

void DeclareStore(host::Settings& settings, RoleOptions& options) {
  const auto password_file = std::make_shared<std::filesystem::path>();
  settings
      .Add("--store", options.store, "sqlite:muster-scheduler",
           Text("sqlite:DIR, etcd://HOST:PORT,...[/prefix] or memory:"),
           "Where all state is: sqlite:DIR, etcd://HOST:PORT,...[/prefix] or memory:")
      .Add("--store-user", options.store_access.user, "", Text("a name"), "User of an etcd with authentication")
      .Path("--store-password-file", *password_file, "File with that user's password, in its first line")
      .Add("--store-tls-cert", options.store_access.tls.cert, "", Text("a file"),
           "Certificate for an etcd with TLS; all three or none")
      .Add("--store-tls-key", options.store_access.tls.key, "", Text("a file"), "Its private key")
      .Add("--store-tls-ca", options.store_access.tls.ca, "", Text("a file"), "The CA of the etcd's certificates")
      .Add("--store-tls-crl", options.store_access.tls.crl, "", Text("a file"), "What that CA has revoked")
      .Add("--store-lost-after", options.store_lost_after, "5s", Interval(),
           "How long the store may be silent before reads are marked as stale and writes refused")
      .Add("--store-compact-every", options.store_compact_every, "5m", AnyDuration(),
           "How often the leader compacts the history of an etcd, up to the turn before; 0s: never")
      .Path("--secret-key", options.secret_key,
            "File with the key of workloads' secrets, 64 hexadecimal digits; secret.key in the directory of a SQLite "
            "store "
            "if left out, made if missing")
      .Check([&options, password_file]() -> Status {
        rpc::OpenStoreOptions& access = options.store_access;
        if (access.user.empty() != password_file->empty()) {
          return {Code::kInvalidArgument,
                  "--store-user and --store-password-file belong together; give both or neither"};
        }
        auto tls = rpc::TlsFilesFromFlags(access.tls.cert, access.tls.key, access.tls.ca, access.tls.crl);
        if (!tls) return tls.error();
        access.tls.insecure = options.server.tls.insecure;
        access.tls.connection_age = options.server.tls.connection_age;
        if (password_file->empty()) return {};
        const auto text = host::ReadTextFile(*password_file, {.max_bytes = 4096});
        if (!text) return text.error();
        access.password = text->substr(0, text->find_first_of("\r\n"));
        return {};
      });
}

void DeclareCore(host::Settings& settings, Config& config) {
  settings.Add("--id", config.id, "scheduler", Id(), "Name of this scheduler")
      .Add("--cluster", config.cluster, "", Text("a name"),
           "The cluster that nodes must name, if they name one, and with TLS every certificate of a cluster; none: any")
      .Add("--reconcile-interval", config.reconcile_interval, "5s", Interval(),
           "Between two passes over everything, a net below the events")
      .Add("--node-timeout", config.node_timeout, "3m", Interval(),
           "Heartbeat age at which a node is NotReady; agents are told to send three in that time")
      .Add("--monitor-interval", config.monitor_interval, "1m", Interval(), "How often heartbeat ages are judged")
      .Add("--missing-grace", config.missing_grace, "15s", AnyDuration(),
           "How long a workload may be missing on its node after its launch; Pending is waited for without limit")
      .Add("--retry-base", config.retry_base, "5s", Interval(), "The first back-off; each next one is twice as long")
      .Add("--retry-cap", config.retry_cap, "2m", Interval(), "The longest back-off")
      .Add("--max-attempts", config.max_attempts, "5", WholeNumber<int32_t>(1, 1000),
           "Attempts that may fail before a workload is Failed")
      .Add("--agent-rpc-timeout", config.agent_timeout, "10s", Interval(), "Deadline of a call to an agent")
      .Choice("--strategy", config.strategy,
              {{"spread", placement::Strategy::kSpread}, {"pack", placement::Strategy::kPack}}, "spread",
              "Which of the nodes that fit is taken: the emptiest or the fullest")
      .Add("--preempt-after", config.preempt_after, "10s", AnyDuration(),
           "How long a workload waits for room before it evicts others of lower priority; 0s for clusters without an "
           "operator")
      .Add("--unreachable-grace", config.unreachable_grace, "0s", AnyDuration(),
           "How long a node that cannot be called is waited for before it is NotReady");
}

// A token and a certificate are worth something only where callers are looked at, and name the cluster they are for.
Status CheckJoinCa(const RoleOptions& options) {
  if (options.join_ca.empty() && options.join_ca_key.empty()) return {};
  if (options.join_ca.empty() || options.join_ca_key.empty()) {
    return {Code::kInvalidArgument, "--join-ca and --join-ca-key belong together; give both or neither"};
  }
  if (!options.server.tls.given()) {
    return {Code::kInvalidArgument,
            "--join-ca needs --tls-cert, --tls-key and --tls-ca: without TLS no caller is known"};
  }
  if (!model::IsWorkloadId(options.config.cluster)) {
    return {Code::kInvalidArgument,
            "--join-ca needs --cluster, of letters, digits, '.', '_' and '-': certificates of nodes name it"};
  }
  return {};
}

void DeclareJoinCa(host::Settings& settings, RoleOptions& options) {
  settings
      .Path("--join-ca", options.join_ca,
            "CA that signs join tokens and the certificates of nodes, in PEM form, with what stands between it and "
            "--tls-ca")
      .Path("--join-ca-key", options.join_ca_key, "Its private key, readable for its user alone")
      .Add("--node-certificate-life", options.node_certificate_life, "24h", host::PositiveDuration(),
           "How long the certificate of a node is good; agents renew it after two thirds of that")
      .Check([&options] { return CheckJoinCa(options); });
}

}  // namespace

void DeclareSettings(host::Settings& settings, RoleOptions& options) {
  rpc::DeclareServerSettings(settings, options.server, ":8085", ":8084", rpc::DataDirSetting::kNone);
  DeclareStore(settings, options);
  DeclareCore(settings, options.config);
  DeclareJoinCa(settings, options);
  const auto foreign = std::make_shared<bool>(false);
  settings
      .Switch("--foreign-nodes", *foreign,
              "With TLS: a certificate of the CA without an identity is that of a node, which is named as its DNS name")
      .Add("--journal-limit", options.journal_limit, "512MiB", host::ByteSize(1 << 20),
           "Size of the whole journal; the oldest of its eight parts go")
      .Check([&options, foreign] {
        if (*foreign) options.server.foreign_nodes = rpc::ForeignNodes::kAllowed;
        return Status();
      });
  settings.Environment("--listen", "GRPC_PORT", PortText)
      .Environment("--metrics-addr", "METRICS_PORT", PortText)
      .Environment("--store", "ETCD_ENDPOINTS", EtcdText)
      .Environment("--reconcile-interval", "SCHEDULER_RECONCILE_INTERVAL", DurationText)
      .Environment("--node-timeout", "SCHEDULER_NODE_UNAVAILABLE_GRACE", DurationText)
      .Environment("--missing-grace", "SCHEDULER_MISSING_GRACE_PERIOD", DurationText)
      .Environment("--agent-rpc-timeout", "SCHEDULER_AGENT_RPC_TIMEOUT", DurationText)
      .Environment("--tls-ca", "PERSYS_TLS_CA")
      .Environment("--tls-cert", "PERSYS_TLS_CERT")
      .Environment("--tls-key", "PERSYS_TLS_KEY")
      .Environment("--log-level", "LOG_LEVEL");
}

}  // namespace muster::scheduler
