// `muster provider` and the verbs that call it, from outside: certificates, what is taken or not allowed, what is there
// from before, and what a monitoring system sees.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>

#include "base/source_dir_for_test.h"
#include "host/http_get_for_test.h"
#include "host/temp_dir_for_test.h"
#include "provider/life.h"
#include "rpc/certificates_for_test.h"

namespace muster::provider {
namespace {

using smoke::Process;

constexpr std::string_view kCatalogue = R"(
zones: [a]
types:
  - name: quick
    capacity: on-demand
    resources: {cpu: 1}
    price: 1
    create: {median: 2ms, p99: 4ms}
    configure: {median: 2ms, p99: 4ms}
    drain: {median: 2ms, p99: 4ms}
    delete: {median: 2ms, p99: 4ms}
)";
constexpr uint64_t kMachines = 8;

struct Ended {
  int code = 0;
  std::string out;
  std::string err;
};
Ended Muster(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), ProgramUnderTest());
  Process process(std::move(arguments));
  const int code = process.Wait();
  return {.code = code, .out = process.out(), .err = process.err()};
}

std::vector<std::string> Flags(const rpc::TlsFiles& files) {
  return {"--tls-cert", files.cert, "--tls-key", files.key, "--tls-ca", files.ca};
}

class Program : public ::testing::Test {
 protected:
  Program() {
    catalogue_ = dir_.File("catalogue.yaml");
    std::ofstream(catalogue_) << kCatalogue;
  }
  std::vector<std::string> Command(const std::vector<std::string>& more = {}) const {
    return ProviderCommand(dir_.File("data"), catalogue_, kMachines, more);
  }
  Ended List(const Life& life, const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"fleet", "machines", "--provider", life.grpc(), "-o", "json"};
    words.insert(words.end(), more.begin(), more.end());
    return Muster(words);
  }
  rpc::TlsFiles Files(const std::string& name, const std::string& alternatives, int64_t lifetime_seconds = 3600) {
    return ca_.Write(dir_.path(), name, ca_.Sign(alternatives, lifetime_seconds));
  }
  static void Stop(Life& life) {
    life.process().Signal(SIGTERM);
    EXPECT_EQ(life.process().Wait(), 0) << life.process().err();
  }

  const host::TempDir dir_;
  std::string catalogue_;
  rpc::CertificateAuthorityForTest ca_;
};

constexpr const char* kServer = "IP:127.0.0.1";

size_t LinesOf(const std::string& text) { return static_cast<size_t>(std::ranges::count(text, '\n')); }

TEST_F(Program, ATransitionThatTakesLongerThanItsTimeoutFailsItsMachine) {
  std::ofstream(catalogue_) << R"(
zones: [a]
types:
  - name: slow
    capacity: on-demand
    resources: {cpu: 1}
    price: 1
    create: {median: 1h, p99: 2h}
)";
  Life life(Command({"--create-timeout", "1s"}));
  ASSERT_TRUE(life.up()) << life.process().err();
  const auto ask = [&](contract::ProviderRequest request) {
    std::promise<Result<contract::ProviderReply>> reply;
    life.client().Ask(std::move(request), smoke::kPatience,
                      [&](Result<contract::ProviderReply> result) { reply.set_value(std::move(result)); });
    return reply.get_future().get();
  };
  const auto listed = ask(contract::ListRequest{});
  ASSERT_TRUE(listed.has_value()) << listed.error().ToString();
  const std::string id = std::get<contract::ListReply>(*listed).machines.front()->id;
  const auto created = ask(contract::CreateRequest{.machine_id = id});
  ASSERT_TRUE(created.has_value()) << created.error().ToString();
  model::MachineState state = model::MachineState::kCreating;
  const auto end = std::chrono::steady_clock::now() + smoke::kPatience;
  while (state == model::MachineState::kCreating && std::chrono::steady_clock::now() < end) {
    const auto got = ask(contract::GetRequest{.machine_id = id});
    ASSERT_TRUE(got.has_value()) << got.error().ToString();
    state = std::get<contract::GetReply>(*got).machine->state;
  }
  EXPECT_EQ(state, model::MachineState::kFailed);
  Stop(life);
}

