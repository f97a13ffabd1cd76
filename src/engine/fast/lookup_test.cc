#include "engine/fast/lookup.h"

#include <gtest/gtest.h>

#include <map>

#include "base/probe.h"
#include "base/rng.h"

namespace muster::engine::fast {
namespace {

// Few hashes, so that entries share slots and tags.
uint64_t HashOf(uint32_t key) { return key % 7; }

MachineId Find(const Lookup<MachineId>& lookup, uint32_t key) {
  return lookup.Find(HashOf(key), [&](MachineId id) { return id.value() == key; });
}

TEST(Lookup, FindsWhatIsThereThroughRandomChanges) {
  Rng rng(1);
  Lookup<MachineId> lookup;
  std::map<uint32_t, bool> there;
  for (int i = 0; i < 5000; ++i) {
    const auto key = static_cast<uint32_t>(rng.Below(200));
    if (there[key]) {
      lookup.Erase(HashOf(key), MachineId(key));
    } else {
      lookup.Insert(HashOf(key), MachineId(key));
    }
    there[key] = !there[key];
    if (i % 50 != 0) continue;
    ASSERT_EQ(lookup.Verify(), "") << "change " << i;
    for (const auto& [which, is_there] : there) ASSERT_EQ(Find(lookup, which).valid(), is_there) << which;
  }
}

TEST(Lookup, IsEmptyAtFirst) {
  Lookup<MachineId> lookup;
  EXPECT_FALSE(Find(lookup, 3).valid());
  lookup.Erase(HashOf(3), MachineId(3));
  lookup.Reserve(1000);
  EXPECT_FALSE(Find(lookup, 3).valid());
  EXPECT_EQ(lookup.Verify(), "");
}

TEST(Lookup, VerifyFindsAnEntryThatIsThereTwice) {
  Lookup<MachineId> lookup;
  lookup.Insert(1, MachineId(5));
  lookup.Insert(2, MachineId(5));
  EXPECT_EQ(lookup.Verify(), "lookup: entry 5 is there twice");
}

TEST(Lookup, VerifyFindsAnEntryThatNobodyReaches) {
  Lookup<MachineId> lookup;
  for (const uint32_t key : {0U, 7U, 14U}) lookup.Insert(HashOf(key), MachineId(key));
  const faults::ScopedMutant on("fast.lookup_hole");
  lookup.Erase(HashOf(7), MachineId(7));
  EXPECT_EQ(lookup.Verify(), "lookup: entry 14 cannot be reached");
}

}  // namespace
}  // namespace muster::engine::fast
