// Everything a shard keeps, but its engine and what follows from the rest: what a journal begins with.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
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

  static constexpr std::string_view kTypeName = "Kept";
  static constexpr auto Fields() {
    return std::tuple{Field{"config", &Kept::config_},
                      Field{"epoch", &Kept::epoch_},
                      Field{"cycle", &Kept::cycle_},
                      Field{"mode", &Kept::mode_},
                      Field{"managed", &Kept::managed_},
                      Field{"domains", &Kept::domains_},
                      Field{"forgotten", &Kept::forgotten_},
                      Field{"repairs", &Kept::repairs_},
                      Field{"epoch_before", &Kept::epoch_before_},
                      Field{"machine_rows", &Kept::machine_rows_},
                      Field{"short_rows", &Kept::short_rows_},
                      Field{"drain_rows", &Kept::drain_rows_},
                      Field{"awaited", &Kept::awaited_},
                      Field{"machines", &Kept::machines_},
                      Field{"clusters", &Kept::clusters_},
                      Field{"sessions", &Kept::sessions_},
                      Field{"operations", &Kept::operations_},
                      Field{"retries", &Kept::retries_},
                      Field{"unanswered", &Kept::unanswered_},
                      Field{"latest_arrival", &Kept::latest_arrival_},
                      Field{"moment", &Kept::moment_},
                      Field{"cursor", &Kept::cursor_},
                      Field{"sweep_cursor", &Kept::sweep_cursor_},
                      Field{"sweep", &Kept::sweep_},
                      Field{"swept", &Kept::swept_},
                      Field{"last_page", &Kept::last_page_},
                      Field{"stale_page", &Kept::stale_page_},
                      Field{"page", &Kept::page_},
                      Field{"gone", &Kept::gone_},
                      Field{"sweeping", &Kept::sweeping_},
                      Field{"list_open", &Kept::list_open_},
                      Field{"list_failures", &Kept::list_failures_},
                      Field{"next_list", &Kept::next_list_},
                      Field{"next_sweep", &Kept::next_sweep_},
                      Field{"next_look", &Kept::next_look_},
                      Field{"to_look", &Kept::to_look_},
                      Field{"looking", &Kept::looking_},
                      Field{"queue", &Kept::queue_},
                      Field{"calling", &Kept::calling_},
                      Field{"sequence", &Kept::sequence_},
                      Field{"tokens", &Kept::tokens_},
                      Field{"token_of", &Kept::token_of_},
                      Field{"open_calls", &Kept::open_calls_},
                      Field{"last_call", &Kept::last_call_},
                      Field{"started", &Kept::started_},
                      Field{"ready", &Kept::ready_},
                      Field{"decided", &Kept::decided_},
                      Field{"cycle_due", &Kept::cycle_due_},
                      Field{"starved", &Kept::starved_},
                      Field{"last_cycle", &Kept::last_cycle_},
                      Field{"warm_until", &Kept::warm_until_},
                      Field{"suppressed", &Kept::suppressed_},
                      Field{"waiting", &Kept::waiting_},
                      Field{"stopped", &Kept::stopped_},
                      Field{"next_hints", &Kept::next_hints_},
                      Field{"hinted", &Kept::hinted_},
                      Field{"next_report", &Kept::next_report_},
                      Field{"report_open", &Kept::report_open_},
                      Field{"term", &Kept::term_},
                      Field{"obeyed", &Kept::obeyed_},
                      Field{"actions", &Kept::actions_},
                      Field{"logged", &Kept::logged_},
                      Field{"short", &Kept::short_},
                      Field{"on_disk", &Kept::on_disk_},
                      Field{"drains_on_disk", &Kept::drains_on_disk_},
                      Field{"restored", &Kept::restored_}};
  }
};

}  // namespace muster::shard
