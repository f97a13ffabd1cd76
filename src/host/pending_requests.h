// PendingRequests: the requests that a core has been asked and has not answered yet.
//
// Invariants:
//   1. The callback of a request is called exactly once: with the core's answer, or with a refusal.
//   2. After Close no request is added.
//
// Thread-safety: all functions may be called from any thread. No callback is called under the lock.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/status.h"
#include "contract/effects.h"

namespace muster::host {

template <class Reply>
class PendingRequests {
 public:
  using Done = std::function<void(Result<Reply>)>;

  // The number to give the core, from 1. Nothing after Close; `done` is left as it is then.
  std::optional<contract::RequestId> Add(Done& done) {
    const std::lock_guard lock(mu_);
    if (closed_) return std::nullopt;
    done_.emplace(++last_, std::move(done));
    return last_;
  }
  // Calls the callback of a request with `result`. False if the request is not pending.
  bool Finish(contract::RequestId id, Result<Reply> result) {
    Done done;
    {
      const std::lock_guard lock(mu_);
      auto pending = done_.extract(id);
      if (pending.empty()) return false;
      done = std::move(pending.mapped());
    }
    done(std::move(result));
    return true;
  }
  // Refuses every pending request with `why`. Idempotent.
  void Close(const Status& why) {
    std::unordered_map<contract::RequestId, Done> left;
    {
      const std::lock_guard lock(mu_);
      closed_ = true;
      left.swap(done_);
    }
    for (auto& [id, done] : left) done(std::unexpected(why));
  }

 private:
  std::mutex mu_;
  bool closed_ = false;                                 // guarded by mu_
  contract::RequestId last_ = 0;                        // guarded by mu_
  std::unordered_map<contract::RequestId, Done> done_;  // guarded by mu_
};

}  // namespace muster::host
