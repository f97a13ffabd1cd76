#include "contract/page.h"

#include <gtest/gtest.h>

#include <vector>

#include "contract/cluster.h"

namespace muster::contract {
namespace {

// Takes pages of at most so many objects, each page of its own size.
struct Server {
  std::vector<int32_t> fits;
  std::vector<int32_t> asked = {};
  size_t page = 0;

  Result<int> operator()(const ListNodes& what) {
    asked.push_back(what.page.limit);
    if (what.page.limit > fits[page]) return Error(Code::kResourceExhausted, "too large");
    return static_cast<int>(++page);
  }
};

TEST(AskPage, APageThatIsTooLargeIsAskedForInParts) {
  Server server{.fits = {3, 250}};
  ListNodes what{.page = {.limit = 250}};
  const auto ask = [&](const ListNodes& request) { return server(request); };
  EXPECT_EQ(AskPage(ask, what), 1);
  EXPECT_EQ(server.asked, (std::vector<int32_t>{250, 31, 3}));
  server.fits = {0, 0};
  EXPECT_EQ(AskPage(ask, what).error().code(), Code::kResourceExhausted) << "a single object is too large";
  EXPECT_EQ(server.asked.back(), 1);
}

// One large object must not have all that follow it fetched one by one.
TEST(AskPage, ThePagesAfterOneThatWasTooLargeGrowAgain) {
  Server server{.fits = std::vector<int32_t>(9, 250)};
  server.fits[0] = 3;
  server.fits[8] = 100;
  ListNodes what{.page = {.limit = 250}};
  const auto ask = [&](const ListNodes& request) { return server(request); };
  for (int page = 1; page <= 9; ++page) EXPECT_EQ(AskPage(ask, what, 250), page);
  EXPECT_EQ(server.asked, (std::vector<int32_t>{250, 31, 3, 6, 12, 24, 48, 96, 192, 250, 250, 31}));
  EXPECT_EQ(what.page.limit, 62);
}

TEST(AskPage, AnotherErrorIsNoReasonToAskForLess) {
  ListNodes what{.page = {.limit = 250}};
  int asked = 0;
  const auto ask = [&](const ListNodes&) -> Result<int> {
    ++asked;
    return Error(Code::kUnavailable, "away");
  };
  EXPECT_EQ(AskPage(ask, what, 250).error().code(), Code::kUnavailable);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(what.page.limit, 250);
}

}  // namespace
}  // namespace muster::contract
