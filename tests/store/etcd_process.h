// Etcd: real members of an etcd cluster (Debian's etcd-server), on free ports of this machine, in a directory that goes
// with them. However the test ends, the members end too.
#pragma once

#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/check.h"
#include "host/free_ports.h"
#include "host/temp_dir_for_test.h"
#include "host/thread_schedule.h"
#include "rpc/etcd_store.h"
#include "rpc/tls_files.h"
#include "smoke/process.h"

namespace muster::store {

struct EtcdSettings {
  size_t members = 1;
  rpc::TlsFiles tls = {};              // of the members; clients must have one too
  std::vector<std::string> more = {};  // flags
};

class Etcd {
 public:
  explicit Etcd(EtcdSettings settings = {})
      : settings_(std::move(settings)), ports_(host::FreePorts(2 * settings_.members).value()) {
    processes_.resize(settings_.members);
    for (size_t i = 0; i < settings_.members; ++i) Start(i);
  }
  Etcd(const Etcd&) = delete;
  Etcd& operator=(const Etcd&) = delete;

  size_t size() const { return processes_.size(); }
  std::string endpoint(size_t member = 0) const { return fmt::format("127.0.0.1:{}", ports_[2 * member]); }
  std::string url() const { return fmt::format("etcd://{}", fmt::join(endpoints(), ",")); }
  std::vector<std::string> endpoints() const {
    std::vector<std::string> all;
    for (size_t i = 0; i < size(); ++i) all.push_back(endpoint(i));
    return all;
  }
  bool running(size_t member) const { return processes_[member] != nullptr; }
  void Start(size_t member) {
    std::vector<std::string> command = {"sh",   "-c",      fmt::format("exec \"$@\" >>{} 2>&1", LogFile(member)),
                                        "sh",   "setpriv", "--pdeathsig",
                                        "KILL", "etcd"};
    for (std::string& flag : Flags(member)) command.push_back(std::move(flag));
    // The kernel ends a member with the thread that started it: so one that lives as long as this does.
    std::promise<void> started;
    starter_.After({}, [&] {
      processes_[member] = std::make_unique<smoke::Process>(std::move(command));
      started.set_value();
    });
    started.get_future().wait();
  }
  // As a power cut would.
  void Kill(size_t member = 0) {
    processes_[member]->Signal(SIGKILL);
    processes_[member]->Wait();
    processes_[member].reset();
  }
  void Stop(size_t member = 0) {
    processes_[member]->Signal(SIGTERM);
    processes_[member]->Wait();
    processes_[member].reset();
  }
  // Of one that is stopped: it begins again with nothing.
  void Wipe(size_t member = 0) { std::filesystem::remove_all(dir_.File(fmt::format("data{}", member))); }
  // Stands still, with its connections open.
  void Pause(size_t member) { processes_[member]->Signal(SIGSTOP); }
  void Resume(size_t member) { processes_[member]->Signal(SIGCONT); }

  std::string Log(size_t member = 0) const {
    std::ifstream file(LogFile(member));
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  rpc::EtcdOptions Options(std::string prefix = "") const {
    return {.endpoints = endpoints(), .prefix = std::move(prefix), .progress_every = 500ms};
  }
  std::unique_ptr<Store> Client(std::string prefix = "") const { return Client(Options(std::move(prefix))); }
  static std::unique_ptr<Store> Client(rpc::EtcdOptions options) {
    auto client = rpc::MakeEtcdStore(std::move(options));
    MUSTER_CHECK(client.has_value(), "{}", client.error().ToString());
    return *std::move(client);
  }

 private:
  std::string LogFile(size_t member) const { return dir_.File(fmt::format("log{}", member)); }
  std::string PeerUrl(size_t member) const { return fmt::format("http://127.0.0.1:{}", ports_[2 * member + 1]); }
  std::vector<std::string> Flags(size_t member) const {
    const std::string client = fmt::format("{}://{}", settings_.tls.given() ? "https" : "http", endpoint(member));
    std::vector<std::string> peers;
    for (size_t i = 0; i < size(); ++i) peers.push_back(fmt::format("m{}={}", i, PeerUrl(i)));
    std::vector<std::string> flags = {"--name",
                                      fmt::format("m{}", member),
                                      "--data-dir",
                                      dir_.File(fmt::format("data{}", member)),
                                      "--listen-client-urls",
                                      client,
                                      "--advertise-client-urls",
                                      client,
                                      "--listen-peer-urls",
                                      PeerUrl(member),
                                      "--initial-advertise-peer-urls",
                                      PeerUrl(member),
                                      "--initial-cluster",
                                      fmt::format("{}", fmt::join(peers, ",")),
                                      "--heartbeat-interval",
                                      "50",
                                      "--election-timeout",
                                      "500"};
    if (settings_.tls.given()) {
      for (const std::string& flag :
           {std::string("--cert-file"), settings_.tls.cert, std::string("--key-file"), settings_.tls.key,
            std::string("--trusted-ca-file"), settings_.tls.ca, std::string("--client-cert-auth")}) {
        flags.push_back(flag);
      }
    }
    flags.insert(flags.end(), settings_.more.begin(), settings_.more.end());
    return flags;
  }

  const EtcdSettings settings_;
  const std::vector<uint16_t> ports_;  // of each member: for clients, for peers
  const host::TempDir dir_;
  host::ThreadSchedule starter_;
  std::vector<std::unique_ptr<smoke::Process>> processes_;  // none: stopped. Last: they end before their directory
};

}  // namespace muster::store
