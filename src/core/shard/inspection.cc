#include "core/shard/inspection.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "core/shard/narrow.h"
#include "model/names.h"

namespace muster::shard {
namespace {

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
                          .has_session = verdict.has_session,
                          .pending = verdict.pending,
                          .on_hold = verdict.supply.on_hold};
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
  if (verdict.pending) {
    lines.push_back(
        fmt::format("  waits for {}: {}", verdict.residual.ToString(), model::ReasonSentence(verdict.reason)));
  } else {
    lines.push_back(fmt::format("  short of {} for {} cycles: {}", verdict.residual.ToString(), verdict.age,
                                model::ReasonSentence(verdict.reason)));
  }
  lines.push_back(fmt::format("  machines that match: {} idle, {} that could be bought, {} in use", verdict.supply.idle,
                              verdict.supply.speculative, verdict.supply.configured));
  if (verdict.supply.on_hold > 0) {
    lines.push_back(fmt::format("  {} of them are on hold after calls that failed", verdict.supply.on_hold));
  }
}

// "its Create failed 2 times in a row"
std::string SentenceOf(const Holds::Shown& hold) {
  switch (hold.key.kind) {
    case HoldKind::kMachine: return fmt::format("Create failed {} times in a row", hold.times);
    case HoldKind::kClass:
      return fmt::format("{} {} in {} is out of stock", model::CapacityTypeName(hold.key.stock.capacity_type),
                         hold.key.stock.instance_type, hold.key.stock.zone);
    case HoldKind::kPair: return fmt::format("Configure for {} failed {} times in a row", hold.key.cluster, hold.times);
    case HoldKind::kRest: return fmt::format("Drain or Delete failed {} times in a row", hold.times);
    case HoldKind::kCluster: break;
  }
  return "its cluster's machines fail to configure";
}

}  // namespace

void Inspection::Ask(const Asked& asked, StepContext& ctx) {
  if (deps_.lifecycle.decided()) {
    state_.waiting.push_back(asked);
    ctx.cycle.Request();
    return;
  }
  Result<contract::ShardReply> reply = Reply(asked.body, nullptr, ctx);
  Answer answer{.request = asked.request, .status = reply ? Status() : reply.error(), .reply = std::nullopt};
  if (reply) answer.reply = *std::move(reply);
  ctx.Emit(std::move(answer));
}

void Inspection::AnswerWaiting(const engine::Decision& decision, StepContext& ctx) {
  for (const Asked& asked : std::exchange(state_.waiting, {})) {
    Result<contract::ShardReply> reply = Reply(asked.body, &decision, ctx);
    Answer answer{.request = asked.request, .status = reply ? Status() : reply.error(), .reply = std::nullopt};
    if (reply) answer.reply = *std::move(reply);
    ctx.Emit(std::move(answer));
  }
}

Result<contract::ShardReply> Inspection::Reply(const contract::ShardRequest& request, const engine::Decision* decision,
                                               StepContext& ctx) const {
  if (const auto* needs = std::get_if<contract::InspectNeeds>(&request)) return InspectNeeds(*needs, decision, ctx);
  if (const auto* machines = std::get_if<contract::ListMachines>(&request))
    return ListMachines(*machines, decision, ctx.now);
  const auto* why = std::get_if<contract::Explain>(&request);
  if (why == nullptr) return Error(Code::kInternal, "not a question about a decision");
  if (decision == nullptr) return Error(Code::kUnavailable, "the shard has not decided anything yet");
  return Explain(*why, *decision, ctx);
}

contract::NeedsInspected Inspection::InspectNeeds(const contract::InspectNeeds& query, const engine::Decision* decision,
                                                  StepContext& ctx) const {
  contract::NeedsInspected needs;
  if (decision == nullptr) return needs;
  needs.cycle = ctx.cycle.number();
  needs.computed_at = ctx.now.wall;
  std::map<engine::NeedKey, model::Resources> freed;
  for (const engine::Action& action : decision->actions) {
    const Tracked* tracked = deps_.machines.Find(action.machine);
    if (action.kind != engine::ActionKind::kPreempt || !action.need || tracked == nullptr) continue;
    model::Resources& sum = freed[*action.need];
    if (auto more = model::Add(sum, tracked->record->EffectiveAllocatable())) sum = *std::move(more);
  }
  for (const engine::NeedVerdict& verdict : decision->needs) {
    if (!query.cluster_id.empty() && verdict.need.cluster != query.cluster_id) continue;
    ++needs.total;
    if (query.limit > 0 && needs.total > query.limit) continue;
    contract::NeedView view = ViewOf(verdict);
    const engine::NeedKey key = engine::KeyOf(verdict.need);
    if (const auto sum = freed.find(key); sum != freed.end()) view.capacity_freed = sum->second;
    const ShortNeed* known = view.parked ? deps_.ledger.Find(key) : nullptr;
    if (known != nullptr && known->cycles.hopeless > 0) {
      view.parked_age_cycles = Narrow(needs.cycle - known->cycles.hopeless + 1 - deps_.config.policy.park_after);
    }
    needs.needs.push_back(std::move(view));
  }
  return needs;
}

