// CallerCount: how many of something the callers of a server have, each and all together.
//
// Thread-safety: none; its owner has a lock.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/status.h"
#include "model/names.h"

namespace muster::rpc {

class CallerCount {
 public:
  // Literals, for the refusal: "calls open without a message", "send those first".
  CallerCount(std::string_view things, std::string_view advice) : things_(things), advice_(advice) {}

  // RESOURCE_EXHAUSTED, naming the bound, if the caller has `of_caller` already, or all have `of_all`; if OK, Remove
  // follows.
  Status Add(const std::string& who, size_t of_caller, size_t of_all) {
    if (all_ >= of_all) {
      return {Code::kResourceExhausted,
              fmt::format("this server has {} {}, and no more are allowed; {}", all_, things_, advice_)};
    }
    size_t& has = of_[who];
    if (has >= of_caller) {
      return {Code::kResourceExhausted,
              fmt::format("{} has {} {}, and no more are allowed; {}", model::Quoted(who), has, things_, advice_)};
    }
    ++has;
    ++all_;
    return {};
  }
  void Remove(const std::string& who) {
    const auto found = of_.find(who);
    MUSTER_CHECK(found != of_.end(), "{} has no {}", who, things_);
    if (--found->second == 0) of_.erase(found);
    --all_;
  }
  size_t all() const { return all_; }

 private:
  std::string_view things_;
  std::string_view advice_;
  size_t all_ = 0;
  std::map<std::string, size_t> of_;  // callers that have none have no entry
};

}  // namespace muster::rpc
