#include "role/scheduler/store_feed.h"

#include <condition_variable>
#include <utility>
#include <variant>

#include "base/log.h"

namespace muster::scheduler {
namespace {

constexpr Duration kResignTimeout = 1s;
constexpr std::string_view kLeaderKey = "/leader";

contract::KeyRange RangeOf(const std::string& prefix) {
  return prefix.empty() ? contract::EveryKey() : contract::KeysUnder(prefix + "/");
}

}  // namespace

StoreFeed::StoreFeed(store::Store& store, StoreFeedOptions options, Tell tell)
    : options_(std::move(options)), tell_(std::move(tell)) {
  // Before the first row: where there is an election, nothing is decided until it is won.
  tell_(LeadershipChanged{.leading = !options_.election,
                          .leader = options_.election ? std::string() : options_.address,
                          .leader_key = {},
                          .leader_revision = 0});
  if (options_.election && options_.compact_every > Duration::zero()) {
    compactor_ = std::make_unique<store::Compactor>(store, schedule_, options_.compact_every);
  }
  mirror_ = std::make_unique<store::Mirror>(
      store, schedule_, store::MirrorOptions{.range = RangeOf(options_.prefix), .lost_after = options_.lost_after},
      [this](store::MirrorEvent event) { Take(std::move(event)); });
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
  compactor_.reset();
  schedule_.Stop();
}

void StoreFeed::Take(store::MirrorEvent event) {
  if (auto* listed = std::get_if<contract::RowsListed>(&event)) {
    SetStatus({});
    if (compactor_ != nullptr) compactor_->Saw(listed->revision);
    tell_(StoreListed{.revision = listed->revision, .rows = std::move(listed->rows)});
  } else if (auto* changed = std::get_if<contract::RowsChanged>(&event)) {
    if (compactor_ != nullptr) compactor_->Saw(changed->revision);
    tell_(StoreChanged{.revision = changed->revision, .changes = std::move(changed->changes)});
  } else if (auto* lost = std::get_if<contract::StoreLost>(&event)) {
    SetStatus(lost->status);
    tell_(StoreLost{.why = std::move(lost->status)});
  }  // before StoreBack the rows are listed
}

// A renewal is no news.
void StoreFeed::Lead(const store::CandidateEvent& event) {
  if (const auto* leading = std::get_if<contract::Leading>(&event)) {
    if (term_ == leading->key.modified) return;
    term_ = leading->key.modified;
    if (compactor_ != nullptr) compactor_->Lead(true);
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
  if (compactor_ != nullptr) compactor_->Lead(false);
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

Status StoreFeed::store_status() const {
  const std::lock_guard lock(mu_);
  return status_;
}

void StoreFeed::SetStatus(Status status) {
  const std::lock_guard lock(mu_);
  status_ = std::move(status);
}

}  // namespace muster::scheduler
