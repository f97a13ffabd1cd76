#include "cli/up_tree.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "host/temp_dir_for_test.h"

namespace muster::cli {
namespace {

TEST(UpTree, AScreenHasNoColourWhereNoColorIsSet) {
  const host::TempDir dir;
  const UpTree tree("muster up", dir.path(), {}, false);
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

}  // namespace
}  // namespace muster::cli
