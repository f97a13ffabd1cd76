#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "store/history.h"

namespace muster::store {
namespace {

template <class... Args>
Status Breach(fmt::format_string<Args...> format, Args&&... args) {
  return {Code::kInternal, fmt::format(format, std::forward<Args>(args)...)};
}

// The keys of a history at every revision.
class Versions {
 public:
  void Add(const contract::Change& change) {
    versions_[change.now.key].emplace_back(change.now.modified,
                                           change.deleted ? std::nullopt : std::optional(change.now));
  }
  // The row as revision `at` left it.
  std::optional<KeyValue> At(const std::string& key, Revision at) const {
    const auto found = versions_.find(key);
    if (found == versions_.end()) return std::nullopt;
    const auto after =
        std::ranges::upper_bound(found->second, at, {}, [](const auto& version) { return version.first; });
    return after == found->second.begin() ? std::nullopt : std::prev(after)->second;
  }
  std::vector<KeyValue> At(const KeyRange& range, Revision at) const {
    std::vector<KeyValue> rows;
    for (const auto& [key, unused] : versions_) {
      if (!range.Contains(key)) continue;
      if (const auto row = At(key, at)) rows.push_back(*row);
    }
    return rows;
  }
  bool Hold(const std::vector<contract::Compare>& compares, Revision at) const {
    return std::ranges::all_of(compares, [&](const contract::Compare& compare) {
      const std::optional<KeyValue> row = At(compare.key, at);
      if (compare.value) return row && row->value == *compare.value;
      return (row ? row->modified : 0) == compare.modified;
    });
  }

 private:
  std::map<std::string, std::vector<std::pair<Revision, std::optional<KeyValue>>>> versions_;
};

class Checker {
 public:
  explicit Checker(const History& history) : history_(history), revision_of_(history.events.size(), 0) {}

  Status Check() {
    MUSTER_RETURN_IF_ERROR(CheckWatches());
    MUSTER_RETURN_IF_ERROR(AssignRevisions());
    for (size_t i = 0; i < history_.events.size(); ++i) MUSTER_RETURN_IF_ERROR(CheckAnswer(i));
    return CheckTime();
  }

 private:
  Status CheckWatches() const {
    for (const std::vector<contract::Change>& changes : history_.watched) {
      Revision last = history_.begins;
      for (size_t i = 0; i < changes.size(); ++i) {
        const contract::Change& change = changes[i];
        if (change.now.modified < last) {
          return Breach("a watch gives revision {} after {}", change.now.modified, last);
        }
        for (size_t j = i; j-- > 0 && changes[j].now.modified == change.now.modified;) {
          if (changes[j].now.key == change.now.key) {
            return Breach("a watch gives {} of revision {} twice", change.now.key, last);
          }
        }
        last = change.now.modified;
      }
      if (changes != history_.watched.front()) return Breach("two watches give different changes");
    }
    return {};
  }

  // Finds the commit behind each revision of the watches, by a value that it alone puts.
  Status AssignRevisions() {
    std::map<std::string, size_t> commit_of;
    for (size_t i = 0; i < history_.events.size(); ++i) {
      for (const contract::StoreWrite& write : history_.events[i].transaction.writes) {
        if (write.value) commit_of[*write.value] = i;
      }
    }
    const std::vector<contract::Change>& changes = history_.watched.front();
    for (size_t begin = 0; begin < changes.size();) {
      const Revision revision = changes[begin].now.modified;
      size_t end = begin;
      std::optional<size_t> commit;
      for (; end < changes.size() && changes[end].now.modified == revision; ++end) {
        if (changes[end].deleted) continue;
        const auto found = commit_of.find(changes[end].now.value);
        if (found != commit_of.end()) commit = found->second;
      }
      if (!commit) return Breach("no commit made revision {}", revision);
      MUSTER_RETURN_IF_ERROR(CheckCommit(
          *commit, revision,
          {changes.begin() + static_cast<ptrdiff_t>(begin), changes.begin() + static_cast<ptrdiff_t>(end)}));
      begin = end;
    }
    return {};
  }

