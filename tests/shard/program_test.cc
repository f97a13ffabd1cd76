// `muster shard` and the verbs that call it, from outside: a cluster's story from demand to release, what operators see
// and say, what is refused, and who may live.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>

#include "host/http_get_for_test.h"
#include "rpc/certificates_for_test.h"
#include "shard/fleet.h"

namespace muster::shard {
namespace {

using model::MachineState;
using smoke::Process;

constexpr uint64_t kMachines = 32;

struct Ran {
  int code = 0;
  std::string out;
  std::string err;
};
Ran Muster(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), smoke::ProgramUnderTest());
  Process process(std::move(arguments));
  const int code = process.Wait();
  return {.code = code, .out = process.out(), .err = process.err()};
}

class Program : public ::testing::Test {
 protected:
  Program() : fleet_(kMachines) {}

  void Start(const std::vector<std::string>& more = {}) {
    provider_ = std::make_unique<provider::Life>(fleet_.ProviderCommand());
    ASSERT_TRUE(provider_->up()) << provider_->process().err();
    StartShard(more);
  }
  void StartShard(const std::vector<std::string>& more = {}) {
    shard_ = std::make_unique<ShardLife>(fleet_.ShardCommand(provider_->grpc(), ":0", more));
    ASSERT_TRUE(shard_->up()) << shard_->process().err();
  }
  static void Stop(smoke::Server& server) {
    server.process().Signal(SIGTERM);
    EXPECT_EQ(server.process().Wait(), 0) << server.process().err();
  }
  Ran Fleet(std::vector<std::string> words) {
    words.insert(words.begin(), "fleet");
    words.insert(words.end(), {"--shard", shard_->grpc()});
    return Muster(words);
  }
  std::map<MachineState, size_t> States() {
    std::map<MachineState, size_t> states;
    const auto listed = shard_->Ask<contract::MachinesListed>(contract::ListMachines{});
    if (!listed) return states;
    for (const contract::MachineView& view : listed->machines) ++states[view.machine->state];
    return states;
  }
  std::string Metric(const std::string& line) {
    const std::string text = host::HttpGet(*host::ParseListenAddress(shard_->http(), false, "http"), "/metrics").body;
    const size_t at = text.find("\n" + line + " ");
    return at == std::string::npos ? ""
                                   : text.substr(at + line.size() + 2, text.find('\n', at + 1) - at - line.size() - 2);
  }

  shard::Fleet fleet_;
  std::unique_ptr<provider::Life> provider_;
  std::unique_ptr<ShardLife> shard_;
};

TEST_F(Program, FromDemandToReleaseAndWhatOperatorsSee) {
  Start();
  if (HasFatalFailure()) return;
  TestCluster blue("blue", shard_->grpc());
  blue.Want({NeedOf("blue", 12)});
  ASSERT_TRUE(Eventually([&] { return shard_->Settled(1) && States()[MachineState::kConfigured] == 12; }));
  EXPECT_TRUE(Eventually([&] {
    return std::ranges::count_if(blue.nodes(), [](const auto& n) { return n.second == MachineState::kConfigured; }) ==
           12;
  })) << "the cluster is told of every machine";
  const Ran needs = Fleet({"needs", "-o", "json"});
  EXPECT_EQ(needs.code, 0) << needs.err;
  EXPECT_TRUE(needs.out.contains("\"cluster\":\"blue\"") && needs.out.contains("\"machines\":12")) << needs.out;
  const Ran machines = Fleet({"machines", "--cluster", "blue"});
  EXPECT_TRUE(machines.out.contains("12 machines: 12 Configured; $12.00/h")) << machines.out;
  const Ran actions = Fleet({"actions", "--limit", "0"});
  EXPECT_TRUE(actions.out.contains("phase1.provision") && actions.out.contains("success")) << actions.out;
  EXPECT_EQ(Metric("bigfleet_shard_inventory_machines{capacity_type=\"OnDemand\",interruption_penalty_bucket=\"0\","
                   "state=\"Configured\"}"),
            "12");
  EXPECT_TRUE(
      Eventually([&] { return Metric("muster_shard_claimed_machines{interruption_penalty_bucket=\"0\"}") == "12"; }));
  EXPECT_EQ(Metric("bigfleet_shard_demand_machines{interruption_penalty_bucket=\"0\"}"), "1") << "rows of demand";
  EXPECT_EQ(Metric("bigfleet_shard_active_sessions"), "1");

  blue.Want({NeedOf("blue", 4)});
  EXPECT_TRUE(Eventually([&] {
    auto states = States();
    return states[MachineState::kConfigured] == 4 && states[MachineState::kSpeculative] == kMachines - 4;
  })) << "surplus is held, reclaimed, drained, kept idle for a while and given back";
  EXPECT_EQ(blue.reclaimed(), 8u);
  std::ifstream audit(fleet_.File("audit.log"));
  const std::string lines{std::istreambuf_iterator<char>(audit), {}};
  for (const char* what : {"\"kind\":\"Provision\"", "\"kind\":\"Bootstrap\"", "\"kind\":\"Reclaim\"",
                           "\"kind\":\"Delete\"", "\"outcome\":\"pending\"", "\"outcome\":\"success\""}) {
    EXPECT_TRUE(lines.contains(what)) << what;
  }
  Stop(*shard_);
  Stop(*provider_);
}

