#include <gtest/gtest.h>

#include "cli/fake_cluster_for_test.h"

namespace muster::cli {
namespace {

using contract::ClusterReply;
using contract::ClusterRequest;

WallTime Ago(Duration age) { return WallTime(std::chrono::seconds(1'767'225'600)) - age; }

contract::WorkloadView Workload(std::string name, std::string node, model::WorkloadPhase phase) {
  contract::WorkloadView view;
  view.workload = std::move(name);
  view.set = "web";
  view.type = model::WorkloadType::kContainer;
  view.phase = phase;
  view.node = std::move(node);
  view.revision = "r1";
  view.labels = {{"app", "web"}};
  view.created_at = Ago(5min);
  return view;
}

contract::NodeView Node(std::string name) {
  contract::NodeView view;
  view.node = std::move(name);
  view.status = model::NodeStatus::kReady;
  view.total = {{"cpu", 4'000}};
  view.total.Set("memory", (int64_t{8} << 30) * 1000);
  view.reserved = {{"cpu", 1'500}};
  view.reserved.Set("memory", (int64_t{3} << 30) * 1000);
  view.workloads = 3;
  view.last_heartbeat = Ago(4s);
  return view;
}

contract::SetView Set(std::string name) {
  contract::SetView view;
  view.spec.kind = model::WorkloadKind::kSet;
  view.spec.name = std::move(name);
  view.spec.replicas = 3;
  view.available = 2;
  view.current = 3;
  view.running = 2;
  view.failed = 1;
  view.created_at = Ago(3h);
  return view;
}

class ClusterGet : public testing::Test {
 protected:
  ClusterGet() {
    cluster_.answer = [this](const ClusterRequest& request) -> Result<ClusterReply> {
      if (const auto* list = std::get_if<contract::ListWorkloads>(&request)) return Page(list->page.token);
      if (std::holds_alternative<contract::ListNodes>(request)) {
        return contract::NodesListed{.nodes = {Node("n1")}, .revision = 7};
      }
      if (std::holds_alternative<contract::ListSets>(request)) {
        return contract::SetsListed{.sets = {Set("web")}, .revision = 9};
      }
      if (const auto* get = std::get_if<contract::GetWorkload>(&request); get != nullptr && get->workload == "web-0") {
        return Workload("web-0", "n1", model::WorkloadPhase::kRunning);
      }
      if (std::holds_alternative<contract::ListQuotas>(request)) {
        return contract::QuotasListed{
            .quotas = {
                {.quota = {.tenant = "shop", .limits = {{"cpu", 100'000}}, .applies_milli_hz = 10'000, .burst = 5},
                 .used = {{"cpu", 98'000}},
                 .workloads = 12}}};
      }
      if (std::holds_alternative<contract::ListEvents>(request)) {
        return contract::EventsListed{.events = {{.id = "e1",
                                                  .type = "WorkloadFailed",
                                                  .workload = "web-1",
                                                  .node = "n1",
                                                  .reason = "no such image",
                                                  .at = Ago(90s),
                                                  .details = {{"attempt", "2"}}}}};
      }
      return Error(Code::kNotFound, "not here");
    };
  }

  // Two pages.
  static contract::WorkloadsListed Page(const std::string& token) {
    contract::WorkloadsListed listed{.revision = 8};
    if (token.empty()) {
      listed.workloads = {Workload("web-0", "n1", model::WorkloadPhase::kRunning)};
      listed.next = "web-0";
    } else {
      listed.workloads = {Workload("web-1", "", model::WorkloadPhase::kPending)};
      listed.workloads[0].message = "no node fits: 1 node: memory short by 2Gi\x1b[31m";
      listed.workloads[0].attempts = 2;
    }
    return listed;
  }

  FakeCluster cluster_;
};

TEST_F(ClusterGet, ListsWorkloadsPageByPage) {
  const Outcome outcome = RunMuster(cluster_, {"get", "workloads"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "NAME   SET  STATUS   NODE  ATTEMPTS  AGE\n"
            "web-0  web  Running  n1    0         5m\n"
            "web-1  web  Pending  -     2         5m\n");
  EXPECT_EQ(cluster_.Asked<contract::ListWorkloads>().size(), 2u);
  EXPECT_EQ(cluster_.scheduler, "127.0.0.1:8085");
}

TEST_F(ClusterGet, WideHasReasonsWithoutControlCharacters) {
  const Outcome outcome = RunMuster(cluster_, {"get", "wl", "-o", "wide"});
  EXPECT_NE(outcome.out.find("TYPE       TENANT  REVISION  REASON\n"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("container  -       r1        no node fits: 1 node: memory short by 2Gi\\x1b[31m\n"),
            std::string::npos)
      << outcome.out;
}

TEST_F(ClusterGet, SeveralTypesAreSeparateTablesWithTypedNames) {
  const Outcome outcome = RunMuster(cluster_, {"get", "nodes,sets,quotas,events"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "NAME     STATUS  WORKLOADS  CPU      MEMORY   HEARTBEAT\n"
            "node/n1  Ready   3          1500m/4  3Gi/8Gi  4s\n"
            "\n"
            "NAME     KIND  READY  UP-TO-DATE  RUNNING  FAILED  AGE\n"
            "set/web  Set   2/3    3           2        1       3h\n"
            "\n"
            "TENANT      CPU     MEMORY  DISK  GPU  WORKLOADS  RATE\n"
            "quota/shop  98/100  -       -     -    12         10/s burst 5\n"
            "\n"
            "AGE  TYPE            OBJECT          NODE  REASON\n"
            "90s  WorkloadFailed  workload/web-1  n1    no such image\n");
}

TEST_F(ClusterGet, FiltersGoToTheScheduler) {
  RunMuster(cluster_, {"get", "workloads", "-l", "app=web,!gpu", "--tenant", "shop", "--node", "n1", "--set", "web"});
  const auto asked = cluster_.Asked<contract::ListWorkloads>();
  ASSERT_FALSE(asked.empty());
  EXPECT_EQ(asked[0].tenant, "shop");
  EXPECT_EQ(asked[0].node, "n1");
  EXPECT_EQ(asked[0].set, "web");
  ASSERT_EQ(asked[0].selector.size(), 2u);
  EXPECT_EQ(ToString(asked[0].selector[1]), "gpu DoesNotExist");
}

TEST_F(ClusterGet, AStatusIsFilteredInAnyCase) {
  const Outcome outcome = RunMuster(cluster_, {"get", "workloads", "--status", "pending", "-o", "name"});
  EXPECT_EQ(outcome.out, "workload/web-1\n");
}

TEST_F(ClusterGet, AMissingObjectIsNamed) {
  const Outcome one = RunMuster(cluster_, {"get", "workload", "web-9"});
  EXPECT_EQ(one.code, 1);
  EXPECT_EQ(one.err, "muster: workload/web-9 does not exist; muster get workloads lists those that do\n");
  const Outcome two = RunMuster(cluster_, {"get", "workload/web-9", "workload/web-0", "-o", "name"});
  EXPECT_EQ(two.code, 1);
  EXPECT_EQ(two.out, "workload/web-0\n");
  EXPECT_EQ(two.err, "muster: workload/web-9 does not exist; muster get workloads lists those that do\n");
}

TEST_F(ClusterGet, JsonIsOneLineForEachAndYamlIsDocuments) {
  const Outcome json = RunMuster(cluster_, {"get", "workloads", "-o", "json"});
  EXPECT_TRUE(json.out.starts_with(R"({"kind":"Workload","name":"web-0","set":"web",)")) << json.out;
  EXPECT_EQ(std::ranges::count(json.out, '\n'), 2);
  const Outcome yaml = RunMuster(cluster_, {"get", "quota", "shop", "-o", "yaml"});
  EXPECT_EQ(yaml.out,
            "kind: \"Quota\"\n"
            "tenant: \"shop\"\n"
            "limits:\n"
            "  cpu: \"100\"\n"
            "rate:\n"
            "  appliesPerSecond: \"10\"\n"
            "  burst: 5\n"
            "status:\n"
            "  used:\n"
            "    cpu: \"98\"\n"
            "    workloads: 12\n");
  EXPECT_NE(RunMuster(cluster_, {"get", "workloads", "-o", "yaml"}).out.find("\n---\nkind: \"Workload\"\n"),
            std::string::npos);
}

TEST_F(ClusterGet, NothingFoundIsNoError) {
  cluster_.answer = [](const ClusterRequest&) -> Result<ClusterReply> { return contract::SetsListed{}; };
  const Outcome outcome = RunMuster(cluster_, {"get", "sets"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "nothing found\n");
}

TEST_F(ClusterGet, AStaleAnswerIsNoted) {
  cluster_.answer = [](const ClusterRequest&) -> Result<ClusterReply> {
    return contract::NodesListed{.nodes = {Node("n1")}, .stale_since = Ago(10s)};
  };
  const Outcome outcome = RunMuster(cluster_, {"get", "nodes"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "the scheduler has lost its store; this is what it knew at 2025-12-31T23:59:50.000Z\n");
}

TEST_F(ClusterGet, AStaleAnswerAboutOneObjectIsNotedOnce) {
  cluster_.answer = [](const ClusterRequest& request) -> Result<ClusterReply> {
    contract::WorkloadView web = Workload("web", "n1", model::WorkloadPhase::kRunning);
    contract::NodeView node = Node("n1");
    web.stale_since = node.stale_since = Ago(10s);
    if (std::holds_alternative<contract::GetWorkload>(request)) return web;
    if (std::holds_alternative<contract::GetNode>(request)) return node;
    if (std::holds_alternative<contract::ExplainWorkload>(request)) {
      return contract::Explanation{.workload = Workload("web", "n1", model::WorkloadPhase::kRunning),
                                   .stale_since = Ago(10s)};
    }
    if (std::holds_alternative<contract::ListEvents>(request)) return contract::EventsListed{.stale_since = Ago(10s)};
    if (std::holds_alternative<contract::ListQuotas>(request)) {
      return contract::QuotasListed{.quotas = {{.quota = {.tenant = "shop"}}}, .stale_since = Ago(10s)};
    }
    return contract::WorkloadsListed{.stale_since = Ago(10s)};
  };
  for (const std::vector<const char*>& words : {std::vector<const char*>{"get", "workload", "web"},
                                                {"get", "node", "n1"},
                                                {"get", "quota", "shop"},
                                                {"get", "node/n1", "workload/web"},
                                                {"describe", "workload/web"},
                                                {"describe", "node/n1"},
                                                {"events", "web"},
                                                {"events"},
                                                {"quota", "shop"},
                                                {"explain", "workload", "web"}}) {
    const Outcome outcome = RunMuster(cluster_, words);
    const std::string_view note =
        "the scheduler has lost its store; this is what it knew at 2025-12-31T23:59:50.000Z\n";
    EXPECT_TRUE(outcome.err.starts_with(note)) << testing::PrintToString(words) << outcome.err;
    EXPECT_EQ(outcome.err.find("lost its store", note.size()), std::string::npos) << testing::PrintToString(words);
  }
}

TEST_F(ClusterGet, ASchedulerThatDoesNotAnswerIsNamed) {
  cluster_.answer = [](const ClusterRequest&) -> Result<ClusterReply> {
    return Error(Code::kUnavailable, "connection refused");
  };
  const Outcome outcome = RunMuster(cluster_, {"get", "nodes", "--scheduler", "a:1,b:2"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(cluster_.scheduler, "a:1,b:2");
  EXPECT_EQ(outcome.err,
            "muster: scheduler a:1,b:2: connection refused; is it running? Name another one with --scheduler\n");
}

TEST_F(ClusterGet, WrongWordsAreUsageErrors) {
  EXPECT_EQ(RunMuster(cluster_, {"get"}).code, 2);
  EXPECT_EQ(RunMuster(cluster_, {"get", "pods"}).code, 2);
  EXPECT_EQ(RunMuster(cluster_, {"get", "workloads", "-l", "=x"}).code, 2);
  EXPECT_EQ(RunMuster(cluster_, {"get", "workloads", "-o", "xml"}).code, 2);
  EXPECT_EQ(RunMuster(cluster_, {"get", "quotas", "-w"}).code, 2);
  EXPECT_TRUE(cluster_.asked.empty());
}

// --- watching

contract::ObjectChanged Changed(contract::WorkloadView view, contract::Revision revision) {
  return {.kind = contract::ObjectKind::kWorkload, .name = view.workload, .revision = revision, .now = std::move(view)};
}

TEST_F(ClusterGet, AWatchGoesOnFromTheList) {
  contract::WorkloadView other = Workload("db", "n1", model::WorkloadPhase::kRunning);
  other.labels = {{"app", "db"}};
  cluster_.streams = {
      {.changes = {Changed(Workload("web-1", "n1", model::WorkloadPhase::kRunning), 12), Changed(other, 13),
                   contract::ObjectChanged{.kind = contract::ObjectKind::kWorkload, .name = "web-0", .revision = 14}},
       .end = Status(Code::kCancelled, "over")}};
  const Outcome outcome = RunMuster(cluster_, {"get", "workloads", "-w", "-l", "app=web"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out,
            "NAME   SET  STATUS   NODE  ATTEMPTS  AGE\n"
            "web-0  web  Running  n1    0         5m\n"
            "web-1  web  Pending  -     2         5m\n"
            "web-1  web  Running  n1    0         5m\n"
            "web-0  -    Deleted  -     -         -\n");
  ASSERT_EQ(cluster_.watched.size(), 1u);
  EXPECT_TRUE(cluster_.watched[0].workloads);
  EXPECT_FALSE(cluster_.watched[0].nodes);
  EXPECT_EQ(cluster_.watched[0].from, 8);
}

TEST_F(ClusterGet, ABrokenWatchIsTakenUpWhereItEnded) {
  cluster_.streams = {{.changes = {Changed(Workload("web-1", "n1", model::WorkloadPhase::kRunning), 12)},
                       .end = Status(Code::kUnavailable, "gone")},
                      {.changes = {Changed(Workload("web-2", "n1", model::WorkloadPhase::kRunning), 13)},
                       .end = Status(Code::kOutOfRange, "compacted")}};
  const Outcome outcome = RunMuster(cluster_, {"get", "workloads", "-w", "-o", "name"});
  EXPECT_EQ(outcome.out,
            "workload/web-0\nworkload/web-1\n"  // the list
            "workload/web-1\n"                  // the first watch
            "workload/web-2\n"                  // the second, after the first broke
            "workload/web-0\nworkload/web-1\n"  // the list again
  );
  ASSERT_EQ(cluster_.watched.size(), 3u);
  EXPECT_EQ(cluster_.watched[1].from, 12);
  EXPECT_EQ(cluster_.watched[2].from, 8);  // of the list that was made again
  EXPECT_NE(outcome.err.find("gone"), std::string::npos) << outcome.err;
}

TEST_F(ClusterGet, SeveralTypesAreWatchedAtOnceFromTheEarliestList) {
  cluster_.streams = {{.changes = {contract::ObjectChanged{
                           .kind = contract::ObjectKind::kNode, .name = "n2", .revision = 20, .now = Node("n2")}},
                       .end = Status(Code::kCancelled, "over")}};
  const Outcome outcome = RunMuster(cluster_, {"get", "workloads,nodes", "-w", "-o", "json"});
  EXPECT_TRUE(cluster_.watched[0].workloads && cluster_.watched[0].nodes);
  EXPECT_EQ(cluster_.watched[0].from, 7);
  EXPECT_NE(outcome.out.find(R"({"kind":"Node","name":"n2",)"), std::string::npos);
}

// --- events

TEST_F(ClusterGet, EventsAreShownWithTheLatestLast) {
  cluster_.answer = [](const ClusterRequest& request) -> Result<ClusterReply> {
    EXPECT_EQ(std::get<contract::ListEvents>(request).workload, "web-0");
    return contract::EventsListed{
        .events = {
            {.id = "e2", .type = "Rescheduled", .workload = "web-0", .node = "n2", .reason = "n1 lost", .at = Ago(1s)},
            {.id = "e1", .type = "WorkloadScheduled", .workload = "web-0", .node = "n1", .at = Ago(9min)}}};
  };
  const Outcome outcome = RunMuster(cluster_, {"events", "workload/web-0"});
  EXPECT_EQ(outcome.out,
            "AGE  TYPE               OBJECT          NODE  REASON\n"
            "9m   WorkloadScheduled  workload/web-0  n1    -\n"
            "1s   Rescheduled        workload/web-0  n2    n1 lost\n");
  EXPECT_EQ(RunMuster(cluster_, {"events", "web-0", "-o", "json"}).out,
            R"({"kind":"Event","id":"e1","type":"WorkloadScheduled","at":"2025-12-31T23:51:00.000Z",)"
            R"("workload":"web-0","node":"n1"})"
            "\n"
            R"({"kind":"Event","id":"e2","type":"Rescheduled","at":"2025-12-31T23:59:59.000Z",)"
            R"("workload":"web-0","node":"n2","reason":"n1 lost"})"
            "\n");
  EXPECT_EQ(RunMuster(cluster_, {"events", "set/web"}).code, 2);
}

TEST_F(ClusterGet, WatchedEventsAreDecisions) {
  const auto decision = [](std::string workload) {
    return contract::Decision{.kind = contract::DecisionKind::kRefused,
                              .at = Ago(0s),
                              .workload = std::move(workload),
                              .node = "",
                              .reason = "fit.memory",
                              .message = "memory short by 2Gi"};
  };
  cluster_.streams = {{.changes = {decision("web-1"), decision("db")}, .end = Status(Code::kCancelled, "over")}};
  const Outcome outcome = RunMuster(cluster_, {"events", "web-1", "-w"});
  EXPECT_EQ(outcome.out,
            "AGE  TYPE            OBJECT          NODE  REASON\n"
            "90s  WorkloadFailed  workload/web-1  n1    no such image\n"
            "0s   refused         workload/web-1  -     memory short by 2Gi\n");
  EXPECT_TRUE(cluster_.watched[0].decisions);
}

TEST_F(ClusterGet, LogsGoToTheirStreams) {
  cluster_.logs = {{.stream = contract::LogStream::kStdout, .data = "ready\n"},
                   {.stream = contract::LogStream::kStderr, .data = "warning\n"}};
  const Outcome outcome = RunMuster(cluster_, {"logs", "web-0", "--tail", "20", "--since", "1h", "-f"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "ready\n");
  EXPECT_EQ(outcome.err, "warning\n");
  ASSERT_EQ(cluster_.read.size(), 1u);
  EXPECT_EQ(cluster_.read[0].workload, "web-0");
  EXPECT_EQ(cluster_.read[0].tail, 20);
  EXPECT_TRUE(cluster_.read[0].follow);
  EXPECT_EQ(cluster_.read[0].since, Ago(1h));
  cluster_.logs.clear();
  cluster_.logs_end = Status(Code::kNotFound, "");
  EXPECT_EQ(RunMuster(cluster_, {"logs", "web-9"}).err,
            "muster: workload/web-9 does not exist; muster get workloads lists those that do\n");
}

}  // namespace
}  // namespace muster::cli
