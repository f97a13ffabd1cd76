#include "kube/dump_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/rng.h"

namespace muster::kube {
namespace {

constexpr size_t kPieceBytes = 1u << 20;
constexpr int kZones = 3;

struct TypeRow {
  std::string_view name;
  std::string_view arch;
  int32_t cpu_milli;  // allocatable
  int32_t memory_mib;
  int32_t pods;
};
// Allocatable amounts as nodes of these types report them.
constexpr auto kTypes = std::to_array<TypeRow>({{"m5.xlarge", "amd64", 3920, 14162, 58},
                                                {"m5.2xlarge", "amd64", 7910, 29317, 58},
                                                {"m5.4xlarge", "amd64", 15890, 57691, 234},
                                                {"c5.2xlarge", "amd64", 7910, 14162, 58},
                                                {"c5.4xlarge", "amd64", 15890, 27381, 234},
                                                {"r5.2xlarge", "amd64", 7910, 59627, 58},
                                                {"m6g.2xlarge", "arm64", 7910, 29258, 58}});

enum class PoolKind : uint8_t { kDefault, kSpot, kMemory, kArm };
constexpr auto kPoolNames = std::to_array<std::string_view>({"general", "spot", "memory", "arm"});

struct NodeRow {
  PoolKind pool = PoolKind::kDefault;
  const TypeRow* type = nullptr;
  int zone = 0;
  int32_t cpu_left = 0;
  int32_t memory_left = 0;
  int32_t pods_left = 0;
};

struct DaemonRow {
  std::string_view name;
  int32_t cpu_milli;
  int32_t memory_mib;
};
constexpr auto kDaemons = std::to_array<DaemonRow>(
    {{"kube-proxy", 100, 64}, {"node-agent", 50, 128}, {"log-shipper", 100, 200}, {"csi-node", 30, 96}});

// A Deployment or StatefulSet: what its pods have in common.
struct AppRow {
  std::string name;
  std::string name_space;
  PoolKind pool = PoolKind::kDefault;
  int32_t cpu_milli = 0;
  int32_t memory_mib = 0;
  bool stateful = false;
  bool zone_spread = false;
  bool host_exclusion = false;
  int64_t members = 0;
};

class Generator {
 public:
  Generator(const GeneratorOptions& options, const std::function<void(std::string_view)>& write)
      : options_(options), write_(write), rng_(options.seed) {}

  void Run() {
    text_ = "{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n";
    for (int64_t i = 0; i < options_.nodes; ++i) AddNode(i);
    for (const DaemonRow& daemon : kDaemons) AddDaemonSet(daemon);
    for (int64_t i = 0; i < options_.nodes && pods_ < options_.pods; ++i) AddDaemonPods(i);
    while (pods_ < options_.pods) AddApp();
    text_ += "\n    ],\n    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n    }\n}\n";
    write_(text_);
  }

