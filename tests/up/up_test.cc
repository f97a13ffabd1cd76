// `muster up`, from outside: what is applied is bought, runs, survives the death of each part, is given back, and
// nothing is left behind.
#include <dirent.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/source_dir_for_test.h"
#include "host/free_ports.h"
#include "host/system_clock.h"
#include "host/temp_dir_for_test.h"
#include "model/text_scalars.h"
#include "smoke/process.h"
#include "smoke/server.h"

namespace muster {
namespace {

using smoke::Process;

// Empty if the process has ended, or ends meanwhile.
std::string TextOf(pid_t pid, const char* file) {
  std::ifstream in(fmt::format("/proc/{}/{}", pid, file), std::ios::binary);
  std::string text;
  std::getline(in, text, '\xff');
  return text;
}

pid_t ParentOf(pid_t pid) {
  const std::string stat = TextOf(pid, "stat");
  const size_t name_end = stat.rfind(") ");  // then the state, and the parent
  return name_end == std::string::npos ? 0 : std::atoi(stat.c_str() + name_end + 4);
}

// Processes whose command line contains the text, zombies left out; and those that one of them has just forked: they
// have its command line until they run a program of their own.
std::vector<pid_t> Running(const std::string& text) {
  std::vector<pid_t> found;
  DIR* const proc = opendir("/proc");
  while (const dirent* entry = readdir(proc)) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid <= 0 || pid == getpid()) continue;
    std::string line = TextOf(pid, "cmdline");
    for (char& c : line) c = c == '\0' ? ' ' : c;
    if (line.contains(text)) found.push_back(pid);
  }
  closedir(proc);
  const std::vector<pid_t> all = found;
  std::erase_if(found, [&all](pid_t pid) { return std::ranges::find(all, ParentOf(pid)) != all.end(); });
  return found;
}

class Up : public testing::Test {
 protected:
  void SetUp() override {
    auto ports = host::FreePorts(12);
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
    std::vector<std::string> command = Environment();
    command.insert(command.end(), {smoke::ProgramUnderTest(), "up", "--plain"});
    if (state_home_.empty()) command.insert(command.end(), {"--data-dir", dir_.File("up")});
    const char* const flags[] = {"--scheduler-listen", "--scheduler-metrics", "--operator-listen",
                                 "--operator-metrics", "--shard-listen",      "--shard-metrics",
                                 "--provider-listen",  "--provider-metrics"};
    for (size_t i = 0; i < std::size(flags); ++i) {
      command.push_back(flags[i]);
      command.push_back(Address(ports_[i]));
    }
    if (machines_ > 0) command.insert(command.end(), {"--machines", std::to_string(machines_)});
    up_ = std::make_unique<Process>(command);
  }
  void End(int signal = SIGINT) {
    up_->Signal(signal);
    EXPECT_EQ(up_->Wait(), 0) << up_->err();
    up_.reset();
  }

