#include "runtime/end_watch.h"

#include <utility>

namespace muster::runtime {

EndWatch::EndWatch(Duration poll, const Clock& clock, Look look, Ended ended)
    : poll_(poll), clock_(clock), look_(std::move(look)), ended_(std::move(ended)), thread_([this] { Watch(); }) {}

EndWatch::~EndWatch() { Close(); }

void EndWatch::Close() {
  {
    const std::lock_guard lock(mu_);
    closing_ = true;
  }
  wakes_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void EndWatch::Follow(const contract::Run& run) {
  if (!run.running) return;
  const std::lock_guard lock(mu_);
  const auto [at, is_new] = running_.try_emplace(run.workload, run.launch);
  if (!is_new && at->second == run.launch) return;
  at->second = run.launch;
  stopped_.erase(run.workload);
}

void EndWatch::NoteStop(const std::string& workload) {
  const std::lock_guard lock(mu_);
  stopped_.insert(workload);
}

bool EndWatch::WasStopped(const std::string& workload) const {
  const std::lock_guard lock(mu_);
  return stopped_.contains(workload);
}

void EndWatch::Forget(const std::string& workload) {
  const std::lock_guard lock(mu_);
  running_.erase(workload);
  stopped_.erase(workload);
  if (const auto reading = reading_.find(workload); reading != reading_.end()) ++reading->second.forgotten;
}

void EndWatch::ForgetRemoved(const std::string& workload) {
  Forget(workload);
  const std::lock_guard lock(mu_);
  if (const auto reading = reading_.find(workload); reading != reading_.end()) ++reading->second.removals;
}

EndWatch::Reader::Reader(EndWatch& watch, std::string workload)
    : watch_(watch), workload_(std::move(workload)), removals_([this] {
        const std::lock_guard lock(watch_.mu_);
        Reading& reading = watch_.reading_[workload_];
        ++reading.readers;
        return reading.removals;
      }()) {}

EndWatch::Reader::~Reader() {
  const std::lock_guard lock(watch_.mu_);
  const auto reading = watch_.reading_.find(workload_);
  if (--reading->second.readers == 0) watch_.reading_.erase(reading);
}

uint64_t EndWatch::Reader::Forgotten() const {
  const std::lock_guard lock(watch_.mu_);
  return watch_.reading_.at(workload_).forgotten;
}

bool EndWatch::Reader::Removed() const {
  const std::lock_guard lock(watch_.mu_);
  return watch_.reading_.at(workload_).removals != removals_;
}

std::map<std::string, uint64_t> EndWatch::Running() const {
  const std::lock_guard lock(mu_);
  return running_;
}

void EndWatch::Watch() {
  std::unique_lock lock(mu_);
  while (!closing_) {
    wakes_.wait_for(lock, poll_, [this] { return closing_; });
    if (closing_ || running_.empty()) continue;
    lock.unlock();
    LookForEnds();
    lock.lock();
  }
}

void EndWatch::LookForEnds() {
  for (const auto& [workload, launch] : Running()) {
    auto run = look_(workload);
    if (!run) return;  // the engine is away: the next look tells
    if (*run && (*run)->running && (*run)->launch == launch) continue;
    {
      // Whoever takes the row out tells of the end.
      const std::lock_guard lock(mu_);
      if (closing_) return;
      const auto at = running_.find(workload);
      if (at == running_.end() || at->second != launch) continue;
      running_.erase(at);
    }
    if (*run && (*run)->launch == launch) {
      ended_(**std::move(run));
    } else if (!*run) {
      ended_({.workload = workload,
              .launch = launch,
              .ended_at = clock_.Read().wall,
              .message = "its container was removed"});
    }
  }
}

}  // namespace muster::runtime
