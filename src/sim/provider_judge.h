// ProviderJudge: what a provider owes its shards, checked from outside against what it was asked, what it answered,
// what was durable at that moment, and what the cloud did. It knows nothing of how the core works.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "contract/backend.h"
#include "contract/effects.h"
#include "contract/provider.h"
#include "core/provider/types.h"
#include "provider/backend.h"

namespace muster::sim {

class ProviderJudge {
 public:
  // A call that reached the living provider.
  struct Delivered {
    contract::ProviderRequest request;
    uint64_t number = 0;         // its place among all deliveries
    bool may_be_fenced = false;  // a token as new as its own was delivered before
  };

  Delivered Deliver(const contract::ProviderRequest& request);
  // The provider answered, with these rows durable.
  void Answered(const Delivered& delivered, const provider::Answer& answer, const contract::Recovered& durable);
  void Started(const contract::Operation& operation) { started_.insert(operation.id); }
  // The cloud did something to a machine.
  void CloudDid(const provider::Report& report);
  // Everything is at rest: `machines` is the truth.
  void AtRest(const std::vector<contract::MachineRecord>& machines);

  const std::optional<std::string>& failure() const { return failure_; }
  uint64_t checks() const { return checks_; }
  template <class What>
  void Check(bool holds, What&& what) {
    ++checks_;
    if (!holds && !failure_) failure_ = what();
  }

 private:
  struct Hardware {
    bool exists = false;
    bool bound = false;
  };
  using Token = std::pair<int64_t, int64_t>;
  using Whose = std::pair<std::string, std::string>;

  void CheckFence(const Delivered& delivered, const provider::Answer& answer, const contract::Recovered& durable);
  void CheckAck(const contract::ProviderRequest& request, const contract::TransitionAck& ack,
                const contract::Recovered& durable);
  // `asked` is the number of the call that showed the record.
  void CheckRecord(const model::Machine& machine, uint64_t asked);

  std::map<Whose, Token> delivered_;                       // newest token delivered
  std::map<Whose, Token> passed_;                          // newest token answered with anything but "fenced"
  std::map<std::string, std::set<std::string>> bindings_;  // machine -> cluster and metadata it was ever asked to have
  std::map<std::string, std::pair<std::string, contract::OperationKind>> operations_;  // acknowledged id -> what it is
  std::set<std::string> started_;                                                      // ids the cloud was asked for
  std::map<std::string, Hardware> hardware_;
  std::set<std::string> lost_;                   // machines the cloud ever took away
  std::map<std::string, uint64_t> seen_failed_;  // machine -> the call that showed it Failed
  std::map<std::string, uint64_t> last_delete_;  // machine -> the newest Delete
  uint64_t deliveries_ = 0;
  std::optional<std::string> failure_;
  uint64_t checks_ = 0;
};

}  // namespace muster::sim
