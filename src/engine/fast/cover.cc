#include "engine/fast/cover.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/probe.h"

namespace muster::engine::fast {
namespace {

constexpr size_t kBestKinds = 8;

Wide Share(const Amounts& each, const Amounts& shortage, const Amounts& deficit, size_t n) {
  Wide share = 0;
  for (size_t d = 0; d < n; ++d) {
    if (shortage[d] > 0) share += Ratio(std::min(each[d], shortage[d]), deficit[d]);
  }
  return share;
}

// Whether a's cost per share is less than b's. No share ranks last; reserved after all others. A pool is all finite or
// all infinite.
bool CheaperPerShare(const Cost& a, Wide share_a, const Cost& b, Wide share_b) {
  if (a.reserved != b.reserved) return !a.reserved;
  if ((share_a == 0) != (share_b == 0)) return share_a != 0;
  return Wide{a.micros} * share_b < Wide{b.micros} * share_a;
}

int64_t CountOf(const Counts& counts, uint32_t kind) {
  for (const auto& [k, count] : counts) {
    if (k == kind) return count;
  }
  return 0;
}

void AddTo(Counts& counts, uint32_t kind, int64_t more) {
  if (more == 0) return;
  const auto at = std::ranges::lower_bound(counts, kind, {}, &std::pair<uint32_t, int64_t>::first);
  if (at != counts.end() && at->first == kind) {
    at->second += more;
  } else {
    counts.insert(at, {kind, more});
  }
}

// The machines of a cover from the last in the pool on: kind by kind, or stretch by stretch where kinds tie.
class FromTheEnd {
 public:
  FromTheEnd(const CoverPool& pool, Counts& counts)
      : pool_(pool), counts_(counts), at_(pool.mixed ? pool.stretches.size() : counts.size()) {
    Step();
  }
  bool empty() const { return here_ == 0; }
  const PoolKind& kind() const { return pool_.kinds[entry_->first]; }

  // Drops what the rest makes redundant of the machines it stands at, and goes on to those before.
  void Prune(Totals& taken, const Amounts& deficit, size_t n) {
    const int64_t drop = Redundant(taken, *kind().each, deficit, here_, n);
    entry_->second -= drop;
    Add(taken, *kind().each, -drop, n);
    Step();
  }

 private:
  void Step() {
    for (here_ = 0; here_ == 0 && at_ > 0;) {
      --at_;
      if (!pool_.mixed) {
        entry_ = &counts_[at_];
        here_ = entry_->second;
        continue;
      }
      const Stretch& stretch = pool_.stretches[at_];
      const auto entry = std::ranges::find(counts_, stretch.kind, &std::pair<uint32_t, int64_t>::first);
      if (entry == counts_.end()) continue;
      entry_ = &*entry;
      here_ = std::clamp(entry_->second - stretch.ordinal, int64_t{0}, stretch.count);
    }
  }

  const CoverPool& pool_;
  Counts& counts_;
  size_t at_;  // entries of `counts_`, or stretches, before it are to come
  std::pair<uint32_t, int64_t>* entry_ = nullptr;
  int64_t here_ = 0;
};

void DropEmpty(Counts& counts) {
  std::erase_if(counts, [](const auto& entry) { return entry.second == 0; });
}

class CoverSearch {
 public:
  CoverSearch(const CoverPool& pool, const Amounts& deficit, size_t n)
      : pool_(pool), deficit_(deficit), n_(n), memory_(pool.memory), lanes_(memory_) {
    bool each_covers = true;
    for (uint32_t k = 0; k < pool.kinds.size(); ++k) {
      const PoolKind& kind = pool.kinds[k];
      if (kind.available == 0 || !IsUseful(*kind.each, deficit, n)) continue;
      auto lane = std::ranges::find(lanes_, kind.shape, &Lane::shape);
      if (lane == lanes_.end()) {
        lane = lanes_.insert(
            lane, {.shape = kind.shape, .each = kind.each, .share = -1, .kinds = std::pmr::vector<uint32_t>(memory_)});
        for (size_t d = 0; d < n; ++d) largest_[d] = std::max(largest_[d], (*kind.each)[d]);
        each_covers = each_covers && Covers(*kind.each, deficit, n);
      }
      lane->kinds.push_back(k);
      ++useful_;
    }
    each_covers_ = each_covers;
  }

