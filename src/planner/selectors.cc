#include "planner/selectors.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string_view>

#include "base/probe.h"

namespace muster::planner {
namespace {

bool EveryAddress(std::string_view ip) { return ip.empty() || ip == "0.0.0.0"; }

}  // namespace

uint32_t SelectorTable::Add(std::vector<placement::UnitSelector> all) {
  const auto [at, inserted] = selectors_.try_emplace(std::move(all), size_);
  if (inserted) ++size_;
  return at->second;
}

uint32_t SelectorTable::AddPort(const placement::HostPort& port) {
  const std::string ip = EveryAddress(port.ip) ? "" : port.ip;
  const auto [at, inserted] = ports_.try_emplace({port.protocol, port.port, ip}, size_);
  if (inserted) ++size_;
  return at->second;
}

void SelectorTable::IndexKinds() {
  for (size_t k = 0; k < world_->kinds.size(); ++k) {
    for (const auto& label : world_->kinds[k].labels) {
      kinds_by_label_[{label.first, label.second}].push_back(static_cast<uint32_t>(k));
    }
  }
  all_kinds_.resize(world_->kinds.size());
  std::iota(all_kinds_.begin(), all_kinds_.end(), 0U);
}

// Kinds that may match, all that do among them; nullptr: none does.
const std::vector<uint32_t>* SelectorTable::KindsThatMay(const placement::UnitSelector& selector) const {
  for (const model::Requirement& requirement : selector.labels) {
    if (requirement.op != model::Operator::kIn || requirement.values.size() != 1) continue;
    const auto found = kinds_by_label_.find({requirement.key, requirement.values[0]});
    return found == kinds_by_label_.end() ? nullptr : &found->second;
  }
  return &all_kinds_;
}

void SelectorTable::MatchPorts() {
  for (size_t k = 0; k < world_->kinds.size(); ++k) {
    for (const placement::HostPort& port : world_->kinds[k].ports) {
      const bool every = EveryAddress(port.ip);
      // A user of one address is in that address's selector and in the one of every address; a user of every address is
      // in all of them.
      auto at = ports_.lower_bound({port.protocol, port.port, ""});
      for (; at != ports_.end(); ++at) {
        const auto& [protocol, number, ip] = at->first;
        if (protocol != port.protocol || number != port.port) break;
        const bool shared = every || ip.empty() || ip == port.ip;
        if (MUTANT("planner.every_address") ? ip == port.ip : shared) matches_[k].push_back(at->second);
      }
    }
  }
}

void SelectorTable::Match() {
  IndexKinds();
  matches_.assign(world_->kinds.size(), {});
  for (const auto& [all, number] : selectors_) {
    const std::vector<uint32_t>* may = all.empty() ? nullptr : KindsThatMay(all[0]);
    if (may == nullptr) continue;
    for (const uint32_t k : *may) {
      const bool matched = std::ranges::all_of(all, [&](const placement::UnitSelector& selector) {
        return placement::Matches(selector, world_->kinds[k], world_->namespaces);
      });
      if (matched) matches_[k].push_back(number);
    }
  }
  MatchPorts();
  for (std::vector<uint32_t>& matches : matches_) {
    std::ranges::sort(matches);
    matches.erase(std::ranges::unique(matches).begin(), matches.end());
  }
}

bool SelectorTable::Matches(uint32_t selector, size_t kind) const {
  return std::ranges::binary_search(matches_[kind], selector);
}

}  // namespace muster::planner
