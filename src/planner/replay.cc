#include "planner/replay.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/probe.h"
#include "base/rng.h"
#include "planner/build.h"

namespace muster::planner {
namespace {

constexpr int64_t kMostRounds = 256;
constexpr int64_t kMostIdleRounds = 2;  // in a row: the first may open the domain that the second needs
constexpr size_t kScanAll = 100;        // of fewer nodes the scheduler looks at every one
constexpr size_t kFewNodes = 32;        // a kind on more nodes has a row of its own
constexpr int64_t kManyUnits = 64;      // a request of fewer units is scored anew each time
constexpr int32_t kNoRoom = -1;

struct ReplayNode {
  uint32_t cell = 0;
  uint32_t node_class = 0;
  std::vector<int64_t> capacity;
  std::vector<int64_t> used;
  std::vector<Tally> tallies;
};

// The score of a request on a node but for its spread, as long as nothing else was bound there.
struct CachedScore {
  uint32_t version = 0;
  int32_t score = kNoRoom;
};

// How many units of one kind are on which node.
struct Whereabouts {
  std::vector<std::pair<uint32_t, int32_t>> few;
  std::vector<int32_t> by_node;  // instead, where `few` would be many
};

struct Slot {
  uint32_t key = 0;
  uint32_t selector = 0;
  std::vector<int64_t> count;  // by domain
  std::vector<int64_t> most;
  int64_t total = 0;
};

struct SlotRule {
  DomainRule rule;
  uint32_t slot = 0;
  bool self = false;
};

class Scheduler {
 public:
  Scheduler(const Problem& problem, const std::vector<uint32_t>& machines, uint64_t seed)
      : problem_(problem), rng_(seed), cell_has_nodes_(problem.cells.size(), false) {
    for (size_t d = 0; d < problem.dims(); ++d) {
      if (problem.dimensions[d] == "cpu" || problem.dimensions[d] == "memory") scored_.push_back(d);
    }
    AddSlots();
    whereabouts_.resize(problem.kinds.size());
    scores_.resize(problem.requests.size());
    units_of_request_.assign(problem.requests.size(), 0);
    for (const DenseKind& kind : problem.kinds) units_of_request_[kind.request] += kind.count();
    for (const FixedNode& fixed : problem.fixed) AddNode(fixed.cell, fixed.node_class, fixed.free, fixed.tallies);
    for (const uint32_t choice : machines) AddMachine(choice);
  }

  void AddMachine(uint32_t choice) {
    const auto capacity = problem_.CapacityOf(choice);
    AddNode(CellOf(choice), problem_.choices[choice].node_class, {capacity.begin(), capacity.end()}, {});
  }

  // One entry for each placement in a shuffled order; what stays without a node, by kind.
  std::vector<uint32_t> Run(std::vector<uint32_t> queue) {
    rng_.Shuffle(std::span(queue));
    while (true) {
      std::vector<uint32_t> pending;
      for (const uint32_t kind : queue) {
        if (!PlaceOne(kind)) pending.push_back(kind);
      }
      if (pending.empty() || pending.size() == queue.size()) return pending;
      queue = std::move(pending);
    }
  }

  // Lots for units that found no node: a cell that their rules allow now, the emptiest first.
  std::vector<Lot> LotsFor(const std::vector<uint32_t>& pending) {
    std::map<std::pair<uint32_t, uint32_t>, int64_t> counts;
    const std::vector<Slot> before = slots_;  // counted as if placed, while cells are chosen
    for (const uint32_t kind : pending) {
      uint32_t cell = kAnyCell;
      if (!rules_[kind].empty() || !slots_of_[kind].empty()) {
        cell = CellFor(kind);
        CountIn(kind, cell);
      }
      ++counts[{kind, cell}];
    }
    slots_ = before;
    std::vector<Lot> lots;
    for (const auto& [where, count] : counts) lots.push_back({where.first, where.second, count});
    return lots;
  }

