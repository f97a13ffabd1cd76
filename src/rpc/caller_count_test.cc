#include "rpc/caller_count.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "rpc/awaited_request.h"
#include "rpc/bounded_service.h"

namespace muster::rpc {
namespace {

TEST(CallerCount, BoundsACallerAndAll) {
  CallerCount count("calls open", "close some");
  EXPECT_EQ(count.Add("a", 2, 3), Status());
  EXPECT_EQ(count.Add("a", 2, 3), Status());
  EXPECT_EQ(count.Add("a", 2, 3),
            Status(Code::kResourceExhausted, "\"a\" has 2 calls open, and no more are allowed; close some"));
  EXPECT_EQ(count.Add("b", 2, 3), Status());
  EXPECT_EQ(count.Add("c", 2, 3),
            Status(Code::kResourceExhausted, "this server has 3 calls open, and no more are allowed; close some"));
  count.Remove("a");
  EXPECT_EQ(count.Add("c", 2, 3), Status());
  EXPECT_EQ(count.all(), 3u);
}

// Of as many callers as there may be.
TEST(OpenStreams, ThoseThatSayNothingAreBoundedOfAllCallers) {
  OpenStreams streams{{}};
  std::vector<std::shared_ptr<void>> silent;
  size_t given = 0;
  for (int caller = 0; caller < 1'000; ++caller) {
    for (int i = 0; i < 100; ++i) {
      auto one = streams.Unheard(std::to_string(caller));
      if (!one) continue;
      ++given;
      silent.push_back(*std::move(one));
    }
  }
  EXPECT_EQ(given, StreamBounds().unheard_of_all);
  silent.clear();
  EXPECT_TRUE(streams.Unheard("one more"));
}

TEST(AwaitedCount, CallsWithoutAMessageAreBoundedOfAllCallers) {
  AwaitedCount count;
  size_t given = 0;
  for (int caller = 0; caller < 10; ++caller) {
    for (size_t i = 0; i < kMostAwaited; ++i) given += count.Add(&count, std::to_string(caller)).ok() ? 1 : 0;
  }
  EXPECT_EQ(given, kMostAwaitedOfAll);
  const int another_server = 0;
  EXPECT_EQ(count.Add(&another_server, "0"), Status()) << "each server has its own";
  count.Remove(&count, "0");
  EXPECT_EQ(count.Add(&count, "9"), Status());
}

}  // namespace
}  // namespace muster::rpc
