#include "planner/domains.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/probe.h"

namespace muster::planner {
namespace {

using placement::Reason;

// Units that match one selector, by domain of one key.
struct DomainCount {
  uint32_t key = 0;
  uint32_t selector = 0;
  bool spreads = false;              // some unit is spread by it
  std::vector<int64_t> count;        // by domain
  std::vector<int64_t> most;         // by domain: the least limit that a unit there sets
  std::vector<int64_t> terminating;  // of the count, units that spread does not count
  std::vector<uint32_t> members;     // positions of the involved kinds that it counts
  int64_t total = 0;
};

struct RuleInUse {
  DomainRule rule;
  uint32_t slot = 0;
  bool self = false;              // the unit itself matches
  std::vector<uint32_t> domains;  // kSpread: those that count
  std::vector<int64_t> fixed;     // kSpread: units that stay and count, by domain
  bool every_class = true;        // kSpread: units count on whatever node they are
};

struct Involved {
  uint32_t kind = 0;
  std::vector<uint32_t> slots;  // that count its units
  std::vector<RuleInUse> rules;
  std::vector<bool> cells;      // that fit
  std::vector<int64_t> placed;  // by cell
  int64_t left = 0;
  int64_t units = 1;  // that one placement brings: all of a bundle
  int phase = 0;
};

class Assigner {
 public:
  Assigner(const Problem& problem, const CellRequest& request)
      : problem_(problem), request_(request), load_(problem.cells.size(), 0) {}

  CellAssignment Run() {
    AddSlots();
    AddInvolved();
    std::ranges::stable_sort(order_, {}, [&](uint32_t i) {
      const Involved& one = involved_[i];
      return std::tuple(one.phase, std::ranges::count(one.cells, true), -request_.worth[one.kind]);
    });
    // Units that must be near others wait for them: as often as that helps.
    for (bool progress = true; progress;) {
      progress = false;
      for (const uint32_t i : order_) progress = PlaceAll(involved_[i]) || progress;
    }
    for (int round = 0; round < kRepairRounds && Repair(); ++round) {
    }
    Withdraw();
    return Result();
  }

 private:
  static constexpr int kRepairRounds = 3;

  size_t DomainsOf(uint32_t key) const {
    uint32_t most = 0;
    for (const Cell& cell : problem_.cells) {
      if (cell.domains[key] != kNoKey) most = std::max(most, cell.domains[key] + 1);
    }
    return most;
  }

  uint32_t SlotOf(uint32_t key, uint32_t selector) {
    const auto [at, inserted] = slot_of_.try_emplace({key, selector}, static_cast<uint32_t>(slots_.size()));
    if (inserted) {
      DomainCount& slot = slots_.emplace_back(DomainCount{.key = key, .selector = selector});
      slot.count.assign(DomainsOf(key), 0);
      slot.most.assign(slot.count.size(), kUnlimited);
      slot.terminating.assign(slot.count.size(), 0);
      if (!problem_.fixed_counts.empty()) AddFixed(slot);
    }
    return at->second;
  }

  void AddFixed(DomainCount& slot) {
    const std::vector<int64_t>& counts = problem_.fixed_counts[slot.selector];
    for (size_t c = 0; c < counts.size(); ++c) {
      const uint32_t domain = problem_.cells[c].domains[slot.key];
      if (domain == kNoKey) continue;
      slot.count[domain] += counts[c];
      slot.total += counts[c];
    }
    for (const FixedNode& fixed : problem_.fixed) {
      const uint32_t domain = problem_.cells[fixed.cell].domains[slot.key];
      if (domain != kNoKey) slot.terminating[domain] += CountOf(fixed.terminating, slot.selector);
    }
  }

  void AddSlots() {
    for (const DenseKind& kind : problem_.kinds) {
      for (const DomainRule& rule : kind.rules) {
        DomainCount& slot = slots_[SlotOf(rule.key, rule.selector)];
        slot.spreads = slot.spreads || rule.kind == DomainRuleKind::kSpread;
      }
    }
    for (const FixedDomainLimit& fixed : problem_.fixed_domain_limits) {
      DomainCount& slot = slots_[SlotOf(fixed.key, fixed.limit.selector)];
      const uint32_t domain = problem_.cells[fixed.cell].domains[fixed.key];
      if (domain != kNoKey) slot.most[domain] = std::min(slot.most[domain], fixed.limit.most);
    }
  }

