#include "role/scheduler/stream_table.h"

#include <gtest/gtest.h>

namespace muster::scheduler {
namespace {

class Stream final : public rpc::NodeStream {
 public:
  bool Send(const contract::AgentRequest& command) override {
    if (!open) return false;
    sent.push_back(command);
    return true;
  }
  bool open = true;
  std::vector<contract::AgentRequest> sent;
};

contract::WorkloadStatus Running(const std::string& id) {
  contract::WorkloadStatus status;
  status.workload = id;
  status.actual = contract::ActualState::kRunning;
  return status;
}

Code CodeOf(const Result<contract::AgentReply>& reply) { return reply ? Code::kOk : reply.error().code(); }

TEST(StreamTable, AnswersFromHeartbeatsAndWhatWasSentSince) {
  StreamTable table;
  const auto stream = std::make_shared<Stream>();
  EXPECT_EQ(CodeOf(table.Ask("n", contract::ListOnAgent{})), Code::kUnavailable);
  const auto id = table.Opened("n", stream);
  EXPECT_TRUE(table.Has("n"));
  EXPECT_EQ(CodeOf(table.Ask("n", contract::GetStatusOnAgent{.workload = "a"})), Code::kUnavailable);
  table.Beat(id, {Running("a")});
  EXPECT_EQ(std::get<contract::WorkloadStatus>(*table.Ask("n", contract::GetStatusOnAgent{.workload = "a"})).actual,
            contract::ActualState::kRunning);
  EXPECT_EQ(CodeOf(table.Ask("n", contract::GetStatusOnAgent{.workload = "b"})), Code::kNotFound);

  contract::ApplyOnAgent apply;
  apply.workload = "b";
  apply.revision = "r";
  EXPECT_TRUE(std::get<contract::AppliedOnAgent>(*table.Ask("n", apply)).applied);
  const auto pending = std::get<contract::WorkloadStatus>(*table.Ask("n", contract::GetStatusOnAgent{.workload = "b"}));
  EXPECT_EQ(pending.actual, contract::ActualState::kPending);
  EXPECT_EQ(pending.revision, "r");
  EXPECT_TRUE(std::get<contract::DeletedOnAgent>(*table.Ask("n", contract::DeleteOnAgent{.workload = "a"})).success);
  EXPECT_EQ(stream->sent.size(), 2);
  // Until a heartbeat comes without it, it is there.
  EXPECT_EQ(std::get<contract::ListedOnAgent>(*table.Ask("n", contract::ListOnAgent{})).workloads.size(), 2);
  table.Beat(id, {Running("b")});
  EXPECT_EQ(std::get<contract::ListedOnAgent>(*table.Ask("n", contract::ListOnAgent{})).workloads.size(), 1);
}

TEST(StreamTable, TheLatestStreamOfANodeCounts) {
  StreamTable table;
  const auto first = std::make_shared<Stream>();
  const auto second = std::make_shared<Stream>();
  const auto old = table.Opened("n", first);
  const auto id = table.Opened("n", second);
  table.Closed(old);
  ASSERT_TRUE(table.Has("n"));
  EXPECT_EQ(CodeOf(table.Ask("n", contract::DeleteOnAgent{.workload = "a"})), Code::kOk);
  EXPECT_EQ(second->sent.size(), 1);
  second->open = false;
  EXPECT_EQ(CodeOf(table.Ask("n", contract::DeleteOnAgent{.workload = "a"})), Code::kUnavailable);
  table.Closed(id);
  EXPECT_FALSE(table.Has("n"));
}

}  // namespace
}  // namespace muster::scheduler
