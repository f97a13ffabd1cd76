// A core that commits: the effect Commit and the event CommitDone, under a thread with a file and in the simulator with
// every fault.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/codec.h"
#include "contract/core.h"
#include "contract/store.h"
#include "host/persist.h"
#include "host/sqlite_store.h"
#include "host/system_clock.h"
#include "host/temp_dir_for_test.h"
#include "host/thread_host.h"
#include "sim/kernel_schedule.h"
#include "sim/sim_host.h"
#include "store/blocking.h"
#include "store/carry_out.h"
#include "store/memory_store.h"

namespace muster::store {

inline constexpr uint64_t kEntries = 40;

inline std::string KeyOf(uint64_t entry) { return fmt::format("/ledger/{:03}", entry); }

// Writes the entries of a ledger one after the other, each once: a commit is guarded, and repeated when it is Unknown.
class Ledger {
 public:
  struct Nothing {
    MUSTER_FIELDS(Nothing)
  };
  struct Snapshot {
    uint64_t written = 0;
    MUSTER_FIELDS(Snapshot, written)
  };
  using Call = contract::Call<Nothing>;
  using CallDone = contract::CallDone<Nothing>;
  using Event = std::variant<contract::Wake, CallDone, contract::CommitDone>;
  using Effect = std::variant<contract::Persist, Call, contract::Commit>;
  static constexpr std::string_view kName = "ledger";

  void Step(const Event& event, Now, std::vector<Effect>& out) {
    if (const auto* done = std::get_if<contract::CommitDone>(&event)) {
      if (done->id != open_) return;
      // A conflict: the entry is there, by a commit whose answer was lost.
      if (!std::holds_alternative<contract::Unknown>(done->outcome)) ++written_;
    }
    begun_ = true;
    if (written_ == kEntries) return;
    const std::string key = KeyOf(written_);
    out.emplace_back(contract::Commit{
        .id = ++open_, .transaction = {{contract::IfAbsent(key)}, {contract::Put(key, "v")}}, .timeout = 1s});
  }
  std::optional<MonoTime> NextWake() const { return begun_ ? std::nullopt : std::optional(MonoTime()); }
  std::shared_ptr<const Snapshot> View() const { return std::make_shared<Snapshot>(Snapshot{written_}); }
  void CheckInvariants() const {}
  std::string Save() const { return codec::ToBytes(Snapshot{written_}); }
  static std::optional<Ledger> Load(std::string_view) { return std::nullopt; }

 private:
  bool begun_ = false;
  contract::CallId open_ = 0;
  uint64_t written_ = 0;
};

namespace {

TEST(CommitEffect, OfACoreOnAThreadIsCarriedOut) {
  const host::TempDir dir;
  const auto opened = host::OpenSqliteStore(dir.File("store"));
  ASSERT_TRUE(opened.has_value());
  Store& store = **opened;
  const auto persist = host::SqlitePersist::Open(dir.File("state"), "ledger");
  ASSERT_TRUE(persist.has_value());
  const host::SystemClock clock;
  struct Shell final : host::ThreadHost<Ledger>::Shell {
    void StartCall(const Ledger::Call&) override {}
    void Emit(const Ledger::Effect& effect) override {
      CarryOut(*store, std::get<contract::Commit>(effect),
               [this](contract::CommitDone done) { host->Post(std::move(done)); });
    }
    Store* store = nullptr;
    host::ThreadHost<Ledger>* host = nullptr;
  } shell;
  host::ThreadHost<Ledger> host(Ledger(), shell, {.clock = clock, .persist = **persist});
  shell.store = &store;
  shell.host = &host;
  WatchLog log(store, contract::KeysUnder("/ledger/"), 1);
  ASSERT_EQ(host.Start(), Status());
  ASSERT_TRUE(log.WaitFor(kEntries + 1));
  EXPECT_EQ(log.changes().size(), kEntries);
  host.Stop();
}

// What a seed leads to: the hash of everything that happened.
uint64_t RunSeed(uint64_t seed) {
  sim::Kernel kernel(seed);
  sim::Disk disk(kernel, {}, 1);
  sim::KernelSchedule schedule(kernel);
  MemoryStore store(schedule,
                    {.min_delay = 1ms,
                     .max_delay = 20ms,
                     .slow_per_mille = 30,
                     .slow = 5s,
                     .lost_request_per_mille = 100,
                     .lost_answer_per_mille = 100},
                    seed);
  std::unique_ptr<sim::SimHost<Ledger>> host;
  host = std::make_unique<sim::SimHost<Ledger>>(
      kernel, disk,
      sim::SimHost<Ledger>::World{.make_core = [](const contract::Recovered&) { return Ledger(); },
                                  .start_call = [](uint64_t, const Ledger::Call&) {},
                                  .emit =
                                      [&](uint64_t life, const Ledger::Effect& effect) {
                                        CarryOut(store, std::get<contract::Commit>(effect),
                                                 [&, life](contract::CommitDone done) {
                                                   if (host->alive() && host->life() == life)
                                                     host->Post(std::move(done));
                                                 });
                                      }});
  host->Start();
  kernel.After(5s, [&] { host->Crash(); });
  kernel.After(6s, [&] { host->Start(); });  // from the beginning: what is there is a conflict
  kernel.RunUntil(kernel.now().mono + 10min);
  EXPECT_EQ(host->core().View()->written, kEntries) << "seed " << seed;
  std::optional<Result<RangeReply>> rows;
  store.SetFaults({});
  store.Range(contract::EveryKey(), 1s, [&](Result<RangeReply> reply) { rows = std::move(reply); });
  kernel.RunUntil(kernel.now().mono + 1min);
  EXPECT_TRUE(rows && *rows && (*rows)->rows.size() == kEntries) << "seed " << seed;
  EXPECT_EQ((*rows)->revision, static_cast<Revision>(kEntries + 1)) << "an entry was written twice, seed " << seed;
  return kernel.log_hash();
}

TEST(CommitEffect, OfASimulatedCoreHappensOnceWithEveryFault) {
  for (uint64_t seed = 1; seed <= 30; ++seed) EXPECT_EQ(RunSeed(seed), RunSeed(seed)) << "seed " << seed;
}

}  // namespace
}  // namespace muster::store
