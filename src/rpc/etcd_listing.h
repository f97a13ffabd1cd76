// EtcdListing: a range of an etcd while it is read in pages at one revision: what to ask for next, and what becomes of
// an answer. etcd counts all keys that are left of a range for each of its pages, so that pages of few rows take
// minutes for a large store: pages grow towards 8 MiB each. One that is too large for a message is asked for again with
// half of its rows.
//
// The timeout is that of a page. A list that goes on is not given up, however long it takes; one that begins again,
// because its revision was compacted, must come further than before within the timeout.
//
// Thread-safety: one thread at a time. It knows no network and no clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "base/time.h"
#include "etcd/rpc.pb.h"
#include "store/store.h"

namespace muster::rpc {

class EtcdListing {
 public:
  // A range of the store's keys, which have this prefix in etcd.
  EtcdListing(const contract::KeyRange& range, std::string prefix, Duration timeout, MonoTime now);

  etcdserverpb::RangeRequest Request() const;
  // How long the answer to it may take.
  Duration Left(MonoTime now) const;
  // Takes the rows out of the answer. Nothing: Request says what to ask for next; else how the list has ended.
  std::optional<Result<store::RangeReply>> Take(const Status& status, etcdserverpb::RangeResponse& page, MonoTime now);

 private:
  // Set at construction.
  const std::string prefix_;
  const contract::KeyRange whole_;  // as etcd writes it
  const Duration timeout_;

  contract::KeyRange left_;
  store::RangeReply reply_;  // revision 0: no page is here yet
  int64_t page_rows_;
  size_t furthest_ = 0;  // the most rows that were there before the list began again
  MonoTime deadline_;
};

}  // namespace muster::rpc
