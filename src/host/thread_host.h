// ThreadHost: runs a core in production, on a thread of its own, with a second one that waits for the disk.
//
// Thread-safety: Post, Complete, View, persist_status and Stop may be called from any thread. Shell functions are
// called on the loop thread and must not block: they hand work to whoever does it.
//
// When the disk refuses a batch it is tried again, with growing pauses, and everything behind it waits; meanwhile
// persist_status() says why, and servers refuse new requests with it. Only what the shell calls a read does not wait.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/codec.h"
#include "base/log.h"
#include "base/status.h"
#include "contract/core.h"
#include "host/journal.h"
#include "host/loop.h"
#include "host/persist.h"

namespace muster::host {

// Whether an event waits for those posted before it. An order of an operator need not.
enum class Turn : uint8_t { kInOrder, kFirst };

template <contract::Core C>
class ThreadHost final : private Loop<C>::Port {
 public:
  using Event = typename C::Event;
  using Effect = typename C::Effect;
  using Call = typename C::Call;
  using CallDone = typename C::CallDone;
  using Snapshot = typename C::Snapshot;

  class Shell {
   public:
    virtual ~Shell() = default;
    // Start the call; bring its outcome through ThreadHost::Complete.
    virtual void StartCall(const Call& call) = 0;
    virtual void Emit(const Effect& effect) = 0;
    // A step has been taken and took so long; none of its effects has been carried out.
    virtual void Stepped(std::span<const Effect> effects, Duration took) {
      static_cast<void>(effects);
      static_cast<void>(took);
    }
    // Whether the effect only tells somebody what the core knows: it is carried out also while state cannot be stored.
    virtual bool IsRead(const Effect& effect) const {
      static_cast<void>(effect);
      return false;
    }
  };

  struct Options {
    const Clock& clock;
    PersistBackend& persist;
    JournalWriter* journal = nullptr;  // none: no journal
  };

  // Everything referred to must outlive the host.
  ThreadHost(C core, Shell& shell, Options options)
      : shell_(shell), options_(options), loop_(std::move(core), *this), view_(loop_.core().View()) {}
  ~ThreadHost() override { Stop(); }
  ThreadHost(const ThreadHost&) = delete;
  ThreadHost& operator=(const ThreadHost&) = delete;

  // Begins the journal and steps the core from here on, through what was posted before too. Once, and not after Stop.
  // An error if the journal cannot be begun: nothing runs then.
  Status Start() {
    if (options_.journal != nullptr) {
      options_.journal->StartSegment(loop_.core().Save());
      MUSTER_RETURN_IF_ERROR(options_.journal->status());
    }
    const std::lock_guard joining(join_mu_);
    MUSTER_CHECK(!loop_thread_.joinable(), "a host starts once");
    {
      const std::lock_guard lock(mu_);
      MUSTER_CHECK(!stopping_, "a stopped host does not start");
    }
    persist_thread_ = std::thread([this] { RunPersist(); });
    loop_thread_ = std::thread([this] { RunLoop(); });
    return {};
  }

  // False once the host is stopping: the event was not taken. `until_taken` is let go, on whatever thread, when the
  // event was stepped or will not be: a poster that may not flood the mailbox waits for it.
  bool Post(Event event, const std::shared_ptr<void>& until_taken = nullptr, Turn turn = Turn::kInOrder) {
    {
      const std::lock_guard lock(mu_);
      if (stopping_) return false;
      Item item{.event = std::move(event), .completes_call = false, .until_taken = until_taken};
      (turn == Turn::kFirst ? urgent_ : mailbox_).push_back(std::move(item));
    }
    loop_wakes_.notify_one();
    return true;
  }
  void Complete(CallDone done) {
    {
      const std::lock_guard lock(mu_);
      if (stopping_) return;
      mailbox_.push_back({.event = Event(std::move(done)), .completes_call = true, .until_taken = nullptr});
    }
    loop_wakes_.notify_one();
  }

  // The core as it was after some recent step; what it shows may not be durable yet.
  std::shared_ptr<const Snapshot> View() const {
    const std::lock_guard lock(mu_);
    return view_;
  }
  // OK, or why the newest batch could not be stored yet.
  Status persist_status() const {
    const std::lock_guard lock(mu_);
    return persist_status_;
  }

  // Steps through what was posted, waits for the batch that is being stored, and ends both threads. Idempotent; a host
  // that was never started drops what was posted.
  void Stop() {
    {
      const std::lock_guard lock(mu_);
      stopping_ = true;
    }
    loop_wakes_.notify_all();
    const std::lock_guard joining(join_mu_);
    if (loop_thread_.joinable()) loop_thread_.join();
    {
      const std::lock_guard lock(mu_);
      persist_ends_ = true;
    }
    persist_wakes_.notify_all();
    if (persist_thread_.joinable()) persist_thread_.join();
  }

 private:
  struct Item {
    Event event;
    bool completes_call = false;
    std::shared_ptr<void> until_taken;
  };
  static constexpr Duration kFirstPause = 50ms;
  static constexpr Duration kLongestPause = 2s;

