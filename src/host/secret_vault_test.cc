#include "host/secret_vault.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "host/temp_dir_for_test.h"

namespace muster::host {
namespace {

TEST(SecretVault, KeepsWhatACoreOnlyNames) {
  SecretVault vault({});
  const std::string handle = *vault.Put("blue", "token");
  EXPECT_FALSE(handle.contains("token"));
  EXPECT_NE(*vault.Put("blue", "token"), handle);
  EXPECT_EQ(vault.Get(handle), "token");
  vault.Drop(handle);
  EXPECT_EQ(vault.Get(handle).error().code(), Code::kNotFound);
  EXPECT_EQ(vault.Put("blue", ""), "");
  EXPECT_EQ(vault.Get(""), "");
  EXPECT_EQ(vault.Get("as it was before handles"), "as it was before handles");
  const std::string forged = *vault.Put("red", *vault.Put("blue", "theirs"));
  EXPECT_TRUE(vault.Get(forged)->starts_with("secret:")) << "a secret that looks like a handle is no way to another";
}

TEST(SecretVault, WhatOneOwnerKeepsIsBounded) {
  SecretVault vault({.most_bytes = 1'000});
  const std::string theirs = *vault.Put("blue", "token");
  std::string last;
  for (int i = 0; i < 100; ++i) last = *vault.Put("red", std::string(300, 'x'));
  EXPECT_EQ(vault.size(), 4u);
  EXPECT_TRUE(vault.Get(last));
  EXPECT_EQ(vault.Get(theirs), "token");
  const std::string large = *vault.Put("red", std::string(5'000, 'x'));
  EXPECT_TRUE(vault.Get(large)) << "the newest is kept, whatever its size";
  EXPECT_EQ(vault.size(), 2u);
}

TEST(SecretVault, WhatAllOwnersKeepIsBoundedAtTheCostOfWhoHasMost) {
  SecretVault vault({.most_bytes = 1'000, .most_of_all = 2'000});
  const std::string few = *vault.Put("blue", std::string(100, 'x'));
  std::string last;
  for (int i = 0; i < 10; ++i) {
    for (const char* owner : {"red", "green", "grey"}) last = *vault.Put(owner, std::string(300, 'x'));
  }
  EXPECT_EQ(vault.size(), 7u);
  EXPECT_TRUE(vault.Get(few));
  EXPECT_TRUE(vault.Get(last));
  vault.Drop(last);
  EXPECT_TRUE(vault.Get(*vault.Put("white", std::string(300, 'x')))) << "what is dropped makes room";
  EXPECT_EQ(vault.size(), 7u);
}

TEST(SecretVault, FilesOutliveTheProcessUntilNobodyUsesThem) {
  const TempDir dir;
  const std::string where = dir.File("secrets");
  SecretVault first({.directory = where});
  ASSERT_TRUE(first.Open({}).ok());
  const std::string used = *first.Put("s", "one");
  const std::string unused = *first.Put("s", "two");
  struct stat found = {};
  for (const auto& entry : std::filesystem::directory_iterator(where)) {
    ASSERT_EQ(stat(entry.path().c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777U, 0600U);
  }
  SecretVault second({.directory = where});
  ASSERT_TRUE(second.Open({used, "of before handles"}).ok());
  EXPECT_EQ(second.Get(used), "one");
  EXPECT_FALSE(second.Get(unused));
  second.Drop(used);
  EXPECT_TRUE(std::filesystem::is_empty(where));
}

}  // namespace
}  // namespace muster::host