  Counts Best() {
    if (useful_ == 0) return Counts(memory_);
    if (each_covers_) return BestSingle();
    TryFrom(kNoId, 0);
    for (const uint32_t k : FirstKinds()) {
      const auto [fit, cover] = FitAndCover(k);
      TryFrom(k, fit);
      if (cover != fit) TryFrom(k, cover);
    }
    return best_ ? std::move(best_->counts) : Counts(memory_);
  }

 private:
  // Kinds of one shape, cheapest first: the first with a machine left is the one to take.
  struct Lane {
    ShapeId shape = kNoId;
    const Amounts* each = nullptr;
    Wide share = 0;  // of the whole deficit
    std::pmr::vector<uint32_t> kinds;
  };
  struct Cover {
    Counts counts;
    Wide coverage = 0;
    int64_t reserved = 0;
    int64_t machines = 0;
    Wide cost = 0;
    Wide waste = 0;
  };

  // Every machine covers all of it: one of the first eight kinds, whichever costs and wastes least.
  Counts BestSingle() {
    std::pmr::vector<uint32_t> kinds(memory_);
    for (const Lane& lane : lanes_) kinds.insert(kinds.end(), lane.kinds.begin(), lane.kinds.end());
    const size_t look = std::min(kinds.size(), kBestKinds);
    std::ranges::partial_sort(kinds, kinds.begin() + static_cast<ptrdiff_t>(look));
    // Reserved and cost order the pool: only kinds that cost what the first does can win.
    const Cost& least = pool_.kinds[kinds[0]].cost;
    size_t end = 1;
    while (end < look && pool_.kinds[kinds[end]].cost == least) ++end;
    if (end == 1) return Counts({{kinds[0], 1}}, memory_);
    for (size_t i = 0; i < end; ++i) Consider(Counts({{kinds[i], 1}}, memory_));
    return std::move(best_->counts);
  }

  Wide ShareOfAll(Lane& lane) {
    if (lane.share < 0) lane.share = Share(*lane.each, deficit_, deficit_, n_);
    return lane.share;
  }

  // The best kinds by cost per share, then pool order: the heads of the lanes, merged.
  std::pmr::vector<uint32_t> FirstKinds() {
    std::pmr::vector<size_t> next(lanes_.size(), 0, memory_);
    std::pmr::vector<uint32_t> first(memory_);
    while (first.size() < kBestKinds) {
      size_t best = lanes_.size();
      for (size_t l = 0; l < lanes_.size(); ++l) {
        if (next[l] == lanes_[l].kinds.size()) continue;
        if (best == lanes_.size() || Precedes(lanes_[l].kinds[next[l]], ShareOfAll(lanes_[l]),
                                              lanes_[best].kinds[next[best]], ShareOfAll(lanes_[best]))) {
          best = l;
        }
      }
      if (best == lanes_.size()) break;
      first.push_back(lanes_[best].kinds[next[best]++]);
    }
    return first;
  }

  bool Precedes(uint32_t a, Wide share_a, uint32_t b, Wide share_b) const {
    const Cost& cost_a = pool_.kinds[a].cost;
    const Cost& cost_b = pool_.kinds[b].cost;
    if (CheaperPerShare(cost_a, share_a, cost_b, share_b)) return true;
    if (CheaperPerShare(cost_b, share_b, cost_a, share_a)) return false;
    return PositionOf(a, 0) < PositionOf(b, 0);
  }

  int64_t PositionOf(uint32_t kind, int64_t ordinal) const {
    if (!pool_.mixed) return pool_.stretches[kind].position + ordinal;
    for (const Stretch& stretch : pool_.stretches) {
      if (stretch.kind == kind && ordinal < stretch.ordinal + stretch.count) {
        return stretch.position + ordinal - stretch.ordinal;
      }
    }
    return std::numeric_limits<int64_t>::max();
  }

  std::pair<int64_t, int64_t> FitAndCover(uint32_t k) const {
    const Amounts& each = *pool_.kinds[k].each;
    int64_t fit = pool_.kinds[k].available;
    int64_t cover = 0;
    for (size_t d = 0; d < n_; ++d) {
      if (deficit_[d] == 0 || each[d] == 0) continue;
      fit = std::min(fit, deficit_[d] / each[d]);
      cover = std::max(cover, (deficit_[d] - 1) / each[d] + 1);
    }
    return {fit, std::min(cover, pool_.kinds[k].available)};
  }

