#include "engine/bind_stamp.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

namespace muster::engine {
namespace {

constexpr std::string_view kPriority = "bigfleet.lucy.sh/assigned-priority";
constexpr std::string_view kInterruption = "bigfleet.lucy.sh/assigned-interruption-penalty-dollars";
constexpr std::string_view kReclamation = "bigfleet.lucy.sh/assigned-reclamation-penalty-dollars";
constexpr std::string_view kFingerprint = "bigfleet.lucy.sh/assigned-need-fingerprint";
constexpr std::string_view kGroup = "bigfleet.lucy.sh/assigned-group";

template <class T>
std::optional<T> ParseNumber(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<model::Penalty> ParseDollars(std::string_view text) {
  if (text == "+Inf" || text == "Inf") return model::Penalty::Pinned();
  const auto dollars = ParseNumber<double>(text);
  if (!dollars) return std::nullopt;
  const auto money = model::MoneyFromDollars(*dollars);
  if (!money) return std::nullopt;
  return model::Penalty{.finite = *money};
}

std::string FormatDollars(const model::Penalty& penalty) {
  return penalty.pinned ? "+Inf" : fmt::format("{}", model::ToDollars(penalty.finite));
}

}  // namespace

std::optional<BindStamp> ReadBindStamp(const std::map<std::string, std::string>& metadata) {
  BindStamp stamp;
  bool found = false;
  for (const auto& [key, value] : metadata) {
    if (key == kPriority) {
      if (const auto priority = ParseNumber<int32_t>(value)) stamp.priority = *priority;
    } else if (key == kInterruption) {
      if (const auto penalty = ParseDollars(value)) stamp.interruption = *penalty;
    } else if (key == kReclamation) {
      if (const auto penalty = ParseDollars(value)) stamp.reclamation = *penalty;
    } else if (key == kFingerprint) {
      stamp.fingerprint = value;
    } else if (key == kGroup) {
      stamp.group = value;
    } else {
      continue;
    }
    found = true;
  }
  if (!found) return std::nullopt;
  return stamp;
}

std::optional<model::Attribution> DecodeBindStamp(const std::map<std::string, std::string>& metadata) {
  const auto stamp = ReadBindStamp(metadata);
  if (!stamp) return std::nullopt;
  return model::Attribution{.fingerprint = std::string(stamp->fingerprint),
                            .group = std::string(stamp->group),
                            .priority = stamp->priority,
                            .interruption = stamp->interruption,
                            .reclamation = stamp->reclamation};
}

model::PenaltyBucket BoundInterruption(const std::map<std::string, std::string>& metadata) {
  const auto found = metadata.find(std::string(kInterruption));
  const auto penalty = found == metadata.end() ? std::nullopt : ParseDollars(found->second);
  if (!penalty) return model::PenaltyBucket::kZero;
  return penalty->pinned ? model::PenaltyBucket::kPinned : model::BucketForDollars(penalty->finite);
}

std::map<std::string, std::string> EncodeBindStamp(const model::Attribution& attribution) {
  return {{std::string(kPriority), fmt::format("{}", attribution.priority)},
          {std::string(kInterruption), FormatDollars(attribution.interruption)},
          {std::string(kReclamation), FormatDollars(attribution.reclamation)},
          {std::string(kFingerprint), attribution.fingerprint},
          {std::string(kGroup), attribution.group}};
}

std::map<std::string, std::string> BindStampOf(const NeedKey& need, const model::Profile& profile) {
  return EncodeBindStamp({.fingerprint = need.fingerprint,
                          .group = need.group,
                          .priority = profile.priority(),
                          .interruption = model::UpperBound(profile.interruption()),
                          .reclamation = model::UpperBound(profile.reclamation())});
}

}  // namespace muster::engine
