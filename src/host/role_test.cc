#include "host/role.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/log.h"

namespace muster::host {
namespace {

class RecordingRole final : public Role {
 public:
  explicit RecordingRole(std::vector<std::string>& story, Status start = {}) : story_(story), start_(start) {}
  Status Start() override {
    story_.push_back("Start");
    return start_;
  }
  void Stop() override { story_.push_back("Stop"); }

 private:
  std::vector<std::string>& story_;
  const Status start_;
};

class RunRoleTest : public testing::Test {
 protected:
  RunRoleTest() {
    log::SetSink([this](log::Level, std::string_view message, std::span<const log::KeyValue> fields) {
      story_.emplace_back(message);
      for (const auto& field : fields) story_.back() += ": " + field.value.ToString();
    });
  }
  ~RunRoleTest() override { log::SetSink({}); }

  std::vector<std::string> story_;
};

TEST_F(RunRoleTest, StartsWaitsStops) {
  Signals signals;
  signals.RequestStop("test over");
  RecordingRole role(story_);
  EXPECT_EQ(RunRole(role, signals), Status());
  EXPECT_EQ(story_, (std::vector<std::string>{"Start", "ready", "stopping: test over", "Stop", "stopped"}));
}

TEST_F(RunRoleTest, AFailedStartIsCleanedUpAndReturned) {
  Signals signals;
  const Status failure(Code::kUnavailable, "cannot listen");
  RecordingRole role(story_, failure);
  EXPECT_EQ(RunRole(role, signals), failure);
  EXPECT_EQ(story_, (std::vector<std::string>{"Start", "Stop"}));
}

}  // namespace
}  // namespace muster::host
