// Life: one life of `muster provider` in a process of its own, with a client to it.
#pragma once

#include <cstdlib>
#include <memory>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "contract/provider.h"
#include "rpc/provider_client.h"
#include "rpc/tls_files.h"
#include "smoke/process.h"

namespace muster::provider {

inline std::string ProgramUnderTest() {
  const char* program = std::getenv("MUSTER");
  return program != nullptr ? program : "build/muster";
}

// The command line of a provider on free ports, as one word each.
inline std::vector<std::string> ProviderCommand(const std::string& data_dir, const std::string& catalogue,
                                                uint64_t machines, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {ProgramUnderTest(), "provider",
                                    "--listen",         ":0",
                                    "--metrics-addr",   ":0",
                                    "--data-dir",       data_dir,
                                    "--name",           "m",
                                    "--catalogue",      catalogue,
                                    "--machines",       std::to_string(machines)};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class Life {
 public:
  // Comes back when it listens or is dead. A client is made for plaintext only.
  explicit Life(std::vector<std::string> command) : process_(std::move(command)) {
    const std::string line = process_.WaitForErrorLine("\"msg\":\"listening\"");
    std::smatch found;
    const std::regex form("\"grpc\":\"[0-9.]+:([0-9]+)\",\"http\":\"([0-9.:]+)\"");
    if (!std::regex_search(line, found, form)) return;
    grpc_ = "127.0.0.1:" + found[1].str();
    http_ = found[2];
    auto client = rpc::MakeProviderClient(grpc_);
    if (client) client_ = *std::move(client);
  }
  bool up() const { return client_ != nullptr; }
  contract::ProviderPort& client() { return *client_; }
  const std::string& grpc() const { return grpc_; }
  const std::string& http() const { return http_; }
  smoke::Process& process() { return process_; }

 private:
  smoke::Process process_;
  std::string grpc_;
  std::string http_;
  std::unique_ptr<contract::ProviderPort> client_;
};

}  // namespace muster::provider
