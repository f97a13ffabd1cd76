#include "store/candidate.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "base/probe.h"
#include "store/campaign.h"
#include "store/guarded.h"

namespace muster::store {

class Candidate::State final : public Guarded {
 public:
  State(Store& store, Schedule& schedule, CandidateOptions options, Handler handler)
      : store_(store), schedule_(schedule), options_(std::move(options)), handler_(std::move(handler)) {}

  void Start() {
    RunLocked([this] { Grant(); });
  }

  void Resign(std::function<void(Status)> done) {
    LeaseId lease = 0;
    CloseAfter([&] {
      lease = lease_;
      if (leading_) Follow({});
    });
    if (lease != 0) return store_.Revoke(lease, options_.timeout, std::move(done));
    schedule_.After({}, [done = std::move(done)] { done({}); });
  }

 private:
  void Closed() override { Retire(campaign_); }

  // ---- The lease

  void Grant() {
    store_.Grant(options_.ttl, options_.timeout, Callback([this, called = schedule_.now()](const Result<Lease>& lease) {
                   if (!lease) return GrantLater();
                   lease_ = lease->id;
                   Renewed(called, *lease);
                   StartCampaign();
                 }));
  }
  void GrantLater() {
    schedule_.After(options_.pause, Callback([this] { Grant(); }));
  }
  void Renew(LeaseId lease) {
    if (lease != lease_) return;
    store_.KeepAlive(lease, options_.timeout,
                     Callback([this, lease, called = schedule_.now()](const Result<Lease>& renewed) {
                       if (lease != lease_) return;
                       if (renewed) return Renewed(called, *renewed);
                       if (renewed.error().code() == Code::kNotFound) return StandAgain();
                       RenewAfter(options_.pause);
                     }));
  }
  void RenewAfter(Duration pause) {
    schedule_.After(pause, Callback([this, lease = lease_] { Renew(lease); }));
  }
  void Renewed(MonoTime called, const Lease& lease) {
    until_ = called + lease.ttl * (MUTANT("store.candidate_leads_too_long") ? 3 : 1);
    Lead();
    RenewAfter(lease.ttl / 3);
    schedule_.After(until_ - schedule_.now(), Callback([this] { FollowIfOverdue(); }));
  }
  void FollowIfOverdue() {
    if (!leading_ || schedule_.now() < until_) return;
    PROBE("store.candidate_overdue");
    Follow({});
  }

  // ---- The election

  void StartCampaign() {
    campaign_ = std::make_unique<Campaign>(store_, schedule_,
                                           CampaignRequest{.key = options_.key,
                                                           .value = options_.value,
                                                           .lease = lease_,
                                                           .timeout = options_.timeout,
                                                           .pause = options_.pause},
                                           Callback([this, lease = lease_](const Leadership& told) {
                                             if (lease == lease_) Told(told);
                                           }));
  }
  void Told(const Leadership& told) {
    switch (told.kind) {
      case Leadership::Kind::kLeading: own_ = told.leader; return Lead();
      case Leadership::Kind::kFollowing: own_.reset(); return Follow(told.leader);
      case Leadership::Kind::kEnded: return StandAgain();
    }
  }
  // The lease has ended, and with it the campaign.
  void StandAgain() {
    PROBE("store.candidate_stands_again");
    Retire(campaign_);
    lease_ = 0;
    own_.reset();
    if (leading_) Follow({});
    GrantLater();
  }

  void Lead() {
    if (!own_ || schedule_.now() >= until_) return;
    leading_ = true;
    leader_.reset();
    handler_(contract::Leading{.until = until_, .key = *own_});
  }
  void Follow(const std::optional<KeyValue>& leader) {
    if (!std::exchange(leading_, false) && leader == leader_) return;
    leader_ = leader;
    handler_(contract::Following{.leader = leader});
  }

  // Set at construction.
  Store& store_;
  Schedule& schedule_;
  const CandidateOptions options_;
  const Handler handler_;

  // Under the lock.
  LeaseId lease_ = 0;                   // 0: none; what was asked for an older lease is void
  MonoTime until_;                      // a ttl after the call that renewed the lease last
  std::unique_ptr<Campaign> campaign_;  // with the lease
  std::optional<KeyValue> own_;         // the key, while it is this candidate's
  bool leading_ = false;                // as told last
  std::optional<KeyValue> leader_;      // as told last, while not leading
};

Candidate::Candidate(Store& store, Schedule& schedule, CandidateOptions options, Handler handler)
    : state_(std::make_shared<State>(store, schedule, std::move(options), std::move(handler))) {
  state_->Start();
}
Candidate::~Candidate() { state_->Close(); }
void Candidate::Resign(std::function<void(Status)> done) { state_->Resign(std::move(done)); }

}  // namespace muster::store
