#include "role/diagnostic/selfcheck.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "host/temp_dir_for_test.h"

namespace muster::diagnostic {
namespace {

TEST(SelfCheck, RequiredPartsWorkOnThisMachine) {
  const std::vector<CheckResult> results = SelfCheck();
  std::vector<std::string> names;
  for (const CheckResult& result : results) {
    names.push_back(result.name);
    EXPECT_FALSE(result.detail.empty()) << result.name;
    EXPECT_TRUE(result.ok || !result.required) << result.name << ": " << result.detail;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"clocks", "sqlite", "grpc", "podman", "libvirt", "etcd"}));
}

TEST(SelfCheck, OnlyRequiredPartsDecide) {
  EXPECT_TRUE(Passed({}));
  EXPECT_TRUE(Passed(std::array{CheckResult{"a", true, true, ""}, CheckResult{"b", false, false, ""}}));
  EXPECT_FALSE(Passed(std::array{CheckResult{"a", true, false, ""}, CheckResult{"b", false, true, ""}}));
}

// Goes back once, by one nanosecond.
class BrokenClock final : public Clock {
 public:
  Now Read() const override {
    ++reads_;
    return {.mono = MonoTime(Duration(reads_ == 100 ? 98 : reads_)), .wall = WallTime(std::chrono::years(55))};
  }

 private:
  mutable int reads_ = 0;
};

TEST(SelfCheck, ClocksThatCannotBeTrusted) {
  EXPECT_EQ(CheckClocks(BrokenClock()).error().message(),
            "the monotonic clock went back by 1 ns; check the machine's clock source");
  EXPECT_EQ(CheckClocks(VirtualClock()).error().message(), "the wall clock is before 2020; set the machine's time");
}

TEST(SelfCheck, SqliteNeedsAPlaceToWriteAndLeavesNothing) {
  const host::TempDir dir;
  EXPECT_TRUE(CheckSqlite(dir.path()));
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
  EXPECT_EQ(CheckSqlite(dir.File("missing")).error().message(),
            "cannot make a directory in " + dir.File("missing") + "; set TMPDIR to one you may write to");
}

TEST(SelfCheck, ProgramsAreFoundInPathOrder) {
  const host::TempDir dir;
  const auto place = [&](const std::string& name, std::filesystem::perms perms) {
    const std::filesystem::path file = dir.File(name);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << "x";
    std::filesystem::permissions(file, perms);
  };
  place("a/tool", std::filesystem::perms::owner_read);
  place("b/tool", std::filesystem::perms::owner_all);
  const std::string path = dir.File("missing") + ":" + dir.File("a") + ":" + dir.File("b");
  EXPECT_EQ(FindProgram(path, std::array<std::string_view, 2>{"other", "tool"}), dir.File("b/tool"));
  EXPECT_EQ(FindProgram(path, std::array<std::string_view, 1>{"other"}).error().message(), "no other in PATH");
}

}  // namespace
}  // namespace muster::diagnostic
