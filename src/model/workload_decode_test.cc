#include "model/workload_decode.h"

#include <gtest/gtest.h>

namespace muster::model {
namespace {

std::string ErrorOf(std::string_view yaml) {
  const auto file = ReadWorkloadFile(yaml, "w.yaml");
  return file ? "ok" : file.error().message();
}

// A set whose template has one more line.
std::string SetWith(std::string_view line) {
  return "kind: Set\nname: web\nreplicas: 2\ntemplate:\n  type: container\n  image: i\n  " + std::string(line) + "\n";
}
// A set with one more line of its own.
std::string SetAnd(std::string_view line) {
  return std::string(line) + "\nkind: Set\nname: web\nreplicas: 2\ntemplate: {type: container, image: i}\n";
}

constexpr std::string_view kEverything = R"(
kind: Set
name: web
tenant: shop
labels: {app: web, tier: front}
replicas: 6
update: {maxUnavailable: 25%, maxSurge: 2}
minAvailable: 4
template:
  type: container
  image: registry.example/web:1.4
  command: [serve, --port, "8080"]
  env: {MODE: production}
  secretEnv: {TOKEN: s3cr3t}
  ports:
  - {container: 8080, host: 80, protocol: TCP, hostIP: 10.0.0.1}
  - {container: 9000}
  volumes:
  - {source: /srv/web, target: /data, readOnly: true}
  resources: {cpu: 500m, memory: 1Gi, gpu-milli: 250}
  requirements:
  - [{key: topology.kubernetes.io/zone, values: [a, b]}, {key: cores, operator: Gt, values: ["8"]}]
  - [{key: pool, operator: Exists}]
  tolerations:
  - {key: dedicated, value: web, effect: NoSchedule}
  - {operator: Exists}
  spread:
  - {topologyKey: topology.kubernetes.io/zone, maxSkew: 2, minDomains: 3, matchLabelKeys: [release], nodeTaintsPolicy: Honor}
  - {topologyKey: rack, whenUnsatisfiable: ScheduleAnyway, selector: {tier: front}, nodeAffinityPolicy: Ignore}
  colocate:
  - {topologyKey: topology.kubernetes.io/zone, selector: {app: cache}}
  exclude:
  - {topologyKey: kubernetes.io/hostname}
  - {topologyKey: rack, selector: [{key: app, operator: NotIn, values: [web]}], weight: 50}
  priority: 1000
  penalties: {interruption: $0.51, reclamation: pinned}
  restart: on-failure
  grace: 45s
---
kind: Job
name: report
replicas: 3
template: {type: process, command: [make-report]}
---
kind: Workload
name: db
template: {type: vm, image: disk.qcow2, resources: {cpu: 4}}
---
kind: Quota
tenant: shop
limits: {cpu: 100, memory: 400Gi, gpu: 8, workloads: 500}
rate: {appliesPerSecond: 2.5, burst: 20}
)";

TEST(WorkloadFile, EveryKey) {
  const auto file = ReadWorkloadFile(kEverything, "w.yaml");
  ASSERT_TRUE(file) << file.error().message();
  ASSERT_EQ(file->workloads.size(), 3u);

  WorkloadSpec web;
  web.kind = WorkloadKind::kSet;
  web.name = "web";
  web.tenant = "shop";
  web.labels = {{"app", "web"}, {"tier", "front"}};
  web.replicas = 6;
  web.max_unavailable = {.amount = 25, .percent = true};
  web.max_surge = {.amount = 2};
  web.min_available = {.amount = 4};
  WorkloadTemplate& spec = web.spec;
  spec.type = WorkloadType::kContainer;
  spec.image = "registry.example/web:1.4";
  spec.command = {"serve", "--port", "8080"};
  spec.env = {{"MODE", "production"}};
  spec.secret_env = {{"TOKEN", "s3cr3t"}};
  spec.ports = {{8080, 80, PortProtocol::kTcp, "10.0.0.1"}, {9000, 0, PortProtocol::kTcp, ""}};
  spec.volumes = {{"/srv/web", "/data", true}};
  spec.resources = {{"cpu", 500}, {"memory", int64_t{1000} << 30}, {"gpu-milli", 250'000}};
  spec.requirements = {{{"topology.kubernetes.io/zone", Operator::kIn, {"a", "b"}}, {"cores", Operator::kGt, {"8"}}},
                       {{"pool", Operator::kExists, {}}}};
  spec.tolerations = {{"dedicated", false, "web", "NoSchedule"}, {"", true, "", ""}};
  spec.spread = {{.spread = {"topology.kubernetes.io/zone", 2, WhenUnsatisfiable::kDoNotSchedule},
                  .min_domains = 3,
                  .match_label_keys = {"release"},
                  .honor_taints = true},
                 {.spread = {"rack", 1, WhenUnsatisfiable::kScheduleAnyway},
                  .selector = std::vector<Requirement>{{"tier", Operator::kIn, {"front"}}},
                  .honor_requirements = false}};
  spec.colocate = {{"topology.kubernetes.io/zone", std::vector<Requirement>{{"app", Operator::kIn, {"cache"}}}, 0}};
  spec.exclude = {{"kubernetes.io/hostname", std::nullopt, 0},
                  {"rack", std::vector<Requirement>{{"app", Operator::kNotIn, {"web"}}}, 50}};
  spec.priority = 1000;
  spec.interruption = PenaltyBucket::kOneDollar;
  spec.reclamation = PenaltyBucket::kPinned;
  spec.restart = RestartPolicy::kOnFailure;
  spec.grace = std::chrono::seconds(45);
  EXPECT_EQ(file->workloads[0], web);

  EXPECT_EQ(file->workloads[1].kind, WorkloadKind::kJob);
  EXPECT_EQ(file->workloads[1].spec.restart, RestartPolicy::kOnFailure);
  EXPECT_EQ(file->workloads[2].kind, WorkloadKind::kWorkload);
  EXPECT_EQ(file->workloads[2].replicas, 1);
  EXPECT_EQ(file->workloads[2].spec.grace, std::chrono::seconds(30));
  ASSERT_EQ(file->quotas.size(), 1u);
  Quota quota{.tenant = "shop", .workloads = 500, .applies_milli_hz = 2500, .burst = 20};
  quota.limits = {{"cpu", 100'000}, {"memory", int64_t{400'000} << 30}, {"gpu", 8000}};
  EXPECT_EQ(file->quotas[0], quota);
}

TEST(WorkloadFile, ErrorsSayWhere) {
  struct Row {
    std::string yaml;
    std::string_view message;
  };
  const std::vector<Row> rows = {
      {"", "w.yaml: the file is empty; docs/workloads.md shows one"},
      {"name: web\n", "w.yaml:1:1: kind: this field is required"},
      {"kind: Pod\n", "w.yaml:1:7: kind: unknown kind \"Pod\": use one of Workload, Set, Job, Quota"},
      {"kind: Set\nname: -x\n", "w.yaml:2:7: name: write letters, digits, '.', '_' and '-', a letter or digit first"},
      {"kind: Set\nname: x\n", "w.yaml:1:1: replicas: this field is required"},
      {"kind: Set\nname: x\nreplicas: 1\n", "w.yaml:1:1: template: this field is required"},
      {SetWith("command: [" + std::string(40'000, 'x') + "]"),
       "w.yaml:5:3: template: command[0]: 40000 bytes are too many; at most 32768 are taken"},
      {SetAnd("update: {maxSurge: 200000}"), "w.yaml:1:1: update.maxSurge: 200000 is not from 0 to 100000"},
      {"kind: Set\nname: x\nreplicas: -1\n", "w.yaml:3:11: replicas: expected a whole number from 0 to 100000"},
      {"kind: Job\nname: x\nreplicas: 0\n", "w.yaml:3:11: replicas: expected a whole number from 1 to 100000"},
      {"kind: Job\nname: x\nreplicas: 1\nupdate: {maxSurge: 1}\n", "w.yaml:4:9: update: a Job is not rolled"},
      {"kind: Workload\nname: x\nreplicas: 2\n", "w.yaml:3:11: replicas: a Workload is one; use kind: Set"},
      {SetAnd("minAvailable: 101%"), "w.yaml:1:15: minAvailable: \"101%\" is above 100%"},
      {SetAnd("minAvailable: some"), "w.yaml:1:15: minAvailable: \"some\" is neither a whole number nor a percentage"},
      {SetAnd("update: {maxUnavailable: 0}"), "w.yaml:1:9: update: maxUnavailable and maxSurge are both 0"},
      {SetAnd("updates: {}"), "w.yaml:1:1: updates: unknown field; did you mean \"update\"?"},
      {SetWith("typ: vm"), "w.yaml:7:3: template.typ: unknown field; did you mean \"type\"?"},
      {SetWith("compose: x"), "w.yaml:7:12: template.compose: a container takes none"},
      {SetWith("ports: [{host: 70000}]"), "w.yaml:7:18: template.ports[0].host: 70000 is not from 1 to 65535"},
      {SetWith("ports: [{}]"), "w.yaml:7:11: template.ports[0].container: missing"},
      {SetWith("ports: [{host: 1, protocol: tcp}]"), "template.ports[0].protocol: unknown protocol \"tcp\""},
      {SetWith("env: {A: b}\n  secretEnv: {A: c}"), "template.secretEnv.A: is in env too; name it once"},
      {SetWith("secretEnv: {A: ''}"), "template.secretEnv.A: is empty"},
      {SetWith("volumes: [{source: /a}]"), "template.volumes[0].target: this field is required"},
      {SetWith("volumes: [{source: ../../.., target: /host}]"),
       "template.volumes[0].source: \"../../..\" is neither an absolute path nor a name of letters"},
      {SetWith("resources: {cpu: 4x}"), "w.yaml:7:20: template.resources.cpu: quantity \"4x\": unknown suffix"},
      {SetWith("requirements: [{key: a, operator: Same}]"),
       "requirements[0].operator: Same is for needs; use colocate"},
      {SetWith("requirements: [[]]"), "requirements: an empty list matches nothing"},
      {SetWith("requirements: [{key: a, values: [b]}, []]"), "template.requirements: write requirements, or lists"},
      {SetWith("tolerations: [{key: a, operator: In}]"),
       "unknown toleration operator \"In\": use one of Equal, Exists"},
      {SetWith("tolerations: [{value: a}]"), "tolerations[0].key: missing; only operator Exists goes without"},
      {SetWith("tolerations: [{key: a, effect: Never}]"), "tolerations[0].effect: unknown effect \"Never\""},
      {SetWith("tolerations: [{operator: Exists, value: a}]"), "tolerations[0].value: Exists takes none"},
      {SetWith("spread: [{topologyKey: z, maxSkew: 0}]"), "template.spread[0].maxSkew: expected a whole number"},
      {SetWith("spread: [{topologyKey: z, minDomains: 2, whenUnsatisfiable: ScheduleAnyway}]"),
       "spread[0].minDomains: goes with whenUnsatisfiable DoNotSchedule only"},
      {SetWith("spread: [{topologyKey: z, selector: {}}]"), "template.spread[0].selector: an empty selector"},
      {SetWith("spread: [{topologyKey: z, nodeTaintsPolicy: Yes}]"),
       "unknown policy \"Yes\": use one of Honor, Ignore"},
      {SetWith("exclude: [{topologyKey: z, weight: 0}]"), "template.exclude[0].weight: expected a whole number from 1"},
      {SetWith("exclude: [{topologyKey: z, weight: 101}]"), "exclude[0].weight: 101 is not from 1 to 100"},
      {SetWith("colocate: [{topologyKey: z, selector: [{key: a, operator: Gt, values: [\"1\"]}]}]"),
       "colocate[0].selector[0].operator: Gt and Lt compare labels of nodes"},
      {SetWith("penalties: {interuption: 1}"), "template.penalties.interuption: unknown field"},
      {SetWith("grace: 30"), "w.yaml:7:10: template.grace: "},
      {"kind: Job\nname: x\nreplicas: 1\ntemplate: {type: process, command: [a], restart: always}\n",
       "template.restart: a Job that always restarts never completes"},
      {"kind: Quota\ntenant: t\n", "w.yaml:1:1: a quota without limits and rate limits nothing"},
      {"kind: Quota\ntenant: t\nlimits: {ram: 1}\n", "w.yaml:3:15: limits.ram: unknown limit"},
      {"kind: Quota\ntenant: t\nlimits: {cpu: 0}\n", "limits.cpu: expected an amount above 0"},
      {"kind: Quota\ntenant: t\nrate: {burst: 3}\n", "rate.appliesPerSecond: this field is required"},
  };
  for (const Row& row : rows) {
    const std::string error = ErrorOf(row.yaml);
    EXPECT_TRUE(error.contains(row.message)) << row.yaml << "\n  says: " << error << "\n  not:  " << row.message;
  }
}

TEST(WorkloadFile, OneOwnerForEveryId) {
  const std::string plain = "kind: Workload\nname: web-1\ntemplate: {type: process, command: [a]}\n---\n";
  const std::string set = "kind: Set\nname: web\nreplicas: 2\ntemplate: {type: process, command: [a]}\n---\n";
  const std::string_view clash = "\"web-1\" is a Workload and also a member of Set \"web\"; rename one of them";
  EXPECT_TRUE(ErrorOf(plain + set).ends_with(clash)) << ErrorOf(plain + set);
  EXPECT_TRUE(ErrorOf(set + plain).ends_with(clash)) << ErrorOf(set + plain);
  EXPECT_TRUE(ErrorOf(set + set).ends_with("\"web\" is the name of a Set already; keep one of them"));
  const std::string beyond = "kind: Workload\nname: web-2\ntemplate: {type: process, command: [a]}\n";
  EXPECT_EQ(ErrorOf(set + beyond), "ok");
  const std::string padded = "kind: Workload\nname: web-01\ntemplate: {type: process, command: [a]}\n";
  EXPECT_EQ(ErrorOf(set + padded), "ok");
}

}  // namespace
}  // namespace muster::model
