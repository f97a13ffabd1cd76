#include "store/compactor.h"

#include <utility>

#include "base/log.h"
#include "store/guarded.h"

namespace muster::store {
namespace {

constexpr Duration kTimeout = 10s;

}  // namespace

class Compactor::Turns final : public Guarded {
 public:
  Turns(Store& store, Schedule& schedule, Duration every) : store_(store), schedule_(schedule), every_(every) {}

  void Begin() {
    RunLocked([this] { TurnLater(); });
  }
  void Saw(Revision revision) {
    RunLocked([&] {
      if (revision < seen_) marked_ = compacted_ = 0;
      seen_ = revision;
    });
  }
  void Lead(bool leads) {
    RunLocked([&] { leads_ = leads; });
  }

 private:
  void Closed() override {}

  // Under the lock.
  void TurnLater() {
    schedule_.After(every_, Callback([this] {
                      Turn();
                      TurnLater();
                    }));
  }
  void Turn() {
    const Revision until = std::exchange(marked_, seen_);
    if (!leads_ || until <= compacted_) return;
    store_.Compact(until, kTimeout, Callback([this, until](const Status& status) {
                     if (status.ok()) {
                       compacted_ = until;
                     } else {
                       log::Warn("the store's history cannot be compacted", {{"error", status.ToString()}});
                     }
                   }));
  }

  Store& store_;
  Schedule& schedule_;
  const Duration every_;

  // Under the lock.
  bool leads_ = false;
  Revision seen_ = 0;       // last
  Revision marked_ = 0;     // what was seen last at the last turn
  Revision compacted_ = 0;  // by this
};

Compactor::Compactor(Store& store, Schedule& schedule, Duration every)
    : turns_(std::make_shared<Turns>(store, schedule, every)) {
  turns_->Begin();
}
Compactor::~Compactor() { turns_->Close(); }

void Compactor::Saw(Revision revision) { turns_->Saw(revision); }
void Compactor::Lead(bool leads) { turns_->Lead(leads); }

}  // namespace muster::store
