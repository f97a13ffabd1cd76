// ClusterClient: a running scheduler as a contract::ClusterPort, with watches and logs, for the command line and the
// operator.
//
// Everything goes through muster.v1.Cluster. Schedulers are given as a list, of which one leads: a call that ends with
// UNAVAILABLE, because the scheduler does not answer or does not lead, is repeated with the next of the list, once
// around; the one that answered is asked first from then on. So a change may be made twice, which leaves the same
// state: every change names the state that it wants.
//
// What the scheduler answers is bounded before it is parsed (kServerReplyBounds), and validated: a bad row is INTERNAL,
// by its field. Every call has a deadline of ten
// seconds, lists one of a minute. RegisterNode and Heartbeat are refused with UNIMPLEMENTED: a node joins by
// join_client.h.
//
// Thread-safety: any thread may ask. Answers run on gRPC's threads, also while the client is destroyed, which cancels
// what is open and waits for it; so no answer, of this or any other client, may destroy the client.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "contract/cluster.h"
#include "contract/logs.h"
#include "rpc/tls_files.h"

namespace muster::rpc {

// A watch or a reading of logs while it lives: destroying it ends it and waits until its functions have returned. They
// must not destroy it.
class OpenStream {
 public:
  virtual ~OpenStream() = default;
};

class ClusterClient : public contract::ClusterPort {
 public:
  struct Watcher {
    std::function<void(contract::ClusterChange)> changed;
    // Last, once: UNAVAILABLE if the scheduler is gone (watch again from the last revision seen), OUT_OF_RANGE if it no
    // longer has the changes (list, and watch from the list's revision). Not called if the watch was destroyed first.
    std::function<void(Status)> ended;
  };
  // Both functions run on gRPC's threads, one call at a time.
  [[nodiscard]] virtual std::unique_ptr<OpenStream> Watch(const contract::WatchCluster& what, Watcher watcher) = 0;

  struct LogReader {
    std::function<void(contract::LogChunk)> chunk;
    std::function<void(Status)> ended;  // as Watcher::ended; OK after the last chunk
  };
  [[nodiscard]] virtual std::unique_ptr<OpenStream> Logs(const contract::ReadLogs& what, LogReader reader) = 0;
};

// `targets` is HOST:PORT, or several with commas. INVALID_ARGUMENT as MakeChannel; that a scheduler is there shows with
// the first call only. With TLS a scheduler whose certificate is of another cluster than `cluster` is refused; empty:
// any cluster's is taken.
Result<std::unique_ptr<ClusterClient>> MakeClusterClient(const std::string& targets, const TlsFiles& tls = {},
                                                         const std::string& cluster = {});

}  // namespace muster::rpc