 private:
  uint32_t CellOf(uint32_t choice) const {
    for (uint32_t c = 0; c < problem_.cells.size(); ++c) {
      if (choice >= problem_.cells[c].first_choice && choice < problem_.cells[c].end_choice) return c;
    }
    return kAnyCell;
  }

  void AddNode(uint32_t cell, uint32_t node_class, std::vector<int64_t> capacity, std::vector<Tally> tallies) {
    cell_has_nodes_[cell] = true;
    nodes_.push_back({.cell = cell,
                      .node_class = node_class,
                      .capacity = std::move(capacity),
                      .used = std::vector<int64_t>(problem_.dims(), 0),
                      .tallies = std::move(tallies)});
    versions_.push_back(1);
    same_.push_back(0);
  }

  uint32_t SlotOf(uint32_t key, uint32_t selector) {
    for (uint32_t s = 0; s < slots_.size(); ++s) {
      if (slots_[s].key == key && slots_[s].selector == selector) return s;
    }
    Slot slot{.key = key, .selector = selector};
    for (const Cell& cell : problem_.cells) {
      if (cell.domains[key] != kNoKey && cell.domains[key] >= slot.count.size())
        slot.count.resize(cell.domains[key] + 1);
    }
    slot.most.assign(slot.count.size(), kUnlimited);
    for (size_t c = 0; c < problem_.cells.size() && !problem_.fixed_counts.empty(); ++c) {
      const uint32_t domain = problem_.cells[c].domains[key];
      if (domain == kNoKey) continue;
      slot.count[domain] += problem_.fixed_counts[selector][c];
      slot.total += problem_.fixed_counts[selector][c];
    }
    slots_.push_back(std::move(slot));
    return static_cast<uint32_t>(slots_.size() - 1);
  }

  void AddSlots() {
    rules_.resize(problem_.kinds.size());
    slots_of_.resize(problem_.kinds.size());
    for (size_t k = 0; k < problem_.kinds.size(); ++k) {
      const DenseKind& kind = problem_.kinds[k];
      for (const DomainRule& rule : kind.rules) {
        rules_[k].push_back(
            {rule, SlotOf(rule.key, rule.selector), std::ranges::binary_search(kind.matches, rule.selector)});
      }
    }
    for (const FixedDomainLimit& fixed : problem_.fixed_domain_limits) {
      Slot& slot = slots_[SlotOf(fixed.key, fixed.limit.selector)];
      const uint32_t domain = problem_.cells[fixed.cell].domains[fixed.key];
      if (domain != kNoKey) slot.most[domain] = std::min(slot.most[domain], fixed.limit.most);
    }
    for (size_t k = 0; k < problem_.kinds.size(); ++k) {
      for (uint32_t s = 0; s < slots_.size(); ++s) {
        if (std::ranges::binary_search(problem_.kinds[k].matches, slots_[s].selector)) slots_of_[k].push_back(s);
      }
    }
  }

  // The least count over the domains that have a node; 0 if they are too few.
  int64_t LeastOf(const SlotRule& rule) const {
    const Slot& slot = slots_[rule.slot];
    std::vector<bool> seen(slot.count.size(), false);
    int64_t domains = 0;
    int64_t least = kUnlimited;
    for (size_t c = 0; c < problem_.cells.size(); ++c) {
      const uint32_t domain = problem_.cells[c].domains[slot.key];
      if (domain == kNoKey || !cell_has_nodes_[c] || !problem_.cell_sets[rule.rule.cells][c] || seen[domain]) continue;
      seen[domain] = true;
      ++domains;
      least = std::min(least, slot.count[domain]);
    }
    return domains < rule.rule.min_domains || domains == 0 ? 0 : least;
  }

