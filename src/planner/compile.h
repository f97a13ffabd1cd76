// Compile: a request in dense integers (problem.h), in the order of its units, kinds and candidates.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "placement/types.h"
#include "planner/node_classes.h"
#include "planner/plan.h"
#include "planner/problem.h"
#include "planner/selectors.h"

namespace muster::planner {

// One whole device in the dimension of devices. A part of a device is rounded up to a power of two of these, so that
// parts whose sum fits the node's devices always fit device by device.
inline constexpr int64_t kDeviceParts = 1024;
inline constexpr std::string_view kDeviceDimension = "devices";
int64_t DeviceParts(const placement::DeviceRequest& request);

// Whose rules count. What is bought must fit the rules of the units that are placed; the exclusions of units that stay
// hold against newcomers in any case. With kAll no rule of a unit that stays may get worse either: its topology keys
// make cells, its spread over hosts limits newcomers, and Problem::domain_selectors, staying_rules and looks are
// filled.
enum class RulesOf : uint8_t { kPlaced, kAll };

// The units that a plan places: pending ones, and those on nodes that are not kept unless they terminate.
std::vector<const placement::Unit*> UnitsToPlace(const Request& request);

class Compiler {
 public:
  // Both outlive the compiler.
  Compiler(const Request& request, const std::vector<const placement::Unit*>& units, RulesOf rules = RulesOf::kPlaced);
  Problem Run();

 private:
  void AddDimensions();
  void AddSelectors();
  void AddTopologyKeys();
  void AddCells();
  uint32_t CellOf(const model::TextMap& labels, std::map<std::vector<std::string>, uint32_t>& known);
  void AddFixedNodes();
  void AddFixedUnits();
  void AddChoices();
  void AddKinds();
  void AddNodeRules(const placement::Kind& kind, uint32_t k, DenseKind& dense);
  void AddSpread(const placement::Kind& kind, const placement::SpreadConstraint& spread, DenseKind& dense);
  void MergeBundles();
  void MarkDomainSelectors();
  void AddStayingRules();
  void AddLooks();
  std::vector<int64_t> RequestOf(const placement::Kind& kind) const;
  std::vector<int64_t> CapacityOf(const model::Resources& allocatable, const std::vector<int32_t>& devices) const;
  uint32_t KeyOf(const std::string& topology_key) const;
  void AddFixedUnit(const placement::PlacedUnit& placed, FixedNode& fixed);

  const Request& request_;
  const KeptNodes kept_;
  const RulesOf rules_;
  std::vector<uint32_t> used_kinds_;                  // of the world, ascending, with units to place
  std::vector<uint32_t> staying_kinds_;               // of the world, ascending, with units that stay
  std::vector<std::vector<uint32_t>> units_of_kind_;  // by kind of the world
  SelectorTable selectors_;
  NodeClasses classes_;
  std::vector<uint32_t> class_of_candidate_;
  std::vector<uint32_t> cell_of_candidate_;
  std::vector<std::vector<bool>> classes_in_cell_;
  std::map<std::string, uint32_t> fixed_by_node_;  // node id -> position in Problem::fixed
  Problem problem_;
};

}  // namespace muster::planner
