#include "runtime/follow_launches.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::runtime {
namespace {

// What the engine has at each look, 0 for nothing; the workload is removed with the last.
std::pair<Status, std::vector<std::string>> Follow(std::vector<uint64_t> looks, contract::ReadLogs request) {
  size_t at = 0;
  std::vector<std::string> read;
  const LaunchLogs logs{.newest = [&]() -> Result<std::optional<uint64_t>> {
                          const uint64_t launch = looks.at(at++);
                          return launch == 0 ? std::nullopt : std::optional(launch);
                        },
                        .read =
                            [&](const contract::ReadLogs& asked) {
                              read.push_back(std::to_string(looks.at(at - 1)) + (asked.tail ? " tail" : ""));
                              return Status();
                            },
                        .over = [&] { return at == looks.size(); },
                        .patience = 10us};
  const Status status = FollowLaunches(std::move(request), 1us, logs);
  return {status, read};
}

TEST(FollowLaunches, ReadsEachLaunchOnce) {
  const auto [status, read] = Follow({1, 1, 0, 0, 2, 2, 3}, {.workload = "w", .follow = true, .tail = 5});
  EXPECT_EQ(status, Status());
  EXPECT_EQ(read, (std::vector<std::string>{"1 tail", "2", "3"}));
}

TEST(FollowLaunches, WithoutFollowReadsTheNewestAlone) {
  EXPECT_EQ(Follow({4, 5}, {.workload = "w"}).second, std::vector<std::string>{"4"});
}

TEST(FollowLaunches, NothingToBeginWithIsNotFound) {
  EXPECT_EQ(Follow({0, 1}, {.workload = "w"}).first.code(), Code::kNotFound);
  EXPECT_EQ(Follow(std::vector<uint64_t>(20), {.workload = "w", .follow = true}).first.code(), Code::kNotFound);
}

TEST(FollowLaunches, AReaderThatFollowsMayComeBetweenTwoLaunches) {
  const auto [status, read] = Follow({0, 0, 2, 2}, {.workload = "w", .follow = true, .tail = 5});
  EXPECT_EQ(status, Status());
  EXPECT_EQ(read, std::vector<std::string>{"2 tail"});
}

// The engine breaks the stream of a container that is removed; one that stays and cannot be read is an error.
TEST(FollowLaunches, AStreamThatBreaksIsARemovalOrAnError) {
  for (const bool removed : {true, false}) {
    int looks = 0;
    const LaunchLogs logs{
        .newest = [&]() -> Result<std::optional<uint64_t>> { return ++looks < 5 || !removed ? 1 : 2; },
        .read = [&](const contract::ReadLogs&) { return looks < 5 ? Status(Code::kUnavailable, "broken") : Status(); },
        .over = [&] { return removed && looks >= 5; },
        .patience = 100us};
    EXPECT_EQ(FollowLaunches({.workload = "w", .follow = true}, 1us, logs).ok(), removed);
  }
}

}  // namespace
}  // namespace muster::runtime