  struct Outcome {
    int code = 0;
    std::string out;
    std::string err;
  };
  // The words before a program that sets its variables.
  std::vector<std::string> Environment() const {
    if (state_home_.empty()) return {};
    return {"env", "XDG_STATE_HOME=" + state_home_};
  }
  Outcome MusterAt(uint16_t scheduler, const std::vector<std::string>& words) {
    std::vector<std::string> all = Environment();
    all.push_back(smoke::ProgramUnderTest());
    all.insert(all.end(), words.begin(), words.end());
    all.insert(all.end(), {"--scheduler", Address(scheduler)});
    Process command(all);
    const int code = command.Wait();
    return {code, command.out(), command.err()};
  }
  Outcome Muster(std::vector<std::string> words) { return MusterAt(ports_[0], std::move(words)); }
  // The verbs that look at both halves.
  Outcome MusterAtBoth(std::vector<std::string> words) {
    words.insert(words.end(), {"--shard", Address(ports_[4])});
    return Muster(std::move(words));
  }
  bool Eventually(const std::function<bool()>& holds) {
    for (const MonoTime end = clock_.Read().mono + 90s; clock_.Read().mono < end; std::this_thread::yield()) {
      if (up_ != nullptr) up_->Ended();  // takes in what it prints
      if (holds()) return true;
    }
    return false;
  }
  bool ShowsReadyAt(uint16_t scheduler, const std::string& ready) {
    return Eventually([&] { return MusterAt(scheduler, {"get", "sets"}).out.contains(ready); });
  }
  bool ShowsReady(const std::string& ready) { return ShowsReadyAt(ports_[0], ready); }
  // The workload runs, and the shard has heard so: it may be the last to know.
  bool ShowsConfigured(const std::string& workload) {
    return Eventually([&] {
      const std::string chain = MusterAtBoth({"explain", "workload", workload}).out;
      return chain.contains(" is Running on ") && chain.contains("is Configured for cluster home");
    });
  }
  // A set of processes that ask for one cpu each.
  std::string WriteSet(const std::string& name, int replicas, int priority) {
    const std::string path = dir_.File(name + ".yaml");
    std::ofstream(path) << "kind: Set\nname: " << name << "\nreplicas: " << replicas << "\ntemplate:\n  type: process\n"
                        << "  command: [/bin/sh, -c, 'while :; do sleep 1; done', " << dir_.path() << "]\n"
                        << "  resources: {cpu: 1, memory: 64Mi}\n  grace: 1s\n  priority: " << priority << "\n";
    return path;
  }
  // A set of one member that asks for so much that a machine must be bought for it.
  std::string WriteLarge(const std::string& name, int cpu) {
    const std::string path = dir_.File(name + ".yaml");
    std::ofstream(path) << "kind: Set\nname: " << name << "\nreplicas: 1\ntemplate:\n  type: process\n"
                        << "  command: [/bin/sh, -c, 'while :; do sleep 1; done', " << dir_.File(name + ".") << "]\n"
                        << "  resources: {cpu: " << cpu << ", memory: 64Mi}\n  grace: 1s\n";
    return path;
  }
  // It is acknowledged, and runs.
  bool ApplyLarge(const std::string& name, int cpu) {
    const std::string path = WriteLarge(name, cpu);
    return Eventually([&] { return Muster({"apply", "-f", path}).code == 0; }) &&
           Eventually([&] { return Running("sleep 1; done " + dir_.File(name + ".")).size() == 1; });
  }
  // What only the command line of each part has; agents are the last.
  std::vector<std::string> PartMarks() const {
    return {"--store sqlite:" + dir_.path(), "operator --cluster home --listen " + Address(ports_[2]),
            "--data-dir " + dir_.File("up/shard") + " ", "--data-dir " + dir_.File("up/provider") + " ", AgentMark()};
  }
  // All processes of the part die, and at least so many others take their place; 0: as many.
  void KillAndWait(const std::string& mark, size_t at_least = 0) {
    const std::vector<pid_t> before = Running(mark);
    const size_t others = at_least == 0 ? before.size() : at_least;
    ASSERT_FALSE(before.empty()) << mark;
    for (const pid_t pid : before) kill(pid, SIGKILL);
    ASSERT_TRUE(Eventually([&] {
      const std::vector<pid_t> now = Running(mark);
      return now.size() >= others &&
             std::ranges::none_of(before, [&](pid_t pid) { return std::ranges::find(now, pid) != now.end(); });
    })) << mark
        << " did not come back";
  }
  // What only the command lines of agents have.
  std::string AgentMark() const { return "--listen 127.0.0.1:0 --metrics-addr 127.0.0.1:0 --data-dir " + dir_.path(); }
  size_t Nodes() {
    const std::string table = Muster({"get", "nodes"}).out;  // a line for each, which begins with its name
    size_t count = 0;
    for (size_t at = table.find("\nlocal-"); at != std::string::npos; at = table.find("\nlocal-", at + 1)) ++count;
    return count;
  }

  const host::SystemClock clock_;
  const host::TempDir dir_;
  int machines_ = 0;        // as many as `muster up` has
  std::string state_home_;  // the user's state directory; empty: `muster up` is given its directory
  std::vector<uint16_t> ports_;
  std::unique_ptr<Process> up_;
};

