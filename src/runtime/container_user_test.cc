#include "runtime/container_user.h"

#include <gtest/gtest.h>

#include "runtime/process_launch.h"

namespace muster::runtime {
namespace {

TEST(ContainerUser, IsTheTenantsUnlessTheImageHasANumber) {
  constexpr uid_t kTenant = 2'100'000'007;
  for (const char* const image : {"", "0", "00", "0:0", "0:1000", ":", ":1000", "root", "root:root", "toor", "postgres",
                                  "-1", "+5", "0x10", "1000x", " 1000", "4294967296", "2100000007", "4294967295"}) {
    EXPECT_EQ(UserOfContainer(image, kTenant), "2100000007:2100000007") << image;
  }
  for (const char* const image : {"1000:1000", "1:999999999"}) EXPECT_EQ(UserOfContainer(image, kTenant), image);
  // No group of root or of another tenant, and none that the image's own files name.
  for (const char* const group : {"", ":", ":0", ":00", ":nginx", ":2100000008", ":1000:1000"}) {
    EXPECT_EQ(UserOfContainer(std::string("1001") + group, kTenant), "1001:2100000007") << group;
  }
}

TEST(ContainerUser, OfATenantIsItsOwn) {
  const uid_t shop = TenantUser("agent", "shop");
  EXPECT_EQ(shop, TenantUser("agent", "shop"));
  EXPECT_NE(shop, TenantUser("agent", "bank"));
  EXPECT_NE(shop, TenantUser("other", "shop")) << "agents of one host do not share users";
  for (const char* const tenant : {"", "shop", "bank"}) {
    EXPECT_GE(TenantUser("agent", tenant), kFirstOwnUser + kOwnUsers) << "no process workload has it";
    EXPECT_LT(TenantUser("agent", tenant), uint32_t{1} << 31) << "no engine takes more";
  }
}

TEST(ContainerUser, IsReadFromText) {
  EXPECT_EQ(ParseContainerUser("tenant"), ContainerUser::kTenant);
  EXPECT_EQ(ParseContainerUser("image"), ContainerUser::kImage);
  EXPECT_EQ(ParseContainerUser("root").error().message(), "\"root\" is neither tenant nor image");
}

}  // namespace
}  // namespace muster::runtime
