#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "cli/verbs.h"
#include "host/temp_dir_for_test.h"

namespace muster::cli {
namespace {

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

class DecideTest : public testing::Test {
 protected:
  std::string Write(const std::string& text) {
    std::ofstream(dir_.File("case.yaml"), std::ios::binary | std::ios::trunc) << text;
    return dir_.File("case.yaml");
  }
  Outcome Run(std::vector<std::string> words) {
    CommandLine app({.version = "1", .commit = "c", .compiler = "C", .build_type = "T", .faults = false});
    AddDecide(app);
    std::vector<const char*> argv = {"muster", "decide"};
    for (const std::string& word : words) argv.push_back(word.c_str());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = app.Main(static_cast<int>(argv.size()), argv.data());
    return {code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
  }
  void ExpectRefused(const std::vector<std::string>& words, const std::string& sentence) {
    const Outcome outcome = Run(words);
    EXPECT_EQ(outcome.code, 2) << sentence;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "muster: " + sentence + "\n");
  }

  const host::TempDir dir_;
  const std::string good_ =
      "machines: [{id: m, state: Idle, resources: {cpu: 4}}]\n"
      "clusters: [{id: c, needs: [{name: web, aggregate: {cpu: 4}}]}]\ncycles: 2\n";
};

TEST_F(DecideTest, TableJsonAndExplanations) {
  const std::string file = Write(good_);
  const Outcome table = Run({"-f", file});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_TRUE(table.out.starts_with("cycle 1, at 0s\n  Bootstrap  m  to c for web  ")) << table.out;
  EXPECT_NE(table.out.find("cycle 2"), std::string::npos);
  EXPECT_EQ(Run({"-f", file, "--cycles", "1"}).out.find("cycle 2"), std::string::npos);
  const Outcome json = Run({"-f", file, "-o", "json", "--engine", "reference"});
  EXPECT_EQ(json.code, 0) << json.err;
  EXPECT_TRUE(json.out.starts_with(R"({"cycle":1,"actions":[{"kind":"Bootstrap","machine":"m",)")) << json.out;
  EXPECT_EQ(json.out, Run({"-f", file, "-o", "json"}).out) << "the engines decide alike";
  EXPECT_EQ(std::ranges::count(json.out, '\n'), 2);
  EXPECT_EQ(json.out.find("\"machines\":["), std::string::npos);
  EXPECT_NE(Run({"-f", file, "-o", "json", "--machines"}).out.find("\"machines\":["), std::string::npos);
  EXPECT_TRUE(Run({"-f", file, "--explain", "need", "web"}).out.starts_with("need web of cluster c, cycle 2\n"));
  EXPECT_TRUE(Run({"-f", file, "--cycles", "1", "--explain", "machine", "m"}).out.starts_with("machine m, cycle 1\n"));
}

TEST_F(DecideTest, MoreResourcesThanTheFastEngineHasRoomFor) {
  std::string wide = "cpu: 4";
  for (int i = 0; i < 16; ++i) wide += fmt::format(", r{}: 1", i);
  std::string text = good_;
  text.replace(text.find("cpu: 4"), 6, wide);
  const std::string file = Write(text);
  ExpectRefused(
      {"-f", file},
      "the machines of the case have 17 resources and the fast engine has room for 15: use --engine reference");
  EXPECT_EQ(Run({"-f", file, "--engine", "reference"}).code, 0);
}

TEST_F(DecideTest, BadCommandLines) {
  const std::string file = Write(good_);
  ExpectRefused({}, "say which file with -f FILE; - is standard input");
  ExpectRefused({"-f", dir_.File("none")}, dir_.File("none") + ": cannot open: No such file or directory");
  ExpectRefused({"-f", file, "--cycles", "-1"}, "--cycles: write a number from 1 to 10000");
  ExpectRefused({"-f", file, "--cycles", "10001"}, "--cycles: write a number from 1 to 10000");
  ExpectRefused({"-f", file, "--explain", "node", "m"}, "--explain node: write need NAME or machine ID");
  ExpectRefused({"-f", file, "--explain", "need", "wbe"},
                "no need is called \"wbe\" in cycle 2; did you mean \"web\"?");
}

TEST_F(DecideTest, BadFiles) {
  const std::string file = dir_.File("case.yaml");
  const auto refused = [&](const std::string& text, const std::string& sentence) {
    Write(text);
    ExpectRefused({"-f", file}, file + sentence);
  };
  refused("machines: [{id: m, state: Idle, resource: {cpu: 4}}]",
          ":1:33: machines[0].resource: unknown field; did you mean \"resources\"?");
  refused("machines: [{id: m, state: Idle, resources: {cpu: 1,5}}]",
          ":1:52: machines[0].resources.5: expected a single value but found null");
  refused("machines: [{id: m, state: Idle}, {id: m, state: Idle}]",
          ":1:39: machines[1].id: there is a machine \"m\" already; ids are unique");
  refused(
      "clusters: [{id: c, needs: [{aggregate: {cpu: 1}, requirements: [{key: k, operator: Is}]}]}]",
      ":1:84: clusters[0].needs[0].requirements[0].operator: unknown operator \"Is\": use one of In, NotIn, Exists, "
      "DoesNotExist, Same, Gt, Lt");
  refused("machines: [{id: m, state: Idle, resources: {cpu: 4cores}}]",
          ":1:50: machines[0].resources.cpu: quantity \"4cores\": unknown suffix \"cores\"; use one of n u m k M G T P "
          "E Ki Mi "
          "Gi Ti Pi Ei, or e and an exponent");
  refused("a: &a\n  b: *a\n", ":1:4: a: anchors (&) and aliases (*) are not supported; write the value out");
  refused("", ": the file is empty; expected one document");
  refused(std::string(1000, '\xff'), ":1:1: byte 0xff is not UTF-8; save the file as UTF-8");
}

TEST_F(DecideTest, AHundredMegabytesAreRefusedByTheirSize) {
  const std::string file = Write("");
  std::filesystem::resize_file(file, 100'000'000);
  ExpectRefused({"-f", file},
                file +
                    ": 100000000 bytes are more than the limit of 16777216; split the file, or use JSON lines for "
                    "large fleets");
}

}  // namespace
}  // namespace muster::cli