  void AddInvolved() {
    for (size_t k = 0; k < problem_.kinds.size(); ++k) {
      const DenseKind& kind = problem_.kinds[k];
      Involved one{.kind = static_cast<uint32_t>(k), .left = request_.counts[k]};
      if (kind.bundle) one.units = static_cast<int64_t>(kind.units.size());
      for (uint32_t s = 0; s < slots_.size(); ++s) {
        if (std::ranges::binary_search(kind.matches, slots_[s].selector)) one.slots.push_back(s);
      }
      if (kind.rules.empty() && one.slots.empty()) continue;
      for (const DomainRule& rule : kind.rules) AddRule(kind, rule, one);
      one.cells = CellsThatFit(problem_, kind);
      for (uint32_t c = 0; c < one.cells.size(); ++c) {
        if (request_.forbidden.contains({one.kind, c})) one.cells[c] = false;
      }
      for (const uint32_t s : one.slots) slots_[s].members.push_back(static_cast<uint32_t>(involved_.size()));
      one.placed.assign(problem_.cells.size(), 0);
      one.phase = PhaseOf(one);
      order_.push_back(static_cast<uint32_t>(involved_.size()));
      involved_.push_back(std::move(one));
    }
  }

  void AddRule(const DenseKind& kind, const DomainRule& rule, Involved& one) {
    RuleInUse& in_use =
        one.rules.emplace_back(RuleInUse{.rule = rule,
                                         .slot = SlotOf(rule.key, rule.selector),
                                         .self = std::ranges::binary_search(kind.matches, rule.selector)});
    if (rule.kind != DomainRuleKind::kSpread) return;
    std::set<uint32_t> domains;
    for (size_t c = 0; c < problem_.cells.size(); ++c) {
      const uint32_t domain = problem_.cells[c].domains[rule.key];
      if (problem_.cell_sets[rule.cells][c] && domain != kNoKey) domains.insert(domain);
    }
    in_use.domains.assign(domains.begin(), domains.end());
    const std::vector<bool>& counted = problem_.class_sets[rule.classes];
    in_use.every_class = std::ranges::count(counted, false) == 0;
    in_use.fixed.assign(slots_[in_use.slot].count.size(), 0);
    for (const FixedNode& fixed : problem_.fixed) {
      const uint32_t domain = problem_.cells[fixed.cell].domains[rule.key];
      if (domain == kNoKey || !counted[fixed.node_class]) continue;
      in_use.fixed[domain] += CountOf(fixed.tallies, rule.selector) - CountOf(fixed.terminating, rule.selector);
    }
  }

  static int64_t CountOf(const std::vector<Tally>& tallies, uint32_t selector) {
    const auto found = std::ranges::find(tallies, selector, &Tally::selector);
    return found == tallies.end() ? 0 : found->count;
  }

  // Units that the rule counts in the domain: at most, or at least. Planned units have no node yet, so one of a kind
  // that may use nodes that do not count is counted at most and not at least.
  int64_t CountFor(const RuleInUse& rule, uint32_t domain, bool at_most) const {
    int64_t sum = rule.fixed[domain];
    for (const uint32_t i : slots_[rule.slot].members) {
      const Involved& one = involved_[i];
      for (size_t c = 0; c < one.placed.size(); ++c) {
        if (one.placed[c] == 0 || problem_.cells[c].domains[rule.rule.key] != domain) continue;
        if (at_most || rule.every_class || SurelyCounts(rule, one, c)) sum += one.placed[c] * one.units;
      }
    }
    return sum;
  }

  bool SurelyCounts(const RuleInUse& rule, const Involved& one, size_t c) const {
    const std::vector<bool>& counted = problem_.class_sets[rule.rule.classes];
    const std::vector<bool>& mask = problem_.masks[problem_.kinds[one.kind].mask];
    for (size_t k = 0; k < counted.size(); ++k) {
      if (!counted[k] && mask[k] && problem_.classes_in_cell[c][k]) return false;
    }
    return true;
  }

  // The same where every class counts, from the slot's own count.
  int64_t SpreadCount(const RuleInUse& rule, uint32_t domain, bool at_most) const {
    if (!rule.every_class) return CountFor(rule, domain, at_most);
    return slots_[rule.slot].count[domain] - slots_[rule.slot].terminating[domain];
  }

