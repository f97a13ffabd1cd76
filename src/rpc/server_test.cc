#include "rpc/server.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "grpc/health/v1/health.grpc.pb.h"
#include "rpc/health.h"

namespace muster::rpc {
namespace {

using Health = grpc::health::v1::Health;
using HealthCheckRequest = grpc::health::v1::HealthCheckRequest;
using HealthCheckResponse = grpc::health::v1::HealthCheckResponse;

constexpr Duration kPatience = 20s;

ServerOptions AnyPort() { return {.address = {"127.0.0.1", 0}}; }

std::shared_ptr<grpc::Channel> ChannelTo(const Server& server) {
  return grpc::CreateChannel(server.address().ToString(), grpc::InsecureChannelCredentials());
}

void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
}

TEST(Server, HealthFollowsSetServing) {
  Server server(AnyPort());
  ASSERT_TRUE(server.Start().ok());
  ASSERT_NE(server.address().port, 0);
  const host::Address where = server.address();
  EXPECT_EQ(CheckHealth(where, "", kPatience),
            Status(Code::kFailedPrecondition, where.ToString() + " answers NOT_SERVING"));
  server.SetServing(true);
  EXPECT_EQ(CheckHealth(where, "", kPatience), Status());
  EXPECT_EQ(CheckHealth(where, "muster.v1.Fleet", kPatience).code(), Code::kNotFound);
  server.SetServing(true, "muster.v1.Fleet");
  EXPECT_EQ(CheckHealth(where, "muster.v1.Fleet", kPatience), Status());
  server.SetServing(false);
  EXPECT_EQ(CheckHealth(where, "", kPatience).code(), Code::kFailedPrecondition);
}

TEST(Server, NobodyThereIsUnavailable) {
  Server server(AnyPort());
  ASSERT_TRUE(server.Start().ok());
  const host::Address where = server.address();
  server.Stop();
  const Status status = CheckHealth(where, "", kPatience);
  EXPECT_EQ(status.code(), Code::kUnavailable) << status.ToString();
  EXPECT_TRUE(status.message().starts_with(where.ToString() + " does not answer the health check: "));
}

TEST(Server, ATakenPortIsAnError) {
  Server first(AnyPort());
  ASSERT_TRUE(first.Start().ok());
  Server second({.address = first.address()});
  EXPECT_EQ(second.Start(), Status(Code::kUnavailable, "cannot listen on " + first.address().ToString() +
                                                           ": Address already in use; stop the process that holds it "
                                                           "or choose another port"));
  EXPECT_EQ(CheckHealth(first.address(), "", kPatience).code(), Code::kFailedPrecondition);
}

TEST(Server, StopIsIdempotentAndFreesThePort) {
  Server server(AnyPort());
  server.Stop();
  ASSERT_TRUE(server.Start().ok());
  server.Stop();
  server.Stop();
  server.SetServing(true);  // without a server there is nothing to say
  Server next({.address = server.address()});
  EXPECT_TRUE(next.Start().ok());
}

HealthCheckRequest Of(const std::string& service) {
  HealthCheckRequest request;
  request.set_service(service);
  return request;
}

TEST(Server, AWatcherHearsWhatIsSaidOfItsService) {
  Server server(AnyPort());
  ASSERT_TRUE(server.Start().ok());
  const auto stub = Health::NewStub(ChannelTo(server));
  grpc::ClientContext context;
  SetDeadline(context);
  const auto stream = stub->Watch(&context, Of("muster.v1.Fleet"));
  HealthCheckResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVICE_UNKNOWN);
  server.SetServing(true);  // of the whole server
  server.SetServing(true, "muster.v1.Fleet");
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  server.SetServing(true, "muster.v1.Fleet");  // no news
  server.SetServing(false, "muster.v1.Fleet");
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  context.TryCancel();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST(Server, HealthRefusesANameThatNoServiceHas) {
  Server server(AnyPort());
  ASSERT_TRUE(server.Start().ok());
  const auto stub = Health::NewStub(ChannelTo(server));
  const std::string bound = "service: has 201 bytes, and 200 are allowed";
  HealthCheckResponse response;
  {
    grpc::ClientContext context;
    SetDeadline(context);
    const grpc::Status checked = stub->Check(&context, Of(std::string(201, 'x')), &response);
    EXPECT_EQ(checked.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(checked.error_message(), bound);
  }
  grpc::ClientContext context;
  SetDeadline(context);
  const auto stream = stub->Watch(&context, Of(std::string(201, 'x')));
  EXPECT_FALSE(stream->Read(&response));
  const grpc::Status watched = stream->Finish();
  EXPECT_EQ(watched.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(watched.error_message(), bound);
}

TEST(Server, StopTellsWatchersAndEndsThem) {
  Server server({.address = {"127.0.0.1", 0}, .stop_grace = 60s});
  ASSERT_TRUE(server.Start().ok());
  server.SetServing(true);
  const auto stub = Health::NewStub(ChannelTo(server));
  grpc::ClientContext context;
  SetDeadline(context);
  const auto stream = stub->Watch(&context, HealthCheckRequest());
  HealthCheckResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  const auto start = std::chrono::steady_clock::now();
  std::jthread stopping([&] { server.Stop(); });
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  EXPECT_FALSE(stream->Read(&response));
  const grpc::Status end = stream->Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(end.error_message(), "the server stops");
  stopping.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s) << "a watcher does not use up the grace";
}

TEST(Server, CallsThatDoNotEndAreCancelledAfterTheGrace) {
  Server server({.address = {"127.0.0.1", 0}, .stop_grace = 50ms});
  ASSERT_TRUE(server.Start().ok());
  grpc::GenericStub stub(ChannelTo(server));
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  SetDeadline(context);
  const auto next = [&] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto call =
      stub.PrepareCall(&context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  call->StartCall(nullptr);
  ASSERT_TRUE(next());
  const grpc::Slice list_services(std::string("\x3a\x00", 2));
  call->Write(grpc::ByteBuffer(&list_services, 1), nullptr);
  ASSERT_TRUE(next());
  grpc::ByteBuffer reply;
  call->Read(&reply, nullptr);
  ASSERT_TRUE(next()) << "it is under way";
  server.Stop();
  grpc::Status end;
  call->Finish(&end, nullptr);
  ASSERT_TRUE(next());
  EXPECT_FALSE(end.ok());
  EXPECT_NE(end.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << end.error_message();
}

TEST(Server, AConnectionWithoutACallEnds) {
  Server server({.address = {"127.0.0.1", 0}, .connection_idle = 1s});
  ASSERT_TRUE(server.Start().ok());
  const auto channel = ChannelTo(server);
  const auto deadline = std::chrono::system_clock::now() + std::chrono::seconds(20);
  ASSERT_TRUE(channel->WaitForConnected(deadline));
  EXPECT_TRUE(channel->WaitForStateChange(GRPC_CHANNEL_READY, deadline));
  grpc::ClientContext context;
  SetDeadline(context);
  HealthCheckResponse response;
  EXPECT_TRUE(Health::NewStub(channel)->Check(&context, {}, &response).ok()) << "the next call has another";
}

TEST(Server, ReflectionListsAndDescribesItsServices) {
  Server server(AnyPort());
  ASSERT_TRUE(server.Start().ok());
  grpc::GenericStub stub(ChannelTo(server));
  grpc::CompletionQueue queue;
  const auto next = [&] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  grpc::ClientContext context;
  SetDeadline(context);
  const auto call =
      stub.PrepareCall(&context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  call->StartCall(nullptr);
  ASSERT_TRUE(next());
  // ServerReflectionRequest by hand, since gRPC installs no header for it: field 7 list_services, field 4
  // file_containing_symbol.
  const auto ask = [&](const std::string& bytes) -> std::string {
    const grpc::Slice slice(bytes);
    call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    EXPECT_TRUE(next());
    grpc::ByteBuffer reply;
    call->Read(&reply, nullptr);
    EXPECT_TRUE(next());
    grpc::Slice whole;
    EXPECT_TRUE(reply.DumpToSingleSlice(&whole).ok());
    return {reinterpret_cast<const char*>(whole.begin()), whole.size()};
  };
  EXPECT_NE(ask(std::string("\x3a\x00", 2)).find("grpc.health.v1.Health"), std::string::npos);
  EXPECT_NE(ask("\x22\x15grpc.health.v1.Health").find("HealthCheckRequest"), std::string::npos);
  context.TryCancel();
  grpc::Status status;
  call->Finish(&status, nullptr);
  EXPECT_TRUE(next());
}

}  // namespace
}  // namespace muster::rpc
