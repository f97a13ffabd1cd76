#include "model/text_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "model/yaml_reader.h"

namespace muster::model {
namespace {

class TextFile : public ::testing::Test {
 protected:
  TextFile() {
    std::string name = (std::filesystem::temp_directory_path() / "muster-text-XXXXXX").string();
    directory_ = mkdtemp(name.data());
  }
  ~TextFile() override { std::filesystem::remove_all(directory_); }
  std::string Path(const std::string& name) const { return (directory_ / name).string(); }

  std::filesystem::path directory_;
};

TEST_F(TextFile, ReadsAFile) {
  std::ofstream(Path("a.yaml")) << "zone: a\n";
  const auto value = ReadYamlFile(Path("a.yaml"));
  ASSERT_TRUE(value) << value.error().message();
  EXPECT_EQ(value->Find("zone")->value.scalar, "a");
}

TEST_F(TextFile, LargeFileIsRefusedByItsSize) {
  // Sparse and not YAML: had it been read, the error would be about its NUL bytes.
  std::ofstream(Path("big.yaml")).close();
  std::filesystem::resize_file(Path("big.yaml"), 17u << 20);
  const auto value = ReadYamlFile(Path("big.yaml"));
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().message(), Path("big.yaml") +
                                         ": 17825792 bytes are more than the limit of 16777216; split the file, or use "
                                         "JSON lines for large fleets");
}

TEST_F(TextFile, PipeIsReadNoFurtherThanTheLimit) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  const int fd = open(Path("pipe").c_str(), O_RDWR | O_CLOEXEC);  // never blocks, never ends
  ASSERT_GE(fd, 0);
  const std::string text(4096, 'x');
  ASSERT_EQ(write(fd, text.data(), text.size()), 4096);
  const auto read = ReadTextFile(Path("pipe"), {.max_bytes = 1000});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), Code::kInvalidArgument);
  close(fd);
}

TEST_F(TextFile, ErrorsNameTheFile) {
  const auto missing = ReadTextFile(Path("none"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error(), Status(Code::kNotFound, Path("none") + ": cannot open: No such file or directory"));
  const auto directory = ReadTextFile(directory_.string());
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error(), Status(Code::kUnavailable, directory_.string() + ": cannot read: Is a directory"));
}

TEST_F(TextFile, StandardInput) {
  EXPECT_EQ(SourceName("-"), "standard input");
  std::ofstream(Path("in")) << "zone: [\n";
  const int saved = dup(STDIN_FILENO);
  const int file = open(Path("in").c_str(), O_RDONLY | O_CLOEXEC);
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
}  // namespace muster::model
