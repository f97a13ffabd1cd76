// What one message, one stream or one client can cost a running shard and provider: nothing that matters. Each bomb is
// sent over the wire; what the server's memory grows by is measured by the kernel.
//
// MUSTER_STREAMS says how many silent streams are opened, 2,000 unless given; 100,000 is the campaign of
// docs/security.md.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "guard/hostile.h"
#include "shard/peers.h"

namespace muster::guard {
namespace {

using shard::Eventually;

constexpr const char* kSession = "/bigfleet.v1alpha1.Shard/Session";
constexpr const char* kConfigure = "/bigfleet.v1alpha1.CapacityProvider/Configure";
constexpr const char* kList = "/bigfleet.v1alpha1.CapacityProvider/List";
constexpr const char* kHealth = "/grpc.health.v1.Health/Check";
constexpr const char* kWatchOfHealth = "/grpc.health.v1.Health/Watch";
constexpr const char* kReflection = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
constexpr double kMostGrowth = 64;  // MiB

std::string Hello(const std::string& cluster) {
  return "\x0A" + Delimited("\x0A" + Delimited(cluster) + "\x1A" + Delimited(std::string(contract::kProtocolVersion)));
}

std::string Rollup(const std::string& rows) { return "\x12" + Delimited(rows); }
std::string Blob(size_t size) {
  return "\x1A" + Delimited("\x0A" + Delimited("request") + "\x12" + Delimited(std::string(size, 'x')));
}

class Bombs : public shard::PeersTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(provider_.up());
    StartShard(provider_.grpc(), {"--control-listen", ":0"});
    ASSERT_NE(shard_->control(), "");
  }
  // Runs the bomb, and demands that the server stays small and answers.
  template <class Bomb>
  void Survive(smoke::Server& server, const Bomb& bomb) {
    const pid_t pid = server.process().pid();
    ForgetPeak(pid);
    const double before = PeakMiB(pid);
    bomb();
    const double growth = PeakMiB(pid) - before;
    std::cout << fmt::format("grew by {:.1f} MiB\n", growth);
    EXPECT_LT(growth, kMostGrowth);
    EXPECT_FALSE(server.process().Ended()) << server.process().err();
  }
  // An operator's order while the load lasts.
  void PauseIsQuick() {
    const SteadyTime start = Start();
    EXPECT_TRUE(shard_->Ask<contract::ActuationSet>(
        contract::SetActuation{.mode = contract::ActuationMode::kPaused, .reason = "under load"}));
    const double seconds = SecondsSince(start);
    std::cout << fmt::format("a pause took {:.3f} s\n", seconds);
    EXPECT_LT(seconds, 1);
  }
  // A hundred clusters with a blob of 20 MiB each, at once; `left` counts those that have not ended. Their threads go
  // behind all others: clusters run elsewhere, and take no processor from a shard and its operators.
  static constexpr int kBlobs = 100;
  std::vector<std::jthread> SendBlobs(std::atomic<int>& left) {
    const auto blob = std::make_shared<const std::string>(Blob(20 << 20));
    std::vector<std::jthread> clusters;
    for (int i = 0; i < kBlobs; ++i) {
      clusters.emplace_back([&left, i, blob, target = shard_->grpc()] {
        setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19);
        RawStream stream(OpenChannel(target), kSession);
        stream.Write(Hello(fmt::format("cluster-{}", i)));
        stream.Read();
        stream.Write(*blob);
        EXPECT_FALSE(stream.Finish().ok());
        --left;
      });
    }
    return clusters;
  }
  // The same when what is received has no room left: gRPC may end any call then, and it is made again.
  void PauseComesThrough() {
    EXPECT_TRUE(Eventually([this] {
      return shard_
          ->Ask<contract::ActuationSet>(
              contract::SetActuation{.mode = contract::ActuationMode::kPaused, .reason = "under load"})
          .has_value();
    }));
  }
  // How long orders take, one after the other, over a connection of their own, until `over`; each is acknowledged.
  static std::vector<double> PauseAt(const std::string& target, const std::function<bool(size_t)>& over) {
    const auto client = *rpc::MakeShardClient(target);
    std::vector<double> seconds;
    while (!over(seconds.size())) {
      const SteadyTime start = Start();
      const auto reply = shard::Wait<contract::ShardReply>([&](auto done) {
        client->Ask(contract::SetActuation{.mode = contract::ActuationMode::kPaused, .reason = "under load"},
                    std::move(done));
      });
      EXPECT_TRUE(reply.has_value()) << reply.error().ToString();
      seconds.push_back(SecondsSince(start));
    }
    std::ranges::sort(seconds);
    return seconds;
  }
  // On the socket in the data directory, whose memory for messages the network does not share. The median, because the
  // bombs' own threads keep the processors busy.
  void PauseOnTheSocketIsQuick() {
    const std::vector<double> seconds =
        PauseAt("unix:" + fleet_.File("shard") + "/control.sock", [](size_t given) { return given == 5; });
    EXPECT_LT(seconds[2], 1);
  }
  static double SecondsUntil(const std::function<bool()>& holds) {
    const SteadyTime start = Start();
    EXPECT_TRUE(Eventually(holds));
    return SecondsSince(start);
  }
  // By the median, and each within five.
  static void IsWithinASecond(const char* what, std::vector<double> seconds) {
    std::ranges::sort(seconds);
    std::cout << fmt::format("{} {}: {:.3f} s by the median, {:.3f} s at most\n", seconds.size(), what,
                             seconds[seconds.size() / 2], seconds.back());
    EXPECT_LT(seconds[seconds.size() / 2], 1) << what;
    EXPECT_LT(seconds.back(), 5) << what;
  }
  double Refused(smoke::Server& server, const std::string& reason) {
    const std::string text = host::HttpGet(*host::ParseListenAddress(server.http(), false, "http"), "/metrics").body;
    const std::string name = "\nmuster_server_refused_total{reason=\"" + reason + "\"} ";
    const size_t at = text.find(name);
    return at == std::string::npos ? 0 : std::stod(text.substr(at + name.size()));
  }
};