  bool CellAllows(uint32_t kind, size_t c) const {
    const Cell& cell = problem_.cells[c];
    for (const SlotRule& rule : rules_[kind]) {
      const Slot& slot = slots_[rule.slot];
      const uint32_t domain = cell.domains[slot.key];
      const int64_t self = rule.self ? 1 : 0;
      if (rule.rule.kind == DomainRuleKind::kLimit) {
        if (domain != kNoKey && slot.count[domain] + self > rule.rule.most) return false;
        continue;
      }
      if (domain == kNoKey) return false;
      if (rule.rule.kind == DomainRuleKind::kSpread) {
        if (slot.count[domain] + self - LeastOf(rule) > rule.rule.most) return false;
      } else if (slot.count[domain] == 0 && !(rule.self && slot.total == 0)) {
        return false;
      }
    }
    return std::ranges::all_of(slots_of_[kind], [&](uint32_t s) {
      const uint32_t domain = cell.domains[slots_[s].key];
      return domain == kNoKey || slots_[s].count[domain] + 1 <= slots_[s].most[domain];
    });
  }

  uint32_t CellFor(uint32_t kind) const {
    std::optional<std::pair<bool, int64_t>> best;  // barred, crowd
    uint32_t found = kAnyCell;
    for (uint32_t c = 0; c < problem_.cells.size(); ++c) {
      const Cell& cell = problem_.cells[c];
      bool fits = false;
      for (uint32_t k = cell.first_choice; k < cell.end_choice && !fits; ++k) {
        fits = problem_.masks[problem_.kinds[kind].mask][problem_.choices[k].node_class];
      }
      if (!fits) continue;
      int64_t crowd = 0;
      for (const uint32_t s : slots_of_[kind]) {
        if (const uint32_t domain = cell.domains[slots_[s].key]; domain != kNoKey) crowd += slots_[s].count[domain];
      }
      const std::pair score(!CellAllows(kind, c), crowd);
      if (!best || score < *best) {
        best = score;
        found = c;
      }
    }
    return found;
  }

  void CountIn(uint32_t kind, uint32_t c) {
    if (c == kAnyCell) return;
    for (const uint32_t s : slots_of_[kind]) {
      const uint32_t domain = problem_.cells[c].domains[slots_[s].key];
      if (domain == kNoKey) continue;
      const DenseKind& placed = problem_.kinds[kind];
      const int64_t units = placed.bundle ? static_cast<int64_t>(placed.units.size()) : 1;
      slots_[s].count[domain] += units;
      slots_[s].total += units;
    }
    for (const SlotRule& rule : rules_[kind]) {
      const uint32_t domain = problem_.cells[c].domains[rule.rule.key];
      if (rule.rule.kind != DomainRuleKind::kLimit || domain == kNoKey) continue;
      slots_[rule.slot].most[domain] = std::min(slots_[rule.slot].most[domain], rule.rule.most);
    }
  }

  static const Tally* Find(const std::vector<Tally>& tallies, uint32_t selector) {
    const auto found = std::ranges::find(tallies, selector, &Tally::selector);
    return found == tallies.end() ? nullptr : &*found;
  }

  bool HasRoom(const std::vector<int64_t>& request, const ReplayNode& node) const {
    for (size_t d = 0; d < request.size(); ++d) {
      if (request[d] > 0 && node.used[d] + request[d] > node.capacity[d]) return false;
    }
    return true;
  }

  // Whether what is on the node lets one more of the kind in.
  static bool Allows(const DenseKind& kind, const ReplayNode& node) {
    for (const uint32_t selector : kind.matches) {
      const Tally* tally = Find(node.tallies, selector);
      if (tally != nullptr && tally->count + 1 > tally->most) return false;
    }
    for (const Limit& limit : kind.limits) {
      const Tally* tally = Find(node.tallies, limit.selector);
      const int64_t self = std::ranges::binary_search(kind.matches, limit.selector) ? 1 : 0;
      if ((tally == nullptr ? 0 : tally->count) + self > limit.most) return false;
    }
    return std::ranges::all_of(kind.near, [&](uint32_t selector) {
      const Tally* tally = Find(node.tallies, selector);
      return tally != nullptr && tally->count > 0;
    });
  }

