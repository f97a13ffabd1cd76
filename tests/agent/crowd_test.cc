// Many process workloads over several agents, all of them real programs: agents are killed, come back soon, or come
// back when their workloads run elsewhere. MUSTER_CROWD=1000 MUSTER_CROWD_AGENTS=20 is the campaign of
// docs/benchmarks.md.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "host/temp_dir_for_test.h"
#include "rpc/cluster_client.h"
#include "smoke/process.h"
#include "smoke/server.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using model::WorkloadPhase;

// Within the grace what a dead agent had runs elsewhere (docs/benchmarks.md has how long it takes). Beyond it stand one
// pass of the scheduler's monitor that finds the node late, and a machine that is busy with other tests.
constexpr std::chrono::seconds kDetection{4};

int Number(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): nothing writes the environment
  return text == nullptr ? otherwise : std::atoi(text);
}

bool WaitUntil(const std::function<bool()>& condition, Clock::duration patience = smoke::kPatience) {
  for (const auto end = Clock::now() + patience; !condition(); poll(nullptr, 0, 20)) {
    if (Clock::now() > end) return false;
  }
  return true;
}

std::string Text(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Kilobytes of memory that a process has for itself: its share of what it shares is counted too.
int64_t ProportionalKb(const std::string& pid) {
  std::ifstream in("/proc/" + pid + "/smaps_rollup");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("Pss:")) return std::atoll(line.c_str() + 4);
  }
  return 0;
}

class Crowd : public testing::Test {
 protected:
  void SetUp() override {
    const std::string program = smoke::ProgramUnderTest();
    scheduler_ = std::make_unique<smoke::Server>(std::vector<std::string>{
        program, "scheduler", "--listen", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--store",
        "memory:", "--node-timeout", fmt::format("{}s", grace_), "--unreachable-grace", fmt::format("{}s", grace_),
        "--monitor-interval", "200ms", "--reconcile-interval", "500ms"});
    ASSERT_NE(scheduler_->grpc(), "") << scheduler_->process().err();
    client_ = *rpc::MakeClusterClient(scheduler_->grpc());
    for (int i = 0; i < agents_count_; ++i) {
      fs::create_directory(dir_.File(fmt::format("n{}", i)));
      Begin(i);
    }
    for (auto& [i, agent] : agents_) ASSERT_NE(agent->WaitForErrorLine("\"msg\":\"listening\""), "") << agent->err();
  }
  void TearDown() override {
    // Whatever a failed test has left: agents stop what runs, and end.
    for (auto& [i, agent] : agents_) agent->Signal(SIGTERM);
    for (auto& [i, agent] : agents_) agent->Wait();
    for (int i = 0; i < agents_count_; ++i) {
      smoke::Process retire({smoke::ProgramUnderTest(), "agent", "--retire", "--listen", "127.0.0.1:0",
                             "--metrics-addr", "127.0.0.1:0", "--data-dir", dir_.File(fmt::format("n{}", i))});
      EXPECT_EQ(retire.Wait(), 0) << retire.err();
    }
  }

  void Begin(int i) {
    agents_[i] = std::make_unique<smoke::Process>(
        std::vector<std::string>{smoke::ProgramUnderTest(), "agent", "--listen", "127.0.0.1:0", "--metrics-addr",
                                 "127.0.0.1:0", "--scheduler", scheduler_->grpc(), "--node-id", fmt::format("n{}", i),
                                 "--data-dir", dir_.File(fmt::format("n{}", i)), "--cpu", "1000", "--memory", "1Ti"});
  }
  void Kill(int i) {
    agents_[i]->Signal(SIGKILL);
    EXPECT_EQ(agents_[i]->Wait(), 128 + SIGKILL);
  }
  // Reads what they print, so that none waits for its reader.
  void Drain() {
    for (auto& [i, agent] : agents_) agent->Ended();
    scheduler_->process().Ended();
  }

