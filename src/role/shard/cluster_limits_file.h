// ClusterLimitsFile: the file of --cluster-limits, read again when it changes. docs/operating-shard.md has an example.
//
//   clusters:
//     prod: {highestPriority: 1000, mostMachines: 200, mostPerHour: 120.50}
//     "*": {highestPriority: 100}        # every cluster without a line of its own
//
// A file that is not fit for use is logged once for each change of it, by line and field, and the last ceilings stay.
//
// Thread-safety: one thread makes and destroys it; `changed` is called on a thread of its own.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "base/status.h"
#include "base/time.h"
#include "contract/shard.h"

namespace muster::shard {

// The error names the file, the line and the field.
Result<contract::Ceilings> ReadClusterLimits(const std::string& path);

class ClusterLimitsFile {
 public:
  using Changed = std::function<void(contract::Ceilings)>;

  // Reads the file now; afterwards `changed` gets what a later content says, within about `look_every` of the change.
  static Result<std::unique_ptr<ClusterLimitsFile>> Open(std::string path, Changed changed, Duration look_every = 1s);

  // As the file was when it was opened.
  const contract::Ceilings& first() const { return first_; }
  // From here on changes are looked for.
  void Watch();

 private:
  ClusterLimitsFile(std::string path, Changed changed, Duration look_every);

  void Look();

  const std::string path_;
  const Changed changed_;
  const Duration look_every_;
  std::string stamp_;  // of the content read last; the watching thread's, once there is one
  contract::Ceilings first_;
  std::mutex mu_;
  std::condition_variable_any wakes_;
  std::jthread watcher_;  // last: it uses the rest
};

}  // namespace muster::shard
