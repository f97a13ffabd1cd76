// `muster up`, from outside: what is applied is bought, runs, survives the death of each part, is given back, and
// nothing is left behind.
#include <dirent.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "host/free_ports.h"
#include "host/system_clock.h"
#include "host/temp_dir_for_test.h"
#include "smoke/process.h"
#include "smoke/server.h"

namespace muster {
namespace {

using smoke::Process;

// Processes whose command line contains the text, zombies left out.
std::vector<pid_t> Running(const std::string& text) {
  std::vector<pid_t> found;
  DIR* const proc = opendir("/proc");
  while (const dirent* entry = readdir(proc)) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid <= 0 || pid == getpid()) continue;
    std::ifstream file(fmt::format("/proc/{}/cmdline", pid), std::ios::binary);
    std::string line((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    for (char& c : line) c = c == '\0' ? ' ' : c;
    if (line.contains(text)) found.push_back(pid);
  }
  closedir(proc);
  return found;
}

class Up : public testing::Test {
 protected:
  void SetUp() override {
    auto ports = host::FreePorts(8);
    ASSERT_TRUE(ports.has_value());
    ports_ = *std::move(ports);
    // The marker tells the processes of this test from others.
    std::ofstream(dir_.File("set.yaml")) << "kind: Set\nname: hello\nreplicas: 6\ntemplate:\n  type: process\n"
                                         << "  command: [/bin/sh, -c, 'while :; do echo hello; sleep 1; done', "
                                         << dir_.path() << "]\n"
                                         << "  resources: {cpu: 1, memory: 64Mi}\n  grace: 1s\n";
    Begin();
  }
  void TearDown() override {
    if (up_ != nullptr) End();
    EXPECT_TRUE(Eventually([this] { return Running(dir_.path()).empty(); })) << "a process was left behind";
  }

  static std::string Address(uint16_t port) { return fmt::format("127.0.0.1:{}", port); }
  void Begin() {
    std::vector<std::string> command = {smoke::ProgramUnderTest(), "up", "--data-dir", dir_.File("up"), "--plain"};
    const char* const flags[] = {"--scheduler-listen", "--scheduler-metrics", "--operator-listen",
                                 "--operator-metrics", "--shard-listen",      "--shard-metrics",
                                 "--provider-listen",  "--provider-metrics"};
    for (size_t i = 0; i < ports_.size(); ++i) {
      command.push_back(flags[i]);
      command.push_back(Address(ports_[i]));
    }
    up_ = std::make_unique<Process>(command);
  }
  void End() {
    up_->Signal(SIGINT);
    EXPECT_EQ(up_->Wait(), 0) << up_->err();
    up_.reset();
  }

  struct Outcome {
    int code = 0;
    std::string out;
  };
  Outcome Muster(std::vector<std::string> words) {
    words.insert(words.begin(), smoke::ProgramUnderTest());
    words.insert(words.end(), {"--scheduler", Address(ports_[0])});
    Process command(words);
    const int code = command.Wait();
    return {code, command.out()};
  }
  bool Eventually(const std::function<bool()>& holds) {
    for (const MonoTime end = clock_.Read().mono + 90s; clock_.Read().mono < end; std::this_thread::yield()) {
      if (up_ != nullptr) up_->Ended();  // takes in what it prints
      if (holds()) return true;
    }
    return false;
  }
  bool ShowsReady(const std::string& ready) {
    return Eventually([&] { return Muster({"get", "sets"}).out.contains(ready); });
  }
  size_t Nodes() {
    const std::string table = Muster({"get", "nodes"}).out;  // a line for each, which begins with its name
    size_t count = 0;
    for (size_t at = table.find("\nlocal-"); at != std::string::npos; at = table.find("\nlocal-", at + 1)) ++count;
    return count;
  }

  const host::SystemClock clock_;
  const host::TempDir dir_;
  std::vector<uint16_t> ports_;
  std::unique_ptr<Process> up_;
};

TEST_F(Up, BuysMachinesForWhatIsAppliedAndGivesThemBack) {
  ASSERT_TRUE(Eventually([this] { return Muster({"get", "nodes"}).code == 0; })) << up_->err();
  EXPECT_EQ(Muster({"apply", "-f", dir_.File("set.yaml")}).out, "set/hello created\n");
  ASSERT_TRUE(ShowsReady("6/6")) << Muster({"get", "workloads,nodes", "-o", "wide"}).out;
  EXPECT_EQ(Running("sleep 1; done " + dir_.path()).size(), 6U);
  EXPECT_TRUE(Muster({"logs", "hello-0", "--tail", "1"}).out.contains("hello"));
  EXPECT_GE(Nodes(), 2U);
  EXPECT_EQ(Muster({"scale", "set/hello", "--replicas", "1"}).code, 0);
  EXPECT_TRUE(Eventually([this] { return Nodes() == 1; })) << Muster({"get", "nodes"}).out;
}

TEST_F(Up, EachPartMayDieAndTheWholeGoesOnWhereItWas) {
  ASSERT_TRUE(Eventually([this] { return Muster({"apply", "-f", dir_.File("set.yaml")}).code == 0; }));
  ASSERT_TRUE(ShowsReady("6/6"));
  const std::vector<pid_t> shells = Running("sleep 1; done " + dir_.path());
  // What only the command line of that part has.
  for (const std::string& mark : std::vector<std::string>{
           "--store sqlite:" + dir_.path(), "operator --cluster home --listen " + Address(ports_[2]),
           dir_.File("up/shard"), "--data-dir " + dir_.File("up/provider") + " ", "agent --config " + dir_.path()}) {
    const std::vector<pid_t> before = Running(mark);
    ASSERT_FALSE(before.empty()) << mark;
    for (const pid_t pid : before) kill(pid, SIGKILL);
    ASSERT_TRUE(Eventually([&] {
      const std::vector<pid_t> now = Running(mark);
      return now.size() == before.size() && now != before;
    })) << mark
        << " did not come back";
    ASSERT_TRUE(ShowsReady("6/6")) << mark;
  }
  EXPECT_EQ(Running("sleep 1; done " + dir_.path()), shells) << "no workload was touched";
  End();
  EXPECT_TRUE(Eventually([this] { return Running(dir_.path()).empty(); }));
  Begin();
  EXPECT_TRUE(ShowsReady("6/6")) << "it goes on where it was";
}

}  // namespace
}  // namespace muster
