#include "runtime/container_runtime.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "runtime/container_body.h"
#include "runtime/container_user.h"
#include "runtime/engine_lab_for_test.h"

namespace muster::runtime {
namespace {

class Containers : public EngineLab<ContainerRuntime> {
 protected:
  contract::Run Start(const std::string& workload, uint64_t launch, std::vector<std::string> command,
                      model::WorkloadTemplate spec = {}, bool expect_never = false) {
    spec.type = model::WorkloadType::kContainer;
    if (spec.image.empty()) spec.image = Podman::kImage;
    spec.command = std::move(command);
    auto reply = Ask(
        contract::StartRun{.workload = workload, .launch = launch, .revision = "r1", .spec = spec, .tenant = tenant_});
    EXPECT_TRUE(reply.has_value()) << reply.error().ToString();
    if (!reply) return {};
    const contract::Run run = reply->runs.at(0);
    EXPECT_TRUE(run.running || run.exit_code.has_value() || expect_never) << run.message;
    if (!run.running) NoteEnd(run);  // it ended before the answer: that is how its end is told
    return run;
  }
  // What a short script writes.
  std::string Output(const std::string& workload, const std::string& script, const model::WorkloadTemplate& spec = {}) {
    Start(workload, 1, {"/bin/sh", "-c", script}, spec);
    WaitForEnd(workload);
    std::string text = Logs({.workload = workload});
    Remove(workload);
    return text;
  }

  bool WaitUntil(const std::function<bool()>& condition) const {
    for (const MonoTime end = clock_.Read().mono + 60s; clock_.Read().mono < end; std::this_thread::yield()) {
      if (condition()) return true;
    }
    return false;
  }

  std::string tenant_;
};

TEST_F(Containers, AJobRunsAndItsExitCodeAndOutputAreKnown) {
  model::WorkloadTemplate spec;
  spec.env = {{"GREETING", "good day"}};
  Start("job", 1, {"/bin/sh", "-c", "echo $GREETING from $MUSTER_WORKLOAD; echo bad >&2; exit 3"}, spec);
  const contract::Run end = WaitForEnd("job");
  EXPECT_FALSE(end.running);
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_EQ(end.launch, 1U);
  EXPECT_TRUE(end.output.contains("good day from job")) << end.output;
  EXPECT_TRUE(end.output.contains("bad")) << end.output;
  EXPECT_TRUE(Logs({.workload = "job"}).contains("good day from job\n"));
  Remove("job");
}

TEST_F(Containers, TheSameLaunchStartsNothingAndAnotherReplacesIt) {
  const contract::Run first = Start("web", 1, {"/bin/sleep", "1000"});
  EXPECT_TRUE(first.running);
  const contract::Run again = Start("web", 1, {"/bin/sleep", "1000"});
  EXPECT_EQ(again.metadata.at("container.id"), first.metadata.at("container.id"));
  const contract::Run second = Start("web", 2, {"/bin/sleep", "1000"});
  EXPECT_NE(second.metadata.at("container.id"), first.metadata.at("container.id"));
  EXPECT_EQ(second.launch, 2U);
  const auto list = Ask(contract::ListRuns{});
  ASSERT_TRUE(list.has_value());
  ASSERT_EQ(list->runs.size(), 1U);
  EXPECT_TRUE(list->runs[0].running);
  const auto stopped = Ask(contract::StopRun{.workload = "web", .grace = 1s});
  ASSERT_TRUE(stopped.has_value()) << stopped.error().ToString();
  EXPECT_FALSE(stopped->runs.at(0).running);
  Remove("web");
  EXPECT_TRUE(Ask(contract::ListRuns{})->runs.empty());
}

TEST_F(Containers, ARuntimeThatIsOpenedAgainFindsWhatRuns) {
  Start("kept", 7, {"/bin/sleep", "1000"});
  OpenRuntime();
  const auto list = Ask(contract::ListRuns{});
  ASSERT_TRUE(list.has_value());
  ASSERT_EQ(list->runs.size(), 1U);
  EXPECT_EQ(list->runs[0].launch, 7U);
  EXPECT_TRUE(list->runs[0].running);
  Remove("kept");
}

// Tells when it has read a text.
struct WaitingSink final : contract::LogsSink {
  explicit WaitingSink(std::string wanted) : text_(std::move(wanted)) {}
  bool Write(contract::LogChunk chunk) override {
    all += chunk.data;
    if (chunk.data.contains(text_)) came.set_value();
    return true;
  }
  bool Gone() const override { return false; }
  void End(Status status) override { ended.set_value(std::move(status)); }