contract::MachinesListed Inspection::ListMachines(const contract::ListMachines& query, const engine::Decision* decision,
                                                  Now now) const {
  contract::MachinesListed listed;
  size_t at = 0;
  for (const auto& [id, tracked] : deps_.machines.tracked()) {
    const model::Machine& machine = *tracked.record;
    if (!query.states.empty() && std::ranges::find(query.states, machine.state) == query.states.end()) continue;
    if (!query.cluster_id.empty() && machine.cluster != query.cluster_id) continue;
    contract::MachineView view{.machine = tracked.record};
    if (const std::vector<Holds::Shown> holds = deps_.rails.holds().Of(machine, now.mono); !holds.empty()) {
      view.hold = SentenceOf(holds.front());
      view.hold_until = now.wall + (holds.front().until - now.mono);
    }
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
    view.reason = OwnReason(id).value_or(view.reason);
    view.missing = deps_.machines.AsideOf(id) == SetAside::kMissing;
    view.fenced = deps_.machines.AsideOf(id) == SetAside::kFenced;
    listed.machines.push_back(std::move(view));
  }
  return listed;
}

std::optional<model::Reason> Inspection::OwnReason(const std::string& id) const {
  switch (deps_.machines.AsideOf(id)) {
    case SetAside::kMissing: return model::Reason::kMissing;
    case SetAside::kFenced: return model::Reason::kFenced;
    case SetAside::kFailing: return model::Reason::kLosses;
    case SetAside::kNo: break;
  }
  if (deps_.repairs.IsGivenUp(id)) return model::Reason::kRepairRefused;
  return std::nullopt;
}

void Inspection::ExplainNeed(const engine::NeedVerdict& verdict, std::vector<std::string>& lines) const {
  ExplainVerdict(verdict, lines);
  const std::string& cluster = verdict.need.cluster;
  const std::string ceiling = deps_.rails.ceilings().Sentence(cluster);
  if (!ceiling.empty()) lines.push_back(fmt::format("  cluster {} is at its ceiling: {}", cluster, ceiling));
  if (const int64_t lacking = LackingOf(cluster); lacking > 0) {
    lines.push_back(
        fmt::format("  cluster {} lost {} machines while the shard was down, and gets others a tenth at a "
                    "time until `muster fleet accept` says that they are lost indeed",
                    cluster, lacking));
  }
  const PutOff put_off = PutOffOf(cluster);
  if (put_off.growth > 0) {
    lines.push_back(
        fmt::format("  {} machines wait for those that are being configured for cluster {}: three at once, "
                    "or as many as it has",
                    put_off.growth, cluster));
  }
  if (put_off.trial > 0) {
    lines.push_back(fmt::format("  cluster {} is on trial: {} actions for it wait for a Configure that ends well",
                                cluster, put_off.trial));
  }
}

int64_t Inspection::LackingOf(const std::string& cluster) const {
  const auto found = deps_.losses.lacking().find(cluster);
  return found == deps_.losses.lacking().end() ? 0 : found->second;
}

PutOff Inspection::PutOffOf(const std::string& cluster) const {
  const auto found = deps_.rails.put_off().find(cluster);
  return found == deps_.rails.put_off().end() ? PutOff{} : found->second;
}

