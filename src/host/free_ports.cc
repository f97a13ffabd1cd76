#include "host/free_ports.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <system_error>

namespace muster::host {
namespace {

// Below what Linux gives to outgoing connections (net.ipv4.ip_local_port_range, 32768 and above unless it was set): one
// of those could take a port in the moment between this draw and the program's start.
constexpr uint16_t kFirst = 16'384;
constexpr uint16_t kEnd = 32'768;

bool Bind(int fd, uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

Result<std::vector<uint16_t>> FreePorts(size_t count) {
  std::vector<int> sockets;  // open until all ports are drawn, so that they differ
  std::vector<uint16_t> ports;
  int error = 0;
  // Programs that draw at the same time begin at different places.
  std::random_device random;
  uint16_t next = kFirst + static_cast<uint16_t>(random() % (kEnd - kFirst));
  for (int tried = kFirst; tried < kEnd && ports.size() < count; ++tried) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
      error = errno;
      break;
    }
    sockets.push_back(fd);
    if (Bind(fd, next)) {
      ports.push_back(next);
    } else {
      error = errno;
      close(fd);
      sockets.pop_back();
    }
    next = next + 1 == kEnd ? kFirst : next + 1;
  }
  for (const int fd : sockets) close(fd);
  if (ports.size() == count) return ports;
  return Error(Code::kUnavailable,
               fmt::format("there is no free port of 127.0.0.1: {}", std::generic_category().message(error)));
}

}  // namespace muster::host
