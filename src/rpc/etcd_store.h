// EtcdStore: an etcd cluster (version 3.4 or later) as a store::Store, for state that outlives the loss of a machine.
//
// Several members may be named. A call that a member does not answer is repeated at the next one, if repeating does no
// harm: ranges, leases and compactions, until their timeout. A commit is sent once, so that an answer is never about
// another attempt; without an answer it is Unknown. A range is read in pages at one revision (etcd_listing.h), each of
// which may take its timeout.
//
// A watch is a stream of its own. When the stream breaks, or the member loses its leader, or does not answer a progress
// check, the watch goes on at the next member after the last revision it gave. Progress answers say that the member is
// alive and nothing else: those of 3.4 may overtake events, so they never move the watch.
//
// With TLS the certificate of a member must name the host that is dialled and have no identity of ours: one of a node,
// which may name any host, is not that of an etcd. A watch goes on at the next member when its connection is as old as
// the files allow (aging_channel.h).
//
// With a user, every call carries a token of that user. A token that the cluster refuses (expired, or unknown to its
// member) is replaced, and the call repeated: the cluster has done nothing then.
//
// Thread-safety: as store.h. Answers run on gRPC's threads. The destructor cancels what is open.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "rpc/tls_files.h"
#include "store/store.h"

namespace muster::rpc {

struct EtcdOptions {
  std::vector<std::string> endpoints;  // HOST:PORT each, at least one
  std::string prefix;                  // before every key, in etcd and nowhere else
  TlsFiles tls = {};                   // plaintext unless given
  std::string user = {};               // no authentication unless given
  std::string password = {};
  Duration progress_every = 2s;  // a watch whose member is silent for two of these goes to the next one
};

// The error is that of MakeChannel; that the cluster is there shows with the first call only.
Result<std::unique_ptr<store::Store>> MakeEtcdStore(const EtcdOptions& options);

}  // namespace muster::rpc