  void TryFrom(uint32_t kind, int64_t count) {
    Amounts shortage = deficit_;
    Counts start(memory_);
    if (count > 0) {
      start.emplace_back(kind, count);
      Subtract(shortage, *pool_.kinds[kind].each, count, n_);
    }
    CompleteInPoolOrder(Counts(start, memory_), kind, count, shortage);
    CompleteByShare(std::move(start), kind, count, shortage);
  }

  void CompleteInPoolOrder(Counts counts, uint32_t start, int64_t used, Amounts shortage) {
    for (const Stretch& stretch : pool_.stretches) {
      if (IsZero(shortage, n_)) break;
      const Amounts& each = *pool_.kinds[stretch.kind].each;
      const int64_t taken = stretch.kind == start ? std::clamp(used - stretch.ordinal, int64_t{0}, stretch.count) : 0;
      const int64_t take = std::min(stretch.count - taken, UsefulCount(each, shortage, n_));
      if (take == 0) continue;
      AddTo(counts, stretch.kind, take);
      Subtract(shortage, each, take, n_);
    }
    Consider(std::move(counts));
  }

  // Where a lane stands: its first kind with a machine left.
  struct Head {
    size_t at = 0;
    int64_t used = 0;
  };
  using Heads = std::pmr::vector<Head>;

  void CompleteByShare(Counts counts, uint32_t start, int64_t start_used, Amounts shortage) {
    Heads heads(lanes_.size(), memory_);
    const auto settle = [&](size_t l) {  // steps over kinds that are used up
      Head& head = heads[l];
      while (head.at < lanes_[l].kinds.size()) {
        const uint32_t k = lanes_[l].kinds[head.at];
        if (head.used == 0 && k == start) head.used = start_used;
        if (head.used < pool_.kinds[k].available) return;
        ++head.at;
        head.used = 0;
      }
    };
    for (size_t l = 0; l < lanes_.size(); ++l) settle(l);
    while (!IsZero(shortage, n_)) {
      const size_t last = CheapestThatCovers(heads, shortage);
      if (last != lanes_.size()) {
        Counts ended(counts, memory_);
        AddTo(ended, lanes_[last].kinds[heads[last].at], 1);
        Consider(std::move(ended));
      }
      const size_t next = CheapestPerShare(heads, shortage);
      if (next == lanes_.size()) break;
      const uint32_t k = lanes_[next].kinds[heads[next].at];
      const int64_t steps =
          std::min(SameChoice(*lanes_[next].each, shortage), pool_.kinds[k].available - heads[next].used);
      AddTo(counts, k, steps);
      Subtract(shortage, *lanes_[next].each, steps, n_);
      heads[next].used += steps;
      settle(next);
    }
    Consider(std::move(counts));
  }

  // For how many machines of this kind nothing in the comparison changes: as long as every short dimension it adds to
  // stays above what any machine adds, all shares stay as they are and no single machine ends it.
  int64_t SameChoice(const Amounts& each, const Amounts& shortage) const {
    if (pool_.mixed) return 1;  // the next machine in the pool may be of another kind
    int64_t steps = std::numeric_limits<int64_t>::max();
    for (size_t d = 0; d < n_; ++d) {
      if (shortage[d] == 0 || each[d] == 0) continue;
      steps = std::min(steps, (shortage[d] - largest_[d] - 1) / each[d]);
    }
    return std::max<int64_t>(steps + (MUTANT("fast.batch_too_large") ? 2 : 0), 1);
  }

  size_t CheapestThatCovers(const Heads& heads, const Amounts& shortage) const {
    size_t best = lanes_.size();
    for (size_t l = 0; l < lanes_.size(); ++l) {
      if (heads[l].at == lanes_[l].kinds.size() || !Covers(*lanes_[l].each, shortage, n_)) continue;
      if (best == lanes_.size() || HeadLess(l, best, heads)) best = l;
    }
    return best;
  }

