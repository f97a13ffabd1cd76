#include "planner/search.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>
#include <vector>

#include "base/probe.h"
#include "base/rng.h"

namespace muster::planner {
namespace {

constexpr uint64_t kSeed = 0x6d7573746572;
constexpr uint32_t kContestants = 3;  // the worst of so many is emptied
constexpr uint32_t kMostEmptied = 3;
constexpr uint32_t kWindow = 96;         // nodes that are asked to take a unit
constexpr uint64_t kRepriceEvery = 512;  // rounds with one set of values
constexpr uint64_t kAskEvery = 256;      // rounds between questions whether to go on

class Searcher {
 public:
  Searcher(Packing& packing, Builder& builder, const SearchOptions& options)
      : packing_(packing), builder_(builder), options_(options), rng_(kSeed), began_(builder.steps()) {}

  SearchReport Run() {
    SearchReport report;
    ListBins();
    // Without heat no round makes it dearer, and what there is, is the best.
    std::optional<Packing> best;
    if (options_.heat > 0) best = packing_;
    const auto least = [&] { return best ? best->cost() : packing_.cost(); };
    const auto bins = static_cast<int64_t>(std::max<size_t>(live_.size(), 1));
    const double wasted = static_cast<double>(std::max<int64_t>(packing_.cost() - options_.bound, 0) / bins);
    for (uint64_t round = 0; !live_.empty() && done() < options_.steps && least() > options_.bound; ++round) {
      if (options_.go_on && round % kAskEvery == 0 && !options_.go_on(done())) {
        report.stopped = true;
        break;
      }
      if (options_.vary && round % kRepriceEvery == 0) {
        builder_.PriceAll(0.5 * static_cast<double>(round / kRepriceEvery % 3));
      }
      const double progress = static_cast<double>(done()) / static_cast<double>(options_.steps);
      Round(static_cast<int64_t>(options_.heat * wasted * (1 - progress)));
      if (best && (packing_.cost() < best->cost() || MUTANT("planner.search_keeps_last"))) best = packing_;
    }
    report.steps = done();
    if (best) packing_ = *std::move(best);
    return report;
  }

 private:
  uint64_t done() const { return builder_.steps() - began_; }

  void ListBins() {
    live_.clear();
    for (uint32_t b = 0; b < packing_.bins().size(); ++b) {
      if (!packing_.bins()[b].items.empty() && packing_.bins()[b].fixed == kNoChoice) live_.push_back(b);
    }
  }

  // Money that the bin costs beyond what it holds, per money that it costs: small nodes that waste come first.
  double WasteOf(uint32_t b) const {
    const Bin& bin = packing_.bins()[b];
    return 1 - builder_.WorthOf(bin) / static_cast<double>(std::max<int64_t>(packing_.PriceOf(bin), 1));
  }

  uint32_t DrawBin() {
    uint32_t worst = live_[rng_.Below(live_.size())];
    double waste = WasteOf(worst);
    for (uint32_t i = 1; i < kContestants; ++i) {
      const uint32_t other = live_[rng_.Below(live_.size())];
      if (const double of_other = WasteOf(other); of_other > waste) {
        worst = other;
        waste = of_other;
      }
    }
    return worst;
  }

  // `step`: how much dearer it may get, doubled chance by doubled chance.
  void Round(int64_t step) {
    const int64_t before = packing_.cost();
    const int64_t left_before = packing_.left_in_all();
    packing_.Begin();
    const uint64_t emptied = 1 + rng_.Below(kMostEmptied);
    std::vector<uint32_t> groups;
    std::vector<uint32_t> bins;
    const uint32_t first = DrawBin();
    bins.push_back(first);
    for (uint64_t i = 1; i < emptied; ++i) {
      const uint32_t other = DrawBin();
      const bool same_cell = packing_.bins()[other].cell == packing_.bins()[first].cell;
      if (same_cell && std::ranges::find(bins, other) == bins.end()) bins.push_back(other);
    }
    for (const uint32_t b : bins) {
      for (const Item& item : packing_.bins()[b].items) groups.push_back(packing_.group_of(item.lot));
      packing_.Empty(b);
    }
    std::ranges::sort(groups);
    groups.erase(std::ranges::unique(groups).begin(), groups.end());
    builder_.LookOnlyAt(groups);
    const auto all = static_cast<uint64_t>(packing_.bins().size());
    const BinRange window{.first = static_cast<uint32_t>(rng_.Below(all)),
                          .count = static_cast<uint32_t>(std::min<uint64_t>(all, kWindow))};
    // One round in three lets other nodes grow; the others only use their room.
    const double most = rng_.Chance(1, 3) ? 1.05 : 0;
    if (!rng_.Chance(1, 4)) builder_.Grow(most, window);
    BuildOptions options{.choices = 8, .noise_percent = static_cast<uint32_t>(rng_.Below(4)) * 10};
    options.balance = 0.1 * static_cast<double>(1 + rng_.Below(10));
    builder_.BuyRest(options, &rng_);
    builder_.LookOnlyAt({});
    const bool whole = packing_.left_in_all() == left_before;
    const int64_t dearer = step * std::countl_zero(rng_.Next());
    if (whole && (packing_.cost() <= before + dearer || MUTANT("planner.search_keeps_last"))) {
      packing_.Commit();
      ListBins();
    } else {
      packing_.Rollback();
    }
  }

  Packing& packing_;
  Builder& builder_;
  const SearchOptions& options_;
  Rng rng_;
  const uint64_t began_;
  std::vector<uint32_t> live_;
};

}  // namespace

SearchReport Search(Packing& packing, Builder& builder, const SearchOptions& options) {
  return Searcher(packing, builder, options).Run();
}

}  // namespace muster::planner
