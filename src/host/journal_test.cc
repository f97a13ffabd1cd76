#include "host/journal.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "host/temp_dir_for_test.h"

namespace muster::host {
namespace {

std::unique_ptr<JournalWriter> Open(const std::string& directory, JournalOptions options = {}) {
  auto writer = JournalWriter::Open(directory, "test", options);
  EXPECT_TRUE(writer.has_value());
  return *std::move(writer);
}

struct Read {
  std::string state;
  std::vector<JournalStep> steps;
  bool torn = false;
};

Result<Read> ReadAll(const std::string& path) {
  Read read;
  const auto end = ReadSegment(
      path,
      [&](const JournalSegment& segment) {
        EXPECT_EQ(segment.core_name, "test");
        read.state = segment.core_state;
        return Status();
      },
      [&](const JournalStep& step) {
        read.steps.push_back(step);
        return Status();
      });
  if (!end) return std::unexpected(end.error());
  read.torn = end->torn;
  return read;
}

constexpr Now kNow{.mono = MonoTime(5s), .wall = WallTime(7s)};

void Step(JournalWriter& writer, std::string_view event, uint64_t digest) {
  writer.BeginStep(kNow, event);
  writer.EndStep(digest);
}

TEST(Journal, ReadsBackWhatWasWritten) {
  const TempDir dir;
  auto writer = Open(dir.path());
  writer->StartSegment("state-0");
  Step(*writer, "event-1", 11);
  Step(*writer, std::string("\0\n", 2), 12);
  writer->Flush();
  const auto paths = *ListSegments(dir.path());
  ASSERT_EQ(paths.size(), 1u);
  const auto read = ReadAll(paths[0]);
  ASSERT_TRUE(read.has_value()) << read.error().ToString();
  EXPECT_EQ(read->state, "state-0");
  ASSERT_EQ(read->steps.size(), 2u);
  EXPECT_EQ(read->steps[0].event, "event-1");
  EXPECT_EQ(read->steps[0].now, kNow);
  EXPECT_EQ(read->steps[1].effects_digest, 12u);
  EXPECT_FALSE(read->torn);
}

TEST(Journal, ATornEndLosesOnlyTheEnd) {
  const TempDir dir;
  auto writer = Open(dir.path());
  writer->StartSegment("s");
  Step(*writer, "event-1", 1);
  writer->Flush();
  const std::string path = ListSegments(dir.path())->at(0);
  const auto whole = std::filesystem::file_size(path);
  writer->BeginStep(kNow, "event-2");
  const auto begun = std::filesystem::file_size(path);
  EXPECT_GT(begun, whole) << "the event reaches the system before the core sees it";
  writer->EndStep(2);
  writer->Flush();
  const auto end = std::filesystem::file_size(path);
  for (auto size = whole + 1; size < end; ++size) {
    std::filesystem::copy_file(path, dir.File("copy"), std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(dir.File("copy"), size);
    const auto read = ReadAll(dir.File("copy"));
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->torn, size != begun) << size;
    ASSERT_EQ(read->steps.size(), size < begun ? 1u : 2u) << size;
    EXPECT_EQ(read->steps[0].effects_digest, 1u);
    if (size < begun) continue;
    EXPECT_EQ(read->steps[1].event, "event-2");
    EXPECT_EQ(read->steps[1].effects_digest, std::nullopt) << "the step did not end";
  }
}

TEST(Journal, DamageIsNoticed) {
  const TempDir dir;
  auto writer = Open(dir.path());
  writer->StartSegment("s");
  Step(*writer, "event-1", 1);
  writer->Flush();
  const std::string path = ListSegments(dir.path())->at(0);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-3, std::ios::end);
  file.put('\x7e');
  file.close();
  EXPECT_TRUE(ReadAll(path)->torn) << "the last record may have been cut short";
  Step(*writer, "event-2", 2);
  writer->Flush();
  EXPECT_EQ(ReadAll(path).error().code(), Code::kDataLoss) << "one in the middle was damaged later";
  std::ofstream(dir.File("other")) << "hello";
  EXPECT_EQ(ReadAll(dir.File("other")).error().code(), Code::kDataLoss);
}

TEST(Journal, ASegmentCutBeforeItsHeadHoldsNothing) {
  const TempDir dir;
  auto writer = Open(dir.path());
  writer->StartSegment("state");
  const std::string path = ListSegments(dir.path())->at(0);
  const auto whole = std::filesystem::file_size(path);
  for (auto size = whole; size-- > 0;) {
    std::filesystem::resize_file(path, size);
    const auto read = ReadAll(path);
    ASSERT_TRUE(read.has_value()) << size << " " << read.error().ToString();
    EXPECT_TRUE(read->torn && read->steps.empty()) << size;
  }
  EXPECT_EQ(JournalCoreName(dir.path()).error().code(), Code::kNotFound);
  writer.reset();
  Open(dir.path())->StartSegment("state");
  EXPECT_EQ(*JournalCoreName(dir.path()), "test");
}

TEST(Journal, KeepsTheNewestSegmentsAndGoesOnAfterReopening) {
  const TempDir dir;
  const JournalOptions options{.segment_bytes = 200, .keep_segments = 3};
  for (int life = 0; life < 2; ++life) {
    auto writer = Open(dir.path(), options);
    writer->StartSegment("life " + std::to_string(life));
    for (int i = 0; i < 50; ++i) {
      Step(*writer, "event", 0);
      if (writer->full()) writer->StartSegment("life " + std::to_string(life));
    }
    writer->Flush();
    EXPECT_TRUE(writer->status().ok());
    const auto paths = *ListSegments(dir.path());
    EXPECT_EQ(paths.size(), 3u);
    EXPECT_EQ(ReadAll(paths.back())->state, "life " + std::to_string(life));
  }
}

TEST(Journal, BeginsAndEndsMustTakeTurns) {
  const TempDir dir;
  auto writer = Open(dir.path());
  writer->StartSegment("s");
  writer->BeginStep(kNow, "event-1");
  writer->BeginStep(kNow, "event-2");
  EXPECT_EQ(ReadAll(ListSegments(dir.path())->back()).error().code(), Code::kDataLoss);
  writer->StartSegment("s");
  writer->EndStep(1);
  writer->Flush();
  EXPECT_EQ(ReadAll(ListSegments(dir.path())->back()).error().code(), Code::kDataLoss);
}

TEST(Journal, OneWriterAtATimeAndReadersAnyTime) {
  const TempDir dir;
  auto first = Open(dir.path());
  first->StartSegment("s");
  EXPECT_EQ(JournalWriter::Open(dir.path(), "test").error().message(),
            "--journal " + dir.path() + ": another process works in it; stop that process or choose another directory");
  EXPECT_EQ(*JournalCoreName(dir.path()), "test");
  first.reset();
  EXPECT_TRUE(JournalWriter::Open(dir.path(), "test").has_value());
}

TEST(Journal, IsPrivate) {
  namespace fs = std::filesystem;
  const TempDir dir;
  Open(dir.File("journal"))->StartSegment("s");
  EXPECT_EQ(fs::status(dir.File("journal")).permissions(), fs::perms::owner_all);
  for (const auto& entry : fs::directory_iterator(dir.File("journal"))) {
    EXPECT_EQ(entry.status().permissions(), fs::perms::owner_read | fs::perms::owner_write) << entry.path();
  }
}

TEST(Journal, SaysWhenItCannotBeWritten) {
  auto full = Open("/dev/shm/muster-test-journal");
  std::filesystem::remove_all("/dev/shm/muster-test-journal");
  full->StartSegment("s");
  EXPECT_EQ(full->status().code(), Code::kUnavailable);
  Step(*full, "event", 0);
  EXPECT_FALSE(JournalWriter::Open("/proc/nowhere", "test").has_value());
  EXPECT_EQ(ListSegments("/nonexistent").error().code(), Code::kNotFound);
}

TEST(Journal, OfACoreThatIsLargerThanASegmentStaysWithinItsBound) {
  const TempDir dir;
  const JournalOptions options{.segment_bytes = 1'000, .keep_segments = 8};
  const auto writer = *JournalWriter::Open(dir.path(), "counter", options);
  const std::string state(1'500, 's');
  writer->StartSegment(state);
  int segments = 1;
  uint64_t most = 0;
  for (int i = 0; i < 1'000; ++i) {
    writer->BeginStep({}, std::string(20, 'e'));
    writer->EndStep(7);
    if (writer->full()) {
      writer->StartSegment(state);
      ++segments;
    }
    uint64_t bytes = 0;
    const std::vector<std::string> paths = *ListSegments(dir.path());
    for (const std::string& path : paths) bytes += std::filesystem::file_size(path);
    most = std::max(most, bytes);
  }
  ASSERT_TRUE(writer->status().ok()) << writer->status().ToString();
  EXPECT_LE(most, 8'000u) << "what eight segments may have";
  EXPECT_LE(segments, 60) << "the state is not written for every step";
  EXPECT_GE(ListSegments(dir.path())->size(), 2u);
}

}  // namespace
}  // namespace muster::host
