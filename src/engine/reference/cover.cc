// Which machines of a pool to take for a deficit. [P1.cover] A few cheap constructions, each pruned, the best kept: not
// the optimum, but near it, and the same every time.
#include <algorithm>
#include <optional>

#include "base/probe.h"
#include "engine/reference/cycle.h"

namespace muster::engine::reference {
namespace {

constexpr size_t kBestKinds = 8;

// Machines of a pool that are alike to the need: equal allocatable and cost.
struct Kind {
  const Amounts* allocatable = nullptr;
  Cost cost;
  std::vector<size_t> positions;  // in pool order
};

// Sum over short dimensions of what the machine adds, as parts of the original deficit. [A.ratio]
Wide Share(const Amounts& allocatable, const Amounts& shortage, const Amounts& deficit) {
  Wide share = 0;
  for (size_t d = 0; d < deficit.size(); ++d) {
    if (shortage[d] > 0) share += Ratio(std::min(allocatable[d], shortage[d]), deficit[d]);
  }
  return share;
}

// Whether a's cost per share is less than b's. No share ranks last. A pool is all finite or all infinite.
bool CheaperPerShare(const Cost& a, Wide share_a, const Cost& b, Wide share_b) {
  if (a.reserved != b.reserved) return !a.reserved;
  if ((share_a == 0) != (share_b == 0)) return share_a != 0;
  return Wide{a.micros} * share_b < Wide{b.micros} * share_a;
}

class CoverSearch {
 public:
  CoverSearch(const Cycle& cycle, const std::vector<Candidate>& pool, const Amounts& deficit)
      : cycle_(cycle), pool_(pool), deficit_(deficit) {
    for (size_t i = 0; i < pool.size(); ++i) {
      if (IsUseful(Allocatable(i), deficit)) KindOf(i).positions.push_back(i);
    }
  }

  std::vector<size_t> Best() {
    TryFrom({});
    for (const Kind* kind : BestKinds()) {
      const auto [fit, cover] = FitAndCover(*kind);
      TryFrom(FirstOf(*kind, fit));
      if (cover != fit) TryFrom(FirstOf(*kind, cover));
    }
    return best_ ? best_->positions : std::vector<size_t>{};
  }

 private:
  struct Cover {
    std::vector<size_t> positions;  // ascending
    Wide coverage = 0;
    int64_t reserved = 0;  // how many machines a later need waits for
    Wide cost = 0;
    Wide waste = 0;
    std::vector<std::string_view> ids;  // sorted
  };

  const Amounts& Allocatable(size_t position) const { return cycle_.machines[pool_[position].machine].allocatable; }

  Kind& KindOf(size_t position) {
    for (Kind& kind : kinds_) {
      if (kind.cost == pool_[position].cost && *kind.allocatable == Allocatable(position)) return kind;
    }
    return kinds_.emplace_back(Kind{.allocatable = &Allocatable(position), .cost = pool_[position].cost});
  }

  std::vector<const Kind*> BestKinds() const {
    std::vector<const Kind*> kinds;
    for (const Kind& kind : kinds_) kinds.push_back(&kind);  // in pool order of their first machine
    std::ranges::stable_sort(kinds, [&](const Kind* a, const Kind* b) {
      return CheaperPerShare(a->cost, Share(*a->allocatable, deficit_, deficit_), b->cost,
                             Share(*b->allocatable, deficit_, deficit_));
    });
    if (kinds.size() > kBestKinds) kinds.resize(kBestKinds);
    return kinds;
  }

  // As many as exceed the deficit in no dimension, and as few as cover every dimension the kind adds to.
  std::pair<int64_t, int64_t> FitAndCover(const Kind& kind) const {
    int64_t fit = static_cast<int64_t>(kind.positions.size());
    int64_t cover = 0;
    for (size_t d = 0; d < deficit_.size(); ++d) {
      const int64_t each = (*kind.allocatable)[d];
      if (deficit_[d] == 0 || each == 0) continue;
      fit = std::min(fit, deficit_[d] / each);
      cover = std::max(cover, deficit_[d] / each + (deficit_[d] % each > 0 ? 1 : 0));
    }
    return {fit, std::min(cover, static_cast<int64_t>(kind.positions.size()))};
  }

  static std::vector<size_t> FirstOf(const Kind& kind, int64_t count) {
    return {kind.positions.begin(), kind.positions.begin() + count};
  }

  void TryFrom(const std::vector<size_t>& start) {
    Amounts shortage = deficit_;
    std::vector<bool> used(pool_.size(), false);
    for (const size_t position : start) {
      used[position] = true;
      SubtractSaturating(shortage, Allocatable(position));
    }
    CompleteInPoolOrder(start, used, shortage);
    CompleteByShare(start, used, shortage);
  }

  // Cover A.
  void CompleteInPoolOrder(std::vector<size_t> picks, const std::vector<bool>& used, Amounts shortage) {
    for (size_t i = 0; i < pool_.size() && !IsZero(shortage); ++i) {
      if (used[i] || !IsUseful(Allocatable(i), shortage)) continue;
      picks.push_back(i);
      SubtractSaturating(shortage, Allocatable(i));
    }
    Consider(std::move(picks));
  }

  // Cover B, and at each of its steps the cheapest single machine that ends it.
  void CompleteByShare(std::vector<size_t> picks, std::vector<bool> used, Amounts shortage) {
    while (!IsZero(shortage)) {
      if (const auto last = CheapestThatCovers(used, shortage)) {
        std::vector<size_t> ended = picks;
        ended.push_back(*last);
        Consider(std::move(ended));
      }
      const auto next = CheapestPerShare(used, shortage);
      if (!next) break;
      used[*next] = true;
      picks.push_back(*next);
      SubtractSaturating(shortage, Allocatable(*next));
    }
    Consider(std::move(picks));
  }

