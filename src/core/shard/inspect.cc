// What operators ask: needs, machines, actions, clusters, why; and what they order.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/probe.h"
#include "core/shard/shard.h"
#include "model/names.h"

namespace muster::shard {
namespace {

using contract::ActuationMode;
using model::MachineState;

constexpr size_t kActionsKept = 2000;

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};

int32_t Narrow(int64_t value) {
  return static_cast<int32_t>(std::clamp<int64_t>(value, 0, std::numeric_limits<int32_t>::max()));
}

contract::NeedView ViewOf(const engine::NeedVerdict& verdict) {
  contract::NeedView view{.need = verdict.need,
                          .satisfied = verdict.satisfied,
                          .residual = verdict.residual,
                          .claimed_machines = Narrow(verdict.credited + verdict.creating),
                          .bootstraps = Narrow(verdict.bootstraps),
                          .provisions = Narrow(verdict.provisions),
                          .same_domain = verdict.domain.value_or(""),
                          .same_satisfiable = false,
                          .parked = verdict.parked,
                          .age_cycles_unmet = verdict.age,
                          .reason = verdict.reason,
                          .supply = {.idle = verdict.supply.idle,
                                     .configured = verdict.supply.configured,
                                     .speculative = verdict.supply.speculative},
                          .victims = Narrow(verdict.victims),
                          .has_session = verdict.has_session};
  for (const engine::DomainScore& domain : verdict.domains) {
    view.same_satisfiable = view.same_satisfiable || domain.satisfiable;
    view.same_candidates.push_back({.domain = domain.domain,
                                    .coverage_per_mille = Narrow(domain.coverage_per_mille),
                                    .satisfiable = domain.satisfiable});
  }
  return view;
}

std::string NameOf(const engine::NeedKey& key) {
  return fmt::format("{} of {}{}", key.fingerprint, key.cluster, key.group.empty() ? "" : " group " + key.group);
}

void ExplainVerdict(const engine::NeedVerdict& verdict, std::vector<std::string>& lines) {
  lines.push_back(fmt::format("need {}", NameOf(engine::KeyOf(verdict.need))));
  lines.push_back(fmt::format("  wants {}, in units of at most {}", verdict.need.aggregate.ToString(),
                              verdict.need.min_unit.ToString()));
  lines.push_back(fmt::format("  has {} bound, {} being made; this cycle binds {} and buys {}", verdict.credited,
                              verdict.creating, verdict.bootstraps, verdict.provisions));
  if (verdict.domain) lines.push_back(fmt::format("  in domain {}", *verdict.domain));
  if (verdict.pledged > 0) lines.push_back(fmt::format("  {} more are on their way to it", verdict.pledged));
  if (verdict.victims > 0) lines.push_back(fmt::format("  takes {} from needs of lower priority", verdict.victims));
  if (verdict.lost > 0) lines.push_back(fmt::format("  loses {} to needs of higher priority", verdict.lost));
  if (verdict.satisfied) {
    lines.emplace_back("  it is covered");
    return;
  }
  lines.push_back(fmt::format("  short of {} for {} cycles: {}", verdict.residual.ToString(), verdict.age,
                              model::ReasonSentence(verdict.reason)));
  lines.push_back(fmt::format("  machines that match: {} idle, {} that could be bought, {} in use", verdict.supply.idle,
                              verdict.supply.speculative, verdict.supply.configured));
}

}  // namespace

void Core::Note(model::Reason reason, std::string subject, std::string detail, Turn& turn) const {
  turn.out.push_back(Notice{.reason = reason, .subject = std::move(subject), .detail = std::move(detail)});
}

uint64_t Core::Log(const contract::ActionView& action, Turn& turn) {
  actions_.push_back(action);
  if (actions_.size() > kActionsKept) actions_.pop_front();
  turn.out.push_back(Audit{.action = action, .took = {}});
  return ++logged_;
}

void Core::LogEnd(uint64_t line, const contract::ActionView& action, Duration took, Turn& turn) {
  const uint64_t gone = logged_ - actions_.size();
  if (line > gone) actions_[line - gone - 1] = action;
  turn.out.push_back(Audit{.action = action, .took = took});
}

