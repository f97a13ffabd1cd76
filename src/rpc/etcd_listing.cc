#include "rpc/etcd_listing.h"

#include <algorithm>
#include <utility>

#include "base/probe.h"
#include "rpc/etcd_conversion.h"

namespace muster::rpc {
namespace {

constexpr int64_t kFirstPageRows = 250;  // even of the largest values, a message takes them
constexpr int64_t kMostPageRows = 20'000;
constexpr int64_t kPageBytes = 8 << 20;
// Rows of one kind lie together: a page says little of those far behind it.
constexpr int64_t kPageGrowth = 4;

}  // namespace

EtcdListing::EtcdListing(const contract::KeyRange& range, std::string prefix, Duration timeout, MonoTime now)
    : prefix_(std::move(prefix)),
      whole_(WireRange(range, prefix_)),
      timeout_(timeout),
      left_(whole_),
      page_rows_(kFirstPageRows),
      deadline_(now + timeout) {}

etcdserverpb::RangeRequest EtcdListing::Request() const {
  etcdserverpb::RangeRequest request;
  request.set_key(left_.begin);
  request.set_range_end(left_.end);
  request.set_limit(page_rows_);
  request.set_revision(reply_.revision);
  return request;
}

Duration EtcdListing::Left(MonoTime now) const { return std::max<Duration>(deadline_ - now, 1ms); }

std::optional<Result<store::RangeReply>> EtcdListing::Take(const Status& status, etcdserverpb::RangeResponse& page,
                                                           MonoTime now) {
  if (IsCompacted(status) && reply_.revision != 0) {
    PROBE("etcd.listing_compacted");
    if (now >= deadline_) return Error(Code::kDeadlineExceeded, "the store is compacted faster than it is listed");
    reply_ = {};  // from the beginning, at a newer revision
    left_ = whole_;
    return std::nullopt;
  }
  if (status.code() == Code::kResourceExhausted && page_rows_ > 1) {
    PROBE("etcd.page_halved");
    page_rows_ /= 2;
    return std::nullopt;
  }
  if (!status.ok()) return std::unexpected(status);
  if (reply_.revision == 0) reply_.revision = page.header().revision();
  const int64_t rows = page.kvs_size();
  const bool more = page.more() && rows > 0;
  if (more) {
    left_.begin = page.kvs(page.kvs_size() - 1).key() + '\0';
    const auto bytes = std::max<int64_t>(static_cast<int64_t>(page.ByteSizeLong()), 1);
    page_rows_ = std::clamp<int64_t>(rows * kPageBytes / bytes, 1, std::min(kPageGrowth * page_rows_, kMostPageRows));
  }
  for (mvccpb::KeyValue& row : *page.mutable_kvs()) reply_.rows.push_back(TakeRow(row, prefix_));
  if (!more) return std::move(reply_);
  if (reply_.rows.size() > furthest_) {
    furthest_ = reply_.rows.size();
    deadline_ = now + timeout_;
  }
  return std::nullopt;
}

}  // namespace muster::rpc