  // As kube-scheduler weighs by default: least allocated and balanced allocation once, and spread (below) twice.
  int32_t ScoreRoom(const std::vector<int64_t>& request, const ReplayNode& node) const {
    if (!HasRoom(request, node)) return kNoRoom;
    int64_t least = 0;
    int64_t lowest = 100;
    int64_t highest = 0;
    for (const size_t d : scored_) {
      if (node.capacity[d] <= 0) continue;
      const int64_t free = std::max<int64_t>(node.capacity[d] - node.used[d] - request[d], 0) * 100 / node.capacity[d];
      least += free / static_cast<int64_t>(scored_.size());
      lowest = std::min(lowest, free);
      highest = std::max(highest, free);
    }
    const int64_t balanced = 100 - std::max<int64_t>(highest - lowest, 0) / 2;
    return static_cast<int32_t>(least + balanced);
  }

  // The scores of a request on every node; empty: too few units ask for it.
  std::span<CachedScore> ScoresOf(uint32_t request) {
    if (units_of_request_[request] < kManyUnits) return {};
    scores_[request].resize(nodes_.size());
    return scores_[request];
  }

  int32_t RoomOn(size_t n, uint32_t request, std::span<CachedScore> scores) {
    if (scores.empty()) return ScoreRoom(problem_.requests[request], nodes_[n]);
    if (scores[n].version != versions_[n]) scores[n] = {versions_[n], ScoreRoom(problem_.requests[request], nodes_[n])};
    return scores[n].score;
  }

  // How many feasible nodes it is content with.
  size_t Enough() const {
    if (nodes_.size() < kScanAll) return nodes_.size();
    const size_t percent = std::max<size_t>(50 - std::min<size_t>(nodes_.size() / 125, 45), 5);
    return std::max(kScanAll, nodes_.size() * percent / 100);
  }

  bool PlaceOne(uint32_t k) {
    std::vector<bool> allowed(problem_.cells.size(), true);
    if (!rules_[k].empty() || !slots_of_[k].empty()) {
      for (size_t c = 0; c < allowed.size(); ++c) allowed[c] = cell_has_nodes_[c] && CellAllows(k, c);
    }
    const Whereabouts& where = whereabouts_[k];
    for (const auto& [n, count] : where.few) same_[n] = count;
    const std::optional<size_t> best = BestNode(k, allowed, where.by_node.empty() ? same_ : where.by_node);
    for (const auto& [n, count] : where.few) same_[n] = 0;
    if (best) Bind(k, *best);
    return best.has_value();
  }

  // `same`: how many of the kind each node has.
  std::optional<size_t> BestNode(uint32_t k, const std::vector<bool>& allowed, const std::vector<int32_t>& same) {
    const DenseKind& kind = problem_.kinds[k];
    const std::vector<bool>& mask = problem_.masks[kind.mask];
    const std::span<CachedScore> scores = ScoresOf(kind.request);
    const size_t enough = Enough();
    std::optional<size_t> best;
    int64_t best_score = 0;
    size_t ties = 0;
    size_t found = 0;
    size_t looked = 0;
    size_t n = next_;
    for (; looked < nodes_.size() && found < enough; ++looked, n = n + 1 == nodes_.size() ? 0 : n + 1) {
      const ReplayNode& node = nodes_[n];
      if (!allowed[node.cell] || !mask[node.node_class]) continue;
      const int32_t room = RoomOn(n, kind.request, scores);
      if (room == kNoRoom || !Allows(kind, node)) continue;
      ++found;
      const int64_t score = room + 2 * (100 / (1 + (n < same.size() ? same[n] : 0)));
      ties = best && score == best_score ? ties + 1 : 1;
      if (best && (score < best_score || (score == best_score && !rng_.Chance(1, ties)))) continue;
      best = n;
      best_score = score;
    }
    if (!nodes_.empty()) next_ = (next_ + looked) % nodes_.size();
    return best;
  }

  void CountOn(Whereabouts& where, size_t n) const {
    if (!where.by_node.empty()) {
      where.by_node.resize(nodes_.size(), 0);
      ++where.by_node[n];
      return;
    }
    const auto same = std::ranges::find(where.few, n, &std::pair<uint32_t, int32_t>::first);
    if (same != where.few.end()) {
      ++same->second;
      return;
    }
    where.few.emplace_back(static_cast<uint32_t>(n), 1);
    if (where.few.size() <= kFewNodes) return;
    where.by_node.assign(nodes_.size(), 0);
    for (const auto& [at, count] : where.few) where.by_node[at] = count;
    where.few.clear();
  }

