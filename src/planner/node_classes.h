// NodeClasses: nodes and candidates that no unit's labels, terms, tolerations or type tells apart, and which kinds may
// use which class.
//
// Only label keys that some kind asks for count, so thousands of candidates fall into a few classes and each distinct
// set of requirements is tested once against each class.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "placement/types.h"
#include "planner/catalogue.h"

namespace muster::planner {

class NodeClasses {
 public:
  // `kinds`: positions in the world's kinds of all units that are placed. The world outlives the classes.
  NodeClasses(const placement::World& world, const std::vector<uint32_t>& kinds);

  // Before the first class: labels that this kind asks for tell nodes apart too.
  void AskFor(const placement::Kind& kind);

  uint32_t ClassOf(const Candidate& candidate);
  uint32_t ClassOf(const placement::Node& node);

  // After the last class: for the kind at this position, the row of masks().
  void MakeMasks();
  uint32_t MaskOf(uint32_t kind) const { return mask_of_.at(kind); }
  const std::vector<std::vector<bool>>& masks() const { return masks_; }

  // Whether a node of the class counts for the kind's spread: its labels, and its taints if they are honoured.
  bool Eligible(const placement::Kind& kind, const placement::SpreadConstraint& constraint, uint32_t node_class) const;
  const placement::Node& Example(uint32_t node_class) const { return examples_[node_class]; }
  size_t size() const { return examples_.size(); }

 private:
  uint32_t Intern(placement::Node projected);

  const placement::World* world_;
  std::vector<uint32_t> kinds_;
  std::set<std::string> keys_;  // label keys that some kind asks for
  bool names_ = false;          // whether some kind asks for a node's name
  std::vector<placement::Node> examples_;
  std::map<std::string, uint32_t> class_of_;  // by the projected node's encoding
  std::map<uint32_t, uint32_t> mask_of_;
  std::vector<std::vector<bool>> masks_;
};

}  // namespace muster::planner
