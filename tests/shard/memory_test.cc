// A running `muster shard` whose clusters ask for something else all the time: profiles, groups and names that were
// never asked for before, each roll-up in place of the one before. Its memory does not grow with what it has heard.
//
// MUSTER_PROFILES says how many profiles come in all, 40,000 unless given; 1,000,000 is the campaign of
// docs/development.md.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "shard/peers.h"

namespace muster::shard {
namespace {

constexpr int kBatch = 1000;     // profiles of one roll-up
constexpr int kWarmUp = 15;      // roll-ups until tables and buffers have their size; a tenth of a long run
constexpr double kSlack = 16;    // MiB; keeping the 25,000 profiles that are sent at least after that takes far more
constexpr int kSampleEvery = 5;  // roll-ups

int Profiles() {
  const char* asked = std::getenv("MUSTER_PROFILES");
  return asked != nullptr ? std::stoi(asked) : 40'000;
}

double ResidentMiB(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/statm", pid));
  double pages = 0;
  file >> pages >> pages;
  return pages * 4 / 1024;
}

// Rows that no roll-up had before: most match nothing, some match every machine, some are gangs.
void MakeFresh(pb::ClusterCapacityNeeds& rollup, int first) {
  for (int row = 0; row < rollup.needs_size(); ++row) {
    pb::CapacityNeed& need = *rollup.mutable_needs(row);
    need.set_priority(5);
    pb::NodeSelectorRequirement& app = *need.add_requirements();
    app.set_key("example.com/app");
    app.set_operator_(row % 10 == 1 ? pb::NodeSelectorRequirement::OPERATOR_NOT_IN
                                    : pb::NodeSelectorRequirement::OPERATOR_IN);
    app.add_values(fmt::format("app-{}", first + row));
    if (row % 10 == 0) {
      pb::NodeSelectorRequirement& rack = *need.add_requirements();
      rack.set_key("example.com/rack");
      rack.set_operator_(pb::NodeSelectorRequirement::OPERATOR_SAME);
      need.set_group(fmt::format("gang-{}", first + row));
    }
  }
}

using Memory = PeersTest;

TEST_F(Memory, DoesNotGrowWithTheProfilesThatWereEverAskedFor) {
  ASSERT_TRUE(provider_.up());
  StartShard(provider_.grpc());
  if (HasFatalFailure()) return;
  Speaker blue(shard_->grpc(), "blue");
  std::vector<double> samples;
  const int batches = Profiles() / kBatch;
  ASSERT_GT(batches, 2 * kWarmUp);
  for (int batch = 0; batch < batches; ++batch) {
    blue.Say(kBatch, 1, [&](pb::ClusterCapacityNeeds& rollup) { MakeFresh(rollup, batch * kBatch); });
    ASSERT_TRUE(Eventually([&] { return blue.acknowledged() == batch + 1; })) << "roll-up " << batch;
    if (batch % kSampleEvery != 0) continue;
    ASSERT_TRUE(shard_->Needs().has_value()) << "it decides about them";
    if (batch < std::max(kWarmUp, batches / 10)) continue;
    samples.push_back(ResidentMiB(shard_->process().pid()));
    if (batch % std::max(kSampleEvery, batches / 20) == 0)
      std::cout << fmt::format("{} profiles: {:.1f} MiB\n", (batch + 1) * kBatch, samples.back());
  }
  std::cout << fmt::format("first {:.1f} MiB, last {:.1f} MiB, most {:.1f} MiB\n", samples.front(), samples.back(),
                           *std::ranges::max_element(samples));
  EXPECT_LT(samples.back(), samples.front() + kSlack);
}

}  // namespace
}  // namespace muster::shard
