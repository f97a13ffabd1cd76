#include "planner/build.h"

#include <algorithm>
#include <queue>
#include <tuple>

#include "base/check.h"

namespace muster::planner {
namespace {

// A group is taken in steps of this part of what fits, so that large nodes fill in few steps and still keep direction.
constexpr int64_t kStepPart = 16;

double Noisy(double score, uint32_t percent, Rng* noise) {
  if (noise == nullptr || percent == 0) return score;
  return score * (1 + static_cast<double>(noise->Below(2 * percent + 1)) / 100 - static_cast<double>(percent) / 100);
}

}  // namespace

void Builder::Prepare() {
  const Problem& problem = packing_.problem();
  std::vector<int64_t> largest(problem.dims(), 0);
  for (uint32_t c = 0; c < problem.cells.size(); ++c) {
    for (uint32_t k = problem.cells[c].first_choice; k < problem.cells[c].end_choice; ++k) {
      Ranked ranked{.choice = k, .cell = c};
      const auto capacity = problem.CapacityOf(k);
      for (size_t d = 0; d < capacity.size(); ++d) {
        ranked.worth += values_.grain[d] * static_cast<double>(capacity[d]);
        largest[d] = std::max(largest[d], capacity[d]);
      }
      ranked.ratio = ranked.worth / static_cast<double>(std::max<int64_t>(problem.choices[k].price, 1));
      ranked_.push_back(ranked);
    }
  }
  std::ranges::stable_sort(ranked_, std::greater<>(), &Ranked::ratio);
  twin_.resize(problem.cells.size());
  for (uint32_t c = 0; c < twin_.size(); ++c) twin_[c] = TwinOf(c);
  for (const Group& group : packing_.groups()) {
    double difficulty = 0;
    for (size_t d = 0; d < problem.dims(); ++d) {
      const auto amount = static_cast<double>(problem.requests[group.request][d]);
      requests_.push_back(amount);
      if (largest[d] > 0) difficulty = std::max(difficulty, amount / static_cast<double>(largest[d]));
    }
    // Units that must find others on their node come after those.
    bool near = false;
    for (const uint32_t lot : group.lots) near = near || !packing_.kind_of(lot).near.empty();
    near_.push_back(near);
    difficulty_.push_back(near ? difficulty - 1e6 : difficulty);
  }
  by_difficulty_.resize(packing_.groups().size());
  for (uint32_t g = 0; g < by_difficulty_.size(); ++g) by_difficulty_[g] = g;
  std::ranges::stable_sort(by_difficulty_, std::greater<>(), [&](uint32_t g) { return difficulty_[g]; });
  taken_.assign(packing_.lots().size(), 0);
}

// The first cell in which the same can be bought at the same prices.
uint32_t Builder::TwinOf(uint32_t cell) const {
  const Problem& problem = packing_.problem();
  const auto same = [&](uint32_t a, uint32_t b) {
    const Cell& x = problem.cells[a];
    const Cell& y = problem.cells[b];
    if (x.end_choice - x.first_choice != y.end_choice - y.first_choice) return false;
    for (uint32_t i = 0; i < x.end_choice - x.first_choice; ++i) {
      const Choice& left = problem.choices[x.first_choice + i];
      const Choice& right = problem.choices[y.first_choice + i];
      if (left.price != right.price) return false;
      if (!std::ranges::equal(problem.CapacityOf(x.first_choice + i), problem.CapacityOf(y.first_choice + i))) {
        return false;
      }
      for (const std::vector<bool>& mask : problem.masks) {
        if (mask[left.node_class] != mask[right.node_class]) return false;
      }
    }
    return true;
  };
  for (uint32_t other = 0; other < cell; ++other) {
    if (same(other, cell)) return other;
  }
  return cell;
}

void Builder::FillFixed(const BuildOptions& options) {
  BuildOptions free = options;
  free.growth = 0;
  if (!packing_.problem().fixed.empty()) Grow(free);
}

void Builder::OpenPlaces() {
  if (!values_.exclusive) return;
  const Problem& problem = packing_.problem();
  std::vector<double> load(problem.cells.size(), 0);  // worth that has its cell already
  std::vector<double> nodes(problem.cells.size(), 1);
  double free_load = 0;
  std::vector<uint32_t> lots;
  for (uint32_t l = 0; l < packing_.lots().size(); ++l) {
    if (packing_.left(l) == 0) continue;
    if (TakesPlace(packing_.kind_of(l), values_.selector)) {
      lots.push_back(l);
      continue;
    }
    const Group& group = packing_.groups()[packing_.group_of(l)];
    (group.cell == kAnyCell ? free_load : load[group.cell]) += group.worth * static_cast<double>(packing_.left(l));
  }
  std::ranges::stable_sort(lots, std::greater<>(), [&](uint32_t l) { return difficulty_[packing_.group_of(l)]; });
  for (const uint32_t lot : lots) {
    const Group& group = packing_.groups()[packing_.group_of(lot)];
    while (packing_.left(lot) > 0) {
      std::optional<Bin> best;
      double most = 0;
      for (uint32_t c = 0; c < problem.cells.size(); ++c) {
        if (group.cell != kAnyCell && group.cell != c) continue;
        if (best && load[c] / nodes[c] <= most) continue;
        Bin bin = packing_.EmptyBin(c);
        packing_.AddTo(bin, lot, 1);
        if (!packing_.Allows(packing_.EmptyBin(c), lot) || packing_.CheapestFor(bin) == kNoChoice) continue;
        most = load[c] / nodes[c];
        best = std::move(bin);
      }
      if (!best) break;
      nodes[best->cell] += 1;
      packing_.Open(*std::move(best));
    }
  }
}

void Builder::Grow(const BuildOptions& options, bool at_any_price) {
  for (const uint32_t group : by_difficulty_) {
    if (packing_.groups()[group].left > 0) GrowGroup(group, options, at_any_price);
  }
}

void Builder::GrowGroup(uint32_t g, const BuildOptions& options, bool at_any_price) {
  const Problem& problem = packing_.problem();
  const Group& group = packing_.groups()[g];
  const std::vector<int64_t>& request = problem.requests[group.request];
  const auto most = static_cast<int64_t>(options.growth * group.worth);
  using Entry = std::tuple<int64_t, double, uint32_t>;  // growth, what is left unused, bin
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  const auto push = [&](uint32_t b) {
    const Bin& bin = packing_.bins()[b];
    if (bin.items.empty() && bin.fixed == kNoChoice) return;
    const uint32_t choice = packing_.ChoiceWith(bin, group);
    if (choice == kNoChoice) return;
    const bool fixed = bin.fixed != kNoChoice;
    const int64_t growth = fixed ? 0 : problem.choices[choice].price - packing_.PriceOf(bin);
    if (growth > most && !at_any_price) return;
    const std::span<const int64_t> capacity =
        fixed ? std::span<const int64_t>(problem.fixed[bin.fixed].free) : problem.CapacityOf(choice);
    double unused = 0;
    for (size_t d = 0; d < capacity.size(); ++d) {
      unused += values_.grain[d] * static_cast<double>(capacity[d] - bin.used[d] - request[d]);
    }
    queue.emplace(growth, unused, b);
  };
  for (uint32_t b = 0; b < packing_.bins().size(); ++b) push(b);
  while (group.left > 0 && !queue.empty()) {
    const auto [growth, unused, b] = queue.top();
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
    if (group.cell == kAnyCell || group.cell == cell) worth += group.worth * static_cast<double>(group.left);
  }
  return worth;
}

uint32_t Builder::FreeLot(const Bin& bin, const Group& group) const {
  for (const uint32_t lot : group.lots) {
    if (packing_.left(lot) > taken_[lot] && (group.plain || packing_.Allows(bin, lot))) return lot;
  }
  return kNoChoice;
}

// One unit of the seed, then what matches the direction of the room that is left and is large, until nothing fits.
Bin Builder::Fill(const Ranked& ranked, uint32_t seed, const BuildOptions& options, Rng* noise) {
  const Problem& problem = packing_.problem();
  const size_t dims = problem.dims();
  const auto capacity = problem.CapacityOf(ranked.choice);
  const uint32_t node_class = problem.choices[ranked.choice].node_class;
  ++fills_;
  Bin bin = packing_.EmptyBin(ranked.cell);
  std::vector<double> weight(dims, 0);
  std::vector<int64_t> room(capacity.begin(), capacity.end());
  for (size_t d = 0; d < dims; ++d) {
    const auto amount = static_cast<double>(capacity[d]);
    if (amount <= 0) continue;
    const double share = ranked.worth > 0 ? values_.grain[d] * amount / ranked.worth : 0;
    weight[d] = (share + options.balance) / (amount * amount);
  }
  const auto take = [&](uint32_t g, uint32_t lot, int64_t count) {
    packing_.AddTo(bin, lot, count);
    taken_[lot] += count;
    const std::vector<int64_t>& request = problem.requests[packing_.groups()[g].request];
    for (size_t d = 0; d < dims; ++d) room[d] -= request[d] * count;
  };
  const auto fit = [&](uint32_t g) {
    const std::vector<int64_t>& request = problem.requests[packing_.groups()[g].request];
    int64_t times = kUnlimited;
    for (size_t d = 0; d < dims; ++d) {
      if (request[d] > 0) times = std::min(times, room[d] / request[d]);
    }
    return times;
  };
  if (const Group& group = packing_.groups()[seed]; fit(seed) > 0) {
    if (const uint32_t lot = FreeLot(bin, group); lot != kNoChoice) take(seed, lot, 1);
  }
  if (bin.items.empty()) return bin;
  for (const bool followers : {false, true}) {  // units that must be near others last
    std::vector<uint32_t> open;
    for (const uint32_t g : active_) {
      const Group& group = packing_.groups()[g];
      const bool here = group.cell == kAnyCell || group.cell == ranked.cell;
      if (near_[g] == followers && here && problem.masks[group.mask][node_class]) open.push_back(g);
    }
    while (!open.empty()) {
      double best = 0;
      size_t at = open.size();
      for (size_t i = 0; i < open.size();) {
        const uint32_t g = open[i];
        const double* request = &requests_[g * dims];
        double score = 0;
        bool fits = true;
        for (size_t d = 0; d < dims; ++d) {
          const auto left = static_cast<double>(room[d]);
          fits = fits && request[d] <= left;
          score += weight[d] * request[d] * (2 * left - request[d]);
        }
        if (!fits) {
          open.erase(open.begin() + static_cast<ptrdiff_t>(i));
          continue;
        }
        score = Noisy(score, options.noise_percent, noise);
        if (at >= open.size() || score > best) {
          best = score;
          at = i;
        }
        ++i;
      }
      if (open.empty()) break;
      const uint32_t g = open[at];
      const Group& group = packing_.groups()[g];
      const uint32_t lot = FreeLot(bin, group);
      if (lot == kNoChoice) {
        open.erase(open.begin() + static_cast<ptrdiff_t>(at));
        continue;
      }
      const int64_t available = packing_.left(lot) - taken_[lot];
      take(g, lot, group.plain ? std::max<int64_t>(1, std::min(fit(g), available) / kStepPart) : 1);
    }
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
  std::optional<Filled> best;
  uint32_t tried = 0;
  for (const Ranked& ranked : ranked_) {
    if (tried >= options.choices) break;
    if (group.cell != kAnyCell && group.cell != ranked.cell) continue;
    if (!own[ranked.cell] && twin_[ranked.cell] != ranked.cell && group.cell == kAnyCell) continue;
    if (!mask[problem.choices[ranked.choice].node_class]) continue;
    const auto price = static_cast<double>(std::max<int64_t>(problem.choices[ranked.choice].price, 1));
    // No fill is worth more than the capacity, nor than what is left. Exclusive places come on top.
    const double place = values_.exclusive ? price : 0;
    if (best && std::min(ranked.worth + place, left[ranked.cell]) / price <= best->ratio) continue;
    Bin bin = Fill(ranked, seed, options, noise);
    if (bin.items.empty()) continue;
    ++tried;
    const uint32_t cheapest = packing_.CheapestFor(bin);
    MUSTER_CHECK(cheapest != kNoChoice);
    const double ratio =
        Noisy(packing_.WorthOf(bin) / static_cast<double>(std::max<int64_t>(problem.choices[cheapest].price, 1)),
              options.noise_percent / 4, noise);
    if (!best || ratio > best->ratio) {
      const int64_t times = TimesPossible(bin);
      best = Filled{.bin = std::move(bin), .ratio = ratio, .times = times};
    }
  }
  return best;
}

void Builder::BuyRest(const BuildOptions& options, Rng* noise) {
  active_.clear();
  for (const uint32_t g : by_difficulty_) {
    if (packing_.groups()[g].left > 0) active_.push_back(g);
  }
  std::vector<bool> hopeless(packing_.groups().size(), false);
  while (true) {
    std::erase_if(active_, [&](uint32_t g) { return packing_.groups()[g].left == 0; });
    const auto seed = std::ranges::find_if(active_, [&](uint32_t g) { return !hopeless[g]; });
    if (seed == active_.end()) return;
    const std::optional<Filled> best = BestNode(*seed, options, noise);
    if (!best) {
      hopeless[*seed] = true;
      continue;
    }
    for (int64_t i = 0; i < best->times; ++i) packing_.Open(best->bin);
  }
}

void Builder::Build(const BuildOptions& options) {
  FillFixed(options);
  OpenPlaces();
  if (values_.exclusive) Grow(options);
  BuyRest(options);
}

}  // namespace muster::planner
