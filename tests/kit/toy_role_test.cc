// What a role gets from the kit, shown on the toy: stored state, answers, settings from flags, environment and file,
// metrics, readiness, a journal that replays, a verb that stops at a signal.
#include "kit/toy_role.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <future>

#include "cli/role_verb.h"
#include "host/http_get_for_test.h"
#include "host/replay.h"
#include "host/temp_dir_for_test.h"

namespace muster::toy {
namespace {

// Before any thread is made: a signal that a test sends waits for host::Signals, and hits no thread of a library.
const bool kSignalBlocked = [] {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  return pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0;
}();

class Toy : public testing::Test {
 protected:
  Options AnyPorts() {
    return {.server = {.listen = {"127.0.0.1", 0},
                       .metrics_addr = {"127.0.0.1", 0},
                       .data_dir = dir_.File("data"),
                       .journal = dir_.File("journal")}};
  }
  static Result<std::string> Replaced(ToyRole& role, std::string note) {
    const auto answer = std::make_shared<std::promise<Result<std::string>>>();
    role.Ask(std::move(note), [answer](Result<std::string> result) { answer->set_value(std::move(result)); });
    return answer->get_future().get();
  }
  // `muster toy` with these words; its exit code, and what it wrote to standard error.
  std::pair<int, std::string> Run(std::vector<std::string> words) {
    cli::CommandLine app({.version = "1", .commit = "c"});
    cli::AddRoleVerb<ToyRole>(app, "toy", "Run a toy", {"muster toy --data-dir D"}, DeclareSettings);
    words.insert(words.begin(), {"muster", "toy", "--listen", ":0", "--metrics-addr", ":0"});
    std::vector<const char*> argv;
    for (const std::string& word : words) argv.push_back(word.c_str());
    testing::internal::CaptureStderr();
    const int code = app.Main(static_cast<int>(argv.size()), argv.data());
    return {code, testing::internal::GetCapturedStderr()};
  }

  const host::TempDir dir_;
};

TEST_F(Toy, WhatWasAnsweredSurvivesARestart) {
  for (const char* before : {"", "second"}) {
    ToyRole role(AnyPorts());
    ASSERT_EQ(role.Start({}), Status());
    EXPECT_EQ(Replaced(role, "first"), before);
    EXPECT_EQ(Replaced(role, "second"), "first");
  }
  const auto report = host::Replay<Core>(dir_.File("journal"));
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_EQ(report->divergence, std::nullopt);
  EXPECT_EQ(report->segments, 2u);
  EXPECT_EQ(report->steps, 4u);
}

TEST_F(Toy, RefusesStateOfANewerBuildAndAJournalOfAnother) {
  contract::Recovered rows = {{"format", codec::ToBytes(kFormat + 1)}, {"row of its own", ""}};
  EXPECT_EQ(Core::Recover({}, rows).error().code(), Code::kFailedPrecondition);
  const Core core = *Core::Recover({}, {});
  std::string saved = core.Save();
  EXPECT_EQ(Core::Load(saved)->Save(), saved);
  ++saved.front();
  EXPECT_FALSE(Core::Load(saved)) << "another layout";
}

TEST_F(Toy, RefusesByItsSettingAndCountsIt) {
  Options options = AnyPorts();
  host::Settings settings;
  DeclareSettings(settings, options);
  ASSERT_EQ(settings.Give("--most-bytes", "3"), Status());
  ASSERT_EQ(settings.Give("--data-dir", dir_.File("data")), Status());
  ASSERT_EQ(settings.Give("--listen", ":0"), Status());
  ASSERT_EQ(settings.Give("--metrics-addr", ":0"), Status());
  ASSERT_EQ(settings.Land(), Status());
  ToyRole role(options);
  ASSERT_EQ(role.Start({}), Status());
  EXPECT_EQ(Replaced(role, "four").error().code(), Code::kOutOfRange);
  EXPECT_EQ(Replaced(role, "two"), "");
  const std::string metrics = host::HttpGet(role.metrics_address(), "/metrics").body;
  EXPECT_TRUE(metrics.contains("muster_toy_replaced_total{outcome=\"refused\"} 1\n")) << metrics;
  EXPECT_TRUE(metrics.contains("muster_toy_replaced_total{outcome=\"ok\"} 1\n")) << metrics;
  EXPECT_TRUE(metrics.contains("muster_build_info{")) << metrics;
}

TEST_F(Toy, IsReadyUntilItStopsAndThenRefuses) {
  ToyRole role(AnyPorts());
  ASSERT_EQ(role.Start({}), Status());
  EXPECT_EQ(host::HttpGet(role.metrics_address(), "/readyz").status, 200);
  EXPECT_EQ(ToyRole(AnyPorts()).Start({}).code(), Code::kFailedPrecondition) << "the data directory is taken";
  role.Stop();
  EXPECT_EQ(host::HttpGet(role.metrics_address(), "/livez").status, 0);
  const auto refused = Replaced(role, "late");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Status(Code::kUnavailable, "the toy is stopping; ask again"));
  ToyRole next(AnyPorts());
  EXPECT_EQ(next.Start({}), Status()) << "a stopped role holds neither directory";
}

TEST_F(Toy, TheVerbServesUntilTheSignal) {
  ASSERT_TRUE(kSignalBlocked);
  ASSERT_EQ(kill(getpid(), SIGTERM), 0);
  const auto [code, log] = Run({"--data-dir", dir_.File("data")});
  EXPECT_EQ(code, 0) << log;
  EXPECT_TRUE(log.contains("\"msg\":\"listening\"")) << log;
  EXPECT_TRUE(log.contains("\"msg\":\"stopped\"")) << log;
  EXPECT_TRUE(std::filesystem::exists(dir_.File("data") + "/toy.db"));
}

TEST_F(Toy, ASettingComesFromFlagEnvironmentOrFile) {
  const std::string rule = "muster: --most-bytes must be a whole number from 1 to 1000, not ";
  const std::string file = dir_.File("toy.yaml");
  std::ofstream(file) << "data-dir: " << dir_.File("data") << "\nmost-bytes: 1001\n";
  EXPECT_EQ(Run({"--config", file}), std::pair(2, rule + "\"1001\"\n"));
  ASSERT_EQ(setenv("MUSTER_TOY_MOST_BYTES", "none", 1), 0);
  EXPECT_EQ(Run({"--config", file}), std::pair(2, rule + "\"none\"\n"));
  EXPECT_EQ(Run({"--config", file, "--most-bytes", "0"}), std::pair(2, rule + "\"0\"\n"));
  unsetenv("MUSTER_TOY_MOST_BYTES");
  EXPECT_EQ(Run({}), std::pair(2, std::string("muster: --data-dir is missing; name a directory for the note\n")));
  EXPECT_FALSE(std::filesystem::exists(dir_.File("data"))) << "nothing is made before every setting is fine";
}

}  // namespace
}  // namespace muster::toy
