// Mirror: keeps a core's copy of a range of a store up to date, whichever store it is, and finds out when the store is
// lost. It lists the range once and watches it from there on. When the history is compacted under the watch, it lists
// again and gives the difference. A store that was lost and is back, or that went back, to an older backup or to
// nothing, is listed again as at the start.
//
//   store::Mirror mirror(store, schedule, {.range = contract::EveryKey()}, [&](store::MirrorEvent event) {
//     std::visit([&](auto& e) { host.Post(std::move(e)); }, event);
//   });
//
// Whether the store answers is asked every `check_every`, at least three times within `lost_after`, and sooner after a
// failure, with a read of one key. StoreLost is given when no answer has come for `lost_after`, at the start too. The
// first list is waited for instead: a store may answer nothing else meanwhile, and there is no copy that would grow
// old. One that takes longer than `list_timeout` is told as a loss. A loss ends no list: what it brings is taken.
//
// Invariants:
//   1. Rows begin with a RowsListed; RowsChanged follow. A copy that has taken all events since the last RowsListed up
//      to one of them is the range at that event's revision: nothing is left out, nothing is given twice, no revision
//      is given in part.
//   2. A difference has the last change of each key and not what the key went through before. A key that is gone has
//      the revision of the list as the revision of its deletion; a key that was deleted and put again is a put with
//      another `created`.
//   3. Revisions do not go back, except with the store itself: then a RowsListed at the lower revision says so, and
//      nothing that was given before it counts.
//   4. StoreLost and StoreBack alternate, and StoreLost is first. Between them no rows come, except for a RowsListed
//      just before StoreBack, of StoreBack's revision, which was read after StoreLost's `since`.
//   5. While the store is not lost, the copy lags behind it by as much as the store's watches do.
//
// Thread-safety: the handler runs on threads of the store and of the schedule, one call at a time, in order. It must
// not block, and must not destroy the mirror. It does not run after the destructor has come back. Store and schedule
// outlive the mirror.
#pragma once

#include <functional>
#include <memory>
#include <variant>

#include "contract/store_view.h"
#include "store/schedule.h"
#include "store/store.h"

namespace muster::store {

struct MirrorOptions {
  KeyRange range;
  Duration check_every = 1s;  // and how long each check waits
  Duration lost_after = 5s;
  Duration list_timeout = 30s;
};

using MirrorEvent = std::variant<contract::RowsListed, contract::RowsChanged, contract::StoreLost, contract::StoreBack>;

class Mirror {
 public:
  using Handler = std::function<void(MirrorEvent)>;

  // Begins at once.
  Mirror(Store& store, Schedule& schedule, MirrorOptions options, Handler handler);
  ~Mirror();
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

 private:
  class State;
  const std::shared_ptr<State> state_;
};

}  // namespace muster::store
