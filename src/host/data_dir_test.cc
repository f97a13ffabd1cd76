#include "host/data_dir.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <utility>

#include "base/log.h"
#include "host/temp_dir_for_test.h"

namespace muster::host {
namespace {

class DataDirTest : public testing::Test {
 protected:
  const TempDir temp_;
  const std::filesystem::path root_ = temp_.path();
};

TEST_F(DataDirTest, MakesParentsAndAPrivateDirectory) {
  const auto path = root_ / "a" / "b";
  const auto dir = DataDir::Open(path, "--data-dir");
  ASSERT_TRUE(dir) << dir.error().ToString();
  EXPECT_EQ((*dir)->path(), path);
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0700u);
}

TEST_F(DataDirTest, OneOwnerAtATime) {
  auto first = DataDir::Open(root_, "--data-dir");
  ASSERT_TRUE(first);
  const auto second = DataDir::Open(root_, "--data-dir");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message(), "--data-dir " + root_.string() +
                                          ": another process works in it; stop that process or choose another "
                                          "directory");
  first->reset();
  EXPECT_TRUE(DataDir::Open(root_, "--data-dir"));
}

TEST_F(DataDirTest, AKilledOwnerBlocksNobody) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto dir = DataDir::Open(root_, "--data-dir");
    if (!dir || write(ready[1], "x", 1) != 1) _exit(1);
    while (true) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_FALSE(DataDir::Open(root_, "--data-dir"));
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(DataDir::Open(root_, "--data-dir"));
  close(ready[0]);
  close(ready[1]);
}

TEST_F(DataDirTest, WhatCannotBeADirectoryIsNamed) {
  const auto file = root_ / "file";
  std::ofstream(file) << "x";
  EXPECT_EQ(
      DataDir::Open(file, "--data-dir").error().message(),
      "--data-dir " + file.string() + ": cannot write in it (Not a directory); choose a directory you may write to");
  EXPECT_EQ(DataDir::Open(file / "below", "--journal").error().message(),
            "--journal " + (file / "below").string() +
                ": cannot make the directory (Not a directory); choose a place you may write to");
}

TEST_F(DataDirTest, AnExistingDirectoryLosesWhatOthersMayDo) {
  const auto path = root_ / "open";
  const std::pair<mode_t, mode_t> modes[] = {{0777, 0751}, {0755, 0751}, {0770, 0750}, {0711, 0711}, {0700, 0700}};
  for (const auto& [was, becomes] : modes) {
    std::filesystem::create_directory(path);
    ASSERT_EQ(chmod(path.c_str(), was), 0);
    log::SetSink([](log::Level, std::string_view, std::span<const log::KeyValue>) {});
    ASSERT_TRUE(DataDir::Open(path, "--data-dir"));
    log::SetSink({});
    struct stat info;
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777u, becomes) << was;
    std::filesystem::remove_all(path);
  }
}

}  // namespace
}  // namespace muster::host
