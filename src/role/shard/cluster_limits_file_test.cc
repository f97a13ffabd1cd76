#include "role/shard/cluster_limits_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <vector>

#include "host/temp_dir_for_test.h"

namespace muster::shard {
namespace {

class ClusterLimitsTest : public ::testing::Test {
 protected:
  // As an editor or a configuration manager does it: another file in its place.
  void Write(const std::string& text) {
    std::ofstream(path_ + ".new") << text;
    std::filesystem::rename(path_ + ".new", path_);
  }
  std::string Refusal(const std::string& text) {
    Write(text);
    const auto read = ReadClusterLimits(path_);
    if (read.has_value()) return "read";
    const std::string message = read.error().message();
    return message.starts_with(path_) ? message.substr(path_.size()) : message;
  }

  const host::TempDir dir_;
  const std::string path_ = dir_.File("limits.yaml");
};

TEST_F(ClusterLimitsTest, AFileSaysWhatEachClusterMayHave) {
  Write(R"(
clusters:
  prod: {highestPriority: 1000, mostMachines: 200, mostPerHour: 120.50}
  batch:
    mostPerHour: $3
  "*": {highestPriority: -5}
)");
  const auto read = ReadClusterLimits(path_);
  ASSERT_TRUE(read.has_value()) << read.error().ToString();
  const contract::Ceilings expected = {
      {"prod", {.highest_priority = 1000, .most_machines = 200, .most_per_hour = model::Money{120'500'000}}},
      {"batch", {.most_per_hour = model::Money{3'000'000}}},
      {"*", {.highest_priority = -5}}};
  EXPECT_EQ(*read, expected);
  Write("clusters: {}\n");
  EXPECT_EQ(ReadClusterLimits(path_), contract::Ceilings{}) << "off";
}

TEST_F(ClusterLimitsTest, ABadFileIsRefusedByLineAndField) {
  EXPECT_EQ(Refusal("clusters:\n  prod: {mostMachines: many}\n"),
            ":2:24: clusters.prod.mostMachines: expected a whole number but found \"many\"");
  EXPECT_EQ(Refusal("clusters:\n  prod: {mostMachines: -1}\n"),
            ":2:24: clusters.prod.mostMachines: must not be negative");
  EXPECT_TRUE(Refusal("clusters:\n  prod: {mostPerHour: -1}\n").starts_with(":2:23: clusters.prod.mostPerHour: "));
  EXPECT_TRUE(Refusal("clusters:\n  prod: {highestPriority: 3000000000}\n")
                  .starts_with(":2:27: clusters.prod.highestPriority: "));
  EXPECT_TRUE(Refusal("clusters:\n  prod: {mostMachine: 1}\n").contains("mostMachines"));
  EXPECT_TRUE(Refusal("clusters:\n  prod: {}\n").contains("clusters.prod: limits nothing"));
  EXPECT_TRUE(Refusal("cluster: {}\n").contains("clusters"));
  EXPECT_NE(Refusal(""), "read");
  EXPECT_NE(Refusal("clusters:\n  a: {mostMachines: 1}\n  a: {mostMachines: 2}\n"), "read");
  std::filesystem::remove(path_);
  EXPECT_EQ(ReadClusterLimits(path_).error().code(), Code::kNotFound);
}

TEST_F(ClusterLimitsTest, AChangeIsReadAndABadOneLeavesTheLast) {
  Write("clusters: {a: {mostMachines: 1}}\n");
  std::mutex mu;
  std::condition_variable said;
  std::vector<contract::Ceilings> changes;
  auto file = ClusterLimitsFile::Open(
      path_,
      [&](contract::Ceilings ceilings) {
        const std::lock_guard lock(mu);
        changes.push_back(std::move(ceilings));
        said.notify_all();
      },
      1ms);
  ASSERT_TRUE(file.has_value()) << file.error().ToString();
  EXPECT_EQ((*file)->first().at("a").most_machines, 1);
  (*file)->Watch();
  const auto wait_for = [&](size_t count) {
    std::unique_lock lock(mu);
    return said.wait_for(lock, 10s, [&] { return changes.size() >= count; });
  };
  Write("clusters: {a: {mostMachines: 22}}\n");
  ASSERT_TRUE(wait_for(1));
  Write("clusters: {a: {mostMachines: no}}\n");
  Write("clusters: {a: {mostMachines: 333}}\n");
  ASSERT_TRUE(wait_for(2));
  EXPECT_EQ(changes[1].at("a").most_machines, 333);
  file->reset();
  EXPECT_EQ(changes.size(), 2u);
  EXPECT_FALSE(ClusterLimitsFile::Open(dir_.File("none.yaml"), [](contract::Ceilings) {}).has_value());
}

}  // namespace
}  // namespace muster::shard
