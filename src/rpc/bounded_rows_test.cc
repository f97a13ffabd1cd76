#include "rpc/bounded_rows.h"

#include <gtest/gtest.h>

namespace muster::rpc {
namespace {

TEST(RowTally, HasSoManyRowsAtTheMost) {
  RowTally tally;
  for (size_t i = 0; i < RowTally::kMostRows; ++i) ASSERT_EQ(tally.Add(100), Status());
  EXPECT_EQ(tally.Add(0), Status(Code::kResourceExhausted, "there are more than 1000000 rows"));
}

TEST(RowTally, HasSoManyBytesAtTheMost) {
  RowTally tally;
  for (int i = 0; i < 4; ++i) ASSERT_EQ(tally.Add(64 << 20), Status());
  EXPECT_EQ(tally.Add(1), Status(Code::kResourceExhausted, "the first 5 rows have more than 268435456 bytes"));
}

// Rows of a few kilobytes, none of which is large, are as many bytes.
TEST(RowTally, CountsSmallRows) {
  RowTally tally;
  size_t taken = 0;
  while (tally.Add(8 << 10).ok()) ++taken;
  EXPECT_EQ(taken, 32'768u);
}

}  // namespace
}  // namespace muster::rpc
