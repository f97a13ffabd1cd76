// Every case of tests/cases/engine: read, run by both engines, and compared with what it expects. With MUSTER_ACCEPT=1
// (`./dev test
// --accept`) the expectations are rewritten instead; read the difference before you commit it.
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
#include "engine/case_print.h"
#include "engine/case_run.h"
#include "engine/compare.h"
#include "engine/reference/decide.h"
#include "host/case_folder_for_test.h"

namespace muster::engine {
namespace {

const std::filesystem::path kFolder = SourceDir() + "/tests/cases/engine";

std::string Decided(const Case& input, const DecideFunction& decide) {
  CaseText text(CaseText::Form::kExpect);
  RunCase(input, decide, input.cycles, [&](const CaseCycle& cycle) { text.Add(cycle); });
  return text.Take();
}

// The order in which a provider lists machines means nothing.
Decision DecideReversed(const World& world, Memory& memory, MonoTime now, const Policy& policy) {
  World reversed = world;
  std::ranges::reverse(reversed.machines);
  return reference::Decide(reversed, memory, now, policy);
}

class EngineCase : public testing::TestWithParam<std::string> {};

TEST_P(EngineCase, DecidesAsExpected) {
  const std::filesystem::path path = kFolder / (GetParam() + ".yaml");
  const std::string text = host::ReadCaseText(path);
  const auto input = ReadCase(text, path.filename().string());
  ASSERT_TRUE(input) << input.error().message();
  EXPECT_NE(input->about, "") << "say what the case shows";
  EXPECT_FALSE(input->rules.empty()) << "name the rules it demonstrates";
  const std::string decided = Decided(*input, reference::Decide);
  EXPECT_EQ(decided, Decided(*input, DecideReversed));
  Comparison comparison;
  EXPECT_EQ(decided, Decided(*input, comparison.AsFunction()));
  EXPECT_EQ(comparison.difference(), "");
  if (std::getenv("MUSTER_ACCEPT") != nullptr && input->expect != decided) {
    const auto accepted = WithExpect(text, path.string(), decided);
    ASSERT_TRUE(accepted) << accepted.error().message();
    std::ofstream(path, std::ios::binary | std::ios::trunc) << *accepted;
    const auto again = ReadCase(host::ReadCaseText(path), path.string());
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_EQ(again->expect, decided);
    return;
  }
  ASSERT_TRUE(input->expect) << "it expects nothing yet; ./dev test --accept -R cases_test writes what it decides";
  EXPECT_EQ(*input->expect, decided) << "if this is right, ./dev test --accept -R cases_test";
}

INSTANTIATE_TEST_SUITE_P(Engine, EngineCase, testing::ValuesIn(host::CaseNames(kFolder)), [](const auto& test) {
  std::string name = test.param;
  std::ranges::replace_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace muster::engine
