#include "base/weight.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace muster {
namespace {

struct Rule {
  std::string key;
  std::vector<std::string> match_keys;

  MUSTER_FIELDS(Rule, key, match_keys)
};
struct Thing {
  std::map<std::string, std::string> secret_env;
  std::vector<Rule> rules;
  std::optional<std::string> note;
  CopyOnWrite<std::vector<std::pair<std::string, int64_t>>> body;

  MUSTER_FIELDS(Thing, secret_env, rules, note, body)
};

TEST(Weight, IsAtLeastTheBytesAndGrowsWithTheParts) {
  Thing thing;
  const size_t empty = WeightOf(thing);
  EXPECT_GT(empty, 0u);
  thing.note = std::string(1'000, 'x');
  EXPECT_GE(WeightOf(thing), empty + 1'000);
  thing.note.reset();
  for (int i = 0; i < 100; ++i) thing.secret_env[std::to_string(i)] = "";
  EXPECT_GE(WeightOf(thing), empty + 100 * (160 + 2 * 64)) << "a map of texts has a node and two texts for each entry";
  thing.secret_env.clear();
  thing.rules.resize(10);
  EXPECT_EQ(WeightOf(thing), empty + 10 * WeightOf(Rule()));
  thing.rules.clear();
  thing.body = std::vector<std::pair<std::string, int64_t>>{{"cpu", 1}};
  EXPECT_GT(WeightOf(thing), empty + 3);
}

TEST(Weight, WhatIsBeyondABoundIsNamedByItsPath) {
  constexpr MostOf kMost{.entries = 2, .bytes = 4};
  Thing thing;
  thing.rules = {{"a", {}}, {"b", {"x", "y"}}};
  EXPECT_EQ(Beyond(kMost, "thing", thing), "");
  thing.rules[1].match_keys.emplace_back("z");
  EXPECT_EQ(Beyond(kMost, "thing", thing), "thing.rules[1].matchKeys: 3 entries are too many; at most 2 are taken");
  thing.rules.clear();
  thing.note = "12345";
  EXPECT_EQ(Beyond(kMost, "thing", thing), "thing.note: 5 bytes are too many; at most 4 are taken");
  thing.secret_env["A"] = "12345";
  EXPECT_EQ(Beyond(kMost, "thing", thing), "thing.secretEnv.A: 5 bytes are too many; at most 4 are taken");
  EXPECT_EQ(Beyond(kMost, "", std::string("12345")), ": 5 bytes are too many; at most 4 are taken");
  Thing body;
  body.body = std::vector<std::pair<std::string, int64_t>>(3);
  EXPECT_EQ(Beyond(kMost, "thing", body), "thing: 3 entries are too many; at most 2 are taken");
}

TEST(Weight, AKeyOfOthersIsShownShortAndPrintable) {
  constexpr MostOf kMost{.entries = 9, .bytes = 100};
  const std::map<std::string, std::string> map = {{"\x1b[2J" + std::string(200, 'k'), ""}};
  const std::string problem = Beyond(kMost, "labels", map);
  EXPECT_FALSE(problem.contains('\x1b')) << problem;
  EXPECT_LT(problem.size(), 200u);
}

}  // namespace
}  // namespace muster
