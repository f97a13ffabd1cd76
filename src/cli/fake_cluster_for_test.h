// FakeCluster: a scheduler of the command line's tests, and a shard beside it if the test has one. Both answer what the
// test gives them; what the scheduler was asked is kept.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "cli/cluster.h"
#include "cli/command_line.h"
#include "contract/cluster.h"
#include "contract/shard.h"
#include "rpc/cluster_client.h"

namespace muster::cli {

struct FakeCluster {
  using Answer = std::function<Result<contract::ClusterReply>(const contract::ClusterRequest&)>;

  // Answers every request; UNIMPLEMENTED if there is none.
  Answer answer;
  // The same of the shard; without it no shard is known.
  std::function<Result<contract::ShardReply>(const contract::ShardRequest&)> shard_answer;
  // Each watch brings the next of these, in order, and then ends. Without any it is cancelled.
  struct Stream {
    std::vector<contract::ClusterChange> changes;
    Status end;
  };
  std::deque<Stream> streams;
  std::vector<contract::LogChunk> logs;
  Status logs_end;
  bool terminal = false;  // what is printed goes to one

  std::vector<contract::ClusterRequest> asked;
  std::vector<contract::WatchCluster> watched;
  std::vector<contract::ReadLogs> read;
  std::string scheduler;  // as the flags named it
  std::shared_ptr<VirtualClock> clock = std::make_shared<VirtualClock>(
      Now{.mono = MonoTime(1h), .wall = WallTime(std::chrono::seconds(1'767'225'600))});  // 2026-01-01T00:00:00Z

  // The requests of one type, in order.
  template <class Request>
  std::vector<Request> Asked() const {
    std::vector<Request> typed;
    for (const contract::ClusterRequest& request : asked) {
      if (const auto* one = std::get_if<Request>(&request)) typed.push_back(*one);
    }
    return typed;
  }

  // A pause moves the clock.
  ClusterAccess Access();
};

class FakeClusterClient final : public rpc::ClusterClient {
 public:
  explicit FakeClusterClient(FakeCluster& cluster) : cluster_(cluster) {}

  void Ask(contract::ClusterRequest request, Done done) override {
    cluster_.asked.push_back(request);
    done(cluster_.answer ? cluster_.answer(request) : Error(Code::kUnimplemented, "the fake has no answer"));
  }
  std::unique_ptr<rpc::OpenStream> Watch(const contract::WatchCluster& what, Watcher watcher) override {
    cluster_.watched.push_back(what);
    if (cluster_.streams.empty()) {
      watcher.ended(Status(Code::kCancelled, "the test is over"));
    } else {
      const FakeCluster::Stream stream = std::move(cluster_.streams.front());
      cluster_.streams.pop_front();
      for (const contract::ClusterChange& change : stream.changes) watcher.changed(change);
      watcher.ended(stream.end);
    }
    return std::make_unique<rpc::OpenStream>();
  }
  std::unique_ptr<rpc::OpenStream> Logs(const contract::ReadLogs& what, LogReader reader) override {
    cluster_.read.push_back(what);
    for (const contract::LogChunk& chunk : cluster_.logs) reader.chunk(chunk);
    reader.ended(cluster_.logs_end);
    return std::make_unique<rpc::OpenStream>();
  }

 private:
  FakeCluster& cluster_;
};

class FakeShard final : public contract::ShardPort {
 public:
  explicit FakeShard(const FakeCluster& cluster) : cluster_(cluster) {}
  void Ask(contract::ShardRequest request, Answer done) override { done(cluster_.shard_answer(request)); }

 private:
  const FakeCluster& cluster_;
};

inline ClusterAccess FakeCluster::Access() {
  ClusterAccess access = {.connect = [this](const ClusterFlags& flags) -> Result<std::unique_ptr<rpc::ClusterClient>> {
                            scheduler = flags.scheduler;
                            return std::make_unique<FakeClusterClient>(*this);
                          },
                          .clock = clock,
                          .pause = [this](Duration how_long) { clock->Advance(how_long); },
                          .is_terminal = [this](int) { return terminal; }};
  if (shard_answer) {
    access.shard = [this](const ShardFlags&) -> Result<std::unique_ptr<contract::ShardPort>> {
      return std::make_unique<FakeShard>(*this);
    };
  }
  return access;
}

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

// Runs `muster WORDS` against the fake.
inline Outcome RunMuster(FakeCluster& cluster, std::vector<const char*> words) {
  CommandLine app({.version = "1.2.3", .commit = "abc", .compiler = "C", .build_type = "T", .faults = false});
  AddClusterVerbs(app, cluster.Access());
  Verb explain = app.AddVerb("explain", "Explain");
  explain.Run(AddExplainSubjects(explain, cluster.Access()));
  words.insert(words.begin(), "muster");
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = app.Main(static_cast<int>(words.size()), words.data());
  return {code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

}  // namespace muster::cli
