#include "cli/own_cluster.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/log.h"
#include "cli/ask.h"
#include "cli/up_tree.h"
#include "host/free_ports.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

constexpr Duration kPatience = 60s;

}  // namespace

OwnCluster::OwnCluster(std::unique_ptr<host::TemporaryDir> dir, fs::path program)
    : dir_(std::move(dir)), program_(std::move(program)), children_({.program = program_}, clock_) {}

OwnCluster::~OwnCluster() {
  client_.reset();
  children_.Stop(10s);
  for (const fs::path& agent : agents_) Retire(agent);
}

Result<std::unique_ptr<OwnCluster>> OwnCluster::Start(const OwnClusterOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<host::TemporaryDir> dir, host::TemporaryDir::Make());
  // Users of workloads pass through it to their working directories.
  if (chmod(dir->path().c_str(), 0711) != 0) return Error(Code::kInternal, "the temporary directory is not ours");
  std::unique_ptr<OwnCluster> cluster(new OwnCluster(std::move(dir), ThisProgram()));
  if (Status status = cluster->StartAll(options); !status.ok()) return std::unexpected(std::move(status));
  return cluster;
}

std::string OwnCluster::Log(const std::string& name) const { return dir_->path() / (name + ".log"); }

Status OwnCluster::StartAll(const OwnClusterOptions& options) {
  const auto ports = host::FreePorts(1);
  if (!ports) return ports.error();
  const std::string address = fmt::format("127.0.0.1:{}", ports->front());
  const std::string store = options.store == "memory"   ? "memory:"
                            : options.store == "sqlite" ? "sqlite:" + (dir_->path() / "store").string()
                                                        : options.store;
  MUSTER_RETURN_IF_ERROR(children_.Start(
      {.name = "scheduler",
       .arguments = {"scheduler", "--listen", address, "--metrics-addr", "127.0.0.1:0", "--store", store},
       .log = Log("scheduler")}));
  for (int i = 0; i < options.agents; ++i) {
    const std::string name = fmt::format("agent-{}", i);
    agents_.push_back(dir_->path() / name);
    MUSTER_RETURN_IF_ERROR(
        children_.Start({.name = name,
                         .arguments = {"agent", "--listen", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--node-id",
                                       name, "--scheduler", address, "--data-dir", agents_.back().string(), "--cpu",
                                       "1000", "--memory", "1Ti"},
                         .log = Log(name)}));
  }
  auto client = rpc::MakeClusterClient(address);
  if (!client) return client.error();
  client_ = *std::move(client);
  return WaitUntilReady(options.agents);
}

Status OwnCluster::WaitUntilReady(int agents) {
  for (const MonoTime end = clock_.Read().mono + kPatience; clock_.Read().mono < end;) {
    const auto reply =
        WaitFor<contract::ClusterReply>([this](auto done) { client_->Ask(contract::ListNodes{}, std::move(done)); });
    if (reply) {
      const auto& nodes = std::get<contract::NodesListed>(*reply).nodes;
      const auto ready = [](const contract::NodeView& node) { return node.status == model::NodeStatus::kReady; };
      if (std::ranges::count_if(nodes, ready) == agents) return {};
    }
    children_.Poll();
    for (const host::ChildView& child : children_.View()) {
      if (child.deaths > 0) {
        return {Code::kUnavailable,
                fmt::format("{} does not come up: {}", child.name, host::Children::LastLine(Log(child.name)))};
      }
    }
    std::this_thread::sleep_for(20ms);
  }
  return {Code::kUnavailable,
          fmt::format("no cluster within a minute: {}", host::Children::LastLine(Log("scheduler")))};
}

void OwnCluster::Retire(const fs::path& data_dir) const {
  if (!fs::exists(data_dir)) return;
  std::vector<std::string> words = {program_.string(), "agent",       "--retire",   "--listen",       "127.0.0.1:0",
                                    "--metrics-addr",  "127.0.0.1:0", "--data-dir", data_dir.string()};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const std::string log = Log("retire");
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, program_.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (error != 0 || waitpid(pid, &status, 0) != pid || status != 0) {
    log::Warn("workloads of an agent may be left",
              {{"directory", data_dir.string()}, {"said", host::Children::LastLine(log)}});
  }
}

}  // namespace muster::cli
