// Checks of commits and ranges.
#include <fmt/format.h>

#include <atomic>
#include <charconv>
#include <thread>
#include <vector>

#include "store/conformance_run.h"
#include "store/history.h"

namespace muster::store {

using contract::Delete;
using contract::IfAbsent;
using contract::IfUnchanged;
using contract::IfValue;
using contract::Put;

Finding CheckRevisionsGrow(ConformanceRun& run) {
  Revision last = run.CurrentRevision();
  for (int i = 0; i < 5; ++i) {
    const Revision next = run.MustPut(fmt::format("k{}", i % 2), "v");
    if (next <= last) return fmt::format("a put after revision {} has revision {}; {}", last, next, run.failure());
    last = next;
  }
  return {};
}

Finding CheckReadAfterCommit(ConformanceRun& run) {
  const Revision first = run.MustPut("k", "one");
  const Revision second = run.MustPut("k", "two");
  const auto reply = run.blocking.Range(contract::OneKey(run.Key("k")));
  if (!reply) return reply.error().ToString();
  const std::vector<KeyValue> expected = {
      {.key = run.Key("k"), .value = "two", .created = first, .modified = second, .lease = 0}};
  if (reply->rows != expected) return "the row is not the one that was put, with its revisions";
  if (reply->revision < second) return fmt::format("read at revision {} after {}", reply->revision, second);
  return {};
}

Finding CheckCompareRevision(ConformanceRun& run) {
  const std::string key = run.Key("k");
  if (!run.IsConflict({{IfUnchanged(key, 1)}, {Put(key, "x")}})) return "a key that is not there has revision 1";
  const Revision first = run.MustCommit({{IfAbsent(key)}, {Put(key, "one")}});
  if (first == 0) return "IfAbsent does not hold for a key that is not there: " + run.failure();
  if (!run.IsConflict({{IfAbsent(key)}, {Put(key, "x")}})) return "IfAbsent holds for a key that is there";
  const Revision second = run.MustCommit({{IfUnchanged(key, first)}, {Put(key, "two")}});
  if (second == 0) return "IfUnchanged does not hold for the last revision: " + run.failure();
  if (!run.IsConflict({{IfUnchanged(key, first)}, {Put(key, "x")}})) return "IfUnchanged holds for an old revision";
  if (run.ValueOf("k") != "two") return "a conflict has written";
  return {};
}

Finding CheckCompareValue(ConformanceRun& run) {
  const std::string key = run.Key("k");
  if (!run.IsConflict({{IfValue(key, "")}, {Put(key, "x")}})) return "a key that is not there has an empty value";
  run.MustPut("k", "one");
  if (!run.IsConflict({{IfValue(key, "on")}, {Put(key, "x")}})) return "IfValue holds for a part of the value";
  if (run.MustCommit({{IfValue(key, "one")}, {Put(key, "two")}}) == 0) return "IfValue does not hold: " + run.failure();
  if (run.ValueOf("k") != "two") return "the commit was not written";
  return {};
}

Finding CheckAllOrNothing(ConformanceRun& run) {
  const Revision first = run.MustPut("b", "old");
  const Revision second = run.MustCommit({{IfUnchanged(run.Key("b"), first), IfAbsent(run.Key("a"))},
                                          {Put(run.Key("a"), "1"), Delete(run.Key("b")), Put(run.Key("c"), "3")}});
  if (second == 0) return run.failure();
  const auto reply = run.blocking.Range(run.all());
  if (!reply) return reply.error().ToString();
  if (reply->rows.size() != 2 || reply->rows[0].modified != second || reply->rows[1].modified != second) {
    return "the writes are not all there in one revision";
  }
  if (!run.IsConflict(
          {{IfAbsent(run.Key("z")), IfAbsent(run.Key("a"))}, {Put(run.Key("y"), "1"), Delete(run.Key("c"))}})) {
    return "a transaction with one condition that does not hold is no conflict";
  }
  if (run.ValueOf("y") || run.ValueOf("c") != "3") return "a conflict has written";
  // One that is refused for its lease.
  run.RefusalOf({{}, {Put(run.Key("x"), "1"), Put(run.Key("y"), "2", 123456789)}});
  if (run.ValueOf("x") || run.ValueOf("y")) return "a refused transaction has written";
  return {};
}

Finding CheckNothingChanged(ConformanceRun& run) {
  const Revision before = run.MustPut("k", "v");
  if (run.MustCommit({{}, {Delete(run.Key("absent"))}}) != before) return "deleting nothing has a revision of its own";
  if (run.MustCommit({{IfUnchanged(run.Key("k"), before)}, {}}) != before) return "writing nothing has a revision";
  if (run.CurrentRevision() != before) return "the revision has grown";
  if (run.MustPut("k", "v") <= before) return "a put of the same value has no revision of its own";
  return {};
}

Finding CheckCreatedAgain(ConformanceRun& run) {
  run.MustPut("k", "v");
  run.MustCommit({{}, {Delete(run.Key("k"))}});
  const Revision again = run.MustPut("k", "v");
  const auto row = run.blocking.Get(run.Key("k"));
  if (!row || !*row) return "the key is not there";
  if ((*row)->created != again) return fmt::format("created at {}, not at {}", (*row)->created, again);
  return {};
}

Finding CheckLimits(ConformanceRun& run) {
  Transaction most;
  for (size_t i = 0; i < contract::kMaxTransactionWrites; ++i) {
    most.compares.push_back(IfAbsent(run.Key(fmt::format("k{}", i))));
    most.writes.push_back(Put(run.Key(fmt::format("k{}", i)), "v"));
  }
  if (run.MustCommit(most) == 0) return "128 compares and writes are refused: " + run.failure();
  Transaction writes{.compares = {}, .writes = most.writes};
  writes.writes.push_back(Put(run.Key("more"), "v"));
  if (run.RefusalOf(writes) != Code::kInvalidArgument) return "129 writes are not refused";
  Transaction compares = {.compares = most.compares, .writes = {}};
  compares.compares.push_back(IfAbsent(run.Key("more")));
  if (run.RefusalOf(compares) != Code::kInvalidArgument) return "129 compares are not refused";
  if (run.RefusalOf({{}, {Put(run.Key("a"), "1"), Put(run.Key("a"), "2")}}) != Code::kInvalidArgument) {
    return "a key written twice is not refused";
  }
  if (run.RefusalOf({{}, {Put("", "1")}}) != Code::kInvalidArgument) return "an empty key is not refused";
  const std::string huge(contract::kMaxTransactionBytes + 1, 'x');
  if (run.RefusalOf({{}, {Put(run.Key("a"), huge)}}) != Code::kInvalidArgument) return "a huge value is not refused";
  if (run.ValueOf("a") || run.ValueOf("more")) return "a refused transaction has written";
  return {};
}

Finding CheckAnyBytes(ConformanceRun& run) {
  std::string every;
  for (int byte = 0; byte < 256; ++byte) every += static_cast<char>(byte);
  const std::vector<std::pair<std::string, std::string>> rows = {
      {every, ""}, {std::string("\0", 1), every}, {"\xff\xff", std::string(700'000, '\0')}};
  for (const auto& [name, value] : rows) {
    if (run.MustPut(name, value) == 0) return run.failure();
    if (run.ValueOf(name) != value) return fmt::format("a value of {} bytes does not come back", value.size());
    if (run.MustCommit({{IfValue(run.Key(name), value)}, {}}) == 0) return "its value does not compare as equal";
  }
  const auto all = run.blocking.Range(run.all());
  if (!all || all->rows.size() != rows.size()) return "the keys are not all in the range of their prefix";
  return {};
}

Finding CheckRanges(ConformanceRun& run) {
  for (const char* name : {"b", "a", "c", "ab", "d"}) run.MustPut(name, name);
  const auto names = [&](const KeyRange& range) {
    std::string text;
    const auto reply = run.blocking.Range(range);
    if (!reply) return reply.error().ToString();
    for (const KeyValue& row : reply->rows) text += row.key.substr(run.prefix().size()) + " ";
    return text;
  };
  if (names(run.all()) != "a ab b c d ") return "all: " + names(run.all());
  const std::string middle = names({.begin = run.Key("ab"), .end = run.Key("c")});
  if (middle != "ab b ") return "from ab to c: " + middle;
  if (names(contract::OneKey(run.Key("a"))) != "a ") return "one key: " + names(contract::OneKey(run.Key("a")));
  if (names(contract::KeysUnder(run.Key("a"))) != "a ab ")
    return "below a: " + names(contract::KeysUnder(run.Key("a")));
  if (!names({.begin = run.Key("x"), .end = run.Key("y")}).empty()) return "an empty range has rows";
  return {};
}

Finding CheckLongRange(ConformanceRun& run) {
  constexpr int kRows = 1200;
  Transaction transaction;
  for (int i = 0; i < kRows; ++i) {
    transaction.writes.push_back(Put(run.Key(fmt::format("{:04}", i)), "0"));
    if (transaction.writes.size() < 120) continue;
    if (run.MustCommit(transaction) == 0) return run.failure();
    transaction.writes.clear();
  }
  // A writer raises the first and the last row together, so that pages of different revisions would show.
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    Blocking blocking(run.store);
    for (int i = 1; !stop; ++i) {
      static_cast<void>(
          blocking.Commit({{}, {Put(run.Key("0000"), std::to_string(i)), Put(run.Key("1199"), std::to_string(i))}}));
    }
  });
  Finding finding;
  for (int i = 0; i < 5 && !finding; ++i) {
    const auto reply = run.blocking.Range(run.all());
    if (!reply) {
      finding = reply.error().ToString();
    } else if (reply->rows.size() != kRows) {
      finding = fmt::format("{} of {} rows", reply->rows.size(), kRows);
    } else if (reply->rows.front().modified > reply->revision || reply->rows.back().modified > reply->revision) {
      finding = "a row is newer than the range";
    } else if (reply->rows.front().value != reply->rows.back().value) {
      finding = "the rows are of different revisions";
    }
  }
  stop = true;
  writer.join();
  return finding;
}

Finding CheckRacingWriters(ConformanceRun& run) {
  constexpr int kWriters = 16;
  constexpr int kRaises = 20;
  const std::string key = run.Key("number");
  run.MustPut("number", "0");
  std::atomic<int> failures = 0;
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&] {
      Blocking blocking(run.store);
      for (int raised = 0; raised < kRaises;) {
        const auto row = blocking.Get(key);
        if (!row || !*row) {
          ++failures;
          return;
        }
        int number = 0;
        const std::string& text = (*row)->value;
        std::from_chars(text.data(), text.data() + text.size(), number);
        const CommitOutcome outcome =
            blocking.Commit({{IfUnchanged(key, (*row)->modified)}, {Put(key, std::to_string(number + 1))}});
        if (std::holds_alternative<contract::Committed>(outcome)) ++raised;
        if (std::holds_alternative<contract::Unknown>(outcome)) {
          ++failures;
          return;
        }
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  if (failures > 0) return fmt::format("{} of {} writers could not go on", failures.load(), kWriters);
  const std::string last = run.ValueOf("number").value_or("nothing");
  if (last != std::to_string(kWriters * kRaises)) return "the number is " + last;
  return {};
}

Finding CheckHistories(ConformanceRun& run) {
  for (int i = 0; i < run.options.histories; ++i) {
    const auto history = RunConcurrentHistory(
        run.store, {.prefix = run.Key(fmt::format("{}/", i)), .seed = run.options.seed + static_cast<uint64_t>(i)},
        run.clock);
    if (!history) return history.error().ToString();
    if (const Status status = CheckHistory(*history); !status.ok()) return status.message();
  }
  return {};
}

}  // namespace muster::store
