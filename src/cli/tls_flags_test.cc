#include "cli/tls_flags.h"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

TEST(TlsFlags, AllThreeOrNone) {
  EXPECT_FALSE(TlsFlags().Files()->given());
  EXPECT_EQ(*TlsFlags({.cert = "c", .key = "k", .ca = "a"}).Files(), (rpc::TlsFiles{"c", "k", "a"}));
  EXPECT_EQ(TlsFlags({.cert = "c"}).Files().error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace muster::cli
