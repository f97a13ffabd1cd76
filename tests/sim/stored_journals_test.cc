// The journals of tests/journals, which an earlier build wrote, replay whole: the beginning of the longest segment that
// a seed of the world leaves. With MUSTER_ACCEPT=1 (`./dev test --accept`) they are written anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/source_dir_for_test.h"
#include "core/counter/counter.h"
#include "core/provider/provider.h"
#include "core/shard/shard.h"
#include "host/journal.h"
#include "host/replay.h"
#include "host/temp_dir_for_test.h"
#include "sim/counter_world.h"
#include "sim/provider_world.h"
#include "sim/shard_world.h"

namespace muster::sim {
namespace {

constexpr uint64_t kSteps = 60;  // that are stored at the most
constexpr const char* kAdvice =
    "\nif the form of a state, event or effect was changed, raise `layout` in the core; then run with MUSTER_ACCEPT=1";

// The first steps of the longest segment in `from`, as a journal in `to`.
void Store(const std::string& from, const std::string& to) {
  std::filesystem::remove_all(to);
  const auto paths = host::ListSegments(from);
  ASSERT_TRUE(paths.has_value()) << paths.error().ToString();
  std::unique_ptr<host::JournalWriter> writer;
  uint64_t steps = 0;
  const auto end = host::ReadSegment(
      *std::ranges::max_element(*paths, {}, [](const std::string& path) { return std::filesystem::file_size(path); }),
      [&](const host::JournalSegment& segment) {
        writer = *host::JournalWriter::Open(to, segment.core_name);
        writer->StartSegment(segment.core_state);
        return Status();
      },
      [&](const host::JournalStep& step) {
        if (++steps > kSteps || !step.effects_digest) return Status();
        writer->BeginStep(step.now, step.event);
        writer->EndStep(*step.effects_digest);
        return Status();
      });
  ASSERT_TRUE(end.has_value()) << end.error().ToString();
  writer.reset();
  std::filesystem::remove(to + "/JOURNAL-LOCK");
}

template <class Core>
void ExpectReplays(const std::function<void(const std::string& directory)>& run_world, const std::string& process) {
  const std::string stored = SourceDir() + "/tests/journals/" + std::string(Core::kName);
  if (std::getenv("MUSTER_ACCEPT") != nullptr) {  // NOLINT(concurrency-mt-unsafe): nothing writes the environment
    const host::TempDir dir;
    run_world(dir.path());
    Store(dir.File(process), stored);
  }
  const auto report = host::Replay<Core>(stored);
  ASSERT_TRUE(report.has_value()) << report.error().ToString() << kAdvice;
  EXPECT_EQ(report->divergence, std::nullopt) << kAdvice;
  EXPECT_EQ(report->segments, 1u);
  EXPECT_GT(report->steps, 20u);
}

TEST(StoredJournals, OfACounter) {
  ExpectReplays<counter::Core>([](const std::string& dir) { RunCounterWorld(5, {.journal_directory = dir}); },
                               "counter-0");
}

TEST(StoredJournals, OfAProvider) {
  ExpectReplays<provider::Core>([](const std::string& dir) { RunProviderWorld(5, {.journal_directory = dir}); },
                                "provider");
}

TEST(StoredJournals, OfAShard) {
  ExpectReplays<shard::Core>([](const std::string& dir) { RunShardWorld(5, {.journal_directory = dir}); }, "node-1");
}

}  // namespace
}  // namespace muster::sim
