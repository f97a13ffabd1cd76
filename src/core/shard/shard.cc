#include "core/shard/shard.h"

#include <algorithm>

#include "base/check.h"
#include "base/codec.h"
#include "base/probe.h"
#include "contract/core.h"

namespace muster::shard {
namespace {

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};

}  // namespace

static_assert(contract::Core<Core>);

Core::Core(Config config, Parallel* parallel)
    : parallel_(parallel), engine_(std::make_unique<engine::fast::Engine>(config.policy, parallel)) {
  config_ = std::move(config);
}
Core::Core(Core&&) noexcept = default;
Core& Core::operator=(Core&&) noexcept = default;
Core::~Core() = default;

void Core::Step(const Event& event, Now now, std::vector<Effect>& out) {
  const size_t before = out.size();
  Turn turn{.now = now, .out = out, .persist = {}};
  const bool reads = page_.has_value() && stopped_.ok();
  if (reads) TakePage(turn);
  if (const auto* done = std::get_if<CallDone>(&event)) {
    const auto found = open_calls_.find(done->id);
    MUSTER_CHECK(found != open_calls_.end(), "the host ended call {}, which is not open", done->id);
    const OpenCall call = std::move(found->second);
    open_calls_.erase(found);
    if (!stopped_.ok()) return;
    switch (call.kind) {
      case OpenCall::Kind::kTransition: OnTransitionDone(*done, call, turn); break;
      case OpenCall::Kind::kGet: OnGetDone(*done, call, turn); break;
      case OpenCall::Kind::kList: OnListDone(*done, call, turn); break;
      case OpenCall::Kind::kReport: OnReportDone(*done, turn); break;
    }
  } else if (!stopped_.ok()) {
    const auto* asked = std::get_if<Asked>(&event);
    if (asked != nullptr) out.push_back(Answer{.request = asked->request, .status = stopped_, .reply = std::nullopt});
    return;
  } else {
    std::visit(Overloaded{
                   [&](const contract::Wake&) {
                     if (!started_) Start(turn);
                   },
                   [&](const SessionOpened& opened) { OnOpened(opened, turn); },
                   [&](const SessionClosed& closed) { OnClosed(closed.session, turn); },
                   [&](const Received& received) { OnReceived(received, turn); },
                   [&](const RollupUnreadable& unreadable) {
                     const auto session = sessions_.find(unreadable.session);
                     if (session != sessions_.end()) RefuseRollup(session->second, unreadable.why.message(), turn);
                   },
                   [&](const Asked& asked) { OnAsked(asked, turn); },
                   [&](const CallDone&) {},
               },
               event);
  }
  // A step that reads a page decides nothing: it has done enough.
  if (started_ && stopped_.ok()) Work(std::holds_alternative<contract::Wake>(event) && !reads, turn);
  if (turn.persist.writes.empty()) return;
  out.insert(out.begin() + static_cast<ptrdiff_t>(before), Effect(std::move(turn.persist)));
}

// Whatever is due. Cycles run on a wake only: what came together with it is decided together.
void Core::Work(bool awake, Turn& turn) {
  RunDeadlines(turn);
  RunRepairs(turn);
  if (awake && MayDecide(turn.now.mono) && turn.now.mono >= NextCycle()) RunCycle(turn);
  CallProvider(turn);
  AskGets(turn);
  AskList(turn);
  SendHints(turn);
  Report(turn);
}

std::optional<MonoTime> Core::NextWake() const {
  if (!started_) return MonoTime{};
  if (!stopped_.ok()) return std::nullopt;
  if (page_) return MonoTime{};
  MonoTime next = MonoTime::max();
  const auto at = [&](MonoTime when) { next = std::min(next, when); };
  if (!list_open_) at(next_list_);
  if (ready_) at(awaited_.empty() ? NextCycle() : std::max(warm_until_, NextCycle()));
  if (!deadlines_.empty()) at(deadlines_.begin()->first);
  if (!to_look_.empty() && looking_.empty()) at(next_look_);
  if (!repairs_due_.empty()) at(repairs_due_.begin()->first);
  if (decided_) at(next_hints_);
  if (decided_ && !config_.coordinator.empty() && !report_open_) at(next_report_);
  return next;
}

std::shared_ptr<const Snapshot> Core::View() const {
  auto view = std::make_shared<Snapshot>();
  view->ready = ready_;
  view->stopped = stopped_;
  view->epoch = epoch_;
  view->cycle = cycle_;
  view->mode = mode_;
  view->machines = counts_;
  view->demand = demand_;
  view->sessions = sessions_.size();
  view->shortfalls = short_.size();
  view->shortfalls_aged = short_aged_;
  view->shortfalls_by_priority = short_by_priority_;
  for (const auto& [name, cluster] : clusters_) {
    if (cluster.held > 0) view->quarantined.emplace(name, cluster.held);
  }
  view->operations = operations_.size();
  view->calls = static_cast<uint64_t>(calling_);
  view->counters = counters_;
  return view;
}

void Core::CheckInvariants() const {
  std::map<std::string, int64_t> configured;
  uint64_t swept = 0;
  for (const auto& [id, tracked] : machines_) {
    const model::Machine& machine = *tracked.record;
    MUSTER_CHECK(machine.id == id);
    swept += tracked.sweep == sweep_ ? 1 : 0;
    MUSTER_CHECK(Owns(machine) || MUTANT("shard.owns_everything"), "machine {} is not this shard's", id);
    if (machine.cluster.empty()) continue;
    MUSTER_CHECK(clusters_.find(machine.cluster)->second.bound.contains(id));
    if (ShownState(id, tracked) == model::MachineState::kConfigured) ++configured[machine.cluster];
  }
  for (const auto& [name, cluster] : clusters_) {
    MUSTER_CHECK(cluster.configured == configured[name], "cluster {} has {} Configured machines, not {}", name,
                 configured[name], cluster.configured);
    MUSTER_CHECK(cluster.rows.size() == cluster.digests.size() && cluster.rows.size() == cluster.came.size());
    if (cluster.session != 0) MUSTER_CHECK(sessions_.at(cluster.session) == name);
  }
  MUSTER_CHECK(std::ranges::all_of(
      sessions_, [&](const auto& session) { return clusters_.find(session.second)->second.session == session.first; }));
  int32_t calling = 0;
  size_t deadlines = 0;
  for (const auto& [id, operation] : operations_) {
    MUSTER_CHECK(machines_.contains(id), "an operation on {}, which is not there", id);
    deadlines += operation.deadline ? 1 : 0;
    if (operation.deadline) MUSTER_CHECK(deadlines_.contains({*operation.deadline, id}));
    if (operation.stage == Stage::kCalling) {
      MUSTER_CHECK(open_calls_.contains(operation.call) || !stopped_.ok());
      MUSTER_CHECK(epoch_ > 0);
    }
  }
  MUSTER_CHECK(swept == swept_);
  MUSTER_CHECK(deadlines == deadlines_.size());
  size_t due = 0;
  for (const auto& [id, repair] : repairs_) due += repair.due && repairs_due_.contains({*repair.due, id}) ? 1 : 0;
  MUSTER_CHECK(due == repairs_due_.size());
  for (const auto& [id, call] : open_calls_) calling += call.kind == OpenCall::Kind::kTransition ? 1 : 0;
  if (stopped_.ok()) MUSTER_CHECK(calling == calling_ && calling_ <= config_.execute_concurrency);
}

}  // namespace muster::shard
