#include "role/agent/agent_role.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/log.h"
#include "runtime/compose_runtime.h"
#include "runtime/container_runtime.h"
#include "runtime/process_runtime.h"

namespace muster::agent {
namespace {

constexpr std::array kMethods = {"Apply", "Delete", "GetStatus", "List"};  // as in AgentRequest
constexpr std::array kStates = {contract::ActualState::kUnknown, contract::ActualState::kPending,
                                contract::ActualState::kRunning, contract::ActualState::kStopped,
                                contract::ActualState::kFailed};

constexpr Duration kRetireGrace = 2s;

bool IsEveryInterface(const std::string& host) { return host.empty() || host == "0.0.0.0" || host == "::"; }

rpc::RoleServerOptions OfCluster(rpc::RoleServerOptions server, const std::string& cluster) {
  server.cluster = cluster;
  return server;
}

}  // namespace

AgentMetrics::AgentMetrics(metrics::Declarations& in)
    : workloads(in, "muster_agent_workloads", "Workloads of this node by state.", {"state"}),
      requests(in, "muster_agent_requests_total", "Calls answered, by method and code.", {"method", "code"}),
      request_seconds(in, "muster_agent_request_seconds", "Time to the answer of a call.", {"method"},
                      {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10}),
      operations_open(in, "muster_agent_operations_open", "Starts, stops and removals that runtimes work on."),
      runtime_up(in, "muster_agent_runtime_up", "1 while the runtime answers.", {"runtime"}),
      restarts(in, "muster_agent_restarts_total", "Restarts of workloads by their policy."),
      refused(in, "muster_agent_refused_total", "Applies refused for want of room or of a runtime."),
      stale(in, "muster_agent_stale_total", "Requests refused because of an old stamp or another epoch."),
      joined(in, "muster_agent_joined", "1 while a scheduler has accepted this node."),
      epoch(in, "muster_agent_epoch", "Epoch of the node's registration.") {}

AgentRole::AgentRole(RoleOptions options)
    : options_(std::move(options)),
      server_(OfCluster(options_.server, options_.cluster)),
      metrics_(server_.metrics()),
      status_file_(options_.server.data_dir) {}

AgentRole::~AgentRole() { Stop(); }

LocalOptions AgentRole::MakeLocalOptions() const {
  const std::filesystem::path& data_dir = options_.server.data_dir;
  // Two agents of one name on one computer, for two clusters, have control groups, users and containers of their own.
  std::error_code error;
  Hasher hasher;
  hasher.Add(std::filesystem::weakly_canonical(data_dir, error).string());
  const std::string unique = fmt::format("{}-{:08x}", options_.node, static_cast<uint32_t>(hasher.value()));
  LocalOptions local{.data_dir = data_dir,
                     .journal = options_.server.journal,
                     .config = options_.config,
                     .usage_interval = options_.usage_interval};
  local.config.node = options_.node;
  local.config.joins = !options_.schedulers.empty();
  local.config.total = options_.total;
  for (const model::WorkloadType type : options_.runtimes) {
    const std::string name(model::WorkloadTypeName(type));
    const runtime::ContainerOptions engine{.socket = options_.docker_socket.string(),
                                           .name = unique,
                                           .host_paths = options_.host_paths,
                                           .user = options_.container_user};
    if (type == model::WorkloadType::kContainer) {
      local.runtimes[name] = [this, engine](auto ended) -> Result<std::unique_ptr<runtime::Runtime>> {
        return std::make_unique<runtime::ContainerRuntime>(engine, clock_, std::move(ended));
      };
      continue;
    }
    if (type == model::WorkloadType::kCompose) {
      local.runtimes[name] = [this, engine](auto ended) -> Result<std::unique_ptr<runtime::Runtime>> {
        return std::make_unique<runtime::ComposeRuntime>(engine, clock_, std::move(ended));
      };
      continue;
    }
    if (type != model::WorkloadType::kProcess) {
      local.runtimes[name] = [name](const auto&) -> Result<std::unique_ptr<runtime::Runtime>> {
        return Error(Code::kUnimplemented, fmt::format("this build has no runtime for {}", name));
      };
      continue;
    }
    local.runtimes[name] = [this, data_dir, unique](auto ended) -> Result<std::unique_ptr<runtime::Runtime>> {
      MUSTER_ASSIGN_OR_RETURN(const std::filesystem::path shim, runtime::FindShimProgram());
      return runtime::ProcessRuntime::Open({.root = data_dir / "processes",
                                            .shim = shim,
                                            .name = unique,
                                            .user = options_.process_user,
                                            .log_bytes = static_cast<int64_t>(options_.log_bytes)},
                                           clock_, std::move(ended));
    };
  }
  return local;
}

Status AgentRole::Start(std::stop_token stop) {
  MUSTER_RETURN_IF_ERROR(server_.OpenDataDir());
  // Workloads pass through it to their working directories; what is in it is closed by itself.
  if (options_.process_user.mode != runtime::ProcessUser::Mode::kAgent) chmod(options_.server.data_dir.c_str(), 0711);
  if (options_.retire) return Retire();
  if (options_.own_certificate) MUSTER_RETURN_IF_ERROR(GetCertificate(stop));
  agent_ = std::make_unique<LocalAgent>(MakeLocalOptions(), clock_,
                                        LocalHooks{.states_changed =
                                                       [this] {
                                                         if (link_ != nullptr) link_->Beat();
                                                         WriteStatus();
                                                       },
                                                   .runtime_came =
                                                       [this] {
                                                         if (link_ != nullptr) link_->Rejoin();
                                                       }});
  if (!options_.schedulers.empty()) {
    link_ = std::make_unique<JoinLink>(JoinOptions{.schedulers = options_.schedulers,
                                                   .cluster = options_.cluster,
                                                   .tls = options_.server.tls,
                                                   .heartbeat = options_.heartbeat},
                                       JoinPorts{.registration = [this] { return Registration(); },
                                                 .heartbeat = [this] { return MakeHeartbeat(); },
                                                 .joined =
                                                     [this](contract::FullState state) {
                                                       agent_->Join(std::move(state));
                                                       joined_ = true;
                                                       WriteStatus();
                                                     }});
  }
  MUSTER_RETURN_IF_ERROR(agent_->Start(stop));
  WriteStatus();  // what it has from before counts from here on, joined or not
  server_.SetRefresh([this] { UpdateGauges(); });
  contract::AgentPort& port = *this;
  MUSTER_RETURN_IF_ERROR(server_.Listen(
      {{rpc::kPersysAgentService, rpc::MakePersysAgentService(port, {.health = [this] { return Health(); },
                                                                     .actions = [this] { return agent_->actions(); }})},
       {rpc::kAgentService, rpc::MakeAgentService(port, *agent_)}}));
  server_.SetReadyCheck("state", [this] { return agent_->status(); });
  if (link_ != nullptr) MUSTER_RETURN_IF_ERROR(Join(stop));
  server_.Serve({{"node", options_.node}});
  return {};
}

std::string AgentRole::AdvertisedHost() const {
  if (options_.advertise.empty()) {
    const std::string& host = options_.server.listen.host;
    return IsEveryInterface(host) ? HostId() : host;
  }
  std::string host = options_.advertise.substr(0, options_.advertise.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

// Before anything is served: the server shows it.
Status AgentRole::GetCertificate(std::stop_token stop) {
  certificates_ = std::make_unique<Certificates>(CertificatesOptions{.data_dir = options_.server.data_dir,
                                                                     .schedulers = options_.schedulers,
                                                                     .node = options_.node,
                                                                     .cluster = options_.cluster,
                                                                     .host = AdvertisedHost(),
                                                                     .token = options_.join_token,
                                                                     .ca = options_.join_ca},
                                                 clock_);
  MUSTER_RETURN_IF_ERROR(certificates_->Enrol([&stop] { return stop.stop_requested(); }));
  if (!options_.schedulers.empty()) certificates_->Start();
  return {};
}

void AgentRole::WriteStatus() {
  if (agent_ != nullptr) status_file_.Write(joined_, agent_->View()->statuses->size());
}

// Stops every run of the node and keeps what is wanted of it: the agent that starts next runs it again. All are asked
// before the first is waited for: the graces of many that ignore the signal pass together. One that cannot be stopped
// holds up no other.
Status AgentRole::Retire() {
  using Reply = Result<contract::RuntimeReply>;
  struct StopAsked {
    std::string workload;
    std::future<Reply> reply;
  };
  Status first;
  std::vector<std::unique_ptr<runtime::Runtime>> runtimes;
  std::vector<StopAsked> stops;
  for (const auto& [name, make] : MakeLocalOptions().runtimes) {
    auto made = make([](const contract::Run&) {});
    if (!made) continue;
    runtime::Runtime& one = *runtimes.emplace_back(*std::move(made));
    const auto ask = [&one](contract::RuntimeRequest request) {
      const auto reply = std::make_shared<std::promise<Reply>>();
      one.Ask(std::move(request), [reply](Reply got) { reply->set_value(std::move(got)); });
      return reply->get_future();
    };
    const Reply list = ask(contract::ListRuns{}).get();
    if (!list) {
      log::Warn("a runtime is not available", {{"runtime", name}, {"reason", list.error().message()}});
      if (list.error().code() != Code::kUnavailable && first.ok()) first = list.error();
      continue;
    }
    for (const contract::Run& run : list->runs) {
      if (!run.running) continue;
      stops.push_back({run.workload, ask(contract::StopRun{.workload = run.workload, .grace = kRetireGrace})});
    }
  }
  for (StopAsked& stop : stops) {
    const Reply stopped = stop.reply.get();
    if (stopped) continue;
    log::Err("a workload cannot be stopped", {{"workload", stop.workload}, {"reason", stopped.error().message()}});
    if (first.ok()) first = stopped.error();
  }
  if (!first.ok()) return first;
  log::Info("every workload of the node is stopped", {{"node", options_.node}});
  kill(getpid(), SIGTERM);  // as if told to stop: there is nothing to serve
  return {};
}

Status AgentRole::Join(std::stop_token stop) {
  server_.SetReadyCheck("scheduler", [this] { return link_->status(); });
  log::Info(
      "waiting for a scheduler",
      {{"node", options_.node}, {"grpc", server_.listen_address().ToString()}, {"scheduler", options_.schedulers}});
  MUSTER_RETURN_IF_ERROR(link_->Start());
  if (!link_->WaitForJoin([&stop] { return stop.stop_requested(); })) {
    return {Code::kCancelled, "stopped before a scheduler had accepted the node"};
  }
  return {};
}

void AgentRole::Stop() {
  server_.StopServing();
  if (certificates_ != nullptr) certificates_->Stop();
  if (link_ != nullptr) link_->Stop();
  if (agent_ != nullptr) agent_->Stop();
  server_.Stop();
  agent_.reset();
  link_.reset();
  server_.CloseDataDir();
}

void AgentRole::Ask(contract::AgentRequest request, Done done) {
  const char* method = kMethods[request.index()];
  const MonoTime start = clock_.Read().mono;
  agent_->Ask(std::move(request), [this, method, start, done = std::move(done)](auto result) {
    metrics_.requests.With(method, CodeName(result ? Code::kOk : result.error().code())).Add();
    metrics_.request_seconds.With(method).Observe(std::chrono::duration<double>(clock_.Read().mono - start).count());
    done(std::move(result));
  });
}

contract::RegisterNode AgentRole::Registration() const {
  const auto view = agent_->View();
  host::Address endpoint = server_.listen_address();
  if (IsEveryInterface(endpoint.host)) endpoint.host = HostId();
  contract::RegisterNode node{
      .facts = {.node = options_.node,
                .cluster = options_.cluster,
                .endpoint = options_.advertise.empty() ? endpoint.ToString() : options_.advertise,
                .agent_version = options_.server.build.version,
                .total = options_.total,
                .labels = options_.labels,
                .taints = options_.taints},
      .running = *view->statuses,
      .epoch = view->epoch};
  for (const RuntimeView& one : view->runtimes) {
    // An engine that is away for a moment is no reason to move what it runs.
    if (one.listed) node.facts.supported_types.push_back(one.type);
  }
  return node;
}

contract::Heartbeat AgentRole::MakeHeartbeat() const {
  return {.node = options_.node, .used = agent_->usage().used, .statuses = *agent_->View()->statuses};
}

rpc::AgentHealth AgentRole::Health() const {
  const NodeUsage usage = agent_->usage();
  return {.healthy = agent_->status().ok(),
          .version = options_.server.build.version,
          .runtimes = agent_->RuntimeStatus(),
          .memory_percent = usage.memory_percent,
          .cpu_percent = usage.cpu_percent,
          .disk_percent = usage.disk_percent};
}

void AgentRole::UpdateGauges() {
  const auto view = agent_->View();
  std::map<contract::ActualState, int64_t> counts;
  for (const contract::WorkloadStatus& status : *view->statuses) ++counts[status.actual];
  for (const contract::ActualState state : kStates) {
    metrics_.workloads.With(contract::ActualStateName(state)).Set(static_cast<double>(counts[state]));
  }
  for (const auto& [name, status] : agent_->RuntimeStatus()) metrics_.runtime_up.With(name).Set(status == "ok" ? 1 : 0);
  metrics_.operations_open.With().Set(static_cast<double>(view->operations_open));
  metrics_.restarts.With().RaiseTo(static_cast<double>(view->restarts));
  metrics_.refused.With().RaiseTo(static_cast<double>(view->refused));
  metrics_.stale.With().RaiseTo(static_cast<double>(view->stale));
  metrics_.joined.With().Set(link_ != nullptr && link_->status().ok() ? 1 : 0);
  metrics_.epoch.With().Set(static_cast<double>(view->epoch));
}

}  // namespace muster::agent
