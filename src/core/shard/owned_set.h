// OwnedSet: which machines are this shard's: those of the domains that a coordinator assigned, else those of the
// configured domains, else all. Once a coordinator assigned or took a domain, its word alone counts, also after a
// restart.
#pragma once

#include <set>
#include <utility>

#include "base/fields.h"
#include "contract/coordinator.h"
#include "contract/tables.h"
#include "core/shard/config.h"
#include "core/shard/step_context.h"
#include "model/machine.h"

namespace muster::shard {

inline constexpr contract::Single<bool> kManagedRow{"managed"};  // a coordinator assigns domains
inline constexpr contract::KeySet<contract::Domain> kDomainRows{.prefix = "domain/", .value = "\x01"};

class OwnedSet {
 public:
  struct State {
    bool managed = false;
    std::set<contract::Domain> domains;

    MUSTER_FIELDS(State, managed, domains)
  };

  explicit OwnedSet(const Config& config, State state) : config_(config), state_(std::move(state)) {}

  void RegisterRows(contract::RowReader& reader);
  bool Owns(const model::Machine& machine) const;
  void Assign(const contract::Domain& domain, StepContext& ctx);
  void Unassign(const contract::Domain& domain, StepContext& ctx);

  const State& state() const { return state_; }

 private:
  void SetManaged(StepContext& ctx);

  const Config& config_;
  State state_;
};

}  // namespace muster::shard