class UpWithFourMachines : public Up {
 protected:
  UpWithFourMachines() { machines_ = 4; }
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
  const std::string mark_of_shells = "echo hello; sleep 1; done " + dir_.path();
  const std::vector<pid_t> shells = Running(mark_of_shells);
  // Two cpus may be free on the machines of the six. Then the smallest machine is bought for two, and is full with it.
  ASSERT_TRUE(ApplyLarge("fill", 2));
  int large = 0;
  for (const std::string& mark : PartMarks()) {
    const size_t before = Running(mark).size();
    const size_t nodes = Nodes();
    ASSERT_NO_FATAL_FAILURE(KillAndWait(mark));
    EXPECT_EQ(Running(mark).size(), before) << mark;
    ASSERT_TRUE(ShowsReady("6/6")) << mark;
    ASSERT_TRUE(ApplyLarge("after-" + std::to_string(large++), 2)) << mark << ": " << Muster({"get", "workloads"}).out;
    EXPECT_EQ(Nodes(), nodes + 1) << mark << ": nothing was bought, so that nothing needed the operator or the fleet";
  }
  EXPECT_EQ(Running(mark_of_shells), shells) << "no workload was touched";
  End();
  EXPECT_TRUE(Eventually([this] { return Running(dir_.path()).empty(); }));
  Begin();
  // What the scheduler tells first may be what it knew last: processes are what there is.
  EXPECT_TRUE(Eventually([&] { return Running(mark_of_shells).size() == 6; })) << "it goes on where it was";
  EXPECT_TRUE(ShowsReady("6/6"));
  EXPECT_TRUE(Eventually([&] { return Running("sleep 1; done " + dir_.File("after-0.")).size() == 1; }));
}

// Each takes its whole grace to die: one after the other they would take longer than a person waits for Ctrl-C.
TEST_F(Up, ManyThatIgnoreTheSignalEndWithIt) {
  const std::string path = dir_.File("stubborn.yaml");
  std::ofstream(path) << "kind: Set\nname: stubborn\nreplicas: 8\ntemplate:\n  type: process\n"
                      << "  command: [/bin/sh, -c, 'trap \"\" TERM; while :; do sleep 1; done', " << dir_.path()
                      << "]\n  resources: {cpu: 100m, memory: 32Mi}\n  grace: 1s\n";
  ASSERT_TRUE(Eventually([&] { return Muster({"apply", "-f", path}).code == 0; }));
  ASSERT_TRUE(ShowsReady("8/8")) << Muster({"get", "workloads,nodes"}).out;
  ASSERT_EQ(Running("TERM; while :; do sleep 1; done " + dir_.path()).size(), 8U);
  ASSERT_EQ(Nodes(), 1U) << "all on one machine";
  End();
  EXPECT_TRUE(Running(dir_.path()).empty()) << "nothing is left when it has ended";
}

TEST_F(Up, GreetsWithAddressesAndCommandsThatWorkInAnyDirectory) {
  ASSERT_TRUE(Eventually([this] { return up_->out().contains("Ctrl-C stops it all"); })) << up_->err();
  for (size_t i = 0; i < 8; ++i) EXPECT_TRUE(up_->out().contains(Address(ports_[i]))) << up_->out();
  const std::string hello = dir_.File("up/hello.yaml");
  const auto text = [](const std::string& path) {
    std::ifstream file(path);
    return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  };
  EXPECT_EQ(text(hello), text(SourceDir() + "/examples/workloads/hello.yaml"));
  // As it prints them: a shell takes them as they are.
  std::vector<std::string> commands;
  const std::string begin = "\n  " + smoke::ProgramUnderTest() + " ";
  for (size_t at = up_->out().find(begin); at != std::string::npos; at = up_->out().find(begin, at + 1)) {
    commands.push_back(up_->out().substr(at + 3, up_->out().find('\n', at + 1) - at - 3));
  }
  ASSERT_EQ(commands.size(), 3U) << up_->out();
  const auto shows = [this](const std::string& command, const std::string& words) {
    return Eventually([&] {
      Process shell({"env", "-C", "/", "/bin/sh", "-c", command});
      return shell.Wait() == 0 && shell.out().contains(words);
    });
  };
  EXPECT_TRUE(shows(commands[0], "set/hello ")) << commands[0];
  EXPECT_TRUE(shows(commands[1], "hello-11 ")) << commands[1];
  EXPECT_TRUE(shows(commands[2], "Configured")) << commands[2];

  // While this one holds the ports, another cannot start, and says why.
  Process second({smoke::ProgramUnderTest(), "up", "--plain", "--data-dir", dir_.File("second"), "--scheduler-listen",
                  Address(ports_[0])});
  EXPECT_EQ(second.Wait(), 1);
  EXPECT_TRUE(second.err().contains("--scheduler-listen: ")) << second.err();
  EXPECT_TRUE(second.err().contains(Address(ports_[0]))) << second.err();
}

