// Provider: the provider's half of the contract, once for every backend (docs/provider.md says it in prose).
//
// A transition is looked at in this order: no machine id (INVALID_ARGUMENT); the fence (FAILED_PRECONDITION); unknown
// machine (NOT_FOUND); a repetition (the same operation id again); the rest of its fields; the machine's place in its
// life (ABORTED). One that passes is durable before it is answered, and answered before the backend hears of it.
//
// Invariants:
//   1. A mark per (shard, machine) only grows, and covers every token that passed, whatever became of the call. What
//      passed with an epoch fences every older epoch of its shard, on every machine. Marks of machines that do not
//      exist are bounded: the oldest go, and never the one with the newest epoch of its shard.
//   2. A machine has an operation under way exactly while its state is transitional.
//   3. Every record is sound (model::CheckStructure); cluster and metadata come and go together.
//   4. Failed ends with Delete only: an operation that ends well after its machine failed changes nothing.
//   5. Whatever was answered survives a crash; what was under way is asked for again under the same id.
//   6. A list costs one look at each machine and copies no record.
// Thread-safety: none, as for every core.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "contract/backend.h"
#include "contract/effects.h"
#include "contract/provider.h"
#include "core/provider/change_log.h"
#include "core/provider/types.h"

namespace muster::provider {

class Core {
 public:
  static constexpr std::string_view kName = "provider";
  using Call = contract::Call<contract::Operation>;
  using CallDone = contract::CallDone<contract::OperationDone>;
  using Event = std::variant<contract::Wake, Asked, Observed, CallDone>;
  using Effect = std::variant<contract::Persist, Call, Answer>;
  using Snapshot = provider::Snapshot;

  // A core over the backend's machines and what an earlier life left durable. A machine with a row is what the row
  // says; one that the backend no longer has stays until it is Speculative. DATA_LOSS naming a row that cannot be read,
  // INVALID_ARGUMENT naming a slot that is no sound machine or has an id another one has.
  static Result<Core> Recover(Config config, std::vector<contract::Slot> slots, const contract::Recovered& recovered);
  static std::optional<Core> Load(std::string_view saved);
  std::string Save() const;

  void Step(const Event& event, Now now, std::vector<Effect>& out);
  // At once after a start; never again.
  std::optional<MonoTime> NextWake() const;
  std::shared_ptr<const Snapshot> View() const;
  void CheckInvariants() const;

  // For hosts and tests, by id order: every machine there is.
  std::vector<contract::MachineRecord> Machines() const;
  // For hosts: the bootstrap blobs of the Configures under way, as they were given.
  std::set<std::string> Blobs() const;

 private:
  using MachineIndex = uint32_t;
  struct Market {
    contract::MarketMoved now;
    std::vector<MachineIndex> machines;
  };
  struct OpenCall {
    MachineIndex machine = 0;
    uint64_t operation = 0;  // its number

    MUSTER_FIELDS(OpenCall, machine, operation)
  };
  struct Saved;  // the whole state, in the form of the journal
  // A transition that passed the fence and found its machine.
  struct Transition {
    contract::RequestId request = 0;
    contract::OperationKind kind = contract::OperationKind::kCreate;
    MachineIndex machine = 0;
    const contract::ConfigureRequest* configure = nullptr;
    Duration grace{};
    contract::Persist persist;  // what the fence left to store
  };

  Core() = default;
  // recover.cc
  Status ReadRows(const contract::Recovered& recovered);
  Status AddSlots(std::vector<contract::Slot> slots);
  void Renumber(uint64_t digest, size_t slots);
  void DropVanished(const std::vector<bool>& has_slot);
  void Reindex();

  // transitions.cc
  void OnTransition(const Asked& asked, contract::OperationKind kind, const std::string& machine_id,
                    const contract::FenceToken& fence, Now now, std::vector<Effect>& out);
  // Records the token, or says why it is refused.
  Status PassFence(const contract::FenceToken& fence, const std::string& machine_id, contract::Persist& persist);
  // Of a machine that does not exist.
  void KeepFewGhosts(const std::string& shard, const std::string& machine_id, const Mark* before, const Mark& now,
                     contract::Persist& persist);
  bool IsRepetition(const Transition& transition) const;
  Status CheckRequest(const Transition& transition) const;
  void Accept(Transition& transition, Now now, std::vector<Effect>& out);
  void OnCallDone(const CallDone& done, std::vector<Effect>& out);
  void Finish(MachineIndex index, const contract::OperationDone& done, std::vector<Effect>& out);
  void Fail(MachineIndex index, std::string error, std::vector<Effect>& out);
  void AskBackend(MachineIndex index, Now now, std::vector<Effect>& out);
  void Resume(Now now, std::vector<Effect>& out);
  void OnObserved(const contract::MarketMoved& moved, std::vector<Effect>& out);
  void OnObserved(const contract::InterruptionNoticed& noticed, std::vector<Effect>& out);
  void OnObserved(const contract::MachineLost& lost, std::vector<Effect>& out);

  void OnGet(contract::RequestId request, const contract::GetRequest& get, std::vector<Effect>& out) const;
  void OnList(contract::RequestId request, const contract::ListRequest& list, std::vector<Effect>& out);
  std::vector<contract::MachineRecord> RecordsOf(const std::vector<MachineIndex>& machines) const;

  // Gives the machine its changed record and the next number, and adds its row to the batch.
  void Change(MachineIndex index, model::Machine machine, contract::Persist& persist);
  contract::TransitionAck Ack(MachineIndex index, contract::OperationKind kind) const;
  std::string OperationId(uint64_t number) const;
  Duration TimeoutOf(const InFlight& in_flight) const;
  const MachineRow* FindHost(const std::string& machine_id, const std::string& host_ref, MachineIndex& index) const;

  // Set at construction.
  Config config_;

  // Durable: written in the step that changes them.
  std::vector<MachineRow> rows_;
  std::map<std::pair<std::string, std::string>, Mark> marks_;  // by shard, then machine
  Numbering numbering_;
  contract::Persist left_over_;  // rows that recovery changed, to be written by the first step

  // Forgotten by a restart.
  std::map<uint32_t, uint64_t> rotation_;  // where the last capped list for this set of states ended
  std::map<contract::CallId, OpenCall> open_calls_;
  contract::CallId last_call_ = 0;
  bool started_ = false;
  uint64_t fenced_ = 0;

  // Derived from rows_.
  std::map<std::string, MachineIndex, std::less<>> index_;
  std::map<MarketKey, Market> markets_;
  std::map<std::string, int64_t, std::less<>> floors_;                    // the newest epoch of each shard; from marks_
  std::map<std::string, std::set<std::pair<Mark, std::string>>> ghosts_;  // marks of no machine, by shard; from marks_
  std::vector<model::MachineState> states_;
  std::array<uint64_t, 9> counts_{};
  ChangeLog log_;
};

}  // namespace muster::provider
