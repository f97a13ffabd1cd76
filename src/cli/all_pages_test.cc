// Lists that are asked for page by page: what a scheduler may make of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/cluster.h"

namespace muster::cli {
namespace {

struct Names {
  std::vector<std::string> names;
  std::string next;
};
struct ListNames {
  contract::Page page;
};

// The list that comes of these pages, each of which names the next by its number.
Result<Names> All(const std::vector<std::vector<std::string>>& pages, size_t* asked = nullptr) {
  size_t number = 0;
  return AllPages<Names>(
      [&](const ListNames& what) -> Result<Names> {
        EXPECT_EQ(what.page.limit, kPageObjects);
        EXPECT_EQ(what.page.token, number == 0 ? "" : std::to_string(number));
        Names page{.names = pages[number++], .next = {}};
        if (asked != nullptr) *asked = number;
        if (number < pages.size()) page.next = std::to_string(number);
        return page;
      },
      ListNames{}, &Names::names);
}

TEST(AllPages, AreAskedForOneAfterTheOther) {
  const auto all = All({{"a", "b"}, {"c"}, {"d", "e"}});
  ASSERT_TRUE(all.has_value()) << all.error().ToString();
  EXPECT_EQ(all->names, (std::vector<std::string>{"a", "b", "c", "d", "e"}));
  EXPECT_EQ(all->next, "");
  EXPECT_TRUE(All({{}})->names.empty());
}

TEST(AllPages, APageThatIsTooLargeIsAskedForInParts) {
  constexpr int kObjects = 600;
  constexpr int kFit = 40;  // objects in an answer
  std::vector<int> limits;
  const auto all = AllPages<Names>(
      [&](const ListNames& what) -> Result<Names> {
        limits.push_back(what.page.limit);
        if (what.page.limit > kFit) return Error(Code::kResourceExhausted, "the message is too large");
        const int first = what.page.token.empty() ? 0 : std::stoi(what.page.token);
        Names page;
        for (int i = first; i < std::min(first + what.page.limit, kObjects); ++i)
          page.names.push_back(std::to_string(i));
        if (first + what.page.limit < kObjects) page.next = std::to_string(first + what.page.limit);
        return page;
      },
      ListNames{}, &Names::names);
  ASSERT_TRUE(all.has_value()) << all.error().ToString();
  EXPECT_EQ(all->names.size(), kObjects);
  EXPECT_EQ(std::vector<int>(limits.begin(), limits.begin() + 5), (std::vector<int>{250, 31, 31, 31, 31}))
      << "what fits is found once";
  const auto none =
      AllPages<Names>([](const ListNames&) -> Result<Names> { return Error(Code::kResourceExhausted, "too large"); },
                      ListNames{}, &Names::names);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error(), Status(Code::kResourceExhausted, "too large")) << "one object is too large";
}

TEST(AllPages, HaveSoManyObjectsAtTheMost) {
  const std::vector<std::string> half(kMostObjects / 2, "x");
  const auto most = All({half, half});
  ASSERT_TRUE(most.has_value()) << most.error().ToString();
  EXPECT_EQ(most->names.size(), kMostObjects);
  size_t asked = 0;
  const auto more = All({half, half, {"one"}, {"two"}}, &asked);
  ASSERT_FALSE(more.has_value());
  EXPECT_EQ(more.error(), Status(Code::kInternal, "the scheduler lists more than 1000000 objects"));
  EXPECT_EQ(asked, 3u) << "it is asked for no more";
}

TEST(AllPages, HaveSoManyBytesAtTheMost) {
  const std::vector<std::string> part(1, std::string((16 << 20) - 8, 'x'));  // with its length less than a sixteenth
  const auto most = All(std::vector<std::vector<std::string>>(16, part));
  ASSERT_TRUE(most.has_value()) << most.error().ToString();
  size_t asked = 0;
  const auto more = All(std::vector<std::vector<std::string>>(20, part), &asked);
  ASSERT_FALSE(more.has_value());
  EXPECT_EQ(more.error(), Status(Code::kInternal, "the scheduler lists more than 268435456 bytes of objects"));
  EXPECT_EQ(asked, 17u) << "it is asked for no more";
}

TEST(AllPages, GoOn) {
  const auto same =
      AllPages<Names>([](const ListNames&) -> Result<Names> { return Names{.names = {"a"}, .next = "more"}; },
                      ListNames{}, &Names::names);
  ASSERT_FALSE(same.has_value());
  EXPECT_EQ(same.error(), Status(Code::kInternal, "the scheduler gives the same page again and again"));
  const auto empty = All({{"a"}, {}, {"b"}});
  ASSERT_FALSE(empty.has_value());
  EXPECT_EQ(empty.error(), Status(Code::kInternal, "the scheduler gives an empty page and says that there is more"));
}

}  // namespace
}  // namespace muster::cli
