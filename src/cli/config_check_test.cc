#include "cli/config_check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "cli/role_verb.h"
#include "cli/verbs.h"
#include "host/temp_dir_for_test.h"

namespace muster::cli {
namespace {

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

class ConfigCheck : public testing::Test {
 protected:
  Outcome Run(std::vector<std::string> words) {
    CommandLine app({.version = "1", .commit = "c", .compiler = "C", .build_type = "T", .faults = false});
    AddVerbs(app);
    tree_ = app.Tree();
    words.insert(words.begin(), {"muster", "config", "check"});
    std::vector<const char*> argv;
    for (const std::string& word : words) argv.push_back(word.c_str());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = app.Main(static_cast<int>(argv.size()), argv.data());
    return {code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
  }
  Outcome Check(const std::string& name, std::string_view text, std::vector<std::string> more = {}) {
    std::ofstream(dir_.File(name)) << text;
    more.push_back(dir_.File(name));
    return Run(std::move(more));
  }

  host::TempDir dir_;
  CommandTree tree_;
};

TEST_F(ConfigCheck, EveryProblemIsNamedWithItsLineAndKey) {
  const Outcome outcome = Check("shard.yaml",
                                "data-dir: /var/lib/muster/shard\n"
                                "cycle-intervall: 1s\n"
                                "phase1-workers: 0\n"
                                "log-level: loud\n"
                                "listen: {port: 1}\n"
                                "cycle-interval: [1s, 2s]\n"
                                "dry-run: perhaps\n"
                                "provider-addr: 127.0.0.1:9100\n");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  const std::string file = dir_.File("shard.yaml");
  for (const std::string& line : {
           fmt::format("muster: {}:2:1: cycle-intervall: there is no such option; did you mean cycle-interval?\n",
                       file),
           fmt::format("muster: {}:3:1: phase1-workers must be a whole number from 1 to ", file),
           fmt::format("muster: {}:4:1: log-level must be one of ", file),
           fmt::format("muster: {}:5:9: listen: a value or a list of values is expected, not a map\n", file),
           fmt::format("muster: {}:6:1: cycle-interval takes one value, not 2\n", file),
           fmt::format("muster: {}:7:1: dry-run must be true or false, not \"perhaps\"\n", file),
       }) {
    EXPECT_TRUE(outcome.err.contains(line)) << line << outcome.err;
  }
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 6) << outcome.err;
}

TEST_F(ConfigCheck, WhatIsRightIsCountedAndWhatIsMissingIsSaid) {
  const Outcome whole =
      Check("shard.yaml", "data-dir: /var/lib/muster/shard\nprovider-addr: 127.0.0.1:9100\ndry-run: true\n");
  EXPECT_EQ(whole.code, 0) << whole.err;
  EXPECT_EQ(whole.out, dir_.File("shard.yaml") + ": 3 settings for muster shard, nothing wrong\n");
  const Outcome part = Check("node.yaml", "scheduler: 10.0.0.1:8085\n", {"--role", "agent"});
  EXPECT_EQ(part.code, 0) << part.err;
  EXPECT_EQ(part.out, fmt::format("{0}: data-dir is not in it, and muster agent needs it: give it as a flag, or in the "
                                  "environment\n{0}: 1 setting for muster agent, nothing wrong\n",
                                  dir_.File("node.yaml")));
}

// Each setting alone is right.
TEST_F(ConfigCheck, WhatDoesNotGoTogetherIsSaid) {
  const Outcome outcome = Check("shard.yaml",
                                "data-dir: /var/lib/muster/shard\nprovider-addr: 127.0.0.1:9100\n"
                                "tls-cert: /nowhere/cert.pem\n");
  EXPECT_EQ(outcome.code, 2) << outcome.out;
  EXPECT_TRUE(outcome.err.starts_with(fmt::format("muster: {}: ", dir_.File("shard.yaml")))) << outcome.err;
  EXPECT_TRUE(outcome.err.contains("--tls")) << outcome.err;

  // Neither does a setting that is to be given elsewhere hide it.
  const Outcome part = Check("agent.yaml", "tls-cert: /nowhere/cert.pem\n");
  EXPECT_EQ(part.code, 2) << part.out;
  EXPECT_TRUE(part.out.contains("data-dir is not in it")) << part.out;
  EXPECT_FALSE(part.out.contains("nothing wrong")) << part.out;
  EXPECT_TRUE(part.err.contains("--tls")) << part.err;
}

// What a role makes of the word, and what is said of it.
TEST_F(ConfigCheck, TakesTheWordsOfASwitchThatTheRoleTakes) {
  for (const std::string word : {"true",    "True", "TRUE", "t",  "y",     "Yes",     "on",   "ON", "enable", "+",
                                 "1",       "2",    "9",    "12", "false", "False",   "f",    "n",  "no",     "Off",
                                 "disable", "-",    "0",    "-3", "",      "perhaps", "yess", "x",  "1x"}) {
    SCOPED_TRACE(word);
    std::ofstream(dir_.File("toy.yaml")) << fmt::format("quiet: \"{0}\"\nno-keep: \"{0}\"\n", word);
    const auto declare = [](host::Settings& settings, bool& quiet, bool& keep) {
      settings.Switch("--quiet", quiet, "Say nothing").Switch("--keep", keep, "Keep all");
    };
    bool quiet = false;
    bool keep = true;
    host::Settings settings;
    declare(settings, quiet, keep);
    CommandLine app({.version = "1", .commit = "c", .compiler = "C", .build_type = "T", .faults = false});
    Verb toy = app.AddVerb("toy", "A toy");
    BindSettings(toy, settings);
    toy.Example("muster toy").Run([&]() -> Result<int> {
      if (Status landed = settings.Land(); !landed.ok()) return std::unexpected(std::move(landed));
      return kOk;
    });
    const std::string file = dir_.File("toy.yaml");
    const std::vector<const char*> argv = {"muster", "toy", "--config", file.c_str()};
    testing::internal::CaptureStderr();
    const int code = app.Main(static_cast<int>(argv.size()), argv.data());
    const std::string err = testing::internal::GetCapturedStderr();

    bool said_quiet = false;
    bool said_keep = true;
    host::Settings checked;
    declare(checked, said_quiet, said_keep);
    const auto verdict = CheckConfig(file, checked);
    ASSERT_TRUE(verdict.has_value()) << verdict.error().ToString();
    EXPECT_EQ(verdict->problems.empty(), code == kOk) << err;
    if (code != kOk) continue;
    EXPECT_EQ(said_quiet, quiet);
    EXPECT_EQ(said_keep, keep);
  }
}

TEST_F(ConfigCheck, AFileThatSaysNotWhoseItIsOrIsNotThereIsRefused) {
  EXPECT_EQ(Check("mine.yaml", "listen: :1\n").code, 2);
  EXPECT_TRUE(Check("mine.yaml", "listen: :1\n").err.contains("give --role, one of shard, scheduler, agent"));
  EXPECT_TRUE(Check("mine.yaml", "", {"--role", "shart"}).err.contains("did you mean shard?"));
  EXPECT_EQ(Run({dir_.File("none/shard.yaml")}).code, 1);
  EXPECT_EQ(Check("shard.yaml", "- a\n").code, 2);
}

TEST_F(ConfigCheck, KnowsEveryVerbThatTakesAFile) {
  EXPECT_EQ(Check("serve.yaml", "").code, 0);
  size_t roles = 0;
  for (const CommandTree tree = tree_; const CommandTree& verb : tree.verbs) {  // each run makes it anew
    const bool takes_file = std::ranges::any_of(verb.options, [](const CommandOption& option) {
      return std::ranges::find(option.names, "--config") != option.names.end();
    });
    if (!takes_file) continue;
    ++roles;
    EXPECT_EQ(Check("any.yaml", "", {"--role", verb.name}).code, 0) << verb.name;
  }
  EXPECT_GE(roles, 6u);
}

}  // namespace
}  // namespace muster::cli