TEST_F(Bombs, ACompressedMessageIsNotUnpacked) {
  const std::string zeros(96 << 20, '\0');
  Survive(*shard_, [&] {
    RawStream stream(OpenChannel(shard_->grpc()), kSession, true);
    stream.Write(zeros);
    EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
    EXPECT_EQ(RawCall(OpenChannel(shard_->grpc()), kHealth, zeros, true).error_code(), grpc::StatusCode::UNIMPLEMENTED);
    RawStream another(OpenChannel(shard_->grpc()), kSession, true);
    another.Write(zeros);
    PauseIsQuick();
  });
  EXPECT_GE(Refused(*shard_, "compressed"), 2);
  Survive(provider_, [&] {
    EXPECT_EQ(RawCall(OpenChannel(provider_.grpc()), kList, zeros, true).error_code(), grpc::StatusCode::UNIMPLEMENTED);
  });
  EXPECT_EQ(Refused(provider_, "compressed"), 1);
}

TEST_F(Bombs, EmptyRowsAreCountedBeforeTheyAreMade) {
  const std::string bomb = Rollup(Repeated(std::string_view("\x1A\x00", 2), 5'000'000));
  Survive(*shard_, [&] {
    RawStream stream(OpenChannel(shard_->grpc()), kSession);
    ASSERT_TRUE(stream.Write(Hello("blue")));
    ASSERT_TRUE(stream.Read());
    ASSERT_TRUE(stream.Write(bomb));
    EXPECT_TRUE(Eventually([&] {
      const auto clusters = shard_->Ask<contract::ClustersListed>(contract::ListClusters{});
      return clusters && clusters->clusters.size() == 1 &&
             clusters->clusters[0].last_refusal.contains("needs: the message has more than 100000 rows");
    }));
    ASSERT_TRUE(stream.Write(bomb));
    PauseIsQuick();
  });
}

