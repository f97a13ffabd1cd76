// The state behind a Placer: nodes, units, compiled kinds and counters, and the steps of a placement.
//
// What is derived from the facts of nodes that rarely change (labels, taints, types, states) or from namespaces is
// dropped when they change, and made again when a kind next needs it: masks, compiled kinds, counters. What units do is
// applied at once.
//
// Read in this order: kinds.cc (how a kind is compiled), check.cc (the filters on one node), choose.cc (the best node),
// preempt.cc, placer.cc (batches).
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "placement/devices.h"
#include "placement/fast/counters.h"
#include "placement/fast/node_table.h"
#include "placement/fast/placer.h"
#include "placement/match.h"

namespace muster::placement::fast {

// The nodes that pass a set of constraints on labels, taints, cordon, type and state.
struct StaticMask {
  Bitmap all;        // every constraint
  Bitmap affinity;   // labels alone
  Bitmap tolerated;  // NoSchedule and NoExecute taints alone
};

struct Amount {
  DimIndex dim;
  int64_t milli = 0;
  Reason reason = Reason::kNone;
};

struct SpreadRow {
  CounterIndex counter;
  int64_t max_skew = 1;
  int64_t min_domains = 1;
  int64_t self = 0;
  const SpreadConstraint* constraint = nullptr;
};

struct WeightRow {
  CounterIndex counter;
  int64_t weight = 0;
};

// A kind as the search reads it.
struct KindRow {
  std::vector<Amount> request;  // in the order of fit
  model::Resources quota_use;
  bool has_derived = false;               // it is in Placer::State::derived
  std::vector<CounterIndex> feeds;        // counters that units of this kind count in
  std::vector<CounterIndex> excluded_by;  // holders whose term is about this kind

  // Compiled: made when the kind is first placed and again after nodes changed.
  bool compiled = false;
  StaticIndex mask;
  std::vector<const LabelColumn*> hard_keys;
  std::vector<SpreadRow> spread;
  std::vector<CounterIndex> colocate;  // in the order of the terms
  bool colocates_itself = false;
  std::vector<CounterIndex> exclude;
  std::vector<SpreadRow> soft_spread;
  std::vector<WeightRow> soft_units;
  bool ranked = false;               // preferences or devices come before utilisation
  std::vector<int32_t> avoided;      // by row, if any differs: PreferNoSchedule taints not tolerated
  std::vector<int64_t> node_weight;  // by row, if any differs

  uint64_t refused_at = 0;  // the change at which `refusals` was counted
  std::vector<RefusalCount> refusals;
  std::vector<int64_t> device_cost;      // by row
  std::vector<uint64_t> device_cost_at;  // by row: the row's change it was computed for
};

struct UnitRow {
  Unit unit;
  Position row = 0;
  std::vector<int32_t> devices;
  std::vector<std::string> budgets;
  bool terminating = false;
  bool may_evict = true;
  bool in_use = false;
  bool lifted = false;  // left out for the moment, to see what fits without it
};

class Placer::State {
 public:
  explicit State(Policy given) : policy(std::move(given)), device_mix(policy.device_mix), nodes(policy.strategy) {}

  // --- kinds.cc
  KindIndex AddKind(const Kind& kind);
  // At an index that is free, or the next one; equal to another kind or not.
  void NumberKind(const Kind& kind, KindIndex index);
  void IndexKind(KindIndex index);
  void ForgetKinds();
  void Compile(KindIndex kind);
  void CompileSpread(const Kind& kind, KindRow& row);
  void CompileUnits(const Kind& kind, KindRow& row);
  void CompilePreferences(const Kind& kind, KindRow& row);
  void Invalidate();
  // The row of a kind, to which something is added that Invalidate takes away again.
  KindRow& Derived(KindIndex kind);
  StaticIndex MaskFor(const Kind& kind);
  // `eligible` is called if the counter is new, and gives the nodes that count.
  CounterIndex CounterFor(CounterSpec spec, const std::function<Bitmap()>& eligible);
  CounterIndex CounterFor(CounterSpec spec);
  Bitmap EligibleFor(const SpreadConstraint& constraint, const std::set<std::string>& keys, const StaticMask& mask);
  // Nodes that pass requirements on labels.
  const Bitmap& Passing(const model::Requirement& requirement);
  Bitmap PassingAll(const std::vector<model::Requirement>& requirements);
  Bitmap PassingTerm(const NodeTerm& term);
  bool Feeds(const Counter& counter, const Kind& kind) const;
  std::vector<UnitSelector> ColocateSelectors(const Kind& kind) const;
  void AddHolders(KindIndex kind);

