// LogLimit: how many lines of one message and kind are written, so that a peer cannot fill a disk by what it makes a
// program say.
//
// The kind is a line's first field where that is named `kind`, `reason` or `what`: of "call refused" why it was. So
// calls that are too many hide no call that is denied. Messages are literals, so there are few; kinds beyond kMostKinds
// of a message share one limit, for a peer may have chosen them. One message, "order", has no limit: every order is a
// line whose operator has shown a certificate or owns the server's socket.
//
// Thread-safety: any thread may call.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/log.h"
#include "base/time.h"

namespace muster::host {

class LogLimit {
 public:
  static constexpr double kAtOnce = 1'000;
  static constexpr double kPerSecond = 100;
  static constexpr size_t kMostKinds = 64;

  // Nothing: leave the line out. Otherwise write it; so many of its message and kind were left out before it.
  std::optional<uint64_t> Take(std::string_view message, std::span<const log::KeyValue> fields, MonoTime now) {
    if (message == "order") return 0;
    const std::lock_guard lock(mu_);
    Allowance& has = Find(message, KindOf(fields), now);
    has.lines += std::chrono::duration<double>(now - has.at).count() * kPerSecond;
    if (has.lines > kAtOnce) has.lines = kAtOnce;
    has.at = now;
    if (has.lines < 1) {
      ++has.left_out;
      return std::nullopt;
    }
    has.lines -= 1;
    const uint64_t left_out = has.left_out;
    has.left_out = 0;
    return left_out;
  }

 private:
  struct Allowance {
    double lines = 0;
    MonoTime at;
    uint64_t left_out = 0;
  };
  using Kinds = std::map<std::string, Allowance, std::less<>>;

  static std::string_view KindOf(std::span<const log::KeyValue> fields) {
    if (fields.empty()) return {};
    const std::string_view name = fields.front().key;
    const auto* text = std::get_if<std::string>(&fields.front().value.data);
    const bool names = name == "kind" || name == "reason" || name == "what";
    return names && text != nullptr ? *text : std::string_view();
  }
  // Under mu_.
  Allowance& Find(std::string_view message, std::string_view kind, MonoTime now) {
    auto kinds = of_.find(message);
    if (kinds == of_.end()) kinds = of_.emplace(message, Kinds()).first;
    auto found = kinds->second.find(kind);
    if (found != kinds->second.end()) return found->second;
    if (kinds->second.size() >= kMostKinds) kind = {};
    return kinds->second.try_emplace(std::string(kind), Allowance{.lines = kAtOnce, .at = now, .left_out = 0})
        .first->second;
  }

  std::mutex mu_;
  std::map<std::string, Kinds, std::less<>> of_;  // guarded by mu_
};

}  // namespace muster::host
