// LogLimit: how many lines of one message are written, so that a peer cannot fill a disk by what it makes a program
// say.
//
// Messages are literals, so there are few. One message, "order", has no limit: every order is a line whose operator has
// shown a certificate or owns the server's socket.
//
// Thread-safety: any thread may call.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace muster::host {

class LogLimit {
 public:
  static constexpr double kAtOnce = 1'000;
  static constexpr double kPerSecond = 100;

  // Nothing: leave the line out. Otherwise write it; so many of the message were left out before it.
  std::optional<uint64_t> Take(std::string_view message, MonoTime now) {
    if (message == "order") return 0;
    const std::lock_guard lock(mu_);
    auto found = of_.find(message);
    if (found == of_.end()) found = of_.emplace(message, Allowance{.lines = kAtOnce, .at = now, .left_out = 0}).first;
    Allowance& has = found->second;
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
  std::mutex mu_;
  std::map<std::string, Allowance, std::less<>> of_;  // guarded by mu_
};

}  // namespace muster::host
