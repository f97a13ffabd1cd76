#include "engine/case_print.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "engine/text_table.h"
#include "model/text_scalars.h"

namespace muster::engine {
namespace {

constexpr size_t kShownNames = 8;

// Actions in a row that differ in the machine only.
struct ActionGroup {
  const Action* action = nullptr;
  std::vector<std::string> machines;
};

bool IsAlike(const Action& a, const Action& b) {
  return a.kind == b.kind && a.cluster == b.cluster && a.need == b.need && a.reason == b.reason && a.grace == b.grace;
}

std::vector<ActionGroup> GroupActions(const Decision& decision) {
  std::vector<ActionGroup> groups;
  for (const Action& action : decision.actions) {
    if (groups.empty() || !IsAlike(*groups.back().action, action)) groups.push_back({.action = &action});
    groups.back().machines.push_back(action.machine);
  }
  return groups;
}

std::string NameOfKey(const CaseCycle& cycle, const std::vector<std::string>& names, const NeedKey& key) {
  const auto& needs = cycle.decision.needs;
  const auto it = std::ranges::find(needs, key, [](const NeedVerdict& verdict) { return KeyOf(verdict.need); });
  return it == needs.end() ? key.fingerprint : names[static_cast<size_t>(it - needs.begin())];
}

// "to prod for web", "of batch for web, grace 10s"
std::string Circumstances(const CaseCycle& cycle, const std::vector<std::string>& names, const Action& action) {
  std::string text;
  const bool binds = action.kind == ActionKind::kBootstrap || action.kind == ActionKind::kProvision;
  if (!action.cluster.empty()) text += fmt::format("{} {}", binds ? "to" : "of", action.cluster);
  if (action.need) text += fmt::format(" for {}", NameOfKey(cycle, names, *action.need));
  if (action.grace.count() > 0) text += ", grace " + model::FormatDuration(action.grace);
  return text;
}

// "credit m-0, m-1; bootstrap m-2"
std::string ClaimsOf(const CaseCycle& cycle, size_t need, size_t most) {
  std::string text;
  for (const ClaimKind kind :
       {ClaimKind::kCredit, ClaimKind::kCreating, ClaimKind::kBootstrap, ClaimKind::kProvision}) {
    std::vector<std::string> machines;
    for (const Claim& claim : cycle.decision.claims) {
      if (claim.need == need && claim.kind == kind) machines.push_back(claim.machine);
    }
    if (machines.empty()) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", ClaimKindName(kind), JoinNames(machines, most));
  }
  return text;
}

// What else the verdict says: "in r1, parked, 2 pledged, 1 taken for it, 1 lost"
std::vector<std::string> Remarks(const NeedVerdict& verdict) {
  std::vector<std::string> remarks;
  if (verdict.parked) remarks.emplace_back("parked");
  if (verdict.pledged > 0) remarks.push_back(fmt::format("{} pledged", verdict.pledged));
  if (verdict.victims > 0) remarks.push_back(fmt::format("{} taken for it", verdict.victims));
  if (verdict.lost > 0) remarks.push_back(fmt::format("{} lost", verdict.lost));
  return remarks;
}

// "can serve: 1 idle, 0 speculative, 4 configured; domains r1 50.0 %, r2 12.5 %"
std::string SupplyOf(const NeedVerdict& verdict) {
  std::string text = fmt::format("can serve: {} idle, {} speculative, {} configured", verdict.supply.idle,
                                 verdict.supply.speculative, verdict.supply.configured);
  if (verdict.supply.on_hold > 0) text += fmt::format(", {} on hold", verdict.supply.on_hold);
  for (const DomainScore& score : verdict.domains) {
    text += fmt::format("{} {} {}.{} %", &score == &verdict.domains.front() ? "; domains" : ",", score.domain,
                        score.coverage_per_mille / 10, score.coverage_per_mille % 10);
  }
  return text;
}

// Machines that are neither claimed nor acted on, by the reason they are left alone.
std::map<model::Reason, std::vector<std::string>> LeftAlone(const Decision& decision) {
  std::vector<std::string_view> moved;
  for (const Action& action : decision.actions) moved.push_back(action.machine);
  std::ranges::sort(moved);
  std::map<model::Reason, std::vector<std::string>> left;
  for (const MachineVerdict& verdict : decision.machines) {
    if (verdict.reason == model::Reason::kClaimed || std::ranges::binary_search(moved, verdict.machine)) continue;
    left[verdict.reason].push_back(verdict.machine);
  }
  return left;
}

std::string Costs(const CaseCycle& cycle) {
  const std::string before = model::FormatMoney(cycle.cost_before);
  if (cycle.cost_before == cycle.cost_after) return before + "/h";
  return fmt::format("{}/h -> {}/h", before, model::FormatMoney(cycle.cost_after));
}

std::string ExpectBody(const CaseCycle& cycle) {
  const std::vector<std::string> names = NeedNames(cycle);
  std::string text;
  for (const ActionGroup& group : GroupActions(cycle.decision)) {
    const Action& action = *group.action;
    const std::string circumstances = Circumstances(cycle, names, action);
    text += fmt::format("  {} {}{}{} [{}]\n", ActionKindName(action.kind), JoinNames(group.machines),
                        circumstances.empty() ? "" : " ", circumstances, model::ReasonName(action.reason));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const NeedVerdict& verdict = cycle.decision.needs[i];
    text += fmt::format("  need {}: ", names[i]);
    text += verdict.satisfied ? "satisfied"
                              : fmt::format("{} {} [{}]", verdict.pending ? "waits for" : "short of",
                                            verdict.residual.ToString(), model::ReasonName(verdict.reason));
    if (verdict.domain) text += fmt::format(", in {}", *verdict.domain);
    for (const std::string& remark : Remarks(verdict)) text += ", " + remark;
    if (const std::string claims = ClaimsOf(cycle, i, 0); !claims.empty()) text += "; " + claims;
    text += "\n";
    if (!verdict.satisfied) text += "    " + SupplyOf(verdict) + "\n";
  }
  for (const auto& [reason, machines] : LeftAlone(cycle.decision)) {
    text += fmt::format("  left {} [{}]\n", JoinNames(machines), model::ReasonName(reason));
  }
  return text + fmt::format("  cost {}\n", Costs(cycle));
}

std::string MachineCounts(const World& world) {
  std::map<model::MachineState, int64_t> counts;
  for (const model::Machine& machine : world.machines) ++counts[machine.state];
  std::string text;
  for (const auto& [state, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, model::StateName(state));
  }
  return text.empty() ? "none" : text;
}

std::string TableBody(const CaseCycle& cycle) {
  const std::vector<std::string> names = NeedNames(cycle);
  std::vector<std::vector<std::string>> actions;
  for (const ActionGroup& group : GroupActions(cycle.decision)) {
    actions.push_back({std::string(ActionKindName(group.action->kind)), JoinNames(group.machines, kShownNames),
                       Circumstances(cycle, names, *group.action),
                       std::string(model::ReasonSentence(group.action->reason))});
  }
  std::vector<std::vector<std::string>> needs = {
      {"NEED", "CLUSTER", "PRIORITY", "VERDICT", "MISSING", "DOMAIN", "CLAIMS"}};
  std::string shortfalls;
  for (size_t i = 0; i < names.size(); ++i) {
    const NeedVerdict& verdict = cycle.decision.needs[i];
    needs.push_back({names[i], verdict.need.cluster, fmt::format("{}", verdict.need.profile.priority()),
                     verdict.satisfied ? "ok"
                     : verdict.pending ? "pending"
                                       : "short",
                     verdict.satisfied ? "-" : verdict.residual.ToString(), verdict.domain.value_or("-"),
                     ClaimsOf(cycle, i, kShownNames)});
    std::vector<std::string> remarks = Remarks(verdict);
    if (!verdict.satisfied) remarks.emplace(remarks.begin(), model::ReasonSentence(verdict.reason));
    if (!remarks.empty()) shortfalls += fmt::format("  {}: {}\n", names[i], fmt::join(remarks, "; "));
  }
  std::string text = actions.empty() ? "  no action\n" : AlignRows(actions, "  ");
  text += "\n" + AlignRows(needs, "  ") + shortfalls;
  text += fmt::format("\n  machines: {}\n", MachineCounts(cycle.world));
  std::vector<std::vector<std::string>> left;
  for (const auto& [reason, machines] : LeftAlone(cycle.decision)) {
    left.push_back({JoinNames(machines, kShownNames), std::string(model::ReasonSentence(reason))});
  }
  return text + AlignRows(left, "  ") + fmt::format("  cost: {}\n", Costs(cycle));
}

}  // namespace

std::vector<std::string> NeedNames(const CaseCycle& cycle) {
  std::vector<std::string> names;
  for (const NeedVerdict& verdict : cycle.decision.needs) {
    std::string& name = names.emplace_back();
    for (const size_t row : verdict.rows) name += (name.empty() ? "" : "+") + cycle.row_names[row];
  }
  return names;
}

void CaseText::Add(const CaseCycle& cycle) {
  std::string body = form_ == Form::kTable ? TableBody(cycle) : ExpectBody(cycle);
  if (first_ == 0 || body != body_) {
    Flush();
    body_ = std::move(body);
    first_ = cycle.number;
    first_at_ = cycle.at;
  }
  last_ = cycle.number;
  last_at_ = cycle.at;
}

std::string CaseText::Take() {
  Flush();
  return std::exchange(text_, {});
}

void CaseText::Flush() {
  if (first_ == 0) return;
  if (form_ == Form::kTable && !text_.empty()) text_ += "\n";
  text_ += first_ == last_ ? fmt::format("cycle {}", first_) : fmt::format("cycles {} to {}", first_, last_);
  if (form_ == Form::kTable) {
    text_ += ", at " + model::FormatDuration(first_at_);
    if (first_ != last_) text_ += " to " + model::FormatDuration(last_at_);
  }
  text_ += "\n" + std::exchange(body_, {});
  first_ = 0;
}

}  // namespace muster::engine
