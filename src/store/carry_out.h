// CarryOut: what a host does with a core's effects Commit (contract/store.h) and Read (contract/store_view.h). `done`
// takes the event for the core, once, on a thread of the store.
#pragma once

#include <functional>
#include <utility>

#include "contract/store.h"
#include "contract/store_view.h"
#include "store/store.h"

namespace muster::store {

inline void CarryOut(Store& store, const contract::Commit& commit, std::function<void(contract::CommitDone)> done) {
  store.Commit(commit.transaction, commit.timeout, [id = commit.id, done = std::move(done)](CommitOutcome outcome) {
    done({.id = id, .outcome = std::move(outcome)});
  });
}

inline void CarryOut(Store& store, const contract::Read& read, std::function<void(contract::ReadDone)> done) {
  store.Range(read.range, read.timeout, [id = read.id, done = std::move(done)](Result<RangeReply> reply) {
    if (!reply) return done({.id = id, .status = reply.error()});
    done({.id = id, .status = {}, .revision = reply->revision, .rows = std::move(reply->rows)});
  });
}

}  // namespace muster::store
