#include "runtime/compose_runtime.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "runtime/docker_json.h"
#include "runtime/engine_lab_for_test.h"

namespace muster::runtime {
namespace {

class Compose : public EngineLab<ComposeRuntime> {
 protected:
  void TearDown() override {
    for (const char* const path : {"/containers/json?all=1", "/networks", "/volumes"}) {
      EXPECT_EQ(Left(path), 0U) << path << " still has something of a test";
    }
  }

  // `services`: the lines below `services`, with IMAGE for the image.
  static contract::StartRun Request(const std::string& workload, uint64_t launch, std::string services) {
    for (size_t at = services.find("IMAGE"); at != std::string::npos; at = services.find("IMAGE")) {
      services.replace(at, 5, Podman::kImage);
    }
    contract::StartRun start{.workload = workload, .launch = launch, .revision = "r1"};
    start.spec.type = model::WorkloadType::kCompose;
    start.spec.compose = services;
    start.spec.grace = 1s;
    return start;
  }
  contract::Run Start(const std::string& workload, uint64_t launch, const std::string& services) {
    auto reply = Ask(Request(workload, launch, services));
    EXPECT_TRUE(reply.has_value()) << reply.error().ToString();
    if (!reply) return {};
    contract::Run run = reply->runs.at(0);
    if (!run.running) NoteEnd(run);
    return run;
  }
  Result<rapidjson::Document> Get(const std::string& path) const {
    MUSTER_ASSIGN_OR_RETURN(const DockerReply reply, DockerApi(podman_->socket()).Get(path, 20s));
    return ParseJson(reply);
  }
  // How many things of ours the engine has: names that begin with "muster-".
  size_t Left(const std::string& path) const {
    const auto document = Get(path);
    EXPECT_TRUE(document.has_value());
    const Json& rows = document->IsArray() ? static_cast<const Json&>(*document) : At(*document, "Volumes");
    size_t count = 0;
    if (!rows.IsArray()) return count;
    for (const Json& row : rows.GetArray()) {
      const Json& names = At(row, "Names");
      const std::string name = names.IsArray() ? names[0].GetString() : TextAt(row, "Name");
      count += name.contains("muster-") ? 1 : 0;
    }
    return count;
  }
  std::set<std::string> Ids(const std::string& workload) const {
    const auto ids = DockerEngine({.socket = podman_->socket()}).List(ComposeLabels("test", workload));
    EXPECT_TRUE(ids.has_value());
    return {ids->begin(), ids->end()};
  }
  bool WaitForLog(const std::string& workload, const std::string& text) {
    for (const MonoTime end = clock_.Read().mono + 60s; clock_.Read().mono < end;) {
      if (Logs({.workload = workload}).contains(text)) return true;
    }
    return false;
  }
};

constexpr const char* kPair = R"(
services:
  front:
    image: IMAGE
    command: [/bin/sh, -c, "until nc -w 5 back 80 </dev/null; do sleep 0.1; done; sleep 1000"]
    depends_on: [back]
  back:
    image: IMAGE
    environment: {WORD: hello}
    entrypoint: [/bin/sh, -c]
    command: ["while :; do echo $$WORD from $$MUSTER_SERVICE | nc -l -p 80; done"]
)";

TEST_F(Compose, ServicesFindEachOtherByNameAndAllGoesWithTheWorkload) {
  const contract::Run run = Start("pair", 1, kPair);
  EXPECT_TRUE(run.running) << run.message;
  EXPECT_EQ(run.metadata.at("compose.back"), "running");
  EXPECT_TRUE(WaitForLog("pair", "front | hello from back\n"));
  EXPECT_EQ(Ids("pair").size(), 2U);
  EXPECT_EQ(Left("/networks"), 1U);

  // Another agent in the same place finds it, and the same launch starts nothing.
  const std::set<std::string> before = Ids("pair");
  OpenRuntime();
  const auto list = Ask(contract::ListRuns{});
  ASSERT_TRUE(list.has_value()) << list.error().ToString();
  ASSERT_EQ(list->runs.size(), 1U);
  EXPECT_TRUE(list->runs[0].running);
  EXPECT_EQ(list->runs[0].launch, 1U);
  EXPECT_EQ(list->runs[0].revision, "r1");
  EXPECT_TRUE(Start("pair", 1, kPair).running);
  EXPECT_EQ(Ids("pair"), before);

  const auto stopped = Ask(contract::StopRun{.workload = "pair", .grace = 1s});
  ASSERT_TRUE(stopped.has_value()) << stopped.error().ToString();
  EXPECT_FALSE(stopped->runs.at(0).running);
  // A new launch has containers of its own.
  EXPECT_TRUE(Start("pair", 2, kPair).running);
  for (const std::string& id : Ids("pair")) EXPECT_FALSE(before.contains(id));
  Remove("pair");
}

TEST_F(Compose, OneServiceThatFailsEndsTheRun) {
  Start("bad", 1, R"(
services:
  steady: {image: IMAGE, command: [/bin/sleep, "1000"]}
  broken: {image: IMAGE, command: [/bin/sh, -c, "echo no luck; exit 3"]}
)");
  const contract::Run end = WaitForEnd("bad");
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_EQ(end.message, "service broken: exit code 3");
  EXPECT_TRUE(end.output.contains("no luck")) << end.output;
  const auto list = Ask(contract::ListRuns{});
  ASSERT_TRUE(list.has_value());
  EXPECT_FALSE(list->runs.at(0).running) << "its neighbour was stopped";
  Remove("bad");
}

TEST_F(Compose, RunsUntilAllServicesHaveEndedAndTheEngineRestartsByThePolicyOfTheFile) {
  Start("job", 1, R"(
services:
  first: {image: IMAGE, command: [/bin/true]}
  third:
    image: IMAGE
    restart: on-failure:5
    volumes: [data:/data]
    command: [/bin/sh, -c, "echo x >> /data/n; n=0; while read l; do n=$$((n+1)); done < /data/n; echo start $$n; test $$n -ge 3"]
volumes: {data: }
)");
  const contract::Run end = WaitForEnd("job");
  EXPECT_EQ(end.exit_code, 0) << end.message;
  EXPECT_TRUE(Logs({.workload = "job"}).contains("third | start 3\n"));
  EXPECT_EQ(Logs({.workload = "job", .tail = 1}), "third | start 3\n");
  Remove("job");
}

TEST_F(Compose, AFileThatCannotBeReadStartsNothing) {
  const auto reply = Ask(Request("no", 1, R"(
services:
  good: {image: IMAGE}
  web: {image: IMAGE, privileged: true}
)"));
  ASSERT_FALSE(reply.has_value());
  EXPECT_EQ(reply.error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(reply.error().message().contains("services.web.privileged: not supported")) << reply.error().ToString();
}

TEST_F(Compose, AnImageThatIsMissingStartsNothing) {
  const contract::Run run = Start("none", 1, R"(
services:
  a: {image: IMAGE, command: [/bin/sleep, "1000"]}
  b: {image: localhost/no-such-image, depends_on: [a]}
)");
  EXPECT_FALSE(run.running);
  EXPECT_FALSE(run.exit_code.has_value());
  EXPECT_TRUE(run.message.contains("service b: image localhost/no-such-image")) << run.message;
}

TEST_F(Compose, AStartThatWasInterruptedIsFinishedAndNoServiceStartsTwice) {
  const contract::StartRun start = Request("half", 4, kPair);
  const auto file = model::ReadCompose(start.spec.compose, {});
  ASSERT_TRUE(file.has_value());
  const DockerEngine engine({.socket = podman_->socket()});
  const auto subnet = engine.EnsureNetwork(ComposeNetwork("test", "half", 4), ComposeLabels("test", "half"));
  ASSERT_TRUE(subnet.has_value()) << subnet.error().ToString();
  const model::ComposeService& back = file->services.at(0);
  const auto body = ContainerBody(ComposeSpec(start, *file, back, "test", *ComposeAddresses(*file, *subnet)));
  ASSERT_FALSE(engine.Create(ComposeContainer("test", "half", back.name), back.image, *body)->has_value());
  ASSERT_FALSE(engine.Start(ComposeContainer("test", "half", back.name))->has_value());
  const std::string first = *Ids("half").begin();

  const auto list = Ask(contract::ListRuns{});
  ASSERT_TRUE(list.has_value());
  EXPECT_EQ(list->runs.at(0).launch, 3U) << "the launch has not been";
  EXPECT_FALSE(list->runs.at(0).running);
  EXPECT_TRUE(Ask(start)->runs.at(0).running);
  EXPECT_EQ(Ids("half").size(), 2U);
  EXPECT_TRUE(Ids("half").contains(first));
  EXPECT_TRUE(WaitForLog("half", "front | hello from back\n"));
  Remove("half");
}

TEST_F(Compose, LimitsOfAServiceHold) {
  Start("hog", 1, R"(
services:
  hog: {image: IMAGE, mem_limit: 16m, command: [/bin/dd, if=/dev/zero, of=/dev/null, bs=200M, count=1000]}
)");
  const contract::Run end = WaitForEnd("hog");
  EXPECT_EQ(end.exit_code, 137);
  EXPECT_TRUE(end.message.starts_with("service hog: ")) << end.message;
  EXPECT_TRUE(end.message.contains("it used more memory than its limit")) << end.message;
  Remove("hog");
}

TEST(ComposeProject, AddressesFitTheSubnet) {
  model::ComposeFile file;
  file.services.resize(2);
  file.services[0].name = "b";
  file.services[1].name = "a";
  EXPECT_EQ(*ComposeAddresses(file, "10.89.3.0/24"),
            (std::map<std::string, std::string>{{"a", "10.89.3.10"}, {"b", "10.89.3.11"}}));
  for (const char* const bad : {"", "10.89.3.0", "10.89.3.0/29", "10.89.300.0/24", "fd00::/64", "10.89.3.0/24x"}) {
    EXPECT_FALSE(ComposeAddresses(file, bad).has_value()) << bad;
  }
}

TEST(ComposeProject, NamesOfTwoWorkloadsDiffer) {
  EXPECT_NE(ComposeContainer("n", "a-b", "c"), ComposeContainer("n", "a", "b-c"));
  EXPECT_NE(ComposeNetwork("n", "a", 1), ComposeNetwork("m", "a", 1));
}

}  // namespace
}  // namespace muster::runtime