 private:
  template <class... Args>
  void Append(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  void BeginItem() {
    if (text_.size() > kPieceBytes) {
      write_(text_);
      text_.clear();
    }
    if (!first_) text_ += ",\n";
    first_ = false;
  }

  void AddNode(int64_t index) {
    NodeRow node;
    const uint64_t draw = rng_.Below(20);
    node.pool = draw < 12   ? PoolKind::kDefault
                : draw < 16 ? PoolKind::kSpot
                : draw < 18 ? PoolKind::kMemory
                            : PoolKind::kArm;
    node.type = node.pool == PoolKind::kArm      ? &kTypes[6]
                : node.pool == PoolKind::kMemory ? &kTypes[5]
                                                 : &kTypes[rng_.Below(5)];
    node.zone = static_cast<int>(index % kZones);
    node.cpu_left = node.type->cpu_milli;
    node.memory_left = node.type->memory_mib;
    node.pods_left = node.type->pods;
    BeginItem();
    Append(
        R"({{"apiVersion":"v1","kind":"Node","metadata":{{"creationTimestamp":"2026-06-01T08:00:00Z","name":"node-{0:05}",)"
        R"("labels":{{"kubernetes.io/arch":"{1}","kubernetes.io/hostname":"node-{0:05}","kubernetes.io/os":"linux",)"
        R"("node.kubernetes.io/instance-type":"{2}","topology.kubernetes.io/region":"us-east-1",)"
        R"("topology.kubernetes.io/zone":"us-east-1{3}","topology.ebs.csi.aws.com/zone":"us-east-1{3}",)"
        R"("karpenter.sh/capacity-type":"{4}","example.com/pool":"{5}"}},)",
        index, node.type->arch, node.type->name, static_cast<char>('a' + node.zone),
        node.pool == PoolKind::kSpot ? "spot" : "on-demand", kPoolNames[static_cast<size_t>(node.pool)]);
    AddBallast(40);
    Append(
        R"("annotations":{{"node.alpha.kubernetes.io/ttl":"0"}}}},"spec":{{"providerID":"aws:///us-east-1/i-{:017}")",
        index);
    if (node.pool == PoolKind::kMemory) {
      Append(R"(,"taints":[{{"effect":"NoSchedule","key":"example.com/pool","value":"memory"}}])");
    }
    const auto amounts = fmt::format(R"({{"cpu":"{}m","ephemeral-storage":"95551679124","memory":"{}Mi","pods":"{}"}})",
                                     node.type->cpu_milli, node.type->memory_mib, node.type->pods);
    Append(R"(}},"status":{{"allocatable":{0},"capacity":{0},"conditions":[)", amounts);
    for (const std::string_view name : {"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"}) {
      Append(R"({}{{"lastHeartbeatTime":"2026-07-01T08:00:00Z","message":"kubelet is posting","reason":"Kubelet",)"
             R"("status":"{}","type":"{}"}})",
             name == "MemoryPressure" ? "" : ",", name == "Ready" ? "True" : "False", name);
    }
    text_ += R"(],"images":[)";
    for (int i = 0; options_.ballast && i < 40; ++i) {
      Append(R"({}{{"names":["registry.example.com/team/service-{}@sha256:{:064}"],"sizeBytes":{}}})",
             i == 0 ? "" : ",", i, rng_.Below(1'000'000'000), 100'000'000 + i);
    }
    text_ += "]}}";
    nodes_.push_back(node);
  }

  // What the API server keeps and no scheduler reads.
  void AddBallast(int fields) {
    if (!options_.ballast) return;
    text_ += R"("managedFields":[{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{)";
    for (int i = 0; i < fields; ++i) {
      Append(R"({}"f:example.com/some-field-{}":{{".":{{}},"f:value":{{}}}})", i == 0 ? "" : ",", i);
    }
    text_ += R"(}}},"manager":"kube-controller-manager","operation":"Update","time":"2026-07-01T08:00:00Z"}],)";
  }

  void AddDaemonSet(const DaemonRow& daemon) {
    BeginItem();
    Append(
        R"({{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{{"name":"{0}","namespace":"kube-system"}},)"
        R"("spec":{{"selector":{{"matchLabels":{{"app":"{0}"}}}},"template":{{"metadata":{{"labels":{{"app":"{0}"}}}},)"
        R"("spec":{{"containers":[{{"name":"main","resources":{{"requests":{{"cpu":"{1}m","memory":"{2}Mi"}}}}}}],)"
        R"("tolerations":[{{"operator":"Exists"}}]}}}}}}}})",
        daemon.name, daemon.cpu_milli, daemon.memory_mib);
  }

  void AddDaemonPods(int64_t node) {
    for (const DaemonRow& daemon : kDaemons) {
      if (pods_ >= options_.pods) return;
      const std::string name = fmt::format("{}-{:05}", daemon.name, node);
      BeginPod(name, "kube-system", "DaemonSet", daemon.name, daemon.name, "");
      text_ += R"("tolerations":[{"operator":"Exists"}],)";
      EndPod(daemon.cpu_milli, daemon.memory_mib, &nodes_[static_cast<size_t>(node)], node);
    }
  }

  void AddApp() {
    AppRow app;
    const int64_t number = apps_++;
    app.name = fmt::format("app-{:05}", number);
    app.name_space = fmt::format("team-{:02}", rng_.Below(40));
    const uint64_t pool = rng_.Below(20);
    app.pool = pool < 12   ? PoolKind::kDefault
               : pool < 16 ? PoolKind::kSpot
               : pool < 18 ? PoolKind::kMemory
                           : PoolKind::kArm;
    static constexpr auto kCpu = std::to_array<int32_t>({50, 100, 100, 200, 250, 250, 500, 500, 1000, 2000});
    app.cpu_milli = kCpu[rng_.Below(kCpu.size())];
    app.memory_mib = app.cpu_milli * (app.pool == PoolKind::kMemory ? 6 : 1 + static_cast<int32_t>(rng_.Below(3)));
    app.stateful = rng_.Below(20) == 0;
    app.zone_spread = rng_.Below(4) == 0;
    app.host_exclusion = rng_.Below(20) == 0;
    app.members = static_cast<int64_t>(app.stateful ? 3 + rng_.Below(6) : 1 + rng_.Below(80));
    app.members = std::min(app.members, options_.pods - pods_);
    if (rng_.Below(3) == 0) AddBudget(app);
    for (int64_t i = 0; i < app.members; ++i) AddAppPod(app, i);
  }

  void AddBudget(const AppRow& app) {
    BeginItem();
    Append(R"({{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{{"name":"{0}","namespace":"{1}"}},)"
           R"("spec":{{"maxUnavailable":"25%","selector":{{"matchLabels":{{"app":"{0}"}}}}}},)"
           R"("status":{{"disruptionsAllowed":{2}}}}})",
           app.name, app.name_space, (app.members + 3) / 4);
  }

  // The next node of the pool, from where the last search ended, that has room.
  int64_t FindNode(const AppRow& app) {
    const auto count = static_cast<int64_t>(nodes_.size());
    for (int64_t tried = 0; tried < count; ++tried) {
      const int64_t at = next_node_;
      next_node_ = (next_node_ + 1) % count;
      const NodeRow& node = nodes_[static_cast<size_t>(at)];
      const bool fits = node.cpu_left >= app.cpu_milli && node.memory_left >= app.memory_mib && node.pods_left > 0;
      if (node.pool == app.pool && fits) return at;
    }
    return -1;
  }

  void AddAppPod(const AppRow& app, int64_t member) {
    const bool is_pending = options_.pods - pods_ <= options_.pending;
    const int64_t at = is_pending ? -1 : FindNode(app);
    NodeRow* node = at < 0 ? nullptr : &nodes_[static_cast<size_t>(at)];
    const std::string hash = fmt::format("{:010}", (app.cpu_milli * 7919 + app.memory_mib) % 1'000'000'007);
    const std::string name =
        app.stateful ? fmt::format("{}-{}", app.name, member) : fmt::format("{}-{}-{:05}", app.name, hash, member);
    if (app.stateful && node != nullptr) AddVolume(app, name, *node);
    const std::string extra = app.stateful ? fmt::format(R"(,"statefulset.kubernetes.io/pod-name":"{}")", name)
                                           : fmt::format(R"(,"pod-template-hash":"{}")", hash);
    BeginPod(name, app.name_space, app.stateful ? "StatefulSet" : "ReplicaSet",
             app.stateful ? app.name : app.name + "-" + hash, app.name, extra);
    Append(R"("nodeSelector":{{"example.com/pool":"{}"}},)", kPoolNames[static_cast<size_t>(app.pool)]);
    if (app.pool == PoolKind::kMemory) {
      text_ +=
          R"("tolerations":[{"effect":"NoSchedule","key":"example.com/pool","operator":"Equal","value":"memory"}],)";
    }
    if (app.zone_spread) {
      Append(R"("topologySpreadConstraints":[{{"labelSelector":{{"matchLabels":{{"app":"{}"}}}},"maxSkew":2,)"
             R"("topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"ScheduleAnyway"}}],)",
             app.name);
    }
    if (app.host_exclusion) {
      Append(R"("affinity":{{"podAntiAffinity":{{"preferredDuringSchedulingIgnoredDuringExecution":[{{"weight":100,)"
             R"("podAffinityTerm":{{"labelSelector":{{"matchLabels":{{"app":"{}"}}}},"topologyKey":)"
             R"("kubernetes.io/hostname"}}}}]}}}},)",
             app.name);
    }
    if (app.stateful) {
      Append(R"("volumes":[{{"name":"data","persistentVolumeClaim":{{"claimName":"data-{}"}}}}],)", name);
    }
    EndPod(app.cpu_milli, app.memory_mib, node, at);
  }

