// Guarded: what Mirror, Candidate, RotatingLease and Compactor share: callbacks of a store and of a schedule that run
// under one lock while their owner is open, and things that end outside of the lock, because their end waits for
// callbacks that may wait for it. Private to this folder.
//
// Thread-safety: any thread.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace muster::store {

class Guarded : public std::enable_shared_from_this<Guarded> {
 public:
  virtual ~Guarded() = default;

  // After it no callback runs; it waits for one that runs on another thread.
  void Close() {
    CloseAfter([] {});
  }

 protected:
  // Retires what the state holds. Under the lock.
  virtual void Closed() = 0;

  // Close, with `last` as the last thing under the lock; not if it is closed already.
  template <class Last>
  void CloseAfter(Last last) {
    RunLocked([&] {
      last();
      open_ = false;
      Closed();
    });
  }

  // A callback that runs `action` under the lock, if the owner is open then.
  template <class Action>
  auto Callback(Action action) {
    return [self = shared_from_this(), action = std::move(action)](auto&&... arguments) mutable {
      self->RunLocked([&] { action(std::forward<decltype(arguments)>(arguments)...); });
    };
  }
  template <class Action>
  void RunLocked(Action action) {
    std::vector<std::shared_ptr<void>> ending;
    const std::lock_guard lock(mu_);
    if (open_) action();
    ending.swap(retired_);
  }

  // Ends `thing`, a unique_ptr, when the lock is released. Under the lock.
  template <class Thing>
  void Retire(std::unique_ptr<Thing>& thing) {
    if (thing != nullptr) retired_.push_back(std::shared_ptr<Thing>(std::move(thing)));
  }

 private:
  std::mutex mu_;
  bool open_ = true;                            // guarded by mu_
  std::vector<std::shared_ptr<void>> retired_;  // guarded by mu_
};

}  // namespace muster::store
