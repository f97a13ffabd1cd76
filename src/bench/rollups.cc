#include "bench/rollups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace muster::bench {
namespace {

// Two per cent a minute, a cycle a second.
constexpr int64_t kChurnPerCent = 2;
constexpr int64_t kCyclesPerMinute = 60;

int64_t PodsOf(const model::Need& need) {
  const auto& [name, amount] = need.aggregate.entries().front();
  const int64_t unit = need.min_unit.Get(name);
  return unit == 0 ? 1 : std::max<int64_t>(amount / unit, 1);
}

bool IsGang(const model::Need& need) {
  return std::ranges::count(need.profile.requirements(), model::Operator::kSame, &model::Requirement::op) > 0;
}

}  // namespace

Rollups::Rollups(const engine::World& world) {
  std::map<std::string, size_t> index;
  for (const auto& [name, state] : world.clusters) {
    index.emplace(name, rollups_.size());
    rollups_.push_back({.cluster = name, .rows = {}, .digests = {}});
  }
  gangs_.resize(rollups_.size());
  std::map<std::string, model::Profile> profiles;  // equal rows share one, as whoever decodes them sees to
  for (const model::Need& need : world.needs) {
    const size_t at = index.at(need.cluster);
    const auto row = static_cast<uint32_t>(rollups_[at].rows.size());
    rollups_[at].rows.push_back(need);
    rollups_[at].rows.back().profile = profiles.try_emplace(need.profile.fingerprint(), need.profile).first->second;
    rollups_[at].digests.push_back(engine::fast::RowDigest(need));
    if (IsGang(need)) {
      gangs_[at].push_back(row);
    } else if (!need.aggregate.empty()) {
      const int64_t pods = PodsOf(need);
      plain_.push_back({.rollup = static_cast<uint32_t>(at), .row = row, .began = pods, .pods = pods});
    }
  }
}

size_t Rollups::rows() const {
  size_t count = 0;
  for (const Rollup& rollup : rollups_) count += rollup.rows.size();
  return count;
}

void Rollups::Breathe(Rng& rng) {
  constexpr uint64_t kParts = 100 * kCyclesPerMinute;
  for (PlainRow& plain : plain_) {
    // As many as leave in a second may come in the same second, so the total moves by up to that many either way.
    const auto leaving = static_cast<uint64_t>(plain.began * kChurnPerCent);
    const auto moved = static_cast<int64_t>(leaving / kParts) + (rng.Chance(leaving % kParts, kParts) ? 1 : 0);
    if (moved == 0) continue;
    const int64_t room = std::max<int64_t>(plain.began * kChurnPerCent / 100, 1);
    const int64_t pods = std::clamp(plain.pods + rng.Between(-moved, moved), std::max<int64_t>(plain.began - room, 1),
                                    plain.began + room);
    const int64_t net = pods - plain.pods;
    if (net == 0) continue;
    plain.pods = pods;
    model::Need& need = rollups_[plain.rollup].rows[plain.row];
    for (const auto& [name, unit] : need.min_unit.entries()) {
      need.aggregate.Set(name, std::max(need.aggregate.Get(name) + net * unit, unit));
    }
    rollups_[plain.rollup].digests[plain.row] = engine::fast::RowDigest(need);
  }
  for (size_t i = 0; i < rollups_.size(); ++i) {
    const uint64_t leaving = gangs_[i].size() * static_cast<uint64_t>(kChurnPerCent);
    for (uint64_t n = leaving / kParts + (rng.Chance(leaving % kParts, kParts) ? 1 : 0); n > 0; --n) {
      SwapGang(rollups_[i], gangs_[i], rng);
    }
  }
}

void Rollups::SwapGang(Rollup& rollup, const std::vector<uint32_t>& gangs, Rng& rng) {
  const uint32_t row = gangs[rng.Below(gangs.size())];
  model::Need& need = rollup.rows[row];
  const model::Need& like = rollup.rows[gangs[rng.Below(gangs.size())]];
  if (like.profile == need.profile) need.aggregate = like.aggregate;
  if (!need.group.empty()) {
    need.group = fmt::format("{}@{}", need.group.substr(0, need.group.find('@')), ++swapped_);
  }
  rollup.digests[row] = engine::fast::RowDigest(need);
}

}  // namespace muster::bench