// Applies, scales and deletes sets until it is told to stop. What was acknowledged must hold, whatever dies meanwhile;
// what was not is asked for again, as a person or a pipeline would.
class Load {
 public:
  struct Wanted {
    int replicas = 0;
    bool deleted = false;
  };
  // `apply` writes a set and applies it; `order` is any other verb. Both say whether it was acknowledged.
  Load(std::function<bool(const std::string& set, int replicas)> apply,
       std::function<bool(const std::vector<std::string>& words)> order)
      : apply_(std::move(apply)),
        order_(std::move(order)),
        thread_([this](const std::stop_token& stop) { Run(stop); }) {}

  // Orders that were acknowledged so far.
  int acknowledged() const { return acknowledged_.load(); }
  // The last change is acknowledged, or was never begun.
  std::map<std::string, Wanted> Stop() {
    thread_.request_stop();
    thread_.join();
    return sets_;
  }

 private:
  static constexpr int kMostSets = 5;
  static constexpr Duration kPatience = 2min;

  bool Retried(const std::function<bool()>& order) {
    for (const MonoTime end = clock_.Read().mono + kPatience; clock_.Read().mono < end;) {
      if (!order()) continue;
      ++acknowledged_;
      return true;
    }
    ADD_FAILURE() << "an order was never acknowledged";
    return false;
  }

  void Run(const std::stop_token& stop) {
    for (int i = 0; !stop.stop_requested(); ++i) {
      const std::string name = "load-" + std::to_string(i);
      if (!Retried([&] { return apply_(name, 1); })) return;
      sets_[name].replicas = 1;
      if (!Retried([&] { return order_({"scale", "set/" + name, "--replicas", "2"}); })) return;
      sets_[name].replicas = 2;
      if (i < kMostSets) continue;
      const std::string old = "load-" + std::to_string(i - kMostSets);
      if (!Retried([&] { return order_({"delete", "set/" + old, "--ignore-not-found", "--no-wait"}); })) return;
      sets_[old].deleted = true;
    }
  }

  const host::SystemClock clock_;
  const std::function<bool(const std::string&, int)> apply_;
  const std::function<bool(const std::vector<std::string>&)> order_;
  std::atomic<int> acknowledged_ = 0;
  std::map<std::string, Wanted> sets_;  // of the thread until it is joined
  std::jthread thread_;                 // last: it uses the rest
};

