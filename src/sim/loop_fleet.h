// LoopFleet: the fleet half of a loop: shard processes and a provider, with their calls over the network and the
// sessions of clusters on streams. One shard serves; another may take its place with a copy of its disk, and the first
// lives on as a zombie.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "contract/session.h"
#include "contract/shard.h"
#include "core/provider/provider.h"
#include "core/shard/shard.h"
#include "sim/disk.h"
#include "sim/kernel.h"
#include "sim/network.h"
#include "sim/sim_host.h"
#include "sim/sim_provider.h"
#include "sim/stream.h"

namespace muster::sim {

class LoopFleet {
 public:
  using Host = SimHost<shard::Core>;
  static constexpr ProcessId kProvider = ProcessId(1);
  static constexpr ProcessId ShardProcess(size_t i) { return ProcessId::Of(2 + i); }

  // Who wants to know. Each may be empty.
  struct World {
    std::function<void(size_t shard, const shard::Core&, const shard::Core::Event&,
                       std::span<const shard::Core::Effect>)>
        stepped = {};
    std::function<void(size_t shard, const shard::Core::Effect&)> emitted = {};
    std::function<void(size_t shard, const contract::ProviderRequest&)> called = {};
    // What comes in place of the provider's answer; OK: the call is taken.
    std::function<Status(const contract::ProviderRequest&)> refuses = {};
    std::function<bool()> broken = {};
  };
  // A cluster's session, from its end.
  struct Session {
    std::string cluster;
    std::shared_ptr<Stream> stream;
    size_t shard = 0;
    uint64_t life = 0;
    contract::SessionId id = 0;
    std::function<void(const contract::ShardMessage&)> hear;
  };

  LoopFleet(Kernel& kernel, Network& network, Rng& rng, const StreamDelays& delays, shard::Config config,
            std::unique_ptr<provider::Backend> cloud, provider::Config provider, World world);

  void Start();
  SimProvider& provider() { return provider_; }
  const SimProvider& provider() const { return provider_; }
  void StartProvider();
  void CrashProvider();

  size_t serving() const { return serving_; }
  Host& shard(size_t i) { return shards_[i]->host; }
  Disk& disk(size_t i) { return shards_[i]->disk; }
  size_t shards() const { return shards_.size(); }
  void StartShard(size_t i);
  void CrashShard(size_t i);
  // Another process goes on from the disk of the one that serves; that one lives on.
  void TakeOver();
  // An operator starts it with --epoch-at-least.
  void RaiseEpoch(size_t i, int64_t epoch) { shards_[i]->epoch_at_least = epoch; }

  // Opens a session with the shard that serves, or with the other one. `ended` is called once, when it has ended.
  std::shared_ptr<Session> Open(const std::string& cluster, bool astray,
                                std::function<void(const contract::ShardMessage&)> hear, std::function<void()> ended);
  void Say(const std::shared_ptr<Session>& session, contract::OperatorMessage message);
  // The shard that serves is asked; UNAVAILABLE at once if it is dead.
  void Ask(contract::ShardRequest request, std::function<void(Result<contract::ShardReply>)> done);
  std::vector<std::shared_ptr<Session>> sessions() const;

 private:
  struct Shard {
    Shard(LoopFleet& fleet, size_t index, Kernel& kernel);
    Disk disk;
    Host host;
    int64_t epoch_at_least = 0;
  };

  shard::Core MakeCore(size_t i, const contract::Recovered& rows) const;
  void StartCall(size_t i, uint64_t life, const shard::Core::Call& call);
  void Emit(size_t i, uint64_t life, const shard::Core::Effect& effect);
  std::shared_ptr<Session> Find(size_t i, uint64_t life, contract::SessionId id) const;

  Kernel& kernel_;
  Network& network_;
  Rng& rng_;
  const StreamDelays& delays_;
  const shard::Config config_;
  const World world_;
  SimProvider provider_;
  std::vector<std::unique_ptr<Shard>> shards_;
  size_t serving_ = 0;
  std::map<contract::SessionId, std::shared_ptr<Session>> sessions_;  // that said Hello and are open
  contract::SessionId last_session_ = 0;
  std::string last_blob_;  // that a cluster gave
  std::map<contract::RequestId, std::function<void(Result<contract::ShardReply>)>> asked_;
  contract::RequestId last_request_ = 0;
};

}  // namespace muster::sim