  Result<contract::ClusterReply> Ask(contract::ClusterRequest request) {
    Drain();
    std::promise<Result<contract::ClusterReply>> reply;
    client_->Ask(std::move(request), [&](Result<contract::ClusterReply> got) { reply.set_value(std::move(got)); });
    return reply.get_future().get();
  }
  void ApplySet(const std::string& name, int replicas, const std::string& script, model::RestartPolicy restart) {
    model::WorkloadSpec set{.kind = model::WorkloadKind::kSet, .name = name, .replicas = replicas};
    set.spec.type = model::WorkloadType::kProcess;
    set.spec.command = {"sh", "-c", script};
    set.spec.restart = restart;
    set.spec.resources = {{"cpu", 10}};
    set.spec.grace = 1s;
    const auto reply = Ask(contract::ApplySpec{.spec = set});
    ASSERT_TRUE(reply.has_value()) << reply.error().ToString();
  }
  std::vector<contract::WorkloadView> All() {
    std::vector<contract::WorkloadView> all;
    contract::ListWorkloads list;
    do {
      auto reply = Ask(list);
      if (!reply) return {};
      auto page = std::get<contract::WorkloadsListed>(*std::move(reply));
      std::ranges::move(page.workloads, std::back_inserter(all));
      list.page.token = page.next;
    } while (!list.page.token.empty());
    return all;
  }
  // Where each member of the set that runs does so.
  std::map<std::string, int> Placed(const std::string& set) {
    std::map<std::string, int> placed;
    for (const contract::WorkloadView& view : All()) {
      if (view.set == set && view.phase == WorkloadPhase::kRunning)
        placed[view.workload] = std::atoi(view.node.c_str() + 1);
    }
    return placed;
  }
  fs::path Files(int agent, const std::string& workload) const {
    return fs::path(dir_.File(fmt::format("n{}", agent))) / "processes" / workload;
  }
  // The process of a workload on a node, as its directory tells: the number that it wrote itself.
  std::string PidOf(int agent, const std::string& workload) const {
    std::string pid = Text(Files(agent, workload) / "work" / "pid");
    while (pid.ends_with('\n')) pid.pop_back();
    return pid;
  }

  const int count_ = Number("MUSTER_CROWD", 100);
  const int agents_count_ = Number("MUSTER_CROWD_AGENTS", 5);
  const int grace_ = Number("MUSTER_CROWD_GRACE", 8);  // seconds
  const host::TempDir dir_;
  std::unique_ptr<smoke::Server> scheduler_;
  std::unique_ptr<rpc::ClusterClient> client_;
  std::map<int, std::unique_ptr<smoke::Process>> agents_;
};

// Each start adds a line, and the file goes with the workload.
constexpr const char* kStays = "echo start >> starts; echo $$ > pid; echo up; exec sleep 100000";
constexpr const char* kJob = "echo start >> starts; echo up; while ! [ -e go ]; do sleep 0.1; done; echo end; exit 7";

