// How nodes, workloads, sets, quotas, events and decisions read in tables.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "cli/cluster_names.h"
#include "cli/table.h"
#include "contract/cluster_views.h"

namespace muster::cli {

using Row = std::vector<std::string>;

// How the rows are made: `wide` has more columns; `typed` writes names as "workload/web-0", where types are mixed.
struct RowStyle {
  WallTime now;
  bool wide = false;
  bool typed = false;
};

Row HeadOf(ClusterKind kind, bool wide);
Row RowOf(const contract::WorkloadView& view, const RowStyle& style);
Row RowOf(const contract::NodeView& view, const RowStyle& style);
Row RowOf(const contract::SetView& view, const RowStyle& style);
Row RowOf(const contract::QuotaView& view, const RowStyle& style);
Row RowOf(const contract::EventView& view, const RowStyle& style);
Row RowOf(const contract::Decision& decision, const RowStyle& style);
// An object of a watch that is gone.
Row DeletedRow(ClusterKind kind, const std::string& name, const RowStyle& style);

// "12s", "5m", "3h", "2d" since then; "-" for a time that is not known or in the future.
std::string AgeOf(std::optional<WallTime> then, WallTime now);
// "Ready", "Ready,Cordoned", "NotReady,Draining".
std::string StatusOf(const contract::NodeView& view);
// "1500m/4"; "-" where there is neither.
std::string PartOf(std::string_view dimension, int64_t part_milli, int64_t whole_milli);
// "app=web,tier=front"; "-" for none.
std::string LabelsText(const std::map<std::string, std::string>& labels);

// Rows that come one after the other, in columns that only grow: for a watch.
class TableStream {
 public:
  // The text of one row, with its newline.
  std::string Add(const Row& row);
  // The rows of the first list, so that the head fits them.
  std::string AddAll(const Rows& rows);

 private:
  void Widen(const Row& row);
  std::vector<size_t> widths_;
};

}  // namespace muster::cli
