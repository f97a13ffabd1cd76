// Every scenario of tests/scenarios: read, played twice, and compared with the story it expects, byte for byte. With
// MUSTER_ACCEPT=1 (`./dev test --accept`) the stories are rewritten instead; read the difference before you commit it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/source_dir_for_test.h"
#include "engine/case_file.h"
#include "host/case_folder_for_test.h"
#include "sim/scenario_file.h"
#include "sim/scenario_run.h"

namespace muster::sim {
namespace {

const std::filesystem::path kFolder = SourceDir() + "/tests/scenarios";

class ScenarioTest : public testing::TestWithParam<std::string> {};

TEST_P(ScenarioTest, GoesAsExpected) {
  const std::filesystem::path path = kFolder / (GetParam() + ".yaml");
  const std::string text = host::ReadCaseText(path);
  const auto scenario = ReadScenario(text, path.filename().string());
  ASSERT_TRUE(scenario) << scenario.error().message();
  EXPECT_NE(scenario->about, "") << "say what the scenario shows";
  const auto story = PlayScenario(*scenario);
  ASSERT_TRUE(story) << story.error().message();
  EXPECT_EQ(*story, PlayScenario(*scenario).value());
  if (std::getenv("MUSTER_ACCEPT") != nullptr && scenario->expect != *story) {
    const auto accepted = engine::WithExpect(text, path.string(), *story);
    ASSERT_TRUE(accepted) << accepted.error().message();
    std::ofstream(path, std::ios::binary | std::ios::trunc) << *accepted;
    const auto again = ReadScenario(host::ReadCaseText(path), path.string());
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_EQ(again->expect, *story);
    return;
  }
  ASSERT_TRUE(scenario->expect) << "it expects nothing yet; ./dev test --accept -R scenarios_test writes what happens";
  EXPECT_EQ(*scenario->expect, *story) << "if this is right, ./dev test --accept -R scenarios_test";
}

INSTANTIATE_TEST_SUITE_P(Sim, ScenarioTest, testing::ValuesIn(host::CaseNames(kFolder)), [](const auto& test) {
  std::string name = test.param;
  std::ranges::replace_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

// What is wrong with this scenario.
std::string Problem(const std::string& text) {
  const auto scenario = ReadScenario(text, "s.yaml");
  return scenario ? "" : scenario.error().message();
}

TEST(ScenarioFileTest, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(Problem("lasts: 1s\n"), "");
  EXPECT_EQ(Problem("lasts: 1s\nsteps: [{at: 2s}]\n"), "s.yaml:1:8: lasts: the scenario ends before its last step");
  EXPECT_EQ(Problem("lasts: 9s\nsteps: [{at: 2s}, {at: 1s}]\n"),
            "s.yaml:2:24: steps[1].at: steps are written in the order of time");
  EXPECT_EQ(Problem("lasts: 9s\nsteps: [{at: 2s, lost: [m]}]\n"),
            "s.yaml:2:25: steps[0].lost[0]: there is no machine \"m\"");
  EXPECT_NE(Problem("lasts: 9s\nmachines: [{id: m, state: Creating}]\n"), "");
  EXPECT_NE(Problem("lasts: 9s\nmachines: [{id: m, state: Idle, idleFor: 1m}]\n"), "");
  EXPECT_NE(Problem("lasts: 9s\nnonsense: 1\n"), "");
}

}  // namespace
}  // namespace muster::sim
