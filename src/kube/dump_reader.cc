#include "kube/dump_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "kube/amounts.h"
#include "kube/collected.h"
#include "kube/pod_shape.h"
#include "model/names.h"
#include "model/requirement.h"
#include "model/text_scalars.h"
#include "model/text_value.h"

namespace muster::kube {
namespace {

std::string ScopedName(ItemView metadata) {
  return fmt::format("{}/{}", metadata["namespace"].Text(), metadata["name"].Text());
}

std::string_view LabelOr(const model::TextMap& labels, std::string_view key, std::string_view older) {
  for (const std::string_view name : {key, older}) {
    if (const auto at = labels.find(std::string(name)); at != labels.end()) return at->second;
  }
  return "";
}

// Spot capacity, by whichever label says so.
model::CapacityType CapacityTypeOf(const model::TextMap& labels) {
  for (const std::string_view key : kCapacityTypeLabels) {
    const auto at = labels.find(std::string(key));
    if (at == labels.end()) continue;
    const std::string& value = at->second;
    if (value == "spot" || value == "SPOT" || value == "true") return model::CapacityType::kSpot;
    if (value == "reserved") return model::CapacityType::kReserved;
  }
  if (const auto at = labels.find(std::string(kCapacityTypeLabel)); at != labels.end()) {
    if (const auto type = model::ParseCapacityType(at->second)) return *type;
  }
  return model::CapacityType::kOnDemand;
}

bool IsTrue(ItemView annotations, std::string_view key) { return annotations[key].Text() == "true"; }

void ReadNode(ItemView item, Collected& into) {
  DumpNode dump_node;
  placement::Node& node = dump_node.node;
  const ItemView metadata = item["metadata"];
  node.id = metadata["name"].Text();
  if (node.id.empty()) metadata.Fail("a node without a name");
  node.labels = ReadTextMap(metadata["labels"]);
  dump_node.type = LabelOr(node.labels, model::kInstanceTypeKey, "beta.kubernetes.io/instance-type");
  dump_node.zone = LabelOr(node.labels, model::kZoneKey, "failure-domain.beta.kubernetes.io/zone");
  dump_node.arch = LabelOr(node.labels, kArchLabel, "beta.kubernetes.io/arch");
  dump_node.os = LabelOr(node.labels, kOsLabel, "beta.kubernetes.io/os");
  dump_node.capacity = CapacityTypeOf(node.labels);
  node.labels[std::string(kCapacityTypeLabel)] = model::CapacityTypeName(dump_node.capacity);
  dump_node.control_plane = node.labels.contains("node-role.kubernetes.io/control-plane") ||
                            node.labels.contains("node-role.kubernetes.io/master");
  const ItemView annotations = metadata["annotations"];
  dump_node.do_not_disrupt = IsTrue(annotations, "karpenter.sh/do-not-disrupt") ||
                             IsTrue(annotations, "cluster-autoscaler.kubernetes.io/scale-down-disabled");
  item["spec"]["taints"].ForEach([&](ItemView taint) { node.taints.push_back(ReadTaint(taint)); });
  node.cordoned = item["spec"]["unschedulable"].Bool(false);
  const ItemView status = item["status"];
  const ItemView total = status["allocatable"].present() ? status["allocatable"] : status["capacity"];
  node.total = ReadAmounts(total).ToResources();
  into.nodes.push_back({std::move(dump_node), into.origin});
}

void ReadOwner(ItemView metadata, DumpPod& pod) {
  metadata["ownerReferences"].ForEach([&](ItemView owner) {
    if (!owner["controller"].Bool(false)) return;
    const std::string_view kind = owner["kind"].Text();
    pod.owner = fmt::format("{}/{}", kind, owner["name"].Text());
    pod.daemon = kind == "DaemonSet";
    pod.is_static = kind == "Node";
  });
}

void ReadPod(ItemView item, Collected& into) {
  const std::string_view phase = item["status"]["phase"].Text();
  if (phase == "Succeeded" || phase == "Failed") {
    ++into.rest.ended_pods;
    return;
  }
  CollectedPod collected;
  DumpPod& pod = collected.pod;
  const ItemView metadata = item["metadata"];
  const ItemView spec = item["spec"];
  const std::string_view name_space = metadata["namespace"].Text();
  if (metadata["name"].Text().empty() || name_space.empty()) metadata.Fail("a pod without a name or namespace");
  pod.unit.id = ScopedName(metadata);
  if (const std::string_view created = metadata["creationTimestamp"].Text(); !created.empty()) {
    if (const auto time = model::ParseWallTime(created)) {
      pod.unit.order = std::chrono::duration_cast<std::chrono::seconds>(time->time_since_epoch()).count();
    } else {
      metadata["creationTimestamp"].Fail(time.error().message());
    }
  }
  pod.node = spec["nodeName"].Text();
  pod.terminating = metadata["deletionTimestamp"].present();
  ReadOwner(metadata, pod);
  const ItemView annotations = metadata["annotations"];
  pod.is_static = pod.is_static || annotations["kubernetes.io/config.mirror"].present();
  pod.do_not_disrupt = IsTrue(annotations, "karpenter.sh/do-not-disrupt") ||
                       IsTrue(annotations, "karpenter.sh/do-not-evict") ||
                       annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"].Text() == "false";
  PodShape shape = ReadPodShape(name_space, metadata, spec, item["status"]);
  pod.without_requests = shape.without_requests;
  pod.unit.kind = into.kinds.Add(shape.kind);
  collected.priority_class = std::move(shape.priority_class);
  if (!pod.terminating) {
    for (const std::string_view name : shape.unknown) ++into.rest.not_understood[std::string(name)];
  }
  for (const std::string& claim : shape.claims) collected.claims.push_back(fmt::format("{}/{}", name_space, claim));
  collected.origin = into.origin;
  into.pods.push_back(std::move(collected));
}

std::optional<model::MemberCount> ReadCount(ItemView view) {
  if (!view.present()) return std::nullopt;
  const auto count = model::ParseMemberCount(view.Scalar());
  if (count) return *count;
  view.Fail(count.error().message());
  return std::nullopt;
}

void ReadBudget(ItemView item, Collected& into) {
  const ItemView spec = item["spec"];
  DisruptionBudget budget{.id = ScopedName(item["metadata"]),
                          .name_space = std::string(item["metadata"]["namespace"].Text()),
                          .selector = ReadSelector(spec["selector"]),
                          .min_available = ReadCount(spec["minAvailable"]),
                          .max_unavailable = ReadCount(spec["maxUnavailable"])};
  if (const ItemView allowed = item["status"]["disruptionsAllowed"]; allowed.present()) {
    budget.allowed = allowed.Integer(0);
  }
  into.budgets.push_back(std::move(budget));
}

void ReadDaemonSet(ItemView item, Collected& into) {
  const ItemView metadata = item["metadata"];
  const ItemView body = item["spec"]["template"];
  PodShape shape = ReadPodShape(metadata["namespace"].Text(), body["metadata"], body["spec"], item.Nothing());
  // As the DaemonSet controller adds to every pod.
  for (const std::string_view key :
       {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/memory-pressure", "node.kubernetes.io/pid-pressure", "node.kubernetes.io/unschedulable"}) {
    shape.kind.tolerations.push_back({.key = std::string(key), .exists = true});
  }
  into.daemon_sets.push_back({ScopedName(metadata), std::move(shape.kind)});
}

void ReadVolume(ItemView item, Collected& into) {
  const ItemView spec = item["spec"];
  Volume volume;
  volume.terms = ReadNodeTerms(spec["nodeAffinity"]["required"]["nodeSelectorTerms"]);
  volume.driver = spec["csi"]["driver"].Text();
  volume.local = spec["local"].present() || spec["hostPath"].present();
  into.volumes[std::string(item["metadata"]["name"].Text())] = std::move(volume);
}

void ReadClaim(ItemView item, Collected& into) {
  into.claims[ScopedName(item["metadata"])] = {std::string(item["spec"]["volumeName"].Text())};
}

void ReadCsiNode(ItemView item, Collected& into) {
  model::Resources& limits = into.attachable[std::string(item["metadata"]["name"].Text())];
  item["spec"]["drivers"].ForEach([&](ItemView driver) {
    const ItemView count = driver["allocatable"]["count"];
    if (!count.present()) return;
    const int64_t volumes = count.Integer(0);
    if (volumes < 0 || volumes > 1'000'000) return count.Fail(fmt::format("{} is out of range", volumes));
    limits.Set(AttachableResource(driver["name"].Text()), volumes * 1000);
  });
}

void ReadPriorityClass(ItemView item, Collected& into) {
  const int64_t value = item["value"].Integer(0);
  if (value < INT32_MIN || value > INT32_MAX) return item["value"].Fail(fmt::format("{} is out of range", value));
  into.priority_classes[std::string(item["metadata"]["name"].Text())] = static_cast<int32_t>(value);
}

void ReadNamespace(ItemView item, Collected& into) {
  const ItemView metadata = item["metadata"];
  into.rest.namespaces[std::string(metadata["name"].Text())] = ReadTextMap(metadata["labels"]);
}

struct KindRow {
  std::string_view kind;
  void (*read)(ItemView, Collected&);
};
constexpr auto kKinds = std::to_array<KindRow>({{"Pod", ReadPod},
                                                {"Node", ReadNode},
                                                {"PodDisruptionBudget", ReadBudget},
                                                {"DaemonSet", ReadDaemonSet},
                                                {"PersistentVolume", ReadVolume},
                                                {"PersistentVolumeClaim", ReadClaim},
                                                {"CSINode", ReadCsiNode},
                                                {"PriorityClass", ReadPriorityClass},
                                                {"Namespace", ReadNamespace}});

Status TakeItem(const Item& item, Item::Place place, const ItemPlace& where, Collected& into) {
  const ItemView root = item.Root(place);
  std::string_view kind = root["kind"].Text();
  if (kind.empty() && where.list_kind.ends_with("List")) {
    kind = where.list_kind.substr(0, where.list_kind.size() - std::string_view("List").size());
  }
  if (kind.empty()) {
    return {Code::kInvalidArgument, where.where + ": an object without a kind: use kubectl get -o json"};
  }
  const auto row = std::ranges::find(kKinds, kind, &KindRow::kind);
  if (row == kKinds.end()) {
    // An empty list has no items to tell it from an object.
    if (!kind.ends_with("List")) ++into.rest.other_objects[std::string(kind.substr(0, 64))];
    return {};
  }
  into.origin = {into.files.size() - 1, where.position.line, where.position.column};
  row->read(root, into);
  if (item.error().empty()) return {};
  const ItemView metadata = root["metadata"];
  const std::string_view name_space = metadata["namespace"].Text();
  const std::string name = fmt::format("{}{}{}", name_space, name_space.empty() ? "" : "/", metadata["name"].Text());
  return model::TextError("", {}, "", fmt::format("{} ({} {}): {}", where.where, kind, name, item.error()));
}

}  // namespace

struct DumpReader::State {
  Collected collected;
};

DumpReader::DumpReader() : state_(std::make_unique<State>()) {}
DumpReader::~DumpReader() = default;

Status DumpReader::Read(const ReadBytes& bytes, std::string_view source,
                        const std::function<void(uint64_t)>& read_so_far) {
  state_->collected.files.emplace_back(source);
  return ReadItems(
      bytes, source,
      [this](const Item& item, Item::Place place, const ItemPlace& where) {
        return TakeItem(item, place, where, state_->collected);
      },
      read_so_far);
}

Result<Dump> DumpReader::Finish() {
  auto state = std::exchange(state_, std::make_unique<State>());
  return Resolve(std::move(state->collected));
}

}  // namespace muster::kube
