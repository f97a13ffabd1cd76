#include "store/campaign.h"

#include <mutex>
#include <utility>

#include "base/probe.h"

namespace muster::store {

class Campaign::State : public std::enable_shared_from_this<State> {
 public:
  State(Store& store, Schedule& schedule, CampaignRequest request, Handler handler)
      : store_(store), schedule_(schedule), request_(std::move(request)), handler_(std::move(handler)) {}

  // `action`, run under the lock if the campaign is still open then.
  template <class Action>
  auto Guarded(Action action) {
    return [self = shared_from_this(), action = std::move(action)](auto&&... arguments) {
      const std::lock_guard lock(self->mu_);
      if (self->open_) action(std::forward<decltype(arguments)>(arguments)...);
    };
  }
  template <class Action>
  void Pause(Action action) {
    schedule_.After(request_.pause, Guarded(std::move(action)));
  }

  // Creates the key, if it is not there.
  void Run() {
    store_.Commit({.compares = {contract::IfAbsent(request_.key)},
                   .writes = {contract::Put(request_.key, request_.value, request_.lease)}},
                  request_.timeout, Guarded([this](const CommitOutcome& outcome) {
                    const auto* unknown = std::get_if<contract::Unknown>(&outcome);
                    if (unknown == nullptr) return Look();
                    if (unknown->status.code() == Code::kNotFound) return End();
                    PROBE("store.campaign_unknown");
                    Pause([this] { Look(); });
                  }));
  }

  void Close() {
    const std::lock_guard lock(mu_);
    open_ = false;
    RetireWatch();
  }

 private:
  // Whose the key is decides, not how the commit was answered.
  void Look() {
    store_.Range(contract::OneKey(request_.key), request_.timeout, Guarded([this](const Result<RangeReply>& reply) {
                   if (!reply) return Pause([this] { Look(); });
                   if (reply->rows.empty()) return Pause([this] { Run(); });
                   Report(reply->rows.front());
                   WatchKey(reply->revision + 1);
                 }));
  }
  void Report(const KeyValue& leader) {
    const bool own = leader.lease == request_.lease;
    const bool lost = std::exchange(leading_, own) && !own;
    Tell({.kind = own ? Leadership::Kind::kLeading : Leadership::Kind::kFollowing, .leader = leader});
    if (lost && open_) CheckLease([] {});
  }

  // A leader whose key is gone may have lost its lease. A commit would not say so once another leads.
  template <class Then>
  void CheckLease(Then then) {
    store_.KeepAlive(request_.lease, request_.timeout, Guarded([this, then](const Result<Lease>& renewed) {
                       if (!renewed && renewed.error().code() == Code::kNotFound) return End();
                       then();
                     }));
  }

  // Until the key changes.
  void WatchKey(Revision from) {
    if (!open_) return;
    RetireWatch();
    const uint64_t number = ++watch_number_;
    watch_ = store_.Watch(contract::OneKey(request_.key), from,
                          Guarded([this, number](const WatchEvent& event) { Watched(number, event); }));
  }
  // Ending a watch waits for its handler, which may wait for the lock: so it ends on the schedule, without the lock.
  void RetireWatch() {
    if (watch_ == nullptr) return;
    schedule_.After({}, [old = std::shared_ptr<WatchHandle>(std::move(watch_))] {});
  }
  void Watched(uint64_t number, const WatchEvent& event) {
    if (number != watch_number_) return;
    ++watch_number_;  // one event is enough: what it says is read anew
    const auto* batch = std::get_if<WatchBatch>(&event);
    const bool gone = batch != nullptr && batch->changes.back().deleted;
    if (gone) Tell({.kind = Leadership::Kind::kFollowing, .leader = {}});
    if (!open_) return;
    if (gone && std::exchange(leading_, false)) return CheckLease([this] { Run(); });
    schedule_.After({}, Guarded([this, gone] { gone ? Run() : Look(); }));
  }

  void Tell(const Leadership& leadership) { handler_(leadership); }
  void End() {
    Tell({.kind = Leadership::Kind::kEnded, .leader = {}});
    open_ = false;
  }

  // Set at construction.
  Store& store_;
  Schedule& schedule_;
  const CampaignRequest request_;
  const Handler handler_;

  std::recursive_mutex mu_;  // the handler may destroy the campaign
  bool open_ = true;
  bool leading_ = false;  // as told last
  uint64_t watch_number_ = 0;
  std::unique_ptr<WatchHandle> watch_;
};

Campaign::Campaign(Store& store, Schedule& schedule, CampaignRequest request, Handler handler)
    : state_(std::make_shared<State>(store, schedule, std::move(request), std::move(handler))) {
  state_->Run();
}
Campaign::~Campaign() { state_->Close(); }

}  // namespace muster::store
