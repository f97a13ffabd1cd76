#include "store/conformance.h"

#include <array>
#include <vector>

#include "store/conformance_run.h"

namespace muster::store {
namespace {

struct Check {
  std::string_view name;
  std::string_view rule;
  Finding (*run)(ConformanceRun&);
  bool compacts = false;
};

constexpr std::array kChecks = {
    Check{"revisions-grow", "Every change raises the one revision of the store.", CheckRevisionsGrow},
    Check{"read-after-commit", "A range shows what was committed before it, with its revisions.", CheckReadAfterCommit},
    Check{"compare-revision", "A commit whose key has another revision is a conflict and writes nothing.",
          CheckCompareRevision},
    Check{"compare-value", "A commit whose key has another value, or is not there, is a conflict.", CheckCompareValue},
    Check{"all-or-nothing", "All writes of a transaction happen, in one revision, or none.", CheckAllOrNothing},
    Check{"nothing-changed", "A transaction that changes nothing leaves the revision alone.", CheckNothingChanged},
    Check{"created-again", "A key that is deleted and put again is created again.", CheckCreatedAgain},
    Check{"limits", "128 compares and 128 writes are taken; more, a key twice, or an empty key is refused.",
          CheckLimits},
    Check{"any-bytes", "Keys and values are any bytes; a value may be empty or long.", CheckAnyBytes},
    Check{"ranges", "A range has the keys from its begin up to its end, in order.", CheckRanges},
    Check{"long-range", "A range of 1,200 rows is read at one revision while others write.", CheckLongRange},
    Check{"watch-past-and-future", "A watch gives the changes since its revision, then those to come, each once.",
          CheckWatchPastAndFuture},
    Check{"watch-whole-revisions", "A watch gives the changes of a transaction together.", CheckWatchWholeRevisions},
    Check{"watch-range", "A watch gives the changes of its range and no other.", CheckWatchRange},
    Check{"watch-ends", "A watch that was ended gives nothing more.", CheckWatchEnds},
    Check{"list-then-watch", "A range and a watch from the next revision miss nothing that is written meanwhile.",
          CheckListThenWatch},
    Check{"racing-writers", "16 writers that raise one number 20 times each raise it 320 times.", CheckRacingWriters},
    Check{"histories", "Random histories of 8 callers are linearizable; their watches are ordered and complete.",
          CheckHistories},
    Check{"lease-expires", "A lease that is not renewed ends after its time, and its keys with it, in one revision.",
          CheckLeaseExpires},
    Check{"lease-kept", "A lease that is renewed lives on.", CheckLeaseKept},
    Check{"lease-revoked", "A revoked lease ends at once, and its keys with it.", CheckLeaseRevoked},
    Check{"lease-unbound", "A put without a lease ends the key's bond.", CheckLeaseUnbound},
    Check{"lease-ended", "A lease that has ended cannot be renewed, revoked or written with.", CheckLeaseEnded},
    Check{"election", "One candidate at a time leads; when its lease is revoked, another does.", CheckElection},
    Check{"election-by-expiry", "A leader that falls silent is replaced after its lease.", CheckElectionByExpiry},
    Check{"compaction", "After a compaction a watch from before it is told so; keys and later watches are not touched.",
          CheckCompaction, true},
    Check{"compaction-bounds", "Compacting the past again is nothing; compacting the future is refused.",
          CheckCompactionBounds, true},
};

// Deletes what a check has left.
void CleanUp(ConformanceRun& run) {
  const auto rows = run.blocking.Range(run.all());
  if (!rows) return;
  Transaction transaction;
  for (const KeyValue& row : rows->rows) {
    transaction.writes.push_back(contract::Delete(row.key));
    if (transaction.writes.size() < contract::kMaxTransactionWrites) continue;
    static_cast<void>(run.blocking.Commit(transaction));
    transaction.writes.clear();
  }
  if (!transaction.writes.empty()) static_cast<void>(run.blocking.Commit(transaction));
}

}  // namespace

std::vector<CheckResult> RunConformance(Store& store, Schedule& schedule, const ConformanceOptions& options,
                                        const Clock& clock, const std::function<void(const CheckResult&)>& seen) {
  ConformanceRun run(store, schedule, options, clock);
  std::vector<CheckResult> results;
  for (const Check& check : kChecks) {
    if (!options.only.empty() && options.only != check.name) continue;
    CheckResult result{.name = std::string(check.name), .rule = std::string(check.rule)};
    if (check.compacts && !options.compact) {
      result.detail = "the history of the store is not to be compacted";
    } else {
      run.Begin(check.name);
      const Finding finding = check.run(run);
      result.verdict = finding ? Verdict::kBroken : Verdict::kHolds;
      result.detail = finding.value_or("");
      CleanUp(run);
    }
    if (seen) seen(result);
    results.push_back(std::move(result));
  }
  return results;
}

std::vector<std::pair<std::string_view, std::string_view>> ConformanceChecks() {
  std::vector<std::pair<std::string_view, std::string_view>> checks;
  for (const Check& check : kChecks) checks.emplace_back(check.name, check.rule);
  return checks;
}

}  // namespace muster::store
