// Names, reasons and errors of a hostile cluster and a hostile provider, as every verb that shows them prints them: no
// byte reaches the terminal that would steer it.
#include <gtest/gtest.h>

#include <fstream>

#include "guard/hostile.h"
#include "host/sqlite_store.h"
#include "shard/peers.h"

namespace muster::guard {
namespace {

using shard::Eventually;
using shard::Speaker;

// ESC, newline, carriage return, BEL, DEL, C1 (CSI), a line separator and the turns of direction.
const std::string kNasty =
    "\x1b[2J\n!\r\a\x7f\xc2\x9b"
    "31m\xe2\x80\xa8\xe2\x80\xae\xe2\x81\xa6";
// On the command line also a C1 character of eight bits, which no message can carry.
const std::string kNastyWord = kNasty + "m\x9b";

// The first character that must not be there; empty: none. No line of ours begins with the mark that follows the
// newline above.
std::string Steering(const std::string& text) {
  for (const char* part :
       {"\x1b", "\n!", "\r", "\a", "\x7f", "\xc2\x9b", "m\x9b", "\xe2\x80\xa8", "\xe2\x80\xae", "\xe2\x81\xa6"}) {
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
    if (list.machines_size() < 3) return;
    // Whom a machine serves is the provider's word too. The last cannot be read, and its name is in the refusal.
    list.mutable_machines(1)->set_cluster("white" + kNasty);
    list.mutable_machines(1)->set_state(shard::pb::MACHINE_STATE_CONFIGURED);
    list.mutable_machines(1)->mutable_host()->set_provider("p");
    list.mutable_machines(1)->mutable_host()->set_ref("white");
    list.mutable_machines(2)->set_id("bad" + kNasty);
    list.mutable_machines(2)->set_interruption_probability(7);
  };
  StartShard(peer.target());
  const std::string cluster = "white" + kNasty;
  Speaker black(shard_->grpc(), "black" + kNasty);
  Speaker blue(shard_->grpc(), "blue");
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
  Speaker refused(shard_->grpc(), "red");
  refused.Say(1, 1, [](shard::pb::ClusterCapacityNeeds& rollup) {
    (*rollup.mutable_needs(0)->mutable_min_unit())["bad" + kNasty] = "no number" + kNasty;
  });
  ASSERT_TRUE(Eventually([&] {
    const auto needs = shard_->Needs();
    const auto clusters = shard_->Ask<contract::ClustersListed>(contract::ListClusters{});
    return needs && needs->needs.size() == 2 && clusters && clusters->clusters.size() == 4;
  }));
  const std::string at = shard_->grpc();
  const std::string machine = "machine" + kNasty;
  std::vector<std::vector<std::string>> verbs = {
      {"fleet", "pause", "--cluster", cluster, "--reason", "why" + kNasty},
      {"fleet", "resume", "--cluster", cluster, "--reason", "why" + kNasty},
      {"fleet", "accept", "--cluster", cluster, "--reason", "why" + kNasty},
      {"fleet", "repair", machine},
      {"fleet", "forget", machine},
      {"fleet", "machines", "--forgotten"},
      {"fleet", "machines", "--forgotten", "-o", "json"},
      {"fleet", "recall", machine},
      {"fleet", "recall", "machine" + kNastyWord},
      {"fleet", "decommission", cluster},
      {"fleet", "decommission", "cluster" + kNastyWord},
      {"explain", "machine", machine},
      {"explain", "machine", "machine" + kNastyWord},
      {"explain", "need", cluster},
      {"explain", "need", "--cluster", "blue", "p=" + kNastyWord},
      {"explain", "cluster", cluster},
  };
  for (const std::string verb : {"machines", "needs", "shortfalls", "clusters", "actions"}) {
    for (const std::string output : {"table", "wide", "json"}) verbs.push_back({"fleet", verb, "-o", output});
  }
  for (std::vector<std::string>& verb : verbs) verb.insert(verb.end(), {"--shard", at});
  for (const std::string output : {"table", "wide", "json"}) {
    verbs.push_back({"fleet", "machines", "--provider", peer.target(), "-o", output});
  }
  bool named = false;
  for (const std::vector<std::string>& verb : verbs) {
    const std::string shown = Output(verb);
    EXPECT_EQ(Steering(shown), "") << fmt::format("muster {} {}:\n", verb[0], verb[1]) << shown;
    named = named || shown.contains("\\x1b");
  }
  EXPECT_TRUE(named) << "the names were shown";
  const std::string rejected = Output({"fleet", "machines", "--provider", peer.target()});
  EXPECT_TRUE(rejected.contains("not shown: bad\\x1b[2J")) << rejected;
  EXPECT_EQ(Steering(shard_->process().err()), "") << "the log";
}

// A shard that says what it likes, and ends the session.
class HostileShard final : public shard::pb::Shard::Service {
 public:
  HostileShard() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~HostileShard() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string target() const { return fmt::format("127.0.0.1:{}", port_); }