  bool HeadLess(size_t a, size_t b, const Heads& heads) const {
    const uint32_t ka = lanes_[a].kinds[heads[a].at];
    const uint32_t kb = lanes_[b].kinds[heads[b].at];
    if (pool_.kinds[ka].cost != pool_.kinds[kb].cost) return pool_.kinds[ka].cost < pool_.kinds[kb].cost;
    return PositionOf(ka, heads[a].used) < PositionOf(kb, heads[b].used);
  }

  size_t CheapestPerShare(const Heads& heads, const Amounts& shortage) const {
    size_t best = lanes_.size();
    Wide best_share = 0;
    for (size_t l = 0; l < lanes_.size(); ++l) {
      if (heads[l].at == lanes_[l].kinds.size() || !IsUseful(*lanes_[l].each, shortage, n_)) continue;
      const Wide share = Share(*lanes_[l].each, shortage, deficit_, n_);
      if (best != lanes_.size()) {
        const uint32_t kl = lanes_[l].kinds[heads[l].at];
        const uint32_t kb = lanes_[best].kinds[heads[best].at];
        const Cost& cost_l = pool_.kinds[kl].cost;
        const Cost& cost_b = pool_.kinds[kb].cost;
        if (CheaperPerShare(cost_b, best_share, cost_l, share)) continue;
        const bool better = CheaperPerShare(cost_l, share, cost_b, best_share);
        if (!better && PositionOf(kl, heads[l].used) >= PositionOf(kb, heads[best].used)) continue;
      }
      best = l;
      best_share = share;
    }
    return best;
  }

  void Consider(Counts counts) {
    Totals taken{};
    for (const auto& [k, count] : counts) Add(taken, *pool_.kinds[k].each, count, n_);
    for (FromTheEnd last(pool_, counts); !last.empty();) last.Prune(taken, deficit_, n_);
    DropEmpty(counts);
    Cover cover{.counts = std::move(counts)};
    for (const auto& [k, count] : cover.counts) {
      const Cost& cost = pool_.kinds[k].cost;
      cover.reserved += cost.reserved ? count : 0;
      cover.machines += count;
      cover.cost += Wide{cost.micros} * count;
    }
    for (size_t d = 0; d < n_; ++d) {
      if (deficit_[d] == 0) continue;
      cover.coverage += Ratio(std::min<Wide>(taken[d], deficit_[d]), deficit_[d]);
      if (taken[d] > deficit_[d]) cover.waste += Ratio(taken[d] - deficit_[d], deficit_[d]);
    }
    if (!best_ || IsBetter(cover, *best_)) best_ = std::move(cover);
  }

  bool IsBetter(const Cover& a, const Cover& b) const {
    if (a.coverage != b.coverage) return a.coverage > b.coverage;
    if (a.reserved != b.reserved) return a.reserved < b.reserved;
    if (a.cost != b.cost) return a.cost < b.cost;
    if (a.waste != b.waste) return a.waste < b.waste;
    if (a.counts == b.counts) return false;
    if (pool_.idle) return PositionsLess(a.counts, b.counts);
    if (a.machines != b.machines) return a.machines < b.machines;
    return LabelsOf(a.counts) < LabelsOf(b.counts);
  }

  std::vector<uint64_t> LabelsOf(const Counts& counts) const {
    std::vector<uint64_t> labels;
    for (const auto& [k, count] : counts) {
      const std::vector<uint64_t> of_kind = pool_.labels(k, count);
      labels.insert(labels.end(), of_kind.begin(), of_kind.end());
    }
    std::ranges::sort(labels);
    return labels;
  }

  // Runs of positions [first, last) that the counts stand for, ascending.
  std::pmr::vector<std::pair<int64_t, int64_t>> RunsOf(const Counts& counts) const {
    std::pmr::vector<std::pair<int64_t, int64_t>> runs(memory_);
    const auto add = [&](int64_t first, int64_t count) {
      if (!runs.empty() && runs.back().second == first) {
        runs.back().second += count;
      } else {
        runs.emplace_back(first, first + count);
      }
    };
    if (!pool_.mixed) {
      for (const auto& [k, count] : counts) add(pool_.stretches[k].position, count);
    } else {
      for (const Stretch& stretch : pool_.stretches) {
        const int64_t here = std::clamp(CountOf(counts, stretch.kind) - stretch.ordinal, int64_t{0}, stretch.count);
        if (here > 0) add(stretch.position, here);
      }
    }
    return runs;
  }

