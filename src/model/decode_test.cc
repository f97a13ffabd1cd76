#include "model/decode.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "base/source_dir_for_test.h"
#include "model/json_reader.h"
#include "model/yaml_reader.h"

namespace muster::model {
namespace {

// The clusters and machines of a file, as a case file holds them.
struct World {
  std::vector<Need> needs;
  std::vector<Machine> machines;
};

Result<World> ReadWorld(std::string_view yaml) {
  MUSTER_ASSIGN_OR_RETURN(const TextValue value, ReadYamlDocument(yaml, "f.yaml"));
  TextErrors errors("f.yaml");
  TextReader root(errors, value);
  World world;
  for (TextReader& cluster : root.Field("clusters").List()) {
    std::string name;
    cluster.Field("name").Require().Read(name);
    for (TextReader& need : cluster.Field("needs").List()) world.needs.push_back(ReadNeed(need, name));
    cluster.RefuseUnknown();
  }
  for (TextReader& machine : root.Field("machines").List()) {
    world.machines.push_back(ReadMachine(machine));
    machine.RefuseUnknown();
  }
  root.RefuseUnknown();
  if (!errors.ok()) return std::unexpected(errors.status());
  return world;
}

std::string ErrorOf(std::string_view yaml) {
  const auto world = ReadWorld(yaml);
  return world ? "ok" : world.error().message();
}

// A need or a machine with one more line.
std::string Need1(std::string_view line) {
  return "clusters:\n- name: c\n  needs:\n  - aggregate: {cpu: 4}\n    " + std::string(line) + "\n";
}
std::string Machine1(std::string_view line) {
  return "machines:\n- id: m-1\n  state: Speculative\n  " + std::string(line) + "\n";
}

TEST(Decode, Need) {
  const auto world = ReadWorld(R"(
clusters:
- name: blue
  needs:
  - requirements:
    - {key: topology.kubernetes.io/zone, values: [b, a]}
    - {key: gpu, operator: Exists}
    spread:
    - {topologyKey: rack, maxSkew: 2, whenUnsatisfiable: ScheduleAnyway}
    - topologyKey: zone
    priority: 1000
    interruptionPenalty: $0.51
    reclamationPenalty: pinned
    aggregate: {cpu: "64", memory: 256Gi, nvidia.com/gpu: 8}
    minUnit: {cpu: 500m}
    group: trainer
    arrival: 2026-01-01T00:00:00Z
  - aggregate: {cpu: 1}
)");
  ASSERT_TRUE(world) << world.error().message();
  ASSERT_EQ(world->needs.size(), 2u);
  Need expected;
  expected.cluster = "blue";
  expected.profile = Profile(
      {.requirements = {{"gpu", Operator::kExists, {}}, {"topology.kubernetes.io/zone", Operator::kIn, {"a", "b"}}},
       .spread = {{"rack", 2, WhenUnsatisfiable::kScheduleAnyway}, {"zone", 1, WhenUnsatisfiable::kDoNotSchedule}},
       .priority = 1000,
       .interruption = PenaltyBucket::kOneDollar,
       .reclamation = PenaltyBucket::kPinned});
  expected.aggregate = Resources{{"cpu", 64'000}, {"memory", (int64_t{256} << 30) * 1000}, {"nvidia.com/gpu", 8000}};
  expected.min_unit = Resources{{"cpu", 500}};
  expected.group = "trainer";
  expected.arrival = WallTime(1767225600s);
  EXPECT_EQ(world->needs[0], expected);
  EXPECT_EQ(world->needs[1].profile, Profile());
}

TEST(Decode, Machine) {
  const auto world = ReadWorld(R"(
machines:
- id: m-1
  state: Configured
  host: {provider: sim, ref: h-9}
  instanceType: c8
  zone: a
  capacityType: spot
  price: 0.34
  interruptionProbability: 0.05
  resources: {cpu: 8, memory: 32Gi}
  allocatable: {cpu: 7500m}
  labels: {rack: r1, gpu: "true"}
  cluster: blue
  metadata: {k: v}
- {id: m-2, state: Failed, lastError: no power}
)");
  ASSERT_TRUE(world) << world.error().message();
  ASSERT_EQ(world->machines.size(), 2u);
  Machine expected;
  expected.id = "m-1";
  expected.state = MachineState::kConfigured;
  expected.host = {.provider = "sim", .ref = "h-9"};
  expected.instance_type = "c8";
  expected.zone = "a";
  expected.capacity_type = CapacityType::kSpot;
  expected.price_per_hour = Money{340'000};
  expected.interruption_probability = Probability{50'000};
  expected.resources = Resources{{"cpu", 8000}, {"memory", (int64_t{32} << 30) * 1000}};
  expected.allocatable = Resources{{"cpu", 7500}};
  expected.labels = {{"gpu", "true"}, {"rack", "r1"}};
  expected.cluster = "blue";
  expected.shard_metadata = {{"k", "v"}};
  EXPECT_EQ(world->machines[0], expected);
  EXPECT_FALSE(world->machines[1].allocatable);
  EXPECT_EQ(world->machines[1].last_error, "no power");
}

TEST(Decode, SaysWhatIsWrong) {
  const std::pair<std::string, std::string> cases[] = {
      {"clusters:\n- name: a\n- name: b\n- name: c\n  needs:\n  - aggregate: {cpu: 8}\n    minUnit: {cpu: 4x}\n",
       R"(f.yaml:7:20: clusters[2].needs[0].minUnit.cpu: quantity "4x": unknown suffix "x"; use one of n u m k M G T P E Ki Mi Gi Ti Pi Ei, or e and an exponent)"},
      {Need1("minUnit: {cpu: -1}"),
       "f.yaml:5:20: clusters[0].needs[0].minUnit.cpu: -1 is negative; an amount of a resource is zero or more"},
      {Need1("minUnit: {cpu: 1e-9}"),
       R"(f.yaml:5:20: clusters[0].needs[0].minUnit.cpu: quantity "1e-9": finer than 1m, the smallest amount there is; round it to a whole number of milli-units)"},
      {Need1("minUnit: {\"\": 1}"),
       R"(f.yaml:5:19: clusters[0].needs[0].minUnit[""]: a resource has no name; give one such as cpu or memory)"},
      {Need1("minUnits: {cpu: 1}"),
       R"(f.yaml:5:5: clusters[0].needs[0].minUnits: unknown field; did you mean "minUnit"?)"},
      {Need1("priority: high"),
       R"(f.yaml:5:15: clusters[0].needs[0].priority: expected a whole number but found "high")"},
      {Need1("priority: 3000000000"),
       R"(f.yaml:5:15: clusters[0].needs[0].priority: "3000000000" is out of range; expected a whole number from -2147483648 to 2147483647)"},
      {Need1("interruptionPenalty: lots"),
       R"(f.yaml:5:26: clusters[0].needs[0].interruptionPenalty: penalty "lots": write dollars such as 0.51 or $8000, or the word pinned)"},
      {Need1("reclamationPenalty: -3"),
       R"(f.yaml:5:25: clusters[0].needs[0].reclamationPenalty: penalty "-3": write dollars such as 0.51 or $8000, or the word pinned)"},
      {Need1("arrival: 12:00"),
       R"(f.yaml:5:14: clusters[0].needs[0].arrival: time "12:00": write it as 2026-01-31T08:00:00Z or as whole seconds since 1970)"},
      {Need1("group: [a]"), "f.yaml:5:12: clusters[0].needs[0].group: expected a single value but found a list"},
      {Need1("requirements: {key: zone}"),
       "f.yaml:5:19: clusters[0].needs[0].requirements: expected a list but found a map"},
      {Need1("requirements: [{key: zone}]"),
       "f.yaml:5:20: clusters[0].needs[0].requirements[0].operator: this field is required"},
      {Need1("requirements: [{operator: Exists}]"),
       "f.yaml:5:20: clusters[0].needs[0].requirements[0].key: this field is required"},
      {Need1("requirements: [{key: zone, operator: in, values: [a]}]"),
       R"(f.yaml:5:42: clusters[0].needs[0].requirements[0].operator: unknown operator "in": use one of In, NotIn, Exists, DoesNotExist, Same, Gt, Lt)"},
      {Need1("requirements: [{key: zone, operator: Near, values: [a]}]"),
       R"(f.yaml:5:42: clusters[0].needs[0].requirements[0].operator: unknown operator "Near": use one of In, NotIn, Exists, DoesNotExist, Same, Gt, Lt)"},
      {Need1("requirements: [{key: zone, operator: Exists, values: [a]}]"),
       "f.yaml:5:20: clusters[0].needs[0].requirements[0]: values: Exists takes none"},
      {Need1("requirements: [{key: zone, operator: In, values: []}]"),
       "f.yaml:5:20: clusters[0].needs[0].requirements[0]: values: In needs at least one"},
      {Need1("requirements: [{key: zone, operator: Gt, values: [big]}]"),
       R"(f.yaml:5:20: clusters[0].needs[0].requirements[0]: values[0]: "big" is not a 64-bit integer)"},
      {Need1("requirements: [{key: zone, value: a}]"),
       "f.yaml:5:20: clusters[0].needs[0].requirements[0].operator: this field is required"},
      {Need1("spread: [{maxSkew: 1}]"),
       "f.yaml:5:14: clusters[0].needs[0].spread[0].topologyKey: this field is required"},
      {Need1("spread: [{topologyKey: zone, whenUnsatisfiable: Never}]"),
       R"(f.yaml:5:53: clusters[0].needs[0].spread[0].whenUnsatisfiable: unknown whenUnsatisfiable "Never": use one of DoNotSchedule, ScheduleAnyway)"},
      {Need1("spread: [{topologyKey: zone, maxSkew: 0}]"),
       "f.yaml:5:43: clusters[0].needs[0].spread[0].maxSkew: expected a whole number of at least 1"},
      {Need1("spread: [{topologyKey: zone, maxSkew: 1.5}]"),
       R"(f.yaml:5:43: clusters[0].needs[0].spread[0].maxSkew: expected a whole number but found "1.5")"},
      {"clusters:\n- name: c\n  needs:\n  - priority: 1\n",
       "f.yaml:4:5: clusters[0].needs[0].aggregate: this field is required"},
      {"machines:\n- state: Idle\n", "f.yaml:2:3: machines[0].id: this field is required"},
      {"machines:\n- id: m-1\n", "f.yaml:2:3: machines[0].state: this field is required"},
      {"machines:\n- {id: m-1, state: Lost}\n",
       R"(f.yaml:2:20: machines[0].state: unknown machine state "Lost": use one of Speculative, Creating, Idle, Configuring, Configured, Draining, Deleting, Failed)"},
      {"machines:\n- {id: m-1, state: Idle}\n",
       R"(f.yaml:2:3: machines[0]: machine "m-1": host: a machine that is Idle must have one)"},
      {"machines:\n- {id: m-1, state: Failed}\n", "f.yaml:2:3: machines[0].lastError: this field is required"},
      {"machines:\n- {id: '', state: Speculative}\n", R"(f.yaml:2:3: machines[0]: machine "": id: missing)"},
      {Machine1("cluster: blue"),
       R"(f.yaml:2:3: machines[0]: machine "m-1": cluster: a machine that is Speculative must have none)"},
      {Machine1("price: free"),
       R"(f.yaml:4:10: machines[0].price: amount of dollars "free": it is not a plain decimal number such as 12 or 0.51)"},
      {Machine1("price: 0.0000001"),
       R"(f.yaml:4:10: machines[0].price: amount of dollars "0.0000001": it has more than six decimals)"},
      {Machine1("interruptionProbability: 1.5"),
       R"(f.yaml:4:28: machines[0].interruptionProbability: probability "1.5": the most is 1)"},
      {Machine1("capacityType: cheap"),
       R"(f.yaml:4:17: machines[0].capacityType: unknown capacity type "cheap": use one of unspecified, bare-metal, reserved, on-demand, spot)"},
      {Machine1("host: sim/h-9"), R"(f.yaml:4:9: machines[0].host: expected a map but found "sim/h-9")"},
      {Machine1("host: {provider: sim, reference: h}"),
       "f.yaml:4:25: machines[0].host.reference: unknown field; known here: provider, ref"},
      {Machine1("allocatable: {cpu: lots}"),
       R"(f.yaml:4:22: machines[0].allocatable.cpu: quantity "lots": it does not begin with a number; write one such as 2, 250m or 1.5Gi)"},
      {Machine1("labels: [rack]"), "f.yaml:4:11: machines[0].labels: expected a map but found a list"},
      {Machine1("instance_type: c8"),
       R"(f.yaml:4:3: machines[0].instance_type: unknown field; did you mean "instanceType"?)"},
  };
  for (const auto& [yaml, message] : cases) EXPECT_EQ(ErrorOf(yaml), message) << yaml;
}

// The YAML blocks of the page that documents the keys.
std::vector<TextValue> DocumentedBlocks() {
  std::ifstream file(SourceDir() + "/docs/model-files.md");
  std::vector<TextValue> blocks;
  std::string block;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (inside && line == "```") {
      const auto value = ReadYamlDocument(block, "docs/model-files.md");
      if (value) blocks.push_back(*value);
      EXPECT_TRUE(value) << value.error().message();
      inside = false;
    } else if (inside) {
      block += line + "\n";
    } else if (line == "```yaml") {
      inside = true;
      block.clear();
    }
  }
  return blocks;
}

TEST(Decode, DocumentedKeysAreAllThereAre) {
  const std::vector<TextValue> blocks = DocumentedBlocks();
  ASSERT_EQ(blocks.size(), 2u);
  TextErrors errors("docs/model-files.md");
  TextReader machine(errors, blocks[0]);
  ReadMachine(machine);
  machine.RefuseUnknown();
  EXPECT_TRUE(errors.ok()) << errors.status().message();
  TextReader need(errors, blocks[1]);
  ReadNeed(need, "c");
  EXPECT_TRUE(errors.ok()) << errors.status().message();

  // An unknown field for which there is no hint lists every key that is known.
  for (size_t i : {size_t{0}, size_t{1}}) {
    TextValue odd = blocks[i];
    odd.fields.push_back({.key = "xyzzyxyzzy", .position = {}, .value = {}});
    TextErrors listing("");
    TextReader reader(listing, odd);
    if (i == 0) ReadMachine(reader);
    if (i == 0) reader.RefuseUnknown();
    if (i == 1) ReadNeed(reader, "c");
    std::set<std::string> known;
    std::istringstream names(listing.status().message().substr(listing.status().message().rfind(": ") + 2));
    for (std::string name; std::getline(names >> std::ws, name, ',');) known.insert(name);
    std::set<std::string> documented;
    for (const TextField& field : blocks[i].fields) documented.insert(field.key);
    EXPECT_EQ(known, documented);
  }
}

TEST(Decode, HundredThousandMachinesAsAStream) {
  // Lines are made as they are asked for, so the whole is never in memory.
  class Fleet : public std::streambuf {
   protected:
    int_type underflow() override {
      if (next_ == 100'000) return traits_type::eof();
      line_ = "{\"id\": \"m-" + std::to_string(next_++) +
              "\", \"state\": \"Speculative\", \"instanceType\": \"c8\", \"zone\": \"a\", \"capacityType\": \"spot\", "
              "\"price\": 0.34, \"interruptionProbability\": 0.05, \"resources\": {\"cpu\": 8, \"memory\": \"32Gi\"}, "
              "\"labels\": {\"rack\": \"r1\"}}\n";
      setg(line_.data(), line_.data(), line_.data() + line_.size());
      return traits_type::to_int_type(line_.front());
    }

   private:
    int next_ = 0;
    std::string line_;
  };
  Fleet fleet;
  std::istream in(&fleet);
  int count = 0;
  const Status status = ReadJsonLines(in, "fleet.jsonl", [&](const TextValue& row) {
    TextErrors errors("fleet.jsonl");
    TextReader reader(errors, row);
    const Machine machine = ReadMachine(reader);
    reader.RefuseUnknown();
    EXPECT_EQ(machine.id, "m-" + std::to_string(count++));
    EXPECT_EQ(machine.resources.Get("cpu"), 8000);
    return errors.status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(count, 100'000);
}

}  // namespace
}  // namespace muster::model