TEST_F(Program, PausesAreKeptOverRestarts) {
  Start();
  if (HasFatalFailure()) return;
  {
    TestCluster blue("blue", shard_->grpc());
    ASSERT_TRUE(Eventually([&] { return Metric("bigfleet_shard_active_sessions") == "1"; }));
    EXPECT_EQ(Fleet({"pause", "--cluster", "blue", "--reason", "test"}).code, 0);
    blue.Want({NeedOf("blue", 3)});
    ASSERT_TRUE(
        Eventually([&] { return Metric("bigfleet_shard_actions_suppressed_total{kind=\"Provision\"}") != "0"; }));
    EXPECT_EQ(States()[MachineState::kSpeculative], kMachines);
  }
  Stop(*shard_);
  StartShard();
  if (HasFatalFailure()) return;
  const std::string clusters = Fleet({"clusters"}).out;
  EXPECT_TRUE(clusters.contains("paused") && clusters.contains("pause by local at ") && clusters.contains(": test"))
      << clusters;
  const Ran unset = Fleet({"pause", "--cluster", ""});
  EXPECT_EQ(unset.code, 2);
  EXPECT_TRUE(unset.err.contains("--cluster is empty")) << unset.err;
  const Ran mistyped = Fleet({"pause", "--cluster", "bleu"});
  EXPECT_EQ(mistyped.code, 1);
  EXPECT_TRUE(mistyped.err.contains("does not know a cluster \"bleu\"")) << mistyped.err;
  TestCluster blue("blue", shard_->grpc());
  blue.Want({NeedOf("blue", 3)});
  const Ran resumed = Fleet({"resume", "--cluster", "blue"});
  EXPECT_EQ(resumed.out, "cluster blue is active now (was paused)\n") << resumed.err;
  EXPECT_TRUE(Eventually([&] { return States()[MachineState::kConfigured] == 3; }));
  Stop(*shard_);
}

TEST_F(Program, ASuspiciousRollupIsHeldAndShown) {
  Start();
  if (HasFatalFailure()) return;
  TestCluster blue("blue", shard_->grpc());
  std::vector<model::Need> many;
  for (int priority = 1; priority <= 12; ++priority) many.push_back(NeedOf("blue", 1, priority));
  blue.Want(many);
  ASSERT_TRUE(Eventually([&] { return shard_->Settled(12); }));
  blue.Want({NeedOf("blue", 1, 1)});
  ASSERT_TRUE(Eventually([&] { return Metric("bigfleet_shard_rollup_quarantined{cluster=\"blue\"}") == "1"; }));
  const Ran clusters = Fleet({"clusters", "-o", "json"});
  EXPECT_TRUE(clusters.out.contains("\"heldRollups\":1")) << clusters.out;
  EXPECT_FALSE(clusters.out.contains("\"lastRefusal\":\"\"")) << clusters.out;
  const auto needs = shard_->Needs();
  ASSERT_TRUE(needs);
  EXPECT_EQ(needs->needs.size(), 12u) << "the last good one stays";
  Stop(*shard_);
}

