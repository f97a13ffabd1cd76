// Compactor: bounds the history of a store that keeps all of it until it is told otherwise, as etcd does. Every `every`
// it compacts up to the revision that was the newest one at its turn before, so that every change can be watched and
// listed for at least that long, and for at most twice as long.
//
// Several processes that share a store each have one, and the leader's alone compacts; the others note revisions, so
// that one which comes to lead goes on at its next turn. A compaction that fails is left to the next turn: each
// includes those before it.
//
// Thread-safety: any thread. The destructor waits for a callback that runs. Store and schedule outlive the compactor.
#pragma once

#include <memory>

#include "base/time.h"
#include "store/schedule.h"
#include "store/store.h"

namespace muster::store {

class Compactor {
 public:
  // `every` is greater than zero.
  Compactor(Store& store, Schedule& schedule, Duration every);
  ~Compactor();
  Compactor(const Compactor&) = delete;
  Compactor& operator=(const Compactor&) = delete;

  // The store has this revision; a lower one than before says that the store went back.
  void Saw(Revision revision);
  // It compacts while it leads; not at the start.
  void Lead(bool leads);

 private:
  class Turns;
  const std::shared_ptr<Turns> turns_;
};

}  // namespace muster::store
