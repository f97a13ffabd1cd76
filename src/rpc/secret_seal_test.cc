#include "rpc/secret_seal.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "host/temp_dir_for_test.h"

namespace muster::rpc {
namespace {

TEST(SecretSeal, OpensWhatItSealedAndShowsNothingOfIt) {
  const SecretSeal seal = SecretSeal::Random();
  for (const std::string& value :
       {std::string("hunter2"), std::string(), std::string("a\0b", 3), std::string(100'000, 'x')}) {
    const std::string sealed = seal.Seal("shop/web/TOKEN", value);
    EXPECT_TRUE(SecretSeal::IsSealed(sealed));
    EXPECT_FALSE(value.size() > 3 && sealed.contains(value));
    EXPECT_EQ(seal.Open(sealed), value);
    EXPECT_EQ(seal.OpenFor("shop/web/TOKEN", sealed), value);
  }
}

TEST(SecretSeal, TheSameValueIsTheSameTextForItsOwnerOnly) {
  const SecretSeal seal = SecretSeal::Random();
  EXPECT_EQ(seal.Seal("shop/web/TOKEN", "hunter2"), seal.Seal("shop/web/TOKEN", "hunter2"));
  EXPECT_NE(seal.Seal("shop/web/TOKEN", "hunter2"), seal.Seal("shop/api/TOKEN", "hunter2"));
  EXPECT_NE(seal.Seal("shop/web/TOKEN", "hunter2"), seal.Seal("shop/web/TOKEN", "hunter3"));
  EXPECT_NE(seal.Seal("shop/web/TOKEN", "hunter2"), SecretSeal::Random().Seal("shop/web/TOKEN", "hunter2"));
}

TEST(SecretSeal, RefusesTheTextsOfOthersAndChangedOnes) {
  const SecretSeal seal = SecretSeal::Random();
  const std::string sealed = seal.Seal("shop/web/TOKEN", "hunter2");
  EXPECT_EQ(seal.OpenFor("shop/api/TOKEN", sealed).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(SecretSeal::Random().Open(sealed).error().code(), Code::kInvalidArgument);
  for (size_t at = std::string("sealed:").size(); at < sealed.size(); ++at) {
    std::string changed = sealed;
    changed[at] = changed[at] == 'A' ? 'B' : 'A';
    if (changed[at] == sealed[at]) continue;
    const auto opened = seal.Open(changed);
    // The last digits before a '=' have bits that say nothing.
    EXPECT_EQ(opened.value_or("hunter2"), "hunter2") << at;
    EXPECT_FALSE(opened && at + 4 < sealed.size()) << at;
  }
  for (const std::string text : {"", "sealed:", "sealed:AAAA", "sealed:!!!!", "hunter2"}) {
    EXPECT_EQ(seal.Open(text).error().code(), Code::kInvalidArgument) << text;
  }
}

TEST(SecretSeal, AKeyFileIsMadeOnceAndPrivate) {
  const host::TempDir dir;
  const std::string file = dir.path() + "/secret.key";
  EXPECT_FALSE(SecretSeal::Read(file));
  const auto made = SecretSeal::ReadOrMake(file);
  ASSERT_TRUE(made) << made.error().message();
  struct stat found = {};
  ASSERT_EQ(stat(file.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0600U);
  EXPECT_EQ(SecretSeal::ReadOrMake(file)->Open(made->Seal("o", "v")), "v");
  EXPECT_EQ(SecretSeal::Read(file)->Open(made->Seal("o", "v")), "v");
  chmod(file.c_str(), 0644);
  EXPECT_TRUE(SecretSeal::Read(file).error().message().contains("every user of this machine"));
  chmod(file.c_str(), 0600);
  std::ofstream(file) << "too short\n";
  EXPECT_TRUE(SecretSeal::Read(file).error().message().contains("openssl rand -hex 32"));
}

}  // namespace
}  // namespace muster::rpc
