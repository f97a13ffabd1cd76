// The verbs about agents, from outside: `muster conformance agent` and `muster bench e2e`.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "host/temp_dir_for_test.h"
#include "smoke/process.h"
#include "smoke/server.h"

namespace muster {
namespace {

using smoke::Process;

TEST(ConformanceAgent, OfARunningAgent) {
  const host::TempDir dir;
  smoke::Server agent({smoke::ProgramUnderTest(), "agent", "--listen", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0",
                       "--data-dir", dir.path()});
  ASSERT_NE(agent.grpc(), "") << agent.process().err();
  Process check({smoke::ProgramUnderTest(), "conformance", "agent", agent.grpc(), "--use-workloads"});
  EXPECT_EQ(check.Wait(), 0) << check.out() << check.err();
  EXPECT_TRUE(check.out().contains("rules hold, 0 broken")) << check.out();
  EXPECT_TRUE(check.out().contains("holds      deleted-again")) << check.out();
  Process reads({smoke::ProgramUnderTest(), "conformance", "agent", agent.grpc(), "-o", "json"});
  EXPECT_EQ(reads.Wait(), 0) << reads.out();
  EXPECT_TRUE(reads.out().contains(R"("check":"health","verdict":"holds")")) << reads.out();
  EXPECT_TRUE(reads.out().contains(R"("check":"runs","verdict":"not shown")")) << "nothing was changed";
}

TEST(ConformanceAgent, WhereNobodyIsSaysSo) {
  Process check({smoke::ProgramUnderTest(), "conformance", "agent", "127.0.0.1:1"});
  EXPECT_EQ(check.Wait(), 1);
  EXPECT_TRUE(check.err().contains("127.0.0.1:1")) << check.err();
}

TEST(BenchE2e, MeasuresAndLeavesNothingBehind) {
  const host::TempDir dir;  // everything of the run is below it
  std::filesystem::permissions(dir.path(), std::filesystem::perms(0711));
  Process bench({"env", "TMPDIR=" + dir.path(), smoke::ProgramUnderTest(), "bench", "e2e", "--agents", "2", "--samples",
                 "5", "--json"});
  EXPECT_EQ(bench.Wait(), 0) << bench.err();
  for (const char* const text : {R"({"shape":"apply-to-running","store":"sqlite","kind":"end-to-end","rate_per_s":)",
                                 R"("p50_us":)", R"("p99_us":)", R"("shape":"apply-to-running-16")"}) {
    EXPECT_TRUE(bench.out().contains(text)) << bench.out();
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(BenchE2e, MeasuresEachStepToAMachineThatIsMade) {
  const host::TempDir dir;
  std::filesystem::permissions(dir.path(), std::filesystem::perms(0711));
  Process bench({"env", "TMPDIR=" + dir.path(), smoke::ProgramUnderTest(), "bench", "e2e", "--shape",
                 "apply-to-machine", "--samples", "2", "--json"});
  EXPECT_EQ(bench.Wait(), 0) << bench.err();
  for (const char* const text :
       {R"({"shape":"apply-to-machine","store":"sqlite","kind":"end-to-end","pending_p50_ms":)", R"("need_p50_ms":)",
        R"("created_p50_ms":)", R"("configured_p50_ms":)", R"("joined_p50_ms":)", R"("running_max_ms":)",
        R"("samples":2})"}) {
    EXPECT_TRUE(bench.out().contains(text)) << bench.out();
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(BenchE2e, RefusesWhatMakesNoSense) {
  Process bench({smoke::ProgramUnderTest(), "bench", "e2e", "--agents", "0"});
  EXPECT_EQ(bench.Wait(), 2);
  EXPECT_TRUE(bench.err().contains("--agents must be from 1 to 100")) << bench.err();
}

}  // namespace
}  // namespace muster
