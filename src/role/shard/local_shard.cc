#include "role/shard/local_shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/log.h"
#include "base/overloaded.h"
#include "base/probe.h"
#include "role/shard/audit_line.h"

namespace muster::shard {
namespace {

Status ConnectAgain() { return {Code::kUnavailable, "the shard is stopping; connect again"}; }

// What a partner answered, as the core takes it.
template <class Reply>
Core::CallDone DoneOf(contract::CallId id, Result<Reply> result) {
  if (!result) return {.id = id, .status = std::move(result).error(), .reply = std::nullopt};
  Core::CallDone done{.id = id, .status = {}, .reply = std::nullopt};
  if constexpr (std::is_same_v<Reply, contract::ProviderReply>) {
    std::visit([&](auto& reply) { done.reply = PartnerReply(std::move(reply)); }, *result);
  } else {
    done.reply = PartnerReply(*std::move(result));
  }
  return done;
}

bool IsOrder(const contract::ShardRequest& request) {
  return std::visit([](const auto& body) { return requires { body.who; }; }, request);
}

// Whether the answer promises that something was done.
bool Promises(const contract::ShardReply& reply) {
  return std::holds_alternative<contract::ActuationSet>(reply) || std::holds_alternative<contract::OrderTaken>(reply) ||
         std::holds_alternative<contract::LossesAccepted>(reply);
}

void LogNotice(const Notice& notice) {
  const log::Level level = [&] {
    switch (notice.reason) {
      case model::Reason::kAdopted:
      case model::Reason::kModeSet: return log::Level::kInfo;
      default: return log::Level::kWarn;
    }
  }();
  log::Write(level, "notice",
             {{"reason", model::ReasonName(notice.reason)}, {"subject", notice.subject}, {"detail", notice.detail}});
}

}  // namespace

LocalShard::LocalShard(LocalOptions options, contract::ProviderPort& provider, rpc::CoordinatorClient* coordinator,
                       const Clock& clock, LocalEvents events)
    : options_(std::move(options)),
      provider_(provider),
      coordinator_(coordinator),
      events_(std::move(events)),
      runner_({.name = "shard",
               .state_file = options_.data_dir / kStateFile,
               .journal = options_.journal,
               .journal_options = options_.journal_options,
               .clock = clock},
              *this) {}

LocalShard::~LocalShard() { Stop(); }

Status LocalShard::Start() {
  if (!options_.audit.path.empty()) {
    auto audit = AuditLog::Open(options_.audit);
    if (!audit) return audit.error();
    audit_ = *std::move(audit);
  }
  const Status opened = runner_.Open([this](const contract::Recovered& rows) {
    pool_ = std::make_unique<host::Pool>(
        std::max<size_t>(1, options_.workers),
        [this](std::string_view what, uint64_t nanos) { events_.phase_ended(what, std::chrono::nanoseconds(nanos)); });
    return Core::Recover(options_.config, rows, pool_.get());
  });
  if (opened.code() == Code::kDataLoss) {
    return {Code::kDataLoss,
            fmt::format("{}; or move {} away and start with --epoch-at-least N, N higher than any epoch the shard had",
                        opened.message(), (options_.data_dir / kStateFile).string())};
  }
  MUSTER_RETURN_IF_ERROR(opened);
  if (!options_.ceilings.empty()) SetCeilings(options_.ceilings);  // waits for Start, and is the first event then
  return runner_.Start();
}

void LocalShard::Stop() {
  runner_.Stop();
  std::unordered_map<contract::SessionId, std::shared_ptr<contract::SessionSink>> sinks;
  {
    const std::lock_guard lock(mu_);
    stopping_ = true;
    sinks.swap(sinks_);
  }
  for (auto& [id, sink] : sinks) sink->Close(ConnectAgain());
}

// What cannot be stored is not done: an order is refused at once. Questions are answered (IsRead).
void LocalShard::Ask(contract::ShardRequest request, Answer done) {
  const bool order = IsOrder(request);
  if (const Status stored = state_status(); !stored.ok() && order) {
    return done(Error(Code::kUnavailable, fmt::format("state cannot be stored: {}", stored.message())));
  }
  runner_.Ask(Asked{.request = 0, .body = std::move(request)}, std::move(done),
              order ? host::Turn::kFirst : host::Turn::kInOrder);
}

contract::SessionId LocalShard::Open(contract::Hello hello, std::shared_ptr<contract::SessionSink> sink) {
  contract::SessionId session = 0;
  {
    const std::lock_guard lock(mu_);
    session = ++last_session_;
    sessions_.emplace(session, Session{.cluster = hello.cluster_id});
    if (!stopping_) sinks_.emplace(session, sink);
  }
  // A host that is stopping takes nothing: Stop closes the sinks it finds, and one that came after it is closed here.
  if (!runner_.Post(SessionOpened{.session = session, .hello = std::move(hello)}) && SinkOf(session) == nullptr) {
    sink->Close(ConnectAgain());
  }
  return session;
}

void LocalShard::Receive(contract::SessionId session, contract::OperatorMessage message,
                         std::shared_ptr<void> until_taken) {
  auto* response = std::get_if<contract::BootstrapResponse>(&message);
  if (response != nullptr && !KeepBlob(session, *response)) return;
  runner_.Post(Received{.session = session, .message = std::move(message)}, until_taken);
}

// A cluster may answer what it was asked, and once. The core would not look at anything else.
bool LocalShard::KeepBlob(contract::SessionId session, contract::BootstrapResponse& response) {
  const std::lock_guard lock(mu_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end() || found->second.asked.erase(response.request_id) == 0) return false;
  auto handle = blobs_.Put(found->second.cluster, std::exchange(response.user_data, {}));
  MUSTER_CHECK(handle.has_value(), "what is kept in memory is kept");
  if (!handle->empty()) found->second.blobs.insert(*handle);
  response.user_data = *std::move(handle);
  return true;
}

void LocalShard::Asks(contract::SessionId session, const contract::ShardMessage& message) {
  const auto* request = std::get_if<contract::BootstrapRequest>(&message);
  if (request == nullptr) return;
  const std::lock_guard lock(mu_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  std::set<std::string>& asked = found->second.asked;
  asked.insert(request->request_id);
  if (asked.size() > kMostAsked) asked.erase(asked.begin());  // their names go up
}

// From here on its Configure has it.
void LocalShard::Taken(const std::string& handle) {
  const std::lock_guard lock(mu_);
  for (auto& [session, open] : sessions_) open.blobs.erase(handle);
}

// The core ends what its data was for, and asks for it again in the next one.
void LocalShard::EndSession(contract::SessionId session) {
  const std::lock_guard lock(mu_);
  sinks_.erase(session);
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  for (const std::string& handle : found->second.blobs) blobs_.Drop(handle);
  sessions_.erase(found);
}

void LocalShard::RefuseRollup(contract::SessionId session, Status why, std::shared_ptr<void> until_taken) {
  runner_.Post(RollupUnreadable{.session = session, .why = std::move(why)}, until_taken);
}

void LocalShard::Closed(contract::SessionId session) {
  EndSession(session);
  runner_.Post(SessionClosed{.session = session});
}

std::shared_ptr<contract::SessionSink> LocalShard::SinkOf(contract::SessionId session) {
  const std::lock_guard lock(mu_);
  const auto sink = sinks_.find(session);
  return sink == sinks_.end() ? nullptr : sink->second;
}

// The data itself goes out, and is forgotten here: whatever the provider answers, the operation ends, and the next one
// asks for data of its own.
void LocalShard::Configure(contract::CallId id, contract::ConfigureRequest request, Duration timeout) {
  const std::string handle = request.bootstrap_blob;
  auto blob = blobs_.Get(handle);
  if (!blob) {
    return runner_.Complete(DoneOf<contract::ProviderReply>(
        id, Error(Code::kAborted, "the cluster's bootstrap data is gone; it is asked again")));
  }
  request.bootstrap_blob = *std::move(blob);
  Taken(handle);
  blobs_.Drop(handle);
  provider_.Ask(std::move(request), timeout, [this, id](Result<contract::ProviderReply> result) {
    CRASH_POINT("shard.before_completion");
    runner_.Complete(DoneOf(id, std::move(result)));
  });
}

void LocalShard::StartCall(const Core::Call& call) {
  CRASH_POINT("shard.before_call");
  if (const auto* report = std::get_if<contract::ShardReport>(&call.request)) {
    MUSTER_CHECK(coordinator_ != nullptr, "the core reports, and there is no coordinator");
    coordinator_->Report(*report, call.timeout, [this, id = call.id](Result<contract::ReportAck> result) {
      runner_.Complete(DoneOf(id, std::move(result)));
    });
    return;
  }
  if (const auto* configure = std::get_if<contract::ConfigureRequest>(&call.request)) {
    Configure(call.id, *configure, call.timeout);
    CRASH_POINT("shard.after_call");
    return;
  }
  std::visit(
      [&](const auto& request) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(request)>, contract::ShardReport>) {
          provider_.Ask(request, call.timeout, [this, id = call.id](Result<contract::ProviderReply> result) {
            CRASH_POINT("shard.before_completion");
            runner_.Complete(DoneOf(id, std::move(result)));
          });
        }
      },
      call.request);
  CRASH_POINT("shard.after_call");
}

