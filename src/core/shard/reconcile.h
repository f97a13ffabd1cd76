// Reconcile: keeps the tracked machines as the provider shows them.
//
// One list at a time: what changed since the last one, and now and then a sweep: all machines, page by page, to see
// which are gone. What a list shows of a machine counts unless a transition of that machine began or ended since the
// list was asked for; then the machine is asked for by name (gets.h), because the next list will not show it again.
// Machines whose state is in doubt, and those a sweep did not show, are asked for by name too before they are believed
// to be gone. One that is gone is dropped, or missing if too many go at once; one that is shown as Failed with many
// others is set aside (losses.h).
//
// A full page says that there is more. Whether a provider's next page goes on where the last ended is not known: many
// answer a capped page with their newest revision, after which nothing more comes. So a sweep of several pages is
// checked once, by a list without a cap, or if the pages showed many machines by one that is longer than a page; if
// that shows more, lists have no cap from then on. A list that is too large for the provider cannot check them: then
// what the pages show is believed, and the next sweep tries again. An outage is no answer: the check waits for its end.
// After a full page without a revision the sweep has no pages, and lists have a cap again in the next one.
//
// Invariants:
//   1. Only machines of the owned set are tracked.
//   2. A record is applied whole or rejected with a reason; the last valid record is kept.
//   3. swept is the number of tracked machines that the newest sweep has shown.
//   4. No sweep of several pages counts before the provider's pages were seen to go on, or a list that would show it
//      was too large for the provider. The first sweep never counts if its pages were seen not to go on.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/parallel.h"
#include "base/time.h"
#include "contract/provider.h"
#include "contract/tables.h"
#include "core/shard/calls.h"
#include "core/shard/config.h"
#include "core/shard/engine_view.h"
#include "core/shard/gets.h"
#include "core/shard/lifecycle.h"
#include "core/shard/losses.h"
#include "core/shard/machine_changes.h"
#include "core/shard/machines.h"
#include "core/shard/owned_set.h"
#include "core/shard/rails.h"
#include "core/shard/step_context.h"
#include "model/reason.h"

namespace muster::shard {

// A page of a sweep, and when it was asked for.
struct Page {
  contract::ListReply list;
  Moment begun = 0;

  MUSTER_FIELDS(Page, list, begun)
};

inline constexpr contract::KeySet<std::string> kForgottenRows{.prefix = "forgotten/", .value = ""};  // machine
inline constexpr contract::Table<std::string, model::Machine> kMissingRows{
    "missing/"};  // machine: as it was last shown; of one that failed in masses, as it served

// What is known of the provider's pages. Stored in journals: numbers stay.
enum class Pages : uint8_t {
  kUnknown = 0,
  kGoOn = 1,       // the next one begins where the last ended
  kDoNotGoOn = 2,  // lists are asked for without a cap
};

// What the open list checks the pages of the sweep by. Stored in journals: numbers stay.
enum class PageCheck : uint8_t {
  kNone = 0,   // it is a page, or a list of changes
  kWhole = 1,  // all machines
  kPart = 2,   // more of them than the first page had
};

class Reconcile {
 public:
  struct State {
    std::string cursor;        // of lists of changes
    std::string sweep_cursor;  // of the sweep's pages
    uint64_t sweep = 0;        // number of the newest
    uint64_t swept = 0;
    std::pair<std::string, std::string> last_page;    // of the sweep: its first and last machine
    bool stale_page = false;                          // it showed only machines that the sweep had shown
    std::optional<Page> page;                         // applied in the next step, while the provider makes another
    std::map<std::string, Moment, std::less<>> gone;  // machines dropped of late: a read begun before tells nothing
    bool sweeping = false;
    bool list_open = false;
    int32_t list_failures = 0;  // in a row
    MonoTime next_list;
    MonoTime next_sweep;
    std::set<std::string, std::less<>> forgotten;  // durable: Failed machines that an operator dropped
    Pages pages = Pages::kUnknown;
    bool several = false;  // the sweep has had a full page after which another can come
    PageCheck checking = PageCheck::kNone;
    std::map<std::string, model::Machine, std::less<>> earlier_missing;  // of an earlier life, until the start
    // Journals read these last (saved_state.cc).
    int32_t failed_checks = 0;  // of the sweep's pages, by lists that are too large
    bool unchecked = false;     // the newest sweep counts though its pages could not be checked

    MUSTER_FIELDS(State, cursor, sweep_cursor, sweep, swept, last_page, stale_page, page, gone, sweeping, list_open,
                  list_failures, next_list, next_sweep, forgotten, pages, several, checking, earlier_missing,
                  failed_checks, unchecked)
  };
  // The parts it works with; all outlive it, and `parallel` may be null.
  struct Deps {
    const Config& config;
    Parallel* parallel;
    Lifecycle& lifecycle;
    Calls& calls;
    EngineView& engine;
    OwnedSet& owned;
    Machines& machines;
    Gets& gets;
    Losses& losses;
    Rails& rails;
    MachineChanges& changes;
  };