void Core::OnAsked(const Asked& asked, Turn& turn) {
  const auto reply = [&](contract::ShardReply body) {
    turn.out.push_back(Answer{.request = asked.request, .status = {}, .reply = std::move(body)});
  };
  const auto order = [&](Status status) {
    const bool ok = status.ok();
    turn.out.push_back(Answer{.request = asked.request, .status = std::move(status), .reply = std::nullopt});
    if (ok) std::get<Answer>(turn.out.back()).reply = contract::OrderTaken{};
  };
  const auto wait = [&] {
    waiting_.push_back(asked);
    MakeDue();
  };
  const bool needs_machines = !std::holds_alternative<contract::SetActuation>(asked.body) &&
                              !std::holds_alternative<contract::ListClusters>(asked.body) &&
                              !std::holds_alternative<contract::ListActions>(asked.body);
  if (!ready_ && needs_machines) {
    return order(Status(Code::kUnavailable, "the shard has not seen its machines yet; is the provider up?"));
  }
  std::visit(Overloaded{
                 [&](const contract::InspectNeeds& query) {
                   if (decided_) return wait();
                   reply(Inspect(query, {}, turn.now));
                 },
                 [&](const contract::ListMachines& query) {
                   if (decided_) return wait();
                   reply(ListMachines(query, nullptr));
                 },
                 [&](const contract::Explain&) {
                   if (decided_) return wait();
                   order(Status(Code::kUnavailable, "the shard has not decided anything yet"));
                 },
                 [&](const contract::ListActions& query) { reply(ListActions(query)); },
                 [&](const contract::ListClusters&) { reply(ListClusters()); },
                 [&](const contract::SetActuation& query) {
                   if (query.mode == ActuationMode::kUnspecified || query.mode > ActuationMode::kPaused) {
                     return order(Status(Code::kInvalidArgument, "mode: give active, dry-run or paused"));
                   }
                   const auto known = clusters_.find(query.cluster_id);
                   const ActuationMode before = query.cluster_id.empty()   ? mode_
                                                : known == clusters_.end() ? ActuationMode::kActive
                                                                           : known->second.mode;
                   SetMode(query.cluster_id, query.mode, turn);
                   Note(model::Reason::kModeSet, query.cluster_id.empty() ? config_.id : query.cluster_id,
                        fmt::format("{}: {}", contract::ActuationModeName(query.mode), query.reason), turn);
                   MakeDue();
                   reply(contract::ActuationSet{.previous = before});
                 },
                 [&](const auto& query) { order(Order(query, turn)); },
             },
             asked.body);
}

// After a cycle that explained itself.
void Core::AnswerWaiting(Turn& turn) {
  const engine::Decision decision = engine_->Explain();
  for (const Asked& asked : std::exchange(waiting_, {})) {
    Result<contract::ShardReply> reply = Error(Code::kInternal, "not a question about a decision");
    if (const auto* needs = std::get_if<contract::InspectNeeds>(&asked.body)) {
      reply = Inspect(*needs, decision, turn.now);
    } else if (const auto* machines = std::get_if<contract::ListMachines>(&asked.body)) {
      reply = ListMachines(*machines, &decision);
    } else if (const auto* why = std::get_if<contract::Explain>(&asked.body)) {
      reply = Explain(*why, decision);
    }
    Answer answer{.request = asked.request, .status = reply ? Status() : reply.error(), .reply = std::nullopt};
    if (reply) answer.reply = *std::move(reply);
    turn.out.push_back(std::move(answer));
  }
}

contract::ShardReply Core::Inspect(const contract::InspectNeeds& query, const engine::Decision& decision,
                                   Now now) const {
  contract::NeedsInspected needs;
  if (decided_) {
    needs.cycle = cycle_;
    needs.computed_at = now.wall;
  }
  std::map<engine::NeedKey, model::Resources> freed;
  for (const engine::Action& action : decision.actions) {
    const auto tracked = machines_.find(action.machine);
    if (action.kind != engine::ActionKind::kPreempt || !action.need || tracked == machines_.end()) continue;
    model::Resources& sum = freed[*action.need];
    if (auto more = model::Add(sum, tracked->second.record->EffectiveAllocatable())) sum = *std::move(more);
  }
  for (const engine::NeedVerdict& verdict : decision.needs) {
    if (!query.cluster_id.empty() && verdict.need.cluster != query.cluster_id) continue;
    ++needs.total;
    if (query.limit > 0 && needs.total > query.limit) continue;
    contract::NeedView view = ViewOf(verdict);
    const engine::NeedKey key = engine::KeyOf(verdict.need);
    if (const auto sum = freed.find(key); sum != freed.end()) view.capacity_freed = sum->second;
    if (const auto since = short_.find(key); view.parked && since != short_.end() && since->second.hopeless > 0) {
      view.parked_age_cycles = Narrow(cycle_ - since->second.hopeless + 1 - config_.policy.park_after);
    }
    needs.needs.push_back(std::move(view));
  }
  return needs;
}

contract::ShardReply Core::ListMachines(const contract::ListMachines& query, const engine::Decision* decision) const {
  contract::MachinesListed listed;
  size_t at = 0;
  for (const auto& [id, tracked] : machines_) {
    const model::Machine& machine = *tracked.record;
    if (!query.states.empty() && std::ranges::find(query.states, machine.state) == query.states.end()) continue;
    if (!query.cluster_id.empty() && machine.cluster != query.cluster_id) continue;
    contract::MachineView view{.machine = tracked.record};
    if (decision != nullptr) {
      while (at < decision->machines.size() && decision->machines[at].machine < id) ++at;
      if (at < decision->machines.size() && decision->machines[at].machine == id) {
        const engine::MachineVerdict& verdict = decision->machines[at];
        view.reason = verdict.reason;
        if (verdict.need) {
          view.need_fingerprint = decision->needs[*verdict.need].need.profile.fingerprint();
          view.need_group = decision->needs[*verdict.need].need.group;
        }
      }
    }
    listed.machines.push_back(std::move(view));
  }
  return listed;
}

