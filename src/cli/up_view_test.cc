#include "cli/up_view.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::cli {
namespace {

// What the provider and a child said.
TEST(UpView, WordsOfOthersMakeNoLineAndSteerNoTerminal) {
  contract::ActionView action;
  action.kind = "Create";
  action.machine_id = "m-1\n12:00:00 all is well\x1b[2J";
  UpPicture picture;
  picture.machines.emplace();
  picture.clusters.emplace();
  picture.actions.emplace().actions = {action};
  picture.children = {{.name = "shard", .pid = 0, .deaths = 1, .last_end = "exit 1: a\nb\x1b[2J"}};
  const std::string line = OneLine(picture);
  EXPECT_EQ(line.find_first_of("\n\x1b"), std::string::npos) << line;
  EXPECT_TRUE(line.contains(R"(last: Create m-1\x0a12:00:00 all is well\x1b[2J)")) << line;
  EXPECT_TRUE(line.contains(R"(shard is down: exit 1: a\x0ab\x1b[2J)")) << line;
  const std::string screen = Screen(picture, 200, 40, false);
  EXPECT_FALSE(screen.contains('\x1b')) << screen;
  EXPECT_TRUE(screen.contains(R"(shard DOWN (exit 1: a\x0ab\x1b[2J))")) << screen;
}

}  // namespace
}  // namespace muster::cli
