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
  fs::create_directory_symlink("../later", root + "/shared/dangling");
  for (const char* const path : {"/shared/dangling", "/shared/dangling/x"}) {
    EXPECT_TRUE(Judge(root + path, allowed).contains("does not let containers mount")) << path;
  }
}

// Engines take a source that begins with a dot for a path, below the directory in which they were started.
TEST(HostPaths, WhatIsNoAbsolutePathIsAName) {
  for (const char* const name : {"data", "Data-1_2.3", "7"}) EXPECT_EQ(Judge(name, {}), name);
  for (const char* const source : {"", ".", "..", "./x", "../x", "../../../..", ".hidden", "-x", "_x", "a/b", "a/../..",
                                   "~/x", "C:", " data", "data\n", "?size_gb=1"}) {
    EXPECT_TRUE(Judge(source, {"/"}).contains("is neither an absolute path nor the name of a volume")) << source;
  }
  EXPECT_EQ(Judge(std::string(200, 'a'), {}), std::string(200, 'a'));
  EXPECT_TRUE(Judge(std::string(201, 'a'), {}).contains("is neither")) << "no directory has so long a name";
}

TEST(HostPaths, OptionsOfAManagedVolumeAreRefusedByName) {
  EXPECT_EQ(Judge("data?retain_policy=Retain", {}), "data") << "volumes stay anyway";
  EXPECT_EQ(Judge("data?driver=nfs&size_gb=10", {}),
            "volumes: \"data\" asks for \"driver=nfs\", which volumes of this node do not have; leave it out");
  EXPECT_TRUE(Judge("data?retain_policy=Retain&size_gb=10", {}).contains("asks for \"size_gb=10\""));
}

}  // namespace
}  // namespace muster::runtime
