// Backend: the machinery behind a provider, as its shell sees it: what machines there are, operations to start, and
// what has happened since the last look. The core above it keeps the contract (core/provider); a backend only acts.
//
// Thread-safety: one thread at a time calls, and no call blocks for long.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "contract/backend.h"
#include "contract/effects.h"

namespace muster::provider {

// An operation ended, for the call that asked last. `repeated`: it had ended before, and this is the same end again.
struct OperationEnded {
  contract::CallId call = 0;
  std::string operation_id;
  std::string machine_id;
  contract::OperationKind kind = contract::OperationKind::kCreate;
  Status status;
  contract::OperationDone done;  // if the status is OK
  bool repeated = false;
};
using Report = std::variant<OperationEnded, contract::Observation>;

class Backend {
 public:
  virtual ~Backend() = default;
  // Every machine the backend has or could have; the same at every start with the same settings.
  virtual std::vector<contract::Slot> Slots() const = 0;
  // The machines as they stand when the provider starts, before any operation.
  virtual void Adopt(std::span<const contract::MachineRecord> machines, Now now) = 0;
  // Idempotent by operation id. A machine has one operation at a time: another one takes the place of the last.
  virtual void Start(contract::CallId call, const contract::Operation& operation, Now now) = 0;
  // When Poll may have something to say; nothing: not before the next Start.
  virtual std::optional<MonoTime> NextPoll() const = 0;
  // Adds what happened since the last look, in order.
  virtual void Poll(Now now, std::vector<Report>& out) = 0;
};

}  // namespace muster::provider
