#include "rpc/etcd_listing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/probe.h"
#include "host/fault_table_for_test.h"

namespace muster::rpc {
namespace {

namespace pb = etcdserverpb;

constexpr MonoTime kStart(1h);
constexpr Duration kTimeout = 30s;

// The part of an etcd that answers a range: rows "k0000000" and so on, with values of one size.
class Rows {
 public:
  Rows(size_t count, size_t value_bytes, size_t message_bytes = 256u << 20)
      : count_(count), value_(value_bytes, 'v'), message_bytes_(message_bytes) {}

  // Gives the answer to the listing's request. Nothing: it goes on.
  std::optional<Result<store::RangeReply>> Answer(EtcdListing& listing, MonoTime now) {
    const pb::RangeRequest request = listing.Request();
    limits.push_back(request.limit());
    pb::RangeResponse page;
    page.mutable_header()->set_revision(7);
    size_t row = 0;
    while (row < count_ && Key(row) < request.key()) ++row;
    while (row < count_ && page.kvs_size() < request.limit()) {
      mvccpb::KeyValue& kv = *page.add_kvs();
      kv.set_key(Key(row++));
      kv.set_value(value_);
    }
    page.set_more(row < count_);
    if (page.ByteSizeLong() > message_bytes_) {
      pb::RangeResponse none;
      return listing.Take({Code::kResourceExhausted, "Received message larger than max"}, none, now);
    }
    return listing.Take({}, page, now);
  }
  // Until it has ended, with this time between the answers.
  Result<store::RangeReply> All(EtcdListing& listing, MonoTime& now, Duration page_takes) {
    while (true) {
      if (listing.Left(now) < page_takes) return Error(Code::kDeadlineExceeded, "the page takes too long");
      now += page_takes;
      if (auto ended = Answer(listing, now)) return *std::move(ended);
    }
  }

  std::vector<int64_t> limits;  // of the requests

 private:
  static std::string Key(size_t row) { return fmt::format("k{:07}", row); }

  const size_t count_;
  const std::string value_;
  const size_t message_bytes_;
};

TEST(EtcdListing, GrowsItsPagesTowardsEightMegabytes) {
  Rows rows(60'000, 400);
  EtcdListing listing(contract::EveryKey(), "", kTimeout, kStart);
  MonoTime now = kStart;
  const auto reply = rows.All(listing, now, 1s);
  ASSERT_TRUE(reply.has_value()) << reply.error().ToString();
  EXPECT_EQ(reply->revision, 7);
  ASSERT_EQ(reply->rows.size(), 60'000U);
  for (size_t i = 1; i < reply->rows.size(); ++i) ASSERT_LT(reply->rows[i - 1].key, reply->rows[i].key);
  ASSERT_EQ(rows.limits.size(), 6U);
  EXPECT_EQ((std::vector<int64_t>{rows.limits.begin(), rows.limits.begin() + 4}),
            (std::vector<int64_t>{250, 1000, 4000, 16'000}));
  EXPECT_GT(rows.limits.back(), 19'000);
  EXPECT_LE(rows.limits.back(), 20'000);
}

TEST(EtcdListing, TakesFewerOfLargeRows) {
  Rows rows(600, 100 << 10);
  EtcdListing listing(contract::EveryKey(), "", kTimeout, kStart);
  MonoTime now = kStart;
  const auto reply = rows.All(listing, now, 1s);
  ASSERT_TRUE(reply.has_value()) << reply.error().ToString();
  EXPECT_EQ(reply->rows.size(), 600U);
  ASSERT_EQ(rows.limits.size(), 6U);
  for (const int64_t limit : std::vector<int64_t>{rows.limits.begin() + 1, rows.limits.end()}) EXPECT_EQ(limit, 81);
}

TEST(EtcdListing, HalvesAPageThatIsTooLarge) {
  faults::ResetProbes();
  Rows rows(300, 1 << 10, 100 << 10);
  EtcdListing listing(contract::EveryKey(), "", kTimeout, kStart);
  MonoTime now = kStart;
  const auto reply = rows.All(listing, now, 10ms);
  ASSERT_TRUE(reply.has_value()) << reply.error().ToString();
  EXPECT_EQ(reply->rows.size(), 300U);
  EXPECT_EQ((std::vector<int64_t>{rows.limits.begin(), rows.limits.begin() + 3}), (std::vector<int64_t>{250, 125, 62}));
  faults::ExpectReached("EtcdListing.HalvesAPageThatIsTooLarge", "store");

  Rows none(1, 200 << 10, 100 << 10);
  EtcdListing hopeless(contract::EveryKey(), "", kTimeout, kStart);
  EXPECT_EQ(none.All(hopeless, now = kStart, 10ms).error().code(), Code::kResourceExhausted);
}

// The whole list takes much longer than the timeout.
TEST(EtcdListing, MayTakeItsTimeoutForEachPage) {
  Rows rows(60'000, 400);
  EtcdListing listing(contract::EveryKey(), "", kTimeout, kStart);
  MonoTime now = kStart;
  EXPECT_TRUE(rows.All(listing, now, kTimeout - 1s).has_value());
  EXPECT_GT(now - kStart, 4 * kTimeout);
  EtcdListing slow(contract::EveryKey(), "", kTimeout, now = kStart);
  EXPECT_EQ(rows.All(slow, now, kTimeout + 1s).error().code(), Code::kDeadlineExceeded);
}

// It begins again, which is no progress.
TEST(EtcdListing, EndsWhenItsRevisionIsCompactedOverAndOver) {
  Rows rows(60'000, 400);
  EtcdListing listing(contract::EveryKey(), "", kTimeout, kStart);
  MonoTime now = kStart;
  std::optional<Result<store::RangeReply>> ended;
  while (!ended && now < kStart + 10 * kTimeout) {
    EXPECT_EQ(listing.Request().revision(), 0);
    ended = rows.Answer(listing, now += 1s);
    ASSERT_FALSE(ended.has_value());
    EXPECT_EQ(listing.Request().revision(), 7);
    pb::RangeResponse none;
    ended = listing.Take({Code::kOutOfRange, "etcdserver: mvcc: required revision has been compacted"}, none, now);
  }
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->error().code(), Code::kDeadlineExceeded);
  EXPECT_LE(now - kStart, 2 * kTimeout);
}

}  // namespace
}  // namespace muster::rpc
