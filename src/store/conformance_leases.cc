// Checks of leases and elections.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "store/campaign.h"
#include "store/conformance_run.h"

namespace muster::store {
namespace {

using contract::Put;

// A candidate, and what it was told last.
class Candidate {
 public:
  Candidate(ConformanceRun& run, std::string name, LeaseId lease) : name_(std::move(name)), lease_(lease) {
    campaign_ = std::make_unique<Campaign>(
        run.store, run.schedule, CampaignRequest{.key = run.Key("leader"), .value = name_, .lease = lease},
        [this](const Leadership& told) { waiter_.Do([&] { told_.push_back(told); }); });
  }
  bool WaitFor(Leadership::Kind kind, Duration patience) {
    return waiter_.Wait(patience, [&] { return !told_.empty() && told_.back().kind == kind; });
  }
  // Waits until it knows that `leader` leads.
  bool WaitForLeader(const std::string& leader, Duration patience) {
    return waiter_.Wait(patience,
                        [&] { return !told_.empty() && told_.back().leader && told_.back().leader->value == leader; });
  }
  bool leads() {
    return waiter_.Get([&] { return !told_.empty() && told_.back().kind == Leadership::Kind::kLeading; });
  }
  LeaseId lease() const { return lease_; }
  const std::string& name() const { return name_; }