TEST_F(Program, WhoComesSecondWithTheSameNameFencesTheFirst) {
  Start();
  if (HasFatalFailure()) return;
  TestCluster blue("blue", shard_->grpc());
  blue.Want({NeedOf("blue", 2)});
  ASSERT_TRUE(Eventually([&] { return shard_->Settled(1); }));
  // Another process takes the shard's place, with an epoch of its own; the first one becomes a zombie.
  shard::Fleet elsewhere(kMachines);
  ShardLife second(elsewhere.ShardCommand(provider_->grpc(), ":0", {"--epoch-at-least", "100"}));
  ASSERT_TRUE(second.up()) << second.process().err();
  TestCluster heir("blue", second.grpc());
  heir.Want({NeedOf("blue", 4)});
  ASSERT_TRUE(Eventually([&] { return second.Settled(1) && second.Cycle() > 0; })) << second.process().err();
  blue.Want({NeedOf("blue", 1)});
  ASSERT_TRUE(Eventually([&] { return Fleet({"machines"}).out.contains("hold.fenced"); })) << Fleet({"actions"}).out;
  // All that it would give up may have been under way at once: then it is halted with nothing left to decide.
  blue.Want({NeedOf("blue", 6)});
  EXPECT_TRUE(Eventually([&] { return Fleet({"actions"}).out.contains(" suppressed "); })) << Fleet({"actions"}).out;
  EXPECT_TRUE(Fleet({"machines"}).out.contains("hold.fenced")) << "two machines are fenced, and the shard is halted";
  EXPECT_TRUE(Eventually([&] { return second.Settled(1); })) << "a zombie changes nothing";
}

TEST_F(Program, LostStateIsRefusedWithWhatToDo) {
  Start();
  if (HasFatalFailure()) return;
  {
    TestCluster blue("blue", shard_->grpc());
    blue.Want({NeedOf("blue", 2)});
    ASSERT_TRUE(Eventually([&] { return shard_->Settled(1); }));
  }
  Stop(*shard_);
  std::filesystem::remove(fleet_.File("shard") + "/shard.db");
  ShardLife lost(fleet_.ShardCommand(provider_->grpc()));
  EXPECT_EQ(lost.process().Wait(), 1);
  EXPECT_TRUE(lost.process().err().contains("--epoch-at-least 1001")) << lost.process().err();
  std::filesystem::remove(fleet_.File("shard") + "/shard.db");
  std::ofstream(fleet_.File("shard") + "/shard.db") << "this is no database, and long enough to be looked at as one";
  ShardLife corrupt(fleet_.ShardCommand(provider_->grpc()));
  EXPECT_EQ(corrupt.process().Wait(), 1);
  EXPECT_TRUE(corrupt.process().err().contains("--epoch-at-least")) << corrupt.process().err();
}

TEST_F(Program, AJournalReproducesEveryEffect) {
  Start({"--journal", fleet_.File("journal")});
  if (HasFatalFailure()) return;
  TestCluster blue("blue", shard_->grpc());
  blue.Want({NeedOf("blue", 5)});
  ASSERT_TRUE(Eventually([&] { return shard_->Settled(1); }));
  blue.Want({NeedOf("blue", 2)});
  ASSERT_TRUE(Eventually([&] { return States()[MachineState::kSpeculative] == kMachines - 2; }));
  Stop(*shard_);
  const Ran replayed = Muster({"replay", fleet_.File("journal")});
  EXPECT_EQ(replayed.code, 0) << replayed.err;
  EXPECT_TRUE(replayed.out.contains("the same effects as recorded")) << replayed.out;
}

