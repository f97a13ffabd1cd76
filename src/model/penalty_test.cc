#include "model/penalty.h"

#include <gtest/gtest.h>

namespace muster::model {
namespace {

Money Dollars(int64_t dollars) { return {dollars * 1'000'000}; }
PenaltyBucket Bucket(int number) { return static_cast<PenaltyBucket>(number); }

// The ladder, written out: bucket number, upper bound in micro-dollars, label.
struct Rung {
  int number;
  int64_t micros;
  std::string_view label;
};
constexpr auto kLadder = std::to_array<Rung>({{1, 0, "0"},
                                              {2, 500'000, "0.5"},
                                              {3, 1'000'000, "1"},
                                              {4, 2'000'000, "2"},
                                              {5, 4'000'000, "4"},
                                              {6, 8'000'000, "8"},
                                              {7, 16'000'000, "16"},
                                              {8, 32'000'000, "32"},
                                              {9, 64'000'000, "64"},
                                              {10, 128'000'000, "128"},
                                              {11, 256'000'000, "256"},
                                              {12, 512'000'000, "512"},
                                              {13, 1'024'000'000, "1024"},
                                              {14, 2'048'000'000, "2048"},
                                              {15, 4'096'000'000, "4096"},
                                              {16, 8'192'000'000, "8192"},
                                              {17, 16'384'000'000, "16384"},
                                              {18, 32'768'000'000, "32768"},
                                              {19, 65'536'000'000, "65536"},
                                              {20, 131'072'000'000, "131072"},
                                              {21, 262'144'000'000, "262144"},
                                              {22, 524'288'000'000, "524288"},
                                              {23, 1'048'576'000'000, "1048576"},
                                              {24, 2'097'152'000'000, "2097152"},
                                              {25, 4'194'304'000'000, "4194304"},
                                              {26, 8'388'608'000'000, "8388608"}});

TEST(Penalty, EveryBoundaryOfTheLadder) {
  static_assert(kLadder.size() == 26);
  for (const Rung& rung : kLadder) {
    EXPECT_EQ(BucketForDollars({rung.micros}), Bucket(rung.number)) << rung.label;
    EXPECT_EQ(BucketForDollars({rung.micros + 1}), Bucket(rung.number + 1)) << rung.label;
    EXPECT_EQ(BucketForDollars({rung.micros - 1}), Bucket(rung.number)) << rung.label;
    EXPECT_EQ(UpperBound(Bucket(rung.number)), (Penalty{.finite = {rung.micros}})) << rung.label;
    EXPECT_EQ(BucketLabel(Bucket(rung.number)), rung.label);
    EXPECT_EQ(ParseBucket(rung.label), Bucket(rung.number));
  }
}

TEST(Penalty, Examples) {
  EXPECT_EQ(BucketForDollars({510'000}), PenaltyBucket::kOneDollar);
  EXPECT_EQ(BucketForDollars({1'010'000}), Bucket(4));
  EXPECT_EQ(BucketForDollars(Dollars(8000)), Bucket(16));
  EXPECT_EQ(UpperBound(BucketForDollars(Dollars(8000))).finite, Dollars(8192));
  EXPECT_EQ(BucketForDollars(Dollars(20'000'000)), PenaltyBucket::kPinned);
  EXPECT_EQ(BucketForDollars({INT64_MAX}), PenaltyBucket::kPinned);
  EXPECT_EQ(BucketForDollars({INT64_MIN}), PenaltyBucket::kZero);
}

TEST(Penalty, UnspecifiedAndPinned) {
  EXPECT_EQ(UpperBound(PenaltyBucket::kUnspecified), Penalty{});
  EXPECT_EQ(UpperBound(PenaltyBucket::kPinned), Penalty::Pinned());
  EXPECT_EQ(BucketLabel(PenaltyBucket::kUnspecified), "unspecified");
  EXPECT_EQ(BucketLabel(PenaltyBucket::kPinned), "pinned");
  EXPECT_DEATH(UpperBound(Bucket(28)), "bucket 28");
}

TEST(Penalty, PinnedIsAboveEveryAmount) {
  EXPECT_GT(Penalty::Pinned(), (Penalty{.finite = {INT64_MAX}}));
  EXPECT_EQ(Penalty::Pinned(), Penalty::Pinned());
  EXPECT_LT((Penalty{.finite = {1}}), (Penalty{.finite = {2}}));
}

TEST(Penalty, NumbersOfTheWire) {
  for (int number = 0; number < kPenaltyBuckets; ++number) EXPECT_EQ(BucketFromNumber(number), Bucket(number));
  for (const int64_t number : {int64_t{-1}, int64_t{28}, int64_t{256}, INT64_MAX}) {
    const auto bucket = BucketFromNumber(number);
    ASSERT_FALSE(bucket) << number;
    EXPECT_NE(bucket.error().message().find("from 0 to 27"), std::string::npos);
  }
}

TEST(Penalty, ParsesLabelsAndDollars) {
  EXPECT_EQ(ParseBucket("pinned"), PenaltyBucket::kPinned);
  EXPECT_EQ(ParseBucket("unspecified"), PenaltyBucket::kUnspecified);
  EXPECT_EQ(ParseBucket("$0.51"), PenaltyBucket::kOneDollar);
  EXPECT_EQ(ParseBucket("8000"), Bucket(16));
  EXPECT_EQ(ParseBucket("20000000"), PenaltyBucket::kPinned);
  for (const std::string_view text : {"", "-1", "Pinned", "8k", "1e3", "inf"}) {
    const auto bucket = ParseBucket(text);
    ASSERT_FALSE(bucket) << text;
    EXPECT_TRUE(bucket.error().message().starts_with("penalty \"")) << bucket.error().message();
  }
}

}  // namespace
}  // namespace muster::model