 private:
  const std::string name_;
  const LeaseId lease_;
  Waiter waiter_;
  std::vector<Leadership> told_;
  std::unique_ptr<Campaign> campaign_;  // last: it ends first
};

constexpr Duration kTtl = 2s;

bool IsGone(ConformanceRun& run, LeaseId lease) {
  const auto renewed = run.blocking.KeepAlive(lease);
  return !renewed && renewed.error().code() == Code::kNotFound;
}

// Waits for a change that deletes these keys in one revision.
Finding WaitForDeletion(ConformanceRun& run, WatchLog& log, size_t keys) {
  const auto deleted = [&](const std::vector<WatchBatch>& batches) {
    return std::ranges::any_of(batches, [](const WatchBatch& batch) { return batch.changes.back().deleted; });
  };
  if (!log.WaitUntil(deleted, run.options.patience)) return "its keys are still there";
  std::vector<contract::Change> changes = log.changes();
  std::erase_if(changes, [](const contract::Change& change) { return !change.deleted; });
  if (changes.size() != keys) return fmt::format("{} of {} keys are deleted", changes.size(), keys);
  if (changes.front().now.modified != changes.back().now.modified) return "the keys are deleted in several revisions";
  return {};
}

}  // namespace

Finding CheckLeaseExpires(ConformanceRun& run) {
  const auto lease = run.blocking.Grant(1s);
  if (!lease) return lease.error().ToString();
  if (lease->ttl < 1s) return "its time is shorter than asked for";
  const Revision put = run.MustCommit({{}, {Put(run.Key("b"), "1", lease->id), Put(run.Key("a"), "2", lease->id)}});
  if (put == 0) return run.failure();
  const MonoTime begins = run.clock.Read().mono;
  WatchLog log(run.store, run.all(), put);
  if (const Finding finding = WaitForDeletion(run, log, 2)) return finding;
  if (run.clock.Read().mono - begins < lease->ttl - 500ms) return "the lease has ended before its time";
  if (!IsGone(run, lease->id)) return "the lease is still there";
  return {};
}

Finding CheckLeaseKept(ConformanceRun& run) {
  const auto lease = run.blocking.Grant(kTtl);
  if (!lease) return lease.error().ToString();
  const auto other = run.blocking.Grant(lease->ttl);
  if (!other) return other.error().ToString();
  const Revision put =
      run.MustCommit({{}, {Put(run.Key("kept"), "1", lease->id), Put(run.Key("other"), "2", other->id)}});
  WatchLog log(run.store, run.all(), put);
  // The other lease says when a lease that is not renewed ends; this one is renewed all the time.
  const auto ended = [](const std::vector<WatchBatch>& batches) {
    return std::ranges::any_of(batches, [](const WatchBatch& batch) { return batch.changes.back().deleted; });
  };
  while (!log.WaitUntil(ended, 300ms)) {
    if (const auto renewed = run.blocking.KeepAlive(lease->id); !renewed) return renewed.error().ToString();
  }
  if (log.changes().back().now.key != run.Key("other")) return "the lease that was renewed has ended";
  if (run.ValueOf("kept") != "1") return "its key is gone";
  if (const Status status = run.blocking.Revoke(lease->id); !status.ok()) return status.ToString();
  return {};
}

Finding CheckLeaseRevoked(ConformanceRun& run) {
  const auto lease = run.blocking.Grant(1h);
  if (!lease) return lease.error().ToString();
  const Revision put = run.MustCommit(
      {{}, {Put(run.Key("b"), "1", lease->id), Put(run.Key("a"), "2", lease->id), Put(run.Key("c"), "3")}});
  WatchLog log(run.store, run.all(), put);
  if (const Status status = run.blocking.Revoke(lease->id); !status.ok()) return status.ToString();
  if (run.ValueOf("a") || run.ValueOf("b")) return "its keys are there after the answer";
  if (run.ValueOf("c") != "3") return "another key is gone";
  return WaitForDeletion(run, log, 2);
}

Finding CheckLeaseUnbound(ConformanceRun& run) {
  const auto first = run.blocking.Grant(1h);
  const auto second = run.blocking.Grant(1h);
  if (!first || !second) return "no lease is granted";
  for (const char* name : {"free", "moved", "bound"}) run.MustPut(name, "1", first->id);
  run.MustPut("free", "2");
  run.MustPut("moved", "2", second->id);
  if (const Status status = run.blocking.Revoke(first->id); !status.ok()) return status.ToString();
  if (run.ValueOf("bound")) return "a key with the lease is still there";
  if (run.ValueOf("free") != "2") return "a key that was put without it is gone";
  if (run.ValueOf("moved") != "2") return "a key that was put with another lease is gone";
  if (const Status status = run.blocking.Revoke(second->id); !status.ok()) return status.ToString();
  if (run.ValueOf("moved")) return "a key with the second lease is still there";
  return {};
}

Finding CheckLeaseEnded(ConformanceRun& run) {
  const auto lease = run.blocking.Grant(1h);
  if (!lease) return lease.error().ToString();
  if (const Status status = run.blocking.Revoke(lease->id); !status.ok()) return status.ToString();
  if (!IsGone(run, lease->id)) return "it can be renewed";
  if (run.blocking.Revoke(lease->id).code() != Code::kNotFound) return "it can be revoked again";
  if (run.RefusalOf({{}, {Put(run.Key("k"), "1", lease->id)}}) != Code::kNotFound) return "it can be written with";
  if (run.ValueOf("k")) return "the key was written";
  return {};
}

Finding CheckElection(ConformanceRun& run) {
  std::vector<std::unique_ptr<Candidate>> candidates;
  for (const char* name : {"one", "two", "three"}) {
    const auto lease = run.blocking.Grant(1h);
    if (!lease) return lease.error().ToString();
    candidates.push_back(std::make_unique<Candidate>(run, name, lease->id));
    // The first to stand leads.
    if (candidates.size() == 1 && !candidates[0]->WaitFor(Leadership::Kind::kLeading, run.options.patience)) {
      return "the only candidate does not lead";
    }
  }
  for (size_t left = candidates.size(); left > 0; --left) {
    const auto leader = std::ranges::find_if(candidates, [](const auto& candidate) { return candidate->leads(); });
    if (leader == candidates.end()) return "no candidate leads";
    for (const auto& candidate : candidates) {
      if (!candidate->WaitForLeader((*leader)->name(), run.options.patience))
        return "a follower does not know the leader";
      if (candidate->leads() != (candidate == *leader)) return "two candidates lead";
    }
    const std::unique_ptr<Candidate> old = std::move(*leader);
    candidates.erase(leader);
    if (const Status status = run.blocking.Revoke(old->lease()); !status.ok()) return status.ToString();
    if (!old->WaitFor(Leadership::Kind::kEnded, run.options.patience)) return "the old leader is not told";
    if (candidates.empty()) break;
    bool led = false;
    for (MonoTime end = run.clock.Read().mono + run.options.patience; !led && run.clock.Read().mono < end;) {
      led =
          std::ranges::any_of(candidates, [&](const auto& c) { return c->WaitFor(Leadership::Kind::kLeading, 50ms); });
    }
    if (!led) return "no candidate takes over";
  }
  return {};
}

Finding CheckElectionByExpiry(ConformanceRun& run) {
  const auto silent = run.blocking.Grant(kTtl);
  const auto second = run.blocking.Grant(1h);
  if (!silent || !second) return "no lease is granted";
  Candidate first(run, "silent", silent->id);
  if (!first.WaitFor(Leadership::Kind::kLeading, run.options.patience)) return "the only candidate does not lead";
  Candidate next(run, "next", second->id);
  if (!next.WaitForLeader("silent", run.options.patience)) return "the follower does not know the leader";
  if (!next.WaitFor(Leadership::Kind::kLeading, run.options.patience)) return "the silent leader is not replaced";
  if (!first.WaitFor(Leadership::Kind::kEnded, run.options.patience)) return "the silent leader is not told";
  return {};
}

}  // namespace muster::store
