#include "base/probe.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

// Each expectation is written for both builds: with the switches compiled in, and with none, where nothing may be on.
namespace muster::faults {
namespace {

void Pass() { PROBE("probe_test.pass"); }
bool Bug() { return MUTANT("probe_test.bug"); }
void Step() { CRASH_POINT("probe_test.step"); }

uint64_t Hits(const std::string& name) {
  const auto hits = ProbeHits();
  const auto it = hits.find(name);
  return it == hits.end() ? 0 : it->second;
}

TEST(Probe, CountsHits) {
  ResetProbes();
  EXPECT_EQ(Hits("probe_test.pass"), 0u);
  Pass();
  Pass();
  EXPECT_EQ(Hits("probe_test.pass"), Compiled() ? 2u : 0u);
  ResetProbes();
  EXPECT_EQ(Hits("probe_test.pass"), 0u);
}

TEST(Probe, PlacesOfOneNameAreSummed) {
  ResetProbes();
  Pass();
  PROBE("probe_test.pass");
  EXPECT_EQ(Hits("probe_test.pass"), Compiled() ? 2u : 0u);
}

TEST(Mutant, IsOnOnlyInItsScope) {
  EXPECT_FALSE(Bug());
  {
    const ScopedMutant bug("probe_test.bug");
    EXPECT_EQ(Bug(), Compiled());
    EXPECT_FALSE(MUTANT("probe_test.other"));
  }
  EXPECT_FALSE(Bug());
}

TEST(Mutant, CanBeOnBeforeItsLineIsReached) {
  const ScopedMutant bug("probe_test.late");
  EXPECT_EQ(MUTANT("probe_test.late"), Compiled());
}

TEST(CrashPoint, DiesAtTheHitAskedFor) {
  Step();
  if (!Compiled()) {
    ASSERT_TRUE(EnableCrashPoint("probe_test.step").ok());
    Step();
    EXPECT_TRUE(CrashPointsSeen().empty());
    return;
  }
  EXPECT_EQ(CrashPointsSeen(), std::vector<std::string>{"probe_test.step"});
  const auto run = [](std::string_view spec, int steps) {
    if (!EnableCrashPoint(spec).ok()) ::_exit(9);
    for (int i = 0; i < steps; ++i) Step();
    ::_exit(0);
  };
  EXPECT_EXIT(run("probe_test.step", 1), testing::KilledBySignal(SIGKILL), "");
  EXPECT_EXIT(run("probe_test.step:3", 2), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(run("probe_test.step:3", 3), testing::KilledBySignal(SIGKILL), "");
  EXPECT_EXIT(run("probe_test.elsewhere", 5), testing::ExitedWithCode(0), "");
}

TEST(CrashPoint, RefusesWhatItCannotRead) {
  for (const std::string_view spec :
       {"", ":", ":3", "name:", "name:0", "name:x", "name:-1", "name:3x", "name:1e3", "name:99999999999999999999999"}) {
    const Status status = EnableCrashPoint(spec);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << spec;
    EXPECT_NE(status.message().find(spec), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace muster::faults
