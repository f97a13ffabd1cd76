// LocalBackend with a program in muster's place: a script that plays the agent, and ends or says what the test wants.
#include "provider/local_backend.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "host/system_clock.h"
#include "host/temp_dir_for_test.h"

namespace muster::provider {
namespace {

using contract::OperationKind;

// Builtins alone: a fork would have the command line of the agent for a moment. What it reads and writes beside its
// data directory:
//   starts, retires  a line for each
//   says             how many workloads the agent says it has; it says nothing before the file is there
//   breaks           there: the agent ends at once
//   deaf             there: SIGTERM is ignored
//   code             what the program that retires ends with; 0 without it
constexpr std::string_view kScript = R"(#!/bin/bash
for word; do
  [ "$last" = --data-dir ] && data=$word
  [ "$word" = --retire ] && retire=yes
  last=$word
done
machine=${data%/agent}
if [ -n "$retire" ]; then
  echo x >> "$machine/retires"
  code=0
  [ -e "$machine/code" ] && read -r code < "$machine/code"
  [ "$code" = 0 ] || echo "web-0 does not end"
  exit "$code"
fi
echo x >> "$machine/starts"
if [ -e "$machine/breaks" ]; then
  echo "--colour is not known"
  exit 2
fi
if [ -e "$machine/deaf" ]; then trap '' TERM; else trap 'exit 0' TERM; fi
while :; do
  if [ -e "$machine/says" ]; then
    read -r says < "$machine/says"
    [ "$says" = "$said" ] || printf 'pid %s\njoined 1\nworkloads %s\n' "$$" "$says" > "$data/agent.status"
    said=$says
  fi
  read -r -t 0.01 <> "$machine/pipe"
done
)";

class LocalMachine : public testing::Test {
 protected:
  LocalMachine() {
    std::ofstream(dir_.File("muster")) << kScript;
    std::filesystem::permissions(dir_.File("muster"), std::filesystem::perms::owner_all);
    backend_ = Open(dir_.path() + "/machines");
    slot_ = backend_->Slots().at(0).machine;
    machine_ = dir_.path() + "/machines/" + slot_.id;
    std::filesystem::create_directories(machine_ + "/agent");
    EXPECT_EQ(mkfifo((machine_ + "/pipe").c_str(), 0600), 0);
  }
  ~LocalMachine() override {
    for (const pid_t pid : Agents()) kill(pid, SIGKILL);
    EXPECT_TRUE(Eventually([this] { return Agents().empty(); }));
  }

