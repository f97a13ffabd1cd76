// Checks of watches and compaction.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <thread>
#include <vector>

#include "store/conformance_run.h"

namespace muster::store {
namespace {

using contract::Delete;
using contract::Put;

std::string Names(const ConformanceRun& run, const std::vector<contract::Change>& changes) {
  std::string text;
  for (const contract::Change& change : changes) {
    text += (change.deleted ? "-" : "") + change.now.key.substr(run.prefix().size()) + change.now.value + " ";
  }
  return text;
}

}  // namespace

Finding CheckWatchPastAndFuture(ConformanceRun& run) {
  const Revision begins = run.CurrentRevision();
  run.MustPut("a", "1");
  run.MustPut("b", "2");
  WatchLog log(run.store, run.all(), begins + 1);
  run.MustCommit({{}, {Delete(run.Key("a"))}});
  const Revision last = run.MustPut("c", "3");
  if (!log.WaitFor(last, run.options.patience)) return "it does not reach the last change";
  if (Names(run, log.changes()) != "a1 b2 -a c3 ") return "it gives " + Names(run, log.changes());
  const contract::Change deleted = log.changes()[2];
  if (deleted.now != KeyValue{.key = run.Key("a"), .modified = deleted.now.modified})
    return "a deleted key has a value";
  // From the future on: nothing of what is past.
  WatchLog later(run.store, run.all(), last + 2);
  run.MustPut("d", "4");
  const Revision end = run.MustPut("e", "5");
  if (!later.WaitFor(end, run.options.patience)) return "one from the future does not reach the last change";
  if (Names(run, later.changes()) != "e5 ") return "one from the future gives " + Names(run, later.changes());
  return {};
}

Finding CheckWatchWholeRevisions(ConformanceRun& run) {
  const Revision begins = run.CurrentRevision();
  WatchLog live(run.store, run.all(), begins + 1);
  Revision last = 0;
  for (int i = 0; i < 30; ++i) {
    Transaction transaction;
    for (int k = 0; k < 100; ++k)
      transaction.writes.push_back(Put(run.Key(fmt::format("{}", k)), std::string(500, 'x')));
    last = run.MustCommit(transaction);
    if (last == 0) return run.failure();
  }
  WatchLog past(run.store, run.all(), begins + 1);
  for (WatchLog* log : {&live, &past}) {
    if (!log->WaitFor(last, run.options.patience)) return "it does not reach the last change";
    std::map<Revision, size_t> of_revision;
    Revision before = 0;
    for (const WatchBatch& batch : log->batches()) {
      if (batch.changes.empty() || batch.changes.front().now.modified <= before) return "two batches share a revision";
      before = batch.changes.back().now.modified;
      if (batch.revision != before) return "the revision of a batch is not that of its last change";
      for (const contract::Change& change : batch.changes) ++of_revision[change.now.modified];
    }
    if (of_revision.size() != 30) return fmt::format("{} revisions of 30", of_revision.size());
    for (const auto& [revision, count] : of_revision) {
      if (count != 100) return fmt::format("{} of 100 changes of revision {}", count, revision);
    }
  }
  return {};
}

Finding CheckWatchRange(ConformanceRun& run) {
  const Revision begins = run.CurrentRevision();
  WatchLog below(run.store, contract::KeysUnder(run.Key("in/")), begins + 1);
  WatchLog one(run.store, contract::OneKey(run.Key("in/b")), begins + 1);
  WatchLog some(run.store, {.begin = run.Key("in/b"), .end = run.Key("out")}, begins + 1);
  const Revision last = run.MustCommit(
      {{}, {Put(run.Key("in/a"), "1"), Put(run.Key("in/b"), "2"), Put(run.Key("in"), "3"), Put(run.Key("out"), "4")}});
  for (WatchLog* log : {&below, &one, &some}) {
    if (!log->WaitFor(last, run.options.patience)) return "it does not reach the last change";
  }
  if (Names(run, below.changes()) != "in/a1 in/b2 ") return "below in/: " + Names(run, below.changes());
  if (Names(run, one.changes()) != "in/b2 ") return "in/b: " + Names(run, one.changes());
  if (Names(run, some.changes()) != "in/b2 ") return "from in/b to out: " + Names(run, some.changes());
  return {};
}

Finding CheckWatchEnds(ConformanceRun& run) {
  const Revision begins = run.CurrentRevision();
  WatchLog other(run.store, run.all(), begins + 1);
  size_t given = 0;
  auto handle = run.store.Watch(run.all(), begins + 1, [&](const WatchEvent&) { ++given; });
  run.MustPut("a", "1");
  handle.reset();
  const size_t before = given;
  const Revision last = run.MustPut("b", "2");
  if (!other.WaitFor(last, run.options.patience)) return "another watch does not reach the last change";
  if (given != before) return "it has given a change";
  return {};
}

Finding CheckListThenWatch(ConformanceRun& run) {
  constexpr int kWrites = 200;
  Revision last = 0;
  std::thread writer([&] {
    Blocking blocking(run.store);
    for (int i = 0; i < kWrites; ++i) {
      const CommitOutcome outcome = blocking.Commit({{}, {Put(run.Key(fmt::format("{}", i % 7)), std::to_string(i))}});
      if (const auto* committed = std::get_if<contract::Committed>(&outcome)) last = committed->revision;
    }
  });
  std::vector<RangeReply> lists;
  std::vector<std::unique_ptr<WatchLog>> logs;
  for (int i = 0; i < 10; ++i) {
    auto list = run.blocking.Range(run.all());
    if (!list) continue;
    logs.push_back(std::make_unique<WatchLog>(run.store, run.all(), list->revision + 1));
    lists.push_back(*std::move(list));
  }
  writer.join();
  const auto end = run.blocking.Range(run.all());
  if (!end) return end.error().ToString();
  for (size_t i = 0; i < logs.size(); ++i) {
    if (lists[i].revision < last && !logs[i]->WaitFor(last, run.options.patience))
      return "a watch does not reach the end";
    std::map<std::string, KeyValue> rows;
    for (const KeyValue& row : lists[i].rows) rows[row.key] = row;
    for (const contract::Change& change : logs[i]->changes()) rows[change.now.key] = change.now;
    std::vector<KeyValue> values;
    for (const auto& [key, row] : rows) values.push_back(row);
    if (values != end->rows)
      return fmt::format("a list at revision {} and its watch do not lead to the end", lists[i].revision);
  }
  return {};
}

Finding CheckCompaction(ConformanceRun& run) {
  const Revision first = run.MustPut("a", "1");
  const Revision second = run.MustPut("a", "2");
  run.MustCommit({{}, {Delete(run.Key("a"))}});
  const Revision compacted = run.MustPut("b", "3");
  if (const Status status = run.blocking.Compact(compacted); !status.ok()) return status.ToString();
  for (const Revision from : {first, second, compacted}) {
    WatchLog log(run.store, run.all(), from);
    if (!log.WaitFor(compacted, run.options.patience) || log.compacted() == 0) {
      return fmt::format("a watch from {} is not told of the compaction at {}", from, compacted);
    }
    if (!log.changes().empty()) return "it gives changes before that";
    if (log.compacted() < compacted) return fmt::format("it is told of revision {}", log.compacted());
  }
  WatchLog after(run.store, run.all(), compacted + 1);
  const Revision last = run.MustPut("c", "4");
  if (!after.WaitFor(last, run.options.patience) || Names(run, after.changes()) != "c4 ") {
    return "a watch from after it gives " + Names(run, after.changes());
  }
  if (run.ValueOf("b") != "3" || run.ValueOf("c") != "4") return "a key is gone";
  return {};
}

Finding CheckCompactionBounds(ConformanceRun& run) {
  const Revision first = run.MustPut("a", "1");
  const Revision last = run.MustPut("a", "2");
  if (const Status status = run.blocking.Compact(last); !status.ok()) return status.ToString();
  for (const Revision past : {last, first}) {
    if (const Status status = run.blocking.Compact(past); !status.ok()) return "again: " + status.ToString();
  }
  const Status future = run.blocking.Compact(last + 1000);
  if (future.code() != Code::kOutOfRange) return "the future: " + future.ToString();
  return {};
}

}  // namespace muster::store
