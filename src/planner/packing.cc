#include "planner/packing.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "base/probe.h"

namespace muster::planner {
namespace {

Tally& TallyOf(std::vector<Tally>& tallies, uint32_t selector) {
  for (Tally& tally : tallies) {
    if (tally.selector == selector) return tally;
  }
  return tallies.emplace_back(Tally{.selector = selector});
}

const Tally* FindTally(const std::vector<Tally>& tallies, uint32_t selector) {
  for (const Tally& tally : tallies) {
    if (tally.selector == selector) return &tally;
  }
  return nullptr;
}

// How many of a kind's units one placement of it adds.
int64_t UnitsIn(const DenseKind& kind) { return kind.bundle ? static_cast<int64_t>(kind.units.size()) : 1; }

void CountIn(std::vector<Tally>& tallies, const DenseKind& kind, int64_t count) {
  for (const uint32_t selector : kind.matches) TallyOf(tallies, selector).count += count * UnitsIn(kind);
  for (const Limit& limit : kind.limits) {
    Tally& tally = TallyOf(tallies, limit.selector);
    tally.most = std::min(tally.most, limit.most);
  }
}

}  // namespace

Packing::Packing(const Problem& problem, std::vector<Lot> lots)
    : problem_(&problem), lots_(std::move(lots)), masks_(problem.masks) {
  size_t classes = 0;
  for (const std::vector<bool>& mask : masks_) classes = std::max(classes, mask.size());
  every_class_ = static_cast<uint32_t>(masks_.size());
  masks_.emplace_back(classes, true);
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> known;
  for (uint32_t l = 0; l < lots_.size(); ++l) {
    const DenseKind& kind = kind_of(l);
    const auto [at, inserted] =
        known.try_emplace({kind.request, kind.mask, lots_[l].cell}, static_cast<uint32_t>(groups_.size()));
    if (inserted) {
      groups_.push_back({.request = kind.request, .mask = kind.mask, .cell = lots_[l].cell, .plain = true});
    }
    Group& group = groups_[at->second];
    group.lots.push_back(l);
    group.left += lots_[l].count;
    group.plain = group.plain && kind.matches.empty() && kind.limits.empty() && kind.near.empty();
    group_of_.push_back(at->second);
    left_.push_back(lots_[l].count);
    left_in_all_ += lots_[l].count;
  }
  for (size_t f = 0; f < problem.fixed.size(); ++f) {
    const FixedNode& fixed = problem.fixed[f];
    bins_.push_back({.cell = fixed.cell,
                     .fixed = static_cast<uint32_t>(f),
                     .mask = every_class_,
                     .used = std::vector<int64_t>(problem.dims(), 0),
                     .tallies = fixed.tallies});
  }
}

bool Packing::Allows(const Bin& bin, uint32_t lot) const {
  const DenseKind& kind = kind_of(lot);
  const int64_t units = UnitsIn(kind);
  for (const uint32_t selector : kind.matches) {
    const Tally* tally = FindTally(bin.tallies, selector);
    if (tally != nullptr && tally->count + units > tally->most && !MUTANT("planner.exclusion_one_way")) return false;
  }
  for (const Limit& limit : kind.limits) {
    const Tally* tally = FindTally(bin.tallies, limit.selector);
    const bool self = std::ranges::binary_search(kind.matches, limit.selector);
    const int64_t count = (tally == nullptr ? 0 : tally->count) + (self ? units : 0);
    if (count > limit.most && !MUTANT("planner.limit_ignored")) return false;
  }
  return std::ranges::all_of(kind.near, [&](uint32_t selector) {
    const Tally* tally = FindTally(bin.tallies, selector);
    return tally != nullptr && tally->count > 0;
  });
}

bool Packing::MayLeave(const Bin& bin, uint32_t lot) const {
  const DenseKind& kind = kind_of(lot);
  for (const Item& item : bin.items) {
    for (const uint32_t selector : kind_of(item.lot).near) {
      if (!std::ranges::binary_search(kind.matches, selector)) continue;
      const Tally* tally = FindTally(bin.tallies, selector);
      if (tally == nullptr || tally->count <= UnitsIn(kind)) return false;
    }
  }
  return true;
}

bool Packing::Fits(std::span<const int64_t> capacity, const std::vector<int64_t>& used,
                   const std::vector<int64_t>& more) const {
  for (size_t d = 0; d < capacity.size(); ++d) {
    if (used[d] + more[d] > capacity[d]) return false;
  }
  return true;
}

uint32_t Packing::ChoiceWith(const Bin& bin, const Group& group, int64_t most_growth) const {
  const std::vector<int64_t>& request = problem_->requests[group.request];
  if (bin.closed || (group.cell != kAnyCell && group.cell != bin.cell)) return kNoChoice;
  if (bin.fixed != kNoChoice) {
    const FixedNode& fixed = problem_->fixed[bin.fixed];
    const bool fits = masks_[group.mask][fixed.node_class] && Fits(fixed.free, bin.used, request);
    return fits ? 0 : kNoChoice;
  }
  const std::vector<bool>& own = masks_[bin.mask];
  const std::vector<bool>& mask = masks_[group.mask];
  const Cell& cell = problem_->cells[bin.cell];
  const uint32_t from = bin.choice == kNoChoice ? cell.first_choice : bin.choice;
  const int64_t most = PriceOf(bin) + most_growth;
  for (uint32_t k = from; k < cell.end_choice && problem_->choices[k].price <= most; ++k) {
    const uint32_t node_class = problem_->choices[k].node_class;
    if (!Fits(problem_->CapacityOf(k), bin.used, request)) continue;
    if (own[node_class] && mask[node_class]) return k;
  }
  return kNoChoice;
}

uint32_t Packing::LotFor(const Bin& bin, const Group& group) const {
  for (const uint32_t lot : group.lots) {
    if (left_[lot] > 0 && Allows(bin, lot)) return lot;
  }
  return kNoChoice;
}

Bin Packing::EmptyBin(uint32_t cell) const {
  return {.cell = cell, .mask = every_class_, .used = std::vector<int64_t>(problem_->dims(), 0)};
}

uint32_t Packing::BothMasks(uint32_t a, uint32_t b) const {
  if (a == b || b == every_class_) return a;
  if (a == every_class_) return b;
  const auto [at, inserted] = both_.try_emplace(std::minmax(a, b), static_cast<uint32_t>(masks_.size()));
  if (inserted) {
    std::vector<bool> both = masks_[a];
    for (size_t c = 0; c < both.size(); ++c) both[c] = both[c] && masks_[b][c];
    masks_.push_back(std::move(both));
  }
  return at->second;
}

void Packing::AddTo(Bin& bin, uint32_t lot, int64_t count) const {
  const DenseKind& kind = kind_of(lot);
  const std::vector<int64_t>& request = problem_->requests[kind.request];
  for (size_t d = 0; d < request.size(); ++d) bin.used[d] += request[d] * count;
  if (bin.fixed == kNoChoice) bin.mask = BothMasks(bin.mask, kind.mask);
  CountIn(bin.tallies, kind, count);
  for (Item& item : bin.items) {
    if (item.lot != lot) continue;
    item.count += count;
    return;
  }
  bin.items.push_back({lot, count});
}

uint32_t Packing::CheapestFor(const Bin& bin, uint32_t from) const {
  const std::vector<bool>& mask = masks_[bin.mask];
  const Cell& cell = problem_->cells[bin.cell];
  for (uint32_t k = std::max(from, cell.first_choice); k < cell.end_choice; ++k) {
    if (!mask[problem_->choices[k].node_class]) continue;
    const auto capacity = problem_->CapacityOf(k);
    if (std::equal(capacity.begin(), capacity.end(), bin.used.begin(), std::greater_equal<>())) return k;
  }
  return kNoChoice;
}

void Packing::Save(uint32_t bin) {
  if (!trying_ || bin >= saved_bins_ || is_saved_[bin]) return;
  is_saved_[bin] = true;
  saved_.emplace_back(bin, bins_[bin]);
}

void Packing::Settle(uint32_t at, uint32_t from) {
  Bin& bin = bins_[at];
  if (bin.fixed != kNoChoice) return;
  cost_ -= PriceOf(bin);
  bin.choice = bin.items.empty() ? kNoChoice : CheapestFor(bin, from);
  MUSTER_CHECK(bin.items.empty() || bin.choice != kNoChoice, "units on a node that no type is large enough for");
  cost_ += PriceOf(bin);
}

uint32_t Packing::Open(Bin bin) {
  uint32_t at = 0;
  if (spare_.empty()) {
    at = static_cast<uint32_t>(bins_.size());
    bins_.emplace_back();
  } else {
    at = spare_.back();
    spare_.pop_back();
    Save(at);
  }
  for (const Item& item : bin.items) {
    MUSTER_CHECK(left_[item.lot] >= item.count);
    left_[item.lot] -= item.count;
    groups_[group_of_[item.lot]].left -= item.count;
    left_in_all_ -= item.count;
    if (trying_) left_changes_.emplace_back(item.lot, item.count);
  }
  bins_[at] = std::move(bin);
  bins_[at].choice = kNoChoice;
  Settle(at);
  return at;
}

void Packing::Place(uint32_t bin, uint32_t lot, int64_t count) {
  Save(bin);
  MUSTER_CHECK(left_[lot] >= count);
  left_[lot] -= count;
  groups_[group_of_[lot]].left -= count;
  left_in_all_ -= count;
  if (trying_) left_changes_.emplace_back(lot, count);
  AddTo(bins_[bin], lot, count);
  // What holds more is never cheaper.
  Settle(bin, bins_[bin].choice == kNoChoice ? 0 : bins_[bin].choice);
}

void Packing::Recount(Bin& bin) const {
  bin.tallies.clear();
  if (bin.fixed != kNoChoice) bin.tallies = problem_->fixed[bin.fixed].tallies;
  bin.mask = every_class_;
  for (const Item& item : bin.items) {
    CountIn(bin.tallies, kind_of(item.lot), item.count);
    if (bin.fixed == kNoChoice) bin.mask = BothMasks(bin.mask, kind_of(item.lot).mask);
  }
}

void Packing::Remove(uint32_t at, uint32_t lot, int64_t count) {
  Save(at);
  Bin& bin = bins_[at];
  const auto item = std::ranges::find(bin.items, lot, &Item::lot);
  MUSTER_CHECK(item != bin.items.end() && item->count >= count);
  item->count -= count;
  if (item->count == 0) bin.items.erase(item);
  const std::vector<int64_t>& request = request_of(lot);
  for (size_t d = 0; d < request.size(); ++d) bin.used[d] -= request[d] * count;
  Recount(bin);
  left_[lot] += count;
  groups_[group_of_[lot]].left += count;
  left_in_all_ += count;
  if (trying_) left_changes_.emplace_back(lot, -count);
  Settle(at);
  if (bin.items.empty() && bin.fixed == kNoChoice) spare_.push_back(at);
}

void Packing::TakeOff(const Bin& bin) {
  for (const Item& item : bin.items) {
    left_[item.lot] += item.count;
    groups_[group_of_[item.lot]].left += item.count;
    left_in_all_ += item.count;
    if (trying_) left_changes_.emplace_back(item.lot, -item.count);
  }
}

void Packing::Close(uint32_t at) {
  Save(at);
  Bin& bin = bins_[at];
  MUSTER_CHECK(bin.fixed != kNoChoice && !bin.closed);
  TakeOff(bin);
  bin.items.clear();
  bin.used.assign(problem_->dims(), 0);
  Recount(bin);
  bin.closed = true;
}

void Packing::Empty(uint32_t at) {
  Save(at);
  Bin& bin = bins_[at];
  MUSTER_CHECK(bin.fixed == kNoChoice && !bin.items.empty());
  TakeOff(bin);
  cost_ -= PriceOf(bin);
  bin = EmptyBin(bin.cell);
  spare_.push_back(at);
}

void Packing::Begin() {
  MUSTER_CHECK(!trying_);
  trying_ = true;
  saved_bins_ = bins_.size();
  is_saved_.resize(saved_bins_, false);
  saved_cost_ = cost_;
  saved_spare_ = spare_;
}

void Packing::Commit() {
  trying_ = false;
  for (const auto& [index, unused] : saved_) is_saved_[index] = false;
  saved_.clear();
  left_changes_.clear();
}

void Packing::Rollback() {
  for (auto& [index, bin] : saved_) bins_[index] = std::move(bin);
  bins_.resize(saved_bins_);
  for (const auto& [lot, count] : left_changes_) {
    left_[lot] += count;
    groups_[group_of_[lot]].left += count;
    left_in_all_ += count;
  }
  cost_ = saved_cost_;
  spare_ = saved_spare_;
  Commit();
}

void Packing::CheckInvariants() const {
  std::vector<int64_t> placed(lots_.size(), 0);
  int64_t cost = 0;
  for (const Bin& bin : bins_) {
    Bin again = bin;
    Recount(again);
    std::vector<int64_t> used(problem_->dims(), 0);
    for (const Item& item : bin.items) {
      MUSTER_CHECK(item.count > 0);
      placed[item.lot] += item.count;
      for (size_t d = 0; d < used.size(); ++d) used[d] += request_of(item.lot)[d] * item.count;
    }
    MUSTER_CHECK(used == bin.used);
    MUSTER_CHECK(!bin.closed || bin.items.empty());
    for (const Tally& tally : bin.tallies) {
      const Tally* other = FindTally(again.tallies, tally.selector);
      MUSTER_CHECK(other != nullptr ? other->count == tally.count && other->most == tally.most : tally.count == 0);
    }
    if (bin.fixed == kNoChoice) {
      MUSTER_CHECK(bin.choice == (bin.items.empty() ? kNoChoice : CheapestFor(bin)));
      cost += PriceOf(bin);
    }
  }
  MUSTER_CHECK(cost == cost_);
  for (size_t l = 0; l < lots_.size(); ++l) MUSTER_CHECK(left_[l] + placed[l] == lots_[l].count);
}

}  // namespace muster::planner