TEST_F(Program, CertificatesDecideWhoMayCall) {
  Life life(Command(Flags(Files("server", kServer))));
  ASSERT_TRUE(life.up()) << life.process().err();
  for (const char* who : {"bigfleet://readonly", "bigfleet://admin", "bigfleet://shard/s"}) {
    const Ended listed = List(life, Flags(Files("caller", std::string("URI:") + who)));
    EXPECT_EQ(listed.code, 0) << who << ": " << listed.err;
    EXPECT_EQ(LinesOf(listed.out), kMachines) << who;
  }
  const Ended role = List(life, Flags(Files("cluster", "URI:bigfleet://cluster/c")));
  EXPECT_EQ(role.code, 1);
  EXPECT_TRUE(role.err.contains("\"bigfleet://cluster/c\" may not call")) << role.err;
  EXPECT_EQ(List(life, {}).code, 1) << "plaintext";
  EXPECT_EQ(List(life, Flags(Files("expired", "URI:bigfleet://admin", -60))).code, 1);
  rpc::CertificateAuthorityForTest other;
  EXPECT_EQ(List(life, Flags(other.Write(dir_.path(), "stranger", other.Sign("URI:bigfleet://admin")))).code, 1);
  const Ended half = List(life, {"--tls-cert", Files("half", "URI:bigfleet://admin").cert});
  EXPECT_EQ(half.code, 2);
  EXPECT_TRUE(half.err.contains("--tls-key is missing")) << half.err;
  Stop(life);
}

TEST_F(Program, ConformanceUnderTlsSpeaksForItsOwnShard) {
  Life life(Command(Flags(Files("server", kServer))));
  ASSERT_TRUE(life.up()) << life.process().err();
  std::vector<std::string> words = {"conformance", "provider",       life.grpc(), "--shard-id",
                                    "checker",     "--use-machines", "--grace",   "0"};
  const std::vector<std::string> flags = Flags(Files("checker", "URI:bigfleet://shard/checker"));
  words.insert(words.end(), flags.begin(), flags.end());
  for (int run = 1; run <= 2; ++run) {
    const Ended checked = Muster(words);
    EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
    EXPECT_TRUE(checked.out.contains("34 of 36 rules hold, 0 broken, 2 not shown")) << checked.out;
  }
  words[4] = "somebody-else";
  const Ended refused = Muster(words);
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(refused.out.contains("PERMISSION_DENIED")) << refused.out;
  Stop(life);
}

TEST_F(Program, CertificatesAreRenewedWithoutARestart) {
  const rpc::TlsFiles server = Files("server", kServer);
  const rpc::TlsFiles old_caller = Files("old-caller", "URI:bigfleet://readonly");
  Life life(Command(Flags(server)));
  ASSERT_TRUE(life.up()) << life.process().err();
  EXPECT_EQ(List(life, Flags(old_caller)).code, 0);
  rpc::CertificateAuthorityForTest other;
  const rpc::TlsFiles caller = other.Write(dir_.path(), "caller", other.Sign("URI:bigfleet://readonly"));
  EXPECT_EQ(List(life, Flags(caller)).code, 1);
  ASSERT_EQ(other.Write(dir_.path(), "server", other.Sign(kServer)), server);
  const Ended listed = List(life, Flags(caller));
  EXPECT_EQ(listed.code, 0) << listed.err;
  EXPECT_EQ(List(life, Flags(old_caller)).code, 1) << "of a CA that is no longer trusted";
  Stop(life);
  EXPECT_TRUE(life.process().err().contains("certificate files read again")) << life.process().err();
}

TEST_F(Program, TheDiagnosticServerHasTheSameFlags) {
  std::vector<std::string> words = {ProgramUnderTest(), "serve", "--listen", ":0", "--metrics-addr", ":0"};
  const std::vector<std::string> flags = Flags(Files("server", kServer));
  words.insert(words.end(), flags.begin(), flags.end());
  Life life(words);
  ASSERT_TRUE(life.up()) << life.process().err();
  const Ended refused = List(life, {});
  EXPECT_TRUE(refused.err.contains("does not answer")) << refused.err;
  const Ended reached = List(life, Flags(Files("caller", "URI:bigfleet://readonly")));
  EXPECT_FALSE(reached.err.contains("does not answer")) << reached.err;
  Stop(life);
}

