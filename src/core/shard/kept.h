// Everything a shard keeps, but its engine and what follows from the rest: what a journal begins with.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/coordinator.h"
#include "contract/effects.h"
#include "contract/shard.h"
#include "core/shard/state.h"
#include "core/shard/types.h"
#include "engine/types.h"

namespace muster::shard {

struct Kept {
  Config config_;

  // Durable: written in the step that changes them.
  int64_t epoch_ = 0;  // of this life; 0: not taken yet
  int64_t cycle_ = 0;
  contract::ActuationMode mode_ = contract::ActuationMode::kActive;
  bool managed_ = false;  // a coordinator assigns domains
  std::set<contract::Domain> domains_;
  std::set<std::string, std::less<>> forgotten_;
  std::map<std::string, Repair, std::less<>> repairs_;

  // What an earlier life left, until it is needed.
  int64_t epoch_before_ = 0;
  std::map<std::string, MachineRow> machine_rows_;
  std::map<engine::NeedKey, ShortRow> short_rows_;
  std::map<std::string, engine::DrainMean> drain_rows_;
  std::set<std::string, std::less<>> awaited_;  // clusters whose demand it knew

  // The world.
  std::map<std::string, Tracked, std::less<>> machines_;
  std::map<std::string, Cluster, std::less<>> clusters_;
  std::map<contract::SessionId, std::string> sessions_;
  std::map<std::string, Operation, std::less<>> operations_;
  std::map<std::string, Retry, std::less<>> retries_;
  std::map<std::string, Unanswered> unanswered_;  // by instruction id
  WallTime latest_arrival_;                       // no new arrival is earlier

  // Reconcile.
  Moment moment_ = 0;
  std::string cursor_;
  std::string sweep_cursor_;
  uint64_t sweep_ = 0;                               // number of the newest
  uint64_t swept_ = 0;                               // machines it has shown
  std::pair<std::string, std::string> last_page_;    // of the sweep: its first and last machine
  bool stale_page_ = false;                          // it showed nothing that the sweep had not shown
  std::optional<Page> page_;                         // read in the next step, while the provider makes another
  std::map<std::string, Moment, std::less<>> gone_;  // machines dropped of late: a read begun before tells nothing
  bool sweeping_ = false;
  bool list_open_ = false;
  int32_t list_failures_ = 0;  // in a row
  MonoTime next_list_;
  MonoTime next_sweep_;
  MonoTime next_look_;
  std::set<std::string, std::less<>> to_look_;  // machines whose state is in doubt
  std::set<std::string, std::less<>> looking_;  // of them, asked

  // Execute.
  std::deque<std::string> queue_;  // machines whose operation is kQueued
  int32_t calling_ = 0;
  int64_t sequence_ = 0;
  uint64_t tokens_ = 0;
  std::map<std::string, std::string> token_of_;  // questions: token -> machine
  std::map<contract::CallId, OpenCall> open_calls_;
  contract::CallId last_call_ = 0;

  // The cycle.
  bool started_ = false;
  bool ready_ = false;    // the first sweep is done
  bool decided_ = false;  // once
  bool cycle_due_ = false;
  bool starved_ = false;  // the queue was full: decide again once it is empty
  MonoTime last_cycle_;
  MonoTime warm_until_;
  std::set<std::pair<std::string, uint8_t>> suppressed_;  // in the last cycle: machine and kind
  std::vector<Asked> waiting_;                            // for a cycle that explains
  Status stopped_;

  // Reports.
  MonoTime next_hints_;
  std::string hinted_;  // the cluster that was told last
  MonoTime next_report_;
  bool report_open_ = false;
  int64_t term_ = 0;                                     // the coordinator's highest
  std::map<std::string, contract::InstructAck> obeyed_;  // by instruction, until the coordinator knows
  std::deque<contract::ActionView> actions_;             // the latest last
  uint64_t logged_ = 0;                                  // how many there ever were
  std::map<engine::NeedKey, ShortSince> short_;          // needs that are short
  std::map<std::string, uint64_t> on_disk_;              // machines that have a row: its digest
  std::map<std::string, engine::DrainMean> drains_on_disk_;
  engine::Memory restored_;  // what the engine was told to remember; empty once it has decided

  MUSTER_FIELDS(Kept, config_, epoch_, cycle_, mode_, managed_, domains_, forgotten_, repairs_, epoch_before_,
                machine_rows_, short_rows_, drain_rows_, awaited_, machines_, clusters_, sessions_, operations_,
                retries_, unanswered_, latest_arrival_, moment_, cursor_, sweep_cursor_, sweep_, swept_, last_page_,
                stale_page_, page_, gone_, sweeping_, list_open_, list_failures_, next_list_, next_sweep_, next_look_,
                to_look_, looking_, queue_, calling_, sequence_, tokens_, token_of_, open_calls_, last_call_, started_,
                ready_, decided_, cycle_due_, starved_, last_cycle_, warm_until_, suppressed_, waiting_, stopped_,
                next_hints_, hinted_, next_report_, report_open_, term_, obeyed_, actions_, logged_, short_, on_disk_,
                drains_on_disk_, restored_)
};

}  // namespace muster::shard
