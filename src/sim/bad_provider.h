// BadProvider: what a shard must expect of a provider besides crashes: calls that lie there for seconds, that fail
// before or after they were done, lists that are old or full of nonsense, machines that are not shown.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/rng.h"
#include "base/time.h"
#include "contract/provider.h"
#include "core/shard/shard.h"
#include "sim/kernel.h"

namespace muster::sim {

class BadProvider {
 public:
  // Machines are cloud-000001 and on. How bad it is follows from the kernel's seed; one machine may be gone for good at
  // some moment within `faulty_time`.
  BadProvider(Kernel& kernel, uint64_t machines, Duration faulty_time);
  void Calm();

  // For so long: it answers nothing; it does not show one of its machines.
  void Hang(Duration time);
  void Hide(Duration time);

  enum class Fate : uint8_t { kAnswered = 0, kRefused = 1, kDoneAndRefused = 2 };
  Fate DrawFate();
  // How long a call lies there before it is looked at.
  Duration DrawWait();
  // What `reader` is answered instead.
  void Tamper(size_t reader, const contract::ProviderRequest& request, shard::Core::CallDone& done);
  // The machine is not shown any more, ever.
  bool Gone(const std::string& machine) const;

 private:
  bool IsHidden(const std::string& machine) const;
  void AddGarbage(contract::ListReply& list);
  std::string AnyMachine();

  Kernel& kernel_;
  Rng rng_;
  const uint64_t machines_;
  bool calm_ = false;
  uint64_t failing_ = 0;  // of 1000 calls
  uint64_t slow_ = 0;     // of 1000 calls
  uint64_t lying_ = 0;    // of 1000 lists
  MonoTime hangs_until_;
  std::map<std::string, MonoTime> hidden_;  // until when
  std::string gone_;
  MonoTime gone_at_;
  std::map<size_t, contract::ListReply> old_lists_;  // by reader
};

}  // namespace muster::sim