 private:
  grpc::Status Session(grpc::ServerContext*,
                       grpc::ServerReaderWriter<shard::pb::ShardMessage, shard::pb::OperatorMessage>* stream) override {
    shard::pb::ShardMessage ack;
    ack.mutable_ack()->set_echo("echo" + kNasty);
    stream->Write(ack);
    shard::pb::ShardMessage update;
    shard::pb::NodeStateUpdate& node = *update.mutable_node_state_update();
    node.set_supersedes_key("node:" + kNasty);
    node.set_machine_id("machine" + kNasty);
    node.set_cluster_id("blue");
    node.set_state(shard::pb::MACHINE_STATE_FAILED);
    node.set_last_error("error" + kNasty);
    stream->Write(update);
    shard::pb::ShardMessage reclaim;
    reclaim.mutable_reclaim_instruction()->set_instruction_id("i");
    reclaim.mutable_reclaim_instruction()->add_nodes("node" + kNasty);
    reclaim.mutable_reclaim_instruction()->set_grace_period_seconds(1);
    stream->Write(reclaim);
    return {grpc::StatusCode::FAILED_PRECONDITION, "the end" + kNasty};
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(Printable, WhatAShardSaysToAClusterIsShownAndNotSent) {
  const HostileShard shard;
  const std::string needs = fleet_.File("needs.yaml");
  std::ofstream(needs) << "[{priority: 1, aggregate: {cpu: 1}, minUnit: {cpu: 1}}]\n";
  const std::string shown = Output({"rollup", "-f", needs, "--cluster", "blue", "--shard", shard.target()});
  EXPECT_EQ(Steering(shown), "") << shown;
  for (const char* part :
       {"acknowledged echo\\x1b", "machine machine\\x1b", "error\\x1b", "give up node\\x1b", "the end\\x1b"}) {
    EXPECT_TRUE(shown.contains(part)) << part << "\n" << shown;
  }
}

TEST_F(Printable, WhatIsInAStoreIsShownAndNotSent) {
  const std::string directory = fleet_.File("store");
  const std::string key = "/workloads/web" + kNastyWord;
  ASSERT_EQ(
      host::CreateSqliteStore(directory, {{.key = key, .value = "value" + kNastyWord, .created = 1, .modified = 1}}, 7),
      Status());
  const std::string at = "sqlite:" + directory;
  for (const std::string output : {"text", "json"}) {
    for (const std::vector<std::string>& verb :
         std::vector<std::vector<std::string>>{{"store", "list"},
                                               {"store", "list", "--keys-only"},
                                               {"store", "list", "--prefix", "/workloads/"},
                                               {"store", "get", "none" + kNastyWord}}) {
      std::vector<std::string> words = verb;
      words.insert(words.end(), {"-o", output, "--store", at});
      const std::string shown = Output(words);
      EXPECT_EQ(Steering(shown), "") << verb[1] << " -o " << output << "\n" << shown;
      EXPECT_TRUE(shown.contains("\\x1b") || shown.contains("\\u001b") || output == "json") << shown;
    }
  }
  // Its lines are the value's own.
  const std::string value = Output({"store", "get", key, "--store", at});
  EXPECT_TRUE(value.starts_with("value\\x1b[2J\n!\\x0d")) << value;
}

TEST_F(Printable, WhatAProviderRefusesWithIsShownByConformanceAndNotSent) {
  ASSERT_TRUE(provider_.up());
  shard::Peer peer(provider_.grpc());
  peer.habit = [] { return grpc::Status(grpc::StatusCode::INTERNAL, "broken" + kNasty); };
  for (const std::string output : {"text", "json"}) {
    const std::string shown = Output({"conformance", "provider", peer.target(), "-o", output});
    EXPECT_EQ(Steering(shown), "") << shown;
  }
}

}  // namespace
}  // namespace muster::guard
