#include "planner/search.h"

#include <algorithm>
#include <vector>

#include "base/probe.h"
#include "base/rng.h"

namespace muster::planner {
namespace {

constexpr uint64_t kSeed = 0x6d7573746572;
constexpr uint32_t kContestants = 3;  // the worst of so many is emptied
constexpr uint32_t kMostEmptied = 3;
constexpr uint32_t kWindow = 96;     // nodes that are asked to take a unit
constexpr uint64_t kAskEvery = 256;  // rounds between questions whether to go on

class Searcher {
 public:
  Searcher(Packing& packing, Builder& builder) : packing_(packing), builder_(builder), rng_(kSeed) {}

  SearchReport Run(const SearchOptions& options) {
    const uint64_t began = builder_.steps();
    SearchReport report;
    ListBins();
    for (uint64_t round = 0; !live_.empty() && builder_.steps() - began < options.steps; ++round) {
      if (options.go_on && round % kAskEvery == 0 && !options.go_on(builder_.steps() - began)) {
        report.stopped = true;
        break;
      }
      Round();
    }
    report.steps = builder_.steps() - began;
    return report;
  }

 private:
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

  void Round() {
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
    const bool better = packing_.cost() <= before || MUTANT("planner.search_accepts_worse");
    if (whole && better) {
      packing_.Commit();
      ListBins();
    } else {
      packing_.Rollback();
    }
  }

  Packing& packing_;
  Builder& builder_;
  Rng rng_;
  std::vector<uint32_t> live_;
};

}  // namespace

SearchReport Search(Packing& packing, Builder& builder, const SearchOptions& options) {
  return Searcher(packing, builder).Run(options);
}

}  // namespace muster::planner