  const std::string text_;
  std::string all;  // complete once it has ended
  std::promise<void> came;
  std::promise<Status> ended;
};

TEST_F(Containers, LogsAreFollowedFromOneLaunchToTheNextUntilTheWorkloadIsRemoved) {
  WaitingSink sink("two");
  Start("talks", 1, {"/bin/sh", "-c", "echo one; sleep 1000"});
  std::thread reader([&] { runtime_->ReadLogs({.workload = "talks", .follow = true}, sink); });
  Start("talks", 2, {"/bin/sh", "-c", "echo two; sleep 1000"});
  EXPECT_EQ(sink.came.get_future().wait_for(60s), std::future_status::ready);
  Remove("talks");
  reader.join();
  EXPECT_EQ(sink.ended.get_future().get().ToString(), "OK") << sink.all;
}

// Podman does not say so where control groups are of version 1: then the message says "perhaps".
TEST_F(Containers, AMemoryHogIsKilledAndItsLimitNamed) {
  model::WorkloadTemplate spec;
  spec.resources = {{"memory", int64_t{16} * 1024 * 1024 * 1000}};
  Start("hog", 1, {"/bin/sh", "-c", "dd if=/dev/zero of=/dev/null bs=200M count=1000"}, spec);
  const contract::Run end = WaitForEnd("hog");
  EXPECT_EQ(end.exit_code, 137);
  EXPECT_TRUE(end.message.contains("it used more memory than its limit")) << end.message;
  EXPECT_EQ(end.oom_killed, !end.message.contains("perhaps")) << end.message;
  Remove("hog");
}

TEST_F(Containers, AKillWithinTheLimitIsNotCalledOneOfMemory) {
  model::WorkloadTemplate spec;
  spec.resources = {{"memory", int64_t{64} * 1024 * 1024 * 1000}};
  // The first process of a container cannot kill itself.
  Start("victim", 1, {"/bin/sh", "-c", "sh -c 'kill -9 $$'; exit $?"}, spec);
  const contract::Run end = WaitForEnd("victim");
  EXPECT_EQ(end.exit_code, 137);
  EXPECT_FALSE(end.oom_killed);
  EXPECT_EQ(end.message, "exit code 137: killed, perhaps because it used more memory than its limit");
  Remove("victim");
}

TEST_F(Containers, VolumesAreMounted) {
  const host::TempDir dir;
  std::filesystem::permissions(dir.path(), std::filesystem::perms::all);  // for whoever the container is
  model::WorkloadTemplate spec;
  spec.volumes = {{.source = dir.path(), .target = "/data"}};
  Start("files", 1, {"/bin/sh", "-c", "echo kept > /data/file"}, spec);
  WaitForEnd("files");
  std::ifstream file(dir.File("file"));
  std::string text;
  file >> text;
  EXPECT_EQ(text, "kept");
  Remove("files");
  spec.type = model::WorkloadType::kContainer;
  spec.image = Podman::kImage;
  spec.volumes = {{.source = "/etc", .target = "/data"}};
  const auto refused = Ask(contract::StartRun{.workload = "files", .launch = 2, .spec = spec});
  EXPECT_EQ(refused.error().code(), Code::kInvalidArgument) << "the node does not allow it";
}

std::string Ids(uid_t user) { return fmt::format("{0}\n{0}\n{0}\n", user); }
constexpr const char* kWhoAmI = "id -u; id -g; id -G";

TEST_F(Containers, RunAsAUserOfTheirTenant) {
  EXPECT_EQ(Output("none", kWhoAmI), Ids(TenantUser("test", "")));
  tenant_ = "shop";
  const uid_t shop = TenantUser("test", "shop");
  EXPECT_EQ(Output("who", kWhoAmI), Ids(shop));
  // A name is not believed, and a number is.
  ASSERT_EQ(podman_->AddImage("localhost/toor", "USER toor"), Status());
  ASSERT_EQ(podman_->AddImage("localhost/number", "USER 1234:1234"), Status());
  model::WorkloadTemplate spec;
  spec.image = "localhost/toor";
  EXPECT_EQ(Output("toor", kWhoAmI, spec), Ids(shop));
  spec.image = "localhost/number";
  EXPECT_EQ(Output("number", kWhoAmI, spec), Ids(1234));
  // Its network is its own: low ports are free for whoever runs there.
  EXPECT_EQ(Output("port",
                   "nc -l -p 80 & for i in 1 2 3 4 5 6 7 8 9; do "
                   "nc -w 5 127.0.0.1 80 </dev/null && echo bound && break; sleep 0.2; done 2>/dev/null"),
            "bound\n");
  OpenRuntime(ContainerUser::kImage);
  EXPECT_EQ(Output("root", "id -u"), "0\n") << "the node allows it";
}

TEST_F(Containers, NamedVolumesBelongToTheTenant) {
  model::WorkloadTemplate spec;
  spec.volumes = {{.source = "data", .target = "/data"}};
  tenant_ = "shop";
  EXPECT_EQ(Output("writer", "echo secret of the shop > /data/file; cat /data/file", spec), "secret of the shop\n");
  EXPECT_EQ(Output("second", "echo more >> /data/file; cat /data/file", spec), "secret of the shop\nmore\n");
  tenant_ = "bank";
  EXPECT_EQ(Output("thief", "ls /data; cat /data/file 2>/dev/null; echo nothing", spec), "nothing\n");
  // Nor by the engine's name of the volume.
  spec.volumes[0].source = TenantVolume("test", "shop", "data");
  const contract::Run refused = Start("by-name", 1, {"/bin/cat", "/data/file"}, spec, true);
  EXPECT_FALSE(refused.running);
  EXPECT_FALSE(refused.exit_code.has_value()) << "it never ran";
}

// A container as agents made them before volumes belonged to tenants: the volume has its plain name.
TEST_F(Containers, AVolumeFromBeforeIsKeptOrAskedFor) {
  contract::StartRun before{.workload = "old", .launch = 1, .revision = "r1"};
  before.spec.image = Podman::kImage;
  before.spec.command = {"/bin/sh", "-c", "echo kept > /data/file"};
  before.spec.volumes = {{.source = "plain", .target = "/data"}};
  const DockerEngine engine({.socket = podman_->socket()});
  const auto body = ContainerBody(SpecOf(before, "test"));
  ASSERT_TRUE(body.has_value());
  ASSERT_FALSE(engine.Create("muster-test-old", Podman::kImage, *body)->has_value());
  ASSERT_FALSE(engine.Start("muster-test-old")->has_value());
  ASSERT_TRUE(WaitUntil([&] {
    const auto list = Ask(contract::ListRuns{});
    return list && list->runs.size() == 1 && !list->runs[0].running;
  }));
  model::WorkloadTemplate spec;
  spec.volumes = before.spec.volumes;
  for (const uint64_t launch : {2U, 3U}) {
    Start("old", launch, {"/bin/sh", "-c", "cat /data/file; sleep 1000"}, spec);
    EXPECT_TRUE(WaitUntil([&] { return Logs({.workload = "old"}).contains("kept"); })) << "launch " << launch;
  }
  Remove("old");

  // Another workload does not find an empty volume in its place without a word.
  const std::string own = TenantVolume("test", "", "plain");
  const contract::Run refused = Start("new", 1, {"/bin/true"}, spec, true);
  EXPECT_FALSE(refused.running);
  EXPECT_TRUE(refused.message.contains(own)) << refused.message;
  ASSERT_FALSE(engine.EnsureVolume(own, {})->has_value());
  EXPECT_EQ(Output("later", "ls /data; echo empty", spec), "empty\n");
}

// Names hold a hash of what a tenant chooses itself: labels say whose a thing is.
TEST_F(Containers, WhatIsAnothersIsNotTakenByItsName) {
  const DockerEngine engine({.socket = podman_->socket()});
  ASSERT_FALSE(engine.EnsureVolume("shared", {{"muster.workload", "victim"}})->has_value());
  EXPECT_FALSE(engine.EnsureVolume("shared", {{"muster.workload", "victim"}})->has_value());
  EXPECT_EQ(**engine.EnsureVolume("shared", {{"muster.workload", "thief"}}),
            "the volume \"shared\" is of another workload or tenant");
  ASSERT_TRUE(engine.EnsureNetwork("net", {{"muster.workload", "victim"}}).has_value());
  EXPECT_TRUE(engine.EnsureNetwork("net", {{"muster.workload", "victim"}}).has_value());
  EXPECT_EQ(engine.EnsureNetwork("net", {{"muster.workload", "thief"}}).error().message(),
            "the network \"net\" is not this workload's");
  EXPECT_TRUE(engine.RemoveNetworks({{"muster.workload", "victim"}}).ok());
  EXPECT_TRUE(engine.RemoveVolumes({{"muster.workload", "victim"}}).ok());
}

// The engine takes such a source for a path: from the directory of its service up to the root of the node.
TEST_F(Containers, ASourceThatIsNoNameMountsNothing) {
  model::WorkloadTemplate spec;
  spec.type = model::WorkloadType::kContainer;
  spec.image = Podman::kImage;
  spec.command = {"/bin/ls", "/host"};
  for (const char* const source : {"../../../../../../../..", "..", ".", "./x", ""}) {
    spec.volumes = {{.source = source, .target = "/host"}};
    const auto refused = Ask(contract::StartRun{.workload = "thief", .launch = 1, .spec = spec});
    ASSERT_FALSE(refused.has_value()) << source;
    EXPECT_EQ(refused.error().code(), Code::kInvalidArgument) << source;
  }
  EXPECT_TRUE(Ask(contract::ListRuns{})->runs.empty());
}

TEST_F(Containers, AnImageThatDoesNotExistIsARunThatNeverBegan) {
  model::WorkloadTemplate spec;
  spec.image = "localhost/no-such-image:1";
  const contract::Run run = Start("none", 1, {"/bin/true"}, spec, true);
  EXPECT_FALSE(run.running);
  EXPECT_FALSE(run.exit_code.has_value());
  EXPECT_TRUE(run.message.contains("no-such-image")) << run.message;
}

TEST_F(Containers, TheEngineMayGoAndComeBack) {
  Start("through", 1, {"/bin/sleep", "1000"});
  podman_->StopService();
  EXPECT_EQ(Ask(contract::ListRuns{}).error().code(), Code::kUnavailable);
  ASSERT_EQ(podman_->StartService(), Status());
  const auto list = Ask(contract::ListRuns{});
  ASSERT_TRUE(list.has_value()) << list.error().ToString();
  ASSERT_EQ(list->runs.size(), 1U);
  EXPECT_TRUE(list->runs[0].running) << "it ran on";
  Remove("through");
}

TEST_F(Containers, UsageIsMeasured) {
  Start("busy", 1, {"/bin/sh", "-c", "while :; do :; done"});
  runtime_->Measure();
  int64_t cpu = 0;
  for (int tries = 0; tries < 100 && cpu == 0; ++tries) {
    for (const Usage& usage : runtime_->Measure()) cpu = usage.second.cpu_milli;
  }
  EXPECT_GT(cpu, 0);
  Remove("busy");
}

TEST(ContainerBody, InjectionIsRefused) {
  contract::StartRun start{.workload = "w", .launch = 1};
  start.spec.image = "i";
  start.spec.volumes = {{.source = "/etc:/host", .target = "/data"}};
  EXPECT_EQ(ContainerBody(SpecOf(start, "a")).error().code(), Code::kInvalidArgument);
  start.spec.volumes.clear();
  start.spec.env = {{"A=B", "c"}};
  EXPECT_EQ(ContainerBody(SpecOf(start, "a")).error().code(), Code::kInvalidArgument);
  start.spec.env = {{"QUOTE", "\"}],\"Image\":\"evil\""}};
  EXPECT_TRUE(ContainerBody(SpecOf(start, "a"))->contains(R"(QUOTE=\"}],\"Image\":\"evil\")"));
}

TEST(LogFrames, ComeInPieces) {
  const std::string frame = std::string("\x02\0\0\0\0\0\0\x05", 8) + "hello";
  LogFrames frames;
  std::string text;
  for (const char c : frame) {
    EXPECT_TRUE(frames.Add({&c, 1}, [&](contract::LogStream stream, std::string_view part) {
      EXPECT_EQ(stream, contract::LogStream::kStderr);
      text = part;
      return true;
    }));
  }
  EXPECT_EQ(text, "hello");
  EXPECT_FALSE(LogFrames().Add(std::string("\x09\0\0\0\0\0\0\0", 8), [](auto, auto) { return true; }));
}

}  // namespace
}  // namespace muster::runtime
