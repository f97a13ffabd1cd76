#include "store/rotating_lease.h"

#include <gtest/gtest.h>

#include <vector>

#include "store/blocking.h"
#include "store/memory_store.h"

namespace muster::store {
namespace {

TEST(RotatingLease, KeysGoBetweenTheirTimeAndHalfOfItMore) {
  VirtualSchedule time;
  MemoryStore store(time, {}, 1);
  Blocking blocking(store, &time);
  LeaseId lease = 0;
  std::vector<LeaseId> all;
  const RotatingLease leases(store, time, 40s, [&](LeaseId granted) {
    lease = granted;
    all.push_back(granted);
  });
  time.RunFor(1s);
  ASSERT_NE(lease, 0);
  for (int i = 0; i < 30; ++i) {
    const std::string key = std::string("/k") + std::to_string(i);
    const auto done = blocking.Commit({.compares = {}, .writes = {contract::Put(key, "v", lease)}});
    ASSERT_TRUE(std::holds_alternative<contract::Committed>(done));
    const MonoTime written = time.now();
    time.RunFor(39s);
    EXPECT_TRUE(blocking.Get(key)->has_value()) << "gone after " << (time.now() - written) / 1s << " s";
    time.RunFor(23s);
    EXPECT_FALSE(blocking.Get(key)->has_value()) << "there after " << (time.now() - written) / 1s << " s";
  }
  EXPECT_GT(all.size(), 100U) << "a new one every ten seconds";
}

TEST(RotatingLease, AStoreThatIsAwayIsAskedAgain) {
  VirtualSchedule time;
  MemoryStore store(time, {}, 1);
  store.SetReachable(false);
  int granted = 0;
  const RotatingLease leases(store, time, 40s, [&](LeaseId) { ++granted; });
  time.RunFor(1min);
  EXPECT_EQ(granted, 0);
  store.SetReachable(true);
  time.RunFor(15s);
  EXPECT_GE(granted, 1);
}

}  // namespace
}  // namespace muster::store
