#include "shim/shim.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "shim/launch.h"
#include "shim/log_file.h"
#include "shim/record_file.h"

namespace muster::shim {
namespace {

namespace fs = std::filesystem;

class Directory {
 public:
  Directory() {
    std::string name = (fs::temp_directory_path() / "muster-shim-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Directory() { fs::remove_all(path_); }
  const std::string& path() const { return path_; }
  std::string Text(const std::string& file) const {
    std::ifstream in(path_ + "/" + file);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::string path_;
};

TEST(RecordFile, ComesBackWholeOrNotAtAll) {
  const Directory dir;
  EXPECT_FALSE(ReadRecord<Exit>(dir.path(), "exit").has_value());
  ASSERT_EQ(WriteRecord(dir.path(), "exit", Exit{.launch = 3, .code = 7, .error = "no"}), 0);
  const auto exit = ReadRecord<Exit>(dir.path(), "exit");
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->launch, 3u);
  EXPECT_EQ(exit->code, 7);
  EXPECT_EQ(exit->error, "no");

  std::string bytes = dir.Text("exit");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  std::ofstream(dir.path() + "/exit") << bytes;
  EXPECT_FALSE(ReadRecord<Exit>(dir.path(), "exit").has_value()) << "a flipped bit";
  EXPECT_EQ(WriteRecord(dir.path() + "/missing", "exit", Exit{}), ENOENT);
}

TEST(RecordFile, FollowsNoLink) {
  const Directory dir;
  std::ofstream(dir.path() + "/victim") << "precious";
  ASSERT_EQ(symlink((dir.path() + "/victim").c_str(), (dir.path() + "/exit.new").c_str()), 0);
  EXPECT_EQ(WriteRecord(dir.path(), "exit", Exit{}), ELOOP);
  EXPECT_EQ(dir.Text("victim"), "precious");
}

TEST(LogFile, HasOneEntryForEachLine) {
  const Directory dir;
  LogFile log(dir.path(), 1 << 20, 2);
  constexpr int64_t kNow = 1'700'000'000'123'456'789;
  log.Append(Stream::kStdout, "one\ntw", kNow);
  log.Append(Stream::kStderr, "bad\n", kNow);
  log.Append(Stream::kStdout, "o\nrest", kNow);
  log.Flush(kNow);
  log.Note("told", kNow);
  const std::string at = "2023-11-14T22:13:20.123456789Z";
  EXPECT_EQ(dir.Text("log"), at + " stdout F one\n" + at + " stderr F bad\n" + at + " stdout F two\n" + at +
                                 " stdout F rest\n" + at + " shim F told\n");
}

TEST(LogFile, IsBoundedAndKeepsTheNewest) {
  const Directory dir;
  {
    LogFile log(dir.path(), 4096, 2);
    for (int i = 0; i < 1000; ++i) log.Append(Stream::kStdout, std::to_string(i) + " of many lines\n", 0);
  }
  EXPECT_LE(fs::file_size(dir.path() + "/log"), 4096u);
  EXPECT_LE(fs::file_size(dir.path() + "/log.1"), 4096u);
  EXPECT_FALSE(fs::exists(dir.path() + "/log.2"));
  EXPECT_TRUE(dir.Text("log").contains(" 999 of many lines\n"));
}

TEST(LogFile, CutsALineThatIsTooLong) {
  const Directory dir;
  LogFile log(dir.path(), 1 << 20, 2);
  log.Append(Stream::kStdout, std::string(LogFile::kLongestPiece + 5, 'x') + "\n", 0);
  const std::string text = dir.Text("log");
  EXPECT_TRUE(text.contains("stdout P " + std::string(LogFile::kLongestPiece, 'x') + "\n"));
  EXPECT_TRUE(text.contains("stdout F xxxxx\n"));
}

TEST(LogFile, SaysWhatItCouldNotWrite) {
  const Directory dir;
  ASSERT_EQ(mkdir((dir.path() + "/log").c_str(), 0700), 0);
  LogFile log(dir.path(), 1 << 20, 2);
  log.Append(Stream::kStdout, "lost\nlost too\n", 0);
  ASSERT_EQ(rmdir((dir.path() + "/log").c_str()), 0);
  log.Append(Stream::kStdout, "there\n", 0);
  EXPECT_TRUE(dir.Text("log").contains("shim F 2 entries are missing: they could not be written\n"));
  EXPECT_TRUE(dir.Text("log").contains("stdout F there\n"));
}

}  // namespace
}  // namespace muster::shim
