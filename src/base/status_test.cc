#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/codec.h"

namespace muster {
namespace {

TEST(Status, CodesAreGrpcs) {
  const std::vector<std::string> names = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(CodeName(static_cast<Code>(i)), names[i]);
  EXPECT_EQ(static_cast<int>(Code::kUnauthenticated), 16);
  EXPECT_EQ(CodeName(static_cast<Code>(17)), "CODE_17");
}

TEST(Status, ToString) {
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status().ToString(), "OK");
  const Status missing(Code::kNotFound, "machine m-7 is not in the inventory");
  EXPECT_FALSE(missing.ok());
  EXPECT_EQ(missing.ToString(), "NOT_FOUND: machine m-7 is not in the inventory");
  EXPECT_EQ(Status(Code::kAborted, "").ToString(), "ABORTED");
  EXPECT_EQ(codec::FromBytes<Status>(codec::ToBytes(missing)), missing);
}

Status Half(int number, int& half) {
  MUSTER_RETURN_IF_ERROR(number % 2 == 0 ? Status() : Status(Code::kInvalidArgument, "odd"));
  half = number / 2;
  return {};
}

TEST(Status, ReturnIfError) {
  int half = 0;
  EXPECT_EQ(Half(6, half), Status());
  EXPECT_EQ(half, 3);
  EXPECT_EQ(Half(7, half), Status(Code::kInvalidArgument, "odd"));
  EXPECT_EQ(half, 3);
}

Result<std::unique_ptr<int>> Positive(int number) {
  if (number <= 0) return InvalidArgument("not positive");
  return std::make_unique<int>(number);
}
Result<int> Sum(int a, int b) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<int> left, Positive(a));
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<int> right, Positive(b));
  return *left + *right;
}

TEST(Status, AssignOrReturn) {
  EXPECT_EQ(Sum(1, 2), 3);
  EXPECT_EQ(Sum(1, 0), Error(Code::kInvalidArgument, "not positive"));
  EXPECT_EQ(Sum(0, 1).error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace muster
