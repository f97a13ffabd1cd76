// CarryOut: what a host does with a core's effect Commit (contract/store.h). `done` takes the event for the core,
// once.
#pragma once

#include <functional>
#include <utility>

#include "contract/store.h"
#include "store/store.h"

namespace muster::store {

inline void CarryOut(Store& store, const contract::Commit& commit, std::function<void(contract::CommitDone)> done) {
  store.Commit(commit.transaction, commit.timeout, [id = commit.id, done = std::move(done)](CommitOutcome outcome) {
    done({.id = id, .outcome = std::move(outcome)});
  });
}

}  // namespace muster::store
