// The bombs of bombs_test.cc on the servers of the cluster half: every method of a scheduler and an agent, and what an
// operator serves. No message makes one grow, keeps /livez waiting or its end from coming.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <atomic>
#include <climits>
#include <csignal>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "guard/hostile.h"
#include "host/http_get_for_test.h"
#include "host/temp_dir_for_test.h"
#include "muster/v1/agent.pb.h"
#include "muster/v1/cluster.pb.h"
#include "persys/agent/v1/agent.pb.h"
#include "persys/control/v1/control.grpc.pb.h"
#include "rpc/agent_services.h"
#include "rpc/cluster_services.h"
#include "shard/fleet.h"
#include "smoke/server.h"

namespace muster::guard {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::MethodDescriptor;

constexpr const char* kHealth = "/grpc.health.v1.Health/Check";
constexpr const char* kWatchOfHealth = "/grpc.health.v1.Health/Watch";
constexpr const char* kReflection = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
constexpr double kMostGrowth = 64;  // MiB

// A number as protobuf writes it.
std::string Varint(uint64_t number) {
  std::string out;
  for (; number > 0x7F; number >>= 7) out.push_back(static_cast<char>((number & 0x7F) | 0x80));
  out.push_back(static_cast<char>(number));
  return out;
}
std::string Tag(const FieldDescriptor& field) { return Varint(static_cast<uint64_t>(field.number()) << 3 | 2); }

// So many empty elements of the first list of messages in the type, however deep; nothing if it has none.
std::optional<std::string> EmptyRows(const Descriptor& type, size_t rows, int depth = 0) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.message_type() != nullptr && field.is_repeated())
      return Repeated(Tag(field) + std::string(1, '\0'), rows);
  }
  for (int i = 0; i < type.field_count() && depth < 4; ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.message_type() == nullptr) continue;
    if (const auto inner = EmptyRows(*field.message_type(), rows, depth + 1)) return Tag(field) + Delimited(*inner);
  }
  return std::nullopt;
}

using google::protobuf::Message;
constexpr const char* kName = "web";

// A request with a name in every text, a template that is one, and messages within it, but no lists.
void FillIn(Message& message, int depth = 0) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  const Descriptor& type = *message.GetDescriptor();
  if (auto* spec = dynamic_cast<v1::WorkloadTemplate*>(&message)) {
    spec->set_type(v1::WORKLOAD_TYPE_CONTAINER);
    spec->set_image("image");
    return;
  }
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.is_repeated()) continue;
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING && field.containing_oneof() == nullptr) {
      reflection.SetString(&message, &field, kName);
    }
    if (field.message_type() != nullptr && depth < 4) FillIn(*reflection.MutableMessage(&message, &field), depth + 1);
  }
  if (auto* spec = dynamic_cast<v1::WorkloadSpec*>(&message)) {
    spec->set_kind(v1::WORKLOAD_KIND_SET);
    spec->set_replicas(1);
  }
  if (auto* apply = dynamic_cast<v1::ApplySpecRequest*>(&message)) apply->clear_expect();
}

// Sets each number of the message, however deep, to its largest while `with` is called with its path.
void ForEachNumber(Message& message, const std::string& within, const std::function<void(const std::string&)>& with) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  const Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.is_repeated()) continue;
    const std::string path = within + field.name();
    if (field.message_type() != nullptr) {
      if (!reflection.HasField(message, &field)) continue;
      ForEachNumber(*reflection.MutableMessage(&message, &field), path + ".", with);
      continue;
    }
    const std::unique_ptr<Message> before(message.New());
    before->CopyFrom(message);
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32: reflection.SetInt32(&message, &field, INT32_MAX); break;
      case FieldDescriptor::CPPTYPE_UINT32: reflection.SetUInt32(&message, &field, UINT32_MAX); break;
      case FieldDescriptor::CPPTYPE_INT64: reflection.SetInt64(&message, &field, INT64_MAX); break;
      case FieldDescriptor::CPPTYPE_UINT64: reflection.SetUInt64(&message, &field, UINT64_MAX); break;
      default: continue;
    }
    with(path);
    message.CopyFrom(*before);
  }
}