  bool PositionsLess(const Counts& a, const Counts& b) const {
    const auto runs_a = RunsOf(a);
    const auto runs_b = RunsOf(b);
    for (size_t i = 0;; ++i) {
      if (i == runs_b.size()) return false;  // equal, or a goes on
      if (i == runs_a.size()) return true;
      if (runs_a[i].first != runs_b[i].first) return runs_a[i].first < runs_b[i].first;
      if (runs_a[i].second == runs_b[i].second) continue;
      // The shorter run jumps ahead at its end, unless nothing follows it at all.
      const bool a_shorter = runs_a[i].second < runs_b[i].second;
      const bool ends = a_shorter ? i + 1 == runs_a.size() : i + 1 == runs_b.size();
      return a_shorter == ends;
    }
  }

  const CoverPool& pool_;
  const Amounts& deficit_;
  const size_t n_;
  std::pmr::memory_resource* const memory_;
  std::pmr::vector<Lane> lanes_;
  Amounts largest_;
  size_t useful_ = 0;
  bool each_covers_ = false;
  std::optional<Cover> best_;
};

}  // namespace

std::optional<std::pair<uint32_t, int64_t>> CoverOfOneKind(std::span<const PoolKind> kinds, bool mixed, bool idle,
                                                           const Amounts& deficit, size_t n) {
  std::optional<uint32_t> best;
  Wide best_waste = 0;
  size_t useful = 0;
  bool each_covers = true;
  for (uint32_t k = 0; k < kinds.size(); ++k) {
    const PoolKind& kind = kinds[k];
    if (kind.available == 0 || !IsUseful(*kind.each, deficit, n)) continue;
    ++useful;
    each_covers = each_covers && Covers(*kind.each, deficit, n);
    if (useful > 1 && !each_covers) return std::nullopt;
    if (!best) {
      best = k;
      continue;
    }
    // Kinds are in pool order, and only the first eight are looked at: a later one must waste less at the same cost.
    if (useful > kBestKinds || kind.cost != kinds[*best].cost) continue;
    if (mixed || !idle) return std::nullopt;
    const auto waste = [&](uint32_t of) {
      Wide sum = 0;
      for (size_t d = 0; d < n; ++d) {
        if (deficit[d] != 0) sum += Ratio((*kinds[of].each)[d] - deficit[d], deficit[d]);
      }
      return sum;
    };
    if (useful == 2) best_waste = waste(*best);
    const Wide other = waste(k);
    if (other >= best_waste) continue;
    best = k;
    best_waste = other;
  }
  if (useful == 0) return {{0, 0}};
  if (useful > 1) return {{*best, 1}};
  return {{*best, std::min(kinds[*best].available, UsefulCount(*kinds[*best].each, deficit, n))}};
}

Counts BestCover(const CoverPool& pool, const Amounts& deficit, size_t dimensions) {
  if (const auto one = CoverOfOneKind(pool.kinds, pool.mixed, pool.idle, deficit, dimensions)) {
    return one->second == 0 ? Counts(pool.memory) : Counts({*one}, pool.memory);
  }
  return CoverSearch(pool, deficit, dimensions).Best();
}

void PruneTogether(std::span<PoolCover> covers, const Amounts& deficit, size_t n) {
  const auto is_used = [](const PoolCover& cover) { return !cover.counts.empty(); };
  if (std::ranges::count_if(covers, is_used) < 2 || MUTANT("fast.no_prune_together")) return;  // pruned when chosen
  Totals taken{};
  std::vector<FromTheEnd> last;
  last.reserve(covers.size());
  for (PoolCover& cover : covers) {
    for (const auto& [k, count] : cover.counts) Add(taken, *cover.pool.kinds[k].each, count, n);
    last.emplace_back(cover.pool, cover.counts);
  }
  for (;;) {
    FromTheEnd* dearest = nullptr;
    for (FromTheEnd& of : last) {
      if (!of.empty() && (dearest == nullptr || of.kind().cost >= dearest->kind().cost)) dearest = &of;
    }
    if (dearest == nullptr) break;
    dearest->Prune(taken, deficit, n);
  }
  for (PoolCover& cover : covers) DropEmpty(cover.counts);
}

}  // namespace muster::engine::fast
