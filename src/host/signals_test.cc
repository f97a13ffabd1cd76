#include "host/signals.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <future>
#include <stop_token>

namespace muster::host {
namespace {

TEST(Signals, EachSignalAsksForTheStop) {
  for (const auto& [signal, name] :
       {std::pair{SIGTERM, "SIGTERM"}, std::pair{SIGINT, "SIGINT"}, std::pair{SIGHUP, "SIGHUP"}}) {
    Signals signals;
    const std::stop_token stop = signals.stop_token();
    EXPECT_FALSE(stop.stop_requested());
    std::promise<void> stopped;
    const std::stop_callback callback(stop, [&] { stopped.set_value(); });
    ASSERT_EQ(kill(getpid(), signal), 0);
    EXPECT_EQ(signals.WaitForStop(), name);
    EXPECT_EQ(signals.WaitForStop(), name);
    EXPECT_EQ(stopped.get_future().wait_for(20s), std::future_status::ready);
  }
}

TEST(Signals, TheFirstReasonStays) {
  Signals signals;
  std::jthread part([&] { signals.RequestStop("journal is full"); });
  EXPECT_EQ(signals.WaitForStop(), "journal is full");
  signals.RequestStop("another");
  EXPECT_TRUE(signals.stop_token().stop_requested());
  EXPECT_EQ(signals.WaitForStop(), "journal is full");
}

// As nohup does.
TEST(Signals, AHangupThatIsIgnoredFromOutsideAsksForNothing) {
  void (*const former)(int) = std::signal(SIGHUP, SIG_IGN);
  {
    Signals signals;
    ASSERT_EQ(kill(getpid(), SIGHUP), 0);
    ASSERT_EQ(kill(getpid(), SIGTERM), 0);  // of two that wait, a signalfd gives the one with the lower number first
    EXPECT_EQ(signals.WaitForStop(), "SIGTERM");
  }
  std::signal(SIGHUP, former);
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
    Signals signals({.repeat_span = 0ms});
    kill(getpid(), SIGTERM);
    signals.WaitForStop();
    kill(getpid(), second);
    while (true) pause();  // a stop that hangs
  };
  EXPECT_EXIT(twice(SIGINT), testing::ExitedWithCode(130), "second signal");
  EXPECT_EXIT(twice(SIGTERM), testing::ExitedWithCode(143), "second signal");
}

TEST(SignalsDeathTest, AnEchoOfTheSignalIsTheSameRequest) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto echoed = [] {
    {
      Signals signals({.repeat_span = 1h, .stop_patience = 1h});
      for (const int signal : {SIGTERM, SIGTERM, SIGINT}) {
        kill(getpid(), signal);
        signals.WaitForStop();
        // Taken from the queue means handled by the time the destructor has joined the thread.
        for (sigset_t pending; sigpending(&pending) == 0 && sigismember(&pending, signal) != 0;) sched_yield();
      }
    }
    _exit(7);  // the clean stop came to its end
  };
  EXPECT_EXIT(echoed(), testing::ExitedWithCode(7), "");
}

// A shell that ends hangs its jobs up, and then the kernel does.
TEST(SignalsDeathTest, ASecondHangupCutsNoStopShort) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto twice = [] {
    {
      Signals signals({.repeat_span = 0ms, .stop_patience = 1h});
      for (int i = 0; i < 2; ++i) {
        kill(getpid(), SIGHUP);
        signals.WaitForStop();
        for (sigset_t pending; sigpending(&pending) == 0 && sigismember(&pending, SIGHUP) != 0;) sched_yield();
      }
    }
    _exit(7);  // the clean stop came to its end
  };
  EXPECT_EXIT(twice(), testing::ExitedWithCode(7), "");
}

TEST(SignalsDeathTest, AStopThatHangsIsGivenUp) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto hang = [] {
    const Signals signals({.stop_patience = 1ms});
    kill(getpid(), SIGTERM);
    while (true) pause();
  };
  EXPECT_EXIT(hang(), testing::ExitedWithCode(1), "takes too long");
}

}  // namespace
}  // namespace muster::host
