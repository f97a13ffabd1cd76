// CoreRunner with the example core: what is wrong with its files, and requests around its start and stop.
#include "host/core_runner.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "core/counter/counter.h"
#include "host/system_clock.h"
#include "host/temp_dir_for_test.h"

namespace muster::host {
namespace {

using counter::Add;
using counter::Answer;
using counter::Core;

class CoreRunnerTest : public testing::Test, public ThreadHost<Core>::Shell {
 protected:
  using Runner = CoreRunner<Core, Answer>;

  CoreRunnerTest() { Make(); }
  void Make() {
    runner_ = std::make_unique<Runner>(
        Runner::Options{
            .name = "counter", .state_file = dir_.File("state.db"), .journal = dir_.File("journal"), .clock = clock_},
        *this);
  }
  Status Open() {
    return runner_->Open([](const contract::Recovered& rows) { return Core::Recover({}, rows); });
  }
  std::future<Result<Answer>> Ask(uint64_t sequence) {
    const auto promise = std::make_shared<std::promise<Result<Answer>>>();
    runner_->Ask(Add{.client = "c", .sequence = sequence, .amount = 5},
                 [promise](Result<Answer> answer) { promise->set_value(std::move(answer)); });
    return promise->get_future();
  }

  const TempDir dir_;
  const SystemClock clock_;
  std::unique_ptr<Runner> runner_;

 private:
  void StartCall(const Core::Call&) override {}
  void Emit(const Core::Effect& effect) override { runner_->Give(std::get<Answer>(effect)); }
};

TEST_F(CoreRunnerTest, AnswersWhatWasAskedBeforeTheStart) {
  ASSERT_EQ(Open(), Status());
  auto early = Ask(1);
  ASSERT_EQ(runner_->Start(), Status());
  EXPECT_EQ(early.get()->value, 5);
  EXPECT_EQ(Ask(2).get()->value, 10);
  EXPECT_EQ(Ask(7).get().error().code(), Code::kFailedPrecondition) << "the core's refusal is the result";
  runner_->Stop();
  EXPECT_EQ(runner_->View()->value, 10) << "the view outlives the stop";
  EXPECT_EQ(Ask(3).get().error(), Status(Code::kUnavailable, "the counter is stopping; ask again"));
  Make();
  ASSERT_EQ(Open(), Status()) << "a stopped runner holds no file";
  EXPECT_EQ(runner_->View()->value, 10);
}

// A core whose state is elsewhere: it starts from no rows, and its answers need no file.
TEST_F(CoreRunnerTest, RunsACoreWithoutAStateFile) {
  runner_ = std::make_unique<Runner>(
      Runner::Options{.name = "counter", .state_file = {}, .journal = {}, .clock = clock_}, *this);
  size_t rows = 1;
  ASSERT_EQ(runner_->Open([&](const contract::Recovered& recovered) {
    rows = recovered.size();
    return Core::Recover({}, recovered);
  }),
            Status());
  EXPECT_EQ(rows, 0);
  ASSERT_EQ(runner_->Start(), Status());
  EXPECT_EQ(Ask(7).get().error().code(), Code::kFailedPrecondition) << "a refusal persists nothing";
  runner_->Stop();
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path()));
}

// A core that is asked nothing has a runner without answers.
class Quiet : public ThreadHost<Core>::Shell {
  void StartCall(const Core::Call&) override {}
  void Emit(const Core::Effect&) override {}
};
TEST_F(CoreRunnerTest, RunsACoreThatIsAskedNothing) {
  Quiet shell;
  CoreRunner<Core> runner({.name = "counter", .state_file = dir_.File("state.db"), .journal = {}, .clock = clock_},
                          shell);
  ASSERT_EQ(runner.Open([](const contract::Recovered& rows) { return Core::Recover({}, rows); }), Status());
  ASSERT_TRUE(runner.Post(Add{.client = "c", .sequence = 1, .amount = 5}));
  ASSERT_EQ(runner.Start(), Status());
  runner.Stop();
  EXPECT_FALSE(runner.Post(Add{.client = "c", .sequence = 2, .amount = 5}));
}

TEST_F(CoreRunnerTest, StopRefusesWhatWasNeverStarted) {
  ASSERT_EQ(Open(), Status());
  auto waiting = Ask(1);
  runner_->Stop();
  EXPECT_EQ(waiting.get().error().code(), Code::kUnavailable);
}

TEST_F(CoreRunnerTest, ARowThatCannotBeReadIsNamed) {
  {
    const auto file = SqlitePersist::Open(dir_.File("state.db"), std::string(Core::kName));
    ASSERT_EQ((*file)->Commit({.writes = {{.key = "nonsense", .value = "x"}}}), Status());
  }
  const Status opened = Open();
  EXPECT_EQ(opened.code(), Code::kDataLoss);
  EXPECT_TRUE(opened.message().contains("nonsense")) << opened.message();
}

TEST_F(CoreRunnerTest, AJournalThatCannotBeWrittenFailsTheOpen) {
  std::ofstream(dir_.File("journal")) << "a file, not a directory";
  EXPECT_EQ(Open().code(), Code::kFailedPrecondition);
}

}  // namespace
}  // namespace muster::host
