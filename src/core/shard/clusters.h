// Clusters: the names of all clusters this shard has heard of: from a session, a machine, an order or a durable row.
// A name is never removed.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>

#include "base/fields.h"

namespace muster::shard {

class Clusters {
 public:
  using Names = std::set<std::string, std::less<>>;
  struct State {
    Names names;

    MUSTER_FIELDS(State, names)
  };

  explicit Clusters(State state) : state_(std::move(state)) {}

  void Add(const std::string& name) { state_.names.insert(name); }
  const Names& names() const { return state_.names; }

  const State& state() const { return state_; }

 private:
  State state_;
};

}  // namespace muster::shard
