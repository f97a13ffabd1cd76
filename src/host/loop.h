// Loop: runs one core by the rules of contract/core.h. The same code under a thread and under the simulator, so the
// barrier and the "one completion per call" that the simulator proves are those that ship.
//
// It is single-threaded and does nothing by itself: whoever drives it (ThreadHost, sim::SimHost) posts events, calls
// Run, and carries out what comes through the Port. Post may be called from inside the Port's functions.
//
// Invariants:
//   1. Effects reach the Port in the order the core produced them, over all steps, but for what ReleaseReads lets pass.
//   2. Nothing after a Persist reaches the Port before that Persist is durable, but for what ReleaseReads lets pass.
//   One
//      batch is in flight at a time; all Persists waiting when it starts go into it together.
//   3. Every call handed to the Port leads to exactly one CallDone step: the first of reply and deadline. Later
//      answers are dropped.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/probe.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/core.h"
#include "contract/effects.h"

namespace muster::host {

template <contract::Core C>
class Loop {
 public:
  using Event = typename C::Event;
  using Effect = typename C::Effect;
  using Call = typename C::Call;
  using CallDone = typename C::CallDone;

  class Port {
   public:
    virtual ~Port() = default;
    // Make the batch durable, then call PersistDone once. Failing is not an answer: try until it works or stop.
    virtual void StartPersist(contract::Persist batch) = 0;
    // Make the call, and bring its outcome through Complete, if it comes. Deadlines are the loop's business.
    virtual void StartCall(const Call& call) = 0;
    // Every other effect.
    virtual void Emit(const Effect& effect) = 0;
    // The core is about to step.
    virtual void BeforeStep(Now now, const Event& event) = 0;
    // It has stepped; none of these effects has been carried out.
    virtual void AfterStep(std::span<const Effect> effects) = 0;
    // Whether the effect only tells somebody what the core knows, and promises nothing.
    virtual bool IsRead(const Effect&) const { return false; }
  };

  // `port` must outlive the loop.
  Loop(C core, Port& port) : core_(std::move(core)), port_(port) {}

  void Post(Event event) { inbox_.push_back(std::move(event)); }
  // An answer to a call. Dropped if the call is not open (late, repeated, or of an earlier life).
  void Complete(CallDone done) {
    if (!EndCall(done.id)) {
      PROBE("host.late_reply");
      return;
    }
    inbox_.push_back(Event(std::move(done)));
  }
  // The batch given to StartPersist is durable.
  void PersistDone() {
    MUSTER_CHECK(in_flight_ > 0, "no batch is in flight");
    durable_ += in_flight_;
    in_flight_ = 0;
  }

  // Ends overdue calls, sends Wake if it is due, steps the core through everything posted, and releases every effect
  // that may go.
  void Run(Now now) {
    ExpireCalls(now);
    WakeIfDue(now);
    Release(now);
    while (!inbox_.empty()) {
      const Event event = std::move(inbox_.front());
      inbox_.pop_front();
      Step(event, now);
      Release(now);
    }
  }

  // While a batch cannot be stored: lets the answers pass that promise nothing. They may tell what is not durable yet.
  void ReleaseReads(Now now) {
    std::deque<Effect> reads;
    std::deque<Effect> others;
    for (Effect& effect : waiting_) (port_.IsRead(effect) ? reads : others).push_back(std::move(effect));
    waiting_ = std::move(others);
    for (const Effect& effect : reads) CarryOut(effect, now);
  }

  // When Run should be called next though nothing was posted. Nothing if it need not.
  std::optional<MonoTime> NextRun() const {
    std::optional<MonoTime> next = core_.NextWake();
    if (!deadlines_.empty() && (!next || deadlines_.begin()->first < *next)) next = deadlines_.begin()->first;
    return next;
  }
  bool HasPosted() const { return !inbox_.empty(); }
  // No effect waits for a batch.
  bool Settled() const { return waiting_.empty(); }
  const C& core() const { return core_; }

 private:
  void Step(const Event& event, Now now) {
    effects_.clear();
    port_.BeforeStep(now, event);
    CRASH_POINT("host.in_step");
    core_.Step(event, now, effects_);
    port_.AfterStep(effects_);
    CRASH_POINT("host.after_step");
    for (Effect& effect : effects_) {
      if (std::holds_alternative<contract::Persist>(effect)) ++persists_waiting_;
      waiting_.push_back(std::move(effect));
    }
  }

  void Release(Now now) {
    do {
      while (!waiting_.empty()) {
        if (std::holds_alternative<contract::Persist>(waiting_.front())) {
          if (durable_ == 0) break;
          --durable_;
          --persists_waiting_;
          waiting_.pop_front();
        } else {
          const Effect effect = std::move(waiting_.front());
          waiting_.pop_front();
          CarryOut(effect, now);
        }
      }
      StartBatch();
    } while (durable_ > 0);  // a port may finish a batch before StartPersist returns
  }

  void CarryOut(const Effect& effect, Now now) {
    if (const Call* call = std::get_if<Call>(&effect)) {
      OpenCall(*call, now);
      port_.StartCall(*call);
    } else {
      port_.Emit(effect);
    }
  }

  void StartBatch() {
    if (in_flight_ > 0 || persists_waiting_ == 0) return;
    contract::Persist batch;
    for (Effect& effect : waiting_) {
      auto* persist = std::get_if<contract::Persist>(&effect);
      if (persist == nullptr) continue;
      for (contract::Write& write : persist->writes) batch.writes.push_back(std::move(write));
      ++in_flight_;
    }
    port_.StartPersist(std::move(batch));
  }

  void OpenCall(const Call& call, Now now) {
    const MonoTime deadline = now.mono + call.timeout;
    const bool is_new = open_calls_.emplace(call.id, deadline).second;
    MUSTER_CHECK(is_new, "call id {} is already open", call.id);
    deadlines_.emplace(deadline, call.id);
  }
  bool EndCall(contract::CallId id) {
    const auto it = open_calls_.find(id);
    if (it == open_calls_.end()) return false;
    deadlines_.erase({it->second, id});
    open_calls_.erase(it);
    return true;
  }
  void ExpireCalls(Now now) {
    while (!deadlines_.empty() && deadlines_.begin()->first <= now.mono) {
      const contract::CallId id = deadlines_.begin()->second;
      EndCall(id);
      inbox_.push_back(CallDone{.id = id, .status = Status(Code::kDeadlineExceeded, "no answer in time")});
    }
  }
  void WakeIfDue(Now now) {
    if (const std::optional<MonoTime> wake = core_.NextWake(); wake && *wake <= now.mono) {
      inbox_.push_back(Event(contract::Wake{}));
    }
  }

  C core_;
  Port& port_;

  std::deque<Event> inbox_;
  std::vector<Effect> effects_;  // of the current step; kept for its capacity
  std::deque<Effect> waiting_;   // effects not carried out yet, in order
  size_t persists_waiting_ = 0;  // Persists in waiting_, durable ones included
  size_t in_flight_ = 0;         // how many of them, from the front, are in the batch given to the port
  size_t durable_ = 0;           // how many of them, from the front, are durable
  std::map<contract::CallId, MonoTime> open_calls_;
  std::set<std::pair<MonoTime, contract::CallId>> deadlines_;  // of open_calls_
};

}  // namespace muster::host
