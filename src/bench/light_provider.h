// LightProvider: carries actions out on a shape's machines, each transition after a fixed number of cycles, and lets
// one machine in a thousand a minute fail and come back. Work follows change; nothing here is timed.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/rng.h"
#include "engine/fast/engine.h"
#include "engine/types.h"

namespace muster::bench {

class LightProvider {
 public:
  // Machines must be where the engine was shown them, row by row.
  explicit LightProvider(std::vector<model::Machine>& machines);

  // The actions of the engine's last decision begin. Checked: each starts from where its machine is.
  void CarryOut(const engine::fast::Engine& engine);
  // A cycle passes: transitions end, machines fail and come back.
  void Tick(Rng& rng);
  // Machines that changed since the last call of Forget, each once.
  const std::vector<uint32_t>& changed() const { return changed_; }
  void Forget();

  // Of all machines that are neither Speculative nor Failed, an hour.
  static int64_t CostMicros(const std::vector<model::Machine>& machines);

 private:
  static constexpr size_t kWheel = 64;  // longer than any dwell
  struct Binding {
    std::string cluster;
    std::map<std::string, std::string> metadata;
  };
  void Enter(uint32_t m, model::MachineState state, size_t dwell);
  void Finish(uint32_t m);
  void Fail(Rng& rng);

  std::vector<model::Machine>& machines_;
  std::array<std::vector<uint32_t>, kWheel> due_;
  size_t hand_ = 0;
  std::unordered_map<uint32_t, Binding> coming_;  // machines being made: whom they will be bound to; never iterated
  std::vector<uint32_t> changed_;
  std::vector<bool> is_changed_;
  int64_t existing_ = 0;  // neither Speculative nor Failed
  int64_t failing_ = 0;   // machines due to fail, in parts of one in 60,000
};

}  // namespace muster::bench
