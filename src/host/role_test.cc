#include "host/role.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/log.h"

namespace muster::host {
namespace {

class RecordingRole final : public Role {
 public:
  explicit RecordingRole(std::vector<std::string>& story, Status start = {}) : story_(story), start_(start) {}
  Status Start(std::stop_token) override {
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

// A start that waits for something that never comes.
class WaitingRole final : public Role {
 public:
  Status Start(std::stop_token stop) override {
    starting_.set_value();
    std::unique_lock lock(mu_);
    never_.wait(lock, stop, [] { return false; });
    return {Code::kCancelled, "stopped while starting"};
  }
  void Stop() override {}
  void WaitUntilItStarts() { starting_.get_future().wait(); }

 private:
  std::promise<void> starting_;
  std::mutex mu_;
  std::condition_variable_any never_;
};

TEST_F(RunRoleTest, AStopEndsAStartThatWaits) {
  Signals signals;
  WaitingRole role;
  const std::jthread operators([&] {
    role.WaitUntilItStarts();
    signals.RequestStop("no patience");
  });
  EXPECT_EQ(RunRole(role, signals), Status());
  EXPECT_EQ(story_, (std::vector<std::string>{"stopping: no patience", "stopped"}));
}

TEST_F(RunRoleTest, ARoleThatCannotGoOnEndsWithItsFailure) {
  class FailingRole final : public Role {
   public:
    Status Start(std::stop_token) override {
      part_ = std::thread([this] { Fail("a part is gone", Status(Code::kDataLoss, "no state")); });
      return {};
    }
    void Stop() override {
      if (part_.joinable()) part_.join();
    }

   private:
    std::thread part_;
  };
  Signals signals;
  FailingRole role;
  EXPECT_EQ(RunRole(role, signals), Status(Code::kDataLoss, "no state"));
  EXPECT_EQ(story_, (std::vector<std::string>{"ready", "stopping: a part is gone", "stopped"}));
}

}  // namespace
}  // namespace muster::host