  std::unique_ptr<LocalBackend> Open(const std::string& root) const {
    return std::make_unique<LocalBackend>(
        DefaultCatalogue(),
        LocalBackendOptions{
            .machines = 1, .root = root, .program = dir_.File("muster"), .agent_stop_patience = patience_});
  }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(machine_ + "/" + name + ".new") << text << "\n";
    std::filesystem::rename(machine_ + "/" + name + ".new", machine_ + "/" + name);
  }
  size_t Lines(const std::string& name) const {
    std::ifstream file(machine_ + "/" + name);
    size_t count = 0;
    for (std::string line; std::getline(file, line);) ++count;
    return count;
  }
  // Processes that play the agent.
  std::vector<pid_t> Agents() const {
    std::vector<pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "cmdline", std::ios::binary);
      std::ostringstream text;
      text << file.rdbuf();  // a process may end meanwhile
      const std::string line = text.str();
      if (line.contains(dir_.File("muster"))) found.push_back(std::atoi(entry.path().filename().c_str()));
    }
    return found;
  }
  bool Eventually(const std::function<bool()>& holds) const {
    for (const MonoTime end = real_.Read().mono + 60s; real_.Read().mono < end; std::this_thread::yield()) {
      if (holds()) return true;
    }
    return false;
  }

  void Start(OperationKind kind, Duration grace = {}) {
    backend_->Start(1,
                    {.id = "op-" + std::to_string(++operations_),
                     .kind = kind,
                     .machine = contract::MachineRecord(slot_),
                     .bootstrap_blob = "scheduler: nowhere\n",
                     .grace = grace},
                    clock_.Read());
  }
  // Looks once, after `later`. What has ended is in ended_.
  void Poll(Duration later = 100ms) {
    clock_.Advance(later);
    backend_->Poll(clock_.Read(), reports_);
    for (const Report& report : reports_) ended_.push_back(std::get<OperationEnded>(report).status);
    reports_.clear();
  }
  // Looks again and again, ten times as fast as time goes: what is started needs real time to come up.
  bool LooksUntil(const std::function<bool()>& holds) {
    MonoTime last = real_.Read().mono;
    return Eventually([&] {
      const MonoTime now = real_.Read().mono;
      Poll(10 * (now - std::exchange(last, now)));
      return holds();
    });
  }
  bool EndsAfterLooks() {
    return LooksUntil([this, before = ended_.size()] { return ended_.size() > before; });
  }
  // The machine serves, with so many workloads.
  void Configure(const std::string& workloads) {
    Write("says", workloads);
    Start(OperationKind::kConfigure);
    ASSERT_TRUE(EndsAfterLooks());
    ASSERT_TRUE(ended_.back().ok()) << ended_.back().ToString();
    ASSERT_EQ(Lines("starts"), 1U);
  }
  bool HasData() const { return std::filesystem::exists(machine_ + "/agent"); }

  const host::TempDir dir_;
  const host::SystemClock real_;
  Duration patience_ = 15s;
  VirtualClock clock_;
  std::unique_ptr<LocalBackend> backend_;
  model::Machine slot_;
  std::string machine_;  // its directory
  int operations_ = 0;
  std::vector<Report> reports_;
  std::vector<Status> ended_;
};

TEST_F(LocalMachine, ADrainWaitsForAnAgentThatHasNotSaidWhatItRuns) {
  Configure("2");
  std::filesystem::remove(machine_ + "/says");
  for (const pid_t pid : Agents()) kill(pid, SIGKILL);
  ASSERT_TRUE(Eventually([this] { return Agents().empty(); }));
  Start(OperationKind::kDrain, 1h);
  Poll(2s);
  ASSERT_TRUE(Eventually([this] { return Lines("starts") == 2; })) << "it is started: it is to stop what it runs";
  for (int i = 0; i < 50; ++i) Poll();
  Write("says", "1");
  EXPECT_TRUE(Eventually([this] { return Lines("agent/agent.status") == 3; })) << "it was told to end";
  for (int i = 0; i < 50; ++i) Poll();
  EXPECT_TRUE(ended_.size() == 1 && HasData()) << "one is left";
  EXPECT_EQ(Lines("starts"), 2U);
  EXPECT_EQ(Lines("retires"), 0U);
  Write("says", "0");
  ASSERT_TRUE(EndsAfterLooks());
  EXPECT_TRUE(ended_.back().ok());
  EXPECT_EQ(Lines("retires"), 1U);
  EXPECT_FALSE(HasData());
}

TEST_F(LocalMachine, ADrainEndsWhatIsLeftWhenItsGraceIsOver) {
  Configure("2");
  Start(OperationKind::kDrain, 10s);
  Poll(9s);
  EXPECT_EQ(Agents().size(), 1U);
  EXPECT_EQ(Lines("retires"), 0U);
  Poll(2s);
  ASSERT_TRUE(EndsAfterLooks());
  EXPECT_TRUE(ended_.back().ok());
  EXPECT_EQ(Lines("retires"), 1U);
  EXPECT_FALSE(HasData());
}

TEST_F(LocalMachine, ADrainOfAnAgentThatNeverJoinedWaitsForNothing) {
  Start(OperationKind::kConfigure);
  Poll();
  ASSERT_TRUE(Eventually([this] { return Lines("starts") == 1; }));
  Start(OperationKind::kDrain, 1h);
  ASSERT_TRUE(EndsAfterLooks());
  EXPECT_TRUE(ended_.back().ok());
  EXPECT_FALSE(HasData());
}

