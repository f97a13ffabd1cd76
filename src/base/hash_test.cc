#include "base/hash.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <string>

namespace muster {
namespace {

// From a second implementation. A change here makes every stored journal and simulator hash worthless.
TEST(Hash, KnownValues) {
  EXPECT_EQ(Hash(""), 0x7a84db9515d657e9u);
  EXPECT_EQ(Hash("a"), 0x1b74424ff677455du);
  EXPECT_EQ(Hash("muster"), 0x33d88306a51ace8au);
  EXPECT_EQ(Hash("01234567"), 0x247194bc5e02ed33u);
  EXPECT_EQ(Hash("012345678"), 0x30cc543f44798074u);
}

TEST(Hash, LengthAndPlaceCount) {
  std::set<uint64_t> hashes;
  for (size_t size = 0; size < 40; ++size) hashes.insert(Hash(std::string(size, '\0')));
  EXPECT_EQ(hashes.size(), 40u);
  Hasher ab;
  ab.Add("a");
  ab.Add("b");
  EXPECT_NE(ab.value(), Hash("ab"));
  Hasher ba;
  ba.Add("b");
  ba.Add("a");
  EXPECT_NE(ab.value(), ba.value());
}

TEST(Hash, EveryBitOfTheInputReachesHalfOfTheOutput) {
  const std::string text = "a journal record of some forty characters";
  const uint64_t original = Hash(text);
  int flipped = 0;
  for (size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string changed = text;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    const int distance = std::popcount(original ^ Hash(changed));
    EXPECT_GT(distance, 8) << bit;
    flipped += distance;
  }
  EXPECT_NEAR(flipped / static_cast<double>(text.size() * 8), 32, 2);
}

}  // namespace
}  // namespace muster
