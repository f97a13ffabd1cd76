#include "host/signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace muster::host {
namespace {

TEST(Signals, EachSignalAsksForTheStop) {
  for (const auto& [signal, name] : {std::pair{SIGTERM, "SIGTERM"}, std::pair{SIGINT, "SIGINT"}}) {
    Signals signals;
    ASSERT_EQ(kill(getpid(), signal), 0);
    EXPECT_EQ(signals.WaitForStop(), name);
    EXPECT_EQ(signals.WaitForStop(), name);
  }
}

TEST(Signals, TheFirstReasonStays) {
  Signals signals;
  std::jthread part([&] { signals.RequestStop("journal is full"); });
  EXPECT_EQ(signals.WaitForStop(), "journal is full");
  signals.RequestStop("another");
  EXPECT_EQ(signals.WaitForStop(), "journal is full");
}

TEST(Signals, WritingToAClosedPipeIsAnErrorNotDeath) {
  const Signals signals;
  std::array<int, 2> ends;
  ASSERT_EQ(pipe(ends.data()), 0);
  close(ends[0]);
  EXPECT_EQ(write(ends[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  close(ends[1]);
}

TEST(Signals, DestructorGivesTheMaskBack) {
  sigset_t before;
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  {
    const Signals signals;
  }
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
  EXPECT_EQ(sigismember(&after, SIGINT), 0);
}

TEST(SignalsDeathTest, ASecondSignalExitsAtOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto twice = [](int second) {
    Signals signals;
    kill(getpid(), SIGTERM);
    signals.WaitForStop();
    kill(getpid(), second);
    while (true) pause();  // a stop that hangs
  };
  EXPECT_EXIT(twice(SIGINT), testing::ExitedWithCode(130), "second signal");
  EXPECT_EXIT(twice(SIGTERM), testing::ExitedWithCode(143), "second signal");
}

}  // namespace
}  // namespace muster::host
