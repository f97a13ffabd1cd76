// Which uses of a join token get a certificate, on a store in memory and on SQLite.
#include "role/scheduler/enrolment.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <thread>
#include <vector>

#include "host/sqlite_store.h"
#include "host/system_clock.h"
#include "host/temp_dir_for_test.h"
#include "host/thread_schedule.h"
#include "rpc/certificates_for_test.h"
#include "rpc/node_key.h"
#include "store/memory_store.h"

namespace muster::scheduler {
namespace {

constexpr Duration kAnswerWait = 20s;

// A cluster with at most one node.
class Nodes final : public contract::ClusterPort {
 public:
  void Ask(contract::ClusterRequest request, Done done) override {
    const auto& asked = std::get<contract::GetNode>(request);
    const std::lock_guard lock(mu_);
    if (!failure_.ok()) return done(std::unexpected(failure_));
    if (asked.node != node_) return done(Error(Code::kNotFound, "no such node"));
    done(contract::NodeView{.node = node_, .status = status_});
  }
  void Set(std::string node, model::NodeStatus status) {
    const std::lock_guard lock(mu_);
    node_ = std::move(node);
    status_ = status;
  }
  void Fail(Status why) {
    const std::lock_guard lock(mu_);
    failure_ = std::move(why);
  }

 private:
  std::mutex mu_;
  std::string node_;
  model::NodeStatus status_ = model::NodeStatus::kUnknown;
  Status failure_;
};

enum class Kind : uint8_t { kMemory, kSqlite };

class EnrolmentTest : public ::testing::TestWithParam<Kind> {
 protected:
  EnrolmentTest() {
    const rpc::TlsFiles files = ca_.Write(dir_.path(), "join", ca_.SignCa(7200));
    options_ = {.ca = {.cert = files.cert, .key = files.key, .trusted = files.ca}, .cluster = "blue", .prefix = "/p"};
    if (GetParam() == Kind::kMemory) {
      store_ = std::make_unique<store::MemoryStore>(schedule_);
    } else {
      store_ = *host::OpenSqliteStore(dir_.File("store"));
    }
    enrolment_ = Make();
    // Of the key in the request, as a certificate of it says.
    own_key_ = rpc::NodeCa::Read(options_.ca)
                   ->SignNode("blue", {.node = "any", .host = "h", .csr_pem = csr_}, clock_.Read().wall, 1h)
                   ->key_digest;
  }
  ~EnrolmentTest() override {
    enrolment_.reset();
    store_.reset();  // before its schedule
  }
  std::unique_ptr<Enrolment> Make() { return std::make_unique<Enrolment>(options_, *store_, nodes_, clock_); }

  rpc::SignNode Request(const std::string& node, std::optional<rpc::TokenUse> token) const {
    return {.request = {.node = node, .host = "127.0.0.1", .csr_pem = csr_},
            .token = std::move(token),
            .own_key = own_key_};
  }
  rpc::TokenUse Token() {
    const auto made = enrolment_->CreateToken();
    EXPECT_TRUE(made.has_value()) << made.error().message();
    return {.serial = made->token.serial, .expires = made->token.expires};
  }
  static Status Await(Enrolment& enrolment, rpc::SignNode request) {
    auto answer = std::make_shared<std::promise<Result<rpc::SignedNode>>>();
    enrolment.Sign(std::move(request), [answer](auto made) { answer->set_value(std::move(made)); });
    auto future = answer->get_future();
    if (future.wait_for(kAnswerWait) != std::future_status::ready) return {Code::kDeadlineExceeded, "no answer"};
    const auto made = future.get();
    if (!made) return made.error();
    EXPECT_TRUE(made->chain_pem.starts_with("-----BEGIN CERTIFICATE-----"));
    EXPECT_TRUE(made->ca_pem.starts_with("-----BEGIN CERTIFICATE-----"));
    return {};
  }
  Status Sign(const std::string& node, std::optional<rpc::TokenUse> token) {
    return Await(*enrolment_, Request(node, std::move(token)));
  }
  std::vector<store::KeyValue> Rows() {
    std::promise<std::vector<store::KeyValue>> rows;
    store_->Range(contract::KeysUnder("/p/joins/"), 5s, [&](auto reply) { rows.set_value(reply->rows); });
    return rows.get_future().get();
  }

