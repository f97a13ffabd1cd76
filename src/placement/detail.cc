#include "placement/detail.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "model/quantity.h"
#include "placement/match.h"

namespace muster::placement {
namespace {

constexpr size_t kNamedNodes = 20;
constexpr size_t kClasses = 8;

std::string SelectorText(const Selector& selector) {
  if (!selector.given) return "no selector";
  if (selector.all.empty()) return "any labels";
  std::vector<std::string> parts;
  for (const model::Requirement& requirement : selector.all) parts.push_back(model::ToString(requirement));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string LabelsDetail(const Kind& kind, const Node& node) {
  for (const model::Requirement& requirement : kind.requirements) {
    if (!MatchesAll({requirement}, node.labels)) return fmt::format("label {}", model::ToString(requirement));
  }
  return kind.node_terms.size() == 1 ? "the node affinity term does not match"
                                     : fmt::format("none of {} node affinity terms matches", kind.node_terms.size());
}

std::string TypeDetail(model::WorkloadType type) { return fmt::format("runs no {}", model::WorkloadTypeName(type)); }

std::string ShortDetail(std::string_view resource, int64_t asked, int64_t left) {
  const std::string_view written = resource == "disk" ? "storage" : resource;  // in bytes too
  return fmt::format("{} short by {}", resource, model::FormatQuantityFor(written, asked - std::max<int64_t>(left, 0)));
}

std::string DeviceDetail(const DeviceRequest& request, std::span<const int32_t> free, std::span<const int32_t> size) {
  if (request.milli > 0) {
    const int32_t most = free.empty() ? 0 : std::ranges::max(free);
    return fmt::format("no device has {}m free, at most {}m", request.milli, most);
  }
  int whole = 0;
  for (size_t i = 0; i < free.size(); ++i) whole += size[i] > 0 && free[i] == size[i];
  return fmt::format("{} of {} devices are wholly free, {} are asked for", whole, size.size(), request.whole);
}

std::string PortDetail(const HostPort& port, std::string_view holder) {
  return fmt::format("port {} {}:{} is held by {}", port.protocol, port.ip.empty() ? "0.0.0.0" : port.ip, port.port,
                     holder);
}

std::string TaintDetail(const Taint& taint) {
  return fmt::format("taint {}{}{}:{}", taint.key, taint.value.empty() ? "" : "=", taint.value,
                     TaintEffectName(taint.effect));
}

std::string MissingKeyDetail(std::string_view key) { return fmt::format("label {} is missing", key); }

std::string SkewDetail(std::string_view key, std::string_view value, int64_t count, int64_t least, int32_t max_skew) {
  return fmt::format("{}={} has {}, the least is {}, the skew allowed {}", key, value, count, least, max_skew);
}

std::string ColocateDetail(const UnitTerm& term, std::string_view value) {
  return fmt::format("{}={} has no unit with {}", term.topology_key, value, SelectorText(term.selector));
}

std::string ExcludeDetail(const UnitTerm& term, std::string_view value) {
  return fmt::format("{}={} has a unit with {}", term.topology_key, value, SelectorText(term.selector));
}

std::string QuotaDetail(std::string_view tenant, std::string_view resource, int64_t over) {
  return fmt::format("tenant {}: {} over the quota by {}", tenant, resource, model::FormatQuantityFor(resource, over));
}

std::string Summarise(std::span<const NodeVerdict> verdicts) {
  if (verdicts.empty()) return "there are no nodes";
  const auto text = [](const NodeVerdict& verdict) {
    return verdict.detail.empty() ? std::string(ReasonSentence(verdict.reason)) : verdict.detail;
  };
  std::vector<std::string> parts;
  if (verdicts.size() <= kNamedNodes) {
    for (const NodeVerdict& verdict : verdicts) parts.push_back(fmt::format("{}: {}", verdict.node, text(verdict)));
    return fmt::format("{}", fmt::join(parts, "; "));
  }
  std::map<std::string, int64_t> classes;
  for (const NodeVerdict& verdict : verdicts) ++classes[text(verdict)];
  std::vector<std::pair<std::string, int64_t>> order(classes.begin(), classes.end());
  std::ranges::stable_sort(order, std::ranges::greater(), &std::pair<std::string, int64_t>::second);
  int64_t others = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const auto& [what, nodes] = order[i];
    if (i < kClasses) {
      parts.push_back(fmt::format("{} node{}: {}", nodes, nodes == 1 ? "" : "s", what));
    } else {
      others += nodes;
    }
  }
  if (others > 0) parts.push_back(fmt::format("{} nodes for other reasons", others));
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace muster::placement
