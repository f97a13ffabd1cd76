#include "host/text_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "host/temp_dir_for_test.h"

namespace muster::host {
namespace {

TEST(TextFile, ReadsAFile) {
  const TempDir directory;
  std::ofstream(directory.File("a.yaml")) << "zone: a\n";
  const auto value = ReadYamlFile(directory.File("a.yaml"));
  ASSERT_TRUE(value) << value.error().message();
  EXPECT_EQ(value->Find("zone")->value.scalar, "a");
}

TEST(TextFile, LargeFileIsRefusedByItsSize) {
  const TempDir directory;
  // Sparse and not YAML: had it been read, the error would be about its NUL bytes.
  std::ofstream(directory.File("big.yaml")).close();
  std::filesystem::resize_file(directory.File("big.yaml"), 17u << 20);
  const auto value = ReadYamlFile(directory.File("big.yaml"));
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().message(), directory.File("big.yaml") +
                                         ": 17825792 bytes are more than the limit of 16777216; split the file, or use "
                                         "JSON lines for large fleets");
}

TEST(TextFile, PipeIsReadNoFurtherThanTheLimit) {
  const TempDir directory;
  ASSERT_EQ(mkfifo(directory.File("pipe").c_str(), 0600), 0);
  const int fd = open(directory.File("pipe").c_str(), O_RDWR | O_CLOEXEC);  // never blocks, never ends
  ASSERT_GE(fd, 0);
  const std::string text(4096, 'x');
  ASSERT_EQ(write(fd, text.data(), text.size()), 4096);
  const auto read = ReadTextFile(directory.File("pipe"), {.max_bytes = 1000});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), Code::kInvalidArgument);
  close(fd);
}

TEST(TextFile, ErrorsNameTheFile) {
  const TempDir directory;
  const auto missing = ReadTextFile(directory.File("none"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error(),
            Status(Code::kNotFound, directory.File("none") + ": cannot open: No such file or directory"));
  const auto unreadable = ReadTextFile(directory.path());
  ASSERT_FALSE(unreadable);
  EXPECT_EQ(unreadable.error(), Status(Code::kUnavailable, directory.path() + ": cannot read: Is a directory"));
}

TEST(TextFile, StandardInput) {
  const TempDir directory;
  EXPECT_EQ(SourceName("-"), "standard input");
  std::ofstream(directory.File("in")) << "zone: [\n";
  const int saved = dup(STDIN_FILENO);
  const int file = open(directory.File("in").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  dup2(file, STDIN_FILENO);
  close(file);
  const auto value = ReadYamlFile("-");
  if (saved >= 0) {
    dup2(saved, STDIN_FILENO);
    close(saved);
  }
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().message(), "standard input:2:1: zone[1]: not valid YAML: end of sequence flow not found");
}

}  // namespace
}  // namespace muster::host
