// Every text in every answer of a scheduler is hostile; no verb of a cluster lets a byte of it steer the terminal.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <type_traits>
#include <variant>

#include "base/fields.h"
#include "cli/explain_chain.h"
#include "cli/fake_cluster_for_test.h"
#include "cli/live_run.h"
#include "cli/live_view.h"
#include "cli/plan_live.h"
#include "host/temp_dir_for_test.h"

namespace muster::cli {
namespace {

using contract::ClusterReply;
using contract::ClusterRequest;

// ESC, newline, carriage return, BEL, DEL, C1 in UTF-8 and in eight bits, a line separator and turns of direction.
const std::string kNasty =
    "\x1b[2J\n!\r\a\x7f\xc2\x9b"
    "31m\x9b\xe2\x80\xa8\xe2\x80\xae\xe2\x81\xa6\xd8\x9c";

// The same on one line: the ends of lines in a log are the workload's own.
const std::string kFlat = [] {
  std::string flat = kNasty;
  std::erase(flat, '\n');
  return flat;
}();

// The first that must not be there; empty: none. No line of ours begins with the mark that follows the newline above.
std::string Steering(const std::string& text) {
  for (const char* part : {"\x1b", "\n!", "\r", "\a", "\x7f", "\xc2\x9b", "\xe2\x80\xa8", "\xe2\x80\xae",
                           "\xe2\x81\xa6", "\xd8\x9c", "m\x9b"}) {
    if (text.contains(part)) return fmt::format("{:02x}", fmt::join(std::string(part), " "));
  }
  return {};
}

// Gives every text within the value, however deep, the name of its field and the hostile bytes. What is a list or may
// be absent has one.
struct Poison {
  std::string_view field;