struct Bombed {
  std::string name;
  std::vector<std::string> command;   // without addresses and directories
  std::vector<std::string> services;  // by full name
  bool data_dir = true;
};

class ClusterBombs : public ::testing::TestWithParam<Bombed> {
 protected:
  ClusterBombs() {
    std::vector<std::string> words = {smoke::ProgramUnderTest()};
    words.insert(words.end(), GetParam().command.begin(), GetParam().command.end());
    words.insert(words.end(), {"--listen", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0"});
    if (GetParam().data_dir) words.insert(words.end(), {"--data-dir", dir_.File("data")});
    server_ = std::make_unique<smoke::Server>(words);
  }
  void SetUp() override { ASSERT_NE(server_->grpc(), "") << server_->process().err(); }
  void TearDown() override {
    const SteadyTime start = Start();
    server_->process().Signal(SIGTERM);
    EXPECT_EQ(server_->process().Wait(), 0) << server_->process().err();
    EXPECT_LT(SecondsSince(start), 5);
  }
  template <class Bomb>
  void Survive(const Bomb& bomb) {
    const pid_t pid = server_->process().pid();
    ForgetPeak(pid);
    const double before = PeakMiB(pid);
    bomb();
    const double growth = PeakMiB(pid) - before;
    std::cout << fmt::format("{} grew by {:.1f} MiB\n", GetParam().name, growth);
    EXPECT_LT(growth, kMostGrowth);
    ASSERT_FALSE(server_->process().Ended()) << server_->process().err();
  }
  void IsAlive() {
    const SteadyTime start = Start();
    EXPECT_EQ(host::HttpGet(*host::ParseListenAddress(server_->http(), false, "http"), "/livez").status, 200);
    EXPECT_LT(SecondsSince(start), 1);
  }
  std::string Metrics() {
    return host::HttpGet(*host::ParseListenAddress(server_->http(), false, "http"), "/metrics").body;
  }
  int Refused(const std::string& reason) {
    const std::string text = Metrics();
    const std::string name = "\nmuster_server_refused_total{reason=\"" + reason + "\"} ";
    const size_t at = text.find(name);
    return at == std::string::npos ? 0 : std::stoi(text.substr(at + name.size()));
  }
  std::shared_ptr<grpc::Channel> Channel() const { return OpenChannel(server_->grpc()); }

  std::vector<const MethodDescriptor*> Methods() const {
    // The linker leaves out what nobody names.
    for (const Descriptor* named :
         {v1::LogsRequest::descriptor(), v1::JoinMessage::descriptor(),
          persys::agent::v1::HealthCheckRequest::descriptor(), persys::control::v1::ControlMessage::descriptor()}) {
      EXPECT_NE(named, nullptr);
    }
    std::vector<const MethodDescriptor*> methods;
    for (const std::string& name : GetParam().services) {
      const auto* service = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(name);
      EXPECT_NE(service, nullptr) << name;
      for (int i = 0; service != nullptr && i < service->method_count(); ++i) methods.push_back(service->method(i));
    }
    return methods;
  }
  static std::string Path(const MethodDescriptor& method) {
    return fmt::format("/{}/{}", method.service()->full_name(), method.name());
  }
  // How the server ends the call.
  static grpc::Status Send(const std::shared_ptr<grpc::Channel>& channel, const MethodDescriptor& method,
                           const std::string& bytes, bool compressed = false) {
    const std::string path = Path(method);
    if (!method.client_streaming() && !method.server_streaming()) {
      return RawCall(channel, path.c_str(), bytes, compressed);
    }
    RawStream stream(channel, path.c_str(), compressed);
    stream.Write(bytes);
    stream.Close();
    return stream.Finish();
  }

  const host::TempDir dir_;
  std::unique_ptr<smoke::Server> server_;
};

TEST_P(ClusterBombs, ACompressedMessageIsNotUnpacked) {
  const std::string zeros(96 << 20, '\0');
  Survive([&] {
    EXPECT_EQ(RawCall(Channel(), kHealth, zeros, true).error_code(), grpc::StatusCode::UNIMPLEMENTED);
    const auto channel = Channel();
    for (const MethodDescriptor* method : Methods()) {
      EXPECT_EQ(Send(channel, *method, zeros.substr(0, 1 << 20), true).error_code(), grpc::StatusCode::UNIMPLEMENTED)
          << Path(*method);
    }
    IsAlive();
  });
}

TEST_P(ClusterBombs, EmptyRowsAreCountedBeforeTheyAreMade) {
  constexpr size_t kRows = 1'900'000;  // just below the bound in bytes
  Survive([&] {
    int bombed = 0;
    for (const MethodDescriptor* method : Methods()) {
      const auto bomb = EmptyRows(*method->input_type(), kRows);
      if (!bomb) continue;
      ++bombed;
      const grpc::Status status = Send(Channel(), *method, *bomb);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
          << Path(*method) << ": " << status.error_message();
    }
    std::cout << fmt::format("{} methods with lists\n", bombed);
    IsAlive();
  });
}

TEST_P(ClusterBombs, AMessageIsBoundedInBytes) {
  const std::string large(10 << 20, '\x0A');
  Survive([&] {
    for (const MethodDescriptor* method : Methods()) {
      EXPECT_EQ(Send(Channel(), *method, large).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << Path(*method);
    }
    IsAlive();
  });
}

TEST_P(ClusterBombs, LargeMessagesOfManyAtOnce) {
  const std::string blob(20 << 20, 'x');
  const std::vector<const MethodDescriptor*> methods = Methods();
  constexpr int kCallers = 100;
  Survive([&] {
    std::atomic<int> left = kCallers;
    std::vector<std::jthread> callers;
    for (size_t i = 0; i < kCallers; ++i) {
      callers.emplace_back([&, i, channel = Channel()] {
        const grpc::Status status =
            methods.empty() ? RawCall(channel, kHealth, blob) : Send(channel, *methods[i % methods.size()], blob);
        EXPECT_FALSE(status.ok());
        --left;
      });
    }
    int asked = 0;
    for (; left > 0; ++asked) IsAlive();
    EXPECT_GT(asked, 0);
  });
}

// The largest number in each field of a request that is right otherwise: nothing counts up to it.
TEST_P(ClusterBombs, TheLargestNumbersAreAnsweredAtOnce) {
  if (GetParam().name == "scheduler") {  // something to scale
    v1::ApplySpecRequest apply;
    FillIn(apply);
    ASSERT_TRUE(RawCall(Channel(), "/muster.v1.Cluster/ApplySpec", apply.SerializeAsString()).ok());
  }
  const auto channel = Channel();
  Survive([&] {
    std::map<std::string, std::string> counts;  // of members, and how each was answered
    std::vector<double> seconds;
    for (const MethodDescriptor* method : Methods()) {
      if (method->client_streaming() || method->server_streaming()) continue;
      const std::unique_ptr<Message> request(
          google::protobuf::MessageFactory::generated_factory()->GetPrototype(method->input_type())->New());
      FillIn(*request);
      ForEachNumber(*request, "", [&](const std::string& path) {
        const SteadyTime start = Start();
        const grpc::Status status = RawCall(channel, Path(*method).c_str(), request->SerializeAsString());
        seconds.push_back(SecondsSince(start));
        // One of hundreds may wait for a processor; two thousand million of anything take longer than this.
        EXPECT_LT(seconds.back(), 5) << Path(*method) << " " << path;
        const bool counts_members = path == "replicas" || path == "spec.replicas" || path.starts_with("spec.max_") ||
                                    path.starts_with("spec.min_");
        if (!counts_members) return;
        EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << Path(*method) << " " << path;
        counts[fmt::format("{} {}", method->name(), path)] = status.error_message();
      });
    }
    std::ranges::sort(seconds);
    std::cout << fmt::format("{} numbers\n", seconds.size());
    EXPECT_LT(seconds.empty() ? 0 : seconds[seconds.size() / 2], 1);
    IsAlive();
    if (GetParam().name != "scheduler") return;
    EXPECT_EQ(
        counts,
        (std::map<std::string, std::string>{
            {"ApplySpec spec.replicas", "spec.replicas: 2147483647 is not from 0 to 100000"},
            {"ApplySpec spec.max_unavailable.amount", "spec.update.maxUnavailable: 2147483647 is not from 0 to 100000"},
            {"ApplySpec spec.max_surge.amount", "spec.update.maxSurge: 2147483647 is not from 0 to 100000"},
            {"ApplySpec spec.min_available.amount", "spec.minAvailable: 2147483647 is not from 0 to 100000"},
            {"ScaleSet replicas", "replicas: 2147483647 is not from 0 to 100000"}}));
    // A suggestion that is not carried out is answered with why.
    persys::control::v1::SubmitAutomationSuggestionRequest suggestion;
    suggestion.mutable_suggestion()->set_target_workload(kName);
    suggestion.mutable_suggestion()->set_action_type(persys::control::v1::AUTOMATION_ACTION_SCALE_REPLICAS);
    suggestion.mutable_suggestion()->set_replica_delta(INT32_MAX);
    const auto stub = persys::control::v1::AgentControl::NewStub(channel);
    persys::control::v1::SubmitAutomationSuggestionResponse reply;
    grpc::ClientContext context;
    EXPECT_TRUE(stub->SubmitAutomationSuggestion(&context, suggestion, &reply).ok());
    EXPECT_FALSE(reply.accepted());
    EXPECT_EQ(reply.reason(), "2147483648 replicas are too many; a set has at most 100000");
  });
}

TEST_P(ClusterBombs, StreamsThatSayNothingEnd) {
  std::vector<std::string> paths;
  for (const MethodDescriptor* method : Methods()) {
    if (method->client_streaming()) paths.push_back(Path(*method));
  }
  EXPECT_EQ(paths.empty(), GetParam().name != "scheduler") << "the others read no streams";
  if (paths.empty()) return;
  constexpr size_t kStreams = 2'000;
  Survive([&] {
    std::vector<std::unique_ptr<RawStream>> silent;
    std::shared_ptr<grpc::Channel> channel;
    const SteadyTime start = Start();
    for (size_t i = 0; i < kStreams; ++i) {
      if (i % 1'000 == 0) channel = Channel();
      silent.push_back(std::make_unique<RawStream>(channel, paths[i % paths.size()].c_str()));
    }
    const double opened = SecondsSince(start);
    IsAlive();
    for (auto& stream : silent) {
      const grpc::StatusCode code = stream->Finish().error_code();
      EXPECT_TRUE(code == grpc::StatusCode::DEADLINE_EXCEEDED || code == grpc::StatusCode::RESOURCE_EXHAUSTED) << code;
    }
    EXPECT_LT(SecondsSince(start) - opened, 10);
  });
}

// gRPC waits for the message of a call with one message as long as the connection lasts.
TEST_P(ClusterBombs, CallsWhoseMessageDoesNotComeEnd) {
  std::vector<std::string> paths;
  for (const MethodDescriptor* method : Methods()) {
    if (!method->client_streaming()) paths.push_back(Path(*method));
  }
  if (paths.empty()) return;
  constexpr size_t kCalls = 3'000;
  constexpr size_t kMost = 2'048;  // of one caller
  Survive([&] {
    std::vector<std::unique_ptr<RawStream>> silent;
    std::shared_ptr<grpc::Channel> channel;
    const SteadyTime start = Start();
    for (size_t i = 0; i < kCalls; ++i) {
      if (i % 200 == 0) channel = Channel();
      silent.push_back(std::make_unique<RawStream>(channel, paths[i % paths.size()].c_str()));
    }
    const double opened = SecondsSince(start);
    IsAlive();
    size_t ended = 0;
    for (auto& stream : silent) {
      const grpc::StatusCode code = stream->Finish().error_code();
      EXPECT_TRUE(code == grpc::StatusCode::CANCELLED || code == grpc::StatusCode::RESOURCE_EXHAUSTED) << code;
      ended += code == grpc::StatusCode::CANCELLED ? 1 : 0;
    }
    EXPECT_EQ(ended, kMost);
    EXPECT_LT(SecondsSince(start) - opened, 10);
    // A caller hears of the end before the server has counted it.
    EXPECT_TRUE(shard::Eventually([&] { return Refused("silent") == kMost; })) << Refused("silent");
    EXPECT_EQ(Refused("too_many"), kCalls - kMost);
  });
}

// Health is asked by whoever comes.
TEST_P(ClusterBombs, CallsOfHealthWhoseMessageDoesNotComeEnd) {
  constexpr int kCalls = 200;  // of one connection
  Survive([&] {
    std::vector<std::unique_ptr<RawStream>> silent;
    const auto channel = Channel();
    const SteadyTime start = Start();
    for (int i = 0; i < kCalls; ++i) {
      silent.push_back(std::make_unique<RawStream>(channel, i % 2 == 0 ? kHealth : kWatchOfHealth));
    }
    IsAlive();
    for (auto& stream : silent) EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
    EXPECT_LT(SecondsSince(start), 10);
    EXPECT_TRUE(shard::Eventually([&] { return Refused("silent") == kCalls; })) << Refused("silent");
  });
}

TEST_P(ClusterBombs, WatchesOfHealthAreBoundedInNumber) {
  constexpr int kWatches = 300;
  constexpr int kMost = 128;  // of one address
  Survive([&] {
    std::vector<std::unique_ptr<RawStream>> watches;
    int served = 0;
    const auto channels = std::vector{Channel(), Channel()};
    for (int i = 0; i < kWatches; ++i) {
      watches.push_back(std::make_unique<RawStream>(channels[static_cast<size_t>(i % 2)], kWatchOfHealth));
      watches.back()->Write("");
      if (watches.back()->Read()) {
        ++served;
      } else {
        EXPECT_EQ(watches.back()->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
      }
    }
    EXPECT_EQ(served, kMost);
    IsAlive();
    EXPECT_EQ(Refused("too_many"), kWatches - kMost);
    watches.clear();
    EXPECT_TRUE(shard::Eventually([&] {
      RawStream again(channels[0], kWatchOfHealth);
      again.Write("");
      return again.Read();
    })) << "closed ones make room";
  });
}

// What waits for one caller is bounded, however many streams it waits on. A scheduler keeps the last changes for
// itself: those are there before.
TEST_P(ClusterBombs, WatchesThatAreNotReadHoldLittle) {
  if (GetParam().name != "scheduler") return;
  server_ = std::make_unique<smoke::Server>(std::vector<std::string>{smoke::ProgramUnderTest(), "scheduler", "--store",
                                                                     "sqlite:" + dir_.File("store"), "--listen",
                                                                     "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0"});
  ASSERT_NE(server_->grpc(), "") << server_->process().err();
  constexpr int kWatches = 64;
  const auto channel = Channel();
  v1::ApplyWorkloadRequest apply;
  apply.set_workload("web");
  apply.mutable_spec()->set_type(v1::WORKLOAD_TYPE_CONTAINER);
  apply.mutable_spec()->set_image("image");
  auto& env = *apply.mutable_spec()->mutable_env();
  for (int i = 0; i < 6; ++i) env[fmt::format("VARIABLE_{}", i)] = std::string(30'000, 'v');
  int number = 0;
  const auto change = [&](int times) {
    for (int i = 0; i < times; ++i) {
      env["NUMBER"] = std::to_string(++number);
      const grpc::Status status = RawCall(channel, "/muster.v1.Cluster/ApplyWorkload", apply.SerializeAsString());
      ASSERT_TRUE(status.ok()) << status.error_message();
    }
  };
  ASSERT_TRUE(shard::Eventually([&] {
    return RawCall(channel, "/muster.v1.Cluster/ApplyWorkload", apply.SerializeAsString()).ok();
  })) << "it leads";
  change(400);  // of 180 KiB
  std::vector<std::unique_ptr<RawStream>> watches;
  Survive([&] {
    v1::WatchRequest all;
    all.set_workloads(true);
    for (int i = 0; i < kWatches; ++i) {
      watches.push_back(std::make_unique<RawStream>(channel, "/muster.v1.Cluster/Watch"));
      watches.back()->Write(all.SerializeAsString());
      watches.back()->Close();
    }
    EXPECT_TRUE(shard::Eventually([&] { return Metrics().contains("\nmuster_scheduler_watchers 64\n"); }));
    change(800);
    IsAlive();
  });
  for (const auto& watch : watches) EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

// They have no pages, and are as large as the cluster.
TEST_P(ClusterBombs, ListsOfPersysOfManyAtOnceHoldLittle) {
  if (GetParam().name != "scheduler") return;
  constexpr int kWorkloads = 5'000;
  constexpr int kCallers = 64;
  const auto channel = Channel();
  v1::ApplySpecRequest apply;
  FillIn(apply);
  apply.mutable_spec()->set_replicas(kWorkloads);
  ASSERT_TRUE(RawCall(channel, "/muster.v1.Cluster/ApplySpec", apply.SerializeAsString()).ok());
  const std::string state =
      fmt::format("\npersys_scheduler_workloads_desired_state{{desired_state=\"Running\"}} {}\n", kWorkloads);
  ASSERT_TRUE(shard::Eventually([&] { return Metrics().contains(state); })) << Metrics();
  Survive([&] {
    std::atomic<int> listed = 0;
    std::atomic<int> refused = 0;
    {
      std::vector<std::jthread> callers;
      for (int i = 0; i < kCallers; ++i) {
        callers.emplace_back([&, own = Channel()] {
          const auto code = RawCall(own, "/persys.control.v1.AgentControl/ListWorkloads", "").error_code();
          if (code == grpc::StatusCode::OK) ++listed;
          if (code == grpc::StatusCode::RESOURCE_EXHAUSTED) ++refused;
        });
      }
    }
    std::cout << fmt::format("{} listed, {} refused\n", listed.load(), refused.load());
    EXPECT_GT(listed, 0);
    EXPECT_EQ(listed + refused, kCallers);
    IsAlive();
  });
}

// The service that gRPC brings along.
TEST_P(ClusterBombs, AReflectionStreamThatAsksNothingEnds) {
  constexpr int kMost = 16;  // of one address
  const auto channel = Channel();
  const std::string list_services = "\x3A" + Delimited("");
  RawStream asks(channel, kReflection);
  EXPECT_TRUE(asks.Write(list_services));
  EXPECT_TRUE(asks.Read());
  const SteadyTime start = Start();
  std::vector<std::unique_ptr<RawStream>> silent;
  for (int i = 0; i < 2 * kMost; ++i) silent.push_back(std::make_unique<RawStream>(channel, kReflection));
  for (auto& stream : silent) EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_LT(SecondsSince(start), 10);
  EXPECT_EQ(Refused("silent"), kMost - 1);
  EXPECT_EQ(Refused("too_many"), kMost + 1);
  EXPECT_TRUE(asks.Write(list_services)) << "one that has asked lasts";
  EXPECT_TRUE(asks.Read());
}

INSTANTIATE_TEST_SUITE_P(
    Servers, ClusterBombs,
    ::testing::Values(Bombed{.name = "scheduler",
                             .command = {"scheduler", "--store", "memory:"},
                             .services = {std::string(rpc::kClusterService), std::string(rpc::kControlService)},
                             .data_dir = false},
                      Bombed{.name = "agent",
                             .command = {"agent", "--node-id", "n1"},
                             .services = {std::string(rpc::kAgentService), std::string(rpc::kPersysAgentService)}},
                      Bombed{.name = "operator",
                             .command = {"operator", "--cluster", "blue", "--scheduler", "127.0.0.1:1", "--shard-addr",
                                         "127.0.0.1:1"},
                             .services = {},
                             .data_dir = false}),
    [](const auto& bombed) { return bombed.param.name; });

}  // namespace
}  // namespace muster::guard
