// How long the demand of a large cluster is on the wire: it grows with the kinds of work, not with the members.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bigfleet/v1alpha1/capacity.pb.h"
#include "core/operators/demand.h"
#include "rpc/rollup_conversion.h"

namespace muster::operators {
namespace {

// Members of that many kinds, each kind with a priority and requirements of its own.
size_t WireBytes(int members, int kinds) {
  Demand demand("blue", 15s, 10min);
  for (int i = 0; i < members; ++i) {
    const int kind = i % kinds;
    contract::WorkloadView view{.workload = fmt::format("set-{}-{}", kind, i)};
    view.set = fmt::format("set-{}", kind);
    view.spec.resources = {{"cpu", 100 + kind}, {"memory", int64_t{1} << 30}};
    view.spec.priority = 100 * (kind + 1);
    view.spec.requirements = {{{.key = "kubernetes.io/arch", .op = model::Operator::kIn, .values = {"amd64"}},
                               {.key = "node.kubernetes.io/instance-type",
                                .op = model::Operator::kIn,
                                .values = {"m6i.large", "m6i.xlarge", fmt::format("m{}.large", kind)}}}};
    demand.SetWorkload(view.workload, view, MonoTime{});
  }
  bigfleet::v1alpha1::ClusterCapacityNeeds wire;
  for (const model::Need& need : demand.Needs()) rpc::ToWire(need, *wire.add_needs());
  EXPECT_EQ(wire.needs_size(), kinds);
  return wire.ByteSizeLong();
}

TEST(OperatorRollup, GrowsWithKindsNotWithMembers) {
  const size_t large = WireBytes(10'000, 20);
  RecordProperty("bytes", static_cast<int>(large));
  EXPECT_LT(large, 4'500U) << "10,000 members of 20 kinds";
  // A sum of more members is a longer number, nothing else.
  EXPECT_LT(large, WireBytes(100, 20) + 20U * 8);
}

}  // namespace
}  // namespace muster::operators