  void operator()(std::string& text) const { text = fmt::format("{}{}", field, kNasty); }
  void operator()(model::Resources& resources) const {
    resources.Set("cpu", 1000);
    resources.Set("odd" + kNasty, 1000);
  }
  template <class T>
  void operator()(std::optional<T>& value) const {
    (*this)(value.emplace());
  }
  template <class T>
  void operator()(std::vector<T>& values) const {
    (*this)(values.emplace_back());
  }
  template <class Key, class T>
  void operator()(std::map<Key, T>& values) const {
    Key key{};
    (*this)(key);
    (*this)(values[key]);
  }
  template <class... T>
  void operator()(std::variant<T...>& value) const {
    std::visit(*this, value);
  }
  template <class T>
  void operator()(T& value) const {
    if constexpr (HasFields<T> && std::is_aggregate_v<T>) {
      ForEachField<T>(value, [](std::string_view name, auto& member) { Poison{name}(member); });
    } else if constexpr (std::is_same_v<T, WallTime>) {
      value = WallTime(std::chrono::seconds(1'767'225'000));
    }
  }
};

template <class Reply>
Reply Hostile() {
  Reply reply{};
  Poison{Reply::kTypeName}(reply);
  if constexpr (requires { reply.next; }) reply.next.clear();  // the last page
  return reply;
}

Result<ClusterReply> Answer(const ClusterRequest& request) {
  if (std::holds_alternative<contract::ListNodes>(request)) return Hostile<contract::NodesListed>();
  if (std::holds_alternative<contract::ListWorkloads>(request)) return Hostile<contract::WorkloadsListed>();
  if (std::holds_alternative<contract::ListSets>(request)) return Hostile<contract::SetsListed>();
  if (std::holds_alternative<contract::ListQuotas>(request)) return Hostile<contract::QuotasListed>();
  if (std::holds_alternative<contract::ListEvents>(request)) return Hostile<contract::EventsListed>();
  if (std::holds_alternative<contract::GetNode>(request)) return Hostile<contract::NodeView>();
  if (std::holds_alternative<contract::GetWorkload>(request)) return Hostile<contract::WorkloadView>();
  if (std::holds_alternative<contract::ExplainWorkload>(request)) return Hostile<contract::Explanation>();
  if (std::holds_alternative<contract::ApplySpec>(request)) return Hostile<contract::Applied>();
  if (std::holds_alternative<contract::ApplyQuota>(request)) return Hostile<contract::Applied>();
  if (std::holds_alternative<contract::GetSummary>(request)) return Hostile<contract::Summary>();
  return contract::Done{};
}

class PrintableVerbs : public testing::Test {
 protected:
  PrintableVerbs() {
    std::ofstream(file_) << "kind: Set\nname: web\nreplicas: 3\ntemplate: {type: process, command: [serve]}\n"
                         << "---\nkind: Workload\nname: db\ntemplate: {type: process, command: [db]}\n"
                         << "---\nkind: Quota\ntenant: shop\nlimits: {workloads: 10}\n";
    for (const std::string output : {"table", "wide", "json", "yaml", "name"}) {
      for (const std::string kind : {"workloads", "nodes", "sets", "quotas", "events"}) {
        verbs_.push_back({"get", kind, "-o", output});
      }
    }
    for (const std::string kind : {"workload", "node", "set", "quota"}) verbs_.push_back({"describe", kind, name_});
    for (const std::string output : {"table", "wide", "json", "yaml"}) {
      verbs_.push_back({"explain", "workload", name_, "-o", output});
      verbs_.push_back({"explain", "node", name_, "-o", output});
      verbs_.push_back({"events", "-o", output});
      verbs_.push_back({"events", "--follow", "-o", output});
      verbs_.push_back({"get", "workloads", "--watch", "-o", output});
      verbs_.push_back({"diff", "-f", file_, "-o", output});
    }
    for (const std::vector<std::string>& verb :
         std::vector<std::vector<std::string>>{{"diff", "-f", file_},
                                               {"apply", "-f", file_},
                                               {"apply", "-f", file_, "--dry-run"},
                                               {"delete", "workload", name_},
                                               {"delete", "set", name_},
                                               {"scale", "set/" + name_, "--replicas", "2"},
                                               {"rollout", "status", "set/" + name_},
                                               {"rollout", "restart", "set/" + name_},
                                               {"drain", name_, "--reason", name_},
                                               {"cordon", name_},
                                               {"uncordon", name_},
                                               {"retry", name_},
                                               {"accept", "node", name_},
                                               {"quota", name_},
                                               {"quota", "shop"},
                                               {"logs", name_}}) {
      verbs_.push_back(verb);
    }
  }
  FakeCluster Cluster(const FakeCluster::Answer& answer) const {
    FakeCluster cluster;
    cluster.answer = answer;
    cluster.terminal = true;
    cluster.logs = {{.data = "said" + kFlat}, {.stream = contract::LogStream::kStderr, .data = "wrote" + kFlat}};
    cluster.logs_end = Status(Code::kUnavailable, "the log" + kNasty);
    for (int i = 0; i < 3; ++i) {
      cluster.streams.push_back({.changes = {Hostile<contract::Decision>(),
                                             contract::ObjectChanged{.kind = contract::ObjectKind::kWorkload,
                                                                     .name = name_,
                                                                     .revision = 9,
                                                                     .now = Hostile<contract::WorkloadView>()}},
                                 .end = Status(Code::kCancelled, "the end" + kNasty)});
    }
    return cluster;
  }
  static Outcome Run(FakeCluster& cluster, const std::vector<std::string>& verb) {
    std::vector<const char*> words;
    for (const std::string& word : verb) words.push_back(word.c_str());
    return RunMuster(cluster, words);
  }

  const host::TempDir dir_;
  const std::string file_ = dir_.File("shop.yaml");
  const std::string name_ = "web" + kNasty;
  std::vector<std::vector<std::string>> verbs_;
};

TEST_F(PrintableVerbs, WhatASchedulerSaysIsShownAndNotSent) {
  size_t shown = 0;
  for (const std::vector<std::string>& verb : verbs_) {
    FakeCluster cluster = Cluster(&Answer);
    const Outcome outcome = Run(cluster, verb);
    const std::string what = fmt::format("muster {}", fmt::join(verb, " "));
    EXPECT_EQ(Steering(outcome.out), "") << what << "\n" << outcome.out;
    EXPECT_EQ(Steering(outcome.err), "") << what << "\n" << outcome.err;
    const std::string text = outcome.out + outcome.err;
    const bool named = text.contains("\\x1b") || text.contains("\\u001b") || text.contains("\\e");
    shown += named ? 1 : 0;
    EXPECT_TRUE(named || text.empty() || verb[0] == "quota" || verb[0] == "diff") << what << "\n" << text;
  }
  EXPECT_GT(shown, verbs_.size() / 2) << "the texts are shown";
}

TEST_F(PrintableVerbs, WhatASchedulerRefusesWithIsShownAndNotSent) {
  for (const std::vector<std::string>& verb : verbs_) {
    FakeCluster cluster = Cluster([](const ClusterRequest&) -> Result<ClusterReply> {
      return Error(Code::kFailedPrecondition, "refused" + kNasty);
    });
    const Outcome outcome = Run(cluster, verb);
    EXPECT_EQ(Steering(outcome.out + outcome.err), "") << fmt::format("muster {}", fmt::join(verb, " "));
  }
}

TEST_F(PrintableVerbs, ALogIsShownOnATerminalAndSentToAFile) {
  const std::string chunk = "\tdone \xe2\x9c\x93\n" + kFlat + "\n";
  FakeCluster cluster;
  // The tick and the C1 character are cut by the edges of parts.
  for (const char byte : chunk) cluster.logs.push_back({.data = std::string(1, byte)});
  cluster.logs.push_back({.stream = contract::LogStream::kStderr, .data = "half \xe2\x9c"});
  EXPECT_EQ(Run(cluster, {"logs", "web"}).out, chunk) << "a pipe gets what was written";
  EXPECT_EQ(Run(cluster, {"logs", "web"}).err, "half \xe2\x9c");
  cluster.terminal = true;
  const Outcome shown = Run(cluster, {"logs", "web"});
  EXPECT_EQ(Steering(shown.out), "") << shown.out;
  EXPECT_TRUE(shown.out.starts_with("\tdone \xe2\x9c\x93\n\\x1b[2J!\\x0d\\x07\\x7f\\u009b31m\\x9b\\u2028"))
      << shown.out;
  EXPECT_EQ(shown.err, "half \\xe2\\x9c");
  EXPECT_EQ(Run(cluster, {"logs", "web", "--raw"}).out, chunk);
}

// Both halves are hostile.
class HostileHalves final : public Halves {
 public:
  Result<ClusterReply> AskCluster(ClusterRequest request) override { return Answer(request); }
  Result<contract::ShardReply> AskShard(contract::ShardRequest request) override {
    if (std::holds_alternative<contract::InspectNeeds>(request)) return Hostile<contract::NeedsInspected>();
    if (std::holds_alternative<contract::ListActions>(request)) return Hostile<contract::ActionsListed>();
    if (std::holds_alternative<contract::ListClusters>(request)) return Hostile<contract::ClustersListed>();
    if (std::holds_alternative<contract::Explain>(request)) return Hostile<contract::Explained>();
    if (std::holds_alternative<contract::ListMachines>(request)) {
      model::Machine machine;
      Poison{"machine"}(machine);
      machine.state = model::MachineState::kConfigured;
      machine.last_error.clear();
      contract::MachineView view{.machine = contract::MachineRecord(machine)};
      return contract::MachinesListed{.machines = {view}};
    }
    return Error(Code::kUnimplemented, "not asked for" + kNasty);
  }
};

// One whose names a copy of it takes, with a machine that can be bought: what is free text is hostile.
class HostileOffer final : public Halves {
 public:
  Result<ClusterReply> AskCluster(ClusterRequest request) override {
    if (std::holds_alternative<contract::ListNodes>(request)) return contract::NodesListed{};
    if (std::holds_alternative<contract::ListWorkloads>(request)) return contract::WorkloadsListed{};
    if (std::holds_alternative<contract::ListSets>(request)) return contract::SetsListed{};
    if (std::holds_alternative<contract::ListQuotas>(request)) return contract::QuotasListed{};
    if (std::holds_alternative<contract::GetWorkload>(request)) return Error(Code::kNotFound, "not there" + kNasty);
    return Answer(request);
  }
  Result<contract::ShardReply> AskShard(contract::ShardRequest request) override {
    if (std::holds_alternative<contract::InspectNeeds>(request)) return contract::NeedsInspected{};
    if (std::holds_alternative<contract::ListClusters>(request)) {
      return contract::ClustersListed{.clusters = {{.cluster_id = "home", .session = true}}};
    }
    model::Machine machine{.id = "m",
                           .state = model::MachineState::kSpeculative,
                           .instance_type = "type" + kNasty,
                           .zone = "zone" + kNasty,
                           .capacity_type = model::CapacityType::kOnDemand,
                           .price_per_hour = {100'000},
                           .resources = {{"cpu", 16'000}, {"memory", int64_t{64} << 30}}};
    return contract::MachinesListed{.machines = {{.machine = contract::MachineRecord(machine)}}};
  }
};

TEST_F(PrintableVerbs, ChainsAndPlansOfHostileHalvesAreShownAndNotSent) {
  HostileHalves halves;
  for (const bool every_node : {false, true}) {
    const ChainOptions flags{.every_node = every_node};
    for (const auto& chain : {ExplainWorkload(halves, name_, flags), ExplainNode(halves, "node" + kNasty, flags)}) {
      ASSERT_TRUE(chain.has_value()) << chain.error().ToString();
      EXPECT_EQ(Steering(ChainText(*chain)), "");
      EXPECT_TRUE(ChainText(*chain).contains("\\x1b")) << "the texts are shown";
    }
  }
  HostileOffer offer;
  for (const std::string output : {"table", "json", "yaml"}) {
    testing::internal::CaptureStdout();
    const auto planned = PlanLive(offer, {.files = {file_}, .output = output});
    const std::string printed = testing::internal::GetCapturedStdout();
    ASSERT_TRUE(planned.has_value()) << planned.error().ToString();
    EXPECT_EQ(Steering(printed), "") << output;
    EXPECT_TRUE(printed.contains("x1b") || printed.contains("u001b") || printed.contains("\\e")) << printed;
  }
}

// What a live `muster what-if` and `muster plan` print of it.
TEST_F(PrintableVerbs, OutcomesOnAHostileWorldAreShownAndNotSent) {
  LiveOutcome outcome;
  outcome.settled = {.settled = false, .in_flight = {"machine" + kNasty}};
  outcome.machines[{.type = "type" + kNasty, .zone = "zone" + kNasty}] = {.before = 1, .after = 2, .price = {}};
  const std::string node = "node" + kNasty;
  const std::string fresh = "fresh" + kNasty;
  outcome.moves = {{.workload = name_, .before = node, .after = fresh},
                   {.workload = name_, .before = "", .after = node},
                   {.workload = name_, .before = node, .after = ""},
                   {.workload = name_, .before = node, .after = "", .gone = true}};
  outcome.node_names[fresh] = "large" + kNasty;
  outcome.pending = {Hostile<contract::WorkloadView>()};
  contract::NeedView need;
  Poison{"need"}(need);
  need.need.cluster = "cluster" + kNasty;
  need.need.group = "group" + kNasty;
  Poison{"residual"}(need.residual);
  outcome.shortfalls = {need};
  const CheapestFleet cheapest{.machines = outcome.machines, .cost = {}, .unplaced = 0};
  Document document = Document::Map();
  AddOutcome(outcome, "cluster" + kNasty, document);
  document.Add("cheapest", CheapestDocument(cheapest));
  for (const std::string& text : {OutcomeText(outcome), CheapestText(cheapest, outcome, "cluster" + kNasty),
                                  document.ToJson() + "\n", document.ToYaml()}) {
    testing::internal::CaptureStdout();
    Print(text);
    const std::string printed = testing::internal::GetCapturedStdout();
    EXPECT_EQ(Steering(printed), "") << printed;
    EXPECT_TRUE(printed.contains("type")) << printed;
  }
}

}  // namespace
}  // namespace muster::cli