  // Units without a choice first, then those with rules, then those that are only counted; last those that follow
  // others.
  static int PhaseOf(const Involved& one) {
    bool follows = false;
    bool leads = false;
    for (const RuleInUse& rule : one.rules) {
      if (rule.rule.kind == DomainRuleKind::kNear) (rule.self ? leads : follows) = true;
    }
    if (follows) return 4;
    if (one.rules.empty()) return std::ranges::count(one.cells, true) <= 1 ? 0 : 3;
    return leads ? 1 : 2;
  }

  int64_t LeastOf(const RuleInUse& rule) const {
    if (static_cast<int64_t>(rule.domains.size()) < rule.rule.min_domains || rule.domains.empty()) return 0;
    int64_t least = kUnlimited;
    for (const uint32_t domain : rule.domains) least = std::min(least, SpreadCount(rule, domain, false));
    return least;
  }

  // Why a unit that is not counted yet may not go to the cell; kNone: it may.
  Reason Barred(const Involved& one, size_t c) const {
    const Cell& cell = problem_.cells[c];
    for (const RuleInUse& rule : one.rules) {
      const DomainCount& slot = slots_[rule.slot];
      const uint32_t domain = cell.domains[slot.key];
      switch (rule.rule.kind) {
        case DomainRuleKind::kSpread:
          if (domain == kNoKey) return Reason::kSpreadKey;
          if (SpreadCount(rule, domain, true) + (rule.self ? one.units : 0) - LeastOf(rule) > rule.rule.most) {
            if (!MUTANT("planner.spread_forgotten")) return Reason::kSpreadSkew;
          }
          break;
        case DomainRuleKind::kLimit:
          if (domain != kNoKey && slot.count[domain] + (rule.self ? one.units : 0) > rule.rule.most)
            return Reason::kExcludes;
          break;
        case DomainRuleKind::kNear:
          if (domain == kNoKey) return Reason::kColocateKey;
          if (slot.count[domain] == 0 && !(rule.self && slot.total == 0)) {
            if (!MUTANT("planner.near_forgotten")) return Reason::kColocateNone;
          }
          break;
      }
    }
    for (const uint32_t s : one.slots) {
      const uint32_t domain = cell.domains[slots_[s].key];
      if (domain != kNoKey && slots_[s].count[domain] + one.units > slots_[s].most[domain]) return Reason::kExcluded;
    }
    return Reason::kNone;
  }

  void Move(Involved& one, size_t c, int64_t by) {
    one.placed[c] += by;
    one.left -= by;
    load_[c] += request_.worth[one.kind] * static_cast<double>(by);
    for (const uint32_t s : one.slots) {
      const uint32_t domain = problem_.cells[c].domains[slots_[s].key];
      if (domain == kNoKey) continue;
      slots_[s].count[domain] += by * one.units;
      slots_[s].total += by * one.units;
    }
    if (by <= 0) return;  // a limit that is left behind only bars more than it must
    for (const RuleInUse& rule : one.rules) {
      const uint32_t domain = problem_.cells[c].domains[rule.rule.key];
      if (rule.rule.kind != DomainRuleKind::kLimit || domain == kNoKey) continue;
      int64_t& most = slots_[rule.slot].most[domain];
      most = std::min(most, rule.rule.most);
    }
  }

  // Where something can be bought, unless a rule says otherwise; then the emptiest domains of the selectors that
  // spread, the cheapest cell, and the one with the least in it.
  std::optional<size_t> BestCell(const Involved& one) const {
    std::optional<size_t> best;
    std::tuple<bool, int64_t, double, double> best_score;
    for (size_t c = 0; c < problem_.cells.size(); ++c) {
      if (!one.cells[c] || Barred(one, c) != Reason::kNone) continue;
      int64_t crowd = 0;
      for (const uint32_t s : one.slots) {
        const uint32_t domain = problem_.cells[c].domains[slots_[s].key];
        if (slots_[s].spreads && domain != kNoKey) crowd += slots_[s].count[domain];
      }
      const Cell& cell = problem_.cells[c];
      const std::tuple score(one.rules.empty() && cell.first_choice == cell.end_choice, crowd, request_.level[c],
                             load_[c]);
      if (!best || score < best_score) {
        best = c;
        best_score = score;
      }
    }
    return best;
  }

