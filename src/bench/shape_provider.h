// ShapeProvider: the machines of a shape behind a provider's port, for measuring a whole shard. Transitions take as
// long as in docs/benchmarks.md (create 30 s, configure 5, drain 20, delete 5), and of the machines that exist one in a
// thousand fails each minute. It keeps nothing and fences nobody: what is measured is the shard.
//
// Thread-safety: any thread may ask.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "contract/provider.h"

namespace muster::bench {

class ShapeProvider final : public contract::ProviderPort {
 public:
  // The clock outlives the provider.
  ShapeProvider(std::vector<model::Machine> machines, const Clock& clock);
  ~ShapeProvider() override;

  void Ask(contract::ProviderRequest request, Duration timeout, Done done) override;
  uint64_t transitions() const;

 private:
  using Index = uint32_t;

  Result<contract::ProviderReply> Answer(const contract::ProviderRequest& request);
  contract::ListReply List(const contract::ListRequest& request) const;
  Result<contract::ProviderReply> Begin(const std::string& id, model::MachineState to, Duration dwell,
                                        const contract::ConfigureRequest* binding);
  void Set(Index index, model::Machine machine);
  void Run(const std::stop_token& stop);
  void Finish(Index index);
  void Fail();

  const Clock& clock_;
  mutable std::mutex mu_;
  std::vector<contract::MachineRecord> records_;     // guarded by mu_
  std::vector<uint64_t> changed_at_;                 // guarded by mu_: revision of a machine's last change
  std::vector<std::pair<uint64_t, Index>> changes_;  // guarded by mu_: by revision; only the last of each counts
  uint64_t revision_ = 0;                            // guarded by mu_
  std::unordered_map<std::string, Index> index_;     // set at construction; never iterated
  std::multimap<MonoTime, std::pair<Index, uint64_t>> due_;  // guarded by mu_: ends, void if the machine changed since
  uint64_t transitions_ = 0;                                 // guarded by mu_
  Rng rng_{1};                                               // guarded by mu_
  double failures_ = 0;                                      // guarded by mu_: machines that should have failed by now
  std::jthread thread_;
};

}  // namespace muster::bench
