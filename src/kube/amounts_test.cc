// What Kubernetes sets aside for a pod: https://kubernetes.io/docs/concepts/workloads/pods/init-containers and
// .../sidecar-containers, sections "Resource sharing within containers".
#include "kube/amounts.h"

#include <gtest/gtest.h>

#include "kube/dump_for_test.h"

namespace muster::kube {
namespace {

// Containers as "cpu,memory" pairs of requests; a sidecar is an init container that restarts always.
std::string Container(std::string_view name, std::string_view requests, bool sidecar = false) {
  return fmt::format(R"({{"name":"{}","resources":{{"requests":{{{}}}}}{}}})", name, requests,
                     sidecar ? R"(,"restartPolicy":"Always")" : "");
}

// The request of the only pod, without its slot.
std::string RequestOf(std::string_view spec, std::string_view status = "{}") {
  const auto dump = ReadDumpText(fmt::format(
      R"({{"kind":"Pod","metadata":{{"name":"p","namespace":"n"}},"spec":{{{}}},"status":{}}})", spec, status));
  if (!dump) return dump.error().message();
  model::Resources request = dump->kinds[0].request;
  request.Set("pods", 0);
  return request.ToString();
}

TEST(PodRequests, ContainersAreSummed) {
  EXPECT_EQ(RequestOf(fmt::format(R"("containers":[{},{}])", Container("a", R"("cpu":"500m","memory":"1Gi")"),
                                  Container("b", R"("cpu":"250m","nvidia.com/gpu":2)"))),
            "cpu=750m memory=1Gi nvidia.com/gpu=2");
}

TEST(PodRequests, TheLargestInitContainerCountsIfItIsLarger) {
  EXPECT_EQ(RequestOf(fmt::format(R"("containers":[{}],"initContainers":[{},{}])",
                                  Container("a", R"("cpu":"1","memory":"1Gi")"), Container("i", R"("cpu":"3")"),
                                  Container("j", R"("cpu":"2","memory":"512Mi")"))),
            "cpu=3 memory=1Gi");
}

TEST(PodRequests, SidecarsRunBesideContainersAndBesideLaterInitContainers) {
  // i runs before the sidecar: 3. j runs beside it: 2 + 1. Containers run beside it: 1 + 1.
  EXPECT_EQ(RequestOf(fmt::format(R"("containers":[{}],"initContainers":[{},{},{}])", Container("a", R"("cpu":"1")"),
                                  Container("i", R"("cpu":"2500m")"), Container("s", R"("cpu":"1")", true),
                                  Container("j", R"("cpu":"2")"))),
            "cpu=3");
  // The order matters: before the sidecar, j needs 2 alone.
  EXPECT_EQ(RequestOf(fmt::format(R"("containers":[{}],"initContainers":[{},{}])", Container("a", R"("cpu":"1")"),
                                  Container("j", R"("cpu":"2")"), Container("s", R"("cpu":"500m")", true))),
            "cpu=2");
  EXPECT_EQ(RequestOf(fmt::format(R"("containers":[{}],"initContainers":[{},{}])", Container("a", R"("cpu":"1")"),
                                  Container("s", R"("cpu":"500m")", true), Container("t", R"("cpu":"700m")", true))),
            "cpu=2200m");
}

TEST(PodRequests, LimitsStandInForAbsentRequests) {
  EXPECT_EQ(RequestOf(R"("containers":[{"name":"a","resources":{"limits":{"cpu":"2","memory":"1Gi"},)"
                      R"("requests":{"cpu":"1"}}}])"),
            "cpu=1 memory=1Gi");
}

TEST(PodRequests, OverheadIsAdded) {
  EXPECT_EQ(
      RequestOf(fmt::format(R"("containers":[{}],"initContainers":[{}],"overhead":{{"cpu":"250m","memory":"64Mi"}})",
                            Container("a", R"("cpu":"1")"), Container("i", R"("cpu":"2")"))),
      "cpu=2250m memory=64Mi");
}

TEST(PodRequests, ResourcesOfThePodReplaceTheSum) {
  EXPECT_EQ(RequestOf(fmt::format(R"("containers":[{},{}],"resources":{{"requests":{{"cpu":"3"}}}})",
                                  Container("a", R"("cpu":"1","memory":"1Gi")"), Container("b", R"("cpu":"1")"))),
            "cpu=3 memory=1Gi");
  // A limit of the pod counts where nothing is requested.
  EXPECT_EQ(RequestOf(R"("containers":[{"name":"a"}],"resources":{"limits":{"memory":"2Gi","example.com/x":"1"}})"),
            "memory=2Gi");
  EXPECT_EQ(
      RequestOf(fmt::format(R"("containers":[{}],"resources":{{"requests":{{"cpu":"1"}}}},"overhead":{{"cpu":"100m"}})",
                            Container("a", R"("cpu":"4")"))),
      "cpu=1100m");
}

TEST(PodRequests, AResizeCountsAsTheLarger) {
  const std::string spec = fmt::format(R"("containers":[{}])", Container("a", R"("cpu":"1","memory":"4Gi")"));
  EXPECT_EQ(
      RequestOf(spec, R"({"containerStatuses":[{"name":"a","resources":{"requests":{"cpu":"2","memory":"2Gi"}}}]})"),
      "cpu=2 memory=4Gi");
  EXPECT_EQ(RequestOf(spec, R"({"containerStatuses":[{"name":"a","allocatedResources":{"cpu":"3"}}]})"),
            "cpu=3 memory=4Gi");
  EXPECT_EQ(RequestOf(spec, R"({"containerStatuses":[{"name":"other","allocatedResources":{"cpu":"3"}}]})"),
            "cpu=1 memory=4Gi");
}

TEST(PodRequests, EphemeralStorageAndExtendedResources) {
  EXPECT_EQ(RequestOf(fmt::format(R"("containers":[{}])",
                                  Container("a", R"("ephemeral-storage":"2Gi","example.com/fpga":"1")"))),
            "ephemeral-storage=2Gi example.com/fpga=1");
}

TEST(PodRequests, MalformedAmountsAreErrorsThatSayWhere) {
  EXPECT_TRUE(RequestOf(fmt::format(R"("containers":[{}])", Container("a", R"("cpu":"4x")")))
                  .starts_with("dump.json:1:1 (Pod n/p): spec.containers[0].resources.requests.cpu: quantity \"4x\""));
  EXPECT_EQ(RequestOf(fmt::format(R"("containers":[{}])", Container("a", R"("cpu":"-1")"))),
            "dump.json:1:1 (Pod n/p): spec.containers[0].resources.requests.cpu: the amount is negative");
  EXPECT_EQ(RequestOf(R"("containers":{"a":1})"),
            "dump.json:1:1 (Pod n/p): spec.containers: expected a list but found an object");
  // Sums beyond all numbers do not wrap around.
  EXPECT_EQ(RequestOf(fmt::format(R"("containers":[{},{}])", Container("a", R"("cpu":"9223372036854775")"),
                                  Container("b", R"("cpu":"9223372036854775")"))),
            "cpu=9223372036854775807m");
}

}  // namespace
}  // namespace muster::kube
