// Refusal: something a server turned away before it did any work for it, for the count and the log.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace muster::rpc {

// Why, as the label of a count.
inline constexpr std::string_view kDenied = "denied";       // who calls may not
inline constexpr std::string_view kTooLarge = "too_large";  // a message beyond its bounds
inline constexpr std::string_view kTooMany = "too_many";    // streams of one caller, or of all
inline constexpr std::string_view kNoMessage =
    "no_message";  // a call whose request did not come, or is too large or compressed for gRPC
inline constexpr std::string_view kCompressed = "compressed";  // a message that would have to be unpacked
inline constexpr std::string_view kHandshake =
    "handshake";  // a connection whose peer shows no certificate of the CA, or does not go on
inline constexpr std::string_view kSilent = "silent";  // a stream that said nothing

struct Refusal {
  std::string_view reason;  // one of the above
  std::string who;          // the caller as CallerName gives it
  std::string what;         // "/package.Service/Method"
  std::string why;          // a sentence
};

// Told on threads of gRPC; returns at once.
using Refused = std::function<void(const Refusal&)>;

}  // namespace muster::rpc
