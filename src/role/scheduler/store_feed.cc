#include "role/scheduler/store_feed.h"

#include <condition_variable>
#include <utility>
#include <variant>

#include "base/log.h"

namespace muster::scheduler {
namespace {

constexpr Duration kListTimeout = 30s;
constexpr Duration kPause = 500ms;
constexpr Duration kResignTimeout = 1s;
constexpr std::string_view kLeaderKey = "/leader";

contract::KeyRange RangeOf(const std::string& prefix) {
  return prefix.empty() ? contract::EveryKey() : contract::KeysUnder(prefix + "/");
}

}  // namespace

// The rows as the core wants to be told of them: when a lost store is back, the core gets a list. Changes that come
// while that list is read wait for it.
class StoreFeed::Rows : public std::enable_shared_from_this<Rows> {
 public:
  Rows(store::Store& store, store::Schedule& schedule, contract::KeyRange range, const Tell& tell)
      : store_(store), schedule_(schedule), range_(std::move(range)), tell_(tell) {}

  void Take(store::MirrorEvent event) {
    const std::lock_guard lock(mu_);
    if (auto* listed = std::get_if<contract::RowsListed>(&event)) {
      ++number_;  // a list under way may be of the store before
      listing_ = false;
      waiting_.clear();
      status_ = {};
      tell_(StoreListed{.revision = listed->revision, .rows = std::move(listed->rows)});
    } else if (auto* changed = std::get_if<contract::RowsChanged>(&event)) {
      if (listing_) {
        waiting_.push_back(std::move(*changed));
      } else {
        tell_(StoreChanged{.revision = changed->revision, .changes = std::move(changed->changes)});
      }
    } else if (auto* lost = std::get_if<contract::StoreLost>(&event)) {
      ++number_;  // a list under way is void
      listing_ = false;
      waiting_.clear();
      status_ = lost->status;
      tell_(StoreLost{.why = lost->status});
    } else {
      listing_ = true;
      List(++number_);
    }
  }
  Status status() const {
    const std::lock_guard lock(mu_);
    return status_;
  }
  void Close() {
    const std::lock_guard lock(mu_);
    ++number_;
    closed_ = true;
  }

 private:
  // Under mu_.
  void List(uint64_t number) {
    store_.Range(range_, kListTimeout, [self = shared_from_this(), number](Result<store::RangeReply> reply) {
      const std::lock_guard lock(self->mu_);
      if (self->closed_ || number != self->number_) return;
      if (reply) return self->Listed(*std::move(reply));
      self->schedule_.After(kPause, [self, number] {
        const std::lock_guard again(self->mu_);
        if (!self->closed_ && number == self->number_) self->List(number);
      });
    });
  }
  // Under mu_.
  void Listed(store::RangeReply reply) {
    status_ = {};
    listing_ = false;
    const contract::Revision revision = reply.revision;
    tell_(StoreListed{.revision = revision, .rows = std::move(reply.rows)});
    for (contract::RowsChanged& changed : waiting_) {
      std::erase_if(changed.changes,
                    [revision](const contract::Change& change) { return change.now.modified <= revision; });
      if (changed.revision <= revision || changed.changes.empty()) continue;
      tell_(StoreChanged{.revision = changed.revision, .changes = std::move(changed.changes)});
    }
    waiting_.clear();
  }

  store::Store& store_;
  store::Schedule& schedule_;
  const contract::KeyRange range_;
  const Tell& tell_;

  mutable std::mutex mu_;
  // Guarded by mu_.
  bool closed_ = false;
  bool listing_ = false;  // the store is back, and is read
  uint64_t number_ = 0;   // of that reading
  std::vector<contract::RowsChanged> waiting_;
  Status status_{Code::kUnavailable, "the store was not read yet"};
};

StoreFeed::StoreFeed(store::Store& store, StoreFeedOptions options, Tell tell)
    : options_(std::move(options)), tell_(std::move(tell)) {
  // Before the first row: where there is an election, nothing is decided until it is won.
  tell_(LeadershipChanged{.leading = !options_.election,
                          .leader = options_.election ? std::string() : options_.address,
                          .leader_key = {},
                          .leader_revision = 0});
  const contract::KeyRange range = RangeOf(options_.prefix);
  rows_ = std::make_shared<Rows>(store, schedule_, range, tell_);
  mirror_ = std::make_unique<store::Mirror>(store, schedule_,
                                            store::MirrorOptions{.range = range, .lost_after = options_.lost_after},
                                            [rows = rows_](store::MirrorEvent event) { rows->Take(std::move(event)); });
  event_lease_ = std::make_unique<store::RotatingLease>(
      store, schedule_, options_.event_ttl, [this](contract::LeaseId lease) { tell_(EventLease{.lease = lease}); });
  if (!options_.election) return;
  candidate_ = std::make_unique<store::Candidate>(
      store, schedule_,
      store::CandidateOptions{.key = options_.prefix + std::string(kLeaderKey), .value = options_.address},
      [this](const store::CandidateEvent& event) { Lead(event); });
}

StoreFeed::~StoreFeed() {
  event_lease_.reset();
  candidate_.reset();
  mirror_.reset();
  rows_->Close();
  schedule_.Stop();
}

// A renewal is no news.
void StoreFeed::Lead(const store::CandidateEvent& event) {
  if (const auto* leading = std::get_if<contract::Leading>(&event)) {
    if (term_ == leading->key.modified) return;
    term_ = leading->key.modified;
    log::Info("this scheduler leads", {{"since_revision", leading->key.modified}});
    tell_(LeadershipChanged{.leading = true,
                            .leader = options_.address,
                            .leader_key = leading->key.key,
                            .leader_revision = leading->key.modified});
    return;
  }
  const auto& following = std::get<contract::Following>(event);
  const std::string leader = following.leader ? following.leader->value : std::string();
  if (term_) log::Warn("this scheduler no longer leads", {{"leader", leader}});
  term_.reset();
  tell_(LeadershipChanged{.leading = false, .leader = leader, .leader_key = {}, .leader_revision = 0});
}

void StoreFeed::Resign() {
  if (candidate_ == nullptr || std::exchange(resigned_, true)) return;
  struct Ended {
    std::mutex mu;
    std::condition_variable wakes;
    bool done = false;  // guarded by mu
  };
  const auto ended = std::make_shared<Ended>();
  candidate_->Resign([ended](const Status& status) {
    if (!status.ok()) log::Warn("the leadership cannot be given up; it ends by itself", {{"error", status.ToString()}});
    const std::lock_guard lock(ended->mu);
    ended->done = true;
    ended->wakes.notify_all();
  });
  std::unique_lock lock(ended->mu);
  ended->wakes.wait_for(lock, kResignTimeout, [&] { return ended->done; });
}

Status StoreFeed::store_status() const { return rows_->status(); }

}  // namespace muster::scheduler
