// Reasons of placement: which filter refused a node, and what became of a unit. Filters run in the order of this enum,
// and the first that refuses a node is its reason.
//
// A reason has a stable name that programs may rely on and a sentence for people; reason.cc is the one table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace muster::placement {

enum class Reason : uint8_t {
  kNone,
  // Filters.
  kNotReady,
  kStale,
  kLabels,
  kType,
  kCpu,
  kMemory,
  kDisk,
  kResource,
  kDevice,
  kPort,
  kCordoned,
  kTaint,
  kSpreadKey,
  kSpreadSkew,
  kColocateKey,
  kColocateNone,
  kExcludes,
  kExcluded,
  kQuota,
  // What became of a unit.
  kPlaced,
  kPlacedByPreemption,
  kNoNodeFits,
};

struct ReasonRow {
  Reason reason;
  std::string_view name;      // "fit.memory"
  std::string_view sentence;  // "the node has too little memory left"
};

// Every reason, in the order of the enum.
std::span<const ReasonRow> ReasonTable();
std::string_view ReasonName(Reason reason);
std::string_view ReasonSentence(Reason reason);
// Nothing if no reason has that name.
std::optional<Reason> FindReason(std::string_view name);

}  // namespace muster::placement
