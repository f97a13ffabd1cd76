// The real program from outside: what an operator, a monitoring system and a shell script see of it.
#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <regex>
#include <sstream>

#include "base/time.h"
#include "host/http_get_for_test.h"
#include "host/temp_dir_for_test.h"
#include "rpc/health.h"
#include "smoke/process.h"

namespace muster::smoke {
namespace {

std::string Program() {
  const char* program = std::getenv("MUSTER");
  return program != nullptr ? program : "build/muster";
}

std::vector<std::string> Muster(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), Program());
  return arguments;
}

std::vector<std::string> Lines(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// `muster serve` until its ports are known and it is ready.
class Serving {
 public:
  explicit Serving(std::vector<std::string> more = {}, const std::string& grpc = ":0", const std::string& http = ":0")
      : process_(Command(std::move(more), grpc, http)) {
    const std::string line = process_.WaitForErrorLine("\"msg\":\"listening\"");
    std::smatch found;
    const std::regex form("\"grpc\":\"127.0.0.1:([0-9]+)\",\"http\":\"127.0.0.1:([0-9]+)\"");
    if (!std::regex_search(line, found, form)) {
      ADD_FAILURE() << "no ports in the log: " << line << "\n" << process_.err();
      return;
    }
    grpc_.port = static_cast<uint16_t>(std::stoi(found[1]));
    http_.port = static_cast<uint16_t>(std::stoi(found[2]));
    EXPECT_NE(process_.WaitForErrorLine("\"msg\":\"ready\""), "") << process_.err();
  }

  Process& process() { return process_; }
  const host::Address& grpc() const { return grpc_; }
  const host::Address& http() const { return http_; }

  std::string Get(const std::string& path, int want_status) const {
    const host::HttpAnswer answer = host::HttpGet(http_, path);
    EXPECT_EQ(answer.status, want_status) << path;
    return answer.body;
  }

 private:
  static std::vector<std::string> Command(std::vector<std::string> more, const std::string& grpc,
                                          const std::string& http) {
    std::vector<std::string> command = Muster({"serve", "--listen", grpc, "--metrics-addr", http});
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }

  Process process_;
  host::Address grpc_{"127.0.0.1", 0};
  host::Address http_{"127.0.0.1", 0};
};

TEST(Smoke, ServesHealthAndTheOperatorsEndpoints) {
  Serving muster;
  EXPECT_EQ(rpc::CheckHealth(muster.grpc(), "", kPatience), Status());
  EXPECT_EQ(muster.Get("/livez", 200), "ok\n");
  EXPECT_EQ(muster.Get("/readyz", 200), "ok\n");
  EXPECT_TRUE(muster.Get("/metrics", 200).contains("muster_build_info{"));
  const std::string version = muster.Get("/version", 200);
  EXPECT_TRUE(std::regex_match(version, std::regex("\\{\"version\":\"[0-9.]+\",\"commit\":\"([0-9a-f]{12}|unknown)\","
                                                   "\"compiler\":\"[^\"]+\",\"build_type\":\"[A-Za-z]+\","
                                                   "\"faults\":(true|false)\\}\n")))
      << version;
  EXPECT_EQ(muster.Get("/nothing", 404), "not found; GET one of /livez /readyz /metrics /version\n");
}

TEST(Smoke, EachSignalStopsItCleanlyAndSoon) {
  for (const auto& [signal, name] : {std::pair{SIGTERM, "SIGTERM"}, std::pair{SIGINT, "SIGINT"}}) {
    Serving muster;
    EXPECT_EQ(rpc::CheckHealth(muster.grpc(), "", kPatience), Status());
    httplib::Client idle("127.0.0.1", muster.http().port);  // a connection left open does not hold it up
    idle.set_keep_alive(true);
    EXPECT_EQ(idle.Get("/livez")->body, "ok\n");
    const auto asked = std::chrono::steady_clock::now();
    muster.process().Signal(signal);
    EXPECT_EQ(muster.process().Wait(), 0);
    EXPECT_LT(std::chrono::steady_clock::now() - asked, 5s);

    const std::vector<std::string> lines = Lines(muster.process().err());
    ASSERT_GE(lines.size(), 4u);
    EXPECT_TRUE(lines[lines.size() - 2].ends_with(std::string("\"msg\":\"stopping\",\"reason\":\"") + name + "\"}"));
    EXPECT_TRUE(lines.back().ends_with("\"msg\":\"stopped\"}"));
    for (const std::string& line : lines) EXPECT_TRUE(line.starts_with("{\"ts\":\"")) << line;
    EXPECT_EQ(muster.process().out(), "");
  }
}

TEST(Smoke, KilledItLeavesNothingThatBlocksARestart) {
  const host::TempDir dir;
  Serving first({"--data-dir", dir.path()});
  EXPECT_EQ(first.Get("/livez", 200), "ok\n");
  EXPECT_EQ(rpc::CheckHealth(first.grpc(), "", kPatience), Status());
  first.process().Signal(SIGKILL);
  EXPECT_EQ(first.process().Wait(), 128 + SIGKILL);

  Serving second({"--data-dir", dir.path()}, first.grpc().ToString(), first.http().ToString());
  EXPECT_EQ(second.grpc(), first.grpc());
  EXPECT_EQ(second.http(), first.http());
  EXPECT_EQ(second.Get("/readyz", 200), "ok\n");
  EXPECT_EQ(rpc::CheckHealth(second.grpc(), "", kPatience), Status());
}

void ExpectRefusal(const std::vector<std::string>& arguments, int code, const std::string& sentence) {
  Process process(Muster(arguments));
  EXPECT_EQ(process.Wait(), code) << sentence;
  EXPECT_EQ(process.err(), "muster: " + sentence + "\n");
  EXPECT_EQ(process.out(), "");
}

TEST(Smoke, WhatIsTakenIsRefusedInOneSentence) {
  const host::TempDir dir;
  Serving muster({"--data-dir", dir.path()});
  const std::string advice = ": Address already in use; stop the process that holds it or choose another port";
  const std::string grpc = muster.grpc().ToString();
  const std::string http = muster.http().ToString();
  ExpectRefusal({"serve", "--listen", grpc, "--metrics-addr", ":0"}, 1, "cannot listen on " + grpc + advice);
  ExpectRefusal({"serve", "--listen", ":0", "--metrics-addr", http}, 1, "cannot listen on " + http + advice);
  ExpectRefusal(
      {"serve", "--listen", ":0", "--metrics-addr", ":0", "--data-dir", dir.path()}, 1,
      "--data-dir " + dir.path() + ": another process works in it; stop that process or choose another directory");
  EXPECT_EQ(muster.Get("/readyz", 200), "ok\n");
}

// A start whose disk takes nothing more: the files it may write are limited to 512 or 1024 bytes.
TEST(Smoke, ASignalEndsAStartThatWaitsForTheDisk) {
  const host::TempDir dir;
  {
    Serving first({"--data-dir", dir.path()});
    first.process().Signal(SIGTERM);
    EXPECT_EQ(first.process().Wait(), 0);
  }
  Process process({"sh", "-c",
                   "trap '' XFSZ; ulimit -f 1; exec \"$0\" serve --listen :0 --metrics-addr :0 --data-dir \"$1\"",
                   Program(), dir.path()});
  ASSERT_NE(process.WaitForErrorLine("state cannot be stored"), "") << process.err();
  const auto asked = std::chrono::steady_clock::now();
  process.Signal(SIGTERM);
  EXPECT_EQ(process.Wait(), 0) << process.err();
  EXPECT_LT(std::chrono::steady_clock::now() - asked, 5s);
  EXPECT_TRUE(process.err().contains("\"msg\":\"stopped\"")) << process.err();
  EXPECT_FALSE(process.err().contains("\"msg\":\"ready\"")) << process.err();
}

// As timeout(1) does it: the process, then its group. Held while they are sent, so that they come together.
TEST(Smoke, AnEchoOfTheSignalDoesNotSpoilTheCleanStop) {
  Serving muster;
  for (const int signal : {SIGSTOP, SIGTERM, SIGINT, SIGCONT}) muster.process().Signal(signal);
  EXPECT_EQ(muster.process().Wait(), 0);
  EXPECT_TRUE(muster.process().err().contains("\"msg\":\"stopped\"")) << muster.process().err();
}

TEST(Smoke, TheStepThatKillsCanBeReplayed) {
  const host::TempDir dir;
  Process served({"env", "MUSTER_CRASH_POINT=host.in_step", Program(), "serve", "--listen", ":0", "--metrics-addr",
                  ":0", "--data-dir", dir.File("data"), "--journal", dir.File("journal")});
  ASSERT_EQ(served.Wait(), 128 + SIGKILL) << served.err();
  Process replay(Muster({"replay", dir.File("journal")}));
  EXPECT_EQ(replay.Wait(), 0) << replay.err();
  EXPECT_TRUE(std::regex_match(replay.out(), std::regex("0 at [^\n]*: Add\\{[^\n]*client=starts,[^\n]*\n"
                                                        "    did not end when it was recorded; taking it again\n"
                                                        "counter: 1 steps in 1 segments, the same effects as "
                                                        "recorded; 1 unfinished\n")))
      << replay.out();
}

TEST(Smoke, WrongCommandLinesAreRefusedInOneSentence) {
  for (const char* option : {"--data-dir", "--journal"}) {
    ExpectRefusal(
        {"serve", option, ""}, 2,
        std::string(option) + ": the path is empty; name one, or leave the option out; see muster serve --help");
  }
  ExpectRefusal({"sevre"}, 2, "verb \"sevre\" is unknown, did you mean serve?; see muster --help");
  ExpectRefusal({"serve", "--lisen", ":0"}, 2,
                "option \"--lisen\" is unknown, did you mean --listen?; see muster serve --help");
  ExpectRefusal(
      {"serve", "--listen", "0.0.0.0:0"}, 2,
      "--listen 0.0.0.0:0 would serve other machines without TLS: listen on 127.0.0.1:0, or add --insecure if "
      "everyone who can reach 0.0.0.0 is trusted");
  ExpectRefusal({"serve", "--metrics-addr", "nonsense"}, 2,
                "--metrics-addr \"nonsense\" is not an address: write HOST:PORT or :PORT with a port from 0 to 65535, "
                "and IPv6 as [::1]:PORT");
  ExpectRefusal({"serve", "--log-level", "loud"}, 2,
                "--log-level: loud not in {debug,info,warn,error}; see muster serve --help");
}

TEST(Smoke, EveryVerbHasHelpWithAnExample) {
  Process root(Muster({"--help"}));
  ASSERT_EQ(root.Wait(), 0);
  const std::string& help = root.out();
  std::vector<std::string> verbs;
  bool listing = false;
  for (const std::string& line : Lines(help)) {
    std::smatch found;
    if (listing && std::regex_search(line, found, std::regex("^  ([a-z-]+) "))) verbs.push_back(found[1]);
    if (line == "Subcommands:") listing = true;
  }
  EXPECT_NE(std::ranges::find(verbs, "serve"), verbs.end()) << help;
  for (const std::string& verb : verbs) {
    Process process(Muster({verb, "--help"}));
    EXPECT_EQ(process.Wait(), 0);
    EXPECT_TRUE(process.out().contains("Examples:\n  muster " + verb)) << process.out();
  }
}

TEST(Smoke, SelfcheckPassesHere) {
  Process process(Muster({"selfcheck"}));
  EXPECT_EQ(process.Wait(), 0) << process.out() << process.err();
  for (const char* line : {"ok       clocks   ", "ok       sqlite   ", "ok       grpc     "}) {
    EXPECT_TRUE(process.out().contains(line)) << process.out();
  }
}

TEST(Smoke, AFullDiskUnderStandardOutputIsAnError) {
  Process process({"sh", "-c", "exec \"$0\" version > /dev/full", Program()});
  EXPECT_EQ(process.Wait(), 1);
  EXPECT_EQ(process.err(), "muster: cannot write to standard output: No space left on device\n");
}

}  // namespace
}  // namespace muster::smoke
