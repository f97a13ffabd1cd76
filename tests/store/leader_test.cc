// A core that holds a copy of a range, leads, and commits as the leader: what a scheduler's shell is made of, on a
// thread with a file, and twice in the simulator with every fault.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/codec.h"
#include "contract/core.h"
#include "contract/store_view.h"
#include "host/persist.h"
#include "host/sqlite_store.h"
#include "host/system_clock.h"
#include "host/temp_dir_for_test.h"
#include "host/thread_host.h"
#include "host/thread_schedule.h"
#include "sim/kernel_schedule.h"
#include "sim/sim_host.h"
#include "store/blocking.h"
#include "store/candidate.h"
#include "store/carry_out.h"
#include "store/memory_store.h"
#include "store/mirror.h"

namespace muster::store {

inline constexpr int64_t kTarget = 40;
inline const std::string kTallyKey = "/tally/n";

// Counts up to the target in the store, one commit for each number, while it leads.
class Tally {
 public:
  struct Nothing {
    MUSTER_FIELDS(Nothing)
  };
  struct Snapshot {
    int64_t number = 0;
    MUSTER_FIELDS(Snapshot, number)
  };
  using Call = contract::Call<Nothing>;
  using CallDone = contract::CallDone<Nothing>;
  using Event =
      std::variant<contract::Wake, CallDone, contract::CommitDone, contract::RowsListed, contract::RowsChanged,
                   contract::StoreLost, contract::StoreBack, contract::Leading, contract::Following>;
  using Effect = std::variant<contract::Persist, Call, contract::Commit>;
  static constexpr std::string_view kName = "tally";

  void Step(const Event& event, Now now, std::vector<Effect>& out) {
    std::visit([&](const auto& e) { Take(e, now); }, event);
    if (retry_ && now.mono >= *retry_) retry_.reset();
    const bool acts = listed_ && !lost_ && leading_ && now.mono < leading_->until && open_ == 0 && !retry_;
    if (!acts || number() == kTarget) return;
    open_ = ++last_;
    out.emplace_back(contract::Commit{.id = open_,
                                      .transaction = {{contract::IfUnchanged(leading_->key.key, leading_->key.modified),
                                                       contract::IfUnchanged(kTallyKey, row_.modified)},
                                                      {contract::Put(kTallyKey, std::to_string(number() + 1))}},
                                      .timeout = 1s});
  }
  std::optional<MonoTime> NextWake() const { return retry_; }
  std::shared_ptr<const Snapshot> View() const { return std::make_shared<Snapshot>(Snapshot{number()}); }
  void CheckInvariants() const {}
  std::string Save() const { return codec::ToBytes(Snapshot{number()}); }
  static std::optional<Tally> Load(std::string_view) { return std::nullopt; }

 private:
  int64_t number() const { return row_.value.empty() ? 0 : std::stoll(row_.value); }

  void Take(const contract::Wake&, Now) {}
  void Take(const CallDone&, Now) {}
  // However it ended, the copy says what is next. A moment later: it may not be here yet.
  void Take(const contract::CommitDone& done, Now now) {
    if (done.id != open_) return;
    open_ = 0;
    retry_ = now.mono + 50ms;
  }
  void Take(const contract::RowsListed& listed, Now) {
    listed_ = true;
    if (!listed.rows.empty()) row_ = listed.rows.front();
  }
  void Take(const contract::RowsChanged& changed, Now) { row_ = changed.changes.back().now; }
  void Take(const contract::StoreLost&, Now) { lost_ = true; }
  void Take(const contract::StoreBack&, Now) { lost_ = false; }
  void Take(const contract::Leading& leading, Now) { leading_ = leading; }
  void Take(const contract::Following&, Now) { leading_.reset(); }

