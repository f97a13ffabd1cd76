// ProcessLab: a process runtime in a directory of its own, with real shims, for tests. Every wait is for a condition
// and has a deadline.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "host/system_clock.h"
#include "host/temp_dir_for_test.h"
#include "runtime/process_runtime.h"

namespace muster::runtime {

constexpr std::chrono::seconds kPatience{60};

// Looks until `condition` holds; false if it never does.
inline bool WaitUntil(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    poll(nullptr, 0, 5);
  }
  return true;
}

// Whether a process runs; a zombie does not.
inline bool IsAlive(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(file, text)) return false;
  const size_t end = text.rfind(')');
  return end != std::string::npos && end + 2 < text.size() && text[end + 2] != 'Z' && text[end + 2] != 'X';
}

class TextSink final : public contract::LogsSink {
 public:
  bool Write(contract::LogChunk chunk) override {
    const std::lock_guard lock(mu_);
    (chunk.stream == contract::LogStream::kStdout ? out_ : err_) += chunk.data;
    written_.notify_all();
    return !gone_;
  }
  bool Gone() const override {
    const std::lock_guard lock(mu_);
    return gone_;
  }
  void End(Status status) override {
    const std::lock_guard lock(mu_);
    ended_ = std::move(status);
    written_.notify_all();
  }
  // Waits until the output contains `text`.
  bool WaitFor(const std::string& text) {
    std::unique_lock lock(mu_);
    return written_.wait_for(lock, kPatience, [&] { return out_.contains(text) || err_.contains(text); });
  }
  void Leave() {
    const std::lock_guard lock(mu_);
    gone_ = true;
  }
  std::string out() const {
    const std::lock_guard lock(mu_);
    return out_;
  }
  std::string err() const {
    const std::lock_guard lock(mu_);
    return err_;
  }
  std::optional<Status> ended() const {
    const std::lock_guard lock(mu_);
    return ended_;
  }

 private:
  mutable std::mutex mu_;
  std::condition_variable written_;
  std::string out_;
  std::string err_;
  std::optional<Status> ended_;
  bool gone_ = false;
};

class ProcessLab {
 public:
  explicit ProcessLab(const std::string& user = geteuid() == 0 ? "own" : "agent") : user_(*ParseProcessUser(user)) {
    Open();
  }
  ~ProcessLab() {
    if (runtime_ == nullptr) Open();
    auto listed = Ask(contract::ListRuns{});
    if (!listed) return;
    for (const contract::Run& run : listed->runs) static_cast<void>(Ask(contract::RemoveRun{run.workload}));
  }

  // As an agent that starts: a runtime without memory.
  void Open() {
    ProcessOptions options{.root = dir_.File("processes"),
                           .shim = FindShimProgram().value(),
                           .name = std::filesystem::path(dir_.path()).filename(),
                           .user = user_};
    auto opened = ProcessRuntime::Open(std::move(options), clock_, [this](contract::Run run) {
      const std::lock_guard lock(mu_);
      ended_[{run.workload, run.launch}] = std::move(run);
      ended_changed_.notify_all();
    });
    ASSERT_TRUE(opened.has_value()) << opened.error().ToString();
    runtime_ = *std::move(opened);
  }
  // As an agent that dies: nothing is told to the shims.
  void Close() { runtime_.reset(); }

  ProcessRuntime& runtime() { return *runtime_; }
  const std::string& path() const { return dir_.path(); }
  std::string DirectoryOf(const std::string& workload) const { return dir_.File("processes/" + workload); }

  Result<contract::RuntimeReply> Ask(contract::RuntimeRequest request) {
    std::promise<Result<contract::RuntimeReply>> promise;
    auto future = promise.get_future();
    runtime_->Ask(std::move(request),
                  [&](Result<contract::RuntimeReply> reply) { promise.set_value(std::move(reply)); });
    return future.get();
  }
  static contract::StartRun Launch(const std::string& workload, std::vector<std::string> command, uint64_t launch = 1) {
    contract::StartRun start{.workload = workload, .launch = launch, .revision = "r1"};
    start.spec.type = model::WorkloadType::kProcess;
    start.spec.command = std::move(command);
    return start;
  }
  // Starts it; the run as the runtime tells it.
  contract::Run Start(const contract::StartRun& start) {
    auto reply = Ask(start);
    EXPECT_TRUE(reply.has_value()) << reply.error().ToString();
    if (!reply || reply->runs.size() != 1) return {};
    return reply->runs.front();
  }
  contract::Run Shell(const std::string& workload, const std::string& script, uint64_t launch = 1) {
    return Start(Launch(workload, {"sh", "-c", script}, launch));
  }
  // Waits for the report of the end.
  contract::Run WaitForEnd(const std::string& workload, uint64_t launch = 1) {
    std::unique_lock lock(mu_);
    const std::pair key(workload, launch);
    EXPECT_TRUE(ended_changed_.wait_for(lock, kPatience, [&] { return ended_.contains(key); })) << workload;
    return ended_[key];
  }
  size_t ends() {
    const std::lock_guard lock(mu_);
    return ended_.size();
  }
  std::string Output(const std::string& workload, std::optional<int32_t> tail = std::nullopt) {
    TextSink sink;
    runtime_->ReadLogs({.workload = workload, .tail = tail}, sink);
    return sink.out() + sink.err();
  }

 private:
  const host::TempDir dir_;
  const host::SystemClock clock_;
  const ProcessUser user_;
  std::mutex mu_;
  std::condition_variable ended_changed_;
  std::map<std::pair<std::string, uint64_t>, contract::Run> ended_;  // guarded by mu_
  std::unique_ptr<ProcessRuntime> runtime_;                          // last: it reports into the rest
};

// Follows the logs of a workload on a thread.
class Follower {
 public:
  Follower(ProcessLab& lab, const std::string& workload, std::optional<int32_t> tail = std::nullopt)
      : thread_([this, &lab, workload, tail] {
          lab.runtime().ReadLogs({.workload = workload, .follow = true, .tail = tail}, sink_);
        }) {}
  ~Follower() {
    sink_.Leave();
    thread_.join();
  }
  TextSink& sink() { return sink_; }

 private:
  TextSink sink_;
  std::thread thread_;
};

}  // namespace muster::runtime
