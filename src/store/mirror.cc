#include "store/mirror.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/probe.h"
#include "store/guarded.h"

namespace muster::store {
namespace {

using Copy = std::map<std::string, Revision>;  // of each row of the copy, when it was put

Copy CopyOf(const std::vector<KeyValue>& rows) {
  Copy copy;
  for (const KeyValue& row : rows) copy.emplace_hint(copy.end(), row.key, row.modified);
  return copy;
}

// What makes a copy of `before` one of `reply`.
std::vector<contract::Change> Difference(const Copy& before, RangeReply reply) {
  std::vector<contract::Change> changes;
  auto old = before.begin();
  const auto deleted_before = [&](const std::string* key) {
    for (; old != before.end() && (key == nullptr || old->first < *key); ++old) {
      if (MUTANT("store.mirror_misses_deletion")) continue;
      changes.push_back({.deleted = true, .now = {.key = old->first, .modified = reply.revision}});
    }
  };
  for (KeyValue& row : reply.rows) {
    deleted_before(&row.key);
    const bool same = old != before.end() && old->first == row.key && old->second == row.modified;
    if (old != before.end() && old->first == row.key) ++old;
    if (!same) changes.push_back({.deleted = false, .now = std::move(row)});
  }
  deleted_before(nullptr);
  std::ranges::stable_sort(changes, {}, [](const contract::Change& change) { return change.now.modified; });
  return changes;
}

}  // namespace

// Finding: asks until the store answers. Listing: one list is under way. Watching: a watch is open, and the store is
// asked from time to time whether it is there.
class Mirror::State final : public Guarded {
 public:
  State(Store& store, Schedule& schedule, MirrorOptions options, Handler handler)
      : store_(store),
        schedule_(schedule),
        options_(Paced(std::move(options))),
        handler_(std::move(handler)),
        fresh_(schedule.now()),
        answered_(fresh_) {}

  void Start() {
    RunLocked([this] {
      Find();
      JudgeAgeLater();
    });
  }

 private:
  enum class Phase : uint8_t { kFinding, kListing, kWatching };

  // A store that is asked too seldom would be lost between two answers.
  static MirrorOptions Paced(MirrorOptions options) {
    options.check_every = std::min(options.check_every, options.lost_after / 3);
    return options;
  }

  void Closed() override { Retire(watch_); }

  // ---- Asking whether the store is there

  void Find() {
    phase_ = Phase::kFinding;
    EndWatch();
    ++ask_;
    Ask();
  }
  // One ask at a time: those of an older number are void.
  void Ask() {
    const std::string& begin = options_.range.begin;
    store_.Range(
        contract::OneKey(begin.empty() ? "/" : begin), options_.check_every,
        Callback([this, number = ask_, called = schedule_.now(), seen = revision_](const Result<RangeReply>& reply) {
          if (number == ask_) Asked(called, seen, reply);
        }));
  }
  void AskAfter(Duration pause) {
    schedule_.After(pause, Callback([this, number = ask_] {
                      if (number == ask_) Ask();
                    }));
  }
  void Asked(MonoTime called, Revision seen, const Result<RangeReply>& reply) {
    if (!reply) {
      status_ = reply.error();
      return AskAfter(options_.check_every / 4);
    }
    if (phase_ == Phase::kFinding) return List();
    if (reply->revision < seen) return List();
    Fresh(called);
    AskAfter(options_.check_every);
  }
  // The copy was that of the store at `called`, as far as can be known.
  void Fresh(MonoTime called) {
    fresh_ = called;
    answered_ = schedule_.now();
    status_ = {};
  }

  void JudgeAgeLater() {
    schedule_.After(options_.check_every, Callback([this] {
                      JudgeAge();
                      JudgeAgeLater();
                    }));
  }
  void JudgeAge() {
    const MonoTime now = schedule_.now();
    const bool first = revision_ == 0 && phase_ == Phase::kListing && now - list_called_ < options_.list_timeout;
    if (!lost_ && !first && now - answered_ >= options_.lost_after) Lose();
  }
  void Lose() {
    PROBE("store.mirror_lost");
    lost_ = true;
    const Status silent(Code::kDeadlineExceeded, "the store does not answer");
    handler_(contract::StoreLost{.since = fresh_, .status = status_.ok() ? silent : status_});
    if (phase_ != Phase::kListing) Find();
  }

  // ---- Rows

  void List() {
    phase_ = Phase::kListing;
    EndWatch();
    ++ask_;
    list_called_ = schedule_.now();
    store_.Range(options_.range, options_.list_timeout, Callback([this, number = ask_](Result<RangeReply> reply) {
                   if (number != ask_) return;
                   if (reply) return Listed(list_called_, *std::move(reply));
                   status_ = reply.error();
                   phase_ = Phase::kFinding;
                   AskAfter(options_.check_every / 4);
                   JudgeAge();
                 }));
  }
  void Listed(MonoTime called, RangeReply reply) {
    Fresh(called);
    const Revision revision = reply.revision;
    Copy copy = CopyOf(reply.rows);
    if (revision < revision_) PROBE("store.mirror_went_back");
    if (revision_ == 0 || lost_ || revision < revision_) {
      handler_(contract::RowsListed{.revision = revision, .rows = std::move(reply.rows)});
    } else {
      PROBE("store.mirror_listed_again");
      auto changes = Difference(copy_, std::move(reply));
      if (!changes.empty()) handler_(contract::RowsChanged{.revision = revision, .changes = std::move(changes)});
    }
    copy_ = std::move(copy);
    revision_ = revision;
    if (std::exchange(lost_, false)) handler_(contract::StoreBack{.revision = revision});
    phase_ = Phase::kWatching;
    watch_ = store_.Watch(options_.range, revision + (MUTANT("store.mirror_repeats") ? 0 : 1),
                          Callback([this, number = ++watch_number_](const WatchEvent& event) {
                            if (number == watch_number_) Watched(event);
                          }));
    AskAfter(options_.check_every);
  }
  void Watched(const WatchEvent& event) {
    const auto* batch = std::get_if<WatchBatch>(&event);
    if (batch == nullptr) return List();
    for (const contract::Change& change : batch->changes) {
      if (change.deleted) {
        copy_.erase(change.now.key);
      } else {
        copy_[change.now.key] = change.now.modified;
      }
    }
    revision_ = batch->revision;
    handler_(contract::RowsChanged{.revision = batch->revision, .changes = batch->changes});
  }
  void EndWatch() {
    ++watch_number_;
    Retire(watch_);
  }

  // Set at construction.
  Store& store_;
  Schedule& schedule_;
  const MirrorOptions options_;
  const Handler handler_;

  // Under the lock.
  Phase phase_ = Phase::kFinding;
  Copy copy_;                           // what the handler has been given
  Revision revision_ = 0;               // of the copy; 0: there is none yet
  std::unique_ptr<WatchHandle> watch_;  // while watching
  uint64_t watch_number_ = 0;           // an event of an older watch is void
  uint64_t ask_ = 0;                    // the answer to an older ask or list is void
  bool lost_ = false;                   // as told last
  Status status_;                       // of the last request, if it failed
  MonoTime fresh_;                      // when the last request was called that says that the copy is up to date
  MonoTime answered_;                   // when it was answered
  MonoTime list_called_;                // of the list under way, or the last one
};

Mirror::Mirror(Store& store, Schedule& schedule, MirrorOptions options, Handler handler)
    : state_(std::make_shared<State>(store, schedule, std::move(options), std::move(handler))) {
  state_->Start();
}
Mirror::~Mirror() { state_->Close(); }

}  // namespace muster::store