  static std::optional<size_t> FirstUnused(const Kind& kind, const std::vector<bool>& used) {
    for (const size_t position : kind.positions) {
      if (!used[position]) return position;
    }
    return std::nullopt;
  }

  std::optional<size_t> CheapestThatCovers(const std::vector<bool>& used, const Amounts& shortage) const {
    std::optional<size_t> best;
    for (const Kind& kind : kinds_) {
      const auto position = FirstUnused(kind, used);
      if (!position || !Covers(*kind.allocatable, shortage)) continue;
      if (!best || kind.cost < pool_[*best].cost || (kind.cost == pool_[*best].cost && *position < *best)) {
        best = position;
      }
    }
    return best;
  }

  std::optional<size_t> CheapestPerShare(const std::vector<bool>& used, const Amounts& shortage) const {
    std::optional<size_t> best;
    Wide best_share = 0;
    for (const Kind& kind : kinds_) {
      const auto position = FirstUnused(kind, used);
      if (!position || !IsUseful(*kind.allocatable, shortage)) continue;
      const Wide share = Share(*kind.allocatable, shortage, deficit_);
      const bool better = !best || CheaperPerShare(kind.cost, share, pool_[*best].cost, best_share);
      const bool worse = best && CheaperPerShare(pool_[*best].cost, best_share, kind.cost, share);
      if (better || (!worse && *position < *best)) {
        best = position;
        best_share = share;
      }
    }
    return best;
  }

  void Consider(std::vector<size_t> positions) {
    std::ranges::sort(positions);
    std::vector<Candidate> picks;
    for (const size_t position : positions) picks.push_back(pool_[position]);
    picks = Prune(cycle_, std::move(picks), deficit_);
    Cover cover;
    std::vector<Wide> taken(deficit_.size(), 0);
    size_t next = 0;
    for (const size_t position : positions) {
      if (next == picks.size() || pool_[position].machine != picks[next].machine) continue;
      ++next;
      cover.positions.push_back(position);
      cover.reserved += pool_[position].cost.reserved ? 1 : 0;
      cover.cost += pool_[position].cost.micros;
      cover.ids.push_back(cycle_.machines[pool_[position].machine].machine->id);
      for (size_t d = 0; d < taken.size(); ++d) taken[d] += Allocatable(position)[d];
    }
    for (size_t d = 0; d < taken.size(); ++d) {
      if (deficit_[d] == 0) continue;
      cover.coverage += Ratio(std::min<Wide>(taken[d], deficit_[d]), deficit_[d]);
      if (taken[d] > deficit_[d]) cover.waste += Ratio(taken[d] - deficit_[d], deficit_[d]);
    }
    std::ranges::sort(cover.ids);
    if (!best_ || IsBetter(cover, *best_)) best_ = std::move(cover);
  }

  // [P1.best-cover] covers more, costs less, wastes less; then of Idle machines those first in the pool, so
  // that big ones are left for needs that fit no other; of Speculative ones fewer machines, smaller ids.
  bool IsBetter(const Cover& a, const Cover& b) const {
    if (a.coverage != b.coverage) return a.coverage > b.coverage;
    if (a.reserved != b.reserved) return a.reserved < b.reserved;
    if (a.cost != b.cost) return a.cost < b.cost;
    if (a.waste != b.waste) return a.waste < b.waste;
    const bool idle = !pool_.empty() && cycle_.machines[pool_[0].machine].state() == model::MachineState::kIdle;
    if (idle) return a.positions < b.positions;
    if (a.positions.size() != b.positions.size()) return a.positions.size() < b.positions.size();
    if (a.ids != b.ids) PROBE("reference.tie.cover");
    return a.ids < b.ids;
  }

  const Cycle& cycle_;
  const std::vector<Candidate>& pool_;
  const Amounts& deficit_;
  std::vector<Kind> kinds_;
  std::optional<Cover> best_;
};

}  // namespace

std::vector<size_t> BestCover(const Cycle& cycle, const std::vector<Candidate>& pool, const Amounts& deficit) {
  return CoverSearch(cycle, pool, deficit).Best();
}

// [P1.prune]
std::vector<Candidate> Prune(const Cycle& cycle, std::vector<Candidate> picks, const Amounts& deficit,
                             const std::function<bool(const Candidate&)>& may_drop) {
  std::vector<Wide> taken(deficit.size(), 0);
  for (const Candidate& pick : picks) {
    for (size_t d = 0; d < taken.size(); ++d) taken[d] += cycle.machines[pick.machine].allocatable[d];
  }
  std::vector<size_t> order(picks.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;  // the later in pool order goes first
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return picks[a].cost > picks[b].cost; });
  std::vector<bool> dropped(picks.size(), false);
  for (size_t at = 0; at < order.size();) {
    const size_t i = order[at];
    const Amounts& each = cycle.machines[picks[i].machine].allocatable;
    bool redundant = !dropped[i];
    for (size_t d = 0; d < deficit.size(); ++d) {
      redundant = redundant && std::min<Wide>(taken[d] - each[d], deficit[d]) == std::min<Wide>(taken[d], deficit[d]);
    }
    if (!redundant || (may_drop && !may_drop(picks[i]))) {
      ++at;
      continue;
    }
    PROBE("reference.pruned");
    dropped[i] = true;
    for (size_t d = 0; d < taken.size(); ++d) taken[d] -= each[d];
    at = may_drop ? 0 : at + 1;  // what may_drop refused before it may allow now
  }
  std::vector<Candidate> kept;
  for (size_t i = 0; i < picks.size(); ++i) {
    if (!dropped[i]) kept.push_back(picks[i]);
  }
  return kept;
}

}  // namespace muster::engine::reference
