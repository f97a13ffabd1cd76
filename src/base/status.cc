#include "base/status.h"

#include <fmt/format.h>

#include <array>

namespace muster {

std::string CodeName(Code code) {
  static constexpr std::array<std::string_view, 17> kNames = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  const auto number = static_cast<size_t>(code);
  return number < kNames.size() ? std::string(kNames[number]) : fmt::format("CODE_{}", number);
}

std::string Status::ToString() const {
  if (ok()) return "OK";
  return message_.empty() ? CodeName(code_) : fmt::format("{}: {}", CodeName(code_), message_);
}

}  // namespace muster
