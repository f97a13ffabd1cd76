#include "cli/up_demand.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace muster::cli {
namespace {

// A wave between 0 and `height`, up and down again within `period` seconds.
int64_t Wave(int64_t second, int64_t period, int64_t height) {
  const int64_t at = ((second % period) + period) % period;
  return height * (period / 2 - std::abs(at - period / 2)) / (period / 2);
}

// Whether the second lies in the first `lasting` of every `period`, counted from `offset`.
bool During(int64_t second, int64_t period, int64_t lasting, int64_t offset) {
  return second >= offset && (second - offset) % period < lasting;
}

std::string Plain(std::string_view what, int64_t pods, int64_t cpu, int64_t memory_gib, int priority,
                  std::string_view more = {}) {
  if (pods == 0) return {};
  return fmt::format(
      "# {}\n- aggregate: {{cpu: {}, memory: {}Gi}}\n  minUnit: {{cpu: {}, memory: {}Gi}}\n  priority: {}\n"
      "  requirements:\n  - {{key: accelerator, operator: DoesNotExist}}\n{}",
      what, pods * cpu, pods * memory_gib, cpu, memory_gib, priority, more);
}

// Web traffic: breathes, and bursts.
std::string Blue(int64_t second) {
  const int64_t burst = During(second, 240, 40, 60) ? 600 : 0;
  return Plain("web", 1200 + 25 * (Wave(second, 180, 500) / 25) + burst, 2, 8, 1000,
               "  interruptionPenalty: 1\n  reclamationPenalty: 1\n"
               "  spread:\n  - {topologyKey: topology.kubernetes.io/zone, maxSkew: 4}\n") +
         Plain("cache", 200, 4, 30, 1000, "  interruptionPenalty: pinned\n");
}

// Batch work: takes what is cheap, wants a lot now and then.
std::string Green(int64_t second) {
  return Plain("batch", 400 + 50 * (Wave(second + 40, 150, 800) / 50), 4, 8, 100) +
         Plain("night run", During(second, 300, 60, 120) ? 500 : 0, 8, 16, 10);
}

// Training: gangs whose machines must stand in one rack.
std::string Amber(int64_t second) {
  std::string needs = Plain("notebooks", 60 + Wave(second, 120, 40), 2, 8, 500);
  for (int64_t job = 0; job < 3; ++job) {
    if (!During(second, 210, 90, 30 + 70 * job)) continue;
    needs += fmt::format(
        "# training job {0}\n- aggregate: {{cpu: 256, memory: 1Ti, nvidia.com/gpu: 16}}\n"
        "  minUnit: {{cpu: 128, memory: 512Gi, nvidia.com/gpu: 8}}\n  priority: 2000\n  group: training-{0}\n"
        "  requirements:\n  - {{key: topology.bigfleet/rack, operator: Same}}\n",
        (second - 30 - 70 * job) / 210 * 3 + job);
  }
  return needs;
}

}  // namespace

std::vector<std::string_view> ExampleClusters() { return {"blue", "green", "amber"}; }

std::string ExampleNeeds(std::string_view cluster, int64_t second) {
  const std::string needs = cluster == "blue" ? Blue(second) : cluster == "green" ? Green(second) : Amber(second);
  return "# What cluster " + std::string(cluster) + " wants; muster up writes it anew as time passes.\n" + needs;
}

std::string_view ExampleCatalogue() {
  return R"(# The machines of `muster up`. Times are short, so that there is something to see.
zones: [zone-a, zone-b, zone-c]
racks: 4              # in each zone
notice: 10s           # between the warning and the end of an interrupted machine
types:
  - name: metal-64
    capacity: bare-metal
    resources: {cpu: 64, memory: 512Gi}
    price: 1.10
    share: 2
    starts: idle        # owned: it is there from the beginning
    deletable: false    # and cannot be given back
    create: {median: 4s, p99: 10s, fails: 0.002}
    configure: {median: 2s, p99: 6s, fails: 0.002}
    drain: {median: 2s, p99: 8s}
    delete: {median: 2s, p99: 8s}
  - name: metal-8gpu
    capacity: bare-metal
    resources: {cpu: 128, memory: 1Ti, nvidia.com/gpu: 8}
    price: 12.50
    share: 2
    starts: idle
    deletable: false
    labels: {accelerator: gpu}
    create: {median: 4s, p99: 10s, fails: 0.002}
    configure: {median: 3s, p99: 8s, fails: 0.002}
    drain: {median: 2s, p99: 8s}
    delete: {median: 2s, p99: 8s}
  - name: reserved-32
    capacity: reserved
    resources: {cpu: 32, memory: 128Gi}
    price: 0.92
    share: 6
    create: {median: 3s, p99: 10s, fails: 0.001}
    configure: {median: 2s, p99: 6s, fails: 0.001}
    drain: {median: 2s, p99: 8s}
    delete: {median: 2s, p99: 8s}
  - name: on-demand-16
    capacity: on-demand
    resources: {cpu: 16, memory: 64Gi}
    price: 0.77
    share: 40
    create: {median: 5s, p99: 15s, fails: 0.002}
    configure: {median: 2s, p99: 6s, fails: 0.002}
    drain: {median: 2s, p99: 8s}
    delete: {median: 2s, p99: 8s}
  - name: spot-16
    capacity: spot
    resources: {cpu: 16, memory: 64Gi}
    price: 0.25
    share: 50
    interruption: 0.05   # an hour
    create: {median: 5s, p99: 20s, fails: 0.01}
    configure: {median: 2s, p99: 6s, fails: 0.002}
    drain: {median: 2s, p99: 8s}
    delete: {median: 2s, p99: 8s}
)";
}

}  // namespace muster::cli