contract::ShardReply Core::ListActions(const contract::ListActions& query) const {
  contract::ActionsListed listed;
  for (auto action = actions_.rbegin(); action != actions_.rend(); ++action) {
    if (!query.cluster_id.empty() && action->cluster_id != query.cluster_id) continue;
    if (query.limit > 0 && listed.actions.size() >= static_cast<size_t>(query.limit)) break;
    listed.actions.push_back(*action);
  }
  return listed;
}

contract::ShardReply Core::ListClusters() const {
  contract::ClustersListed listed;
  for (const auto& [name, cluster] : clusters_) {
    listed.clusters.push_back({.cluster_id = name,
                               .session = cluster.session != 0,
                               .gate_open = cluster.gate_open,
                               .mode = ModeFor(name, std::nullopt),
                               .needs = Narrow(static_cast<int64_t>(cluster.rows.size())),
                               .configured = Narrow(cluster.configured),
                               .held_rollups = cluster.held,
                               .last_refusal = cluster.last_refusal,
                               .reclaims_in_window = Narrow(static_cast<int64_t>(cluster.reclaims.size()))});
  }
  return listed;
}

Result<contract::ShardReply> Core::Explain(const contract::Explain& query, const engine::Decision& decision) const {
  contract::Explained explained{.cycle = cycle_, .lines = {}};
  if (const auto* ref = std::get_if<contract::NeedRef>(&query.subject)) {
    for (const engine::NeedVerdict& verdict : decision.needs) {
      const bool same = verdict.need.cluster == ref->cluster_id && verdict.need.group == ref->group &&
                        verdict.need.profile.fingerprint() == ref->fingerprint;
      if (same) ExplainVerdict(verdict, explained.lines);
    }
    if (explained.lines.empty()) {
      return Error(Code::kNotFound, fmt::format("cluster {} lists no such need; `muster fleet needs` shows them",
                                                model::Quoted(ref->cluster_id)));
    }
    return explained;
  }
  const auto& id = std::get<std::string>(query.subject);
  const auto tracked = machines_.find(id);
  if (tracked == machines_.end()) {
    return Error(Code::kNotFound, fmt::format("this shard has no machine {}", model::Quoted(id)));
  }
  const model::Machine& machine = *tracked->second.record;
  explained.lines.push_back(fmt::format("machine {} is {}{}", id, model::StateName(machine.state),
                                        machine.cluster.empty() ? "" : " for cluster " + machine.cluster));
  if (!machine.last_error.empty()) explained.lines.push_back("  " + machine.last_error);
  if (const auto operation = operations_.find(id); operation != operations_.end()) {
    explained.lines.push_back(fmt::format("  {} is under way: {}", OperationKindName(operation->second.kind),
                                          model::ReasonSentence(operation->second.reason)));
  }
  const auto verdict = std::ranges::find(decision.machines, id, &engine::MachineVerdict::machine);
  if (verdict != decision.machines.end()) {
    explained.lines.push_back(fmt::format("  {}", model::ReasonSentence(verdict->reason)));
    if (verdict->need) ExplainVerdict(decision.needs[*verdict->need], explained.lines);
  }
  return explained;
}

Status Core::Order(const contract::RepairMachine& order, Turn& turn) {
  const auto tracked = machines_.find(order.machine_id);
  if (tracked == machines_.end()) {
    return {Code::kNotFound, fmt::format("this shard has no machine {}", model::Quoted(order.machine_id))};
  }
  if (tracked->second.record->state != MachineState::kFailed || operations_.contains(order.machine_id)) {
    return {Code::kAborted,
            fmt::format("machine {} is {}; only one that is Failed can be repaired", model::Quoted(order.machine_id),
                        model::StateName(ShownState(order.machine_id, tracked->second)))};
  }
  BeginRepair(order.machine_id, model::Reason::kRepairByHand, turn);
  return {};
}

Status Core::Order(const contract::ForgetMachine& order, Turn& turn) {
  const auto tracked = machines_.find(order.machine_id);
  if (tracked == machines_.end()) {
    return {Code::kNotFound, fmt::format("this shard has no machine {}", model::Quoted(order.machine_id))};
  }
  if (tracked->second.record->state != MachineState::kFailed || operations_.contains(order.machine_id)) {
    return {Code::kAborted,
            fmt::format("machine {} is {}; only one that is Failed can be forgotten", model::Quoted(order.machine_id),
                        model::StateName(ShownState(order.machine_id, tracked->second)))};
  }
  forgotten_.insert(order.machine_id);
  Write(turn, std::string(kForgottenKey) + order.machine_id, "");
  Drop(order.machine_id, model::Reason::kForgotten, "by an operator, until the provider reports another state", turn);
  return {};
}

}  // namespace muster::shard
