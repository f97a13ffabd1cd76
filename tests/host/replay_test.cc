// Replay of journals that another build of the core wrote.
#include "host/replay.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/counter/counter.h"
#include "host/temp_dir_for_test.h"

namespace muster::host {
namespace {

using counter::Add;
using counter::Core;

class ReplayTest : public testing::Test {
 protected:
  // A segment with one step, which this core takes or, if given, with this state and event.
  void Segment(std::string state = {}, std::string event = {}) {
    Core core = *Core::Recover({}, {});
    const Core::Event add = Add{.client = "a", .sequence = 1, .amount = 5};
    const Now now = {.mono = MonoTime(1h), .wall = WallTime(1h)};
    journal_->StartSegment(state.empty() ? core.Save() : state);
    journal_->BeginStep(now, event.empty() ? codec::ToBytes(add) : event);
    std::vector<Core::Effect> effects;
    core.Step(add, now, effects);
    journal_->EndStep(codec::Digest(effects));
    journal_->Flush();
  }
  static std::string OtherLayout() {
    std::string state = Core::Recover({}, {})->Save();
    ++state.front();
    return state;
  }

  const TempDir dir_;
  const std::unique_ptr<JournalWriter> journal_ = *JournalWriter::Open(dir_.path(), std::string(Core::kName));
};

TEST_F(ReplayTest, AStateOfAnotherBuildIsNotTakenForADamagedOne) {
  Segment(OtherLayout());
  const auto report = Replay<Core>(dir_.path());
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error(),
            Status(Code::kFailedPrecondition, "the state at the start of " + dir_.File("0000000001.journal") +
                                                  " cannot be read: another build of muster wrote it; use that build"));
}

TEST_F(ReplayTest, AnEventOfAnotherBuildIsNotTakenForADamagedOne) {
  Segment({}, "\x7f");
  const auto report = Replay<Core>(dir_.path());
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error(),
            Status(Code::kFailedPrecondition, "the event of step 0 of " + dir_.File("0000000001.journal") +
                                                  " cannot be read: another build of muster wrote it; use that build"));
}

// A process that was upgraded goes on in its directory.
TEST_F(ReplayTest, SegmentsOfAnEarlierBuildAreLeftOut) {
  Segment(OtherLayout());
  Segment();
  Segment();
  const auto report = Replay<Core>(dir_.path());
  ASSERT_TRUE(report.has_value()) << report.error().ToString();
  EXPECT_EQ(report->left_out, 1u);
  EXPECT_EQ(report->segments, 2u);
  EXPECT_EQ(report->steps, 2u);
  EXPECT_EQ(report->divergence, std::nullopt);
}

}  // namespace
}  // namespace muster::host
