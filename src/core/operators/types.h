// The operator core's configuration, events and effects, as plain values. The operator of a native cluster stands
// between the cluster's scheduler and the fleet's shard: it says what the cluster needs, and does in the cluster what
// the shard says about machines.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/cluster.h"
#include "contract/effects.h"
#include "contract/session.h"
#include "model/machine.h"
#include "model/need.h"

namespace muster::operators {

struct Config {
  std::string cluster;
  Duration rollup_interval = 10s;    // at the least so often, and after changes
  Duration settle = 200ms;           // how long changes are gathered before a roll-up
  Duration call_timeout = 10s;       // of a call to the scheduler
  Duration retry_after = 1s;         // of a call that failed
  Duration stuck_after = 15s;        // how long a workload waits beside enough bound capacity before demand is raised
  Duration correction_hold = 10min;  // how long a raised demand stays after the last stuck workload runs

  Duration forget_after = 1min;  // how long a machine that the shard does not name is waited for before its node goes

  MUSTER_FIELDS(Config, cluster, rollup_interval, settle, call_timeout, retry_after, stuck_after, correction_hold,
                forget_after)
};

// --- events

// All nodes and workloads of the cluster. It replaces what was known.
struct ClusterListed {
  std::vector<contract::NodeView> nodes;
  std::vector<contract::WorkloadView> workloads;

  MUSTER_FIELDS(ClusterListed, nodes, workloads)
};
// One of them changed. Changes that a list already had may come again.
struct ClusterChanged {
  contract::ObjectChanged change;

  MUSTER_FIELDS(ClusterChanged, change)
};
// The scheduler does not answer; what was known of the cluster stays. ClusterListed says that it is back.
struct ClusterLost {
  Status why;

  MUSTER_FIELDS(ClusterLost, why)
};
// What the fleet was asked for before this life of the operator: raises of demand that were in force go on. Said, after
// the list, by those who take a cluster up as it stands; a process that restarts is not told.
struct DemandTakenUp {
  std::vector<model::Need> needs;

  MUSTER_FIELDS(DemandTakenUp, needs)
};
// The shard has acknowledged Hello.
struct SessionOpened {
  MUSTER_FIELDS(SessionOpened)
};
struct SessionClosed {
  Status why;

  MUSTER_FIELDS(SessionClosed, why)
};
struct Received {
  contract::ShardMessage message;

  MUSTER_FIELDS(Received, message)
};

// --- effects

// To the shard, if there is a session.
struct Send {
  contract::OperatorMessage message;

  MUSTER_FIELDS(Send, message)
};
// The shard wants the data with which a machine becomes a node. They are a secret: the shell makes and sends them, and
// the core never sees them.
struct GiveBlob {
  std::string request_id;

  MUSTER_FIELDS(GiveBlob, request_id)
};
// Something people should know; the shell logs it.
struct Notice {
  std::string what;  // constant text
  std::string subject;
  std::string detail;

  MUSTER_FIELDS(Notice, what, subject, detail)
};

using Call = contract::Call<contract::ClusterRequest>;
using CallDone = contract::CallDone<contract::ClusterReply>;
using Event = std::variant<contract::Wake, ClusterListed, ClusterChanged, ClusterLost, SessionOpened, SessionClosed,
                           Received, CallDone, DemandTakenUp>;
using Effect = std::variant<contract::Persist, Call, Send, GiveBlob, Notice>;

// --- what people see

struct CorrectionView {
  std::string fingerprint;
  std::string group;
  model::Resources extra;
  std::vector<std::string> stuck;  // workloads

  MUSTER_FIELDS(CorrectionView, fingerprint, group, extra, stuck)
};
struct ReclaimView {
  std::string instruction;
  std::vector<std::string> nodes;
  bool acknowledged = false;

  MUSTER_FIELDS(ReclaimView, instruction, nodes, acknowledged)
};
struct Snapshot {
  bool session = false;
  bool cluster_known = false;
  int64_t rollups = 0;
  std::string last_echo;  // how the shard acknowledged the last roll-up
  std::vector<model::Need> needs;
  int64_t left_out = 0;  // workloads that are in no need: the shard would refuse it
  std::vector<CorrectionView> corrections;
  std::map<std::string, std::string> helpless;  // workloads that an empty machine refuses too, with the refusal
  std::vector<ReclaimView> reclaims;
  std::map<std::string, model::MachineState> machines;
};

}  // namespace muster::operators
