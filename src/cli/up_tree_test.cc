#include "cli/up_tree.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "host/temp_dir_for_test.h"

namespace muster::cli {
namespace {

TEST(UpTree, AScreenHasNoColourWhereNoColorIsSet) {
  const host::TempDir dir;
  const UpTree tree("up", dir.path(), {}, false);
  const auto drawn = [&tree] {
    testing::internal::CaptureStdout();
    tree.PrintScreen([](size_t, size_t, bool colour) { return colour ? "in colour\n" : "plain\n"; }, "foot");
    return testing::internal::GetCapturedStdout();
  };
  unsetenv("NO_COLOR");
  EXPECT_EQ(drawn(), "\x1b[H\x1b[2Jin colour\nfoot");
  setenv("NO_COLOR", "1", 1);
  EXPECT_EQ(drawn(), "\x1b[H\x1b[2Jplain\nfoot");
  unsetenv("NO_COLOR");
}

TEST(UpTree, TheCommandThatGoesOnNamesTheProgramAndWhatDiffersFromTheDefaults) {
  const host::TempDir dir;
  const UpTree tree("up --demo --machines 60", dir.path() + "/a dir",
                    {{"--shard-listen", "127.0.0.1:1", ":7780"}, {"--provider-listen", ":9100", ":9100"}}, false);
  EXPECT_EQ(tree.ThisCommand(), ThisProgram().string() + " up --demo --machines 60 --data-dir '" + dir.path() +
                                    "/a dir' --shard-listen 127.0.0.1:1");
}

}  // namespace
}  // namespace muster::cli
