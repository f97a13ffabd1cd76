// The scheduler core's configuration, events and effects, as plain values.
//
// All durable state is in the cluster's store, which others may write too: the core keeps a copy of it in memory, told
// by StoreListed and StoreChanged, and changes it with Commit alone. It has no state of its own on disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/agent.h"
#include "contract/cluster.h"
#include "contract/effects.h"
#include "contract/store.h"
#include "placement/types.h"

namespace muster::scheduler {

struct Config {
  std::string id = "scheduler";
  std::string cluster;               // a node that names another one is not accepted; empty: any
  std::string prefix;                // of every key in the store
  Duration reconcile_interval = 5s;  // the periodic pass, a net below the events
  Duration node_timeout = 3min;      // heartbeat age at which a node is NotReady, for placement and failover
  Duration monitor_interval = 1min;  // how often ages are judged
  Duration missing_grace = 15s;      // how long Missing is waited for after a launch
  Duration retry_base = 5s;
  Duration retry_cap = 2min;
  int32_t max_attempts = 5;
  Duration retry_reset = 10min;     // of success, after which attempts begin anew
  Duration agent_timeout = 10s;     // of a call to an agent
  int32_t agent_calls = 4;          // in flight for each node
  Duration refusal_memory = 10min;  // how long a node that refused a workload is avoided for it
  Duration unreachable_grace{};     // how long an unreachable node is waited for before it is NotReady
  Duration preempt_after = 10s;     // how long a unit waits before it evicts others
  Duration commit_timeout = 5s;
  Duration event_ttl = 1h;  // of stored events
  int32_t events_per_workload = 20;
  placement::Strategy strategy = placement::Strategy::kSpread;

  MUSTER_FIELDS(Config, id, cluster, prefix, reconcile_interval, node_timeout, monitor_interval, missing_grace,
                retry_base, retry_cap, max_attempts, retry_reset, agent_timeout, agent_calls, refusal_memory,
                unreachable_grace, preempt_after, commit_timeout, event_ttl, events_per_workload, strategy)
};

// --- events

// Everything below the prefix at one revision. It replaces what the core knew of the store.
struct StoreListed {
  contract::Revision revision = 0;
  std::vector<contract::KeyValue> rows;

  MUSTER_FIELDS(StoreListed, revision, rows)
};
// Changes below the prefix, in order and complete since the list or the batch before.
struct StoreChanged {
  contract::Revision revision = 0;
  std::vector<contract::Change> changes;

  MUSTER_FIELDS(StoreChanged, revision, changes)
};
// The store does not answer. StoreListed says that it is back.
struct StoreLost {
  Status why;

  MUSTER_FIELDS(StoreLost, why)
};
// Who leads. While this scheduler leads, its commits are guarded by the key of the election: `leader_key` at
// `leader_revision`. An empty key: there is no election, and it always leads. A core does not lead before it is told
// so, election or not.
struct LeadershipChanged {
  bool leading = false;
  std::string leader;  // address for clients; empty: unknown
  std::string leader_key;
  contract::Revision leader_revision = 0;

  MUSTER_FIELDS(LeadershipChanged, leading, leader, leader_key, leader_revision)
};
// Events that are stored from here on go with this lease, so that they are gone some time after `event_ttl` although
// nobody touches them; 0: with none.
struct EventLease {
  contract::LeaseId lease = 0;

  MUSTER_FIELDS(EventLease, lease)
};
// Somebody asks. Answered once, by an Answer with the same number.
struct Asked {
  contract::RequestId request = 0;
  contract::ClusterRequest body;
  std::string tenant;  // whose workloads and sets the caller may change, and nothing else; empty: it may change all

  MUSTER_FIELDS(Asked, request, body, tenant)
};

// --- effects

// `reply` is there exactly when `status` is OK. Mutable, so that a long list is moved out and not copied.
struct Answer {
  contract::RequestId request = 0;
  Status status;
  mutable std::optional<contract::ClusterReply> reply;

  MUSTER_FIELDS(Answer, request, status, reply)
};
// A change that is durable, or a decision that was made: for watchers and for the log.
struct Publish {
  contract::ClusterChange change;

  MUSTER_FIELDS(Publish, change)
};
// Something an operator should know: what, of whom, and the details. The shell logs it.
struct Notice {
  std::string what;  // constant text
  std::string subject;
  std::string detail;

  MUSTER_FIELDS(Notice, what, subject, detail)
};
// For statistics: how a reconciliation of a workload ended.
struct Reconciled {
  std::string action;
  bool success = true;

  MUSTER_FIELDS(Reconciled, action, success)
};

// Whom a call is for, in Call::to: "<node id> <host:port>". The shell dials the address and, if that fails, uses the
// node's ControlStream if there is one.
using Call = contract::Call<contract::AgentRequest>;
using CallDone = contract::CallDone<contract::AgentReply>;
using Event = std::variant<contract::Wake, Asked, CallDone, contract::CommitDone, StoreListed, StoreChanged, StoreLost,
                           LeadershipChanged, EventLease>;
using Effect = std::variant<contract::Persist, Call, contract::Commit, Answer, Publish, Notice, Reconciled>;

}  // namespace muster::scheduler
