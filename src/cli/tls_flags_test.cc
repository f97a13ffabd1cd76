#include "cli/tls_flags.h"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

TEST(TlsFlags, ListeningBeyondThisMachineNeedsTlsOrInsecure) {
  const TlsFlags plain;
  const TlsFlags tls = {.cert = "c", .key = "k", .ca = "a"};
  const TlsFlags insecure = {.insecure = true};
  EXPECT_EQ(plain.ListenGrpc(":7", "--listen"), (host::Address{"127.0.0.1", 7}));
  EXPECT_EQ(plain.ListenGrpc("10.0.0.1:7", "--listen").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(tls.ListenGrpc(":7", "--listen"), (host::Address{"0.0.0.0", 7}));
  EXPECT_EQ(insecure.ListenGrpc("10.0.0.1:7", "--listen"), (host::Address{"10.0.0.1", 7}));
  EXPECT_EQ(tls.ListenHttp(":7", "--metrics-addr"), (host::Address{"127.0.0.1", 7}));
  EXPECT_EQ(tls.ListenHttp("10.0.0.1:7", "--metrics-addr").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(insecure.ListenHttp(":7", "--metrics-addr"), (host::Address{"0.0.0.0", 7}));
}

TEST(TlsFlags, AllThreeOrNone) {
  EXPECT_FALSE(TlsFlags().Files()->given());
  EXPECT_EQ(*TlsFlags({.cert = "c", .key = "k", .ca = "a"}).Files(), (rpc::TlsFiles{"c", "k", "a"}));
  EXPECT_EQ(TlsFlags({.cert = "c"}).Files().error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace muster::cli