TEST_F(LocalMachine, WhatCannotBeEndedIsTriedAgainAndItsDirectoryStays) {
  Configure("0");
  Write("code", "1");
  Start(OperationKind::kDrain, 1h);
  ASSERT_TRUE(LooksUntil([this] { return Lines("retires") == 2; }));
  EXPECT_TRUE(ended_.size() == 1 && HasData());
  Write("code", "0");
  ASSERT_TRUE(EndsAfterLooks());
  EXPECT_TRUE(ended_.back().ok());
  EXPECT_FALSE(HasData());
}

TEST_F(LocalMachine, WhatCannotBeEndedAtAllFailsTheOperationAndSaysWhy) {
  Configure("0");
  Write("code", "1");
  for (const OperationKind kind : {OperationKind::kDrain, OperationKind::kDelete}) {
    Start(kind, 1h);
    ASSERT_TRUE(EndsAfterLooks());
    EXPECT_FALSE(ended_.back().ok());
    EXPECT_TRUE(ended_.back().message().contains("web-0 does not end")) << ended_.back().ToString();
    EXPECT_TRUE(HasData()) << "workloads run in it";
  }
  Write("code", "0");
  Start(OperationKind::kDelete);
  ASSERT_TRUE(EndsAfterLooks());
  EXPECT_TRUE(ended_.back().ok());
  EXPECT_FALSE(std::filesystem::exists(machine_));
}

TEST_F(LocalMachine, AnAgentIsFoundAgainHoweverTheDirectoryIsSpelled) {
  Configure("1");
  slot_.state = model::MachineState::kConfigured;
  std::filesystem::create_directory_symlink(dir_.path(), dir_.File("link"));
  for (const std::string& root : {dir_.path() + "/./machines", dir_.path() + "/link/machines/"}) {
    backend_ = Open(root);
    const std::vector<contract::MachineRecord> machines = {contract::MachineRecord(slot_)};
    backend_->Adopt(machines, clock_.Read());
    for (int i = 0; i < 3; ++i) Poll(2s);
    EXPECT_EQ(Lines("starts"), 1U) << root;
  }
  Write("says", "0");
  Start(OperationKind::kDrain, 1h);
  ASSERT_TRUE(EndsAfterLooks());
  EXPECT_TRUE(ended_.back().ok());
  EXPECT_TRUE(Agents().empty()) << "it was not found, and not ended";
}

TEST_F(LocalMachine, AnAgentThatNeverComesUpFailsItsConfigureWithWhatItSaid) {
  Write("breaks", "");
  Start(OperationKind::kConfigure);
  ASSERT_TRUE(EndsAfterLooks());
  EXPECT_FALSE(ended_.back().ok());
  EXPECT_TRUE(ended_.back().message().contains("5 times")) << ended_.back().ToString();
  EXPECT_TRUE(ended_.back().message().contains("--colour is not known")) << ended_.back().ToString();
  EXPECT_TRUE(Eventually([this] { return Lines("starts") == 5; }));
}

TEST_F(LocalMachine, RetireEndsAnAgentThatDoesNotListen) {
  patience_ = 100ms;
  backend_ = Open(dir_.path() + "/machines");
  Write("deaf", "");
  Configure("1");
  EXPECT_TRUE(backend_->Retire(real_, 40s).ok());
  EXPECT_TRUE(Agents().empty());
  EXPECT_EQ(Lines("retires"), 1U);
  EXPECT_TRUE(HasData()) << "the next start goes on from it";
}

TEST_F(LocalMachine, RetireSaysWhatIsLeft) {
  Configure("1");
  Write("code", "1");
  const Status retired = backend_->Retire(real_, 4s);
  EXPECT_FALSE(retired.ok());
  EXPECT_TRUE(retired.message().contains(slot_.id)) << retired.ToString();
  EXPECT_GE(Lines("retires"), 2U) << "it was tried again";
}

}  // namespace
}  // namespace muster::provider