contract::ClustersListed Inspection::ListClusters(Now now) const {
  contract::ClustersListed listed;
  std::map<std::string, int32_t> missing;
  std::map<std::string, int32_t> failing;
  for (const auto& [id, why] : deps_.machines.set_aside()) {
    const std::string& cluster = deps_.machines.Find(id)->record->cluster;
    if (why == SetAside::kMissing) ++missing[cluster];
    if (why == SetAside::kFailing) ++failing[cluster];
  }
  for (const std::string& name : deps_.clusters.names()) {
    const ClusterDemand& demand = deps_.demand.Of(name);
    const std::optional<MonoTime> held = deps_.rails.holds().ClusterHeldUntil(name, now.mono);
    const PutOff put_off = PutOffOf(name);
    listed.clusters.push_back({.cluster_id = name,
                               .session = deps_.sessions.Has(name),
                               .gate_open = demand.gate_open,
                               .mode = deps_.rails.modes().For(name, std::nullopt),
                               .needs = Narrow(static_cast<int64_t>(demand.rows.size())),
                               .configured = Narrow(deps_.machines.BoundTo(name).configured),
                               .held_rollups = deps_.rails.quarantine().held(name),
                               .last_refusal = demand.last_refusal,
                               .reclaims_in_window = Narrow(deps_.rails.budget().SpentBy(name)),
                               .hold_until = held ? std::optional(now.wall + (*held - now.mono)) : std::nullopt,
                               .last_order = deps_.orders.LastOf(name),
                               .missing = missing[name],
                               .decommissioned = deps_.clusters.IsDecommissioned(name),
                               .ceiling = deps_.rails.ceilings().ViewOf(name),
                               .losses_failed = deps_.losses.failing().contains(name),
                               .losses_vanished = deps_.losses.vanishing().contains(name),
                               .failing = failing[name],
                               .lacking = Narrow(LackingOf(name)),
                               .growth_waits = Narrow(put_off.growth),
                               .trial_waits = Narrow(put_off.trial)});
  }
  listed.losses_failed = deps_.losses.failing().contains("");
  listed.losses_vanished = deps_.losses.vanishing().contains("");
  listed.shard_mode = deps_.rails.modes().shard();
  listed.last_order = deps_.orders.LastOf("");
  return listed;
}

contract::ForgottenListed Inspection::ListForgotten() const {
  contract::ForgottenListed listed;
  for (const std::string& id : deps_.reconcile.state().forgotten) {
    contract::OrderView order = deps_.orders.ForgottenBy(id);  // none: an earlier build took the order
    order.kind = "forget";
    order.machine_id = id;
    listed.orders.push_back(std::move(order));
  }
  return listed;
}

Result<contract::ShardReply> Inspection::Explain(const contract::Explain& query, const engine::Decision& decision,
                                                 StepContext& ctx) const {
  if (const auto* ref = std::get_if<contract::NeedRef>(&query.subject)) {
    contract::Explained explained{.cycle = ctx.cycle.number(), .lines = {}};
    for (const engine::NeedVerdict& verdict : decision.needs) {
      const bool same = verdict.need.cluster == ref->cluster_id && verdict.need.group == ref->group &&
                        verdict.need.profile.fingerprint() == ref->fingerprint;
      if (same) ExplainNeed(verdict, explained.lines);
    }
    if (explained.lines.empty()) {
      return Error(Code::kNotFound, fmt::format("cluster {} lists no such need; `muster fleet needs` shows them",
                                                model::Quoted(ref->cluster_id)));
    }
    return explained;
  }
  return ExplainMachine(std::get<std::string>(query.subject), decision, ctx);
}

Result<contract::ShardReply> Inspection::ExplainMachine(const std::string& id, const engine::Decision& decision,
                                                        StepContext& ctx) const {
  contract::Explained explained{.cycle = ctx.cycle.number(), .lines = {}};
  const Tracked* tracked = deps_.machines.Find(id);
  if (tracked == nullptr) {
    return Error(Code::kNotFound, fmt::format("this shard has no machine {}", model::Quoted(id)));
  }
  const model::Machine& machine = *tracked->record;
  explained.lines.push_back(fmt::format("machine {} is {}{}", id, model::StateName(machine.state),
                                        machine.cluster.empty() ? "" : " for cluster " + machine.cluster));
  if (!machine.last_error.empty()) explained.lines.push_back("  " + machine.last_error);
  if (const auto own = OwnReason(id)) explained.lines.push_back(fmt::format("  {}", model::ReasonSentence(*own)));
  const Executor::Operations& operations = deps_.executor.operations();
  if (const auto operation = operations.find(id); operation != operations.end()) {
    explained.lines.push_back(fmt::format("  {} is under way: {}", OperationKindName(operation->second.kind),
                                          model::ReasonSentence(operation->second.reason)));
  }
  for (const Holds::Shown& hold : deps_.rails.holds().Of(machine, ctx.now.mono)) {
    explained.lines.push_back(
        fmt::format("  on hold for {} s more: {}", (hold.until - ctx.now.mono) / 1s, SentenceOf(hold)));
  }
  const auto verdict = std::ranges::find(decision.machines, id, &engine::MachineVerdict::machine);
  if (verdict != decision.machines.end()) {
    explained.lines.push_back(fmt::format("  {}", model::ReasonSentence(verdict->reason)));
    if (verdict->need) ExplainNeed(decision.needs[*verdict->need], explained.lines);
  }
  return explained;
}

}  // namespace muster::shard
