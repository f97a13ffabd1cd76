// Placer: where units go, over indexes of a cluster that lives on from one batch to the next. Its answers are those of
// placement/reference, always.
//
//   fast::Placer placer(policy);
//   placer.Load(world);                       // or node by node, unit by unit
//   for (const Outcome& outcome : placer.Place(batch)) ...
//   placer.UpsertNode(node);                  // the cluster changes
//   placer.RemoveUnit("shop/web-3");
//
// Thread-safety: none; one owner. Nothing depends on the number of threads: it uses the caller's.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "placement/types.h"

namespace muster::placement::fast {

class Placer {
 public:
  explicit Placer(Policy policy = {});
  ~Placer();
  Placer(Placer&&) noexcept;
  Placer& operator=(Placer&&) noexcept;

  // Everything of a valid world (CheckStructure), in place of what was there. Kinds keep their indexes.
  void Load(const World& world);

  // The index of an equal kind, or a new one.
  KindIndex AddKind(const Kind& kind);
  const Kind& KindAt(KindIndex kind) const;
  // Forgets the kinds that no unit has: their indexes are void, the others stay. Costs as much as all kinds.
  void ForgetKinds();

  // A new node, or new facts about one; its units stay on it.
  void UpsertNode(const Node& node);
  // The node and the units on it. False: there is no such node.
  bool RemoveNode(std::string_view id);

  // The node must be there and the unit's id unused (checked).
  void AddUnit(const PlacedUnit& placed);
  // False: there is no such unit.
  bool RemoveUnit(std::string_view id);

  void SetNamespace(const std::string& name, const model::TextMap& labels);
  void SetBudget(const Budget& budget);
  void SetQuota(const std::string& tenant, const model::Resources& limit);
  void RemoveQuota(const std::string& tenant);

  // Places the units, the most important first, and keeps them; victims leave. Outcomes are in the order of `units`.
  // Ids must be unused (checked).
  std::vector<Outcome> Place(std::span<const Unit> units);

  // For every node, by id, the first filter that refuses a unit of this kind, with the figures.
  std::vector<NodeVerdict> Feasible(KindIndex kind);

  size_t nodes() const;
  size_t kinds() const;
  size_t units() const;
  // The placed units, by id: what is here, for tests and snapshots.
  std::vector<PlacedUnit> Placed() const;
  // What must hold between the indexes, recomputed; a bug ends the program. For tests.
  void CheckInvariants() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace muster::placement::fast
