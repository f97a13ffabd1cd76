#include "role/scheduler/watch_hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/weight.h"

namespace muster::scheduler {
namespace {

bool Wanted(const contract::WatchCluster& what, const contract::ClusterChange& change) {
  const auto* object = std::get_if<contract::ObjectChanged>(&change);
  if (object == nullptr) return what.decisions;
  switch (object->kind) {
    case contract::ObjectKind::kNode: return what.nodes;
    case contract::ObjectKind::kWorkload: return what.workloads;
    case contract::ObjectKind::kSet: return what.sets;
    case contract::ObjectKind::kQuota: return false;
  }
  return false;
}

contract::Revision RevisionOf(const contract::ClusterChange& change) {
  const auto* object = std::get_if<contract::ObjectChanged>(&change);
  return object == nullptr ? 0 : object->revision;
}

Status ListAgain(contract::Revision from) {
  return {Code::kOutOfRange,
          fmt::format("changes after revision {} are not kept; list again, and watch from the list's revision", from)};
}

}  // namespace

void WatchHub::Begin(contract::Revision revision) {
  const std::lock_guard lock(mu_);
  floor_ = revision;
  kept_.clear();
  weight_ = 0;
  for (const Watcher& watcher : watchers_) watcher.sink->Close(ListAgain(watcher.what.from));
  watchers_.clear();
}

void WatchHub::Publish(contract::ClusterChange change) {
  const auto shared = std::make_shared<const contract::ClusterChange>(std::move(change));
  const size_t weight = WeightOf(*shared);
  const std::lock_guard lock(mu_);
  if (std::holds_alternative<contract::ObjectChanged>(*shared)) {
    kept_.push_back({.change = shared, .weight = weight});
    weight_ += weight;
    while (kept_.size() > most_ || weight_ > most_weight_) Forget();
  }
  std::erase_if(watchers_,
                [&](const Watcher& watcher) { return Wanted(watcher.what, *shared) && !watcher.sink->Send(shared); });
}

void WatchHub::Forget() {
  floor_ = std::max(floor_.value_or(0), RevisionOf(*kept_.front().change));
  weight_ -= kept_.front().weight;
  kept_.pop_front();
}

void WatchHub::Watch(const contract::WatchCluster& what, std::shared_ptr<rpc::WatchSink> sink) {
  const std::lock_guard lock(mu_);
  if (closed_) return sink->Close(*closed_);
  if (what.from > 0) {
    if (!floor_) return sink->Close({Code::kUnavailable, "the store was not read yet; ask again"});
    if (what.from < *floor_) return sink->Close(ListAgain(what.from));
    for (const auto& [change, weight] : kept_) {
      if (RevisionOf(*change) > what.from && Wanted(what, *change) && !sink->Send(change)) return;
    }
  }
  watchers_.push_back({.what = what, .sink = std::move(sink)});
}

void WatchHub::Close(const Status& why) {
  const std::lock_guard lock(mu_);
  closed_ = why;
  for (const Watcher& watcher : watchers_) watcher.sink->Close(why);
  watchers_.clear();
}

size_t WatchHub::watchers() const {
  const std::lock_guard lock(mu_);
  return watchers_.size();
}

}  // namespace muster::scheduler
