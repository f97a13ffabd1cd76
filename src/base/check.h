// MUSTER_CHECK: a bug in this program ends it, with the condition, the place and a message, before it can do harm.
//
//   MUSTER_CHECK(index < size, "index {} of {}", index, size);
//
// Never for what the world does (bad input, a lost connection): that is a Status.
#pragma once

#include <fmt/format.h>

#include <source_location>
#include <string_view>

namespace muster {

// Writes one line to standard error and aborts.
[[noreturn]] void CheckFailed(std::string_view condition, std::string_view message, std::source_location where);

}  // namespace muster

#define MUSTER_CHECK(condition, ...)                                                                     \
  do {                                                                                                   \
    if (!(condition)) [[unlikely]] {                                                                     \
      ::muster::CheckFailed(#condition, ::fmt::format("" __VA_ARGS__), std::source_location::current()); \
    }                                                                                                    \
  } while (false)
