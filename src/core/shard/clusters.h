// Clusters: the names of all clusters this shard has heard of: from a session, a machine, an order or a durable row.
// That a cluster is decommissioned is known for ever; its name takes a place only while another part uses it.
// A session of an unknown one is refused beyond kMostClusters. A name that no part uses is removed after a while
// (cluster_sweep.h). And which of them an operator has said to be gone, until he says otherwise; durable.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "base/fields.h"
#include "contract/tables.h"
#include "core/shard/step_context.h"

namespace muster::shard {

inline constexpr contract::KeySet<std::string> kDecommissionedRows{.prefix = "decommissioned/",
                                                                   .value = ""};  // cluster

inline constexpr size_t kMostClusters = 4'096;
inline constexpr size_t kLongestName = 253;  // bytes, of a session's cluster

class Clusters {
 public:
  using Names = std::set<std::string, std::less<>>;
  struct State {
    Names names;
    Names decommissioned;

    MUSTER_FIELDS(State, names, decommissioned)
  };

  explicit Clusters(State state) : state_(std::move(state)) {}

  void RegisterRows(contract::RowReader& reader) {
    reader.On(kDecommissionedRows, [this](std::string name) { state_.decommissioned.insert(std::move(name)); });
  }
  void Add(const std::string& name) { state_.names.insert(name); }
  void Remove(const std::string& name) { state_.names.erase(name); }
  const Names& names() const { return state_.names; }

  // Its demand has ended, and its machines are taken back without a session.
  bool IsDecommissioned(const std::string& name) const { return state_.decommissioned.contains(name); }
  void Decommission(const std::string& name, StepContext& ctx) {
    state_.decommissioned.insert(name);
    ctx.Write(kDecommissionedRows.Put(name));
  }
  // Whether it was decommissioned.
  bool Reinstate(const std::string& name, StepContext& ctx) {
    if (state_.decommissioned.erase(name) == 0) return false;
    ctx.Write(kDecommissionedRows.Erase(name));
    return true;
  }

  const State& state() const { return state_; }

 private:
  State state_;
};

}  // namespace muster::shard
