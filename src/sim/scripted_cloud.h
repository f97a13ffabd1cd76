// ScriptedCloud: a backend that does what a scenario says: every operation takes the time of its kind and succeeds,
// unless the script has it fail; hardware is lost when the script says so.
//
// Thread-safety: none.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "contract/backend.h"
#include "provider/backend.h"

namespace muster::sim {

// Operations of this kind on these machines fail that begin within a time.
struct ScriptedFault {
  contract::OperationKind kind = contract::OperationKind::kCreate;
  std::vector<std::string> machines;
  std::string error;
  Duration lasts{};  // from when the script reaches it
};

class ScriptedCloud final : public provider::Backend {
 public:
  using Dwell = std::array<Duration, 4>;  // by contract::OperationKind

  ScriptedCloud(std::vector<contract::Slot> slots, Dwell dwell) : slots_(std::move(slots)), dwell_(dwell) {}

  void Fail(const ScriptedFault& fault, MonoTime now);
  // The machine's hardware is gone; nothing happens to one that has none.
  void Lose(const std::string& machine, MonoTime now);

  std::vector<contract::Slot> Slots() const override { return slots_; }
  void Adopt(std::span<const contract::MachineRecord> machines, Now now) override;
  void Start(contract::CallId call, const contract::Operation& operation, Now now) override;
  std::optional<MonoTime> NextPoll() const override;
  void Poll(Now now, std::vector<provider::Report>& out) override;

 private:
  struct Failing {
    ScriptedFault fault;
    MonoTime until;
  };

  const std::vector<contract::Slot> slots_;
  const Dwell dwell_;
  std::vector<Failing> failing_;
  std::map<std::string, std::string> hosts_;             // machine -> its hardware
  std::multimap<MonoTime, provider::Report> happening_;  // what will have happened, by when
  uint64_t last_host_ = 0;
};

}  // namespace muster::sim