TEST_F(Crowd, LivesThroughTheDeathOfItsAgents) {
  const auto began = Clock::now();
  ApplySet("crowd", count_, kStays, model::RestartPolicy::kAlways);
  ApplySet("job", agents_count_, kJob, model::RestartPolicy::kNever);
  ASSERT_TRUE(WaitUntil([&] {
    return Placed("crowd").size() == static_cast<size_t>(count_) &&
           Placed("job").size() == static_cast<size_t>(agents_count_);
  })) << Placed("crowd").size();
  const double started = std::chrono::duration<double>(Clock::now() - began).count();
  const std::map<std::string, int> first = Placed("crowd");
  const std::map<std::string, int> jobs = Placed("job");
  std::map<int, int> on;
  for (const auto& [workload, agent] : first) ++on[agent];
  EXPECT_EQ(on.size(), static_cast<size_t>(agents_count_)) << "they are spread";

  // An agent that comes back soon: nothing of it was touched, and what ended meanwhile is known.
  int64_t shims_kb = 0;
  std::map<std::string, std::string> pids;
  // A process runs before it has written who it is.
  EXPECT_TRUE(WaitUntil([&] {
    return std::ranges::all_of(
        first, [&](const auto& row) { return !(pids[row.first] = PidOf(row.second, row.first)).empty(); });
  }));
  for (const auto& [workload, pid] : pids) {
    const std::string stat = Text("/proc/" + pid + "/stat");
    const size_t name_end = stat.rfind(") ");
    if (name_end == std::string::npos) continue;
    shims_kb += ProportionalKb(std::to_string(std::atoi(stat.c_str() + name_end + 4)));  // of the shim, its parent
  }
  for (int i = 0; i < agents_count_; ++i) {
    Kill(i);
    for (const auto& [workload, agent] : jobs) {
      if (agent == i) std::ofstream(Files(agent, workload) / "work" / "go") << "now";
    }
    Begin(i);
    ASSERT_NE(agents_[i]->WaitForErrorLine("\"msg\":\"listening\""), "") << agents_[i]->err();
  }
  std::map<std::string, std::string> ended;
  EXPECT_TRUE(WaitUntil([&] {
    ended.clear();
    for (const contract::WorkloadView& view : All()) {
      if (view.set == "job" && view.message.contains("exit code 7")) ended[view.workload] = view.message;
    }
    return ended.size() == jobs.size();
  })) << ended.size()
      << " of " << jobs.size() << " jobs are known to have ended with 7";
  EXPECT_TRUE(WaitUntil([&] { return Placed("crowd") == first; })) << "all run where they were";
  for (const auto& [workload, agent] : first) {
    EXPECT_EQ(PidOf(agent, workload), pids[workload]) << workload;
    EXPECT_EQ(kill(std::atoi(pids[workload].c_str()), 0), 0) << workload << " died";
    EXPECT_EQ(Text(Files(agent, workload) / "work" / "starts"), "start\n") << workload << " was started again";
  }
  int64_t agents_kb = 0;
  for (auto& [i, agent] : agents_) agents_kb += ProportionalKb(std::to_string(agent->pid()));

  // One that does not come back: what it had runs elsewhere.
  Kill(0);
  const auto killed = Clock::now();
  std::map<std::string, int> second;
  EXPECT_TRUE(WaitUntil(
      [&] {
        second = Placed("crowd");
        return second.size() == static_cast<size_t>(count_) &&
               std::ranges::none_of(second, [](const auto& row) { return row.second == 0; });
      },
      std::chrono::seconds(grace_) + kDetection))
      << second.size() << " run";
  const double moved = std::chrono::duration<double>(Clock::now() - killed).count();
  std::vector<std::string> left;  // they still run on the first agent's node
  for (const auto& [workload, agent] : first) {
    if (agent == 0) {
      left.push_back(pids[workload]);
    } else {
      EXPECT_EQ(second[workload], agent) << workload << " had no reason to move";
    }
  }
  for (const std::string& pid : left) EXPECT_EQ(kill(std::atoi(pid.c_str()), 0), 0);

  // It comes back late: it stops what is no longer its own.
  Begin(0);
  EXPECT_TRUE(WaitUntil([&] {
    Drain();
    return std::ranges::none_of(left, [](const std::string& pid) { return kill(std::atoi(pid.c_str()), 0) == 0; });
  })) << "what runs elsewhere still runs here";
  EXPECT_EQ(Placed("crowd"), second);
  for (const auto& [workload, agent] : second) {
    EXPECT_TRUE(WaitUntil([&] { return !Text(Files(agent, workload) / "work" / "starts").empty(); })) << workload;
    EXPECT_EQ(Text(Files(agent, workload) / "work" / "starts"), "start\n") << workload << " was started twice";
  }
  fmt::print(
      "{} workloads on {} agents: all running after {:.1f} s; moved from a dead agent after {:.1f} s; {} KB of "
      "shims and {} KB of agents for each workload\n",
      count_, agents_count_, started, moved, shims_kb / count_, agents_kb / count_);

  for (const char* const set : {"crowd", "job"}) {
    ASSERT_TRUE(Ask(contract::DeleteObject{.kind = contract::ObjectKind::kSet, .name = set}).has_value());
  }
  EXPECT_TRUE(WaitUntil([&] { return All().empty(); }));
  EXPECT_TRUE(WaitUntil([&] {
    Drain();
    for (int i = 0; i < agents_count_; ++i) {
      const fs::path processes = fs::path(dir_.File(fmt::format("n{}", i))) / "processes";
      if (fs::exists(processes) && !fs::is_empty(processes)) return false;
    }
    return true;
  }));
}

}  // namespace
}  // namespace muster
