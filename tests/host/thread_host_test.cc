// ThreadHost with the counter core, real threads, a real SQLite file and a real clock.
#include "host/thread_host.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <deque>
#include <filesystem>
#include <optional>

#include "base/probe.h"
#include "core/counter/counter.h"
#include "host/replay.h"
#include "host/temp_dir_for_test.h"

namespace muster::host {
namespace {

using counter::Add;
using counter::Answer;
using counter::Core;
using Host = ThreadHost<Core>;

class RealClock final : public Clock {
 public:
  Now Read() const override {
    return {.mono = MonoTime(std::chrono::steady_clock::now().time_since_epoch()),
            .wall = WallTime(std::chrono::system_clock::now().time_since_epoch())};
  }
};

// Collects what the core wants; a test waits for it with a deadline.
class RecordingShell final : public Host::Shell {
 public:
  std::optional<uint64_t> read;  // the request whose answer is one

  bool IsRead(const Core::Effect& effect) const override {
    const auto* answer = std::get_if<Answer>(&effect);
    return answer != nullptr && answer->request == read;
  }
  void StartCall(const Core::Call& call) override { Push(call); }
  void Emit(const Core::Effect& effect) override { Push(effect); }

  Core::Effect Take() {
    std::unique_lock lock(mu_);
    if (!arrived_.wait_for(lock, 20s, [this] { return !effects_.empty(); })) {
      ADD_FAILURE() << "no effect within 20 s";
      return Answer{};
    }
    Core::Effect effect = std::move(effects_.front());
    effects_.pop_front();
    return effect;
  }
  size_t waiting() {
    const std::lock_guard lock(mu_);
    return effects_.size();
  }

 private:
  void Push(Core::Effect effect) {
    {
      const std::lock_guard lock(mu_);
      effects_.push_back(std::move(effect));
    }
    arrived_.notify_all();
  }
  std::mutex mu_;
  std::condition_variable arrived_;
  std::deque<Core::Effect> effects_;  // guarded by mu_
};

// Fails every commit until told otherwise, and tells how often it was asked. A slow one has no answer at first.
class FailingPersist final : public PersistBackend {
 public:
  explicit FailingPersist(bool slow = false) : slow_(slow) {}
  Status Commit(const contract::Persist&) override {
    std::unique_lock lock(mu_);
    ++commits_;
    asked_.notify_all();
    asked_.wait(lock, [this] { return !slow_; });
    return works_ ? Status() : Status(Code::kResourceExhausted, "disk full");
  }
  Result<contract::Recovered> Recover() override { return contract::Recovered{}; }
  void Repair() {
    const std::lock_guard lock(mu_);
    works_ = true;
  }
  void Answer() {
    const std::lock_guard lock(mu_);
    slow_ = false;
    asked_.notify_all();
  }
  void WaitForCommits(int count) {
    std::unique_lock lock(mu_);
    EXPECT_TRUE(asked_.wait_for(lock, 20s, [&] { return commits_ >= count; }));
  }