  void AddVolume(const AppRow& app, const std::string& pod, const NodeRow& node) {
    BeginItem();
    Append(R"({{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{{"name":"data-{0}","namespace":"{1}"}},)"
           R"("spec":{{"volumeName":"pv-{1}-{0}"}}}})",
           pod, app.name_space);
    BeginItem();
    Append(
        R"({{"apiVersion":"v1","kind":"PersistentVolume","metadata":{{"name":"pv-{1}-{0}"}},"spec":{{"csi":{{"driver":)"
        R"("ebs.csi.aws.com"}},"nodeAffinity":{{"required":{{"nodeSelectorTerms":[{{"matchExpressions":[{{"key":)"
        R"("topology.ebs.csi.aws.com/zone","operator":"In","values":["us-east-1{2}"]}}]}}]}}}}}}}})",
        pod, app.name_space, static_cast<char>('a' + node.zone));
  }

  void BeginPod(std::string_view name, std::string_view name_space, std::string_view owner_kind, std::string_view owner,
                std::string_view app, std::string_view more_labels) {
    ++pods_;
    const uint64_t day = 1 + rng_.Below(28);
    const uint64_t hour = rng_.Below(24);
    BeginItem();
    Append(
        R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"creationTimestamp":"2026-06-{:02}T{:02}:00:00Z","name":"{}",)"
        R"("namespace":"{}","labels":{{"app":"{}","team":"{}"{}}},"uid":"{:036}",)",
        day, hour, name, name_space, app, name_space, more_labels, pods_);
    AddBallast(60);
    Append(R"("ownerReferences":[{{"apiVersion":"apps/v1","blockOwnerDeletion":true,"controller":true,"kind":"{}",)"
           R"("name":"{}"}}]}},"spec":{{)",
           owner_kind, owner);
  }

