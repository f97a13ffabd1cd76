#include "cli/own_etcd.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "host/free_ports.h"
#include "rpc/open_store.h"
#include "store/blocking.h"

namespace muster::cli {
namespace {

constexpr Duration kPatience = 30s;

// Where the program is; empty if it is in no directory of PATH.
std::string FindProgram(std::string_view name) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/bin:/bin";
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    const std::string file = fmt::format("{}/{}", rest.substr(0, colon), name);
    if (access(file.c_str(), X_OK) == 0) return file;
    rest = colon == std::string_view::npos ? "" : rest.substr(colon + 1);
  }
  return "";
}

std::string LogIn(const host::TemporaryDir& dir) { return dir.path() / "log"; }

}  // namespace

Result<std::unique_ptr<OwnEtcd>> OwnEtcd::Start() {
  const std::string program = FindProgram("etcd");
  if (program.empty()) {
    return Error(Code::kNotFound,
                 "there is no program etcd in PATH; install it (Debian: etcd-server), or name an etcd that runs as "
                 "etcd://HOST:PORT");
  }
  MUSTER_ASSIGN_OR_RETURN(const std::vector<uint16_t> ports, host::FreePorts(2));
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<host::TemporaryDir> dir, host::TemporaryDir::Make());
  const std::string data = dir->path() / "data";
  const std::string log = LogIn(*dir);
  const std::string client = fmt::format("http://127.0.0.1:{}", ports[0]);
  const std::string peer = fmt::format("http://127.0.0.1:{}", ports[1]);
  std::unique_ptr<OwnEtcd> etcd(new OwnEtcd(std::move(dir), program));
  etcd->url_ = fmt::format("etcd://127.0.0.1:{}", ports[0]);
  Status status = etcd->children_.Start(
      {.name = "etcd",
       .arguments = {"--name", "own", "--data-dir", data, "--listen-client-urls", client, "--advertise-client-urls",
                     client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster",
                     fmt::format("own={}", peer)},
       .log = log});
  if (status.ok()) status = etcd->WaitUntilItAnswers();
  if (!status.ok()) return std::unexpected(std::move(status));
  return etcd;
}

Status OwnEtcd::WaitUntilItAnswers() {
  auto store = rpc::OpenStore(url_);
  if (!store) return store.error();
  store::Blocking blocking(**store);
  blocking.SetTimeout(500ms);
  for (const MonoTime end = clock_.Read().mono + kPatience; clock_.Read().mono < end;) {
    if (blocking.Range(contract::OneKey("/"))) return {};
    children_.Poll();
    if (children_.View().front().deaths > 0) break;
  }
  return {Code::kUnavailable, fmt::format("etcd does not start: {}", host::Children::LastLine(LogIn(*dir_)))};
}

}  // namespace muster::cli
