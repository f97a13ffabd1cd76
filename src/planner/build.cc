#include "planner/build.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <tuple>

#include "base/check.h"

namespace muster::planner {
namespace {

// A group is taken in steps of this part of what fits, so that large nodes fill in few steps and still keep direction.
constexpr int64_t kStepPart = 16;
// Values are computed again when this part of what was left is placed.
constexpr double kRepriceAfter = 0.08;

double Noisy(double score, uint32_t percent, Rng* noise) {
  if (noise == nullptr || percent == 0) return score;
  return score * (1 + static_cast<double>(noise->Below(2 * percent + 1)) / 100 - static_cast<double>(percent) / 100);
}

}  // namespace

Builder::Builder(Packing& packing, const Valuer& valuer) : packing_(packing), valuer_(valuer) {
  const Problem& problem = packing_.problem();
  std::vector<int64_t> largest(problem.dims(), 0);
  for (uint32_t k = 0; k < problem.choices.size(); ++k) {
    const auto capacity = problem.CapacityOf(k);
    for (size_t d = 0; d < capacity.size(); ++d) largest[d] = std::max(largest[d], capacity[d]);
  }
  twin_.resize(problem.cells.size());
  for (uint32_t c = 0; c < twin_.size(); ++c) twin_[c] = TwinOf(c);
  std::vector<double> difficulty;
  for (const Group& group : packing_.groups()) {
    double hardest = 0;
    double all = 0;
    for (size_t d = 0; d < problem.dims(); ++d) {
      const auto amount = static_cast<double>(problem.requests[group.request][d]);
      requests_.push_back(amount);
      if (largest[d] <= 0) continue;
      hardest = std::max(hardest, amount / static_cast<double>(largest[d]));
      all += amount / static_cast<double>(largest[d]);
    }
    hardest += all / 1000;  // of two with the same largest share, the one that takes more of the rest
    bool near = false;
    for (const uint32_t lot : group.lots) near = near || !packing_.kind_of(lot).near.empty();
    near_.push_back(near);
    // Units that must find others on their node come after those.
    difficulty.push_back(near ? hardest - 1e6 : hardest);
  }
  by_difficulty_.resize(packing_.groups().size());
  for (uint32_t g = 0; g < by_difficulty_.size(); ++g) by_difficulty_[g] = g;
  std::ranges::stable_sort(by_difficulty_, std::greater<>(), [&](uint32_t g) { return difficulty[g]; });
  rank_.resize(by_difficulty_.size());
  for (uint32_t i = 0; i < by_difficulty_.size(); ++i) rank_[by_difficulty_[i]] = i;
  taken_.assign(packing_.lots().size(), 0);
  PriceAll();
}

void Builder::Reprice() {
  std::vector<int64_t> counts(packing_.problem().kinds.size(), 0);
  for (uint32_t l = 0; l < packing_.lots().size(); ++l) counts[packing_.lots()[l].kind] += packing_.left(l);
  PriceFor(counts);
}

void Builder::PriceFor(const std::vector<int64_t>& counts) { Apply(valuer_.Of(counts, false, even_)); }

void Builder::PriceAll(double even) {
  even_ = even;
  Apply(valuer_.OfAll(even));
}

void Builder::Apply(Values values) {
  values_ = std::move(values);
  worth_.assign(packing_.groups().size(), 0);
  for (size_t g = 0; g < worth_.size(); ++g) {
    for (const uint32_t lot : packing_.groups()[g].lots) {
      worth_[g] = std::max(worth_[g], values_.worth[packing_.lots()[lot].kind]);
    }
  }
  RankChoices();
}

void Builder::RankChoices() {
  const Problem& problem = packing_.problem();
  ranked_.clear();
  for (uint32_t c = 0; c < problem.cells.size(); ++c) {
    for (uint32_t k = problem.cells[c].first_choice; k < problem.cells[c].end_choice; ++k) {
      Ranked ranked{.choice = k, .cell = c};
      const auto capacity = problem.CapacityOf(k);
      for (size_t d = 0; d < capacity.size(); ++d) {
        ranked.worth += values_.grain[d] * static_cast<double>(capacity[d]);
      }
      ranked.ratio = ranked.worth / static_cast<double>(std::max<int64_t>(problem.choices[k].price, 1));
      ranked_.push_back(ranked);
    }
  }
  std::ranges::stable_sort(ranked_, std::greater<>(), &Ranked::ratio);
}

// The first cell in which the same can be bought at the same prices.
uint32_t Builder::TwinOf(uint32_t cell) const {
  const Problem& problem = packing_.problem();
  const auto alike = [&](uint32_t a, uint32_t b) {
    const Choice& left = problem.choices[a];
    const Choice& right = problem.choices[b];
    return left.price == right.price && std::ranges::equal(problem.CapacityOf(a), problem.CapacityOf(b)) &&
           std::ranges::all_of(problem.masks, [&](const std::vector<bool>& mask) {
             return mask[left.node_class] == mask[right.node_class];
           });
  };
  const Cell& own = problem.cells[cell];
  for (uint32_t other = 0; other < cell; ++other) {
    const Cell& candidate = problem.cells[other];
    const uint32_t count = own.end_choice - own.first_choice;
    bool same = candidate.end_choice - candidate.first_choice == count;
    for (uint32_t i = 0; i < count && same; ++i) same = alike(candidate.first_choice + i, own.first_choice + i);
    if (same) return other;
  }
  return cell;
}

double Builder::WorthOf(const Bin& bin) const {
  double worth = 0;
  for (const Item& item : bin.items) worth += worth_[packing_.group_of(item.lot)] * static_cast<double>(item.count);
  return worth;
}

void Builder::FillFixed() {
  const auto fixed = static_cast<uint32_t>(packing_.problem().fixed.size());
  if (fixed > 0) Grow(0, {.first = 0, .count = fixed});
}

void Builder::ListActive() {
  active_.clear();
  for (const uint32_t g : only_.empty() ? by_difficulty_ : only_) {
    if (packing_.groups()[g].left > 0) active_.push_back(g);
  }
  if (!only_.empty()) std::ranges::sort(active_, {}, [&](uint32_t g) { return rank_[g]; });
}

void Builder::Grow(double most, BinRange range) {
  ListActive();
  for (const uint32_t group : active_) GrowGroup(group, most, range);
}

void Builder::GrowGroup(uint32_t g, double most, BinRange range) {
  const Problem& problem = packing_.problem();
  const Group& group = packing_.groups()[g];
  const std::vector<int64_t>& request = problem.requests[group.request];
  const auto most_growth = static_cast<int64_t>(most * worth_[g]);
  using Entry = std::tuple<int64_t, double, uint32_t>;  // growth, what is left unused, bin
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  const auto push = [&](uint32_t b) {
    const Bin& bin = packing_.bins()[b];
    ++steps_;
    if (bin.items.empty() && bin.fixed == kNoChoice) return;
    const uint32_t choice = packing_.ChoiceWith(bin, group, most_growth);
    if (choice == kNoChoice) return;
    const bool fixed = bin.fixed != kNoChoice;
    const int64_t growth = fixed ? 0 : problem.choices[choice].price - packing_.PriceOf(bin);
    const std::span<const int64_t> capacity =
        fixed ? std::span<const int64_t>(problem.fixed[bin.fixed].free) : problem.CapacityOf(choice);
    double unused = 0;
    for (size_t d = 0; d < capacity.size(); ++d) {
      unused += values_.grain[d] * static_cast<double>(capacity[d] - bin.used[d] - request[d]);
    }
    queue.emplace(growth, unused, b);
  };
  const auto bins = static_cast<uint32_t>(packing_.bins().size());
  for (uint32_t i = 0; i < std::min(range.count, bins); ++i) push((range.first + i) % bins);
  while (group.left > 0 && !queue.empty()) {
    const uint32_t b = std::get<2>(queue.top());
    queue.pop();
    const uint32_t lot = packing_.LotFor(packing_.bins()[b], group);
    if (lot == kNoChoice) continue;  // rules between units: what is on the bin stays
    packing_.Place(b, lot, 1);
    push(b);
  }
}

double Builder::LeftWorth(uint32_t cell) const {
  double worth = 0;
  for (const uint32_t g : active_) {
    const Group& group = packing_.groups()[g];
    if (group.cell == kAnyCell || group.cell == cell) worth += worth_[g] * static_cast<double>(group.left);
  }
  return worth;
}

bool Builder::TakesPlaceNow(uint32_t g) const {
  return values_.exclusive && std::ranges::any_of(packing_.groups()[g].lots, [&](uint32_t lot) {
           return packing_.left(lot) > 0 && TakesPlace(packing_.kind_of(lot), values_.selector);
         });
}

// What one node may hold while exclusive units need nodes: its share of all that is left, and some more.
double Builder::MostWorth(const BuildOptions& options) const {
  if (!values_.exclusive) return HUGE_VAL;
  double worth = 0;
  int64_t units = 0;
  for (const uint32_t g : active_) {
    worth += worth_[g] * static_cast<double>(packing_.groups()[g].left);
    if (TakesPlaceNow(g)) units += packing_.groups()[g].left;
  }
  const int64_t nodes = (units + values_.most - 1) / values_.most;
  return nodes == 0 ? HUGE_VAL : options.share * worth / static_cast<double>(nodes);
}

uint32_t Builder::FreeLot(const Bin& bin, const Group& group) const {
  for (const uint32_t lot : group.lots) {
    if (packing_.left(lot) > taken_[lot] && (group.plain || packing_.Allows(bin, lot))) return lot;
  }
  return kNoChoice;
}

void Builder::Take(uint32_t g, uint32_t lot, int64_t count, std::vector<int64_t>& room, Bin& bin) {
  packing_.AddTo(bin, lot, count);
  taken_[lot] += count;
  const std::vector<int64_t>& request = packing_.problem().requests[packing_.groups()[g].request];
  for (size_t d = 0; d < room.size(); ++d) room[d] -= request[d] * count;
}

int64_t Builder::TimesThatFit(uint32_t g, const std::vector<int64_t>& room) const {
  const std::vector<int64_t>& request = packing_.problem().requests[packing_.groups()[g].request];
  int64_t times = kUnlimited;
  for (size_t d = 0; d < room.size(); ++d) {
    if (request[d] > 0) times = std::min(times, room[d] / request[d]);
  }
  return times;
}

// Again and again the group that leaves the smallest rest in the direction of the room.
void Builder::FillFrom(std::vector<uint32_t> open, std::vector<int64_t>& room, const std::vector<double>& weight,
                       Bin& bin, const BuildOptions& options, Rng* noise) {
  const size_t dims = room.size();
  while (!open.empty()) {
    double best = 0;
    size_t at = open.size();
    size_t kept = 0;
    steps_ += open.size();
    for (const uint32_t g : open) {
      const double* request = &requests_[g * dims];
      double score = 0;
      bool fits = true;
      for (size_t d = 0; d < dims; ++d) {
        const auto left = static_cast<double>(room[d]);
        fits = fits && request[d] <= left;
        score += weight[d] * request[d] * (2 * left - request[d]);
      }
      if (!fits) continue;
      score = Noisy(score, options.noise_percent, noise);
      if (kept == 0 || score > best) {
        best = score;
        at = kept;
      }
      open[kept++] = g;
    }
    open.resize(kept);
    if (open.empty()) return;
    const uint32_t g = open[at];
    const Group& group = packing_.groups()[g];
    const uint32_t lot = FreeLot(bin, group);
    if (lot == kNoChoice) {
      open.erase(open.begin() + static_cast<ptrdiff_t>(at));
      continue;
    }
    const int64_t available = packing_.left(lot) - taken_[lot];
    const int64_t most = std::min(TimesThatFit(g, room), available);
    Take(g, lot, group.plain ? std::max<int64_t>(1, most / kStepPart) : 1, room, bin);
  }
}

// One unit of the seed, then what else fits. Empty if the seed does not.
Bin Builder::Fill(const Ranked& ranked, uint32_t seed, const BuildOptions& options, Rng* noise) {
  const Problem& problem = packing_.problem();
  const auto capacity = problem.CapacityOf(ranked.choice);
  const uint32_t node_class = problem.choices[ranked.choice].node_class;
  Bin bin = packing_.EmptyBin(ranked.cell);
  std::vector<int64_t> room(capacity.begin(), capacity.end());
  const uint32_t first = TimesThatFit(seed, room) > 0 ? FreeLot(bin, packing_.groups()[seed]) : kNoChoice;
  if (first == kNoChoice) return bin;
  Take(seed, first, 1, room, bin);
  std::vector<double> weight(room.size(), 0);
  for (size_t d = 0; d < room.size(); ++d) {
    const auto amount = static_cast<double>(capacity[d]);
    if (amount <= 0) continue;
    const double share = ranked.worth > 0 ? values_.grain[d] * amount / ranked.worth : 0;
    weight[d] = (share + options.balance) / (amount * amount);
  }
  for (const bool followers : {false, true}) {  // units that must be near others last
    std::vector<uint32_t> open;
    for (const uint32_t g : active_) {
      const Group& group = packing_.groups()[g];
      const bool here = group.cell == kAnyCell || group.cell == ranked.cell;
      if (near_[g] == followers && here && problem.masks[group.mask][node_class]) open.push_back(g);
    }
    FillFrom(std::move(open), room, weight, bin, options, noise);
  }
  for (const Item& item : bin.items) taken_[item.lot] = 0;
  return bin;
}

int64_t Builder::TimesPossible(const Bin& bin) const {
  int64_t times = kUnlimited;
  for (const Item& item : bin.items) times = std::min(times, packing_.left(item.lot) / item.count);
  return times;
}

std::optional<Builder::Filled> Builder::BestNode(uint32_t seed, const BuildOptions& options, Rng* noise) {
  const Problem& problem = packing_.problem();
  const Group& group = packing_.groups()[seed];
  const std::vector<bool>& mask = problem.masks[group.mask];
  std::vector<double> left(problem.cells.size(), 0);
  std::vector<bool> own(problem.cells.size(), false);  // something left must go there
  for (uint32_t c = 0; c < left.size(); ++c) left[c] = LeftWorth(c);
  for (const uint32_t g : active_) {
    if (packing_.groups()[g].cell != kAnyCell) own[packing_.groups()[g].cell] = true;
  }
  const double most_worth = TakesPlaceNow(seed) ? MostWorth(options) : HUGE_VAL;
  std::optional<Filled> best;
  uint32_t tried = 0;
  for (const bool within_share : {true, false}) {
    for (const Ranked& ranked : ranked_) {
      if (tried >= options.choices) break;
      if (group.cell != kAnyCell && group.cell != ranked.cell) continue;
      if (group.cell == kAnyCell && !own[ranked.cell] && twin_[ranked.cell] != ranked.cell) continue;
      if ((ranked.worth <= most_worth) != within_share) continue;
      if (!mask[problem.choices[ranked.choice].node_class]) continue;
      const auto price = static_cast<double>(std::max<int64_t>(problem.choices[ranked.choice].price, 1));
      // No fill is worth more than the capacity and an exclusive place, nor than all that is left.
      const double most = ranked.worth + values_.place * static_cast<double>(values_.most);
      if (best && std::min(most, left[ranked.cell]) / price <= best->ratio) continue;
      Bin bin = Fill(ranked, seed, options, noise);
      if (bin.items.empty()) continue;
      ++tried;
      const uint32_t cheapest = packing_.CheapestFor(bin);
      MUSTER_CHECK(cheapest != kNoChoice);
      const auto paid = static_cast<double>(std::max<int64_t>(problem.choices[cheapest].price, 1));
      const double ratio = Noisy(WorthOf(bin) / paid, options.noise_percent / 4, noise);
      if (best && ratio <= best->ratio) continue;
      const int64_t times = TimesPossible(bin);
      best = Filled{.bin = std::move(bin), .ratio = ratio, .times = times};
    }
    if (best) break;  // a node beyond the share only where the seed needs one
  }
  return best;
}

void Builder::BuyRest(const BuildOptions& options, Rng* noise) {
  ListActive();
  std::vector<bool> hopeless(packing_.groups().size(), false);
  const auto total = static_cast<double>(packing_.left_in_all());
  auto priced_at = total;
  while (true) {
    std::erase_if(active_, [&](uint32_t g) { return packing_.groups()[g].left == 0; });
    if (noise == nullptr && options.reprice &&
        static_cast<double>(packing_.left_in_all()) < priced_at * (1 - kRepriceAfter)) {
      priced_at = static_cast<double>(packing_.left_in_all());
      Reprice();
    }
    auto seed = std::ranges::find_if(active_, [&](uint32_t g) { return !hopeless[g] && TakesPlaceNow(g); });
    if (seed == active_.end()) seed = std::ranges::find_if(active_, [&](uint32_t g) { return !hopeless[g]; });
    if (seed == active_.end()) return;
    if (noise != nullptr && noise->Chance(1, 3)) {  // a search begins with another unit now and then
      const auto other = active_.begin() + static_cast<ptrdiff_t>(noise->Below(active_.size()));
      if (!hopeless[*other] && TakesPlaceNow(*other) == TakesPlaceNow(*seed)) seed = other;
    }
    const std::optional<Filled> best = BestNode(*seed, options, noise);
    if (!best) {
      hopeless[*seed] = true;
      continue;
    }
    for (int64_t i = 0; i < best->times; ++i) packing_.Open(best->bin);
  }
}

}  // namespace muster::planner