TEST_F(Program, RollupPlaysACluster) {
  Start();
  if (HasFatalFailure()) return;
  const std::string file = fleet_.File("needs.yaml");
  std::ofstream(file) << "- {aggregate: {cpu: 2}, minUnit: {cpu: 1}}\n";
  const Ran once = Muster({"rollup", "--shard", shard_->grpc(), "--cluster", "blue", "-f", file});
  EXPECT_EQ(once.code, 0) << once.err;
  EXPECT_TRUE(once.out.contains("acknowledged rollup (shard epoch 1)")) << once.out;
  std::ofstream(file) << "- {aggregate: {cpu: 2x}}\n";
  const Ran wrong = Muster({"rollup", "--shard", shard_->grpc(), "--cluster", "blue", "-f", file});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(wrong.err.contains("needs.yaml:1:21: [0].aggregate.cpu: quantity \"2x\"")) << wrong.err;

  std::ofstream(file) << "needs:\n- {aggregate: {cpu: 2}, minUnit: {cpu: 1}}\n";
  Process follows(
      {smoke::ProgramUnderTest(), "rollup", "--shard", shard_->grpc(), "--cluster", "blue", "-f", file, "--follow"});
  ASSERT_TRUE(Eventually([&] { return shard_->Settled(1) && States()[MachineState::kConfigured] == 2; }));
  std::ofstream(file + ".new") << "- {aggregate: {cpu: 5}, minUnit: {cpu: 1}}\n";
  std::filesystem::rename(file + ".new", file);
  EXPECT_TRUE(Eventually([&] { return !follows.Ended() && States()[MachineState::kConfigured] == 5; }));
  follows.Signal(SIGINT);
  EXPECT_EQ(follows.Wait(), 0) << follows.err();
  EXPECT_TRUE(follows.out().contains(" is Configured")) << follows.out();
  Stop(*shard_);
}

TEST_F(Program, BadFlagsAndFilesAreRefusedByName) {
  const std::vector<std::string> base = {"shard", "--data-dir", fleet_.File("d"), "--provider-addr", "127.0.0.1:1"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), base.begin(), base.end());
    return Muster(more);
  };
  for (const auto& [flags, message] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--cycle-interval", "5"}, "--cycle-interval: duration \"5\": the unit is missing"},
           {{"--cycle-interval", "0s"}, "--cycle-interval must be a duration greater than zero"},
           {{"--reclaim-budget", "5/10m"},
            "--reclaim-budget must be a percentage and a duration greater than zero, such as 10%/2m, not \"5/10m\""},
           {{"--release-hold", "reserved=1m"}, "owned hardware stays"},
           {{"--victim-weights", "1,2"}, "--victim-weights must be four numbers"},
           {{"--own", "zone"}, "--own must be labels"},
           {{"--id", "a/b"}, "--id must be"},
           {{"--execute-concurrency", "0"},
            "--execute-concurrency must be a whole number from 1 to 1000000, not \"0\""},
           {{"--audit-rotate", "1"}, "--audit-rotate must be a size of 4KiB or more"},
           {{"--provider-adr", "x"}, "did you mean --provider-addr?"}}) {
    const Ran ran = with(flags);
    EXPECT_EQ(ran.code, 2) << flags[0] << ": " << ran.err;
    EXPECT_TRUE(ran.err.contains(message)) << ran.err;
  }
  const std::string file = fleet_.File("shard.yaml");
  std::ofstream(file) << "id: from-file\ncycle-intervall: 1s\n";
  const Ran unknown = with({"--config", file});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(
      unknown.err.contains("shard.yaml:2:1: cycle-intervall: there is no such option; did you mean cycle-interval?"))
      << unknown.err;
  std::ofstream(file) << "cycle-interval: [1s, {a: b}]\n";
  EXPECT_TRUE(with({"--config", file}).err.contains("a value or a list of values is expected"))
      << with({"--config", file}).err;
  EXPECT_TRUE(with({"--config", fleet_.File("none")}).err.contains("--config: ")) << "a missing file";
}