  host::TempDir dir_;
  host::SystemClock clock_;
  rpc::CertificateAuthorityForTest ca_;
  host::ThreadSchedule schedule_;
  EnrolmentOptions options_;
  std::unique_ptr<store::Store> store_;
  Nodes nodes_;
  std::string own_key_;
  const std::string csr_ = *rpc::MakeCertificateRequest(rpc::MakeNodeKey());
  std::unique_ptr<Enrolment> enrolment_;
};

TEST_P(EnrolmentTest, ATokenIsOfTheFirstNodeThatItIsUsedFor) {
  const rpc::TokenUse token = Token();
  EXPECT_EQ(Sign("m-1", token), Status());
  EXPECT_EQ(Sign("m-1", token), Status()) << "a lost answer costs nothing";
  EXPECT_EQ(Sign("m-2", token),
            Status(Code::kPermissionDenied, "the join token was used for node \"m-1\" with another key or name"));
  rpc::SignNode thief = Request("m-1", token);
  thief.request.csr_pem = *rpc::MakeCertificateRequest(rpc::MakeNodeKey());
  EXPECT_EQ(Await(*enrolment_, thief).code(), Code::kPermissionDenied) << "the name alone is not enough";
  EXPECT_EQ(Sign("m-2", Token()), Status()) << "another token is another machine's";
  ASSERT_EQ(Rows().size(), 2u);
  for (const store::KeyValue& row : Rows()) EXPECT_NE(row.lease, 0) << "it goes when the token has expired";
}

TEST_P(EnrolmentTest, AnExpiredTokenIsWorthNothing) {
  rpc::TokenUse token = Token();
  token.expires = clock_.Read().wall;
  EXPECT_EQ(Sign("m-1", token).code(), Code::kPermissionDenied);
  EXPECT_TRUE(Rows().empty());
}

TEST_P(EnrolmentTest, WhatCannotBeSignedBindsNothing) {
  const rpc::TokenUse token = Token();
  rpc::SignNode request = Request("m-1", token);
  request.request.csr_pem = "nonsense";
  EXPECT_EQ(Await(*enrolment_, request).code(), Code::kInvalidArgument);
  EXPECT_TRUE(Rows().empty());
  EXPECT_EQ(Sign("m-2", token), Status());
}

TEST_P(EnrolmentTest, ANodeThatIsThereIsNotReplacedButByItsOwnToken) {
  for (const auto there : {model::NodeStatus::kReady, model::NodeStatus::kDraining}) {
    nodes_.Set("m-1", there);
    EXPECT_EQ(Sign("m-1", Token()).code(), Code::kFailedPrecondition);
  }
  EXPECT_TRUE(Rows().empty()) << "the token is still anybody's";
  nodes_.Set("m-1", model::NodeStatus::kNotReady);
  const rpc::TokenUse token = Token();
  EXPECT_EQ(Sign("m-1", token), Status());
  nodes_.Set("m-1", model::NodeStatus::kReady);
  EXPECT_EQ(Sign("m-1", token), Status()) << "it is bound to it";
  EXPECT_EQ(Sign("m-2", Token()), Status());
}

TEST_P(EnrolmentTest, ANodeRenewsAsLongAsItIsKnown) {
  nodes_.Set("m-1", model::NodeStatus::kReady);
  EXPECT_EQ(Sign("m-1", std::nullopt), Status());
  nodes_.Set("m-1", model::NodeStatus::kNotReady);
  EXPECT_EQ(Sign("m-1", std::nullopt), Status());
  nodes_.Set("", model::NodeStatus::kUnknown);
  EXPECT_EQ(Sign("m-1", std::nullopt).code(), Code::kPermissionDenied) << "it was deleted";
  nodes_.Fail({Code::kUnavailable, "the store was not read yet"});
  EXPECT_EQ(Sign("m-1", std::nullopt).code(), Code::kUnavailable) << "nobody knows";
  EXPECT_EQ(Sign("m-1", Token()).code(), Code::kUnavailable) << "nobody knows";
  EXPECT_TRUE(Rows().empty());
}

TEST_P(EnrolmentTest, ANodeRenewsForTheKeyThatItHas) {
  nodes_.Set("m-1", model::NodeStatus::kReady);
  rpc::SignNode thief = Request("m-1", std::nullopt);
  thief.request.csr_pem = *rpc::MakeCertificateRequest(rpc::MakeNodeKey());
  EXPECT_EQ(Await(*enrolment_, thief),
            Status(Code::kPermissionDenied,
                   "csr_pem: a node renews its certificate with the key that it has, and this is another"));
  thief.own_key.clear();
  EXPECT_EQ(Await(*enrolment_, thief).code(), Code::kPermissionDenied) << "a key that nobody has shown";
  EXPECT_EQ(Sign("m-1", std::nullopt), Status());
}

TEST_P(EnrolmentTest, OfTwoSchedulersAtOnceOneBindsTheToken) {
  const std::unique_ptr<Enrolment> other = Make();
  for (int round = 0; round < 20; ++round) {
    const rpc::TokenUse token = Token();
    std::atomic<int> first = 0;
    std::vector<Status> ends(4);
    std::vector<std::thread> users;
    for (size_t i = 0; i < ends.size(); ++i) {
      users.emplace_back([&, i] {
        while (first < 1) std::this_thread::yield();
        ends[i] = Await(i % 2 == 0 ? *enrolment_ : *other, Request(i < 2 ? "m-1" : "m-2", token));
      });
    }
    first = 1;
    for (std::thread& user : users) user.join();
    // Each node has asked both schedulers, and both of one node were served.
    EXPECT_EQ(ends[0].ok(), ends[1].ok()) << ends[0].message() << ends[1].message();
    EXPECT_EQ(ends[2].ok(), ends[3].ok()) << ends[2].message() << ends[3].message();
    EXPECT_NE(ends[0].ok(), ends[2].ok());
    for (const Status& end : ends) EXPECT_TRUE(end.ok() || end.code() == Code::kPermissionDenied) << end.message();
  }
}

TEST_P(EnrolmentTest, ACaThatIsExchangedIsInUseAtOnce) {
  const auto before = enrolment_->CreateToken();
  static_cast<void>(ca_.Write(dir_.path(), "join", ca_.SignCa(600)));
  const auto after = enrolment_->CreateToken();
  ASSERT_TRUE(before && after);
  EXPECT_GT(before->token.expires, clock_.Read().wall + 50min);
  EXPECT_LT(after->token.expires, clock_.Read().wall + 11min) << "not longer than its CA";
  std::filesystem::remove(options_.ca.key);
  EXPECT_EQ(Sign("m-1", rpc::TokenUse{.serial = "A", .expires = after->token.expires}).code(), Code::kUnavailable);
}

TEST_P(EnrolmentTest, AfterStopNothingIsSigned) {
  const rpc::TokenUse token = Token();
  enrolment_->Stop();
  EXPECT_EQ(Sign("m-1", token).code(), Code::kUnavailable);
  EXPECT_EQ(Sign("m-1", std::nullopt).code(), Code::kUnavailable);
  EXPECT_TRUE(Rows().empty());
}

INSTANTIATE_TEST_SUITE_P(Stores, EnrolmentTest, ::testing::Values(Kind::kMemory, Kind::kSqlite),
                         [](const auto& kind) { return kind.param == Kind::kMemory ? "Memory" : "Sqlite"; });

// A store that answers nothing: a request that is open when the scheduler stops is refused then.
TEST(EnrolmentStop, RefusesWhatIsOpen) {
  const host::TempDir dir;
  rpc::CertificateAuthorityForTest ca;
  const rpc::TlsFiles files = ca.Write(dir.path(), "join", ca.SignCa());
  host::ThreadSchedule schedule;
  store::MemoryStore store(schedule, {.min_delay = 1h, .max_delay = 1h});
  Nodes nodes;
  const host::SystemClock clock;
  Enrolment enrolment({.ca = {.cert = files.cert, .key = files.key, .trusted = files.ca}, .cluster = "blue"}, store,
                      nodes, clock);
  const auto token = enrolment.CreateToken();
  ASSERT_TRUE(token.has_value());
  std::promise<Code> ended;
  enrolment.Sign({.request = {.node = "m-1", .host = "h", .csr_pem = *rpc::MakeCertificateRequest(rpc::MakeNodeKey())},
                  .token = rpc::TokenUse{.serial = token->token.serial, .expires = token->token.expires}},
                 [&](auto made) { ended.set_value(made ? Code::kOk : made.error().code()); });
  enrolment.Stop();
  EXPECT_EQ(ended.get_future().get(), Code::kUnavailable);
}

}  // namespace
}  // namespace muster::scheduler
