#include "sim/kernel.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/disk.h"
#include "sim/network.h"

namespace muster::sim {
namespace {

TEST(Kernel, RunsInOrderOfTimeThenOfScheduling) {
  Kernel kernel(1);
  std::string order;
  kernel.After(2s, [&] { order += 'c'; });
  kernel.After(1s, [&] {
    order += 'a';
    kernel.After(0s, [&] { order += 'A'; });
  });
  kernel.After(1s, [&] { order += 'b'; });
  const MonoTime start = kernel.now().mono;
  kernel.RunUntil(start + 1500ms);
  EXPECT_EQ(order, "abA");
  EXPECT_EQ(kernel.now().mono, start + 1500ms);
  kernel.RunUntil(start + 2s);
  EXPECT_EQ(order, "abAc");
  EXPECT_EQ(kernel.events_run(), 4u);
}

TEST(Kernel, StopsWhenTold) {
  Kernel kernel(1);
  int runs = 0;
  for (int i = 0; i < 10; ++i) kernel.After(1s, [&] { ++runs; });
  kernel.RunUntil(kernel.now().mono + 5s, [&] { return runs == 3; });
  EXPECT_EQ(runs, 3);
}

TEST(Network, LosesDoublesAndReorders) {
  Kernel kernel(7);
  Network network(kernel, {.lost_per_mille = 200, .doubled_per_mille = 200});
  std::vector<int> arrived;
  for (int i = 0; i < 1000; ++i) network.Send(ProcessId(0), ProcessId(1), [&, i] { arrived.push_back(i); });
  kernel.RunUntil(kernel.now().mono + 1s);
  EXPECT_EQ(arrived.size(), network.sent() - network.lost() + network.doubled());
  EXPECT_GT(network.lost(), 100u);
  EXPECT_GT(network.doubled(), 100u);
  EXPECT_FALSE(std::ranges::is_sorted(arrived));
}

TEST(Network, ACutIsOneWayAndEndsByHealing) {
  Kernel kernel(7);
  Network network(kernel, {});
  int there = 0;
  int back = 0;
  network.Cut(ProcessId(0), ProcessId(1));
  network.Send(ProcessId(0), ProcessId(1), [&] { ++there; });
  network.Send(ProcessId(1), ProcessId(0), [&] { ++back; });
  kernel.RunUntil(kernel.now().mono + 1s);
  EXPECT_EQ(there, 0);
  EXPECT_EQ(back, 1);
  network.Heal();
  network.Send(ProcessId(0), ProcessId(1), [&] { ++there; });
  kernel.RunUntil(kernel.now().mono + 1s);
  EXPECT_EQ(there, 1);
}

TEST(Disk, ACrashKeepsAPrefixOfWhatWasUnderWay) {
  int kept[4] = {};
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Kernel kernel(seed);
    Disk disk(kernel, {}, 1);
    int done = 0;
    for (const char* key : {"1", "2", "3"}) disk.Write({{{.key = key, .value = "v"}}}, [&] { ++done; });
    disk.Crash();
    kernel.RunUntil(kernel.now().mono + 1s);
    EXPECT_EQ(done, 0) << "nobody hears of a batch after a crash";
    size_t prefix = 0;
    while (disk.durable().contains(std::to_string(prefix + 1))) ++prefix;
    EXPECT_EQ(prefix, disk.durable().size());
    ++kept[prefix];
  }
  for (const int count : kept) EXPECT_GT(count, 0);
}

TEST(Disk, DurableWhenDoneIsCalled) {
  Kernel kernel(1);
  Disk disk(kernel, {.stall_per_mille = 500}, 1);
  int done = 0;
  for (int i = 0; i < 100; ++i) {
    disk.Write({{{.key = std::to_string(i), .value = "v"}}}, [&, i] {
      EXPECT_EQ(done, i) << "in order";
      EXPECT_TRUE(disk.durable().contains(std::to_string(i)));
      ++done;
    });
  }
  kernel.RunUntil(kernel.now().mono + 10s);
  EXPECT_EQ(done, 100);
  disk.Write({{{.key = "5"}}}, [] {});
  kernel.RunUntil(kernel.now().mono + 10s);
  EXPECT_FALSE(disk.durable().contains("5"));
}

}  // namespace
}  // namespace muster::sim
