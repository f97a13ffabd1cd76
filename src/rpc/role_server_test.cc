#include "rpc/role_server.h"

#include <gtest/gtest.h>

#include "host/http_get_for_test.h"
#include "host/temp_dir_for_test.h"
#include "rpc/health.h"

namespace muster::rpc {
namespace {

using Given = std::vector<std::pair<std::string, std::string>>;

// The options that come of what an operator gives.
Result<RoleServerOptions> Landed(const Given& given) {
  RoleServerOptions options;
  host::Settings settings;
  DeclareServerSettings(settings, options, ":7", ":8");
  for (const auto& [flag, value] : given) EXPECT_EQ(settings.Give(flag, value), Status());
  if (Status landed = settings.Land(); !landed.ok()) return std::unexpected(std::move(landed));
  return options;
}

TEST(RoleServerSettings, Defaults) {
  const auto options = Landed({});
  ASSERT_TRUE(options) << options.error().ToString();
  EXPECT_EQ(options->listen, (host::Address{"127.0.0.1", 7}));
  EXPECT_EQ(options->metrics_addr, (host::Address{"127.0.0.1", 8}));
  EXPECT_FALSE(options->tls.given());
  EXPECT_EQ(options->log_level, log::Level::kInfo);
  EXPECT_TRUE(options->data_dir.empty());
}

TEST(RoleServerSettings, ListeningBeyondThisMachineNeedsTlsOrInsecure) {
  const Given tls = {{"--tls-cert", "c"}, {"--tls-key", "k"}, {"--tls-ca", "a"}};
  const auto with_tls = [&](std::string flag, std::string value) {
    Given given = tls;
    given.emplace_back(std::move(flag), std::move(value));
    return given;
  };
  EXPECT_EQ(Landed({{"--listen", "10.0.0.1:7"}}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(Landed(tls)->listen, (host::Address{"0.0.0.0", 7}));
  EXPECT_EQ(Landed(tls)->tls, (TlsFiles{.cert = "c", .key = "k", .ca = "a", .connection_age = 1h}));
  EXPECT_EQ(Landed(tls)->metrics_addr, (host::Address{"127.0.0.1", 8})) << "HTTP has no TLS";
  EXPECT_EQ(Landed(with_tls("--metrics-addr", "10.0.0.1:8")).error().code(), Code::kInvalidArgument);
  const auto insecure = Landed({{"--insecure", "on"}, {"--listen", "10.0.0.1:7"}});
  ASSERT_TRUE(insecure) << insecure.error().ToString();
  EXPECT_EQ(insecure->listen, (host::Address{"10.0.0.1", 7}));
  EXPECT_EQ(insecure->metrics_addr, (host::Address{"0.0.0.0", 8}));
}

TEST(RoleServerSettings, TheAddressForOperatorsIsOffUnlessGiven) {
  EXPECT_EQ(Landed({})->control_listen, host::Address{});
  EXPECT_EQ(Landed({{"--control-listen", ":9"}})->control_listen, (host::Address{"127.0.0.1", 9}));
  EXPECT_EQ(Landed({{"--control-listen", "10.0.0.1:9"}}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(Landed({{"--control-listen", "10.0.0.1:9"}, {"--insecure", "on"}})->control_listen,
            (host::Address{"10.0.0.1", 9}));
  EXPECT_EQ(
      Landed({{"--control-listen", ":9"}, {"--tls-cert", "c"}, {"--tls-key", "k"}, {"--tls-ca", "a"}})->control_listen,
      (host::Address{"0.0.0.0", 9}));
}

TEST(RoleServerSettings, TlsTakesAllThreeFiles) {
  const auto half = Landed({{"--tls-cert", "c"}});
  ASSERT_FALSE(half);
  EXPECT_TRUE(half.error().message().contains("--tls-key is missing")) << half.error().message();
}

TEST(RoleServer, ServesOperatorsOnAnAddressOfTheirOwn) {
  RoleServer none({.listen = {"127.0.0.1", 0}, .metrics_addr = {"127.0.0.1", 0}});
  EXPECT_EQ(none.control_address(), host::Address{});
  RoleServer server({.listen = {"127.0.0.1", 0}, .control_listen = {"127.0.0.1", 0}, .metrics_addr = {"127.0.0.1", 0}});
  ASSERT_EQ(server.Listen(), Status());
  EXPECT_EQ(CheckHealth(server.control_address(), "", 20s).code(), Code::kFailedPrecondition);
  server.Serve();
  EXPECT_EQ(CheckHealth(server.control_address(), "", 20s), Status());
  EXPECT_NE(server.control_address().port, server.listen_address().port);
  server.StopServing();
  EXPECT_EQ(CheckHealth(server.control_address(), "", 20s).code(), Code::kFailedPrecondition);
}

TEST(RoleServer, IsReadyFromServeToStopServing) {
  const host::TempDir dir;
  const RoleServerOptions options = {
      .listen = {"127.0.0.1", 0}, .metrics_addr = {"127.0.0.1", 0}, .data_dir = dir.path()};
  RoleServer server(options);
  ASSERT_EQ(server.OpenDataDir(), Status());
  EXPECT_EQ(RoleServer(options).OpenDataDir().code(), Code::kFailedPrecondition) << "it has an owner";
  Status part;
  server.SetReadyCheck("part", [&] { return part; });
  ASSERT_EQ(server.Listen(), Status());
  EXPECT_EQ(host::HttpGet(server.metrics_address(), "/readyz"), (host::HttpAnswer{503, "grpc: not started\n"}));
  EXPECT_EQ(CheckHealth(server.listen_address(), "", 20s).code(), Code::kFailedPrecondition);
  server.Serve();
  EXPECT_EQ(host::HttpGet(server.metrics_address(), "/readyz").status, 200);
  EXPECT_EQ(CheckHealth(server.listen_address(), "", 20s), Status());
  part = Status(Code::kUnavailable, "not yet");
  EXPECT_EQ(host::HttpGet(server.metrics_address(), "/readyz"), (host::HttpAnswer{503, "part: not yet\n"}));
  part = {};
  server.StopServing();
  EXPECT_EQ(host::HttpGet(server.metrics_address(), "/readyz"), (host::HttpAnswer{503, "grpc: stopping\n"}));
  server.Stop();
  server.Stop();
  EXPECT_EQ(host::HttpGet(server.metrics_address(), "/livez").status, 0);
  EXPECT_EQ(RoleServer(options).OpenDataDir().code(), Code::kFailedPrecondition) << "until it is closed";
  server.CloseDataDir();
  EXPECT_EQ(RoleServer(options).OpenDataDir(), Status());
}

}  // namespace
}  // namespace muster::rpc
