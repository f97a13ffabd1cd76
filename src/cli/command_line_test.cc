#include "cli/command_line.h"

#include <gtest/gtest.h>

#include "cli/verbs.h"

namespace muster::cli {
namespace {

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

class CommandLineTest : public testing::Test {
 protected:
  // A command line with one verb of each kind, run once.
  Outcome Run(std::vector<const char*> words) {
    CommandLine app({.version = "1.2.3", .commit = "abc", .compiler = "C", .build_type = "T", .faults = false});
    AddVersion(app);
    app.AddVerb("place", "Place things")
        .Argument("thing", thing_, "What to place")
        .Option("--count", count_, "How many")
        .Option("--seed", seed_, "Seed")
        .Option("--ratio", ratio_, "Ratio")
        .Option("--label", labels_, "Labels")
        .Path("--log", log_, "Where to write")
        .Flag("--dry-run", dry_run_, "Change nothing")
        .Choice("-o,--output", output_, {"table", "json"}, "Form")
        .Instead("--list", "List what can be placed",
                 [] {
                   Print("box\n");
                   return kOk;
                 })
        .Example("muster place box --count 2")
        .Run([this] {
          ++runs_;
          return answer_;
        });
    Verb fleet = app.AddVerb("fleet", "About the fleet");
    fleet.AddVerb("machines", "List machines").Example("muster fleet machines").Run([this]() -> Result<int> {
      ++machines_runs_;
      return kOk;
    });
    words.insert(words.begin(), "muster");
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = app.Main(static_cast<int>(words.size()), words.data());
    return {code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
  }
  void ExpectUsageError(const std::vector<const char*>& words, const std::string& sentence) {
    const Outcome outcome = Run(words);
    EXPECT_EQ(outcome.code, 2) << sentence;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, sentence + "\n");
    EXPECT_EQ(runs_, 0);
  }

  std::string thing_;
  int64_t count_ = 1;
  uint64_t seed_ = 0;
  double ratio_ = 0.5;
  std::vector<std::string> labels_;
  std::string log_;
  bool dry_run_ = false;
  std::string output_ = "table";
  Result<int> answer_ = kOk;
  int runs_ = 0;
  int machines_runs_ = 0;
};

TEST_F(CommandLineTest, SetsEveryKindOfOption) {
  const Outcome outcome = Run({"place", "--count", "-3", "box", "--seed=18446744073709551615", "--ratio", "1.5",
                               "--label", "a=1", "--label", "b=2", "--log", "a b", "--dry-run", "-o", "json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(runs_, 1);
  EXPECT_EQ(thing_, "box");
  EXPECT_EQ(count_, -3);
  EXPECT_EQ(seed_, 18446744073709551615u);
  EXPECT_EQ(ratio_, 1.5);
  EXPECT_EQ(labels_, (std::vector<std::string>{"a=1", "b=2"}));
  EXPECT_EQ(log_, "a b");
  EXPECT_TRUE(dry_run_);
  EXPECT_EQ(output_, "json");
}

TEST_F(CommandLineTest, AFlagMayStandForTheVerb) {
  const Outcome listed = Run({"place", "box", "--list"});
  EXPECT_EQ(listed.code, 0) << listed.err;
  EXPECT_EQ(listed.out, "box\n");
  EXPECT_EQ(runs_, 0);
}

TEST_F(CommandLineTest, VerbsBelowVerbs) {
  EXPECT_EQ(Run({"fleet", "machines"}).code, 0);
  EXPECT_EQ(machines_runs_, 1);
  const Outcome alone = Run({"fleet"});
  EXPECT_EQ(alone.code, 2);
  EXPECT_NE(alone.err.find("machines"), std::string::npos) << alone.err;
  ExpectUsageError({"fleet", "machine"},
                   "muster: verb \"machine\" is unknown, did you mean machines?; see muster fleet --help");
}

TEST_F(CommandLineTest, UsageErrorsSayWhatToDo) {
  ExpectUsageError({"plaice"}, "muster: verb \"plaice\" is unknown, did you mean place?; see muster --help");
  ExpectUsageError({"frobnicate"}, "muster: verb \"frobnicate\" is unknown; see muster --help");
  ExpectUsageError({"place", "box", "--cuont", "2"},
                   "muster: option \"--cuont\" is unknown, did you mean --count?; see muster place --help");
  ExpectUsageError({"--bogus", "version"}, "muster: option \"--bogus\" is unknown; see muster --help");
  ExpectUsageError({"place", "box", "bag"}, "muster: \"bag\" was not expected; see muster place --help");
  ExpectUsageError({"place"}, "muster: thing is required; see muster place --help");
  ExpectUsageError({"place", "box", "--count", "two"},
                   "muster: Could not convert: --count = two; see muster place --help");
  ExpectUsageError({"place", "box", "--log", ""},
                   "muster: --log: the path is empty; name one, or leave the option out; see muster place --help");
  ExpectUsageError({"plac"}, "muster: verb \"plac\" is unknown, did you mean place?; see muster --help");
  ExpectUsageError({"ver"}, "muster: verb \"ver\" is unknown, did you mean version?; see muster --help");
  ExpectUsageError({"place", "box", "-o", "xml"}, "muster: --output: xml not in {table,json}; see muster place --help");
}

TEST_F(CommandLineTest, ErrorsOfTheActionPickTheExitCode) {
  answer_ = 7;
  EXPECT_EQ(Run({"place", "box"}).code, 7);
  answer_ = Error(Code::kUnavailable, "the shard does not answer");
  Outcome outcome = Run({"place", "box"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "muster: the shard does not answer\n");
  answer_ = InvalidArgument("case.yaml:3:1: unknown field");
  outcome = Run({"place", "box"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "muster: case.yaml:3:1: unknown field\n");
}

TEST_F(CommandLineTest, Help) {
  const Outcome none = Run({});
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("Place things"), std::string::npos);
  for (const auto& words : {std::vector<const char*>{"--help"}, std::vector<const char*>{"-h"}}) {
    const Outcome root = Run(words);
    EXPECT_EQ(root.code, 0);
    EXPECT_NE(root.out.find("Place things"), std::string::npos) << root.out;
  }
  const Outcome verb = Run({"place", "--help"});
  EXPECT_EQ(verb.code, 0);
  EXPECT_NE(verb.out.find("Usage: muster place [OPTIONS] thing"), std::string::npos) << verb.out;
  EXPECT_NE(verb.out.find("Examples:\n  muster place box --count 2\n"), std::string::npos) << verb.out;
}

TEST_F(CommandLineTest, Version) {
  EXPECT_EQ(Run({"--version"}).out, "muster 1.2.3 (abc)\n");
  EXPECT_EQ(Run({"version", "-o", "json"}).out,
            R"({"version":"1.2.3","commit":"abc","compiler":"C","build_type":"T","faults":false})"
            "\n");
  EXPECT_EQ(Run({"version"}).out,
            "muster 1.2.3\ncommit      abc\ncompiler    C\nbuild type  T\nfaults      not compiled in\n");
}

}  // namespace
}  // namespace muster::cli
