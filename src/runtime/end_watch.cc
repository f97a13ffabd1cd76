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