void LocalShard::Emit(const Core::Effect& effect) {
  std::visit(Overloaded{
                 [](const contract::Persist&) {},
                 [](const Core::Call&) {},
                 [&](const Send& send) {
                   CRASH_POINT("shard.before_send");
                   Asks(send.session, send.message);
                   if (const auto sink = SinkOf(send.session)) sink->Send(send.message);
                 },
                 [&](const CloseSession& close) {
                   if (const auto sink = SinkOf(close.session)) sink->Close(close.status);
                 },
                 [&](const shard::Answer& answer) { runner_.Give(answer); },
                 [&](const Audit& audit) {
                   if (audit_ != nullptr) audit_->Append(AuditLine(audit, options_.config.id));
                 },
                 // An order may come when no cycle runs, so it is made durable by itself.
                 [&](const AuditOrder& audit) {
                   if (audit_ == nullptr) return;
                   audit_->Append(AuditLine(audit, options_.config.id));
                   audit_->Sync();
                 },
                 [](const Notice& notice) { LogNotice(notice); },
                 [&](const Lasted& lasted) { events_.lasted(lasted); },
                 [&](const CycleEnded&) {
                   if (audit_ != nullptr) audit_->Sync();
                 },
                 [&](const shard::Stop& stop) {
                   log::Err("the shard stops", {{"error", stop.why.ToString()}});
                   if (audit_ != nullptr) audit_->Sync();
                   events_.stopped(stop.why);
                 },
             },
             effect);
}

bool LocalShard::IsRead(const Core::Effect& effect) const {
  const auto* answer = std::get_if<shard::Answer>(&effect);
  return answer != nullptr && (!answer->reply || !Promises(*answer->reply));
}

void LocalShard::Stepped(std::span<const Core::Effect> effects, Duration took) {
  const bool decided = std::ranges::any_of(
      effects, [](const Core::Effect& effect) { return std::holds_alternative<CycleEnded>(effect); });
  if (decided) events_.cycle_ended(took);
}

}  // namespace muster::shard
