// EtcdWatch: one watch on an etcd cluster, over as many streams as it takes.
//
// Invariants:
//   1. next_ is the revision after the last one given; every stream starts there.
//   2. One stream at a time; a stream that was given up gives nothing more.
//
// Thread-safety: Start once; everything else runs on gRPC's threads and on the schedule's.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "etcd/rpc.grpc.pb.h"
#include "rpc/etcd_connection.h"
#include "store/store.h"

namespace muster::rpc {

class EtcdWatch : public std::enable_shared_from_this<EtcdWatch> {
 public:
  // `range` is that of the caller, without the prefix. The connection outlives the watch's streams.
  EtcdWatch(EtcdConnection& connection, const contract::KeyRange& range, store::Revision from,
            std::shared_ptr<store::WatchGate> gate);
  // Runs until the gate is closed.
  void Start();

 private:
  class Stream;

  void Open(const std::string& token);
  void OpenLater();
  void CheckProgress(uint64_t number);
  // From the stream of that number.
  void Received(uint64_t number, etcdserverpb::WatchResponse& response);
  void Cancelled(const etcdserverpb::WatchResponse& response);
  void Deliver();
  void Ended(uint64_t number, const Status& status);
  bool IsCurrent(uint64_t number) const;

  // Set at construction.
  EtcdConnection& connection_;
  const contract::KeyRange range_;
  const std::shared_ptr<store::WatchGate> gate_;

  mutable std::mutex mu_;
  std::shared_ptr<Stream> stream_;  // guarded by mu_: none between two
  uint64_t number_ = 0;             // guarded by mu_: of the stream
  size_t member_ = 0;               // guarded by mu_: where it leads
  std::string token_;               // guarded by mu_: that it was opened with
  bool heard_ = false;              // guarded by mu_: something came since the last progress check
  Duration pause_{};                // guarded by mu_: before the next stream

  // Owned by the stream under way: its answers come one at a time.
  store::Revision next_;
  store::WatchBatch batch_;  // of frames whose last one is not here yet
};

}  // namespace muster::rpc
