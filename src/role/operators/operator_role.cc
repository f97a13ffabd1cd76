#include "role/operators/operator_role.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/overloaded.h"
#include "contract/page.h"
#include "host/parser.h"
#include "host/text_file.h"
#include "model/workload.h"

namespace muster::operators {
namespace {

constexpr Duration kFirstPause = 200ms;
constexpr Duration kLongestPause = 5s;
constexpr Duration kLook = 200ms;  // how often the links are looked at when nothing happens
constexpr int32_t kPage = 250;     // objects; the scheduler ends a page sooner where they are large
// Less than a token lives: a machine that gets it has the rest of its hour to start and join.
constexpr std::chrono::seconds kTokenGood = 30min;

// A cluster's id becomes part of keys and identities.
host::Parser<std::string> ClusterName() {
  return {.rule = "letters, digits, '.', '_' and '-', at most 253 of them, a letter or digit first",
          .read = [](std::string_view text) -> std::expected<std::string, std::string> {
            if (!model::IsWorkloadId(text)) return host::AgainstRule();
            return std::string(text);
          }};
}

// A text of several lines as the value of a key, in YAML.
std::string Block(std::string_view key, std::string_view text) {
  std::string block = fmt::format("{}: |\n", key);
  for (const std::string_view line : host::SplitAt(text, '\n')) {
    if (!line.empty()) block += fmt::format("  {}\n", line);
  }
  return block;
}

// Asks and waits. UNAVAILABLE when the stop comes first.
template <class Reply, class Request>
Result<Reply> AskAndWait(rpc::ClusterClient& cluster, Request request, const std::stop_token& stop) {
  auto answer = std::make_shared<std::promise<Result<contract::ClusterReply>>>();
  std::future<Result<contract::ClusterReply>> arrives = answer->get_future();
  cluster.Ask(std::move(request),
              [answer](Result<contract::ClusterReply> reply) { answer->set_value(std::move(reply)); });
  while (arrives.wait_for(kLook) != std::future_status::ready) {
    if (stop.stop_requested()) return std::unexpected(Status(Code::kUnavailable, "the operator is stopping"));
  }
  Result<contract::ClusterReply> reply = arrives.get();
  if (!reply) return std::unexpected(reply.error());
  if (auto* right = std::get_if<Reply>(&*reply)) return std::move(*right);
  return std::unexpected(Status(Code::kInternal, "the scheduler answered with something else"));
}

// All objects of a list, page by page, and the revision of the first.
template <class Reply, class Request, class Object>
Result<contract::Revision> ListAll(rpc::ClusterClient& cluster, Request what, std::vector<Object> Reply::* part,
                                   std::vector<Object>& objects, const std::stop_token& stop) {
  what.page.limit = kPage;
  std::optional<contract::Revision> revision;
  do {
    auto page = contract::AskPage([&](const Request& request) { return AskAndWait<Reply>(cluster, request, stop); },
                                  what, kPage);
    if (!page) return std::unexpected(page.error());
    if (!revision) revision = page->revision;
    std::ranges::move((*page).*part, std::back_inserter(objects));
    what.page.token = page->next;
  } while (!what.page.token.empty());
  return *revision;
}

}  // namespace

void DeclareSettings(host::Settings& settings, Options& options) {
  rpc::DeclareServerSettings(settings, options.server, ":7790", ":8790");
  settings.Add("--cluster", options.config.cluster, "", ClusterName(), "Id of the cluster, as the fleet knows it")
      .Require("--cluster", "name the cluster whose demand is said to the fleet")
      .Add("--shard-addr", options.shard, "127.0.0.1:7780", host::Text("HOST:PORT"), "Address of the shard")
      .Add("--scheduler", options.scheduler, "127.0.0.1:8085", host::Text("HOST:PORT, or several with commas"),
           "Addresses of the cluster's schedulers")
      .Add("--rollup-interval", options.config.rollup_interval, "10s", host::PositiveDuration(),
           "How often the whole demand is said, changed or not")
      .Add("--stuck-after", options.config.stuck_after, "15s", host::PositiveDuration(),
           "How long a workload waits beside enough bound capacity before demand is raised for it")
      .Add("--correction-hold", options.config.correction_hold, "10m", host::PositiveDuration(),
           "How long demand that was raised stays so after the last such workload runs")
      .Path("--bootstrap-template", options.bootstrap,
            "File with what a new machine gets to join the cluster; read at the start and for each machine");
}

OperatorMetrics::OperatorMetrics(metrics::Declarations& in)
    : session(in, "muster_operator_session", "1 while the shard acknowledges this cluster."),
      scheduler(in, "muster_operator_scheduler", "1 while the scheduler is watched."),
      needs(in, "muster_operator_needs", "Rows of the last roll-up."),
      left_out(in, "muster_operator_workloads_left_out",
               "Workloads that no roll-up counts: the protocol cannot express what they require."),
      corrections(in, "muster_operator_corrections", "Profiles whose demand is raised because workloads are stuck."),
      machines(in, "muster_operator_machines", "Machines of the cluster, on their way or serving."),
      reclaims(in, "muster_operator_reclaims", "Instructions of the shard to give machines up that are under way."),
      rollups(in, "muster_operator_rollups_total", "Roll-ups sent.") {}

std::string DefaultBootstrap(const Options& options) {
  return fmt::format("scheduler: {}\ncluster: {}\n", options.scheduler, options.config.cluster);
}

std::string BootstrapWith(const Options& options, const rpc::TokenText& token) {
  return DefaultBootstrap(options) + Block("join-token", token.token_pem) + Block("join-ca", token.ca_pem);
}

OperatorRole::OperatorRole(Options options)
    : options_(std::move(options)),
      server_(options_.server),
      metrics_(server_.metrics()),
      runner_({.name = "operator", .state_file = {}, .journal = options_.server.journal, .clock = clock_}, *this) {}

OperatorRole::~OperatorRole() { Stop(); }

Status OperatorRole::Start(std::stop_token) {
  // Otherwise the first machine that is bought would tell of a wrong path.
  if (const auto template_text = ReadTemplate(); !template_text) {
    return {template_text.error().code(), fmt::format("--bootstrap-template: {}", template_text.error().message())};
  }
  auto cluster = rpc::MakeClusterClient(options_.scheduler, options_.server.tls, options_.config.cluster);
  if (!cluster) return {cluster.error().code(), fmt::format("--scheduler: {}", cluster.error().message())};
  cluster_ = *std::move(cluster);
  if (options_.server.tls.given() && options_.bootstrap.empty()) {
    auto enrol = rpc::MakeEnrolClient(options_.scheduler, options_.server.tls, options_.config.cluster);
    if (!enrol) return {enrol.error().code(), fmt::format("--scheduler: {}", enrol.error().message())};
    enrol_ = *std::move(enrol);
  }
  MUSTER_RETURN_IF_ERROR(
      runner_.Open([this](const contract::Recovered&) -> Result<Core> { return Core(options_.config); }));
  server_.SetRefresh([this] { UpdateGauges(); });
  MUSTER_RETURN_IF_ERROR(server_.Listen());
  MUSTER_RETURN_IF_ERROR(runner_.Start());
  links_ = std::jthread([this](const std::stop_token& stop) { KeepLinks(stop); });
  server_.SetReadyCheck("shard", [this]() -> Status {
    const std::lock_guard lock(mu_);
    if (session_open_) return {};
    return {Code::kUnavailable, fmt::format("no session with the shard at {}", options_.shard)};
  });
  server_.SetReadyCheck("scheduler", [this]() -> Status {
    const std::lock_guard lock(mu_);
    if (watching_) return {};
    return {Code::kUnavailable, fmt::format("the scheduler at {} is not watched", options_.scheduler)};
  });
  server_.Serve({{"cluster", options_.config.cluster}, {"shard", options_.shard}, {"scheduler", options_.scheduler}});
  return {};
}

void OperatorRole::Stop() {
  server_.StopServing();
  if (links_.joinable()) {
    links_.request_stop();
    changed_.notify_all();
    links_.join();
  }
  runner_.Stop();
  // After the core, which asks them. Their end answers what is open; a core that has stopped takes no answer.
  cluster_.reset();
  enrol_.reset();
  server_.Stop();
}

// --- the core's effects

void OperatorRole::StartCall(const Call& call) {
  cluster_->Ask(call.request, [this, id = call.id](Result<contract::ClusterReply> reply) {
    CallDone done{.id = id};
    if (reply) {
      done.reply = *std::move(reply);
    } else {
      done.status = reply.error();
    }
    runner_.Complete(std::move(done));
  });
}

void OperatorRole::Emit(const Effect& effect) {
  std::visit(Overloaded{
                 [](const contract::Persist&) {},
                 [](const Call&) {},
                 [this](const Send& send) { SendToShard(send.message); },
                 [this](const GiveBlob& give) { GiveBlobFor(give.request_id); },
                 [](const Notice& notice) {
                   log::Warn("operator",
                             {{"what", notice.what}, {"subject", notice.subject}, {"detail", notice.detail}});
                 },
             },
             effect);
}

void OperatorRole::SendToShard(contract::OperatorMessage message) {
  std::shared_ptr<rpc::SessionClient> session;
  {
    const std::lock_guard lock(mu_);
    session = session_;
  }
  if (session != nullptr) session->Send(std::move(message));
}

Result<std::string> OperatorRole::ReadTemplate() const {
  return options_.bootstrap.empty() ? DefaultBootstrap(options_) : host::ReadTextFile(options_.bootstrap);
}

void OperatorRole::GiveBlobFor(const std::string& request_id) {
  if (enrol_ != nullptr) return GiveTokenFor(request_id);
  contract::BootstrapResponse response{.request_id = request_id};
  if (auto text = ReadTemplate()) {
    response.user_data = *std::move(text);
  } else {
    response.error = text.error().message();
    log::Err("no bootstrap data", {{"file", options_.bootstrap.string()}, {"why", text.error().message()}});
  }
  SendToShard(std::move(response));
}

void OperatorRole::GiveTokenFor(const std::string& request_id) {
  enrol_->CreateToken([this, request_id](const Result<rpc::TokenText>& token) {
    contract::BootstrapResponse response{.request_id = request_id};
    if (token) {
      response.user_data = BootstrapWith(options_, *token);
      response.ttl = kTokenGood;
    } else if (token.error().code() == Code::kUnimplemented) {
      response.user_data = DefaultBootstrap(options_);  // machines have their certificates from elsewhere
    } else {
      response.error = token.error().message();
      log::Err("no join token", {{"scheduler", options_.scheduler}, {"why", token.error().message()}});
    }
    SendToShard(std::move(response));
  });
}

// --- the session

void OperatorRole::Received(contract::ShardMessage message) {
  if (const auto* ack = std::get_if<contract::Acknowledgement>(&message); ack != nullptr && ack->echo == "hello") {
    {
      const std::lock_guard lock(mu_);
      session_open_ = true;
    }
    log::Info("session with the shard", {{"shard", options_.shard}, {"epoch", ack->shard_epoch}});
    runner_.Post(SessionOpened{});
    return;
  }
  runner_.Post(operators::Received{.message = std::move(message)});
}

void OperatorRole::Unreadable(Status why) {
  log::Warn("a message of the shard cannot be read", {{"why", why.message()}});
}

void OperatorRole::Ended(Status status) {
  {
    const std::lock_guard lock(mu_);
    session_ended_ = std::move(status);
  }
  changed_.notify_all();
}

void OperatorRole::Retry::Failed(MonoTime now) {
  pause = pause == Duration::zero() ? kFirstPause : std::min(2 * pause, kLongestPause);
  at = now + pause;
}

void OperatorRole::KeepSession(MonoTime now) {
  std::shared_ptr<rpc::SessionClient> gone;
  std::optional<Status> ended;
  {
    const std::lock_guard lock(mu_);
    ended = std::exchange(session_ended_, std::nullopt);
    if (ended) {
      if (session_open_) session_retry_.Succeeded();
      gone = std::exchange(session_, nullptr);
      session_open_ = false;
    }
    if (!ended && session_ != nullptr) return;
  }
  gone.reset();  // waits for its handler: not under the lock
  if (ended) {
    session_retry_.Failed(now);
    runner_.Post(SessionClosed{.why = *ended});
  }
  if (now < session_retry_.at) return;
  auto session = rpc::OpenSession(
      options_.shard,
      {.cluster_id = options_.config.cluster, .protocol_version = std::string(contract::kProtocolVersion)}, *this,
      options_.server.tls);
  if (!session) {
    session_retry_.Failed(now);
    log::Err("cannot open a session", {{"shard", options_.shard}, {"why", session.error().message()}});
    return;
  }
  const std::lock_guard lock(mu_);
  session_ = *std::move(session);
}

// --- the scheduler

Status OperatorRole::ListAndWatch(const std::stop_token& stop) {
  ClusterListed listed;
  const auto from = ListAll(*cluster_, contract::ListNodes{}, &contract::NodesListed::nodes, listed.nodes, stop);
  if (!from) return from.error();
  const auto rest =
      ListAll(*cluster_, contract::ListWorkloads{}, &contract::WorkloadsListed::workloads, listed.workloads, stop);
  if (!rest) return rest.error();
  runner_.Post(std::move(listed));
  // From the first page on: what changed while the pages were read comes again.
  watch_ = cluster_->Watch({.nodes = true, .workloads = true, .from = *from},
                           {.changed =
                                [this](contract::ClusterChange change) {
                                  if (auto* object = std::get_if<contract::ObjectChanged>(&change)) {
                                    runner_.Post(ClusterChanged{.change = std::move(*object)});
                                  }
                                },
                            .ended =
                                [this](Status status) {
                                  {
                                    const std::lock_guard lock(mu_);
                                    watch_ended_ = std::move(status);
                                  }
                                  changed_.notify_all();
                                }});
  return {};
}

void OperatorRole::KeepWatch(const std::stop_token& stop, MonoTime now) {
  std::optional<Status> ended;
  {
    const std::lock_guard lock(mu_);
    ended = std::exchange(watch_ended_, std::nullopt);
    if (ended) watching_ = false;
    if (!ended && watching_) return;
  }
  if (ended) {
    watch_.reset();
    // A scheduler that no longer has the changes is there: list again at once.
    if (ended->code() != Code::kOutOfRange) {
      watch_retry_.Failed(now);
      runner_.Post(ClusterLost{.why = *ended});
    }
  }
  if (now < watch_retry_.at) return;
  if (const Status status = ListAndWatch(stop); !status.ok()) {
    if (!stop.stop_requested()) log::Warn("the scheduler cannot be listed", {{"why", status.message()}});
    watch_retry_.Failed(now);
    return;
  }
  watch_retry_.Succeeded();
  const std::lock_guard lock(mu_);
  watching_ = true;
}

void OperatorRole::KeepLinks(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const MonoTime now = clock_.Read().mono;
    KeepSession(now);
    KeepWatch(stop, now);
    std::unique_lock lock(mu_);
    changed_.wait_for(lock, stop, kLook, [this] { return session_ended_ || watch_ended_; });
  }
  watch_.reset();
  std::shared_ptr<rpc::SessionClient> session;
  {
    const std::lock_guard lock(mu_);
    session = std::exchange(session_, nullptr);
    session_open_ = false;
    watching_ = false;
  }
  if (session != nullptr) session->Close();
}

void OperatorRole::UpdateGauges() {
  const auto view = runner_.View();
  {
    const std::lock_guard lock(mu_);
    metrics_.session.With().Set(session_open_ ? 1 : 0);
    metrics_.scheduler.With().Set(watching_ ? 1 : 0);
  }
  metrics_.needs.With().Set(static_cast<double>(view->needs.size()));
  metrics_.left_out.With().Set(static_cast<double>(view->left_out));
  metrics_.corrections.With().Set(static_cast<double>(view->corrections.size()));
  metrics_.machines.With().Set(static_cast<double>(view->machines.size()));
  metrics_.reclaims.With().Set(static_cast<double>(view->reclaims.size()));
  metrics_.rollups.With().RaiseTo(static_cast<double>(view->rollups));
}

}  // namespace muster::operators
