// The figures behind a refusal, as text: "memory short by 2Gi". One place, so that every placer says the same.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "placement/types.h"

namespace muster::placement {

std::string LabelsDetail(const Kind& kind, const Node& node);  // which requirement fails
std::string TypeDetail(model::WorkloadType type);
std::string ShortDetail(std::string_view resource, int64_t asked, int64_t left);
std::string DeviceDetail(const DeviceRequest& request, std::span<const int32_t> free, std::span<const int32_t> size);
std::string PortDetail(const HostPort& port, std::string_view holder);
std::string TaintDetail(const Taint& taint);
std::string MissingKeyDetail(std::string_view key);
std::string SkewDetail(std::string_view key, std::string_view value, int64_t count, int64_t least, int32_t max_skew);
std::string ColocateDetail(const UnitTerm& term, std::string_view value);
std::string ExcludeDetail(const UnitTerm& term, std::string_view value);
std::string QuotaDetail(std::string_view tenant, std::string_view resource, int64_t over);

// Refusals of one unit as a sentence: every node up to 20, beyond that so many nodes for each class of refusal
// ("38 nodes: label zone In [b]; 12 nodes: memory short by 2Gi"), the largest class first.
std::string Summarise(std::span<const NodeVerdict> verdicts);

}  // namespace muster::placement
