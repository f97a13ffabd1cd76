// What the checks of conformance.cc have in common. Private to this folder.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "store/blocking.h"
#include "store/conformance.h"

namespace muster::store {

// Nothing: the rule holds. Otherwise what was seen.
using Finding = std::optional<std::string>;

class ConformanceRun {
 public:
  ConformanceRun(Store& of, Schedule& with, const ConformanceOptions& how, const Clock& by)
      : blocking(of), store(of), schedule(with), options(how), clock(by) {}

  // Keys of one check.
  void Begin(std::string_view check) { prefix_ = fmt::format("{}{}/", options.prefix, check); }
  const std::string& prefix() const { return prefix_; }
  KeyRange all() const { return contract::KeysUnder(prefix_); }
  std::string Key(std::string_view name) const { return prefix_ + std::string(name); }

  // The revision of a commit that must succeed; 0 if it does not, and then failure() says why.
  Revision MustCommit(const Transaction& transaction) {
    const CommitOutcome outcome = blocking.Commit(transaction);
    if (const auto* committed = std::get_if<contract::Committed>(&outcome)) return committed->revision;
    const auto* unknown = std::get_if<contract::Unknown>(&outcome);
    failure_ = unknown != nullptr ? unknown->status.ToString() : "a commit is answered with a conflict";
    return 0;
  }
  Revision MustPut(std::string_view name, std::string value, LeaseId lease = 0) {
    return MustCommit({.compares = {}, .writes = {contract::Put(Key(name), std::move(value), lease)}});
  }
  const std::string& failure() const { return failure_; }
  bool IsConflict(const Transaction& transaction) {
    return std::holds_alternative<contract::Conflict>(blocking.Commit(transaction));
  }
  // The code of a commit's refusal; OK if it was not refused.
  Code RefusalOf(const Transaction& transaction) {
    const CommitOutcome outcome = blocking.Commit(transaction);
    const auto* unknown = std::get_if<contract::Unknown>(&outcome);
    return unknown == nullptr || !unknown->Refused() ? Code::kOk : unknown->status.code();
  }
  // The value of a key, nothing if it is not there.
  std::optional<std::string> ValueOf(std::string_view name) {
    const auto row = blocking.Get(Key(name));
    if (!row || !*row) return std::nullopt;
    return (*row)->value;
  }
  Revision CurrentRevision() {
    const auto reply = blocking.Range(all());
    return reply ? reply->revision : 0;
  }

  Blocking blocking;
  Store& store;
  Schedule& schedule;
  const ConformanceOptions& options;
  const Clock& clock;

 private:
  std::string prefix_;
  std::string failure_;
};

// The checks of each file.
Finding CheckRevisionsGrow(ConformanceRun& run);
Finding CheckReadAfterCommit(ConformanceRun& run);
Finding CheckCompareRevision(ConformanceRun& run);
Finding CheckCompareValue(ConformanceRun& run);
Finding CheckAllOrNothing(ConformanceRun& run);
Finding CheckNothingChanged(ConformanceRun& run);
Finding CheckCreatedAgain(ConformanceRun& run);
Finding CheckLimits(ConformanceRun& run);
Finding CheckAnyBytes(ConformanceRun& run);
Finding CheckRanges(ConformanceRun& run);
Finding CheckLongRange(ConformanceRun& run);
Finding CheckRacingWriters(ConformanceRun& run);
Finding CheckHistories(ConformanceRun& run);

Finding CheckWatchPastAndFuture(ConformanceRun& run);
Finding CheckWatchWholeRevisions(ConformanceRun& run);
Finding CheckWatchRange(ConformanceRun& run);
Finding CheckWatchEnds(ConformanceRun& run);
Finding CheckListThenWatch(ConformanceRun& run);
Finding CheckCompaction(ConformanceRun& run);
Finding CheckCompactionBounds(ConformanceRun& run);

Finding CheckLeaseExpires(ConformanceRun& run);
Finding CheckLeaseKept(ConformanceRun& run);
Finding CheckLeaseRevoked(ConformanceRun& run);
Finding CheckLeaseUnbound(ConformanceRun& run);
Finding CheckLeaseEnded(ConformanceRun& run);
Finding CheckElection(ConformanceRun& run);
Finding CheckElectionByExpiry(ConformanceRun& run);

}  // namespace muster::store
