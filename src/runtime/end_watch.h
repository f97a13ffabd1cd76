// EndWatch: the runs that an engine is asked about again and again, because it tells of no end by itself, and the
// thread that asks.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/runtime.h"

namespace muster::runtime {

class EndWatch {
 public:
  // The newest launch of a workload; nothing if the engine has none of it. Called on the thread of the watch.
  using Look = std::function<Result<std::optional<contract::Run>>(const std::string& workload)>;
  using Ended = std::function<void(contract::Run)>;

  // The clock outlives the watch; `ended` is called once for each run that is followed.
  EndWatch(Duration poll, const Clock& clock, Look look, Ended ended);
  ~EndWatch();
  EndWatch(const EndWatch&) = delete;
  EndWatch& operator=(const EndWatch&) = delete;

  // Follows a run that runs.
  void Follow(const contract::Run& run);
  // A stop was asked for: an end that comes now is meant. Until the workload is forgotten or runs anew.
  void NoteStop(const std::string& workload);
  bool WasStopped(const std::string& workload) const;
  void Forget(const std::string& workload);
  // The same for a workload that goes for good: its readers end.
  void ForgetRemoved(const std::string& workload);

  // Somebody who reads the logs of a workload while the object lives. The watch outlives it.
  class Reader {
   public:
    Reader(EndWatch& watch, std::string workload);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    // Whether the workload was removed since the reader came.
    bool Removed() const;
    // How often a launch of it went, for another one or for good, while somebody read: what an engine does not tell.
    uint64_t Forgotten() const;

   private:
    EndWatch& watch_;
    const std::string workload_;
    const uint64_t removals_;  // before it came
  };
  std::map<std::string, uint64_t> Running() const;  // launches by workload, as far as is known
  // Waits for the thread. Idempotent.
  void Close();

 private:
  void Watch();
  void LookForEnds();

  const Duration poll_;
  const Clock& clock_;
  const Look look_;
  const Ended ended_;

  mutable std::mutex mu_;
  std::condition_variable wakes_;
  bool closing_ = false;                     // guarded by mu_
  std::map<std::string, uint64_t> running_;  // guarded by mu_
  std::set<std::string> stopped_;            // guarded by mu_
  struct Reading {
    int readers = 0;
    uint64_t removals = 0;  // while there was a reader
    uint64_t forgotten = 0;
  };
  std::map<std::string, Reading> reading_;  // guarded by mu_: workloads with readers

  std::thread thread_;  // last: it uses the rest
};

}  // namespace muster::runtime