  // --- check.cc
  // The first filter that refuses, and its figures.
  Reason FirstRefusal(KindIndex kind, Position row, bool quota_ok) const;
  std::string DetailOf(KindIndex kind, Position row, Reason reason) const;
  bool Fits(const KindRow& kind, Position row) const;
  // Devices, ports, spread, co-location and exclusion.
  Reason CheckRest(KindIndex kind, Position row) const;
  Reason CheckUnits(const KindRow& kind, Position row) const;
  bool HardSpreadAllows(const KindRow& kind, Position row) const;
  bool PortsFree(const Kind& kind, Position row) const;
  // The first resource of the quota that the unit would exceed, and by how much.
  std::optional<std::pair<std::string, int64_t>> OverQuota(KindIndex kind) const;
  std::vector<RefusalCount> CountRefusals(KindIndex kind, bool quota_ok) const;
  std::string FitDetail(KindIndex kind, Position row) const;
  std::string HeldPortDetail(const Kind& kind, Position row) const;
  std::string SpreadDetail(const Kind& kind, const KindRow& compiled, Position row) const;
  std::string ColocateDetailAt(const Kind& kind, const KindRow& compiled, Position row, Reason reason) const;

  // --- choose.cc
  Position Choose(KindIndex kind);  // kNoValue: no node fits
  Position ChoosePlain(KindIndex kind) const;
  Position ChooseRanked(KindIndex kind);
  int64_t CostOfDevices(KindIndex kind, Position row);
  bool BlockMayHold(const KindRow& kind, size_t block) const;

  // --- preempt.cc
  struct Preemption {
    Position row = kNoValue;
    std::vector<UnitSlot> victims;
  };
  Preemption FindPreemption(KindIndex kind);
  std::vector<UnitSlot> VictimsOn(KindIndex kind, Position row);
  std::vector<UnitSlot> Candidates(int32_t priority, Position row) const;
  bool FitsWithout(KindIndex kind, Position row, const std::vector<UnitSlot>& units);
  bool CouldFit(KindIndex kind, Position row, const std::vector<UnitSlot>& candidates) const;
  int64_t Allowed(const std::string& budget) const;

  // --- units.cc
  UnitSlot AddUnit(Unit unit, Position row, std::vector<int32_t> devices);
  void Enter(UnitSlot slot);
  void RemoveUnit(UnitSlot slot);
  void AddQuotaUse(KindIndex kind, int64_t sign);
  void CountQuotaUse();
  // Takes what the unit takes from its node and counters, or gives it back.
  void Shift(const UnitRow& unit, int sign);
  void Changed(Position row) { row_change[row] = ++changes; }
  void CheckInvariants() const;

  // --- placer.cc
  void GrowRows();
  void UpsertNode(const Node& node);
  Outcome Refuse(const Unit& unit, bool quota_ok);
  Outcome PlaceOne(const Unit& unit);

  const Policy policy;
  const DeviceMix device_mix;
  NodeTable nodes;
  std::vector<std::vector<int32_t>> free_devices;  // by row
  std::vector<std::vector<UnitSlot>> units_on;     // by row
  std::vector<uint64_t> row_change;                // by row: the change it last had
  uint64_t changes = 1;
  bool any_devices = false;  // whether a node has, or had, devices

  std::deque<Kind> kinds;  // rows point into it
  std::deque<KindRow> kind_rows;
  std::unordered_map<std::string, KindIndex> kind_index;  // of the first kinds, as many as AddKind has seen
  size_t kinds_indexed = 0;
  std::vector<KindIndex> free_kinds;  // of kinds that were forgotten
  std::vector<KindIndex> excluding;   // kinds with exclusion terms
  std::vector<KindIndex> derived;     // kinds that are compiled, feed a counter or are excluded by one: those that
                                      // Invalidate visits, for a node that joins must not cost a visit of all kinds
  KindsByLabel kinds_by_label;

  std::map<model::Requirement, Bitmap> passing;
  std::deque<StaticMask> masks;
  std::map<std::string, StaticIndex> mask_index;
  std::deque<Counter> counters;
  std::map<CounterSpec, CounterIndex> counter_index;
  LabelIndex<CounterIndex> counters_by_label;  // of matches: what a new kind may feed
  LabelIndex<CounterIndex> holders_by_label;   // of holders: which terms may be about a new kind
  bool holders_known = false;                  // every kind's exclusion terms have their counters

  std::deque<UnitRow> units;
  std::vector<UnitSlot> free_slots;
  std::unordered_map<std::string, UnitSlot> slot_of;

  Namespaces namespaces;
  std::map<std::string, int64_t> budgets;
  std::map<std::string, model::Resources> quotas;
  std::map<std::string, std::map<std::string, int64_t>> quota_used;  // by tenant and resource
};

}  // namespace muster::placement::fast
