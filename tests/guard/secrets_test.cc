// A marker in a cluster's bootstrap data goes through a shard and a provider, both with journals, and is in no file of
// either once the machine has joined; nor does replay show it.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "rpc/session_client.h"
#include "shard/fleet.h"

namespace muster::guard {
namespace {

using shard::Eventually;

constexpr const char* kMarker = "join-secret-7c1f0b52";

// A cluster of one need that answers with the marker.
class Teller final : public rpc::SessionHandler {
 public:
  explicit Teller(const std::string& target) {
    client_ = *rpc::OpenSession(
        target, {.cluster_id = "blue", .protocol_version = std::string(contract::kProtocolVersion)}, *this);
    client_->Send(contract::Rollup{
        .cluster_id = "blue", .timestamp = {}, .rows = contract::NeedRows({shard::NeedOf("blue", 2)})});
    answering_ = std::jthread([this](const std::stop_token& stop) {
      std::unique_lock lock(mu_);
      while (wakes_.wait(lock, stop, [this] { return !asked_.empty(); })) {
        const std::string request = asked_.back();
        asked_.pop_back();
        lock.unlock();
        client_->Send(contract::BootstrapResponse{.request_id = request, .user_data = kMarker});
        lock.lock();
      }
    });
  }

 private:
  void Received(contract::ShardMessage message) override {
    const std::lock_guard lock(mu_);
    if (const auto* request = std::get_if<contract::BootstrapRequest>(&message)) asked_.push_back(request->request_id);
    wakes_.notify_all();
  }
  void Unreadable(Status) override {}
  void Ended(Status) override {}

  std::mutex mu_;
  std::condition_variable_any wakes_;
  std::vector<std::string> asked_;  // guarded by mu_
  std::unique_ptr<rpc::SessionClient> client_;
  std::jthread answering_;
};

std::vector<std::string> FilesWith(const std::string& marker, const std::filesystem::path& root) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    if (bytes.contains(marker)) found.push_back(entry.path().string());
  }
  return found;
}

mode_t ModeOf(const std::string& path) {
  struct stat found = {};
  stat(path.c_str(), &found);
  return found.st_mode & 0777U;
}

TEST(Secrets, ABootstrapSecretIsInNoFileAfterItsUse) {
  const shard::Fleet fleet(8);
  std::filesystem::create_directory(fleet.File("provider"));
  chmod(fleet.File("provider").c_str(), 0777);
  provider::Life provider(provider::ProviderCommand(fleet.File("provider"), fleet.File("catalogue.yaml"), 8,
                                                    {"--journal", fleet.File("provider-journal")}));
  ASSERT_TRUE(provider.up()) << provider.process().err();
  EXPECT_EQ(ModeOf(fleet.File("provider")), 0751u) << "others may no longer write there, or look";
  shard::ShardLife shard(fleet.ShardCommand(provider.grpc(), ":0", {"--journal", fleet.File("shard-journal")}));
  ASSERT_TRUE(shard.up()) << shard.process().err();
  {
    const Teller blue(shard.grpc());
    ASSERT_TRUE(Eventually([&] { return shard.Settled(1); }));
    EXPECT_TRUE(Eventually([&] { return std::filesystem::is_empty(fleet.File("provider") + "/secrets"); }));
  }
  shard.process().Signal(SIGTERM);
  EXPECT_EQ(shard.process().Wait(), 0);
  provider.process().Signal(SIGTERM);
  EXPECT_EQ(provider.process().Wait(), 0);
  const std::filesystem::path root = std::filesystem::path(fleet.File("provider")).parent_path();
  EXPECT_EQ(FilesWith(kMarker, root), std::vector<std::string>());
  EXPECT_FALSE(FilesWith("blue", root).empty()) << "the search finds what is there";
  for (const std::string journal : {"shard-journal", "provider-journal"}) {
    smoke::Process replay({smoke::ProgramUnderTest(), "replay", fleet.File(journal), "--verbose"});
    EXPECT_EQ(replay.Wait(), 0) << replay.err();
    EXPECT_FALSE(replay.out().contains(kMarker));
    EXPECT_TRUE(replay.out().contains("secret:")) << "a handle is in its place";
  }
}

}  // namespace
}  // namespace muster::guard
