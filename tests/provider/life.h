// Life: one life of `muster provider` in a process of its own, with a client to it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "contract/provider.h"
#include "rpc/provider_client.h"
#include "rpc/tls_files.h"
#include "smoke/server.h"

namespace muster::provider {

using smoke::ProgramUnderTest;

// The command line of a provider on free ports, as one word each.
inline std::vector<std::string> ProviderCommand(const std::string& data_dir, const std::string& catalogue,
                                                uint64_t machines, const std::vector<std::string>& more = {},
                                                const std::string& listen = ":0") {
  std::vector<std::string> words = {ProgramUnderTest(), "provider",
                                    "--listen",         listen,
                                    "--metrics-addr",   ":0",
                                    "--data-dir",       data_dir,
                                    "--name",           "m",
                                    "--catalogue",      catalogue,
                                    "--machines",       std::to_string(machines)};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class Life : public smoke::Server {
 public:
  // Comes back when it listens or is dead. A client is made for plaintext only.
  explicit Life(std::vector<std::string> command) : Server(std::move(command)) {
    if (grpc().empty()) return;
    auto client = rpc::MakeProviderClient(grpc());
    if (client) client_ = *std::move(client);
  }
  bool up() const { return client_ != nullptr; }
  contract::ProviderPort& client() { return *client_; }

 private:
  std::unique_ptr<contract::ProviderPort> client_;
};

}  // namespace muster::provider
