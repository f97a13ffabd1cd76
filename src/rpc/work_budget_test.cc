#include "rpc/work_budget.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace muster::rpc {
namespace {

constexpr size_t kKiB = 1 << 10;

TEST(WorkBudget, BoundsACallerAndAll) {
  WorkBudget budget("requests", {.of_caller = 4 * kKiB, .of_all = 6 * kKiB});
  auto first = budget.Take("a", 4 * kKiB);
  ASSERT_TRUE(first);
  EXPECT_EQ(
      budget.Take("a", 1).error(),
      Status(Code::kResourceExhausted,
             "requests of 4096 bytes are under way here, 4096 of them of \"a\", and no more are allowed; wait for "
             "those"));
  auto second = budget.Take("b", 2 * kKiB);
  ASSERT_TRUE(second);
  EXPECT_FALSE(budget.Take("c", 1)) << "of all";
  first->reset();
  EXPECT_TRUE(budget.Take("a", 1)) << "given back at once";
  second->reset();
  EXPECT_EQ(budget.taken(), 0u);
}

TEST(WorkBudget, ACallerHasAPartThatOthersCannotTake) {
  WorkBudget budget("requests", {.of_caller = 4 * kKiB, .of_all = 8 * kKiB, .of_each = kKiB, .of_both = 10 * kKiB});
  const auto first = budget.Take("a", 4 * kKiB);
  const auto second = budget.Take("b", 4 * kKiB);
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(budget.Take("c", kKiB + 1)) << "of all";
  const auto third = budget.Take("c", kKiB - 1);
  EXPECT_TRUE(third);
  EXPECT_FALSE(budget.Take("c", 2)) << "it has its part";
  EXPECT_TRUE(budget.Take("c", 1));
  EXPECT_FALSE(budget.Take("a", 1));
  const auto fourth = budget.Take("d", kKiB);
  EXPECT_TRUE(fourth);
  EXPECT_FALSE(budget.Take("e", 2)) << "of both";
}

TEST(WorkBudget, WhereNothingIsTakenOneShareOfAnySizeIsGiven) {
  WorkBudget budget("requests", {.of_caller = kKiB, .of_all = kKiB});
  const auto large = budget.Take("a", 100 * kKiB);
  EXPECT_TRUE(large);
  EXPECT_FALSE(budget.Take("b", 1));
}

TEST(WorkBudget, ACallerMayBeGivenItsFirstShareWhateverOthersHave) {
  WorkBudget budget("answers", {.of_caller = kKiB, .of_all = kKiB, .harmless = 16, .first_of_caller = true});
  const auto other = budget.Take("a", 100 * kKiB);
  const auto own = budget.Take("b", 100 * kKiB);
  EXPECT_TRUE(own);
  EXPECT_FALSE(budget.Take("b", 17));
  EXPECT_TRUE(budget.Take("b", 16));
}

TEST(WorkBudget, AnAnswerIsOfItsCall) {
  CallBudgets budgets{.answers{"answers", {.of_caller = kKiB, .of_all = kKiB}}};
  const WorkBudget& budget = budgets.answers;
  const grpc::CallbackServerContext context;
  EXPECT_EQ(TakeForAnswer(context, 10 * kKiB), Status()) << "no server has begun it";
  auto began = BeginCall(context, budgets, "a");
  EXPECT_EQ(TakeForAnswer(context, kKiB), Status());
  EXPECT_EQ(budget.taken(), kKiB);
  auto next = BeginCall(context, budgets, "a");  // the same place in memory
  EXPECT_EQ(TakeForAnswer(context, 1).code(), Code::kResourceExhausted);
  began.reset();
  EXPECT_EQ(budget.taken(), 0u);
  EXPECT_EQ(TakeForAnswer(context, kKiB), Status()) << "the end of the one is not the end of the other";
  next.reset();
  EXPECT_EQ(budget.taken(), 0u);
}

TEST(WorkBudget, AnAnswerThatGrowsTakesWhatItHasBecome) {
  CallBudgets budgets{.answers{"answers", {.of_caller = 4 * kKiB, .of_all = 4 * kKiB}}};
  const auto other = budgets.answers.Take("a", kKiB);
  const grpc::CallbackServerContext context;
  const auto began = BeginCall(context, budgets, "a");
  EXPECT_EQ(TakeForAnswer(context, 2 * kKiB), Status());
  EXPECT_EQ(TakeForAnswer(context, 3 * kKiB), Status());
  EXPECT_EQ(budgets.answers.taken(), 4 * kKiB);
  EXPECT_EQ(TakeForAnswer(context, 4 * kKiB).code(), Code::kResourceExhausted);
}

TEST(WorkBudget, TheItemsOfAllStreamsOfACallerAreBounded) {
  CallBudgets budgets{.streams{"answers on streams", {.of_caller = 4 * kKiB, .of_all = 6 * kKiB}, "read faster"}};
  const grpc::CallbackServerContext context;
  EXPECT_TRUE(StreamBudget(context).Take(10 * kKiB, false)) << "no server has begun it";
  auto began = BeginCall(context, budgets, "a");
  StreamBudget one(context);
  StreamBudget another(context);
  began.reset();
  auto item = one.Take(4 * kKiB, true);
  EXPECT_EQ(another.Take(1, false).error(),
            Status(Code::kResourceExhausted,
                   "answers on streams of 4096 bytes are under way here, 4096 of them of \"a\", and no more are "
                   "allowed; read faster"));
  EXPECT_TRUE(another.Take(4 * kKiB, true)) << "the first of a stream";
  item->reset();
  EXPECT_TRUE(another.Take(kKiB, false)) << "given back when it was read";
  EXPECT_EQ(budgets.streams.taken(), 0u);
}

}  // namespace
}  // namespace muster::rpc
