#include "host/ops_server.h"

#include <gtest/gtest.h>

#include <vector>

#include "host/http_get_for_test.h"
#include "host/metrics_backend.h"

namespace muster::host {
namespace {

const BuildInfo kBuild = {
    .version = "1.2.3", .commit = "abc", .compiler = "GNU 12", .build_type = "Debug", .faults = true};

class OpsServerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.Start().ok());
    ASSERT_NE(server_.address().port, 0);
  }
  httplib::Client Client() const { return httplib::Client("127.0.0.1", server_.address().port); }
  std::string Get(const char* path, int want_status) const {
    const HttpAnswer answer = HttpGet(server_.address(), path);
    EXPECT_EQ(answer.status, want_status) << path;
    return answer.body;
  }

  PrometheusRegistry registry_;
  OpsServer server_{{"127.0.0.1", 0}, kBuild, registry_};
};

TEST_F(OpsServerTest, AnswersEveryPath) {
  registry_.AddCounter("calls_total", "Calls.", {}).Add(3);
  EXPECT_EQ(Get("/livez", 200), "ok\n");
  EXPECT_EQ(Get("/readyz", 200), "ok\n");
  EXPECT_EQ(Get("/metrics", 200), "# HELP calls_total Calls.\n# TYPE calls_total counter\ncalls_total 3\n");
  EXPECT_EQ(Get("/version", 200),
            R"({"version":"1.2.3","commit":"abc","compiler":"GNU 12","build_type":"Debug","faults":true})"
            "\n");
  EXPECT_EQ(Get("/", 404), "not found; GET one of /livez /readyz /metrics /version\n");
  EXPECT_EQ(Client().Get("/metrics")->get_header_value("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(Client().Post("/livez", "x", "text/plain")->status, 404);
}

TEST_F(OpsServerTest, ReadyNamesEveryCheckThatFails) {
  server_.SetReadyCheck("store", [] { return Status(Code::kUnavailable, "disk is full"); });
  server_.SetReadyCheck("loop", [] { return Status(); });
  server_.SetReadyCheck("provider", [] { return Status(Code::kUnavailable, "no List yet"); });
  EXPECT_EQ(Get("/readyz", 503), "provider: no List yet\nstore: disk is full\n");
  EXPECT_EQ(Get("/livez", 200), "ok\n");
  server_.SetReadyCheck("store", [] { return Status(); });
  server_.SetReadyCheck("provider", [] { return Status(); });
  EXPECT_EQ(Get("/readyz", 200), "ok\n");
}

TEST_F(OpsServerTest, IdleConnectionsDoNotStarveIt) {
  std::vector<std::unique_ptr<httplib::Client>> idle;
  for (int i = 0; i < 16; ++i) {
    idle.push_back(std::make_unique<httplib::Client>("127.0.0.1", server_.address().port));
    idle.back()->set_keep_alive(true);
    ASSERT_TRUE(idle.back()->Get("/livez"));
  }
  EXPECT_EQ(Get("/livez", 200), "ok\n");
}

TEST_F(OpsServerTest, ATakenPortIsAnError) {
  OpsServer second(server_.address(), kBuild, registry_);
  const Status status = second.Start();
  EXPECT_EQ(status.message(), "cannot listen on " + server_.address().ToString() +
                                  ": Address already in use; stop the process that holds it or choose another port");
}

TEST_F(OpsServerTest, StopIsIdempotentAndFreesThePort) {
  const Address where = server_.address();
  server_.Stop();
  server_.Stop();
  EXPECT_EQ(HttpGet(where, "/livez").status, 0);
  OpsServer next(where, kBuild, registry_);
  EXPECT_TRUE(next.Start().ok());
}

TEST(OpsServer, StopWithoutStartAndRightAfterIt) {
  const PrometheusRegistry registry;
  OpsServer never({"127.0.0.1", 0}, kBuild, registry);
  never.Stop();
  for (int i = 0; i < 20; ++i) {
    OpsServer brief({"127.0.0.1", 0}, kBuild, registry);
    ASSERT_TRUE(brief.Start().ok());
  }
}

TEST(OpsServer, Ipv6Loopback) {
  const PrometheusRegistry registry;
  OpsServer server({"::1", 0}, kBuild, registry);
  if (const Status status = server.Start(); !status.ok()) {
    EXPECT_NE(status.message().find("[::1]:0"), std::string::npos) << "a machine without IPv6 gets a clear error";
    return;
  }
  EXPECT_EQ(HttpGet(server.address(), "/livez"), (HttpAnswer{200, "ok\n"}));
}

}  // namespace
}  // namespace muster::host
