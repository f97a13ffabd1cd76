#include "cli/cluster_documents.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "base/source_dir_for_test.h"
#include "model/workload_decode.h"

namespace muster::cli {
namespace {

// A file with every key of docs/workloads.md.
constexpr std::string_view kFile = R"(
kind: Set
name: web
tenant: shop
labels: {app: web, "odd: key": "1"}
replicas: 6
update: {maxUnavailable: 25%, maxSurge: 1}
minAvailable: 4
template:
  type: container
  image: registry.example/web:1.4
  command: [serve, --port, "8080"]
  env: {MODE: production}
  secretEnv: {TOKEN: s3cr3t}
  ports:
  - {container: 8080, host: 80, protocol: UDP, hostIP: 10.0.0.1}
  volumes:
  - {source: /srv/web, target: /data, readOnly: true}
  resources: {cpu: 500m, memory: 1Gi, nvidia.com/gpu: 1}
  requirements:
  - {key: zone, operator: In, values: [a, b]}
  tolerations:
  - {key: dedicated, operator: Equal, value: web, effect: NoSchedule}
  spread:
  - topologyKey: zone
    maxSkew: 2
    whenUnsatisfiable: DoNotSchedule
    minDomains: 3
    selector: {app: web}
    matchLabelKeys: [release]
    nodeAffinityPolicy: Ignore
    nodeTaintsPolicy: Honor
  - {topologyKey: rack, whenUnsatisfiable: ScheduleAnyway}
  colocate:
  - {topologyKey: zone, selector: {app: cache}}
  exclude:
  - {topologyKey: host}
  - {topologyKey: rack, selector: {app: db}, weight: 50}
  priority: 1000
  penalties: {interruption: $0.50, reclamation: pinned}
  restart: on-failure
  grace: 45s
---
kind: Workload
name: db
template:
  type: process
  command: [db]
  requirements: [[{key: pool, values: [a]}], [{key: pool, values: [b]}, {key: disk, operator: Exists}]]
---
kind: Job
name: batch
replicas: 3
template: {type: compose, compose: "services: {}", restart: never}
---
kind: Quota
tenant: shop
limits: {cpu: 100, memory: 400Gi, disk: 2Ti, gpu: 8, workloads: 500}
rate: {appliesPerSecond: 2.5, burst: 50}
)";

TEST(ClusterDocuments, ASpecIsWrittenAsAFileDeclaresIt) {
  const auto file = model::ReadWorkloadFile(kFile, "test");
  ASSERT_TRUE(file) << file.error().message();
  std::string yaml;
  for (const model::WorkloadSpec& spec : file->workloads) yaml += "---\n" + SpecDocument(spec).ToYaml();
  for (const model::Quota& quota : file->quotas) yaml += "---\n" + QuotaSpecDocument(quota).ToYaml();
  const auto again = model::ReadWorkloadFile(yaml, "written");
  ASSERT_TRUE(again) << again.error().message() << "\n" << yaml;
  EXPECT_EQ(*again, *file) << yaml;
}

TEST(ClusterDocuments, TheKeysOfAWorkloadAreStable) {
  contract::WorkloadView view;
  view.workload = "web-0";
  view.set = "web";
  view.tenant = "shop";
  view.type = model::WorkloadType::kContainer;
  view.phase = model::WorkloadPhase::kRetryPending;
  view.node = "n1";
  view.revision = "r1";
  view.actual = contract::ActualState::kFailed;
  view.attempts = 2;
  view.max_attempts = 5;
  view.next_retry_at = WallTime(std::chrono::seconds(1'767'225'600));
  view.reason = "agent.apply_failed";
  view.message = "no such image";
  view.exit_code = 1;
  view.labels = {{"app", "web"}};
  view.metadata = {{"k", "v"}};
  view.usage = contract::WorkloadUsage{.cpu_milli = 250, .memory_bytes = 1 << 20, .source = "proc"};
  view.spec.type = model::WorkloadType::kContainer;
  view.spec.image = "web:1";
  view.created_at = WallTime(std::chrono::seconds(1'767'225'600));
  view.stamp = {.epoch = 2, .sequence = 7};
  view.store_revision = 12;
  EXPECT_EQ(
      WorkloadDocument(view).ToJson(),
      R"({"kind":"Workload","name":"web-0","set":"web","tenant":"shop","type":"container","desired":"Running",)"
      R"("status":"RetryPending","actual":"Failed","node":"n1","revision":"r1","attempts":2,"maxAttempts":5,)"
      R"("nextRetryAt":"2026-01-01T00:00:00.000Z","reason":"agent.apply_failed","message":"no such image",)"
      R"("retryable":true,"exitCode":1,"labels":{"app":"web"},"metadata":{"k":"v"},)"
      R"("usage":{"cpu":"250m","memory":"1Mi","diskReadBytes":0,"diskWriteBytes":0,"netRxBytes":0,"netTxBytes":0,)"
      R"("source":"proc"},"template":{"type":"container","image":"web:1","restart":"always","grace":"30s"},)"
      R"("createdAt":"2026-01-01T00:00:00.000Z","stamp":{"epoch":2,"sequence":7},"storeRevision":12})");
}

TEST(ClusterDocuments, TheKeysOfANodeAreStable) {
  contract::NodeView view;
  view.node = "n1";
  view.status = model::NodeStatus::kNotReady;
  view.status_reason = "heartbeat expired";
  view.status_updated_by = "monitor";
  view.endpoint = "10.0.0.1:50051";
  view.agent_version = "0.1";
  view.total = {{"cpu", 4'000}};
  view.reserved = {{"cpu", 1'500}};
  view.used = {{"cpu", 500}};
  view.available = {{"cpu", 2'500}};
  view.supported_types = {model::WorkloadType::kProcess};
  view.labels = {{"zone", "a"}};
  view.taints = {{.key = "dedicated", .value = "web", .effect = "NoSchedule"}};
  view.cordoned = true;
  view.draining = true;
  view.drain_reason = "kernel";
  view.native = true;
  view.epoch = 3;
  view.workloads = 2;
  view.orphans_held = 9;
  view.revision = 8;
  EXPECT_EQ(NodeDocument(view).ToJson(),
            R"({"kind":"Node","name":"n1","status":"NotReady","statusReason":"heartbeat expired",)"
            R"("statusUpdatedBy":"monitor","endpoint":"10.0.0.1:50051","agentVersion":"0.1","total":{"cpu":"4"},)"
            R"("reserved":{"cpu":"1500m"},"used":{"cpu":"500m"},"available":{"cpu":"2500m"},)"
            R"("supportedTypes":["process"],"labels":{"zone":"a"},)"
            R"("taints":[{"key":"dedicated","value":"web","effect":"NoSchedule"}],"cordoned":true,"draining":true,)"
            R"("drainReason":"kernel","native":true,"epoch":3,"workloads":2,"orphansHeld":9,"storeRevision":8})");
}

TEST(ClusterDocuments, TheKeysOfTheOthersAreStable) {
  contract::SetView set;
  set.spec.kind = model::WorkloadKind::kSet;
  set.spec.name = "web";
  set.spec.replicas = 3;
  set.spec.spec.type = model::WorkloadType::kProcess;
  set.spec.spec.command = {"serve"};
  set.revision = "r2";
  set.members = 4;
  set.current = 2;
  set.running = 3;
  set.available = 2;
  set.failed = 1;
  set.store_revision = 5;
  EXPECT_EQ(SetDocument(set).ToJson(),
            R"({"kind":"Set","name":"web","replicas":3,"update":{"maxUnavailable":"1","maxSurge":"0"},)"
            R"("template":{"type":"process","command":["serve"],"restart":"always","grace":"30s"},)"
            R"("status":{"revision":"r2","members":4,"current":2,"running":3,"available":2,"completed":0,"failed":1,)"
            R"("storeRevision":5}})");
  contract::QuotaView quota;
  quota.quota = {.tenant = "shop", .limits = {{"cpu", 100'000}}, .workloads = 5, .applies_milli_hz = 10'000};
  quota.used = {{"cpu", 98'000}};
  quota.workloads = 3;
  EXPECT_EQ(QuotaDocument(quota).ToJson(),
            R"({"kind":"Quota","tenant":"shop","limits":{"cpu":"100","workloads":5},"rate":{"appliesPerSecond":"10"},)"
            R"("status":{"used":{"cpu":"98","workloads":3}}})");
  const WallTime at(std::chrono::seconds(1'767'225'600));
  EXPECT_EQ(
      EventDocument({.id = "e1", .type = "NodeLost", .node = "n1", .reason = "gone", .at = at, .details = {}}).ToJson(),
      R"({"kind":"Event","id":"e1","type":"NodeLost","at":"2026-01-01T00:00:00.000Z","node":"n1","reason":"gone"})");
  EXPECT_EQ(
      DecisionDocument({.kind = contract::DecisionKind::kPlaced, .at = at, .workload = "w", .node = "n1"}).ToJson(),
      R"({"kind":"Decision","type":"placed","at":"2026-01-01T00:00:00.000Z","workload":"w","node":"n1"})");
  EXPECT_EQ(DeletedDocument(contract::ObjectKind::kNode, "n1").ToJson(),
            R"({"kind":"Node","name":"n1","deleted":true})");
}

// The keys that a row of docs/commands.md lists.
std::set<std::string> KeysOnThePage(const std::string& row, const std::string& after = "") {
  std::ifstream page(SourceDir() + "/docs/commands.md");
  for (std::string line; std::getline(page, line);) {
    const std::string head = "| " + row + " | ";
    if (!line.starts_with(head)) continue;
    std::istringstream words(line.substr(line.find(after, head.size()) + after.size()));
    if (after.empty()) words.str(line.substr(head.size()));
    std::set<std::string> keys;
    for (std::string word; words >> word && word != "|";) keys.insert(word);
    return keys;
  }
  ADD_FAILURE() << "the page has no row " << row;
  return {};
}

// The keys of a document, or of the map below one of them.
std::set<std::string> KeysOf(const Document& document, const std::string& below = "") {
  std::set<std::string> keys;
  for (const auto& [path, value] : document.Leaves()) {
    if (!path.starts_with(below)) continue;
    const std::string rest = path.substr(below.size());
    keys.insert(rest.substr(0, rest.find('.')));
  }
  return keys;
}

// Nothing of these is empty, so that nothing is left out.
TEST(ClusterDocuments, ThePageListsEveryKeyOfTheKinds) {
  const WallTime at(std::chrono::seconds(1'767'225'600));
  contract::WorkloadView workload{.workload = "web-0", .set = "web", .tenant = "shop", .node = "n1", .revision = "r1"};
  workload.next_retry_at = workload.last_transition = at;
  workload.created_at = workload.updated_at = at;
  workload.reason = "agent.apply_failed";
  workload.message = "no such image";
  workload.exit_code = 1;
  workload.labels = workload.metadata = {{"app", "web"}};
  workload.usage = contract::WorkloadUsage{.cpu_milli = 250};
  workload.stamp = {.epoch = 2, .sequence = 7};
  EXPECT_EQ(KeysOf(WorkloadDocument(workload)), KeysOnThePage("Workload"));

  contract::NodeView node{.node = "n1", .status_reason = "registered", .status_updated_by = "register"};
  node.status_updated_at = at;
  node.last_heartbeat = node.drain_deadline = at;
  node.endpoint = "10.0.0.1:50051";
  node.agent_version = "0.1";
  node.total = node.reserved = node.used = node.available = {{"cpu", 4'000}};
  node.supported_types = {model::WorkloadType::kProcess};
  node.labels = {{"zone", "a"}};
  node.taints = {{.key = "dedicated", .value = "web", .effect = "NoSchedule"}};
  node.drain_reason = "kernel";
  node.drain_instruction = "i-7";
  node.orphans_held = 9;
  EXPECT_EQ(KeysOf(NodeDocument(node)), KeysOnThePage("Node"));

  contract::SetView set{.spec = {.kind = model::WorkloadKind::kSet, .name = "web"}, .revision = "r2"};
  set.created_at = at;
  set.deleting = true;
  EXPECT_EQ(KeysOf(SetDocument(set), "status."), KeysOnThePage("Set, Job", "status: "));

  const contract::EventView event{.id = "e1",
                                  .type = "NodeLost",
                                  .workload = "web-0",
                                  .node = "n1",
                                  .reason = "gone",
                                  .at = at,
                                  .details = {{"k", "v"}}};
  EXPECT_EQ(KeysOf(EventDocument(event)), KeysOnThePage("Event"));
  const contract::Decision decision{.at = at, .workload = "w", .node = "n1", .reason = "placed", .message = "placed"};
  EXPECT_EQ(KeysOf(DecisionDocument(decision)), KeysOnThePage("Decision"));
}

}  // namespace
}  // namespace muster::cli
