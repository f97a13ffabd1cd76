#include "role/shard/local_shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/log.h"
#include "base/probe.h"
#include "role/shard/audit_line.h"

namespace muster::shard {
namespace {

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};

constexpr std::string_view kStopping = "the shard is stopping; ask again";

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
      clock_(clock),
      events_(std::move(events)) {}

LocalShard::~LocalShard() { Stop(); }

Status LocalShard::Start() {
  const std::filesystem::path file = options_.data_dir / kStateFile;
  const auto with_advice = [&](const Status& status) {
    if (status.code() != Code::kDataLoss) return status;
    return Status(Code::kDataLoss,
                  fmt::format("{}; or move {} away and start with --epoch-at-least N, N higher than any "
                              "epoch the shard had",
                              status.message(), file.string()));
  };
  auto persist = host::SqlitePersist::Open(file, std::string(Core::kName));
  if (!persist) return with_advice(persist.error());
  persist_ = *std::move(persist);
  auto rows = persist_->Recover();
  if (!rows) return with_advice(rows.error());
  pool_ = std::make_unique<host::Pool>(
      std::max<size_t>(1, options_.workers),
      [this](std::string_view what, uint64_t nanos) { events_.phase_ended(what, std::chrono::nanoseconds(nanos)); });
  auto core = Core::Recover(options_.config, *rows, pool_.get());
  if (!core) return with_advice(core.error());
  rows->clear();
  if (!options_.audit.path.empty()) {
    auto audit = AuditLog::Open(options_.audit);
    if (!audit) return audit.error();
    audit_ = *std::move(audit);
  }
  if (!options_.journal.empty()) {
    auto journal = host::JournalWriter::Open(options_.journal, std::string(Core::kName));
    if (!journal) return journal.error();
    journal_ = *std::move(journal);
  }
  host::ThreadHost<Core>::Shell& shell = *this;
  host_ = std::make_unique<host::ThreadHost<Core>>(
      *std::move(core), shell,
      host::ThreadHost<Core>::Options{.clock = clock_, .persist = *persist_, .journal = journal_.get()});
  return host_->Start();
}

void LocalShard::Stop() {
  if (host_ != nullptr) host_->Stop();
  std::unordered_map<contract::RequestId, Answer> left;
  std::unordered_map<contract::SessionId, std::shared_ptr<contract::SessionSink>> sinks;
  {
    const std::lock_guard lock(mu_);
    stopping_ = true;
    left.swap(waiting_);
    sinks.swap(sinks_);
  }
  for (auto& [id, done] : left) done(Error(Code::kUnavailable, std::string(kStopping)));
  for (auto& [id, sink] : sinks) sink->Close(Status(Code::kUnavailable, "the shard is stopping; connect again"));
}

void LocalShard::Ask(contract::ShardRequest request, Answer done) {
  contract::RequestId id = 0;
  {
    const std::lock_guard lock(mu_);
    if (!stopping_) {
      id = ++last_request_;
      waiting_.emplace(id, done);
    }
  }
  if (id != 0 && host_->Post(Asked{.request = id, .body = std::move(request)})) return;
  // Whoever takes it out of the table answers: this thread, or Stop.
  bool mine = id == 0;
  if (id != 0) {
    const std::lock_guard lock(mu_);
    mine = waiting_.erase(id) > 0;
  }
  if (mine) done(Error(Code::kUnavailable, std::string(kStopping)));
}

contract::SessionId LocalShard::Open(contract::Hello hello, std::shared_ptr<contract::SessionSink> sink) {
  contract::SessionId session = 0;
  {
    const std::lock_guard lock(mu_);
    session = ++last_session_;
    if (!stopping_) sinks_.emplace(session, sink);
  }
  // A host that is stopping takes nothing: Stop closes the sinks it finds, and one that came after it is closed here.
  if (!host_->Post(SessionOpened{.session = session, .hello = std::move(hello)}) && SinkOf(session) == nullptr) {
    sink->Close(Status(Code::kUnavailable, "the shard is stopping; connect again"));
  }
  return session;
}

void LocalShard::Receive(contract::SessionId session, contract::OperatorMessage message) {
  host_->Post(Received{.session = session, .message = std::move(message)});
}

void LocalShard::RefuseRollup(contract::SessionId session, Status why) {
  host_->Post(RollupUnreadable{.session = session, .why = std::move(why)});
}

void LocalShard::Closed(contract::SessionId session) {
  {
    const std::lock_guard lock(mu_);
    sinks_.erase(session);
  }
  host_->Post(SessionClosed{.session = session});
}

std::shared_ptr<contract::SessionSink> LocalShard::SinkOf(contract::SessionId session) {
  const std::lock_guard lock(mu_);
  const auto sink = sinks_.find(session);
  return sink == sinks_.end() ? nullptr : sink->second;
}

void LocalShard::StartCall(const Core::Call& call) {
  CRASH_POINT("shard.before_call");
  if (const auto* report = std::get_if<contract::ShardReport>(&call.request)) {
    MUSTER_CHECK(coordinator_ != nullptr, "the core reports, and there is no coordinator");
    coordinator_->Report(*report, call.timeout, [this, id = call.id](Result<contract::ReportAck> result) {
      host_->Complete(DoneOf(id, std::move(result)));
    });
    return;
  }
  std::visit(
      [&](const auto& request) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(request)>, contract::ShardReport>) {
          provider_.Ask(request, call.timeout, [this, id = call.id](Result<contract::ProviderReply> result) {
            CRASH_POINT("shard.before_completion");
            host_->Complete(DoneOf(id, std::move(result)));
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
                   if (const auto sink = SinkOf(send.session)) sink->Send(send.message);
                 },
                 [&](const CloseSession& close) {
                   if (const auto sink = SinkOf(close.session)) sink->Close(close.status);
                 },
                 [&](const shard::Answer& answer) { Give(answer); },
                 [&](const Audit& audit) {
                   if (audit_ != nullptr) audit_->Append(AuditLine(audit, options_.config.id));
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

void LocalShard::Stepped(std::span<const Core::Effect> effects, Duration took) {
  const bool decided = std::ranges::any_of(
      effects, [](const Core::Effect& effect) { return std::holds_alternative<CycleEnded>(effect); });
  if (decided) events_.cycle_ended(took);
}

void LocalShard::Give(const shard::Answer& answer) {
  Answer done;
  {
    const std::lock_guard lock(mu_);
    const auto waiting = waiting_.find(answer.request);
    if (waiting == waiting_.end()) return;
    done = std::move(waiting->second);
    waiting_.erase(waiting);
  }
  if (answer.status.ok()) {
    done(*std::move(answer.reply));
  } else {
    done(std::unexpected(answer.status));
  }
}

}  // namespace muster::shard