  void Bind(uint32_t k, size_t n) {
    ReplayNode& node = nodes_[n];
    ++versions_[n];
    CountOn(whereabouts_[k], n);
    const DenseKind& kind = problem_.kinds[k];
    const std::vector<int64_t>& request = problem_.requests[kind.request];
    for (size_t d = 0; d < request.size(); ++d) node.used[d] += request[d];
    const auto tally = [&](uint32_t selector) -> Tally& {
      const auto found = std::ranges::find(node.tallies, selector, &Tally::selector);
      return found != node.tallies.end() ? *found : node.tallies.emplace_back(Tally{.selector = selector});
    };
    const int64_t units = kind.bundle ? static_cast<int64_t>(kind.units.size()) : 1;
    for (const uint32_t selector : kind.matches) tally(selector).count += units;
    for (const Limit& limit : kind.limits) {
      if (limit.both_ways) tally(limit.selector).most = std::min(tally(limit.selector).most, limit.most);
    }
    CountIn(k, node.cell);
  }

  const Problem& problem_;
  Rng rng_;
  std::vector<size_t> scored_;  // dimensions
  std::vector<ReplayNode> nodes_;
  std::vector<uint32_t> versions_;                // by node: how often something was bound there, and one
  std::vector<int32_t> same_;                     // by node; zero but while a kind with few nodes is placed
  std::vector<Whereabouts> whereabouts_;          // by kind
  std::vector<std::vector<CachedScore>> scores_;  // by request, then node
  std::vector<int64_t> units_of_request_;
  std::vector<bool> cell_has_nodes_;
  std::vector<Slot> slots_;
  std::vector<std::vector<SlotRule>> rules_;     // by kind
  std::vector<std::vector<uint32_t>> slots_of_;  // by kind: slots that count it
  size_t next_ = 0;
};

}  // namespace

ReplayOutcome Replay(const Solution& solution, uint64_t seed) {
  const Problem& problem = *solution.problem;
  const Packing& packing = *solution.packing;
  std::vector<uint32_t> machines;
  std::vector<int64_t> counts(problem.kinds.size(), 0);
  for (const Bin& bin : packing.bins()) {
    if (bin.choice != kNoChoice) machines.push_back(bin.choice);
    for (const Item& item : bin.items) counts[packing.lots()[item.lot].kind] += item.count;
  }
  std::vector<uint32_t> queue;
  for (uint32_t k = 0; k < counts.size(); ++k) queue.insert(queue.end(), static_cast<size_t>(counts[k]), k);
  ReplayOutcome outcome;
  Scheduler scheduler(problem, machines, seed);
  std::vector<uint32_t> pending = scheduler.Run(std::move(queue));
  outcome.first = pending;
  int64_t idle = 0;
  size_t helpful = 0;  // of the added machines: the first ones, up to the last round that placed a unit
  while (!pending.empty() && outcome.rounds < kMostRounds && idle < kMostIdleRounds &&
         !MUTANT("planner.replay_buys_nothing")) {
    ++outcome.rounds;
    Packing more(problem, scheduler.LotsFor(pending));
    Builder(more, *solution.valuer).BuyRest({});
    const size_t before = outcome.added.size();
    for (const Bin& bin : more.bins()) {
      if (bin.choice == kNoChoice) continue;
      scheduler.AddMachine(bin.choice);
      outcome.added.push_back(bin.choice);
    }
    if (outcome.added.size() == before) break;  // nothing that could be bought would take them
    const size_t waiting = pending.size();
    pending = scheduler.Run(std::move(pending));
    idle = pending.size() < waiting ? 0 : idle + 1;
    if (idle == 0) helpful = outcome.added.size();
  }
  outcome.added.resize(helpful);
  outcome.left = std::move(pending);
  return outcome;
}

}  // namespace muster::planner
