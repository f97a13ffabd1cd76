// SlowProvider: a provider of plain on-demand machines that acknowledges late and makes lists late: what a list shows
// is how things are when it is answered, whenever it was asked for. A capped page has the newest revision, as with
// providers that have no cursor of pages. It loses nothing by itself; the world tells it what to get wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/rng.h"
#include "base/time.h"
#include "contract/provider.h"
#include "core/shard/shard.h"
#include "model/machine.h"
#include "sim/kernel.h"

namespace muster::sim {

class SlowProvider {
 public:
  using Done = std::function<void(const shard::Core::CallDone&)>;

  // What it gets wrong, and who sees how transitions end. Each may be empty.
  struct Hooks {
    std::function<Status(const contract::ProviderRequest&)> refuses;  // a call; OK: it is taken
    std::function<bool(const std::string&)> hangs;                    // transitions of the machine are not answered
    std::function<std::string(const model::Machine&)>
        breaks;                                        // a transition ends in Failed, with this; empty: it does not
    std::function<void(const model::Machine&)> ended;  // a transition has ended so
  };

  explicit SlowProvider(Kernel& kernel) : kernel_(kernel), rng_(kernel.ForkRng(0x736c6f77)) {}

  void Ask(const shard::Core::Call& call, Done done);

  // --- what the world does to it
  void Put(model::Machine machine);
  void SetState(const std::string& id, model::MachineState state);
  void Lose(const std::string& id);
  void SetHooks(Hooks hooks) { hooks_ = std::move(hooks); }
  void SetDrainTime(Duration least) { drain_time_ = least; }      // beside what every transition takes
  void RefuseDeletes(bool refuse) { refuses_deletes_ = refuse; }  // of Failed machines

  bool refuses_deletes() const { return refuses_deletes_; }
  const std::map<std::string, model::Machine>& machines() const { return machines_; }
  MonoTime ChangedAt(const std::string& id) const { return changed_.at(id).second; }
  // A transition of the machine is asked for, and not acknowledged yet.
  bool IsAsked(const std::string& id) const { return asked_.contains(id); }

 private:
  Duration Draw(Duration longest) { return Duration(rng_.Between(1, longest.count())); }
  contract::ListReply List(const contract::ListRequest& request) const;
  Status Refusal(const contract::ProviderRequest& request) const {
    return hooks_.refuses ? hooks_.refuses(request) : Status();
  }
  Status Begin(const std::string& id, const contract::ProviderRequest& request);
  void End(const std::string& id, model::MachineState during);

  Kernel& kernel_;
  Rng rng_;
  std::map<std::string, model::Machine> machines_;
  std::map<std::string, std::pair<uint64_t, MonoTime>> changed_;  // revision and time
  std::set<std::string> asked_;
  uint64_t revision_ = 0;
  bool refuses_deletes_ = false;
  Duration drain_time_{};
  Hooks hooks_;
};

}  // namespace muster::sim
