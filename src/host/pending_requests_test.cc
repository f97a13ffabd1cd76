#include "host/pending_requests.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace muster::host {
namespace {

const Status kRefused(Code::kUnavailable, "stopping");

TEST(PendingRequests, EachCallbackIsCalledOnce) {
  PendingRequests<int> pending;
  std::vector<Result<int>> results;
  PendingRequests<int>::Done done = [&](Result<int> result) { results.push_back(std::move(result)); };
  PendingRequests<int>::Done second = done;
  PendingRequests<int>::Done late = done;
  EXPECT_EQ(pending.Add(done), 1u);
  EXPECT_EQ(pending.Add(second), 2u);
  EXPECT_TRUE(pending.Finish(1, 7));
  EXPECT_FALSE(pending.Finish(1, 8)) << "answered already";
  pending.Close(kRefused);
  pending.Close(kRefused);
  EXPECT_FALSE(pending.Finish(2, 9)) << "refused already";
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0], 7);
  EXPECT_EQ(results[1].error(), kRefused);
  EXPECT_EQ(pending.Add(late), std::nullopt);
  EXPECT_TRUE(late) << "the caller refuses it";
}

// Threads that ask, answer and close at the same time: nothing is lost, nothing is answered twice.
TEST(PendingRequests, OnceUnderContention) {
  constexpr int kAsks = 2000;
  PendingRequests<int> pending;
  std::vector<std::atomic<int>> calls(kAsks);
  {
    std::vector<std::jthread> threads;
    for (int part = 0; part < 2; ++part) {
      threads.emplace_back([&, part] {
        for (int i = part; i < kAsks; i += 2) {
          PendingRequests<int>::Done done = [&calls, i](const Result<int>&) { ++calls[static_cast<size_t>(i)]; };
          if (const auto id = pending.Add(done)) {
            pending.Finish(*id, i);
          } else {
            done(std::unexpected(kRefused));
          }
        }
      });
    }
    threads.emplace_back([&] { pending.Close(kRefused); });
  }
  for (const auto& count : calls) EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace muster::host
