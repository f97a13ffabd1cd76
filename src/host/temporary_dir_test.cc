#include "host/temporary_dir.h"

#include <gtest/gtest.h>

#include <fstream>

namespace muster::host {
namespace {

TEST(TemporaryDir, IsPrivateAndGoesWithItsFiles) {
  std::filesystem::path path;
  {
    const auto dir = TemporaryDir::Make();
    ASSERT_TRUE(dir.has_value()) << dir.error().ToString();
    path = (*dir)->path();
    std::filesystem::create_directory(path / "below");
    std::ofstream(path / "below" / "file") << "text";
    EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms::owner_all);
    const auto other = TemporaryDir::Make();
    ASSERT_TRUE(other.has_value());
    EXPECT_NE((*other)->path(), path);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace muster::host
