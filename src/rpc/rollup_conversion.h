// Between a roll-up on the wire and the contract's: a cluster's whole demand, some hundreds of rows a second from each
// of some hundreds of clusters.
//
// A roll-up is read whole or refused whole, by the first field that is wrong ("needs[17].min_unit.cpu: ..."). Refused
// are operators and penalty buckets that do not exist and quantities that do not parse; operator 0, an unknown
// when_unsatisfiable (read as unspecified) and empty maps are not.
//
// Thread-safety: functions without state; a ProfileTable belongs to whoever reads with it, one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/status.h"
#include "contract/session.h"
#include "model/need.h"
#include "model/profile.h"

namespace bigfleet::v1alpha1 {
class CapacityNeed;
class ClusterCapacityNeeds;
}  // namespace bigfleet::v1alpha1

namespace muster::rpc {

// The profiles of the latest roll-up of a cluster, so that equal ones are one object from row to row and from roll-up
// to roll-up: making one costs more than everything else in a row, and whoever sees the same object again need not
// compare. What a roll-up does not use is forgotten with it.
class ProfileTable {
 public:
  // The profile of a row; `path` names it for the error.
  Result<model::Profile> Read(const bigfleet::v1alpha1::CapacityNeed& row, std::string_view path);
  // A roll-up has been read, or refused.
  void EndRollup();
  size_t size() const { return profiles_.size(); }

 private:
  struct Known {
    model::Profile profile;
    uint64_t used = 0;  // the latest roll-up that did
  };
  struct Spelling {
    Known* profile = nullptr;
    uint64_t used = 0;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  uint64_t rollup_ = 1;
  std::string spelt_;  // of the row that is being read
  // One profile may be spelt in many ways: its parts come in any order.
  std::unordered_map<std::string, Spelling, Hash, std::equal_to<>> spellings_;
  std::unordered_map<std::string_view, Known> profiles_;  // by fingerprint, whose text the profile owns
};

// One need; its cluster and arrival are the caller's to set.
Result<model::Need> ReadNeed(const bigfleet::v1alpha1::CapacityNeed& row, std::string_view path,
                             ProfileTable& profiles);
// Digests of the rows included, so on a thread that has time. Arrivals are zero.
Result<contract::Rollup> ReadRollup(const bigfleet::v1alpha1::ClusterCapacityNeeds& wire, ProfileTable& profiles);

void ToWire(const model::Need& need, bigfleet::v1alpha1::CapacityNeed& wire);
void ToWire(const contract::Rollup& rollup, bigfleet::v1alpha1::ClusterCapacityNeeds& wire);

}  // namespace muster::rpc
