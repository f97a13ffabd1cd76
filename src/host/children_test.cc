#include "host/children.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <thread>

#include "host/system_clock.h"
#include "host/temp_dir_for_test.h"

namespace muster::host {
namespace {

class ChildrenTest : public ::testing::Test {
 protected:
  ChildOptions Shell(const std::string& name, const std::string& script) {
    return {.name = name, .arguments = {"-c", script}, .log = dir_.File(name + ".log")};
  }
  // Polls until it holds, for ten seconds at most.
  bool Until(const std::function<bool()>& holds) {
    for (const MonoTime end = clock_.Read().mono + 10s; clock_.Read().mono < end;) {
      children_.Poll();
      if (holds()) return true;
      std::this_thread::yield();
    }
    return false;
  }
  ChildView Only() { return children_.View().at(0); }

  TempDir dir_;
  SystemClock clock_;
  Children children_{{.program = "/bin/sh", .first_pause = 1ms, .longest_pause = 4ms, .settled = 1h}, clock_};
};

TEST_F(ChildrenTest, WritesToItsLogAndIsToldToEnd) {
  ASSERT_TRUE(
      children_.Start(Shell("a", "trap 'echo bye; exit 0' TERM; echo hello; while :; do sleep 0.01; done")).ok());
  ASSERT_TRUE(Until([&] { return Children::LastLine(dir_.File("a.log")) == "hello"; }));
  children_.Stop(10s);
  EXPECT_EQ(Children::LastLine(dir_.File("a.log")), "bye");
  EXPECT_EQ(Only().pid, 0);
  EXPECT_EQ(Only().last_end, "exit code 0");
}

TEST_F(ChildrenTest, IsStartedAgainWhenItDies) {
  ASSERT_TRUE(children_.Start(Shell("a", "exec sleep 1000")).ok());
  const pid_t first = Only().pid;
  kill(first, SIGKILL);
  ASSERT_TRUE(Until([&] { return Only().pid != 0 && Only().pid != first; }));
  EXPECT_EQ(Only().deaths, 1);
  EXPECT_EQ(Only().last_end, "signal 9");
}

TEST_F(ChildrenTest, CountsDeathsInARow) {
  ASSERT_TRUE(children_.Start(Shell("a", "echo broken; exit 3")).ok());
  ASSERT_TRUE(Until([&] { return Only().early_deaths >= 3; }));
  EXPECT_EQ(Only().last_end, "exit code 3");
  EXPECT_EQ(Children::LastLine(dir_.File("a.log")), "broken");
}

TEST_F(ChildrenTest, OneThatDoesNotEndIsKilled) {
  ASSERT_TRUE(children_.Start(Shell("a", "trap '' TERM; echo deaf; while :; do sleep 0.01; done")).ok());
  ASSERT_TRUE(Until([&] { return Children::LastLine(dir_.File("a.log")) == "deaf"; }));
  const pid_t pid = Only().pid;
  children_.Stop(50ms);
  EXPECT_EQ(Only().pid, 0);
  EXPECT_EQ(kill(pid, 0), -1);
}

TEST_F(ChildrenTest, ALogThatCannotBeOpenedIsAnError) {
  const Status status = children_.Start({.name = "a", .arguments = {}, .log = dir_.File("no/a.log")});
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_TRUE(children_.View().empty());
}

}  // namespace
}  // namespace muster::host
