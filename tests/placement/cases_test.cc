// Every case of tests/cases/placement: read, answered by both placers, and compared with what it expects. With
// MUSTER_ACCEPT=1 (`./dev test --accept`) the expectations are rewritten instead; read the difference before you
// commit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/source_dir_for_test.h"
#include "host/case_folder_for_test.h"
#include "placement/case_file.h"
#include "placement/fast/placer.h"
#include "placement/reference/place.h"

namespace muster::placement {
namespace {

const std::filesystem::path kFolder = SourceDir() + "/tests/cases/placement";

std::string ByReference(const Case& input, bool reversed) {
  World world = input.world;
  if (reversed) std::ranges::reverse(world.nodes);
  return RunCase(input,
                 {.place = [&](std::span<const Unit> units) { return reference::Place(world, units, input.policy); },
                  .feasible =
                      [&](KindIndex kind) {
                        auto verdicts = reference::Feasible(world, world.kinds[kind.value()]);
                        std::ranges::sort(verdicts, {}, &NodeVerdict::node);
                        return verdicts;
                      }});
}

std::string ByFast(const Case& input) {
  fast::Placer placer(input.policy);
  placer.Load(input.world);
  std::string text = RunCase(input, {.place = [&](std::span<const Unit> units) { return placer.Place(units); },
                                     .feasible = [&](KindIndex kind) { return placer.Feasible(kind); }});
  placer.CheckInvariants();
  return text;
}

std::string WithExpect(const std::string& text, const std::string& expect) {
  std::string result = text.substr(0, text.find("\nexpect: |\n") + 1);
  if (result.empty()) result = text;
  result += "expect: |\n";
  std::istringstream lines(expect);
  for (std::string line; std::getline(lines, line);) result += "  " + line + "\n";
  return result;
}

class PlacementCase : public testing::TestWithParam<std::string> {};

TEST_P(PlacementCase, IsPlacedAsExpected) {
  const std::filesystem::path path = kFolder / (GetParam() + ".yaml");
  const std::string text = host::ReadCaseText(path);
  const auto input = ReadCase(text, path.filename().string());
  ASSERT_TRUE(input) << input.error().message();
  EXPECT_NE(input->about, "") << "say what the case shows";
  EXPECT_FALSE(input->rules.empty()) << "name the rules it shows";
  EXPECT_FALSE(input->units.empty()) << "a case places something";
  const std::string placed = ByReference(*input, false);
  EXPECT_EQ(placed, ByReference(*input, true)) << "the order of the nodes means nothing";
  EXPECT_EQ(placed, ByFast(*input));
  if (std::getenv("MUSTER_ACCEPT") != nullptr && input->expect != placed) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << WithExpect(text, placed);
    return;
  }
  ASSERT_TRUE(input->expect) << "it expects nothing yet; ./dev test --accept -R placement_cases_test writes it";
  EXPECT_EQ(*input->expect, placed) << "if this is right, ./dev test --accept -R placement_cases_test";
}

INSTANTIATE_TEST_SUITE_P(Cases, PlacementCase, testing::ValuesIn(host::CaseNames(kFolder)), [](const auto& test) {
  std::string name = test.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

// A rule whose row of docs/placement.md names a page of Kubernetes.
std::set<std::string> RulesOfKubernetes() {
  std::set<std::string> rules;
  std::ifstream page(SourceDir() + "/docs/placement.md");
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `") || !line.contains("](https://") || !line.contains("kubernetes")) continue;
    rules.insert(line.substr(3, line.find('`', 3) - 3));
  }
  return rules;
}

TEST(PlacementCases, SixtyShowWhatKubernetesDocuments) {
  const std::set<std::string> rules = RulesOfKubernetes();
  EXPECT_GE(rules.size(), 25u);
  size_t cases = 0;
  for (const std::string& name : host::CaseNames(kFolder)) {
    const auto input = ReadCase(host::ReadCaseText(kFolder / (name + ".yaml")), name);
    ASSERT_TRUE(input) << input.error().message();
    cases += std::ranges::any_of(input->rules, [&](const std::string& rule) { return rules.contains(rule); }) ? 1 : 0;
  }
  EXPECT_GE(cases, 60u);
}

TEST(PlacementCaseFile, SaysWhereItIsWrong) {
  const auto message = [](std::string_view text) {
    const auto read = ReadCase(text, "case.yaml");
    return read ? std::string("no error") : std::string(read.error().message());
  };
  EXPECT_EQ(message("nodes: [{total: {cpu: 1}}]\n"), "case.yaml:1:9: nodes[0].id: this field is required");
  EXPECT_EQ(message("nodes: [{id: n, cpus: 1}]\n").substr(0, 39), "case.yaml:1:17: nodes[0].cpus: unknown ");
  EXPECT_EQ(message("kinds: {a: {devices: {whole: 1, milli: 1}}}\n"),
            "case.yaml:1:12: kinds.a: devices: ask for whole ones or a part, not both");
  EXPECT_EQ(message("units: [{id: u, kind: a}]\n"), "case.yaml:1:23: units[0].kind: there is no kind a");
  EXPECT_EQ(message("kinds: {a: {}}\nplaced: [{id: u, kind: a, node: n}]\n"),
            "case.yaml:1:1: unit u: there is no node n");
}

}  // namespace
}  // namespace muster::placement