TEST_F(Program, WhatIsTakenIsRefusedInOneSentence) {
  Life life(Command());
  ASSERT_TRUE(life.up()) << life.process().err();
  const auto refusal = [](std::vector<std::string> words) {
    Process process(std::move(words));
    EXPECT_EQ(process.Wait(), 1) << process.err();
    EXPECT_EQ(LinesOf(process.err()), 1u) << process.err();
    return process.err();
  };
  EXPECT_TRUE(refusal(Command()).contains("another process works in it")) << "a second one in the same directory";
  std::vector<std::string> words = ProviderCommand(dir_.File("other"), catalogue_, kMachines);
  words[3] = life.grpc();
  EXPECT_TRUE(refusal(words).contains("cannot listen on " + life.grpc() + ": Address already in use"));
  words[3] = ":0";
  words[5] = life.http();
  EXPECT_TRUE(refusal(words).contains("cannot listen on " + life.http() + ": Address already in use"));
  const auto serving = List(life, {});
  EXPECT_EQ(serving.code, 0) << serving.err;
  Stop(life);
}

TEST_F(Program, WrongCommandLinesAreRefusedByFlag) {
  const auto refusal = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"provider", "--metrics-addr", ":0", "--data-dir", dir_.File("refused")};
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = Muster(words);
    EXPECT_EQ(ended.code, 2) << ended.err;
    EXPECT_FALSE(std::filesystem::exists(dir_.File("refused"))) << fmt::format("{}", fmt::join(more, " "));
    return ended.err;
  };
  EXPECT_TRUE(refusal({"--machines", "0"}).contains("--machines must be a whole number from 1 to 1000000, not \"0\""));
  EXPECT_TRUE(
      refusal({"--machines", "-1"}).contains("--machines must be a whole number from 1 to 1000000, not \"-1\""));
  EXPECT_TRUE(refusal({"--seed", "-7"}).contains("--seed must be a whole number of 0 or more, not \"-7\""));
  EXPECT_TRUE(refusal({"--name", "Nobody's"}).contains("--name must be"));
  EXPECT_TRUE(refusal({"--seeed", "1"}).contains("did you mean --seed"));
  EXPECT_TRUE(refusal({"--tls-ca", "x"}).contains("--tls-cert is missing"));
  EXPECT_TRUE(refusal({"--listen", "10.0.0.1:1"}).contains("without TLS"));
  std::ofstream(dir_.File("bad.yaml")) << "zones: []\ntypes: []\n";
  EXPECT_TRUE(refusal({"--catalogue", dir_.File("bad.yaml")}).contains("zones"));
  EXPECT_EQ(Muster({"provider"}).code, 2) << "no --data-dir";
  for (const char* nowhere : {"nowhere", "127.0.0.1:99999", "127.0.0.1:http", "127.0.0.1:0"}) {
    const Ended nobody = Muster({"fleet", "machines", "--provider", nowhere});
    EXPECT_EQ(nobody.code, 2) << nowhere;
    EXPECT_TRUE(nobody.err.contains("write HOST:PORT")) << nobody.err;
  }
}

TEST_F(Program, ConformanceOfNobodyIsNoReport) {
  Life life(Command());
  ASSERT_TRUE(life.up()) << life.process().err();
  const std::string where = life.grpc();
  Stop(life);
  const Ended checked = Muster({"conformance", "provider", where});
  EXPECT_EQ(checked.code, 1);
  EXPECT_EQ(checked.out, "");
  EXPECT_TRUE(checked.err.contains("provider " + where + " does not answer")) << checked.err;
}

// Whoever begins anew forgets every fence: not without being told to.
TEST_F(Program, ALostStateIsNotReplacedByANewOne) {
  {
    Life life(Command());
    ASSERT_TRUE(life.up()) << life.process().err();
    const Ended checked = Muster({"conformance", "provider", life.grpc(), "--use-machines", "--grace", "0"});
    EXPECT_EQ(checked.code, 0) << checked.out;
    Stop(life);
  }
  std::filesystem::remove(dir_.File("data/state.db"));
  Process again(Command());
  EXPECT_EQ(again.Wait(), 1);
  EXPECT_TRUE(again.err().contains("state.db is missing or empty")) << again.err();
  std::filesystem::remove(dir_.File("data/cloud.log"));
  Life anew(Command());
  ASSERT_TRUE(anew.up()) << anew.process().err();
  Stop(anew);
}

