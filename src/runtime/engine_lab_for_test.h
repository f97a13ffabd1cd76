// EngineLab: a runtime on a real engine (podman_for_test.h), asked and waited for. The engine is made once for a suite:
// importing the image takes a second.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "host/system_clock.h"
#include "runtime/docker_engine.h"
#include "runtime/podman_for_test.h"
#include "runtime/runtime.h"

namespace muster::runtime {

template <class RuntimeType>
class EngineLab : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto podman = Podman::Start();
    ASSERT_TRUE(podman.has_value()) << podman.error().ToString();
    podman_ = podman->release();
  }
  static void TearDownTestSuite() {
    delete podman_;
    podman_ = nullptr;
  }
  void SetUp() override { OpenRuntime(); }

  void OpenRuntime(ContainerUser user = ContainerUser::kTenant) {
    runtime_.reset();
    runtime_ = std::make_unique<RuntimeType>(ContainerOptions{.socket = podman_->socket(),
                                                              .name = "test",
                                                              .poll = 50ms,
                                                              .host_paths = {std::filesystem::temp_directory_path()},
                                                              .user = user},
                                             clock_, [this](contract::Run run) { NoteEnd(std::move(run)); });
  }
  Result<contract::RuntimeReply> Ask(contract::RuntimeRequest request) {
    std::promise<Result<contract::RuntimeReply>> answer;
    runtime_->Ask(std::move(request), [&](auto reply) { answer.set_value(std::move(reply)); });
    return answer.get_future().get();
  }
  void NoteEnd(contract::Run run) {
    const std::lock_guard lock(mu_);
    ended_.push_back(std::move(run));
    came_.notify_all();
  }
  contract::Run WaitForEnd(const std::string& workload) {
    std::unique_lock lock(mu_);
    contract::Run found;
    const bool came = came_.wait_for(lock, 60s, [&] {
      for (const contract::Run& run : ended_) {
        if (run.workload == workload) found = run;
      }
      return !found.workload.empty();
    });
    EXPECT_TRUE(came) << workload << " did not end";
    return found;
  }
  std::string Logs(const contract::ReadLogs& request) {
    struct Sink final : contract::LogsSink {
      bool Write(contract::LogChunk chunk) override {
        text += chunk.data;
        return true;
      }
      bool Gone() const override { return false; }
      void End(Status how) override { status = how; }
      std::string text;
      Status status;
    } sink;
    runtime_->ReadLogs(request, sink);
    EXPECT_EQ(sink.status, Status());
    return sink.text;
  }
  void Remove(const std::string& workload) { EXPECT_TRUE(Ask(contract::RemoveRun{.workload = workload}).has_value()); }

  static inline Podman* podman_ = nullptr;
  const host::SystemClock clock_;
  std::mutex mu_;
  std::condition_variable came_;
  std::vector<contract::Run> ended_;  // guarded by mu_
  std::unique_ptr<RuntimeType> runtime_;
};

}  // namespace muster::runtime
