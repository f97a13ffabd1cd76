#include "core/scheduler/records.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/codec.h"
#include "base/rng.h"
#include "core/scheduler/json_fields.h"

namespace muster::scheduler {
namespace {

// --- values of every type, from a generator

model::WorkloadType LastOf(model::WorkloadType) { return model::WorkloadType::kVm; }
model::DesiredState LastOf(model::DesiredState) { return model::DesiredState::kDeleted; }
model::WorkloadPhase LastOf(model::WorkloadPhase) { return model::WorkloadPhase::kDeleted; }
model::NodeStatus LastOf(model::NodeStatus) { return model::NodeStatus::kDraining; }
model::RestartPolicy LastOf(model::RestartPolicy) { return model::RestartPolicy::kNever; }
model::PortProtocol LastOf(model::PortProtocol) { return model::PortProtocol::kSctp; }
model::Operator LastOf(model::Operator) { return model::Operator::kLt; }
model::WhenUnsatisfiable LastOf(model::WhenUnsatisfiable) { return model::WhenUnsatisfiable::kScheduleAnyway; }
model::PenaltyBucket LastOf(model::PenaltyBucket) { return model::PenaltyBucket::kPinned; }
model::WorkloadKind LastOf(model::WorkloadKind) { return model::WorkloadKind::kJob; }
contract::ActualState LastOf(contract::ActualState) { return contract::ActualState::kMissing; }

std::string RandomText(Rng& rng) {
  static const std::vector<std::string> kPieces = {"a",    "web-1", "\"", "\\", "\n", "\t", std::string(1, '\0'),
                                                   "\x1f", "\x7f",  "é",  "東", "😀", ":",  "/",
                                                   " ",    "{}",    "ro"};
  std::string text = "t";  // never empty: that is the default
  for (uint64_t left = rng.Below(6); left > 0; --left) text += kPieces[rng.Below(kPieces.size())];
  return text;
}

void Draw(Rng& rng, std::string& out) { out = RandomText(rng); }
void Draw(Rng&, bool& out) { out = !out; }
void Draw(Rng& rng, int32_t& out) { out = static_cast<int32_t>(rng.Between(2, INT32_MAX)); }
void Draw(Rng& rng, int64_t& out) { out = rng.Between(2, INT64_MAX); }
void Draw(Rng& rng, uint64_t& out) { out = rng.Next() | 1; }
void Draw(Rng& rng, Duration& out) { out = Duration(rng.Between(1, int64_t{1} << (1 + rng.Below(61)))); }
void Draw(Rng& rng, WallTime& out) {
  const int64_t unit = rng.Chance(1, 2) ? 1 : 1'000'000'000;
  out = WallTime(Duration(rng.Between(1, 9'000'000'000) * unit));
}
void Draw(Rng& rng, model::MemberCount& out) {
  out = {.amount = static_cast<int32_t>(rng.Between(2, 100)), .percent = rng.Chance(1, 2)};
}
void Draw(Rng& rng, model::Resources& out) {
  static const std::vector<std::string_view> kNames = {"cpu", "memory",         "disk",
                                                       "gpu", "nvidia.com/gpu", "ephemeral-storage"};
  for (uint64_t left = 1 + rng.Below(3); left > 0; --left) {
    const int64_t unit = rng.Chance(1, 2) ? 1 : (int64_t{1} << 20) * 1000;
    out.Set(kNames[rng.Below(kNames.size())], rng.Between(1, 1'000'000) * unit);
  }
}
template <class E>
  requires std::is_enum_v<E>
void Draw(Rng& rng, E& out) {
  const E before = out;
  while (out == before) out = static_cast<E>(rng.Below(static_cast<uint64_t>(LastOf(E())) + 1));
}

template <class T>
void Draw(Rng& rng, std::optional<T>& out);
template <class T>
void Draw(Rng& rng, std::vector<T>& out);
template <class T>
void Draw(Rng& rng, std::map<std::string, T>& out);

template <HasFields T>
  requires(!HasJsonText<T> && !std::same_as<T, model::Resources>)
void Draw(Rng& rng, T& out) {
  ForEachField<T>(out, [&](std::string_view, auto& field) {
    if (rng.Chance(1, 2)) Draw(rng, field);
  });
}
template <class T>
void Draw(Rng& rng, std::optional<T>& out) {
  Draw(rng, out.emplace());
}
template <class T>
void Draw(Rng& rng, std::vector<T>& out) {
  for (uint64_t left = 1 + rng.Below(3); left > 0; --left) Draw(rng, out.emplace_back());
}
template <class T>
void Draw(Rng& rng, std::map<std::string, T>& out) {
  for (uint64_t left = 1 + rng.Below(3); left > 0; --left) Draw(rng, out[RandomText(rng)]);
}

// --- one field after the other

// Gives the leaf number `which` of `value` another value and returns its path; empty if there is none so far.
class Walk {
 public:
  Walk(Rng& rng, int which) : rng_(rng), left_(which) {}

  template <class T>
  std::string Change(T& value, const std::string& path) {
    if constexpr (requires { value.emplace_back(); } && !std::same_as<T, std::string>) {
      if (std::string found = Leaf(value, path); !found.empty()) return found;
      return Below(value.emplace_back(), path + "[]", [&] { value.clear(); });
    } else if constexpr (requires {
                           value.emplace();
                           value.has_value();
                         }) {
      if (std::string found = Leaf(value, path); !found.empty()) return found;
      return Below(value.emplace(), path, [&] { value.reset(); });
    } else if constexpr (HasFields<T> && !HasJsonText<T> && !std::same_as<T, model::Resources>) {
      std::string found;
      ForEachField<T>(value, [&](std::string_view name, auto& field) {
        if (found.empty()) found = Change(field, path.empty() ? std::string(name) : fmt::format("{}.{}", path, name));
      });
      return found;
    } else {
      return Leaf(value, path);
    }
  }

 private:
  template <class T>
  std::string Leaf(T& value, const std::string& path) {
    if (left_-- != 0) return "";
    Draw(rng_, value);
    return path;
  }
  // Into an element that was made for it, which goes again if nothing is found there.
  template <class T>
  std::string Below(T& element, const std::string& path, const std::function<void()>& undo) {
    std::string found;
    if constexpr (HasFields<T> && !HasJsonText<T>) found = Change(element, path);
    if (found.empty()) undo();
    return found;
  }

  Rng& rng_;
  int left_;
};

// --- what makes a record valid

void Repair(std::string& id) {
  if (!model::IsWorkloadId(id)) id = fmt::format("w-{:x}", Hash(id));
}
void Repair(NodeRecord& record) {
  Repair(record.facts.node);
  std::erase(record.facts.supported_types, model::WorkloadType::kUnspecified);
}
void Repair(WorkloadRecord& record) { Repair(record.workload.id); }
void Repair(SetRecord& record) {
  Repair(record.spec.name);
  record.spec.replicas %= 1'000'000;
  if (record.spec.kind == model::WorkloadKind::kWorkload) record.spec.kind = model::WorkloadKind::kSet;
  std::ranges::sort(record.completed);
}
void Repair(ReconciliationRecord&) {}
void Repair(EventRecord&) {}
void Repair(model::Quota& quota) { Repair(quota.tenant); }

template <class T, class Decode>
void ExpectEveryFieldCarried(Decode decode) {
  int fields = 0;
  for (;; ++fields) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      Rng rng(seed);
      T record;
      const std::string path = Walk(rng, fields).Change(record, "");
      if (path.empty()) {
        EXPECT_GE(fields, 5);
        return;
      }
      Repair(record);
      const std::string json = Encode(record);
      const Result<T> back = decode(json);
      ASSERT_TRUE(back) << path << ": " << back.error().ToString() << "\n" << json;
      ASSERT_EQ(codec::Describe(*back), codec::Describe(record)) << path << "\n" << json;
    }
  }
}

template <class T, class Decode>
void ExpectRandomRecordsCarried(Decode decode) {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Rng rng(seed);
    T record;
    Draw(rng, record);
    Repair(record);
    const std::string json = Encode(record);
    const Result<T> back = decode(json);
    ASSERT_TRUE(back) << "seed " << seed << ": " << back.error().ToString() << "\n" << json;
    ASSERT_EQ(codec::Describe(*back), codec::Describe(record)) << "seed " << seed << "\n" << json;
    ASSERT_EQ(Encode(*back), json) << "seed " << seed;
  }
}

TEST(Records, EveryFieldOfEveryRecordIsCarried) {
  ExpectEveryFieldCarried<NodeRecord>(DecodeNode);
  ExpectEveryFieldCarried<WorkloadRecord>(DecodeWorkload);
  ExpectEveryFieldCarried<ReconciliationRecord>(DecodeReconciliation);
  ExpectEveryFieldCarried<EventRecord>(DecodeEvent);
  ExpectEveryFieldCarried<SetRecord>(DecodeSet);
  ExpectEveryFieldCarried<model::Quota>(DecodeQuota);
}

TEST(Records, RandomRecordsAreCarried) {
  ExpectRandomRecordsCarried<NodeRecord>(DecodeNode);
  ExpectRandomRecordsCarried<WorkloadRecord>(DecodeWorkload);
  ExpectRandomRecordsCarried<ReconciliationRecord>(DecodeReconciliation);
  ExpectRandomRecordsCarried<EventRecord>(DecodeEvent);
  ExpectRandomRecordsCarried<SetRecord>(DecodeSet);
  ExpectRandomRecordsCarried<model::Quota>(DecodeQuota);
}

// --- how they look

WallTime At(int64_t seconds) { return WallTime(std::chrono::seconds(1'767'225'600 + seconds)); }

WorkloadRecord Web() {
  WorkloadRecord record;
  model::Workload& workload = record.workload;
  workload.id = "web-3";
  workload.set = "web";
  workload.revision = "r1";
  workload.assigned_node = "n7";
  workload.phase = model::WorkloadPhase::kRunning;
  workload.created_at = At(0);
  workload.labels = {{"app", "web"}};
  workload.spec.type = model::WorkloadType::kContainer;
  workload.spec.image = "registry.example/web:1.4";
  workload.spec.command = {"serve", "--port", "8080"};
  workload.spec.ports = {{.container = 8080, .host = 80}};
  workload.spec.volumes = {{.source = "/srv", .target = "/data", .read_only = true}};
  workload.spec.resources = {{"cpu", 500}};
  workload.spec.resources.Set("memory", (int64_t{256} << 20) * 1000);
  workload.spec.requirements = {{{.key = "zone", .op = model::Operator::kIn, .values = {"a", "b"}}}};
  record.require_labels = {{"disk", "ssd"}};
  record.retry = {.attempts = 1, .max_attempts = 5};
  record.actual = contract::ActualState::kRunning;
  record.updated_at = At(65);
  record.stamp = {.epoch = 2, .sequence = 41};
  return record;
}

TEST(Records, AWorkloadHasTheNamesThatOtherToolsKnow) {
  EXPECT_EQ(
      Encode(Web()),
      R"({"id":"web-3","name":"web-3","type":"container","revisionId":"r1","assignedNode":"n7","nodeId":"n7",)"
      R"("status":"Running","desiredState":"Running","createdAt":"2026-01-01T00:00:00Z",)"
      R"("image":"registry.example/web:1.4","commandList":["serve","--port","8080"],)"
      R"("resources":{"cpu_usage":0.5,"memory_usage":256},"ports":["80:8080/tcp"],"volumes":["/srv:/data:ro"],)"
      R"("restartPolicy":"always","labels":{"disk":"ssd"},"retry":{"attempts":1,"maxAttempts":5},)"
      R"("statusInfo":{"actualState":"Running","lastUpdated":"2026-01-01T00:01:05Z","reason":{"retryable":true}},)"
      R"("muster":{"workload":{"set":"web","labels":{"app":"web"},)"
      R"("spec":{"requirements":[[{"key":"zone","op":"In","values":["a","b"]}]]}},)"
      R"("stamp":{"epoch":2,"sequence":41}}})");
  const auto status_of = [](model::WorkloadPhase phase, std::string_view reason) {
    WorkloadRecord record = Web();
    record.workload.phase = phase;
    record.reason = reason;
    record.message = "the sentence";
    const std::string json = Encode(record);
    const size_t begin = json.find(R"("lastUpdated")");
    return json.substr(begin, json.find(R"("muster")") - begin);
  };
  EXPECT_EQ(status_of(model::WorkloadPhase::kRunning, "agent.running"),
            R"("lastUpdated":"2026-01-01T00:01:05Z",)"
            R"("reason":{"code":"agent.running","message":"the sentence","retryable":true}},)");
  EXPECT_EQ(status_of(model::WorkloadPhase::kRetryPending, "agent.apply_failed"),
            R"("lastUpdated":"2026-01-01T00:01:05Z","failureReason":"the sentence",)"
            R"("reason":{"code":"agent.apply_failed","message":"the sentence","retryable":true}},)");
}

TEST(Records, ANodeHasTheNamesThatOtherToolsKnow) {
  NodeRecord record;
  record.facts.node = "n7";
  record.facts.endpoint = "10.0.0.7:50051";
  record.facts.total = {{"cpu", 4000}};
  record.facts.total.Set("memory", (int64_t{8192} << 20) * 1000);
  record.facts.supported_types = {model::WorkloadType::kContainer};
  record.facts.labels = {{"zone", "a"}};
  record.status = model::NodeStatus::kReady;
  record.status_reason = "registered";
  record.status_updated_by = "register";
  record.status_updated_at = At(1);
  record.last_heartbeat = At(1) + 250ms;
  record.epoch = 3;
  EXPECT_EQ(Encode(record),
            R"({"nodeId":"n7","ipAddress":"10.0.0.7","status":"Ready","totalCpu":4,"availableCpu":4,)"
            R"("totalMemory":8192,"availableMemory":8192,"lastHeartbeat":"2026-01-01T00:00:01.25Z",)"
            R"("statusReason":"registered","statusUpdatedBy":"register","statusUpdatedAt":"2026-01-01T00:00:01Z",)"
            R"("labels":{"zone":"a"},"agentGrpcPort":50051,"agentEndpoint":"10.0.0.7:50051",)"
            R"("supportedWorkloadTypes":["container"],"muster":{"epoch":3}})");
}

TEST(Records, SmallRecordsHaveTheNamesThatOtherToolsKnow) {
  EXPECT_EQ(Encode(AssignmentRecord{.workload = "w", .node = "n", .reason = "fits", .created_at = At(0)}),
            R"({"workloadId":"w","nodeId":"n","reason":"fits","createdAt":"2026-01-01T00:00:00Z"})");
  EXPECT_EQ(Encode("w", RetryRecord{.attempts = 2, .max_attempts = 5, .next_retry_at = At(5)}),
            R"({"workloadId":"w","attempts":2,"maxAttempts":5,"nextRetryAt":"2026-01-01T00:00:05Z"})");
  EXPECT_EQ(Encode(ReconciliationRecord{.workload = "w", .action = "Assign", .attempted_at = At(0)}),
            R"({"workloadId":"w","action":"Assign","success":true,"attemptedAt":"2026-01-01T00:00:00Z"})");
  EXPECT_EQ(Encode(EventRecord{.id = "e1", .type = "NodeLost", .node = "n", .at = At(0), .details = {{"age", "3m"}}}),
            R"({"id":"e1","type":"NodeLost","nodeId":"n","timestamp":"2026-01-01T00:00:00Z","details":{"age":"3m"}})");
}

TEST(Records, TheOrderOfKeysDoesNotMatter) {
  WorkloadRecord record = Web();
  record.workload.spec.ports = {{.container = 0, .host = 80}};  // not carried by the text of other tools
  const std::string json = Encode(record);
  const size_t own = json.find(R"("muster":)");
  const std::string reordered = "{" + json.substr(own, json.size() - own - 1) + "," + json.substr(1, own - 2) + "}";
  const auto back = DecodeWorkload(reordered);
  ASSERT_TRUE(back) << back.error().ToString();
  EXPECT_EQ(codec::Describe(*back), codec::Describe(record));
}

// --- records of another program

TEST(Records, AWorkloadOfAnotherProgramIsRead) {
  const auto record = DecodeWorkload(R"({
    "id": "db", "name": "db", "type": "docker-container", "revisionId": "rev-1", "assignedNode": "", "nodeId": "n2",
    "image": "postgres:16", "command": "postgres  -c fsync=on", "envVars": {"A": "b"},
    "resources": {"cpu_usage": 0.30000000000000004, "memory_usage": 512, "disk_usage": 10},
    "status": "RetryPending", "desiredState": "stop", "labels": {"zone": "a"},
    "createdAt": "2026-02-18T09:30:00.123456789+01:00", "ports": ["5432:5432", "53:53/udp", "8080"],
    "volumes": ["/srv/db:/data"], "network": "bridge", "restartPolicy": "unless-stopped",
    "metadata": {"lastReconciliationSuccess": true, "n": 3, "nested": {"a": [1]}},
    "retry": {"attempts": 2, "maxAttempts": 5, "nextRetryAt": "0001-01-01T00:00:00Z"},
    "statusInfo": {"actualState": "Missing", "lastUpdated": "0001-01-01T00:00:00Z", "failureReason": "no image"},
    "usage": null, "vm": null, "futureField": {"x": [1, 2, {"y": null}]}})");
  ASSERT_TRUE(record) << record.error().ToString();
  const model::Workload& workload = record->workload;
  EXPECT_EQ(workload.assigned_node, "n2");
  EXPECT_EQ(workload.phase, model::WorkloadPhase::kRetryPending);
  EXPECT_EQ(workload.desired, model::DesiredState::kStopped);
  EXPECT_EQ(JsonText(workload.created_at), "2026-02-18T08:30:00.123456789Z");
  EXPECT_EQ(workload.spec.type, model::WorkloadType::kContainer);
  EXPECT_EQ(workload.spec.command, (std::vector<std::string>{"postgres", "-c", "fsync=on"}));
  EXPECT_EQ(workload.spec.resources.ToString(), "cpu=300m disk=10737418240 memory=512Mi");
  EXPECT_EQ(workload.spec.restart, model::RestartPolicy::kAlways);
  EXPECT_EQ(workload.spec.ports,
            (std::vector<model::Port>{{.container = 5432, .host = 5432},
                                      {.container = 53, .host = 53, .protocol = model::PortProtocol::kUdp},
                                      {.container = 8080}}));
  EXPECT_EQ(record->require_labels, (std::map<std::string, std::string>{{"zone", "a"}}));
  EXPECT_EQ(record->metadata.at("lastReconciliationSuccess"), "true");
  EXPECT_EQ(record->metadata.at("nested"), R"({"a": [1]})");
  EXPECT_EQ(record->retry, (RetryRecord{.attempts = 2, .max_attempts = 5}));
  EXPECT_EQ(record->actual, contract::ActualState::kMissing);
  EXPECT_EQ(record->message, "no image");
  EXPECT_EQ(record->agent_revision, "rev-1");
}

TEST(Records, AVirtualMachineAndAComposeFileOfAnotherProgramAreRead) {
  const auto vm = DecodeWorkload(R"json({"id": "vm", "type": "", "status": "Stopped (ip=10.0.0.4)",
                                         "vm": {"vcpus": 2, "memoryMb": 1024}})json");
  ASSERT_TRUE(vm) << vm.error().ToString();
  EXPECT_EQ(vm->workload.spec.type, model::WorkloadType::kVm);
  EXPECT_EQ(vm->workload.phase, model::WorkloadPhase::kStopped);
  EXPECT_EQ(vm->workload.spec.resources.ToString(), "cpu=2 memory=1Gi");

  const auto compose = DecodeWorkload(R"({"id": "c", "type": "git-compose", "composeYaml": "c2VydmljZXM6IHt9Cg=="})");
  ASSERT_TRUE(compose) << compose.error().ToString();
  EXPECT_EQ(compose->workload.spec.type, model::WorkloadType::kCompose);
  EXPECT_EQ(compose->workload.spec.compose, "services: {}\n");
}

TEST(Records, ANodeOfAnotherProgramIsRead) {
  const auto node = DecodeNode(R"({"nodeId": "n1", "ipAddress": "fd00::7", "agentGrpcPort": 50051, "status": "Active",
    "totalCpu": 7.5, "totalMemory": 16000, "resources": {"cpu_usage": 1}, "hypervisor": {"type": "kvm"},
    "lastHeartbeat": "2026-02-18T08:30:00Z"})");
  ASSERT_TRUE(node) << node.error().ToString();
  EXPECT_EQ(node->status, model::NodeStatus::kReady);
  EXPECT_EQ(node->facts.endpoint, "[fd00::7]:50051");
  EXPECT_EQ(node->facts.total.Get("cpu"), 7500);
  EXPECT_EQ(node->facts.total.Get("memory"), (int64_t{16000} << 20) * 1000);
  EXPECT_EQ(node->facts.supported_types,
            (std::vector{model::WorkloadType::kContainer, model::WorkloadType::kCompose, model::WorkloadType::kVm}));
  const auto container_only = DecodeNode(R"({"nodeId": "n1", "supportedWorkloadTypes": ["container", "wasm"]})");
  ASSERT_TRUE(container_only) << container_only.error().ToString();
  EXPECT_EQ(container_only->facts.supported_types, std::vector{model::WorkloadType::kContainer});
}

// --- hostile values

TEST(Records, ABadValueIsRefusedWithItsField) {
  const auto problem = [](const auto& result) {
    return result ? "read" : std::string(CodeName(result.error().code())) + " " + result.error().message();
  };
  EXPECT_EQ(problem(DecodeWorkload("")), "INVALID_ARGUMENT byte 0: expected an object but found no value");
  EXPECT_EQ(problem(DecodeWorkload("{}")), "INVALID_ARGUMENT id: missing");
  EXPECT_EQ(problem(DecodeWorkload(R"({"id":"a/b"})")), R"(INVALID_ARGUMENT id: "a/b" is no id)");
  EXPECT_EQ(problem(DecodeWorkload(R"({"id":7})")), "INVALID_ARGUMENT id: expected text but found a number (byte 6)");
  EXPECT_EQ(problem(DecodeWorkload(R"({"id":"a"} x)")), "INVALID_ARGUMENT byte 11: expected nothing more");
  EXPECT_EQ(problem(DecodeWorkload(R"({"id":"a","retry":{"attempts":1e3}})")),
            R"(INVALID_ARGUMENT retry.attempts: "1e3" is not a whole number that fits (byte 33))");
  EXPECT_EQ(problem(DecodeWorkload(R"({"id":"a","retry":{"attempts":99999999999}})")),
            R"(INVALID_ARGUMENT retry.attempts: "99999999999" is not a whole number that fits (byte 41))");
  EXPECT_EQ(problem(DecodeWorkload(R"({"id":"a","statusInfo":{"actualState":"Odd"}})")),
            R"(INVALID_ARGUMENT statusInfo.actualState: unknown state "Odd" (byte 43))");
  EXPECT_EQ(problem(DecodeWorkload(R"({"id":"a","ports":["1:2","70000:1"]})")),
            R"(INVALID_ARGUMENT ports[1]: "70000:1" is no port; write host:container/protocol (byte 34))");
  EXPECT_EQ(problem(DecodeWorkload(R"({"id":"a","resources":{"cpu_usage":-1}})")),
            "INVALID_ARGUMENT resources.cpu_usage: this many cores are not possible (byte 37)");
  EXPECT_EQ(problem(DecodeWorkload(R"({"id":"a","resources":{"memory_usage":1e300}})")),
            "INVALID_ARGUMENT resources.memory_usage: this amount is not possible (byte 43)");
  EXPECT_EQ(problem(DecodeWorkload(R"({"id":"a","muster":{"workload":{"spec":{"grace":"soon"}}}})")),
            R"(INVALID_ARGUMENT muster.workload.spec.grace: duration "soon": write whole numbers with units, as in )"
            R"(90s, 10m or 1h30m (byte 54))");
  EXPECT_EQ(problem(DecodeWorkload("{\"id\":\"\xff\"}")), "INVALID_ARGUMENT byte 7: this byte is not UTF-8");
  EXPECT_EQ(problem(DecodeWorkload(R"({"id":"\ud800x"})")),
            "INVALID_ARGUMENT id: half of a surrogate pair alone (byte 13)");
  EXPECT_EQ(problem(DecodeWorkload(std::string(JsonCursor::kMaxBytes + 1, ' '))),
            "INVALID_ARGUMENT byte 0: 4194305 bytes are too many; at most 4194304 are read");
  EXPECT_EQ(problem(DecodeNode(R"({"nodeId":"n","totalMemory":"8"})")),
            "INVALID_ARGUMENT totalMemory: expected a number but found text (byte 28)");
  EXPECT_EQ(problem(DecodeSet(R"({"spec":{"kind":"Set","name":"web","replicas":2000000000}})")),
            "INVALID_ARGUMENT spec.replicas: 2000000000 is not from 0 to 1000000");
  EXPECT_EQ(problem(DecodeSet(R"({"spec":{"kind":"Job","name":"job"},"completed":[1,1]})")),
            "INVALID_ARGUMENT completed: the numbers must be in order, each once");
  EXPECT_EQ(problem(DecodeQuota(R"({"tenant":"shop","limits":{"cpu":"4x"}})")),
            R"(INVALID_ARGUMENT limits.cpu: quantity "4x": unknown suffix "x"; use one of n u m k M G T P E Ki Mi Gi )"
            R"(Ti Pi Ei, or e and an exponent (byte 37))");
}

TEST(Records, NestingIsBounded) {
  const std::string deep = R"({"id":"a","x":)" + std::string(100'000, '[') + "}";
  const auto record = DecodeWorkload(deep);
  ASSERT_FALSE(record);
  EXPECT_NE(record.error().message().find("nested deeper than 32"), std::string::npos) << record.error().message();
}

TEST(Records, NoBytesCrashTheReader) {
  Rng rng(1);
  WorkloadRecord record = Web();
  Draw(rng, record.workload.spec);
  const std::string json = Encode(record);
  int refused = 0;
  for (size_t size = 0; size < json.size(); ++size) {
    refused += DecodeWorkload(std::string_view(json).substr(0, size)) ? 0 : 1;
  }
  EXPECT_EQ(refused, static_cast<int>(json.size()));
  for (int i = 0; i < 20'000; ++i) {
    std::string broken = json;
    for (uint64_t left = 1 + rng.Below(3); left > 0; --left) {
      broken[rng.Below(broken.size())] = static_cast<char>(rng.Below(256));
    }
    if (const auto back = DecodeWorkload(broken)) {
      // Whatever was read is a record that is carried.
      const auto again = DecodeWorkload(Encode(*back));
      ASSERT_TRUE(again) << again.error().ToString() << "\n" << broken;
      ASSERT_EQ(codec::Describe(*again), codec::Describe(*back)) << broken;
    } else {
      EXPECT_EQ(back.error().code(), Code::kInvalidArgument);
    }
  }
}

TEST(Records, TextThatIsNotUtf8IsStoredReadably) {
  WorkloadRecord record = Web();
  record.message = "bad \xff\xc3 byte";
  const auto back = DecodeWorkload(Encode(record));
  ASSERT_TRUE(back) << back.error().ToString();
  EXPECT_EQ(back->message, "bad \uFFFD\uFFFD byte");
}

// --- keys

TEST(Records, KeysAreParsedAsTheyAreMade) {
  for (const std::string prefix : {"", "/prod"}) {
    for (const RecordKind kind :
         {RecordKind::kNode, RecordKind::kNodeStatus, RecordKind::kWorkload, RecordKind::kAssignment,
          RecordKind::kRetry, RecordKind::kReconciliation, RecordKind::kEvent, RecordKind::kSet, RecordKind::kQuota}) {
      const std::string key = KeyOf(prefix, kind, "a.b-1");
      const auto parsed = ParseKey(prefix, key);
      ASSERT_TRUE(parsed) << key;
      EXPECT_EQ(parsed->kind, kind) << key;
      EXPECT_EQ(parsed->id, "a.b-1") << key;
    }
  }
  EXPECT_EQ(KeyOf("/prod", RecordKind::kNodeStatus, "n1"), "/prod/nodes/n1/status");
  EXPECT_EQ(KeyOf("", RecordKind::kWorkload, "w"), "/workloads/w");
  for (const std::string_view key : {"/nodes/", "/nodes/a/b", "/skydns/x", "/workloads-spec/w", "/prod/nodes/n", ""}) {
    EXPECT_FALSE(ParseKey("", key)) << key;
  }
  EXPECT_FALSE(ParseKey("/prod", "/nodes/n"));
}

TEST(Records, SecretsChangeARevisionAndTheirAbsenceDoesNot) {
  model::WorkloadTemplate spec;
  spec.command = {"serve"};
  const std::string bytes = codec::ToBytes(spec);
  EXPECT_EQ(RevisionBytes(spec), bytes.substr(0, bytes.size() - 1)) << "without the number of secrets, which ends it";
  spec.secret_env = {{"A", "sealed:x"}};
  const std::string one = RevisionBytes(spec);
  EXPECT_EQ(one, codec::ToBytes(spec));
  spec.secret_env = {{"A", "sealed:y"}};
  EXPECT_NE(RevisionBytes(spec), one);
}

}  // namespace
}  // namespace muster::scheduler