// Its children would buy machines from whoever has the port.
TEST_F(Program, UpTouchesNobodyWhoHasOneOfItsPorts) {
  Start();
  if (HasFatalFailure()) return;
  const Ran ran =
      Muster({"up", "--demo", "--data-dir", fleet_.File("up"), "--shard-listen", shard_->grpc(), "--for", "5s"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(ran.err.contains("--shard-listen: cannot listen on " + shard_->grpc() + ": Address already in use"))
      << ran.err;
  EXPECT_EQ(Fleet({"clusters", "-o", "json"}).out, "") << "nobody spoke to it";
  Stop(*shard_);
}

TEST_F(Program, FlagsComeBeforeTheEnvironmentAndThatBeforeTheFile) {
  const std::string file = fleet_.File("shard.yaml");
  std::ofstream(file) << "id: from-file\ncycle-interval: 7\nempty-rollup-guard: false\n";
  const std::vector<std::string> base = {"env",        smoke::ProgramUnderTest(), "shard",           "--config",   file,
                                         "--data-dir", fleet_.File("d"),          "--provider-addr", "127.0.0.1:1"};
  const auto error_with = [&](const std::vector<std::string>& environment, const std::vector<std::string>& flags) {
    std::vector<std::string> words = base;
    words.insert(words.begin() + 1, environment.begin(), environment.end());
    words.insert(words.end(), flags.begin(), flags.end());
    Process process(words);
    EXPECT_EQ(process.Wait(), 2);
    return process.err();
  };
  EXPECT_TRUE(error_with({}, {}).contains("duration \"7\"")) << error_with({}, {});
  EXPECT_TRUE(error_with({"MUSTER_SHARD_CYCLE_INTERVAL=8"}, {}).contains("duration \"8\""));
  EXPECT_TRUE(error_with({"MUSTER_SHARD_CYCLE_INTERVAL=8"}, {"--cycle-interval", "9"}).contains("duration \"9\""));
}

TEST_F(Program, CertificatesDecideWhoMaySpeakForACluster) {
  rpc::CertificateAuthorityForTest ca;
  const host::TempDir dir;
  const auto files = [&](const std::string& name, const std::string& alternatives) {
    return ca.Write(dir.path(), name, ca.Sign(alternatives));
  };
  const auto flags = [](const rpc::TlsFiles& tls) {
    return std::vector<std::string>{"--tls-cert", tls.cert, "--tls-key", tls.key, "--tls-ca", tls.ca};
  };
  const rpc::TlsFiles server = files("shard", "IP:127.0.0.1,URI:bigfleet://shard/shard-0");
  smoke::Server provider(provider::ProviderCommand(fleet_.File("provider"), fleet_.File("catalogue.yaml"), kMachines,
                                                   flags(files("provider", "IP:127.0.0.1"))));
  smoke::Server shard(fleet_.ShardCommand(provider.grpc(), ":0", flags(server)));
  ASSERT_FALSE(shard.grpc().empty()) << shard.process().err();
  std::ofstream(fleet_.File("needs.yaml")) << "- {aggregate: {cpu: 1}}\n";
  const auto play = [&](const std::string& who) {
    std::vector<std::string> words = {
        "rollup", "--shard", shard.grpc(), "--cluster", "blue", "-f", fleet_.File("needs.yaml")};
    const auto more = flags(files("caller", "URI:" + who));
    words.insert(words.end(), more.begin(), more.end());
    return Muster(words);
  };
  const Ran own = play("bigfleet://cluster/blue");
  EXPECT_EQ(own.code, 0) << own.err;
  const Ran other = play("bigfleet://cluster/green");
  EXPECT_EQ(other.code, 1);
  EXPECT_TRUE(other.err.contains("bigfleet://cluster/green")) << other.err;
  EXPECT_EQ(play("bigfleet://readonly").code, 1);
  const auto fleet = [&](const std::string& verb, const std::string& who) {
    std::vector<std::string> words = {"fleet", verb, "--shard", shard.grpc()};
    const auto more = flags(files("operator", "URI:" + who));
    words.insert(words.end(), more.begin(), more.end());
    return Muster(words).code;
  };
  EXPECT_EQ(fleet("needs", "bigfleet://readonly"), 0);
  EXPECT_EQ(fleet("pause", "bigfleet://readonly"), 1);
  EXPECT_EQ(fleet("pause", "bigfleet://admin"), 0);
  EXPECT_EQ(fleet("needs", "bigfleet://cluster/blue"), 1);
  const std::string metrics = host::HttpGet(*host::ParseListenAddress(shard.http(), false, "http"), "/metrics").body;
  EXPECT_TRUE(metrics.contains("bigfleet_shard_session_identity_rejected_total 1")) << metrics;
  Stop(shard);
  Stop(provider);
}

}  // namespace
}  // namespace muster::shard