 private:
  std::mutex mu_;
  std::condition_variable asked_;
  bool slow_;           // guarded by mu_
  bool works_ = false;  // guarded by mu_
  int commits_ = 0;     // guarded by mu_
};

Core MakeCore(PersistBackend& persist, counter::Config config = {}) {
  return *Core::Recover(std::move(config), *persist.Recover());
}

TEST(ThreadHost, AnswersAreDurable) {
  const TempDir dir;
  const RealClock clock;
  for (uint64_t life = 0; life < 3; ++life) {
    auto persist = *SqlitePersist::Open(dir.File("state.db"), "counter");
    RecordingShell shell;
    Host host(MakeCore(*persist), shell, {.clock = clock, .persist = *persist});
    ASSERT_EQ(host.Start(), Status());
    for (uint64_t i = 1; i <= 20; ++i) {
      EXPECT_TRUE(host.Post(Add{.request = i, .client = "a", .sequence = life * 20 + i, .amount = 1}));
    }
    for (uint64_t i = 1; i <= 20; ++i) {
      const auto answer = std::get<Answer>(shell.Take());
      EXPECT_EQ(answer.request, i) << "in order";
      EXPECT_EQ(answer.value, static_cast<int64_t>(life * 20 + i)) << answer.status.ToString();
    }
    host.Stop();
    host.Stop();
    EXPECT_EQ(host.View()->value, static_cast<int64_t>(life * 20 + 20));
    EXPECT_FALSE(host.Post(Add{})) << "a stopped host takes nothing";
  }
}

TEST(ThreadHost, ManyThreadsMayPost) {
  const TempDir dir;
  const RealClock clock;
  auto persist = *SqlitePersist::Open(dir.File("state.db"), "counter");
  RecordingShell shell;
  Host host(MakeCore(*persist), shell, {.clock = clock, .persist = *persist});
  ASSERT_EQ(host.Start(), Status());
  constexpr uint64_t kThreads = 8;
  constexpr uint64_t kAdds = 200;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 1; i <= kAdds; ++i) {
        host.Post(Add{.client = "client-" + std::to_string(t), .sequence = i, .amount = 1});
        (void)host.View();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint64_t i = 0; i < kThreads * kAdds; ++i) EXPECT_TRUE(std::get<Answer>(shell.Take()).status.ok());
  host.Stop();
  EXPECT_EQ(host.View()->value, static_cast<int64_t>(kThreads * kAdds));
}

TEST(ThreadHost, WhatIsUrgentIsSteppedFirst) {
  constexpr uint64_t kOthers = 3'000;
  const TempDir dir;
  const RealClock clock;
  auto persist = *SqlitePersist::Open(dir.File("state.db"), "counter");
  RecordingShell shell;
  Host host(MakeCore(*persist), shell, {.clock = clock, .persist = *persist});
  for (uint64_t i = 1; i <= kOthers; ++i) {
    host.Post(Add{.request = i, .client = "a", .sequence = i, .amount = 1});
  }
  host.Post(Add{.request = 7'000, .client = "b", .sequence = 1, .amount = 1}, nullptr, Turn::kFirst);
  host.Post(Add{.request = 7'001, .client = "b", .sequence = 2, .amount = 1}, nullptr, Turn::kFirst);
  ASSERT_EQ(host.Start(), Status());
  EXPECT_EQ(std::get<Answer>(shell.Take()).request, 7'000u);
  EXPECT_EQ(std::get<Answer>(shell.Take()).request, 7'001u);
  for (uint64_t i = 1; i <= kOthers; ++i) EXPECT_EQ(std::get<Answer>(shell.Take()).request, i) << "in order";
  host.Stop();
}

TEST(ThreadHost, WhatIsUrgentLeavesRoomForTheRest) {
  constexpr uint64_t kUrgent = 3'000;
  const TempDir dir;
  const RealClock clock;
  auto persist = *SqlitePersist::Open(dir.File("state.db"), "counter");
  RecordingShell shell;
  Host host(MakeCore(*persist), shell, {.clock = clock, .persist = *persist});
  for (uint64_t i = 1; i <= kUrgent; ++i) {
    host.Post(Add{.request = i, .client = "a", .sequence = i, .amount = 1}, nullptr, Turn::kFirst);
  }
  host.Post(Add{.request = 7'000, .client = "b", .sequence = 1, .amount = 1});
  ASSERT_EQ(host.Start(), Status());
  uint64_t before = 0;
  while (before < kUrgent && std::get<Answer>(shell.Take()).request != 7'000) ++before;
  EXPECT_EQ(before, 512u);
  host.Stop();
}

TEST(ThreadHost, APosterHearsThatItsEventWasTaken) {
  const TempDir dir;
  const RealClock clock;
  auto persist = *SqlitePersist::Open(dir.File("state.db"), "counter");
  RecordingShell shell;
  std::weak_ptr<void> untaken;
  const auto post = [&](Host& host, uint64_t sequence) {
    const auto token = std::make_shared<int>(0);
    untaken = token;
    return host.Post(Add{.request = sequence, .client = "a", .sequence = sequence, .amount = 1}, token);
  };
  {
    Host host(MakeCore(*persist), shell, {.clock = clock, .persist = *persist});
    EXPECT_TRUE(post(host, 1));
    EXPECT_FALSE(untaken.expired()) << "it is not stepped yet";
    ASSERT_EQ(host.Start(), Status());
    shell.Take();
    host.Stop();
    EXPECT_TRUE(untaken.expired());
    EXPECT_FALSE(post(host, 2));
    EXPECT_TRUE(untaken.expired()) << "it will not be stepped";
  }
  {
    Host host(MakeCore(*persist), shell, {.clock = clock, .persist = *persist});
    EXPECT_TRUE(post(host, 3));
  }
  EXPECT_TRUE(untaken.expired());
}

TEST(ThreadHost, CallsEndByReplyOrDeadline) {
  const TempDir dir;
  const RealClock clock;
  auto persist = *SqlitePersist::Open(dir.File("state.db"), "counter");
  RecordingShell shell;
  Host host(MakeCore(*persist, {.peer = "p", .call_timeout = 20ms, .retry_after = 1ms}), shell,
            {.clock = clock, .persist = *persist});
  ASSERT_EQ(host.Start(), Status());
  host.Post(Add{.client = "a", .sequence = 1, .amount = 3});
  EXPECT_TRUE(std::get<Answer>(shell.Take()).status.ok());
  const auto first = std::get<Core::Call>(shell.Take());
  const auto second = std::get<Core::Call>(shell.Take());
  EXPECT_GT(second.id, first.id) << "the first one timed out and the timer brought a second";
  host.Complete({.id = first.id, .reply = counter::MirrorReply{.version = 99}});
  // Whichever call is open when the right answer comes ends the retries.
  for (auto id = second.id; host.View()->mirrored_version != 1;) {
    host.Complete({.id = id, .reply = counter::MirrorReply{.version = 1}});
    if (shell.waiting() > 0) id = std::get<Core::Call>(shell.Take()).id;
    std::this_thread::yield();
  }
}

TEST(ThreadHost, ADiskThatRefusesHoldsEverythingBackAndIsTriedAgain) {
  const RealClock clock;
  FailingPersist persist;
  RecordingShell shell;
  Host host(MakeCore(persist), shell, {.clock = clock, .persist = persist});
  ASSERT_EQ(host.Start(), Status());
  host.Post(Add{.request = 1, .client = "a", .sequence = 1, .amount = 3});
  persist.WaitForCommits(2);
  EXPECT_EQ(host.persist_status().code(), Code::kResourceExhausted);
  EXPECT_EQ(shell.waiting(), 0u) << "not stored, not answered";
  persist.Repair();
  EXPECT_EQ(std::get<Answer>(shell.Take()).value, 3);
  EXPECT_TRUE(host.persist_status().ok());
}

// It was asked when nobody knew that the disk is full.
TEST(ThreadHost, AReadPassesAsSoonAsTheDiskRefuses) {
  const RealClock clock;
  FailingPersist persist(true);
  RecordingShell shell;
  shell.read = 2;
  Host host(MakeCore(persist), shell, {.clock = clock, .persist = persist});
  ASSERT_EQ(host.Start(), Status());
  host.Post(Add{.request = 1, .client = "a", .sequence = 1, .amount = 3});
  persist.WaitForCommits(1);
  host.Post(Add{.request = 2, .client = "a", .sequence = 2, .amount = 1});
  while (host.View()->value != 4) std::this_thread::yield();
  EXPECT_EQ(shell.waiting(), 0u);
  persist.Answer();
  EXPECT_EQ(std::get<Answer>(shell.Take()).request, 2u);
  host.Stop();
}

TEST(ThreadHost, StopsThoughTheDiskRefuses) {
  const RealClock clock;
  FailingPersist persist;
  RecordingShell shell;
  Host host(MakeCore(persist), shell, {.clock = clock, .persist = persist});
  ASSERT_EQ(host.Start(), Status());
  host.Post(Add{.request = 1, .client = "a", .sequence = 1, .amount = 3});
  persist.WaitForCommits(1);
  host.Stop();
  EXPECT_EQ(shell.waiting(), 0u);
}

TEST(ThreadHost, ItsJournalReplays) {
  const TempDir dir;
  const RealClock clock;
  auto persist = *SqlitePersist::Open(dir.File("state.db"), "counter");
  auto journal = *JournalWriter::Open(dir.File("journal"), "counter", {.segment_bytes = 500, .keep_segments = 4});
  RecordingShell shell;
  Host host(MakeCore(*persist), shell, {.clock = clock, .persist = *persist, .journal = journal.get()});
  ASSERT_EQ(host.Start(), Status());
  for (uint64_t i = 1; i <= 100; ++i) host.Post(Add{.client = "a", .sequence = i, .amount = 1});
  for (uint64_t i = 1; i <= 100; ++i) shell.Take();
  host.Stop();
  const auto report = Replay<Core>(dir.File("journal"));
  ASSERT_TRUE(report.has_value()) << report.error().ToString();
  EXPECT_EQ(report->divergence, std::nullopt);
  EXPECT_EQ(report->segments, 4u);
  EXPECT_GT(report->steps, 20u);
  EXPECT_EQ(report->torn, 0u);
}

TEST(ThreadHost, NothingRunsBeforeTheStart) {
  const TempDir dir;
  const RealClock clock;
  auto persist = *SqlitePersist::Open(dir.File("state.db"), "counter");
  auto journal = *JournalWriter::Open(dir.File("journal"), "counter");
  RecordingShell shell;
  const Host::Options options{.clock = clock, .persist = *persist, .journal = journal.get()};
  {
    Host never(MakeCore(*persist), shell, options);
    EXPECT_TRUE(never.Post(Add{.request = 1, .client = "a", .sequence = 1, .amount = 3}));
  }
  EXPECT_EQ(shell.waiting(), 0u);
  EXPECT_EQ(ListSegments(dir.File("journal")).error().code(), Code::kNotFound);
  Host host(MakeCore(*persist), shell, options);
  EXPECT_TRUE(host.Post(Add{.request = 2, .client = "a", .sequence = 1, .amount = 3}));
  ASSERT_EQ(host.Start(), Status());
  EXPECT_EQ(std::get<Answer>(shell.Take()).request, 2u) << "what was posted before counts";
}

TEST(ThreadHost, AJournalThatCannotBeginStopsTheStart) {
  const TempDir dir;
  const RealClock clock;
  FailingPersist persist;
  auto journal = *JournalWriter::Open(dir.File("journal"), "counter");
  std::filesystem::remove_all(dir.File("journal"));
  RecordingShell shell;
  Host host(MakeCore(persist), shell, {.clock = clock, .persist = persist, .journal = journal.get()});
  EXPECT_EQ(host.Start().code(), Code::kUnavailable);
  host.Stop();
}

// Adds until the process dies at the crash point, then replays its journal.
Result<ReplayReport> AddAndDieAt(const std::string& crash_point, const TempDir& dir) {
  const pid_t child = ::fork();
  if (child == 0) {
    const RealClock clock;
    auto persist = *SqlitePersist::Open(dir.File(crash_point + ".db"), "counter");
    auto journal = *JournalWriter::Open(dir.File(crash_point), "counter");
    RecordingShell shell;
    Host host(MakeCore(*persist), shell, {.clock = clock, .persist = *persist, .journal = journal.get()});
    if (!faults::EnableCrashPoint(crash_point + ":3").ok() || !host.Start().ok()) ::_exit(1);
    for (uint64_t i = 1; i <= 5; ++i) host.Post(Add{.client = "a", .sequence = i, .amount = 1});
    host.Stop();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  return Replay<Core>(dir.File(crash_point));
}

TEST(ThreadHost, TheStepThatKillsIsInTheJournal) {
  if (!faults::Compiled()) FAIL() << "the tests run on a build with MUSTER_FAULTS";
  const TempDir dir;
  for (const char* crash_point : {"host.in_step", "host.after_step"}) {
    const auto report = AddAndDieAt(crash_point, dir);
    ASSERT_TRUE(report.has_value()) << report.error().ToString();
    EXPECT_EQ(report->steps, 3u) << crash_point;
    EXPECT_EQ(report->unfinished, 1u) << crash_point;
    EXPECT_EQ(report->divergence, std::nullopt);
  }
}

}  // namespace
}  // namespace muster::host
