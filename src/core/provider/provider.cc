#include "core/provider/provider.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/codec.h"
#include "base/overloaded.h"
#include "base/probe.h"

namespace muster::provider {
namespace {

constexpr uint32_t kEveryState = ~0U;

// The set of states as bits; every state if none is given.
uint32_t MaskOf(const std::vector<model::MachineState>& states) {
  if (states.empty()) return kEveryState;
  uint32_t mask = 0;
  for (const model::MachineState state : states) mask |= 1U << static_cast<uint32_t>(state);
  return mask;
}

}  // namespace

void Core::Step(const Event& event, Now now, std::vector<Effect>& out) {
  using contract::OperationKind;
  std::visit(Overloaded{
                 [&](const contract::Wake&) {
                   if (!std::exchange(started_, true)) Resume(now, out);
                 },
                 [&](const Asked& asked) {
                   std::visit(Overloaded{
                                  [&](const contract::CreateRequest& r) {
                                    OnTransition(asked, OperationKind::kCreate, r.machine_id, r.fence, now, out);
                                  },
                                  [&](const contract::ConfigureRequest& r) {
                                    OnTransition(asked, OperationKind::kConfigure, r.machine_id, r.fence, now, out);
                                  },
                                  [&](const contract::DrainRequest& r) {
                                    OnTransition(asked, OperationKind::kDrain, r.machine_id, r.fence, now, out);
                                  },
                                  [&](const contract::DeleteRequest& r) {
                                    OnTransition(asked, OperationKind::kDelete, r.machine_id, r.fence, now, out);
                                  },
                                  [&](const contract::GetRequest& r) { OnGet(asked.request, r, out); },
                                  [&](const contract::ListRequest& r) { OnList(asked.request, r, out); },
                              },
                              asked.body);
                 },
                 [&](const Observed& observed) {
                   std::visit([&](const auto& observation) { OnObserved(observation, out); }, observed.body);
                 },
                 [&](const CallDone& done) { OnCallDone(done, out); },
             },
             event);
}

std::optional<MonoTime> Core::NextWake() const { return started_ ? std::nullopt : std::optional(MonoTime{}); }

void Core::OnGet(contract::RequestId request, const contract::GetRequest& get, std::vector<Effect>& out) const {
  if (get.machine_id.empty()) {
    out.push_back(Answer{.request = request, .status = Status(Code::kInvalidArgument, "id is empty; name a machine")});
    return;
  }
  const auto found = index_.find(get.machine_id);
  if (found == index_.end()) {
    out.push_back(
        Answer{.request = request,
               .status = Status(Code::kNotFound, fmt::format("{} has no machine {}", config_.name, get.machine_id))});
    return;
  }
  out.push_back(Answer{.request = request, .status = {}, .reply = contract::GetReply{rows_[found->second].machine}});
}

void Core::OnList(contract::RequestId request, const contract::ListRequest& list, std::vector<Effect>& out) {
  const uint32_t mask = MaskOf(list.states);
  const size_t cap = list.max_results > 0 ? static_cast<size_t>(list.max_results) : rows_.size();
  std::optional<Cursor> cursor = FromRevision(list.since_revision, numbering_.lineage, log_.newest());
  const bool rotates = !cursor && list.max_results > 0;
  if (!cursor) {
    if (!list.since_revision.empty()) PROBE("provider.unknown_cursor");
    cursor = Cursor{.lineage = numbering_.lineage};
    if (MUTANT("provider.unknown_cursor_is_empty") && !list.since_revision.empty()) cursor->open_after = log_.newest();
    // Those who ask for a few machines without a cursor begin where the last one ended, or they would all get the same.
    if (const auto last = rotation_.find(mask);
        rotates && last != rotation_.end() && last->second < log_.newest() && !MUTANT("provider.no_rotation")) {
      PROBE("provider.rotated");
      cursor->ranges = {{.after = last->second, .upto = log_.newest()}, {.after = 0, .upto = last->second}};
      cursor->open_after = log_.newest();
    }
  }
  std::vector<MachineIndex> taken;
  const Cursor rest = log_.Walk(*std::move(cursor), [&](MachineIndex i) {
    if ((mask & (1U << static_cast<uint32_t>(states_[i]))) == 0) return true;
    if (taken.size() == cap) return false;
    taken.push_back(i);
    return true;
  });
  if (rotates && !taken.empty()) rotation_[mask] = rows_[taken.back()].changed;
  contract::ListReply reply{.machines = RecordsOf(taken)};
  const bool forgets_the_rest = MUTANT("provider.page_skips_the_rest");
  reply.revision = ToRevision(forgets_the_rest ? Cursor{.lineage = rest.lineage, .open_after = log_.newest()} : rest);
  out.push_back(Answer{.request = request, .status = {}, .reply = std::move(reply)});
}

// Copying a record counts its holders with a locked instruction, behind which the processor loads nothing: without
// asking ahead, a list of the whole fleet would wait for the memory of each row and each record in turn.
std::vector<contract::MachineRecord> Core::RecordsOf(const std::vector<MachineIndex>& machines) const {
  constexpr size_t kAhead = 16;
  std::vector<contract::MachineRecord> records;
  records.reserve(machines.size());
  for (size_t i = 0; i < machines.size(); ++i) {
    if (i + 2 * kAhead < machines.size()) __builtin_prefetch(&rows_[machines[i + 2 * kAhead]].machine);
    if (i + kAhead < machines.size()) rows_[machines[i + kAhead]].machine.Prefetch();
    records.push_back(rows_[machines[i]].machine);
  }
  return records;
}

std::shared_ptr<const Snapshot> Core::View() const {
  auto view = std::make_shared<Snapshot>();
  for (size_t state = 1; state < counts_.size(); ++state) {
    view->machines[static_cast<model::MachineState>(state)] = counts_[state];
  }
  view->newest_change = log_.newest();
  view->operations_open = open_calls_.size();
  view->fenced = fenced_;
  return view;
}

std::vector<contract::MachineRecord> Core::Machines() const {
  std::vector<contract::MachineRecord> machines;
  for (const MachineRow& row : rows_) machines.push_back(row.machine);
  return machines;
}

std::set<std::string> Core::Blobs() const {
  std::set<std::string> blobs;
  for (const MachineRow& row : rows_) {
    if (row.in_flight && !row.in_flight->bootstrap_blob.empty()) blobs.insert(row.in_flight->bootstrap_blob);
  }
  return blobs;
}

void Core::CheckInvariants() const {
  log_.CheckInvariants();
  std::array<uint64_t, 9> counts{};
  for (size_t i = 0; i < rows_.size(); ++i) {
    const MachineRow& row = rows_[i];
    ++counts[static_cast<size_t>(states_[i])];
    MUSTER_CHECK(states_[i] == row.machine->state);
    MUSTER_CHECK(log_.NumberOf(static_cast<MachineIndex>(i)) == row.changed);
    const bool moving = !model::IsStable(states_[i]) && states_[i] != model::MachineState::kFailed;
    MUSTER_CHECK(moving == row.in_flight.has_value(), "machine {} is {}", row.machine->id,
                 model::StateName(states_[i]));
  }
  MUSTER_CHECK(counts == counts_);
  MUSTER_CHECK(index_.size() == rows_.size());
  for (const auto& [id, call] : open_calls_) MUSTER_CHECK(id <= last_call_ && call.machine < rows_.size());
}

}  // namespace muster::provider
