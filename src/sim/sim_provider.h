// SimProvider: a provider on virtual time, the core that ships over a backend that outlives its crashes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "contract/provider.h"
#include "core/provider/provider.h"
#include "provider/backend.h"
#include "sim/disk.h"
#include "sim/kernel.h"
#include "sim/sim_host.h"

namespace muster::sim {

class SimProvider {
 public:
  using Answered = std::function<void(const provider::Answer&)>;

  SimProvider(Kernel& kernel, std::unique_ptr<provider::Backend> cloud, provider::Config config);

  void Start();
  void Crash();
  bool alive() const { return host_.alive(); }
  Disk& disk() { return disk_; }
  // Nothing happens to machines any more but what is asked for.
  void Calm() { calm_ = true; }

  // The call has arrived. It is answered once, or never if the provider dies first.
  void Ask(const contract::ProviderRequest& request, Answered answered);
  // The cloud may have something to say earlier than it said.
  void Look() { PollCloud(); }
  std::vector<contract::MachineRecord> Machines() const { return host_.core().Machines(); }

 private:
  provider::Core MakeCore(const contract::Recovered& rows);
  void StartCall(uint64_t life, const provider::Core::Call& call);
  void PollCloud();
  void OnCloud(const provider::Report& report);

  Kernel& kernel_;
  Disk disk_;
  const provider::Config config_;
  const std::unique_ptr<provider::Backend> cloud_;
  SimHost<provider::Core> host_;
  std::map<contract::RequestId, Answered> waiting_;
  contract::RequestId last_request_ = 0;
  std::map<contract::CallId, std::pair<uint64_t, contract::CallId>> calls_;  // the cloud's number -> life and call
  contract::CallId last_call_ = 0;
  std::optional<MonoTime> polls_at_;
  bool adopted_ = false;
  bool calm_ = false;
};

}  // namespace muster::sim
