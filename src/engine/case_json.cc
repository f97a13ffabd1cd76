#include <fmt/format.h>

#include "engine/case_print.h"
#include "model/quantity.h"

namespace muster::engine {
namespace {

// Text in quotes; what a case holds is UTF-8 without control characters.
std::string Quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

// Members of one object; values are JSON already.
class Object {
 public:
  Object& Raw(std::string_view key, std::string_view json) {
    text_ += fmt::format("{}{}:{}", text_.empty() ? "" : ",", Quote(key), json);
    return *this;
  }
  Object& Text(std::string_view key, std::string_view text) { return Raw(key, Quote(text)); }
  Object& Number(std::string_view key, int64_t number) { return Raw(key, fmt::format("{}", number)); }
  Object& Bool(std::string_view key, bool value) { return Raw(key, value ? "true" : "false"); }
  std::string Take() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

template <class List, class Item>
std::string Array(const List& list, Item item) {
  std::string text;
  for (const auto& element : list) text += (text.empty() ? "" : ",") + item(element);
  return "[" + text + "]";
}

std::string Amounts(const model::Resources& resources) {
  Object object;
  for (const auto& [name, amount] : resources.entries()) object.Text(name, model::FormatQuantityFor(name, amount));
  return object.Take();
}

// Exact: micro-dollars as a decimal number of dollars.
std::string Dollars(model::Money money) {
  return fmt::format("{}.{:06}", money.micros / 1'000'000, money.micros % 1'000'000);
}

std::string KeyJson(const CaseCycle& cycle, const std::vector<std::string>& names, const NeedKey& key) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (KeyOf(cycle.decision.needs[i].need) == key) return Quote(names[i]);
  }
  return "null";
}

std::string ActionJson(const CaseCycle& cycle, const std::vector<std::string>& names, const Action& action) {
  Object object;
  object.Text("kind", ActionKindName(action.kind)).Text("machine", action.machine);
  object.Raw("cluster", action.cluster.empty() ? "null" : Quote(action.cluster));
  object.Raw("need", action.need ? KeyJson(cycle, names, *action.need) : "null");
  object.Text("reason", model::ReasonName(action.reason)).Number("grace_seconds", action.grace.count());
  return object.Take();
}

std::string NeedJson(const NeedVerdict& verdict, const std::string& name) {
  Object object;
  object.Text("name", name).Text("cluster", verdict.need.cluster);
  object.Text("fingerprint", verdict.need.profile.fingerprint()).Text("group", verdict.need.group);
  object.Number("priority", verdict.need.profile.priority()).Raw("aggregate", Amounts(verdict.need.aggregate));
  object.Bool("satisfied", verdict.satisfied)
      .Bool("pending", verdict.pending)
      .Raw("residual", Amounts(verdict.residual));
  object.Raw("reason", verdict.satisfied ? "null" : Quote(model::ReasonName(verdict.reason)));
  object.Number("age", verdict.age).Number("credited", verdict.credited).Number("creating", verdict.creating);
  object.Number("bootstraps", verdict.bootstraps).Number("provisions", verdict.provisions);
  object.Raw("domain", verdict.domain ? Quote(*verdict.domain) : "null");
  object.Raw("domains", Array(verdict.domains, [](const DomainScore& score) {
               return Object()
                   .Text("domain", score.domain)
                   .Number("coverage_per_mille", score.coverage_per_mille)
                   .Bool("satisfiable", score.satisfiable)
                   .Take();
             }));
  object.Raw("supply", Object()
                           .Number("idle", verdict.supply.idle)
                           .Number("speculative", verdict.supply.speculative)
                           .Number("configured", verdict.supply.configured)
                           .Number("on_hold", verdict.supply.on_hold)
                           .Take());
  object.Number("victims", verdict.victims).Number("pledged", verdict.pledged).Number("lost", verdict.lost);
  object.Bool("parked", verdict.parked).Bool("has_session", verdict.has_session);
  object.Bool("paused", verdict.paused);
  return object.Take();
}

}  // namespace

std::string CycleJson(const CaseCycle& cycle, bool machines) {
  const std::vector<std::string> names = NeedNames(cycle);
  const Decision& decision = cycle.decision;
  Object object;
  object.Number("cycle", cycle.number);
  object.Raw("actions", Array(decision.actions, [&](const Action& a) { return ActionJson(cycle, names, a); }));
  object.Raw("claims", Array(decision.claims, [&](const Claim& claim) {
               return Object()
                   .Text("machine", claim.machine)
                   .Text("need", names[claim.need])
                   .Text("kind", ClaimKindName(claim.kind))
                   .Take();
             }));
  size_t next = 0;
  object.Raw("needs", Array(decision.needs, [&](const NeedVerdict& v) { return NeedJson(v, names[next++]); }));
  if (machines) {
    object.Raw("machines", Array(decision.machines, [&](const MachineVerdict& verdict) {
                 return Object()
                     .Text("machine", verdict.machine)
                     .Raw("need", verdict.need ? Quote(names[*verdict.need]) : "null")
                     .Text("reason", model::ReasonName(verdict.reason))
                     .Take();
               }));
  }
  object.Raw("cost_per_hour", Dollars(cycle.cost_after)).Raw("cost_per_hour_before", Dollars(cycle.cost_before));
  object.Text("digest", fmt::format("{:016x}", Digest(decision)));
  return object.Take();
}

}  // namespace muster::engine
