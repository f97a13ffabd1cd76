// Hints: tells each cluster now and then what free capacity there is for its profiles, where that has changed since it
// was told last. Hints of all clusters are spread over the interval, so that no step has to make them all.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "base/fields.h"
#include "base/time.h"
#include "contract/session.h"
#include "core/shard/clusters.h"
#include "core/shard/config.h"
#include "core/shard/engine_view.h"
#include "core/shard/sessions.h"
#include "core/shard/step_context.h"

namespace muster::shard {

class Hints {
 public:
  using ByKey = std::map<std::string, contract::AvailableCapacity>;
  struct State {
    MonoTime next;
    std::string last_cluster;                        // that was told last
    std::map<std::string, ByKey, std::less<>> sent;  // in the session of each cluster

    MUSTER_FIELDS(State, next, last_cluster, sent)
  };
  // The parts it works with; all outlive it.
  struct Deps {
    const Config& config;
    const EngineView& engine;
    const Clusters& clusters;
    const Sessions& sessions;
  };

  explicit Hints(const Deps& deps, State state) : deps_(deps), state_(std::move(state)) {}

  void Start(MonoTime now) { state_.next = now; }
  // Sends what is due. The engine has decided.
  void Send(StepContext& ctx);
  // A new session is told again.
  void OnSessionEnded(const std::string& cluster) { state_.sent.erase(cluster); }
  MonoTime NextWake() const { return state_.next; }

  const State& state() const { return state_; }

 private:
  void SendTo(const std::string& cluster, StepContext& ctx);

  const Deps deps_;
  State state_;
};

}  // namespace muster::shard
