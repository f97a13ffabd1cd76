// PodShape: what placement needs to know of a pod or of a pod template, read from its JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kube/item.h"
#include "placement/kind.h"

namespace muster::kube {

struct PodShape {
  placement::Kind kind;
  std::string priority_class;             // to be looked up; empty: the kind has its priority
  bool without_requests = false;          // neither cpu nor memory is requested
  std::vector<std::string> claims;        // names of the volume claims it uses, in its own namespace
  std::vector<std::string_view> unknown;  // what is not understood: "resourceClaims", ...
};

// `metadata` and `spec` of a pod or of a template, `status` of a pod. Labels and everything the scheduler reads; the
// request holds one slot ("pods"). Errors go to the item.
PodShape ReadPodShape(std::string_view name_space, ItemView metadata, ItemView spec, ItemView status);

// A label selector: `matchLabels` and `matchExpressions`; not given if the view is not present.
placement::Selector ReadSelector(ItemView view);
// `nodeSelectorTerms`, as affinity and volumes have them.
std::vector<placement::NodeTerm> ReadNodeTerms(ItemView terms);
model::TextMap ReadTextMap(ItemView view);
placement::Taint ReadTaint(ItemView view);

}  // namespace muster::kube
