// SimHost: runs a core in the simulator. The twin of host::ThreadHost: the same Loop, with the kernel's queue for a
// thread, a Disk model for the file, and the world's closures for clients and network.
//
// A process lives, crashes and lives again. Every life has a number; what was scheduled for an earlier life finds
// nobody home. Each step's event and effects are noted in the kernel's log.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/codec.h"
#include "base/probe.h"
#include "contract/core.h"
#include "host/journal.h"
#include "host/loop.h"
#include "sim/disk.h"
#include "sim/kernel.h"

namespace muster::sim {

template <contract::Core C>
class SimHost final : private host::Loop<C>::Port {
 public:
  using Event = typename C::Event;
  using Effect = typename C::Effect;
  using Call = typename C::Call;
  using CallDone = typename C::CallDone;

  // What the world does with what the core wants. `life` tells lives of the process apart.
  struct World {
    std::function<C(const contract::Recovered&)> make_core;
    std::function<void(uint64_t life, const Call&)> start_call;
    std::function<void(uint64_t life, const Effect&)> emit;
    // If given: the core has stepped, and nothing of what it wants has been done yet.
    std::function<void(uint64_t life, const Event&, std::span<const Effect>)> stepped = {};
    // If given: the run has failed already, so the core is not asked for its invariants any more.
    std::function<bool()> broken = {};
  };

  SimHost(Kernel& kernel, Disk& disk, World world) : kernel_(kernel), disk_(disk), world_(std::move(world)) {}
  SimHost(const SimHost&) = delete;
  SimHost& operator=(const SimHost&) = delete;

  bool alive() const { return loop_ != nullptr; }
  uint64_t life() const { return life_; }
  const C& core() const { return loop_->core(); }
  // Every step of this process from its next start on is written there.
  void SetJournal(host::JournalWriter* journal) { journal_ = journal; }

  void Start() {
    MUSTER_CHECK(!alive(), "a process starts once per life");
    ++life_;
    typename host::Loop<C>::Port& port = *this;
    loop_ = std::make_unique<host::Loop<C>>(world_.make_core(disk_.durable()), port);
    if (journal_ != nullptr) journal_->StartSegment(loop_->core().Save());
    RunSoon();
  }
  // The power goes: memory, open calls and unsynced writes are gone.
  void Crash() {
    MUSTER_CHECK(alive(), "only a living process crashes");
    loop_.reset();
    run_at_.reset();
    disk_.Crash();
  }

  // Dropped if nobody is home.
  void Post(Event event) {
    if (!alive()) return;
    loop_->Post(std::move(event));
    RunSoon();
  }
  // An answer to a call made by that life of the process.
  void Complete(uint64_t life, CallDone done) {
    if (!alive() || life != life_) {
      PROBE("sim.reply_to_the_dead");
      return;
    }
    loop_->Complete(std::move(done));
    RunSoon();
  }

 private:
  // A step may end this life (a closure of the world crashes it), so it never runs inside another step.
  void RunSoon() { RunAt(kernel_.now().mono); }
  void RunAt(MonoTime when) {
    if (run_at_ && *run_at_ <= when) return;
    run_at_ = when;
    kernel_.At(when, [this, life = life_, when] {
      if (alive() && life == life_ && run_at_ == when) Run();
    });
  }
  void Run() {
    run_at_.reset();
    loop_->Run(kernel_.now());
    if (!world_.broken || !world_.broken()) loop_->core().CheckInvariants();
    if (loop_->HasPosted()) RunSoon();
    if (const auto next = loop_->NextRun()) RunAt(*next);
  }

  void StartPersist(contract::Persist batch) override {
    disk_.Write(std::move(batch), [this, life = life_] {
      if (!alive() || life != life_) return;
      loop_->PersistDone();
      RunSoon();
    });
  }
  void StartCall(const Call& call) override { world_.start_call(life_, call); }
  void Emit(const Effect& effect) override { world_.emit(life_, effect); }
  void BeforeStep(Now now, const Event& event) override {
    const std::string bytes = codec::ToBytes(event);
    kernel_.Note(bytes);
    if (journal_ != nullptr) journal_->BeginStep(now, bytes);
    event_ = &event;
  }
  void AfterStep(std::span<const Effect> effects) override {
    const uint64_t digest = codec::Digest(effects);
    kernel_.Note(digest);
    if (journal_ != nullptr) journal_->EndStep(digest);
    if (world_.stepped) world_.stepped(life_, *event_, effects);
  }

  Kernel& kernel_;
  Disk& disk_;
  const World world_;
  host::JournalWriter* journal_ = nullptr;
  uint64_t life_ = 0;
  std::unique_ptr<host::Loop<C>> loop_;  // none while dead
  std::optional<MonoTime> run_at_;       // when the next Run is scheduled
  const Event* event_ = nullptr;         // of the step under way
};

}  // namespace muster::sim
