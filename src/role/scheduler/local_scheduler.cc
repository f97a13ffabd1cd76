#include "role/scheduler/local_scheduler.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/log.h"
#include "base/overloaded.h"
#include "base/probe.h"
#include "role/scheduler/secret_texts.h"
#include "store/carry_out.h"

namespace muster::scheduler {
namespace {

struct Callee {
  std::string node;
  std::string address;
};

// "<node id> <host:port>"
Callee ReadCallee(const std::string& to) {
  const size_t space = to.find(' ');
  if (space == std::string::npos) return {.node = to, .address = {}};
  return {.node = to.substr(0, space), .address = to.substr(space + 1)};
}

bool IsSilence(Code code) { return code == Code::kUnavailable || code == Code::kDeadlineExceeded; }

void LogDecision(const contract::Decision& decision) {
  log::Info("decision", {{"kind", contract::DecisionKindName(decision.kind)},
                         {"workload", decision.workload},
                         {"node", decision.node},
                         {"reason", decision.reason},
                         {"message", decision.message}});
}

}  // namespace

LocalScheduler::LocalScheduler(LocalOptions options, std::unique_ptr<store::Store> store,
                               std::unique_ptr<rpc::AgentClient> agents, const Clock& clock, LocalEvents events)
    : options_(std::move(options)),
      clock_(clock),
      events_(std::move(events)),
      runner_({.name = "scheduler",
               .state_file = {},
               .journal = options_.journal,
               .journal_options = options_.journal_options,
               .clock = clock},
              *this),
      store_(std::move(store)),
      agents_(std::move(agents)) {}

LocalScheduler::~LocalScheduler() { Stop(); }

Status LocalScheduler::Start() {
  MUSTER_RETURN_IF_ERROR(
      runner_.Open([this](const contract::Recovered&) -> Result<Core> { return Core(options_.config); }));
  return runner_.Start();
}

void LocalScheduler::UseStore(std::string address) {
  feed_ = std::make_unique<StoreFeed>(*store_,
                                      StoreFeedOptions{.prefix = options_.config.prefix,
                                                       .address = std::move(address),
                                                       .election = options_.election,
                                                       .lost_after = options_.store_lost_after,
                                                       .event_ttl = options_.config.event_ttl,
                                                       .compact_every = options_.store_compact_every},
                                      [this](Event event) { Tell(std::move(event)); });
}

void LocalScheduler::Stop() {
  if (feed_ != nullptr) feed_->Resign();
  hub_.Close({Code::kUnavailable, "the scheduler is stopping; watch again"});
  feed_.reset();
  runner_.Stop();
  store_.reset();
}

// A watcher may begin at a revision once the rows at that revision are with the core.
void LocalScheduler::Tell(Event event) {
  if (const auto* listed = std::get_if<StoreListed>(&event)) hub_.Begin(listed->revision);
  runner_.Post(std::move(event));
}

void LocalScheduler::Ask(contract::ClusterRequest request, Done done) {
  AskFor("", std::move(request), std::move(done));
}

void LocalScheduler::AskFor(const std::string& tenant, contract::ClusterRequest request, Done done) {
  if (Status sealed = SealSecrets(options_.seal.get(), tenant, request); !sealed.ok()) {
    return done(std::unexpected(std::move(sealed)));
  }
  runner_.Ask(Asked{.request = 0, .body = std::move(request), .tenant = tenant}, std::move(done));
}

void LocalScheduler::Read(contract::ReadLogs request, std::shared_ptr<contract::LogsSink> sink) {
  const std::string workload = request.workload;
  Ask(contract::GetWorkload{.workload = workload},
      [this, request = std::move(request), sink](const Result<contract::ClusterReply>& reply) {
        if (!reply) return sink->End(reply.error());
        const auto& view = std::get<contract::WorkloadView>(*reply);
        if (view.node.empty()) return sink->End({Code::kFailedPrecondition, "the workload is on no node"});
        Ask(contract::GetNode{.node = view.node}, [this, request, sink](const Result<contract::ClusterReply>& node) {
          if (!node) return sink->End(node.error());
          const auto& found = std::get<contract::NodeView>(*node);
          agents_->ReadLogs({.address = found.endpoint, .node = found.node}, request, sink);
        });
      });
}

Status LocalScheduler::store_status() const {
  return feed_ == nullptr ? Status(Code::kUnavailable, "not started") : feed_->store_status();
}

void LocalScheduler::StartCall(const Core::Call& call) {
  CRASH_POINT("scheduler.before_call");
  const Callee callee = ReadCallee(call.to);
  const bool has_stream = streams_.Has(callee.node);
  contract::AgentRequest request = call.request;
  if (Status opened = OpenSecrets(options_.seal.get(), request); !opened.ok()) {
    return Finish(call.id, std::unexpected(std::move(opened)));
  }
  if (callee.address.empty()) return Finish(call.id, streams_.Ask(callee.node, request));
  agents_->Ask({.address = callee.address, .node = callee.node}, request, has_stream ? call.timeout / 2 : call.timeout,
               [this, id = call.id, node = callee.node, request,
                began = clock_.Read().mono](Result<contract::AgentReply> reply) {
                 const Code code = reply ? Code::kOk : reply.error().code();
                 events_.agent_called(request, code, clock_.Read().mono - began);
                 if (IsSilence(code) && streams_.Has(node)) reply = streams_.Ask(node, request);
                 Finish(id, std::move(reply));
               });
}

void LocalScheduler::Finish(contract::CallId id, Result<contract::AgentReply> reply) {
  CRASH_POINT("scheduler.before_completion");
  if (reply) return runner_.Complete({.id = id, .status = {}, .reply = *std::move(reply)});
  runner_.Complete({.id = id, .status = reply.error(), .reply = std::nullopt});
}

void LocalScheduler::Emit(const Core::Effect& effect) {
  std::visit(Overloaded{
                 [](const contract::Persist&) {},
                 [](const Core::Call&) {},
                 [&](const contract::Commit& commit) {
                   CRASH_POINT("scheduler.before_commit");
                   store::CarryOut(*store_, commit, [this](contract::CommitDone done) {
                     CRASH_POINT("scheduler.after_commit");
                     runner_.Post(std::move(done));
                   });
                 },
                 [&](const scheduler::Answer& answer) {
                   CRASH_POINT("scheduler.before_answer");
                   if (answer.reply) {
                     auto* const joined = std::get_if<contract::NodeRegistered>(&*answer.reply);
                     if (joined != nullptr) OpenSecrets(options_.seal.get(), joined->state);
                   }
                   runner_.Give(answer);
                 },
                 [&](const Publish& publish) {
                   if (const auto* decision = std::get_if<contract::Decision>(&publish.change)) LogDecision(*decision);
                   hub_.Publish(publish.change);
                 },
                 [](const Notice& notice) {
                   log::Warn("notice", {{"what", notice.what}, {"subject", notice.subject}, {"detail", notice.detail}});
                 },
                 [&](const Reconciled& reconciled) { events_.reconciled(reconciled); },
             },
             effect);
}

void LocalScheduler::Stepped(std::span<const Core::Effect> effects, Duration took) {
  bool any = false;
  bool success = true;
  for (const Core::Effect& effect : effects) {
    const auto* reconciled = std::get_if<Reconciled>(&effect);
    if (reconciled == nullptr) continue;
    any = true;
    success = success && reconciled->success;
  }
  if (any) events_.cycle_ended(success, took);
}

}  // namespace muster::scheduler