  void EndPod(int32_t cpu, int32_t memory, NodeRow* node, int64_t node_index) {
    Append(R"("containers":[{{"image":"registry.example.com/team/service:1.0","name":"main","resources":{{"limits":)"
           R"({{"memory":"{1}Mi"}},"requests":{{"cpu":"{0}m","memory":"{1}Mi"}}}})",
           cpu, memory);
    if (options_.ballast) {
      text_ += R"(,"env":[)";
      for (int i = 0; i < 25; ++i) {
        Append(R"({}{{"name":"SETTING_{}","value":"https://service-{}.example.com:8443/v1/path?token=none"}})",
               i == 0 ? "" : ",", i, i);
      }
      text_ += R"(],"livenessProbe":{"httpGet":{"path":"/healthz","port":8080,"scheme":"HTTP"},"periodSeconds":10})";
    }
    text_ += R"(}],"priority":0,"restartPolicy":"Always","schedulerName":"default-scheduler")";
    if (node == nullptr) {
      text_ += R"(},"status":{"phase":"Pending"}})";
      return;
    }
    node->cpu_left -= cpu;
    node->memory_left -= memory;
    --node->pods_left;
    Append(R"(,"nodeName":"node-{:05}"}},"status":{{"phase":"Running","qosClass":"Burstable")", node_index);
    if (options_.ballast) {
      text_ += R"(,"conditions":[)";
      for (const std::string_view name : {"Initialized", "Ready", "ContainersReady", "PodScheduled"}) {
        Append(R"({}{{"lastProbeTime":null,"lastTransitionTime":"2026-06-01T08:00:00Z","status":"True","type":"{}"}})",
               name == "Initialized" ? "" : ",", name);
      }
      text_ +=
          R"(],"containerStatuses":[{"containerID":"containerd://0000000000000000000000000000000000000000000000000000",)"
          R"("name":"main","ready":true,"restartCount":0,"state":{"running":{"startedAt":"2026-06-01T08:00:00Z"}}}])";
    }
    text_ += "}}";
  }

  const GeneratorOptions options_;
  const std::function<void(std::string_view)>& write_;
  Rng rng_;
  std::string text_;
  bool first_ = true;
  std::vector<NodeRow> nodes_;
  int64_t pods_ = 0;
  int64_t apps_ = 0;
  int64_t next_node_ = 0;
};

}  // namespace

void GenerateDump(const GeneratorOptions& options, const std::function<void(std::string_view)>& write) {
  MUSTER_CHECK(options.nodes >= 0 && options.pods >= 0 && options.pending >= 0, "a negative number of objects");
  Generator(options, write).Run();
}

}  // namespace muster::kube