  contract::KeyValue row_;  // of the tally
  bool listed_ = false;
  bool lost_ = false;
  std::optional<contract::Leading> leading_;
  contract::CallId open_ = 0;  // the commit under way
  contract::CallId last_ = 0;
  std::optional<MonoTime> retry_;
};

namespace {

template <class Host>
auto PosterTo(Host& host) {
  return [&host](auto event) { std::visit([&](auto& e) { host.Post(std::move(e)); }, event); };
}

std::vector<std::string> ValuesOf(WatchLog& log) {
  std::vector<std::string> values;
  for (const contract::Change& change : log.changes()) values.push_back(change.now.value);
  return values;
}

std::vector<std::string> Counted() {
  std::vector<std::string> values;
  for (int64_t i = 1; i <= kTarget; ++i) values.push_back(std::to_string(i));
  return values;
}

TEST(LeadingCore, OnAThreadCommitsAsTheLeader) {
  const host::TempDir dir;
  const auto opened = host::OpenSqliteStore(dir.File("store"));
  ASSERT_TRUE(opened.has_value());
  Store& store = **opened;
  const auto persist = host::SqlitePersist::Open(dir.File("state"), "tally");
  ASSERT_TRUE(persist.has_value());
  const host::SystemClock clock;
  struct Shell final : host::ThreadHost<Tally>::Shell {
    void StartCall(const Tally::Call&) override {}
    void Emit(const Tally::Effect& effect) override {
      CarryOut(*store, std::get<contract::Commit>(effect),
               [this](contract::CommitDone done) { host->Post(std::move(done)); });
    }
    Store* store = nullptr;
    host::ThreadHost<Tally>* host = nullptr;
  } shell;
  host::ThreadHost<Tally> host(Tally(), shell, {.clock = clock, .persist = **persist});
  shell.store = &store;
  shell.host = &host;
  WatchLog log(store, contract::KeysUnder("/tally/"), 1);
  ASSERT_EQ(host.Start(), Status());
  host::ThreadSchedule schedule;
  const Mirror mirror(store, schedule, {.range = contract::KeysUnder("/tally/")}, PosterTo(host));
  const Candidate candidate(store, schedule, {.key = "/leader", .value = "a"}, PosterTo(host));
  ASSERT_TRUE(log.WaitUntil([](const auto& batches) {
    return !batches.empty() && batches.back().changes.back().now.value == std::to_string(kTarget);
  }));
  EXPECT_EQ(ValuesOf(log), Counted());
  host.Stop();
}

// One process of the simulation: the core, its copy and its candidacy, which go with it.
class Process {
 public:
  Process(sim::Kernel& kernel, Schedule& schedule, Store& store, std::string name)
      : schedule_(schedule), store_(store), name_(std::move(name)), disk_(kernel, {}, 1) {
    host_ = std::make_unique<sim::SimHost<Tally>>(
        kernel, disk_,
        sim::SimHost<Tally>::World{.make_core = [](const contract::Recovered&) { return Tally(); },
                                   .start_call = [](uint64_t, const Tally::Call&) {},
                                   .emit = [this](uint64_t life, const Tally::Effect& effect) { Emit(life, effect); }});
  }
  void Start() {
    host_->Start();
    mirror_ = std::make_unique<Mirror>(store_, schedule_, MirrorOptions{.range = contract::KeysUnder("/tally/")},
                                       PosterTo(*host_));
    candidate_ = std::make_unique<Candidate>(store_, schedule_, CandidateOptions{.key = "/leader", .value = name_},
                                             PosterTo(*host_));
  }
  void Crash() {
    candidate_.reset();
    mirror_.reset();
    host_->Crash();
  }
  int64_t number() const { return host_->core().View()->number; }

 private:
  void Emit(uint64_t life, const Tally::Effect& effect) {
    CarryOut(store_, std::get<contract::Commit>(effect), [this, life](contract::CommitDone done) {
      if (host_->alive() && host_->life() == life) host_->Post(std::move(done));
    });
  }

  Schedule& schedule_;
  Store& store_;
  const std::string name_;
  sim::Disk disk_;
  std::unique_ptr<sim::SimHost<Tally>> host_;
  std::unique_ptr<Mirror> mirror_;
  std::unique_ptr<Candidate> candidate_;
};

// Two processes that crash in turn; the hash of everything that happened.
uint64_t RunSeed(uint64_t seed) {
  sim::Kernel kernel(seed);
  sim::KernelSchedule schedule(kernel);
  MemoryStore store(schedule,
                    {.min_delay = 1ms,
                     .max_delay = 20ms,
                     .slow_per_mille = 30,
                     .slow = 5s,
                     .lost_request_per_mille = 100,
                     .lost_answer_per_mille = 100,
                     .max_watch_lag = 300ms},
                    seed);
  std::vector<std::string> values;
  const auto watch = store.Watch(contract::KeysUnder("/tally/"), 1, [&](const WatchEvent& event) {
    for (const contract::Change& change : std::get<WatchBatch>(event).changes) values.push_back(change.now.value);
  });
  std::vector<std::unique_ptr<Process>> processes;
  for (const char* name : {"a", "b"}) {
    processes.push_back(std::make_unique<Process>(kernel, schedule, store, name));
    processes.back()->Start();
  }
  for (size_t crash = 0; crash < 6; ++crash) {
    kernel.RunUntil(kernel.now().mono + 700ms);
    processes[crash % 2]->Crash();
    kernel.RunUntil(kernel.now().mono + 4s);
    processes[crash % 2]->Start();
  }
  kernel.RunUntil(kernel.now().mono + 10min);
  EXPECT_EQ(values, Counted()) << "seed " << seed;
  for (const auto& process : processes) EXPECT_EQ(process->number(), kTarget) << "seed " << seed;
  return kernel.log_hash();
}

TEST(LeadingCore, SimulatedTwiceCountsEachNumberOnceWithEveryFault) {
  for (uint64_t seed = 1; seed <= 20; ++seed) EXPECT_EQ(RunSeed(seed), RunSeed(seed)) << "seed " << seed;
}

}  // namespace
}  // namespace muster::store