TEST_F(Up, UnderLoadEachPartMayDieAndWhatWasAcknowledgedHolds) {
  ASSERT_TRUE(Eventually([this] { return Muster({"apply", "-f", dir_.File("set.yaml")}).code == 0; }));
  ASSERT_TRUE(ShowsReady("6/6"));
  const std::vector<pid_t> shells = Running("echo hello; sleep 1; done " + dir_.path());
  // The processes of a set have its name behind the marker.
  const auto mark_of = [this](const std::string& set) { return "sleep 1; done " + dir_.path() + "/" + set + "."; };
  Load load(
      [&](const std::string& set, int replicas) {
        const std::string path = dir_.File(set + ".yaml");
        std::ofstream(path) << "kind: Set\nname: " << set << "\nreplicas: " << replicas
                            << "\ntemplate:\n  type: process\n  command: [/bin/sh, -c, 'while :; do sleep 1; done', "
                            << dir_.path() << "/" << set << ".]\n"
                            << "  resources: {cpu: 500m, memory: 32Mi}\n  grace: 1s\n";
        return Muster({"apply", "-f", path}).code == 0;
      },
      [this](const std::vector<std::string>& words) { return Muster(words).code == 0; });
  const auto goes_on = [&] {
    const int before = load.acknowledged();
    return Eventually([&] { return load.acknowledged() >= before + 4; });
  };
  ASSERT_TRUE(goes_on());
  for (const std::string& mark : PartMarks()) {
    SCOPED_TRACE(mark);
    ASSERT_NO_FATAL_FAILURE(KillAndWait(mark, 1)) << "machines come and go meanwhile";
    ASSERT_TRUE(goes_on());
  }
  up_->Signal(SIGKILL);
  up_->Wait();
  up_.reset();
  Begin();
  ASSERT_TRUE(goes_on());
  const std::map<std::string, Load::Wanted> sets = load.Stop();

  EXPECT_GE(sets.size(), 8U) << "there was no load to speak of";
  for (const auto& [name, wanted] : sets) {
    const std::string row = fmt::format(" {0}/{0} ", wanted.replicas);
    const size_t running = wanted.deleted ? 0 : static_cast<size_t>(wanted.replicas);
    EXPECT_TRUE(Eventually([&] {
      const Outcome shown = Muster({"get", "set/" + name});
      return (wanted.deleted ? shown.code != 0 || shown.out.empty() : shown.out.contains(row)) &&
             Running(mark_of(name)).size() == running;
    })) << name
        << ": " << Muster({"get", "set/" + name}).out << Running(mark_of(name)).size() << " processes of " << running;
  }
  EXPECT_TRUE(ShowsReady("6/6"));
  EXPECT_EQ(Running("echo hello; sleep 1; done " + dir_.path()), shells) << "none was lost, doubled or started again";
  EXPECT_EQ(Muster({"get", "workloads"}).out.find("Failed"), std::string::npos);
}

TEST_F(Up, KilledItsWorkloadsRunOnAndAreAdoptedByTheNext) {
  ASSERT_TRUE(Eventually([this] { return Muster({"apply", "-f", dir_.File("set.yaml")}).code == 0; }));
  ASSERT_TRUE(ShowsReady("6/6"));
  const size_t nodes = Nodes();
  const std::vector<pid_t> shells = Running("sleep 1; done " + dir_.path());
  const std::vector<pid_t> agents = Running(AgentMark());
  up_->Signal(SIGKILL);
  up_->Wait();
  up_.reset();
  std::vector<std::string> parts = PartMarks();
  parts.pop_back();  // agents stay
  for (const std::string& mark : parts) {
    EXPECT_TRUE(Eventually([&] { return Running(mark).empty(); })) << mark << " ends with it";
  }
  EXPECT_EQ(Running(AgentMark()), agents);
  Begin();
  // Until the agents are back, a scheduler tells what it knew last: what is applied now runs only once they are.
  ASSERT_TRUE(Eventually([this] { return Muster({"apply", "-f", WriteSet("more", 1, 0)}).code == 0; }));
  ASSERT_TRUE(Eventually([this] { return Muster({"get", "sets"}).out.contains("1/1"); }));
  EXPECT_TRUE(ShowsReady("6/6"));
  EXPECT_EQ(Running("echo hello; sleep 1; done " + dir_.path()), shells) << "none was lost, doubled or started again";
  EXPECT_LE(Nodes(), nodes + 1) << "nothing was bought for them again";
  EXPECT_EQ(Muster({"get", "workloads"}).out.find("Failed"), std::string::npos);
}

