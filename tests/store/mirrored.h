// Mirrored: a copy of a range, made of a mirror's events by whichever threads bring them, and what is wrong with it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "store/blocking.h"
#include "store/mirror.h"

namespace muster::store {

class Mirrored {
 public:
  Mirrored(Store& store, Schedule& schedule, const MirrorOptions& options)
      : mirror_(store, schedule, options, [this](const MirrorEvent& event) {
          waiter_.Do([&] { std::visit([this](const auto& e) { Take(e); }, event); });
        }) {}

  // Whether the copy is these rows, within `patience`.
  bool Becomes(const std::vector<KeyValue>& rows, Duration patience = 30s) {
    std::map<std::string, KeyValue> wanted;
    for (const KeyValue& row : rows) wanted.emplace(row.key, row);
    return waiter_.Wait(patience, [&] { return rows_ == wanted; });
  }
  bool BecomesLost(bool lost, Duration patience = 60s) {
    return waiter_.Wait(patience, [&] { return lost_ == lost; });
  }
  // The first breach of the mirror's invariants; empty if there is none.
  std::string breach() {
    return waiter_.Get([&] { return breach_; });
  }

 private:
  void Take(const contract::RowsListed& listed) {
    if (std::exchange(listed_, true) && !lost_) breach_ = "listed twice";
    if (listed.revision < revision_) breach_ = "an older revision is listed";
    revision_ = listed.revision;
    rows_.clear();
    puts_.clear();
    for (const KeyValue& row : listed.rows) Take(contract::Change{.deleted = false, .now = row});
  }
  void Take(const contract::RowsChanged& changed) {
    if (!listed_) breach_ = "changes before the list";
    if (changed.revision <= revision_) breach_ = "a revision is given twice";
    revision_ = changed.revision;
    for (const contract::Change& change : changed.changes) Take(change);
  }
  void Take(const contract::Change& change) {
    if (change.deleted) {
      if (rows_.erase(change.now.key) == 0) breach_ = "a deletion is given twice: " + change.now.key;
      return;
    }
    if (!puts_.emplace(change.now.key, change.now.modified).second) breach_ = "a put is given twice: " + change.now.key;
    rows_[change.now.key] = change.now;
  }
  void Take(const contract::StoreLost&) {
    if (std::exchange(lost_, true)) breach_ = "lost twice";
  }
  void Take(const contract::StoreBack& back) {
    if (!std::exchange(lost_, false)) breach_ = "back without a loss";
    if (back.revision < revision_) breach_ = "back at an older revision";
    revision_ = back.revision;
  }

  Waiter waiter_;  // guards the rest
  std::map<std::string, KeyValue> rows_;
  std::set<std::pair<std::string, Revision>> puts_;
  Revision revision_ = 0;
  bool lost_ = false;
  bool listed_ = false;
  std::string breach_;
  const Mirror mirror_;  // last: it ends first
};

}  // namespace muster::store