  bool PlaceAll(Involved& one) {
    bool placed = false;
    while (one.left > 0) {
      const std::optional<size_t> cell = BestCell(one);
      if (!cell) break;
      Move(one, *cell, 1);
      placed = true;
    }
    return placed;
  }

  // Whether a unit of the kind could be put where it is with all others in place.
  bool StandsIn(Involved& one, size_t c) {
    Move(one, c, -1);
    const bool stands = Barred(one, c) == Reason::kNone;
    Move(one, c, 1);
    return stands;
  }

  // Moves units whose rules later ones have broken. Whether it moved any.
  bool Repair() {
    bool moved = false;
    for (const uint32_t i : order_) {
      Involved& one = involved_[i];
      for (size_t c = 0; c < problem_.cells.size(); ++c) {
        while (!one.rules.empty() && one.placed[c] > 0 && !StandsIn(one, c)) {
          Move(one, c, -1);
          moved = true;
          if (!PlaceAll(one)) break;
          if (one.placed[c] > 0 && !StandsIn(one, c)) break;
        }
      }
    }
    return moved;
  }

  // What still does not stand is not placed.
  void Withdraw() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const uint32_t i : order_) {
        Involved& one = involved_[i];
        for (size_t c = 0; c < problem_.cells.size(); ++c) {
          while (!one.rules.empty() && one.placed[c] > 0 && !StandsIn(one, c)) {
            Move(one, c, -1);
            changed = true;
          }
        }
      }
    }
  }

  CellAssignment Result() const {
    CellAssignment result;
    std::map<uint32_t, const Involved*> of_kind;
    for (const Involved& one : involved_) of_kind[one.kind] = &one;
    for (uint32_t k = 0; k < problem_.kinds.size(); ++k) {
      const auto found = of_kind.find(k);
      if (found == of_kind.end()) {
        if (request_.counts[k] > 0) result.lots.push_back({.kind = k, .count = request_.counts[k]});
        continue;
      }
      const Involved& one = *found->second;
      for (size_t c = 0; c < one.placed.size(); ++c) {
        if (one.placed[c] > 0) result.lots.push_back({k, static_cast<uint32_t>(c), one.placed[c]});
      }
      if (one.left > 0) result.refused.push_back({k, one.left, WhyNot(one)});
    }
    return result;
  }

  Reason WhyNot(const Involved& one) const {
    Reason reason = Reason::kNone;
    for (size_t c = 0; c < problem_.cells.size(); ++c) {
      if (one.cells[c]) reason = std::max(reason, Barred(one, c));
    }
    return reason == Reason::kNone && std::ranges::count(one.cells, true) > 0 ? Reason::kSpreadSkew : reason;
  }

  const Problem& problem_;
  const CellRequest& request_;
  std::vector<double> load_;  // by cell
  std::vector<DomainCount> slots_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> slot_of_;
  std::vector<Involved> involved_;
  std::vector<uint32_t> order_;
};

bool Fits(std::span<const int64_t> capacity, const std::vector<int64_t>& request) {
  return std::equal(capacity.begin(), capacity.end(), request.begin(), std::greater_equal<>());
}

}  // namespace

std::vector<bool> CellsThatFit(const Problem& problem, const DenseKind& kind) {
  const std::vector<bool>& mask = problem.masks[kind.mask];
  const std::vector<int64_t>& request = problem.requests[kind.request];
  std::vector<bool> cells(problem.cells.size(), false);
  for (size_t c = 0; c < cells.size(); ++c) {
    for (uint32_t k = problem.cells[c].first_choice; k < problem.cells[c].end_choice && !cells[c]; ++k) {
      cells[c] = mask[problem.choices[k].node_class] && Fits(problem.CapacityOf(k), request);
    }
  }
  for (const FixedNode& fixed : problem.fixed) {
    if (!cells[fixed.cell] && mask[fixed.node_class]) cells[fixed.cell] = Fits(fixed.free, request);
  }
  return cells;
}

CellAssignment AssignCells(const Problem& problem, const CellRequest& request) {
  return Assigner(problem, request).Run();
}

}  // namespace muster::planner