  void RunLoop() {
    std::vector<Item> items;
    while (true) {
      bool last_round = false;
      bool persist_done = false;
      {
        std::unique_lock lock(mu_);
        WaitForWork(lock);
        TakeRound(items);
        persist_done = std::exchange(persist_done_, false);
        persist_failed_ = false;
        last_round = stopping_ && items.empty() && !persist_done;
        // A disk that refuses to store would hold the end back for ever: what waits behind it was never promised.
        if (last_round && (loop_.Settled() || !persist_status_.ok())) return;
      }
      if (persist_done) loop_.PersistDone();
      for (Item& item : items) {
        if (item.completes_call) {
          loop_.Complete(std::get<CallDone>(std::move(item.event)));
        } else {
          loop_.Post(std::move(item.event));
        }
      }
      loop_.Run(options_.clock.Read());
      items.clear();
      if (!persist_status().ok()) loop_.ReleaseReads(options_.clock.Read());
      if (options_.journal != nullptr) options_.journal->Flush();
      ReportJournal();
      auto view = loop_.core().View();
      const std::lock_guard lock(mu_);
      view_ = std::move(view);
    }
  }

  // Under mu_. No more at once than keeps what is urgent waiting for a moment, and room for the rest.
  void TakeRound(std::vector<Item>& items) {
    constexpr size_t kMostUrgent = 512;
    constexpr size_t kMostOfARound = 1'024;
    const auto take = [&](std::deque<Item>& lane, size_t most) {
      for (; !lane.empty() && items.size() < most; lane.pop_front()) items.push_back(std::move(lane.front()));
    };
    take(urgent_, kMostUrgent);
    take(mailbox_, kMostOfARound);
  }

  // Until something was posted, a batch was stored or refused, a timer is due, or the host stops.
  void WaitForWork(std::unique_lock<std::mutex>& lock) {
    const auto ready = [this] {
      return !mailbox_.empty() || !urgent_.empty() || persist_done_ || persist_failed_ ||
             (stopping_ && (loop_.Settled() || !persist_status_.ok()));
    };
    const std::optional<MonoTime> next = loop_.NextRun();
    if (!next || stopping_) {
      loop_wakes_.wait(lock, ready);
    } else if (const Duration left = *next - options_.clock.Read().mono; left > Duration::zero()) {
      loop_wakes_.wait_for(lock, std::min<Duration>(left, 1h), ready);
    }
  }

  void RunPersist() {
    std::unique_lock lock(mu_);
    while (true) {
      persist_wakes_.wait(lock, [this] { return batch_.has_value() || persist_ends_; });
      if (!batch_) return;
      const contract::Persist batch = *std::exchange(batch_, std::nullopt);
      for (Duration pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
        lock.unlock();
        Status status = options_.persist.Commit(batch);
        if (!status.ok()) log::Err("state cannot be stored, trying again", {{"error", status.ToString()}});
        lock.lock();
        persist_status_ = std::move(status);
        if (persist_status_.ok()) break;
        persist_failed_ = true;
        loop_wakes_.notify_one();
        persist_wakes_.wait_for(lock, pause, [this] { return persist_ends_; });
        if (persist_ends_) return;
      }
      persist_done_ = true;
      loop_wakes_.notify_one();
    }
  }

  void StartPersist(contract::Persist batch) override {
    {
      const std::lock_guard lock(mu_);
      batch_ = std::move(batch);
    }
    persist_wakes_.notify_one();
  }
  void StartCall(const Call& call) override { shell_.StartCall(call); }
  void Emit(const Effect& effect) override { shell_.Emit(effect); }
  bool IsRead(const Effect& effect) const override { return shell_.IsRead(effect); }
  bool Journaling() const { return options_.journal != nullptr && options_.journal->status().ok(); }
  void BeforeStep(Now now, const Event& event) override {
    if (Journaling()) options_.journal->BeginStep(now, codec::ToBytes(event));
    step_began_ = options_.clock.Read().mono;
  }
  void AfterStep(std::span<const Effect> effects) override {
    shell_.Stepped(effects, options_.clock.Read().mono - step_began_);
    if (!Journaling()) return;
    options_.journal->EndStep(codec::Digest(effects));
    if (options_.journal->full()) options_.journal->StartSegment(loop_.core().Save());
  }
  // The core runs on without its journal, but not in silence.
  void ReportJournal() {
    if (options_.journal == nullptr || options_.journal->status().ok() || journal_reported_) return;
    journal_reported_ = true;
    log::Err("journal stopped", {{"error", options_.journal->status().ToString()}});
  }

  // Set at construction.
  Shell& shell_;
  const Options options_;

  // Owned by the loop thread.
  Loop<C> loop_;
  bool journal_reported_ = false;
  MonoTime step_began_;

  mutable std::mutex mu_;
  std::condition_variable loop_wakes_;
  std::condition_variable persist_wakes_;
  std::deque<Item> mailbox_;                // guarded by mu_
  std::deque<Item> urgent_;                 // guarded by mu_: stepped before the mailbox
  bool stopping_ = false;                   // guarded by mu_
  bool persist_done_ = false;               // guarded by mu_: the batch is durable, the loop has not heard yet
  bool persist_failed_ = false;             // guarded by mu_: reads may pass now, and the loop has not looked yet
  bool persist_ends_ = false;               // guarded by mu_
  std::optional<contract::Persist> batch_;  // guarded by mu_: for the persist thread
  Status persist_status_;                   // guarded by mu_
  std::shared_ptr<const Snapshot> view_;    // guarded by mu_

  std::mutex join_mu_;  // one Start or Stop at a time handles the threads
  std::thread persist_thread_;
  std::thread loop_thread_;
};

}  // namespace muster::host
