#include "role/diagnostic/diagnostic.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <cstdlib>

#include "rpc/health.h"

namespace muster::diagnostic {
namespace {

Options AnyPorts() {
  return {.listen = {"127.0.0.1", 0},
          .metrics_addr = {"127.0.0.1", 0},
          .data_dir = {},
          .build = {.version = "1.2.3", .commit = "abc", .compiler = "", .build_type = "", .faults = false}};
}

TEST(Diagnostic, ServesThenStops) {
  Diagnostic role(AnyPorts());
  ASSERT_EQ(role.Start(), Status());
  httplib::Client http("127.0.0.1", role.metrics_address().port);
  EXPECT_EQ(http.Get("/readyz")->status, 200);
  EXPECT_NE(http.Get("/metrics")->body.find("muster_build_info{commit=\"abc\",version=\"1.2.3\"} 1\n"),
            std::string::npos);
  EXPECT_EQ(rpc::CheckHealth(role.listen_address(), "", 20s), Status());
  role.Stop();
  role.Stop();
  EXPECT_FALSE(http.Get("/livez"));
  EXPECT_EQ(rpc::CheckHealth(role.listen_address(), "", 20s).code(), Code::kUnavailable);
}

TEST(Diagnostic, EachPortInUseFailsTheStart) {
  Diagnostic first(AnyPorts());
  ASSERT_EQ(first.Start(), Status());
  Options same_grpc = AnyPorts();
  same_grpc.listen = first.listen_address();
  EXPECT_EQ(Diagnostic(same_grpc).Start().code(), Code::kUnavailable);
  Options same_http = AnyPorts();
  same_http.metrics_addr = first.metrics_address();
  EXPECT_EQ(Diagnostic(same_http).Start().code(), Code::kUnavailable);
}

TEST(Diagnostic, TheDataDirectoryHasOneOwner) {
  std::string name = (std::filesystem::temp_directory_path() / "muster-XXXXXX").string();
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  Options options = AnyPorts();
  options.data_dir = name;
  Diagnostic first(options);
  ASSERT_EQ(first.Start(), Status());
  EXPECT_EQ(Diagnostic(options).Start().code(), Code::kFailedPrecondition);
  first.Stop();
  EXPECT_EQ(Diagnostic(options).Start(), Status());
  std::filesystem::remove_all(name);
}

}  // namespace
}  // namespace muster::diagnostic
