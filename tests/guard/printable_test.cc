// Names, reasons and errors of a hostile cluster and a hostile provider, as every verb that shows them prints them: no
// byte reaches the terminal that would steer it.
#include <gtest/gtest.h>

#include <fstream>

#include "guard/hostile.h"
#include "shard/peers.h"

namespace muster::guard {
namespace {

using shard::Eventually;
using shard::Speaker;

// ESC, newline, carriage return, BEL, DEL, C1 (CSI), a line separator and the turns of direction.
const std::string kNasty =
    "\x1b[2J\n\r\a\x7f\xc2\x9b"
    "31m\xe2\x80\xa8\xe2\x80\xae\xe2\x81\xa6";

// The first character that must not be there; empty: none. Lines and their ends are the table's own.
std::string Steering(const std::string& text) {
  for (const char* part : {"\x1b", "\r", "\a", "\x7f", "\xc2\x9b", "\xe2\x80\xa8", "\xe2\x80\xae", "\xe2\x81\xa6"}) {
    if (text.contains(part)) return fmt::format("{:02x}", fmt::join(std::string(part), " "));
  }
  return {};
}

class Printable : public shard::PeersTest {
 protected:
  std::string Output(std::vector<std::string> words) {
    words.insert(words.begin(), smoke::ProgramUnderTest());
    smoke::Process process(words);
    process.Wait();
    return process.out() + process.err();
  }
};

TEST_F(Printable, WhatPeersSayIsShownAndNotSent) {
  ASSERT_TRUE(provider_.up());
  shard::Peer peer(provider_.grpc());
  peer.spoil = [](shard::pb::MachineList& list) {
    if (list.machines_size() == 0) return;
    shard::pb::Machine& machine = *list.mutable_machines(0);
    machine.set_id("machine" + kNasty);
    machine.set_zone("zone" + kNasty);
    machine.set_instance_type("type" + kNasty);
    (*machine.mutable_labels())["label" + kNasty] = kNasty;
    machine.set_state(shard::pb::MACHINE_STATE_FAILED);
    machine.set_last_error("error" + kNasty);
    machine.mutable_host()->set_provider("p" + kNasty);
    machine.mutable_host()->set_ref("r" + kNasty);
  };
  StartShard(peer.target());
  const std::string cluster = "blue" + kNasty;
  Speaker blue(shard_->grpc(), cluster);
  blue.Say(2, 64, [](shard::pb::ClusterCapacityNeeds& rollup) {
    for (shard::pb::CapacityNeed& need : *rollup.mutable_needs()) {
      need.set_group("group" + kNasty);
      shard::pb::NodeSelectorRequirement& requirement = *need.add_requirements();
      requirement.set_key("key" + kNasty);
      requirement.set_operator_(shard::pb::NodeSelectorRequirement::OPERATOR_IN);
      requirement.add_values("value" + kNasty);
      (*need.mutable_aggregate_resources())["resource" + kNasty] = "1";
    }
  });
  Speaker refused(shard_->grpc(), "red" + kNasty);
  refused.Say(1, 1, [](shard::pb::ClusterCapacityNeeds& rollup) {
    (*rollup.mutable_needs(0)->mutable_min_unit())["bad" + kNasty] = "no number" + kNasty;
  });
  ASSERT_TRUE(Eventually([&] {
    const auto needs = shard_->Needs();
    const auto clusters = shard_->Ask<contract::ClustersListed>(contract::ListClusters{});
    return needs && needs->needs.size() == 2 && clusters && clusters->clusters.size() == 2;
  }));
  const std::string at = shard_->grpc();
  const std::vector<std::vector<std::string>> verbs = {
      {"fleet", "machines", "--shard", at},
      {"fleet", "needs", "--shard", at},
      {"fleet", "shortfalls", "--shard", at},
      {"fleet", "clusters", "--shard", at},
      {"fleet", "actions", "--shard", at},
      {"fleet", "pause", "--shard", at, "--cluster", cluster, "--reason", "why" + kNasty},
      {"fleet", "repair", "machine" + kNasty, "--shard", at},
      {"fleet", "forget", "machine" + kNasty, "--shard", at},
      {"fleet", "recall", "machine" + kNasty, "--shard", at},
      {"explain", "machine", "machine" + kNasty, "--shard", at},
      {"explain", "need", cluster, "--shard", at},
      {"explain", "cluster", cluster, "--shard", at},
  };
  bool named = false;
  for (const std::vector<std::string>& verb : verbs) {
    const std::string shown = Output(verb);
    EXPECT_EQ(Steering(shown), "") << fmt::format("muster {} {}:\n", verb[0], verb[1]) << shown;
    named = named || shown.contains("\\x1b");
  }
  EXPECT_TRUE(named) << "the names were shown";
  EXPECT_EQ(Steering(shard_->process().err()), "") << "the log";
}

}  // namespace
}  // namespace muster::guard
