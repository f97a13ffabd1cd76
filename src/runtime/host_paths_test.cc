#include "runtime/host_paths.h"

#include <gtest/gtest.h>

#include <string>

#include "host/temp_dir_for_test.h"

namespace muster::runtime {
namespace {

namespace fs = std::filesystem;

std::string Judge(const std::string& source, const std::vector<fs::path>& allowed) {
  std::vector<model::VolumeMount> volumes = {{.source = source, .target = "/data"}};
  const Status status = AllowVolumes(volumes, allowed);
  return status.ok() ? volumes[0].source : status.message();
}

TEST(HostPaths, OnlyWhatIsBelowAnAllowedPathIsMounted) {
  const host::TempDir dir;
  const std::string root = fs::canonical(dir.path()).string();
  fs::create_directories(root + "/shared/a");
  fs::create_directories(root + "/shared-not");
  const std::vector<fs::path> allowed = {root + "/shared/"};
  EXPECT_EQ(Judge(root + "/shared", allowed), root + "/shared");
  EXPECT_EQ(Judge(root + "/shared/a", allowed), root + "/shared/a");
  EXPECT_EQ(Judge(root + "/shared/new/one", allowed), root + "/shared/new/one");
  for (const std::string& source :
       {root, root + "/shared-not", root + "/shared/../shared-not", std::string("/"), std::string("/etc")}) {
    EXPECT_TRUE(Judge(source, allowed).contains("does not let containers mount")) << source;
  }
  EXPECT_TRUE(Judge(root + "/shared", {}).contains("--host-paths")) << "nothing is allowed by default";
}

TEST(HostPaths, ALinkLeadsNowhereElse) {
  const host::TempDir dir;
  const std::string root = fs::canonical(dir.path()).string();
  fs::create_directories(root + "/shared/a");
  fs::create_directory(root + "/secret");
  fs::create_directory_symlink("../secret", root + "/shared/out");
  fs::create_directory_symlink("a", root + "/shared/in");
  const std::vector<fs::path> allowed = {root + "/shared"};
  EXPECT_TRUE(Judge(root + "/shared/out", allowed).contains("does not let containers mount"));
  EXPECT_EQ(Judge(root + "/shared/in", allowed), root + "/shared/a") << "what is mounted is what was judged";
}

TEST(HostPaths, VolumesOfComposeWorkloadsAreTheirOwn) {
  EXPECT_EQ(Judge("data", {}), "data");
  EXPECT_TRUE(Judge("muster-0123456789abcdef-data", {}).contains("belongs to another workload"));
}

}  // namespace
}  // namespace muster::runtime