  // The commit happened in this revision, with these changes: rightly?
  Status CheckCommit(size_t index, Revision revision, const std::vector<contract::Change>& changes) {
    const Event& event = history_.events[index];
    if (std::exchange(revision_of_[index], revision) != 0) return Breach("one commit made two revisions");
    if (!versions_.Hold(event.transaction.compares, revision - 1)) {
      return Breach("revision {} was written though a condition of it did not hold", revision);
    }
    std::vector<contract::Change> expected;
    for (const contract::StoreWrite& write : event.transaction.writes) {
      const std::optional<KeyValue> before = versions_.At(write.key, revision - 1);
      if (!write.value && !before) continue;
      contract::Change change{.deleted = !write.value, .now = {.key = write.key, .modified = revision}};
      if (write.value) {
        change.now.value = *write.value;
        change.now.created = before ? before->created : revision;
        change.now.lease = write.lease;
      }
      expected.push_back(std::move(change));
    }
    if (expected != changes) return Breach("revision {} is not what its commit writes", revision);
    for (const contract::Change& change : changes) versions_.Add(change);
    return {};
  }

  Status CheckAnswer(size_t index) {
    const Event& event = history_.events[index];
    if (const auto* range = std::get_if<RangeReply>(&event.answer)) {
      revision_of_[index] = range->revision;
      if (versions_.At(event.range, range->revision) == range->rows) return {};
      return Breach("a range at revision {} does not show what was written by then", range->revision);
    }
    const auto& outcome = std::get<CommitOutcome>(event.answer);
    const Revision found = revision_of_[index];
    if (const auto* committed = std::get_if<contract::Committed>(&outcome)) {
      if (found == committed->revision) return {};
      return Breach("a commit answered with revision {} is in revision {}", committed->revision, found);
    }
    if (const auto* conflict = std::get_if<contract::Conflict>(&outcome)) {
      if (found != 0) return Breach("a commit in revision {} was answered as a conflict", found);
      revision_of_[index] = conflict->revision;
      if (!versions_.Hold(event.transaction.compares, conflict->revision)) return {};
      return Breach("a conflict at revision {}, where every condition holds", conflict->revision);
    }
    if (found != 0 && std::get<contract::Unknown>(outcome).Refused()) {
      return Breach("a commit in revision {} was answered as refused", found);
    }
    return {};
  }

  // What was answered before a request was called does not come after it.
  Status CheckTime() const {
    std::vector<size_t> by_answer;
    for (size_t i = 0; i < history_.events.size(); ++i) {
      if (!IsUnknown(i)) by_answer.push_back(i);
    }
    std::ranges::sort(by_answer, {}, [&](size_t i) { return history_.events[i].answered; });
    std::vector<Revision> newest;  // up to and with each of by_answer
    for (const size_t i : by_answer) newest.push_back(std::max(newest.empty() ? 0 : newest.back(), revision_of_[i]));
    for (size_t i = 0; i < history_.events.size(); ++i) {
      if (revision_of_[i] == 0) continue;
      const auto before = std::ranges::lower_bound(by_answer, history_.events[i].called, {},
                                                   [&](size_t j) { return history_.events[j].answered; });
      if (before == by_answer.begin()) continue;
      const Revision seen = newest[static_cast<size_t>(before - by_answer.begin()) - 1];
      if (revision_of_[i] < seen + (Wrote(i) ? 1 : 0)) {
        return Breach("a request of revision {} was called after revision {} was answered", revision_of_[i], seen);
      }
    }
    return {};
  }
  bool IsUnknown(size_t index) const {
    const auto* outcome = std::get_if<CommitOutcome>(&history_.events[index].answer);
    return outcome != nullptr && std::holds_alternative<contract::Unknown>(*outcome);
  }
  bool Wrote(size_t index) const {
    const auto* outcome = std::get_if<CommitOutcome>(&history_.events[index].answer);
    return outcome != nullptr && !std::holds_alternative<contract::Conflict>(*outcome);
  }

  const History& history_;
  std::vector<Revision> revision_of_;  // of each event; 0: it did not happen
  Versions versions_;
};

}  // namespace

Status CheckHistory(const History& history) {
  if (history.watched.empty()) return {Code::kInvalidArgument, "a history without a watch proves nothing"};
  return Checker(history).Check();
}

}  // namespace muster::store
