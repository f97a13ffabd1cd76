// ShardLife: one life of one shard process, judged step by step from what came to it and what it wanted done. At the
// moment of the step there is no disk and no network in between, so nothing here needs tolerance.
//
// It knows the shard's rules (docs/shard.md) and its configuration, not how it works; of the core it reads only whom an
// operation is for.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "base/time.h"
#include "contract/provider.h"
#include "contract/session.h"
#include "contract/shard.h"
#include "core/shard/shard.h"

namespace muster::sim {

class ShardLife {
 public:
  using ActuationMode = contract::ActuationMode;
  using Modes = std::map<std::string, contract::ActuationMode>;  // by cluster; empty: the whole shard
  // Says what is wrong, if something is.
  using Check = std::function<void(bool holds, const std::function<std::string()>& what)>;

  // It begins at `now` with these rows; `modes` are those that earlier lives had confirmed.
  ShardLife(shard::Config config, const contract::Recovered& rows, Modes modes, MonoTime now, Check check);

  void Stepped(const shard::Core& core, Now now, const shard::Core::Event& event,
               std::span<const shard::Core::Effect> effects);

 private:
  struct Told {
    std::string instruction;
    MonoTime when;  // first
    bool acknowledged = false;
  };
  // A transition: the machine, and what was asked for, of a Configure for which cluster.
  struct Asked {
    std::string machine;
    std::string what;

    bool operator==(const Asked&) const = default;
  };
  struct Failed {
    MonoTime when;
    model::MachineState state = model::MachineState::kUnspecified;
    std::string what;
  };
  // A transition has ended: reads that began before know nothing of it.
  struct Ended {
    uint64_t step = 0;
    contract::MachineRecord record;  // as it is known since
  };

  void Hear(const shard::Core::Event& event, std::span<const shard::Core::Effect> effects, MonoTime now);
  void HearMessage(contract::SessionId session, const contract::OperatorMessage& message, MonoTime now);
  void HearAnswer(const shard::Core& core, const shard::Core::CallDone& done, MonoTime now);
  void JudgeReads(const shard::Core& core, uint64_t begun);
  void JudgeCycle(MonoTime now);
  void JudgeReconnect(const shard::Core& core, const std::string& cluster,
                      std::span<const shard::Core::Effect> effects);
  void JudgeDecision(const shard::Core& core, const contract::ActionView& action);
  void JudgeTransition(const shard::Core& core, contract::CallId call, const Asked& asked,
                       const contract::FenceToken& fence, MonoTime now);
  void JudgeConfigure(const contract::ConfigureRequest& request, MonoTime now);
  void JudgeDrain(const shard::Core& core, const contract::DrainRequest& request, MonoTime now);
  // Whether a decision may be made, or one that was made may reach the provider: dry run leaves that alone.
  void MayDecide(const std::string& machine, const std::string& cluster) {
    MayAct(machine, cluster, ActuationMode::kActive);
  }
  void MayCall(const std::string& machine, const std::string& cluster) {
    MayAct(machine, cluster, ActuationMode::kDryRun);
  }
  void MayAct(const std::string& machine, const std::string& cluster, contract::ActuationMode strictest);
  bool HasSession(const std::string& cluster) const;
  // Whom an operation on the machine is for, if for a need.
  static std::string ForWhom(const shard::Core& core, const std::string& machine);

  const shard::Config config_;
  const MonoTime began_;
  const Check check_;
  std::set<std::string> awaited_;  // clusters it knew, which have said nothing yet
  Modes modes_;
  std::set<std::string> inherited_;  // of them those that no order of this life has changed
  std::map<contract::SessionId, std::string> sessions_;
  std::map<std::string, std::optional<MonoTime>> blobs_;  // by their bytes: good until
  std::map<std::string, Told> told_;                      // by machine: the newest instruction
  std::map<contract::CallId, Asked> open_;                // transitions in the provider's hands
  std::map<std::string, Failed> failed_;                  // machines whose last transition failed
  std::map<std::string, Ended> ended_;                    // by machine
  std::map<contract::CallId, uint64_t> reads_;            // lists and gets under way: the step they began in
  std::optional<uint64_t> page_;                          // a list that is read in the next step: when it began
  uint64_t steps_ = 0;
  std::optional<MonoTime> last_cycle_;
  int64_t last_sequence_ = 0;
  std::set<std::string> fenced_;  // machines for which a call was fenced, since the shard was resumed
};

}  // namespace muster::sim