// Gauges follow operations that end while nobody calls.
TEST_F(Program, MetricsAreThoseOfTheMoment) {
  Life life(Command());
  ASSERT_TRUE(life.up()) << life.process().err();
  const size_t colon = life.http().rfind(':');
  const host::Address http{life.http().substr(0, colon),
                           static_cast<uint16_t>(std::stoi(life.http().substr(colon + 1)))};
  life.client().Ask(contract::CreateRequest{.machine_id = "m-000001", .fence = {"s", 1, 1}}, 20s, [](const auto&) {});
  const auto give_up = std::chrono::steady_clock::now() + smoke::kPatience;
  std::string seen;
  while (!seen.contains("muster_provider_machines{state=\"Idle\"} 1\n") && std::chrono::steady_clock::now() < give_up) {
    seen = host::HttpGet(http, "/metrics").body;
  }
  EXPECT_TRUE(seen.contains("muster_provider_machines{state=\"Idle\"} 1\n")) << seen;
  EXPECT_TRUE(seen.contains("muster_provider_machines{state=\"Speculative\"} 7\n")) << seen;
  EXPECT_TRUE(seen.contains("muster_provider_operations_open 0\n")) << seen;
  EXPECT_TRUE(seen.contains("muster_provider_requests_total{code=\"OK\",method=\"Create\"} 1\n")) << seen;
  Stop(life);
}

// Blocks for the answer.
Result<contract::ProviderReply> Ask(contract::ProviderPort& port, contract::ProviderRequest request) {
  std::promise<Result<contract::ProviderReply>> answer;
  port.Ask(std::move(request), 20s, [&](Result<contract::ProviderReply> reply) { answer.set_value(std::move(reply)); });
  return answer.get_future().get();
}

// What a provider of format 1 left when it was killed: m-000001 Draining, m-000002 Configured, m-000003 Idle,
// m-000004 never touched.
TEST_F(Program, AnOlderDataDirectoryOpens) {
  const std::filesystem::path old = SourceDir() + "/tests/provider/data/directory-1";
  std::filesystem::create_directory(dir_.File("data"));
  std::filesystem::copy_file(old / "cloud.log", dir_.File("data/cloud.log"));
  std::ifstream file(old / "state.sql");
  const std::string sql{std::istreambuf_iterator<char>(file), {}};
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(dir_.File("data/state.db").c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  sqlite3_close(db);

  Life life(ProviderCommand(dir_.File("data"), (old / "catalogue.yaml").string(), 4));
  ASSERT_TRUE(life.up()) << life.process().err();
  const auto get = [&](const std::string& id) {
    return *std::get<contract::GetReply>(*Ask(life.client(), contract::GetRequest{id})).machine;
  };
  const model::Machine bound = get("m-000002");
  EXPECT_EQ(bound.state, model::MachineState::kConfigured);
  EXPECT_EQ(bound.cluster, "c");
  EXPECT_EQ(bound.shard_metadata, (std::map<std::string, std::string>{{"need", std::string("a\0b", 3)}}));
  EXPECT_EQ(bound.host.ref, "host-op-130e586bf5b89dc1-7");
  EXPECT_EQ(get("m-000003").state, model::MachineState::kIdle);
  EXPECT_EQ(get("m-000004").state, model::MachineState::kSpeculative);
  // The grace of the drain is long over: it ends as soon as the backend is asked for it again.
  const auto give_up = std::chrono::steady_clock::now() + smoke::kPatience;
  while (get("m-000001").state != model::MachineState::kIdle && std::chrono::steady_clock::now() < give_up) continue;
  EXPECT_EQ(get("m-000001").state, model::MachineState::kIdle);
  const contract::DrainRequest drain{.machine_id = "m-000001", .grace_period_seconds = 1, .fence = {"s", 3, 6}};
  const auto fenced = Ask(life.client(), drain);
  ASSERT_FALSE(fenced.has_value());
  EXPECT_EQ(fenced.error().code(), Code::kFailedPrecondition) << fenced.error().ToString();
  const auto again = Ask(life.client(), contract::DrainRequest{.machine_id = "m-000001", .fence = {"s", 3, 7}});
  ASSERT_TRUE(again.has_value()) << again.error().ToString();
  EXPECT_EQ(std::get<contract::TransitionAck>(*again).operation_id, "op-130e586bf5b89dc1-15");
  Stop(life);
}

}  // namespace
}  // namespace muster::provider
