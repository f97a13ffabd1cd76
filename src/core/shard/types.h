// The shard core's events and effects, as plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/fields.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/coordinator.h"
#include "contract/effects.h"
#include "contract/provider.h"
#include "contract/session.h"
#include "contract/shard.h"
#include "core/shard/config.h"
#include "core/shard/snapshot.h"
#include "model/reason.h"

namespace muster::shard {

// --- events

// A stream has said Hello.
struct SessionOpened {
  contract::SessionId session = 0;
  contract::Hello hello;

  MUSTER_FIELDS(SessionOpened, session, hello)
};

struct SessionClosed {
  contract::SessionId session = 0;

  MUSTER_FIELDS(SessionClosed, session)
};

struct Received {
  contract::SessionId session = 0;
  contract::OperatorMessage message;

  MUSTER_FIELDS(Received, session, message)
};

// A roll-up came that cannot be read.
struct RollupUnreadable {
  contract::SessionId session = 0;
  Status why;

  MUSTER_FIELDS(RollupUnreadable, session, why)
};

// Somebody asks. Answered once, by an Answer with the same number.
struct Asked {
  contract::RequestId request = 0;
  contract::ShardRequest body;

  MUSTER_FIELDS(Asked, request, body)
};

// An operator's file says what clusters may have at most, in place of all it said before.
struct CeilingsSet {
  contract::Ceilings ceilings;

  MUSTER_FIELDS(CeilingsSet, ceilings)
};

// --- effects

struct Send {
  contract::SessionId session = 0;
  contract::ShardMessage message;

  MUSTER_FIELDS(Send, session, message)
};

struct CloseSession {
  contract::SessionId session = 0;
  Status status;

  MUSTER_FIELDS(CloseSession, session, status)
};

// `reply` is there exactly when `status` is OK. Mutable, because whoever carries the effect out takes the reply out of
// it: a list of 100,000 machines is copied by nobody.
struct Answer {
  contract::RequestId request = 0;
  Status status;
  mutable std::optional<contract::ShardReply> reply;

  MUSTER_FIELDS(Answer, request, status, reply)
};

// A line of the audit log: an action that was decided, or how one ended.
struct Audit {
  contract::ActionView action;
  Duration took{};  // from the decision to this line

  MUSTER_FIELDS(Audit, action, took)
};

// A line of the audit log: an order. Refused ones are logged too, with the reason.
struct AuditOrder {
  contract::OrderView order;
  Status refusal;  // OK: it was taken
  int64_t cycle = 0;

  MUSTER_FIELDS(AuditOrder, order, refusal, cycle)
};

// Something an operator may want to know: what, of whom, and the details. The shell logs it.
struct Notice {
  model::Reason reason = model::Reason::kNone;
  std::string subject;  // a machine or a cluster
  std::string detail;

  MUSTER_FIELDS(Notice, reason, subject, detail)
};

// How long a machine needed for a part of its way: for statistics.
enum class Leg : uint8_t {
  kBlob = 0,       // from the decision to the cluster's blob
  kCreate = 1,     // from the acknowledgement until the machine was seen Idle
  kConfigure = 2,  // Configured
  kDrain = 3,      // Idle
  kProvision = 4,  // from the roll-up that asked for more of a need until a machine that was bound for it is Configured
};
struct Lasted {
  Leg leg = Leg::kBlob;
  Duration took{};

  MUSTER_FIELDS(Lasted, leg, took)
};

// A cycle has ended: what it wrote into the audit log is to be made durable.
struct CycleEnded {
  int64_t cycle = 0;

  MUSTER_FIELDS(CycleEnded, cycle)
};

// The shard must not go on: another one has taken its place, or it has no right to its epoch. It does nothing more.
struct Stop {
  Status why;

  MUSTER_FIELDS(Stop, why)
};

using PartnerRequest =
    std::variant<contract::CreateRequest, contract::ConfigureRequest, contract::DrainRequest, contract::DeleteRequest,
                 contract::GetRequest, contract::ListRequest, contract::ShardReport>;
using PartnerReply =
    std::variant<contract::TransitionAck, contract::GetReply, contract::ListReply, contract::ReportAck>;
// Whom a Call is for.
inline constexpr std::string_view kProvider = "provider";
inline constexpr std::string_view kCoordinator = "coordinator";

using Call = contract::Call<PartnerRequest>;
using CallDone = contract::CallDone<PartnerReply>;
// Appended to only: journals number the types.
using Event = std::variant<contract::Wake, SessionOpened, SessionClosed, Received, RollupUnreadable, Asked, CallDone,
                           CeilingsSet>;
using Effect = std::variant<contract::Persist, Call, Send, CloseSession, Answer, Audit, Notice, CycleEnded, Stop,
                            Lasted, AuditOrder>;

}  // namespace muster::shard
