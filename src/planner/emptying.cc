#include "planner/emptying.h"

#include <algorithm>
#include <functional>
#include <ranges>

#include "base/check.h"
#include "planner/search.h"

namespace muster::planner {
namespace {

constexpr int kSingleRounds = 3;  // how often every node that is left is tried alone

}  // namespace

Emptying::Emptying(Packing& packing, Builder& builder, EmptyingOptions options)
    : packing_(packing), builder_(builder), options_(std::move(options)) {
  MUSTER_CHECK(options_.prices.size() == packing_.problem().fixed.size());
}

void Emptying::Run() {
  RankNodes();
  MoveIntoRoom();
  Replace();
  const int64_t bought = packing_.cost();
  if (bought == 0) return;
  builder_.PriceFor(counts_);
  Search(packing_, builder_, {.steps = options_.search_steps, .go_on = options_.go_on});
  saved_ += bought - packing_.cost();
  MoveIntoRoom();
}

void Emptying::RankNodes() {
  counts_.assign(packing_.problem().kinds.size(), 0);
  for (const Lot& lot : packing_.lots()) counts_[lot.kind] += lot.count;
  builder_.PriceFor(counts_);
  std::vector<double> worth(options_.prices.size(), 0);  // of what it carries, per money that it costs
  for (uint32_t n = 0; n < worth.size(); ++n) {
    if (!options_.prices[n] || *options_.prices[n] <= 0) continue;
    worth[n] = builder_.WorthOf(packing_.bins()[n]) / static_cast<double>(*options_.prices[n]);
    order_.push_back(n);
  }
  std::ranges::stable_sort(order_, {}, [&](uint32_t n) { return worth[n]; });
}

void Emptying::ListTargets() {
  targets_.clear();
  const auto fixed = static_cast<uint32_t>(options_.prices.size());
  for (uint32_t b = fixed; b < packing_.bins().size(); ++b) {
    if (!packing_.bins()[b].items.empty()) targets_.push_back(b);
  }
  std::vector<bool> may_go(fixed, false);
  for (const uint32_t n : order_) may_go[n] = true;
  for (uint32_t n = 0; n < fixed; ++n) {
    if (!may_go[n]) targets_.push_back(n);
  }
  for (size_t i = order_.size(); i-- > 0;) {
    if (IsOpen(order_[i])) targets_.push_back(order_[i]);
  }
  cursor_.assign(packing_.groups().size(), 0);
}

void Emptying::MoveIntoRoom() {
  ListTargets();
  for (const uint32_t n : order_) {
    if (IsOpen(n) && goes_on()) TryToClose({&n, 1}, false);
  }
}

bool Emptying::CanBeBought(uint32_t g) const {
  const Problem& problem = packing_.problem();
  const Group& group = packing_.groups()[g];
  const std::vector<int64_t>& request = problem.requests[group.request];
  for (uint32_t c = 0; c < problem.cells.size(); ++c) {
    if (group.cell != kAnyCell && group.cell != c) continue;
    for (uint32_t k = problem.cells[c].first_choice; k < problem.cells[c].end_choice; ++k) {
      const auto capacity = problem.CapacityOf(k);
      if (!problem.masks[group.mask][problem.choices[k].node_class]) continue;
      if (std::equal(capacity.begin(), capacity.end(), request.begin(), std::greater_equal<>())) return true;
    }
  }
  return false;
}

void Emptying::Replace() {
  std::vector<bool> can_be_bought;
  for (uint32_t g = 0; g < packing_.groups().size(); ++g) can_be_bought.push_back(CanBeBought(g));
  std::vector<uint32_t> replaceable;
  for (const uint32_t n : order_) {
    const bool all = std::ranges::all_of(
        packing_.bins()[n].items, [&](const Item& item) { return bool{can_be_bought[packing_.group_of(item.lot)]}; });
    if (IsOpen(n) && all) replaceable.push_back(n);
  }
  // All together that cost more than their units would at best, then what is left one by one.
  const auto rest = std::ranges::stable_partition(replaceable, [&](uint32_t n) {
    return static_cast<double>(*options_.prices[n]) > builder_.WorthOf(packing_.bins()[n]);
  });
  TrySets({replaceable.begin(), rest.begin()});
  builder_.PriceFor(counts_);
  for (int round = 0; round < kSingleRounds; ++round) {
    bool any = false;
    for (const uint32_t n : replaceable) {
      if (IsOpen(n) && goes_on()) any = TryToClose({&n, 1}, true) || any;
    }
    if (!any) return;
  }
}

void Emptying::TrySets(std::span<const uint32_t> nodes) {
  if (nodes.size() < 2 || !goes_on() || TryToClose(nodes, true)) return;
  TrySets(nodes.first(nodes.size() / 2));
  TrySets(nodes.subspan(nodes.size() / 2));
}

bool Emptying::TryToClose(std::span<const uint32_t> nodes, bool buys) {
  const int64_t cost = packing_.cost();
  const auto bins = static_cast<uint32_t>(packing_.bins().size());
  packing_.Begin();
  moved_cursors_.clear();
  std::vector<uint32_t> groups;
  int64_t freed = 0;
  for (const uint32_t n : nodes) {
    for (const Item& item : packing_.bins()[n].items) groups.push_back(packing_.group_of(item.lot));
    packing_.Close(n);
    freed += *options_.prices[n];
  }
  std::ranges::sort(groups, {}, [&](uint32_t g) { return builder_.RankOf(g); });
  groups.erase(std::ranges::unique(groups).begin(), groups.end());
  bool whole = FillRoom(groups, !buys);
  if (buys && packing_.left_in_all() > 0) {
    builder_.LookOnlyAt(groups);
    if (nodes.size() > 1) builder_.Reprice();
    builder_.BuyRest({.reprice = nodes.size() > 1});
    builder_.LookOnlyAt({});
    whole = packing_.left_in_all() == 0;
  }
  const int64_t saved = freed - (packing_.cost() - cost);
  if (!whole || saved <= 0) {
    packing_.Rollback();
    for (const auto& [group, cursor] : moved_cursors_ | std::views::reverse) cursor_[group] = cursor;
    return false;
  }
  packing_.Commit();
  saved_ += saved;
  closed_.insert(closed_.end(), nodes.begin(), nodes.end());
  for (uint32_t b = bins; b < packing_.bins().size(); ++b) targets_.push_back(b);
  return true;
}

bool Emptying::FillRoom(const std::vector<uint32_t>& groups, bool all) {
  for (const uint32_t g : groups) {
    moved_cursors_.emplace_back(g, cursor_[g]);
    for (const uint32_t lot : packing_.groups()[g].lots) {
      while (packing_.left(lot) > 0) {
        const uint32_t bin = FindRoom(g, lot);
        if (bin == kNoChoice) break;
        packing_.Place(bin, lot, 1);
      }
      if (all && packing_.left(lot) > 0) return false;
    }
  }
  return true;
}

// The first target with room that lets the unit in, and would cost no more with it.
uint32_t Emptying::FindRoom(uint32_t g, uint32_t lot) {
  const Group& group = packing_.groups()[g];
  bool none_before = true;
  for (size_t i = cursor_[g]; i < targets_.size(); ++i) {
    ++steps_;
    const Bin& bin = packing_.bins()[targets_[i]];
    const bool room = packing_.ChoiceWith(bin, group, 0) != kNoChoice;
    if (room && packing_.Allows(bin, lot)) return targets_[i];
    none_before = none_before && !room;
    if (none_before) cursor_[g] = i + 1;
  }
  return kNoChoice;
}

}  // namespace muster::planner