  explicit Reconcile(const Deps& deps, State state) : deps_(deps), state_(std::move(state)) {}
  void RegisterRows(contract::RowReader& reader);
  // Missing machines of an earlier life are tracked again; those of another shard's domains by now are forgotten.
  void Start(StepContext& ctx);

  // Asks for the next list if one is due.
  void AskList(StepContext& ctx);
  void OnListDone(const CallDone& done, const OpenCall& call, StepContext& ctx);
  void OnGetDone(const CallDone& done, const OpenCall& call, StepContext& ctx);
  // The provider acknowledged a transition of the machine with this record.
  void OnAcknowledged(const std::string& id, const contract::MachineRecord& record, StepContext& ctx);
  // A page waits to be applied.
  bool page_waits() const { return state_.page.has_value(); }
  void ApplyPage(StepContext& ctx);

  // Drops the machine until the provider shows a state other than Failed.
  void Forget(const std::string& id, StepContext& ctx);
  // Takes a forgotten machine back: a sweep that begins at once shows it again.
  void Recall(const std::string& id, StepContext& ctx);
  // In a cycle: gives up the lost machines whose turn it is.
  void GiveUpMissing(StepContext& ctx);
  // An operator says that the losses of the cluster, or all of them, are real: drops its missing machines. How many.
  size_t AcceptLosses(const std::string& cluster, StepContext& ctx);
  // Domains came or went: machines of others are dropped, and a sweep looks for new ones.
  void OnOwnedSetChanged(StepContext& ctx);
  // When AskList has something to do; MonoTime::max() while a list is open.
  MonoTime NextWake() const { return state_.list_open ? MonoTime::max() : state_.next_list; }

  const State& state() const { return state_; }
  void CheckInvariants() const;

 private:
  void BeginSweep();
  void EndSweep(StepContext& ctx);
  // The list is a full page of the sweep, and none can follow it: all machines are asked for without a cap.
  void SweepWithoutPages(const contract::ListReply& list, Moment begun, StepContext& ctx);
  bool IsFull(const contract::ListReply& list) const;
  bool IsRepeated(const contract::ListReply& list);
  void ApplyList(const contract::ListReply& list, Moment begun, StepContext& ctx);
  // Whether the record is sound; counts and notes it if not. The same for lists, gets and acknowledgements.
  bool Validate(const model::Machine& machine, StepContext& ctx) const;
  static void Reject(const std::string& id, const std::string& problem, StepContext& ctx);
  // `tracked` is the machine of that record, null if it is not tracked.
  void ApplyRecord(const contract::MachineRecord& shown, Tracked* tracked, Moment begun, StepContext& ctx);
  // The record of a machine that has failed, with its cluster, which the provider leaves out; none if it does not, or
  // the machine served nobody. `tracked` may be null.
  std::optional<contract::MachineRecord> WithCluster(const contract::MachineRecord& shown,
                                                     const Tracked* tracked) const;
  // The first sweep shows a machine that an earlier life has set aside: whether it failed then, and stays set aside.
  bool IsStillFailing(const std::string& id, const model::Machine& shown) const;
  void Adopt(const contract::MachineRecord& record, Moment begun, StepContext& ctx);
  void Update(const std::string& id, Tracked& tracked, const contract::MachineRecord& record, StepContext& ctx);
  void Drop(const std::string& id, model::Reason reason, std::string detail, StepContext& ctx);
  void AskInstead(const std::string& id);
  void Vanish(const std::string& id, StepContext& ctx);
  // The machine, if it was missing, is shown again, as that.
  void EndMissing(const std::string& id, const model::Machine& shown, StepContext& ctx);
  // These machines failed in masses: they are set aside.
  void PutFailing(const std::vector<std::string>& machines, StepContext& ctx);
  // A machine that was missing, or failed in masses, is what its record says from now on.
  void EndLost(const std::string& id, StepContext& ctx);
  // One of those is given up. Whether it is dropped by that.
  bool GiveUp(const std::string& id, const std::string& detail, StepContext& ctx);
  void MarkSwept(Tracked& tracked);
  // What checks the pages after the sweep's last one, or after a check that showed so many `more` machines than they.
  PageCheck NextCheck(const contract::ListReply& list, uint64_t more, StepContext& ctx);
  int64_t CheckedPart() const;  // how many machines
  int32_t ListCap() const;      // of the list to ask for; 0: none
  // A list that checks the pages is too large for the provider: after a few of them, what the pages show is believed.
  void OnCheckTooLarge(StepContext& ctx);
  void SetUncapped(const std::string& why, StepContext& ctx);
  // Times the machine's transition.
  static void MeasureLeg(Tracked& tracked, model::MachineState before, StepContext& ctx);

  const Deps deps_;
  State state_;
};

}  // namespace muster::shard