TEST_F(Up, APlanIsAppliedOnlyWhileNothingHasMoved) {
  const std::string file = dir_.File("set.yaml");
  const auto plan = [&](const std::string& path) -> std::string {
    const Outcome outcome = MusterAtBoth({"plan", "-f", path, "-o", "json"});
    const std::string_view key = R"("planId":)";
    const size_t at = outcome.out.find(key);
    if (outcome.code != 2 || at == std::string::npos) return {};
    const size_t begin = outcome.out.find('"', at + key.size()) + 1;
    return outcome.out.substr(begin, outcome.out.find('"', begin) - begin);
  };
  std::string id;
  ASSERT_TRUE(Eventually([&] { return !(id = plan(file)).empty(); })) << MusterAtBoth({"plan", "-f", file}).err;

  Outcome refused = MusterAtBoth({"apply", "-f", WriteSet("other", 1, 0), "--plan-id", id});
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(refused.err.contains("nothing was applied: the files changed since the plan")) << refused.err;
  refused = MusterAtBoth({"apply", "-f", file, "--plan-id", "yesterday"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(refused.err.contains("is no plan id")) << refused.err;
  EXPECT_FALSE(Muster({"get", "sets"}).out.contains("hello"));

  const Outcome applied = MusterAtBoth({"apply", "-f", file, "--plan-id", id});
  EXPECT_EQ(applied.code, 0) << applied.err;
  EXPECT_EQ(applied.out, "set/hello created\n");
  ASSERT_TRUE(ShowsReady("6/6"));

  // What was planned before the set was there holds no longer.
  refused = MusterAtBoth({"apply", "-f", file, "--plan-id", id});
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(refused.err.contains("the cluster's workloads")) << refused.err;

  const std::string other = WriteSet("other", 1, 0);
  ASSERT_FALSE((id = plan(other)).empty());
  const std::string nodes = Muster({"get", "nodes", "-o", "name"}).out;
  const std::string node = nodes.substr(5, nodes.find('\n') - 5);  // behind "node/"
  ASSERT_EQ(Muster({"cordon", node}).code, 0) << nodes;
  refused = MusterAtBoth({"apply", "-f", other, "--plan-id", id});
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(refused.err.contains("its nodes")) << refused.err;
  EXPECT_FALSE(Muster({"get", "sets"}).out.contains("other"));
}

// Both halves as they were: the member that is gone runs, on a machine that is given back since.
TEST_F(Up, ExplainsAMomentOfThePast) {
  ASSERT_TRUE(Eventually([this] { return Muster({"apply", "-f", dir_.File("set.yaml")}).code == 0; }));
  ASSERT_TRUE(ShowsReady("6/6")) << Muster({"get", "workloads,nodes", "-o", "wide"}).out;
  ASSERT_TRUE(ShowsConfigured("hello-5")) << MusterAtBoth({"explain", "workload", "hello-5"}).out;
  const std::string then = model::FormatWallTime(clock_.Read().wall);
  ASSERT_EQ(Muster({"scale", "set/hello", "--replicas", "1"}).code, 0);
  ASSERT_TRUE(Eventually([this] { return Nodes() == 1; })) << Muster({"get", "nodes"}).out;
  EXPECT_EQ(MusterAtBoth({"explain", "workload", "hello-5"}).code, 1) << "it is gone";

  const Outcome past = MusterAtBoth({"explain", "workload", "hello-5", "--at", then, "--journal", dir_.File("up")});
  ASSERT_EQ(past.code, 0) << past.err;
  EXPECT_TRUE(past.out.contains("workload hello-5 is Running")) << past.out;
  EXPECT_TRUE(past.out.contains("the operator adds up 6 workloads: cpu=6 ")) << past.out;
  EXPECT_TRUE(past.out.contains("\nmachine local-")) << past.out;
  EXPECT_TRUE(past.out.contains("is Configured for cluster home")) << past.out;
  EXPECT_TRUE(past.out.contains("Provision in cycle")) << past.out;
  EXPECT_TRUE(past.out.contains("\nnode local-")) << past.out;

  const Outcome before =
      MusterAtBoth({"explain", "workload", "hello-5", "--at", "2020-01-01T00:00:00Z", "--journal", dir_.File("up")});
  EXPECT_EQ(before.code, 1);
  EXPECT_TRUE(before.err.contains("begins at")) << before.err;
}

// Only the provider ends agents, and it is down when Ctrl-C comes: what it would have done is done all the same.
TEST_F(Up, WithoutAProviderCtrlCLeavesNothingEither) {
  ASSERT_TRUE(Eventually([this] { return Muster({"apply", "-f", dir_.File("set.yaml")}).code == 0; }));
  ASSERT_TRUE(ShowsReady("6/6"));
  const std::string provider = "--data-dir " + dir_.File("up/provider") + " ";
  // Dead soon after its start, so that the pause before the next one is longer.
  ASSERT_NO_FATAL_FAILURE(KillAndWait(provider));
  for (const pid_t pid : Running(provider)) kill(pid, SIGKILL);
  ASSERT_TRUE(Eventually([&] { return Running(provider).empty(); }));
  EXPECT_FALSE(Running(AgentMark()).empty());
  End();
  EXPECT_TRUE(Running(dir_.path()).empty()) << "an agent or a workload was left";
}

TEST_F(Up, AProviderThatIsKilledByTheSignalIsMadeUpFor) {
  ASSERT_TRUE(Eventually([this] { return Muster({"apply", "-f", dir_.File("set.yaml")}).code == 0; }));
  ASSERT_TRUE(ShowsReady("6/6"));
  // It has not come as far as to listen to signals, and ends by the next one.
  for (const pid_t pid : Running("--data-dir " + dir_.File("up/provider") + " ")) kill(pid, SIGKILL);
  End(SIGTERM);
  EXPECT_TRUE(Running(dir_.path()).empty()) << "an agent or a workload was left";
}

class UpInTheStateDirectory : public Up {
 protected:
  UpInTheStateDirectory() { state_home_ = dir_.File("a state"); }  // with a blank, as a home may have
};

TEST_F(UpInTheStateDirectory, KeepsEverythingThereAndExplainsThePastFromThere) {
  ASSERT_TRUE(Eventually([this] { return Muster({"apply", "-f", WriteSet("one", 1, 0)}).code == 0; }));
  ASSERT_TRUE(ShowsConfigured("one-0"));
  ASSERT_TRUE(Eventually([this] { return up_->out().contains("Ctrl-C stops it all"); })) << up_->err();
  const size_t command = up_->out().find("\n  " + smoke::ProgramUnderTest() + " apply");
  ASSERT_NE(command, std::string::npos) << up_->out();
  Process shell({"/bin/sh", "-c", up_->out().substr(command + 3, up_->out().find('\n', command + 1) - command - 3)});
  EXPECT_EQ(shell.Wait(), 0) << shell.err();
  for (const char* const part : {"store", "shard", "provider", "logs", "journal/scheduler", "journal/shard"}) {
    EXPECT_TRUE(std::filesystem::is_directory(dir_.File("a state/muster/up/") + part)) << part;
  }
  const Outcome past =
      MusterAtBoth({"explain", "workload", "one-0", "--at", model::FormatWallTime(clock_.Read().wall)});
  ASSERT_EQ(past.code, 0) << past.err;
  EXPECT_TRUE(past.out.contains("workload one-0 is Running")) << past.out;
  EXPECT_TRUE(past.out.contains("is Configured for cluster home")) << past.out;
  End(SIGHUP);  // its terminal is closed
  EXPECT_TRUE(Running(dir_.path()).empty()) << "agents and workloads end as with Ctrl-C";
}

TEST_F(UpWithFourMachines, TwoClustersShareTheFleetAndTheMoreImportantWorkTakesAMachine) {
  const uint16_t away = ports_[8];
  Process scheduler({smoke::ProgramUnderTest(), "scheduler", "--listen", Address(away), "--metrics-addr",
                     Address(ports_[9]), "--store", "sqlite:" + dir_.File("away")});
  Process operators({smoke::ProgramUnderTest(), "operator", "--cluster", "away", "--listen", Address(ports_[10]),
                     "--metrics-addr", Address(ports_[11]), "--scheduler", Address(away), "--shard-addr",
                     Address(ports_[4])});
  // 2, 4, 8 and 2 cpu are for sale: twelve members leave one machine, which is not enough for six more.
  const std::string low = WriteSet("low", 12, 100);
  ASSERT_TRUE(Eventually([&] { return Muster({"apply", "-f", low}).code == 0; }));
  ASSERT_TRUE(ShowsReady("12/12")) << Muster({"get", "workloads,nodes"}).out;
  const std::string high = WriteSet("high", 6, 10'000);
  ASSERT_TRUE(Eventually([&] { return MusterAt(away, {"apply", "-f", high}).code == 0; }));
  ASSERT_TRUE(ShowsReadyAt(away, "6/6")) << MusterAt(away, {"get", "workloads,nodes"}).out;
  EXPECT_TRUE(ShowsReady("10/12")) << "only the machine that was needed: " << Muster({"get", "workloads,nodes"}).out;
  EXPECT_TRUE(Muster({"events"}).out.contains("the fleet reclaims the machine"));

  // What is given back serves the other again.
  EXPECT_EQ(MusterAt(away, {"delete", "set/high"}).code, 0);
  EXPECT_TRUE(ShowsReady("12/12")) << Muster({"get", "workloads,nodes"}).out;
  operators.Signal(SIGTERM);
  EXPECT_EQ(operators.Wait(), 0);
  scheduler.Signal(SIGTERM);
  EXPECT_EQ(scheduler.Wait(), 0);
}

// As a person pastes it, in another directory: the same program, directory, ports and number of machines.
TEST_F(UpWithFourMachines, TheCommandThatItEndsWithGoesOnFromThere) {
  const auto shows_four_machines = [this] {
    return Eventually([this] {
      Process machines({smoke::ProgramUnderTest(), "fleet", "machines", "--shard", Address(ports_[4])});
      return machines.Wait() == 0 && machines.out().contains("\n4 machines: ");
    });
  };
  ASSERT_TRUE(shows_four_machines());
  up_->Signal(SIGINT);
  ASSERT_EQ(up_->Wait(), 0) << up_->err();
  const std::string said = up_->out();
  const std::string_view begin = "\nstopped; ";
  const size_t command = said.find(begin);
  const size_t end = said.find(" goes on from here\n");
  ASSERT_TRUE(command != std::string::npos && end != std::string::npos) << said;
  const size_t first = command + begin.size();
  up_ = std::make_unique<Process>(
      std::vector<std::string>{"env", "-C", "/", "/bin/sh", "-c", "exec " + said.substr(first, end - first)});
  EXPECT_TRUE(shows_four_machines());
}

TEST(UpDemo, ServesItsFleetAndLeavesNothingBehind) {
  const host::SystemClock clock;
  const host::TempDir dir;
  const auto ports = host::FreePorts(4);
  ASSERT_TRUE(ports.has_value());
  std::vector<std::string> command = {
      smoke::ProgramUnderTest(), "up", "--demo", "--plain", "--machines", "60", "--data-dir", dir.File("demo")};
  const char* const flags[] = {"--shard-listen", "--shard-metrics", "--provider-listen", "--provider-metrics"};
  for (size_t i = 0; i < std::size(flags); ++i) {
    command.insert(command.end(), {flags[i], fmt::format("127.0.0.1:{}", (*ports)[i])});
  }
  Process up(command);
  std::string shown;
  for (const MonoTime end = clock.Read().mono + 90s; clock.Read().mono < end && !up.Ended();) {
    Process machines({smoke::ProgramUnderTest(), "fleet", "machines", "--cluster", "blue", "--shard",
                      fmt::format("127.0.0.1:{}", (*ports)[0])});
    if (machines.Wait() == 0 && machines.out().contains(" Configured ")) shown = machines.out();
    if (!shown.empty()) break;
  }
  EXPECT_TRUE(shown.contains("/h\n")) << "its last line is the sum: " << shown << up.err();
  up.Signal(SIGINT);
  EXPECT_EQ(up.Wait(), 0) << up.err();
  EXPECT_TRUE(Running(dir.path()).empty()) << "a process was left behind";
}

}  // namespace
}  // namespace muster