TEST_F(Bombs, RowsOfManyPartsAreWeighedBeforeTheyAreMade) {
  // A row of a thousand empty requirements, a thousand times.
  const std::string row = "\x1A" + Delimited(Repeated(std::string_view("\x0A\x00", 2), 1'000));
  Survive(*shard_, [&] {
    RawStream stream(OpenChannel(shard_->grpc()), kSession);
    ASSERT_TRUE(stream.Write(Hello("blue")));
    ASSERT_TRUE(stream.Read());
    ASSERT_TRUE(stream.Write(Rollup(Repeated(row, 2'000))));
    EXPECT_TRUE(Eventually([&] {
      const auto clusters = shard_->Ask<contract::ClustersListed>(contract::ListClusters{});
      return clusters && clusters->clusters.size() == 1 && clusters->clusters[0].last_refusal.contains("of memory");
    }));
    ASSERT_TRUE(stream.Write(Rollup(Repeated(row, 2'000))));
    PauseIsQuick();
  });
}

TEST_F(Bombs, ARequestIsBoundedInBytesAndInMemory) {
  Survive(provider_, [&] {
    const grpc::Status large =
        RawCall(OpenChannel(provider_.grpc()), kList, "\x2A" + Delimited(std::string(5 << 20, 'x')));
    EXPECT_EQ(large.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << large.error_message();
    const grpc::Status packed =
        RawCall(OpenChannel(provider_.grpc()), kList, "\x0A" + Delimited(std::string(3 << 20, '\x01')));
    EXPECT_EQ(packed.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(packed.error_message(),
              "states: the message takes more than 32 MiB of memory once it is read; send less at a time");
    EXPECT_TRUE(RawCall(OpenChannel(provider_.grpc()), kList, "").ok());
  });
  EXPECT_EQ(Refused(provider_, "too_large"), 1);
  EXPECT_EQ(Refused(provider_, "no_message"), 1) << "the first, which gRPC has ended";
}

TEST_F(Bombs, AMessageOfAStreamBeyondTheBoundsIsCounted) {
  RawStream stream(OpenChannel(shard_->grpc()), kSession);
  ASSERT_TRUE(stream.Write(Hello("blue")));
  ASSERT_TRUE(stream.Read());
  stream.Write(Blob(5 << 20));
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Refused(*shard_, "too_large"), 1);
}

// One over TCP could be a line of anybody; the owner of the directory is told of without limit.
TEST_F(Bombs, AnOrderIsThatOfAnOperatorOnTheSocket) {
  static_cast<void>(PauseAt(shard_->grpc(), [](size_t given) { return given == 1; }));
  static_cast<void>(PauseAt("unix:" + fleet_.File("shard") + "/control.sock", [](size_t given) { return given == 1; }));
  const auto lines = [&](const std::string& message) {
    static_cast<void>(shard_->process().Ended());  // reads what it has written by now
    const std::string log = shard_->process().err();
    const std::string wanted = "\"msg\":\"" + message + "\"";
    int count = 0;
    for (size_t at = log.find(wanted); at != std::string::npos; at = log.find(wanted, at + 1)) ++count;
    return count;
  };
  EXPECT_TRUE(Eventually([&] { return lines("order") == 1 && lines("order without a certificate") == 1; }))
      << shard_->process().err();
}

TEST_F(Bombs, LargeBlobsOfManyClustersAtOnce) {
  Survive(*shard_, [&] {
    std::atomic<int> left = kBlobs;
    const std::vector<std::jthread> clusters = SendBlobs(left);
    // A cluster that does nothing wrong may lose its session, and begins another.
    std::vector<double> acknowledged;
    std::jthread innocent([&] {
      std::unique_ptr<shard::Speaker> speaker;
      while (acknowledged.size() < 10 || left > 0) {
        acknowledged.push_back(SecondsUntil([&] {
          if (speaker == nullptr || speaker->ended()) {
            speaker = std::make_unique<shard::Speaker>(shard_->grpc(), "innocent");
          }
          const int before = speaker->acknowledged();
          speaker->Say(1, 1);
          return Eventually([&] { return speaker->ended() || speaker->acknowledged() > before; }) && !speaker->ended();
        }));
      }
    });
    // Over TCP, as long as the blobs come: each order is acknowledged. The median, as on the socket.
    const std::vector<double> seconds =
        PauseAt(shard_->control(), [&](size_t given) { return given >= 10 && left == 0; });
    std::cout << fmt::format("{} pauses over TCP, in seconds: {:.2f}\n", seconds.size(), fmt::join(seconds, " "));
    EXPECT_LT(seconds[seconds.size() / 2], 1);
    innocent.join();
    IsWithinASecond("roll-ups of another cluster", acknowledged);
  });
}

TEST_F(Bombs, LargeBlobsLeaveTheSocketFreeToo) {
  Survive(*shard_, [&] {
    std::atomic<int> left = kBlobs;
    const std::vector<std::jthread> clusters = SendBlobs(left);
    PauseOnTheSocketIsQuick();
    PauseComesThrough();
  });
}

// Each is within the bounds of a message. A hundred callers, who begin when all are there. How much is refused, and
// whether for the memory for messages or for what is worked on, is a matter of luck:
// ACallerHasItsPartThoughOthersHaveAll (identities_test.cc) has calls that wait.
TEST_F(Bombs, RequestsJustWithinTheBoundsAreBoundedTogether) {
  const std::string request = "\x0A" + Delimited("no-machine") + "\x1A" + Delimited(std::string(3'900 << 10, 'x'));
  constexpr int kCallers = 100;
  std::atomic<int> refused = 0;
  std::atomic<int> taken = 0;
  Survive(provider_, [&] {
    std::latch ready(kCallers);
    std::vector<std::jthread> callers;
    for (int i = 0; i < kCallers; ++i) {
      callers.emplace_back([&, channel = OpenChannel(provider_.grpc())] {
        setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19);
        ready.arrive_and_wait();
        for (int round = 0; round < 3; ++round) {
          const auto code = RawCall(channel, kConfigure, request).error_code();
          ++(code == grpc::StatusCode::RESOURCE_EXHAUSTED ? refused : taken);
        }
      });
    }
  });
  std::cout << fmt::format("{} refused, {} taken\n", refused.load(), taken.load());
  EXPECT_GT(taken, 0);
  // More than fit at a time, one after the other: what was taken is given back.
  const auto channel = OpenChannel(provider_.grpc());
  for (int i = 0; i < 10; ++i) {
    const grpc::Status after = RawCall(channel, kConfigure, request);
    EXPECT_NE(after.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << after.error_message();
  }
}

TEST_F(Bombs, BlobsThatWereNotAskedForAreNotKept) {
  const std::string blob = Blob(3'900 << 10);
  shard::Speaker innocent(shard_->grpc(), "innocent");
  Survive(*shard_, [&] {
    std::atomic<bool> sent = false;
    std::vector<std::unique_ptr<RawStream>> clusters;
    const std::jthread others([&, channel = OpenChannel(shard_->grpc())] {
      setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19);
      for (int i = 0; i < 60; ++i) {
        clusters.push_back(std::make_unique<RawStream>(channel, kSession));
        EXPECT_TRUE(clusters.back()->Write(Hello(fmt::format("cluster-{}", i))));
        EXPECT_TRUE(clusters.back()->Read());
        for (int twice = 0; twice < 2; ++twice) EXPECT_TRUE(clusters.back()->Write(blob));
        // It is read once what came before it was.
        EXPECT_TRUE(clusters.back()->Write(Hello(fmt::format("cluster-{}", i))));
        EXPECT_TRUE(clusters.back()->Read());
      }
      sent = true;
    });
    std::vector<double> pauses;
    std::vector<double> acknowledged;
    std::vector<double> cycles;
    for (int round = 1; round <= 10 || !sent; ++round) {
      pauses.push_back(PauseAt(shard_->control(), [](size_t given) { return given == 1; })[0]);
      innocent.Say(1, 1);
      acknowledged.push_back(SecondsUntil([&] { return innocent.acknowledged() == round; }));
      const int64_t before = shard_->Cycle();
      cycles.push_back(SecondsUntil([&] { return shard_->Cycle() > before; }));
    }
    IsWithinASecond("pauses", pauses);
    IsWithinASecond("roll-ups of another cluster", acknowledged);
    IsWithinASecond("cycles", cycles);
    EXPECT_FALSE(innocent.ended());
  });
}

// Each session takes the place of the one before it, and its answers stay where they are.
TEST_F(Bombs, AnswersThatAreNotReadAreNotKept) {
  Survive(*shard_, [&] {
    const auto channel = OpenChannel(shard_->grpc());
    std::vector<std::unique_ptr<RawStream>> sessions;
    for (int i = 0; i < 30; ++i) {
      sessions.push_back(std::make_unique<RawStream>(channel, kSession));
      for (int said = 0; said < 10'000 && sessions.back()->Write(Hello("blue")); ++said) {
      }
    }
    PauseIsQuick();
  });
}

// Whoever is no operator finds nothing there to fill its memory with, in plaintext too.
TEST_F(Bombs, TheControlAddressHasTheMethodsOfOperatorsAlone) {
  RawStream stream(OpenChannel(shard_->control()), kSession);
  stream.Write(Hello("blue"));
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
  Survive(*shard_, [&] {
    const std::string bomb = "\x0A" + Delimited(std::string(3 << 20, '\x01'));
    const grpc::Status large = RawCall(OpenChannel(shard_->control()), "/muster.v1.Fleet/SetActuation", bomb);
    EXPECT_EQ(large.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << large.error_message();
    const grpc::Status larger = RawCall(OpenChannel(shard_->control()), "/muster.v1.Fleet/SetActuation", bomb + bomb);
    EXPECT_EQ(larger.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << larger.error_message();
  });
}

TEST_F(Bombs, StreamsThatSayNothingEnd) {
  const char* asked = std::getenv("MUSTER_STREAMS");
  const int streams = asked != nullptr ? std::stoi(asked) : 2'000;
  constexpr int kPerChannel = 1'000;
  Survive(*shard_, [&] {
    std::vector<std::unique_ptr<RawStream>> silent;
    std::shared_ptr<grpc::Channel> channel;
    const SteadyTime start = Start();
    for (int i = 0; i < streams; ++i) {
      if (i % kPerChannel == 0) channel = OpenChannel(shard_->grpc());
      silent.push_back(std::make_unique<RawStream>(channel, kSession));
    }
    const double opened = SecondsSince(start);
    PauseIsQuick();
    const SteadyTime asked_live = Start();
    EXPECT_EQ(host::HttpGet(*host::ParseListenAddress(shard_->http(), false, "http"), "/livez").status, 200);
    EXPECT_LT(SecondsSince(asked_live), 1);
    for (auto& stream : silent) {
      const grpc::StatusCode code = stream->Finish().error_code();
      EXPECT_TRUE(code == grpc::StatusCode::DEADLINE_EXCEEDED || code == grpc::StatusCode::RESOURCE_EXHAUSTED) << code;
    }
    // Those beyond the streams of a connection wait at the client, and are refused in their turn, 2,000 a second or
    // more.
    EXPECT_LT(SecondsSince(start) - opened, 10 + streams / 2'000.0);
  });
  EXPECT_GT(Refused(*shard_, "silent"), 0);
  EXPECT_GT(Refused(*shard_, "too_many"), 0);
}

// On each of its three addresses: streams that say nothing, calls that wait for their message, and those that are
// served and do not end by themselves.
TEST_F(Bombs, CallsThatDoNotEndKeepNoServerFromItsEnd) {
  const std::string list_services = "\x3A" + Delimited("");
  const std::string socket = "unix:" + fleet_.File("shard") + "/control.sock";
  std::vector<std::unique_ptr<RawStream>> open;
  for (const std::string& target : {shard_->grpc(), shard_->control(), socket}) {
    const auto channel = OpenChannel(target);
    for (int i = 0; i < 10; ++i) {
      if (target != shard_->control()) open.push_back(std::make_unique<RawStream>(channel, kSession));
      open.push_back(std::make_unique<RawStream>(channel, kHealth));
      open.push_back(std::make_unique<RawStream>(channel, "/muster.v1.Fleet/ListMachines"));
    }
    for (int i = 0; i < 3; ++i) {
      open.push_back(std::make_unique<RawStream>(channel, kReflection));
      EXPECT_TRUE(open.back()->Write(list_services));
      EXPECT_TRUE(open.back()->Read());
      open.push_back(std::make_unique<RawStream>(channel, kWatchOfHealth));
      EXPECT_TRUE(open.back()->Write(""));
      EXPECT_TRUE(open.back()->Read());
    }
  }
  const SteadyTime start = Start();
  shard_->process().Signal(SIGTERM);
  EXPECT_EQ(shard_->process().Wait(), 0) << shard_->process().err();
  const double seconds = SecondsSince(start);
  std::cout << fmt::format("stopped in {:.2f} s\n", seconds);
  EXPECT_LT(seconds, 5);
}

TEST_F(Bombs, SlowHttpClientsKeepNobodyFromAnAnswerNorAServerFromItsEnd) {
  const host::Address http = *host::ParseListenAddress(shard_->http(), false, "http");
  std::vector<SlowClient> slow;
  for (int i = 0; i < 1'000; ++i) slow.emplace_back(http);
  for (int round = 0; round < 5; ++round) {
    for (const SlowClient& client : slow) client.Drip("v");
    const SteadyTime start = Start();
    EXPECT_EQ(host::HttpGet(http, "/livez").status, 200);
    EXPECT_LT(SecondsSince(start), 1);
  }
  PauseIsQuick();
  // By the server that still runs: a dead one has no connections.
  EXPECT_TRUE(Eventually([&] { return std::ranges::all_of(slow, &SlowClient::Closed); }));
  EXPECT_FALSE(shard_->process().Ended()) << shard_->process().err();
  std::vector<SlowClient> again;
  for (int i = 0; i < 1'000; ++i) again.emplace_back(http);
  const SteadyTime start = Start();
  shard_->process().Signal(SIGTERM);
  EXPECT_EQ(shard_->process().Wait(), 0) << shard_->process().err();
  EXPECT_LT(SecondsSince(start), 5);
}

TEST_F(Bombs, FreshNamesOfClustersComeToAnEnd) {
  constexpr int kNames = 5'000;
  Survive(*shard_, [&] {
    const auto channel = OpenChannel(shard_->grpc());
    int taken = 0;
    int refused = 0;
    for (int i = 0; i < kNames; ++i) {
      RawStream stream(channel, kSession);
      ASSERT_TRUE(stream.Write(Hello(fmt::format("fresh-{}", i))));
      if (stream.Read()) {
        ++taken;
        continue;
      }
      const grpc::Status end = stream.Finish();
      EXPECT_EQ(end.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
      EXPECT_TRUE(end.error_message().contains("4096 clusters")) << end.error_message();
      ++refused;
    }
    EXPECT_EQ(taken, 4'096);
    EXPECT_EQ(refused, kNames - 4'096);
    RawStream known(channel, kSession);
    ASSERT_TRUE(known.Write(Hello("fresh-7")));
    EXPECT_TRUE(known.Read()) << "a cluster that the shard knows comes back";
    PauseIsQuick();
    RawStream large(channel, kSession);
    ASSERT_TRUE(large.Write(Hello(std::string(3 << 20, 'x'))));
    const grpc::Status end = large.Finish();
    EXPECT_EQ(end.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_LT(end.error_message().size(), 500u) << "a name is quoted in part";
  });
}

}  // namespace
}  // namespace muster::guard
