// The etcd store when its cluster fails: members killed, stopped, hung and partitioned from their history, tokens that
// expire, TLS. What many callers and watches see meanwhile is one linearizable history, without a lost or repeated
// event.
//
// MUSTER_KILLS says ten times how many random kills, 20 unless given.
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <thread>

#include "base/probe.h"
#include "base/rng.h"
#include "host/address.h"
#include "host/fault_table_for_test.h"
#include "host/http_get_for_test.h"
#include "host/system_clock.h"
#include "rpc/certificates_for_test.h"
#include "store/blocking.h"
#include "store/candidate.h"
#include "store/etcd_process.h"
#include "store/history.h"
#include "store/mirrored.h"

namespace muster::store {
namespace {

using contract::Put;

constexpr Duration kPatience = 60s;
const host::SystemClock kClock;

int Kills() {
  const char* asked = std::getenv("MUSTER_KILLS");
  return asked != nullptr ? std::max(1, std::stoi(asked) / 10) : 2;
}

uint64_t Hits(const std::string& probe) {
  const auto hits = faults::ProbeHits();
  const auto found = hits.find(probe);
  return found == hits.end() ? 0 : found->second;
}

// Commits once, however long it takes the cluster to come back.
Status CommitOne(Store& store, const std::string& key) {
  Blocking blocking(store);
  for (const MonoTime end = kClock.Read().mono + kPatience; kClock.Read().mono < end;) {
    const auto there = blocking.Range(contract::OneKey(key));  // waits for a member that answers
    if (!there) continue;
    if (std::holds_alternative<contract::Committed>(blocking.Commit({{}, {Put(key, "v")}}))) return {};
  }
  return {Code::kUnavailable, "the cluster does not come back"};
}

// Histories of many callers, one after the other, until `disturb` has done its work; each is judged.
Status DisturbedHistories(Store& store, const std::function<Status()>& disturb, uint64_t seed = 1) {
  MUSTER_RETURN_IF_ERROR(CommitOne(store, "/up"));
  std::atomic<bool> over = false;
  Status disturbed;
  std::thread disturber([&] {
    disturbed = disturb();
    over = true;
  });
  Status judged;
  for (int round = 0; judged.ok() && !(over && round > 0); ++round) {
    const auto history = RunConcurrentHistory(
        store,
        {.prefix = fmt::format("/h{}-{}/", seed, round), .seed = seed + static_cast<uint64_t>(round), .timeout = 3s},
        kClock);
    judged = history ? CheckHistory(*history) : history.error();
  }
  disturber.join();
  MUSTER_RETURN_IF_ERROR(judged);
  return disturbed;
}

// Does `harm` to each member in turn, and starts it again; waits for the cluster between.
std::function<Status()> EachInTurn(Etcd& etcd, Store& store, int rounds, void (Etcd::*harm)(size_t)) {
  return [&etcd, &store, rounds, harm]() -> Status {
    for (int round = 0; round < rounds; ++round) {
      for (size_t member = 0; member < etcd.size(); ++member) {
        MUSTER_RETURN_IF_ERROR(CommitOne(store, "/disturber"));
        (etcd.*harm)(member);
        if (etcd.size() > 1) MUSTER_RETURN_IF_ERROR(CommitOne(store, "/disturber"));  // without it
        etcd.Start(member);
      }
    }
    return CommitOne(store, "/disturber");
  };
}

TEST(EtcdStore, LosesNothingWhenKilled) {
  Etcd etcd;
  const auto store = etcd.Client();
  EXPECT_EQ(DisturbedHistories(*store, EachInTurn(etcd, *store, Kills(), &Etcd::Kill)), Status());
  RecordProperty("kills", Kills());
}

TEST(EtcdStore, GoesOnAfterStopAndStart) {
  faults::ResetProbes();
  Etcd etcd;
  const auto store = etcd.Client();
  EXPECT_EQ(DisturbedHistories(*store, EachInTurn(etcd, *store, 2, &Etcd::Stop)), Status());
  faults::ExpectReached("EtcdStore.GoesOnAfterStopAndStart", "store");
}

// Each of three in turn, so that the leader is among them.
TEST(EtcdStore, OutlivesItsLeader) {
  Etcd etcd({.members = 3});
  const auto store = etcd.Client();
  EXPECT_EQ(DisturbedHistories(*store, EachInTurn(etcd, *store, 1, &Etcd::Kill)), Status());
}

// What a scheduler's shell holds, over a store that is away for longer than its lease.
TEST(EtcdStore, IsLostAndBackForAMirrorAndACandidate) {
  Etcd etcd;
  const auto store = etcd.Client();
  ASSERT_EQ(CommitOne(*store, "/m/up"), Status());
  host::ThreadSchedule schedule;
  Mirrored copy(*store, schedule, {.range = contract::KeysUnder("/m/"), .check_every = 200ms, .lost_after = 1s});
  Waiter waiter;
  bool leads = false;
  int terms = 0;
  Revision term = 0;
  const Candidate candidate(*store, schedule, {.key = "/leader", .value = "me", .ttl = 2s},
                            [&](const CandidateEvent& event) {
                              waiter.Do([&] {
                                const auto* leading = std::get_if<contract::Leading>(&event);
                                leads = leading != nullptr;
                                if (leads && std::exchange(term, leading->key.modified) != term) ++terms;
                              });
                            });
  ASSERT_TRUE(waiter.Wait(kPatience, [&] { return leads; }));
  for (int round = 0; round < 2; ++round) {
    etcd.Kill();
    ASSERT_TRUE(copy.BecomesLost(true));
    ASSERT_TRUE(waiter.Wait(kPatience, [&] { return !leads; })) << "it leads without a store";
    etcd.Start(0);
    ASSERT_EQ(CommitOne(*store, fmt::format("/m/{}", round)), Status());
    ASSERT_TRUE(copy.BecomesLost(false));
    ASSERT_TRUE(waiter.Wait(kPatience, [&] { return leads; }));
    const auto rows = Blocking(*store).Range(contract::KeysUnder("/m/"));
    ASSERT_TRUE(rows.has_value()) << rows.error().ToString();
    EXPECT_TRUE(copy.Becomes(rows->rows));
  }
  EXPECT_EQ(copy.breach(), "");
  EXPECT_GE(terms, 1);
}

// A member that hangs keeps its connections: only a progress check finds it.
TEST(EtcdStore, LeavesAMemberThatHangs) {
  Etcd etcd({.members = 3});
  const auto writer = etcd.Client(rpc::EtcdOptions{.endpoints = {etcd.endpoint(1), etcd.endpoint(2)}});
  ASSERT_EQ(CommitOne(*writer, "/up"), Status());
  // The first member is the one that a new client calls first. Nothing but the watch uses this one.
  const auto reader =
      etcd.Client(rpc::EtcdOptions{.endpoints = {etcd.endpoint(0), etcd.endpoint(2)}, .progress_every = 500ms});
  ASSERT_EQ(CommitOne(*etcd.Client(rpc::EtcdOptions{.endpoints = {etcd.endpoint(0)}}), "/up"), Status());
  Blocking writes(*writer);
  const auto first = writes.Range(contract::EveryKey());
  ASSERT_TRUE(first.has_value());
  WatchLog log(*reader, contract::EveryKey(), first->revision + 1);
  ASSERT_EQ(CommitOne(*writer, "/before"), Status());
  ASSERT_TRUE(log.WaitFor(first->revision + 1, kPatience));
  faults::ResetProbes();
  etcd.Pause(0);
  ASSERT_EQ(CommitOne(*writer, "/while-it-hangs"), Status());
  const auto now = writes.Range(contract::EveryKey());
  ASSERT_TRUE(now.has_value());
  EXPECT_TRUE(log.WaitFor(now->revision, kPatience)) << "the watch stays where nothing comes from";
  EXPECT_TRUE(Blocking(*reader).Range(contract::EveryKey()).has_value());
  etcd.Resume(0);
  faults::ExpectReached("EtcdStore.LeavesAMemberThatHangs", "store");
}

// The only member that a watch knows is away while its history is written and compacted.
TEST(EtcdStore, TellsAWatchThatItsHistoryIsCompacted) {
  Etcd etcd({.members = 3});
  const auto writer = etcd.Client(rpc::EtcdOptions{.endpoints = {etcd.endpoint(1), etcd.endpoint(2)}});
  const auto reader = etcd.Client(rpc::EtcdOptions{.endpoints = {etcd.endpoint(0)}, .progress_every = 500ms});
  ASSERT_EQ(CommitOne(*writer, "/up"), Status());
  Blocking writes(*writer);
  Blocking reads(*reader);
  const auto first = reads.Range(contract::EveryKey());
  ASSERT_TRUE(first.has_value());
  WatchLog log(*reader, contract::KeysUnder("/k"), first->revision + 1);
  Revision last = std::get<contract::Committed>(writes.Commit({{}, {Put("/k", "1")}})).revision;
  ASSERT_TRUE(log.WaitFor(last));
  // While it is there, a compaction behind it does not disturb it.
  ASSERT_EQ(writes.Compact(last), Status());
  last = std::get<contract::Committed>(writes.Commit({{}, {Put("/k", "2")}})).revision;
  ASSERT_TRUE(log.WaitFor(last));
  EXPECT_EQ(log.compacted(), 0);
  EXPECT_EQ(log.changes().size(), 2u);
  etcd.Kill(0);
  ASSERT_EQ(CommitOne(*writer, "/k"), Status());
  ASSERT_EQ(CommitOne(*writer, "/k"), Status());
  const auto now = writes.Range(contract::EveryKey());
  ASSERT_TRUE(now.has_value());
  ASSERT_EQ(writes.Compact(now->revision), Status());
  etcd.Start(0);
  ASSERT_TRUE(log.WaitFor(now->revision + 1, kPatience));
  EXPECT_EQ(log.compacted(), now->revision);
  EXPECT_EQ(log.changes().size(), 2u) << "it gives no part of what it missed";
  // List again, and watch from there.
  const auto again = reads.Range(contract::EveryKey());
  ASSERT_TRUE(again.has_value());
  WatchLog next(*reader, contract::KeysUnder("/k"), again->revision + 1);
  ASSERT_EQ(CommitOne(*writer, "/k"), Status());
  EXPECT_TRUE(next.WaitFor(again->revision + 1, kPatience));
}

// Pages of one list, with the history compacted between them, until that has hit a list.
TEST(EtcdStore, ListsAgainWhenAPageIsCompacted) {
  faults::ResetProbes();
  Etcd etcd;
  const auto store = etcd.Client();
  ASSERT_EQ(CommitOne(*store, "/up"), Status());
  Blocking blocking(*store);
  for (int i = 0; i < 12; ++i) {
    Transaction transaction;
    for (int k = 0; k < 125; ++k) transaction.writes.push_back(Put(fmt::format("/k{:02}{:03}", i, k), "v"));
    ASSERT_TRUE(std::holds_alternative<contract::Committed>(blocking.Commit(transaction)));
  }
  std::atomic<bool> stop = false;
  std::thread compactor([&] {
    Blocking other(*store);
    while (!stop) {
      const auto outcome = other.Commit({{}, {Put("/other", "v")}});
      const auto* committed = std::get_if<contract::Committed>(&outcome);
      if (committed != nullptr) static_cast<void>(other.Compact(committed->revision));
    }
  });
  const MonoTime end = kClock.Read().mono + kPatience;
  while (Hits("etcd.listing_compacted") == 0 && kClock.Read().mono < end) {
    const auto all = blocking.Range(contract::KeysUnder("/k"));
    EXPECT_TRUE(all.has_value() && all->rows.size() == 1500) << (all ? "rows are missing" : all.error().ToString());
  }
  stop = true;
  compactor.join();
  faults::ExpectReached("EtcdStore.ListsAgainWhenAPageIsCompacted", "store");
}

// How many ranges the member has answered, by its own count.
double RangesOf(const Etcd& etcd) {
  const auto address = host::ParseListenAddress(etcd.endpoint(), false, "etcd");
  std::istringstream metrics(host::HttpGet(*address, "/metrics").body);
  for (std::string line; std::getline(metrics, line);) {
    if (line.starts_with("grpc_server_handled_total{grpc_code=\"OK\",grpc_method=\"Range\"")) {
      return std::stod(line.substr(line.rfind(' ')));
    }
  }
  return 0;
}

TEST(EtcdStore, ListsManyRowsInFewPages) {
  Etcd etcd;
  const auto store = etcd.Client();
  ASSERT_EQ(CommitOne(*store, "/up"), Status());
  Blocking blocking(*store);
  constexpr int kRows = 100 * 125;
  for (int i = 0; i < kRows; i += 125) {
    Transaction transaction;
    for (int k = 0; k < 125; ++k)
      transaction.writes.push_back(Put(fmt::format("/k{:05}", i + k), std::string(400, 'v')));
    ASSERT_TRUE(std::holds_alternative<contract::Committed>(blocking.Commit(transaction)));
  }
  const double before = RangesOf(etcd);
  ASSERT_GT(before, 0);
  const auto all = blocking.Range(contract::KeysUnder("/k"));
  ASSERT_TRUE(all.has_value()) << all.error().ToString();
  ASSERT_EQ(all->rows.size(), size_t{kRows});
  for (int i = 0; i < kRows; ++i) ASSERT_EQ(all->rows[static_cast<size_t>(i)].key, fmt::format("/k{:05}", i));
  EXPECT_EQ(RangesOf(etcd) - before, 4) << "250, 1,000, 4,000 and the rest";
}

// ---- Users

void Etcdctl(const Etcd& etcd, std::vector<std::string> words) {
  words.insert(words.begin(), {"env", "ETCDCTL_API=3", "etcdctl", "--endpoints", etcd.endpoint()});
  smoke::Process process(words);
  ASSERT_EQ(process.Wait(), 0) << process.err() << process.out();
}

// A cluster that demands a user for everything.
void EnableUsers(const Etcd& etcd) {
  ASSERT_EQ(CommitOne(*etcd.Client(), "/up"), Status());
  Etcdctl(etcd, {"user", "add", "root:secret"});
  Etcdctl(etcd, {"user", "grant-role", "root", "root"});
  Etcdctl(etcd, {"auth", "enable"});
}

rpc::EtcdOptions AsRoot(const Etcd& etcd) {
  rpc::EtcdOptions options = etcd.Options();
  options.user = "root";
  options.password = "secret";
  return options;
}

// Keys to sign tokens with.
std::string JwtFlag(const host::TempDir& dir, const std::string& ttl) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_RSA_gen(2048), &EVP_PKEY_free);
  const auto write = [&](const std::string& path, auto pem) {
    const std::unique_ptr<BIO, decltype(&BIO_free_all)> file(BIO_new_file(path.c_str(), "w"), &BIO_free_all);
    MUSTER_CHECK(pem(file.get()) == 1);
  };
  write(dir.File("public"), [&](BIO* out) { return PEM_write_bio_PUBKEY(out, key.get()); });
  write(dir.File("private"), [&](BIO* out) {
    return PEM_write_bio_PrivateKey_traditional(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  return fmt::format("jwt,pub-key={},priv-key={},sign-method=RS256,ttl={}", dir.File("public"), dir.File("private"),
                     ttl);
}

std::function<Status()> UntilRefused(Store& store, uint64_t times) {
  return [&store, times]() -> Status {
    const MonoTime end = kClock.Read().mono + kPatience;
    while (Hits("etcd.token_refused") < times) {
      if (kClock.Read().mono > end) return {Code::kDeadlineExceeded, "no token was ever refused"};
      MUSTER_RETURN_IF_ERROR(CommitOne(store, "/disturber"));
    }
    return {};
  };
}

TEST(EtcdStore, RenewsTokensThatExpire) {
  const host::TempDir dir;
  Etcd etcd({.more = {"--auth-token", JwtFlag(dir, "2s")}});
  EnableUsers(etcd);
  faults::ResetProbes();
  const auto store = etcd.Client(AsRoot(etcd));
  EXPECT_EQ(DisturbedHistories(*store, UntilRefused(*store, 3)), Status());
  faults::ExpectReached("EtcdStore.RenewsTokensThatExpire", "store");
}

// The member has no token of before: simple ones are in its memory alone, and JWTs are signed with another key.
void RestartWithoutTokens(Etcd& etcd, const host::TempDir& keys, bool jwt) {
  etcd.Stop();
  if (jwt) static_cast<void>(JwtFlag(keys, "2s"));
  etcd.Start(0);
}

class EtcdTokens : public testing::TestWithParam<bool> {
 protected:
  EtcdTokens() { EnableUsers(etcd_); }

  const bool jwt_ = GetParam();
  const host::TempDir keys_;
  Etcd etcd_{
      {.more = jwt_ ? std::vector<std::string>{"--auth-token", JwtFlag(keys_, "2s")} : std::vector<std::string>{}}};
};

TEST_P(EtcdTokens, ForgottenByAMemberAreRenewedByCalls) {
  const auto store = etcd_.Client(AsRoot(etcd_));
  const auto refusals = [] { return Hits("etcd.token_refused") + Hits("etcd.watch_token_refused"); };
  const auto forget = [&]() -> Status {
    for (int round = 0; round < 3; ++round) {
      MUSTER_RETURN_IF_ERROR(CommitOne(*store, "/disturber"));
      const uint64_t before = refusals();
      RestartWithoutTokens(etcd_, keys_, jwt_);
      MUSTER_RETURN_IF_ERROR(CommitOne(*store, "/disturber"));
      if (refusals() == before) return {Code::kInternal, "the member knows the token still"};
    }
    return {};
  };
  const Status status = DisturbedHistories(*store, forget);
  EXPECT_TRUE(status.ok()) << status.ToString();
}

// A client that does nothing but watch has nothing but the watch to learn from that its token is forgotten.
TEST_P(EtcdTokens, ForgottenByAMemberAreRenewedByAWatch) {
  const auto writer = etcd_.Client(AsRoot(etcd_));
  const auto reader = etcd_.Client(AsRoot(etcd_));
  ASSERT_EQ(CommitOne(*writer, "/k"), Status());
  const auto first = Blocking(*writer).Get("/k");
  ASSERT_TRUE(first.has_value() && first->has_value());
  const Revision from = (*first)->modified;
  WatchLog log(*reader, contract::OneKey("/k"), from);
  ASSERT_TRUE(log.WaitFor(from, kPatience));
  for (int round = 0; round < 3; ++round) {
    // A member that restarts carries out again what it has not marked as done: without a commit after it, that is the
    // reader's authentication, and the token is known again.
    ASSERT_EQ(CommitOne(*writer, "/other"), Status());
    faults::ResetProbes();
    RestartWithoutTokens(etcd_, keys_, jwt_);
    ASSERT_EQ(CommitOne(*writer, "/k"), Status());
    const auto last = Blocking(*writer).Get("/k");
    ASSERT_TRUE(last.has_value() && last->has_value());
    ASSERT_TRUE(log.WaitFor((*last)->modified, kPatience)) << "the watch does not come back";
    faults::ExpectReached("EtcdTokens.ForgottenByAMemberAreRenewedByAWatch", "store");
  }
  // All of the history, each change once.
  WatchLog truth(*writer, contract::OneKey("/k"), from);
  ASSERT_TRUE(truth.WaitFor(log.batches().back().revision, kPatience));
  EXPECT_EQ(log.changes(), truth.changes());
  EXPECT_GE(log.changes().size(), 4u);
}

INSTANTIATE_TEST_SUITE_P(All, EtcdTokens, testing::Bool(),
                         [](const auto& test) { return test.param ? "Jwt" : "Simple"; });

TEST(EtcdStore, SaysThatAPasswordIsWrong) {
  Etcd etcd;
  EnableUsers(etcd);
  rpc::EtcdOptions options = AsRoot(etcd);
  options.password = "wrong";
  const auto store = etcd.Client(options);
  const auto refused = Blocking(*store).Range(contract::EveryKey());
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message().find("authentication failed"), std::string::npos) << refused.error().ToString();
  const auto nobody = etcd.Client();
  const auto outcome = Blocking(*nobody).Commit({{}, {Put("k", "v")}});
  ASSERT_TRUE(std::holds_alternative<contract::Unknown>(outcome));
  EXPECT_TRUE(std::get<contract::Unknown>(outcome).Refused()) << std::get<contract::Unknown>(outcome).status.ToString();
}

// ---- TLS

TEST(EtcdStore, SpeaksTls) {
  const host::TempDir dir;
  rpc::CertificateAuthorityForTest ca;
  const rpc::TlsFiles server = ca.Write(dir.path(), "server", ca.Sign("IP:127.0.0.1"));
  const rpc::TlsFiles client = ca.Write(dir.path(), "client", ca.Sign("URI:muster://scheduler/c"));
  Etcd etcd({.tls = server});
  rpc::EtcdOptions options = etcd.Options();
  options.tls = client;
  const auto store = etcd.Client(options);
  EXPECT_EQ(DisturbedHistories(*store, EachInTurn(etcd, *store, 1, &Etcd::Stop)), Status());
  // Neither without a certificate nor with one of another authority.
  rpc::CertificateAuthorityForTest other;
  options.tls = other.Write(dir.path(), "other", other.Sign("URI:muster://scheduler/c"));
  for (const rpc::EtcdOptions& wrong : {options, etcd.Options()}) {
    const auto refused = etcd.Client(wrong);
    Blocking blocking(*refused);
    blocking.SetTimeout(2s);
    EXPECT_FALSE(blocking.Range(contract::EveryKey()).has_value());
  }
}

// ---- Planted bugs

// What a watch gives of the values 1, 2 and 3, with a restart of its member, and a planted bug, after the first.
std::string WatchedOverARestart(const std::string& bug) {
  Etcd etcd;
  const auto store = etcd.Client();
  Blocking blocking(*store);
  EXPECT_EQ(CommitOne(*store, "/up"), Status());
  const auto put = [&](const char* value) {
    const auto outcome = blocking.Commit({{}, {Put("k", value)}});
    const auto* committed = std::get_if<contract::Committed>(&outcome);
    return committed != nullptr ? committed->revision : 0;
  };
  const Revision first = put("1");
  WatchLog log(*store, contract::OneKey("k"), first);
  EXPECT_TRUE(log.WaitFor(first));
  const faults::ScopedMutant planted(bug);
  etcd.Stop();
  etcd.Start(0);
  EXPECT_TRUE(
      blocking.Range(contract::OneKey("k")).has_value());  // waits for the member; the next revision is the value 2
  put("2");
  EXPECT_TRUE(log.WaitFor(put("3")));
  std::string values;
  for (const contract::Change& change : log.changes()) values += change.now.value;
  return values;
}

TEST(EtcdStorePlantedBug, OfAWatchIsFound) {
  EXPECT_EQ(WatchedOverARestart("none"), "123");
  EXPECT_EQ(WatchedOverARestart("etcd.watch_repeats"), "1123");
  EXPECT_NE(WatchedOverARestart("etcd.watch_resumes_late"), "123");
}

TEST(EtcdStorePlantedBug, OfATokenIsFound) {
  const faults::ScopedMutant planted("etcd.token_never_renewed");
  const host::TempDir dir;
  Etcd etcd({.more = {"--auth-token", JwtFlag(dir, "2s")}});
  EnableUsers(etcd);
  const auto store = etcd.Client(AsRoot(etcd));
  Blocking blocking(*store);
  Status status;
  for (const MonoTime end = kClock.Read().mono + kPatience; status.ok() && kClock.Read().mono < end;) {
    const auto reply = blocking.Range(contract::EveryKey());
    status = reply ? Status() : reply.error();
  }
  EXPECT_EQ(status.code(), Code::kUnauthenticated) << status.ToString();
}

}  // namespace
}  // namespace muster::store
