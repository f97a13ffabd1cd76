// Every case of tests/cases/scheduler: played, and compared with what it expects. With MUSTER_ACCEPT=1 (`./dev test
// --accept`) the expectations are rewritten instead; read the difference before you commit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/source_dir_for_test.h"
#include "host/case_folder_for_test.h"
#include "scheduler/case_player.h"

namespace muster::scheduler {
namespace {

const std::filesystem::path kFolder = SourceDir() + "/tests/cases/scheduler";

std::string WithExpect(const std::string& text, const std::string& expect) {
  std::string result = text.substr(0, text.find("\nexpect: |\n") + 1);
  if (result.empty()) result = text;
  result += "expect: |\n";
  std::istringstream lines(expect);
  for (std::string line; std::getline(lines, line);) result += "  " + line + "\n";
  return result;
}

class SchedulerCases : public testing::TestWithParam<std::string> {};

TEST_P(SchedulerCases, GoAsExpected) {
  const std::filesystem::path path = kFolder / (GetParam() + ".yaml");
  const std::string text = host::ReadCaseText(path);
  const auto input = ReadSchedulerCase(text, path.filename().string());
  ASSERT_TRUE(input) << input.error().message();
  EXPECT_NE(input->about, "") << "say what the case shows";
  const std::string told = PlaySchedulerCase(*input);
  if (std::getenv("MUSTER_ACCEPT") != nullptr && input->expect != told) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << WithExpect(text, told);
    return;
  }
  ASSERT_TRUE(input->expect) << "it expects nothing yet; ./dev test --accept scheduler_cases_test writes it";
  EXPECT_EQ(*input->expect, told) << "if this is right, ./dev test --accept scheduler_cases_test";
}

INSTANTIATE_TEST_SUITE_P(Cases, SchedulerCases, testing::ValuesIn(host::CaseNames(kFolder)), [](const auto& test) {
  std::string name = test.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST(SchedulerCaseFile, SaysWhereItIsWrong) {
  const auto message = [](std::string_view text) {
    const auto read = ReadSchedulerCase(text, "case.yaml");
    return read ? std::string("no error") : std::string(read.error().message());
  };
  EXPECT_EQ(message("about: a\nlasts: 1s\nnodes: [{total: {cpu: 1}}]\n"),
            "case.yaml:3:9: nodes[0].id: this field is required");
  EXPECT_EQ(message("about: a\nlasts: 1s\nsteps: [{at: 2s, applies: []}]\n").substr(0, 40),
            "case.yaml:3:18: steps[0].applies: unknow");
  EXPECT_EQ(message("about: a\nlasts: 1s\nsteps: [{at: 2s}]\n"), "case.yaml:2:8: lasts: the last step is later");
  EXPECT_EQ(message("about: a\nlasts: 9s\nsteps: [{at: 2s}, {at: 1s}]\n"),
            "case.yaml:3:24: steps[1].at: steps are in the order of time");
}

}  // namespace
}  // namespace muster::scheduler
