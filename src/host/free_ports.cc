#include "host/free_ports.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace muster::host {
namespace {

// The port that the system chose for `fd`, 0 if it refused.
uint16_t BindToAny(int fd) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  const bool bound = fd >= 0 && bind(fd, generic, size) == 0 && getsockname(fd, generic, &size) == 0;
  return bound ? ntohs(address.sin_port) : 0;
}

}  // namespace

Result<std::vector<uint16_t>> FreePorts(size_t count) {
  std::vector<int> sockets;  // open until all ports are drawn, so that they differ
  std::vector<uint16_t> ports;
  int error = 0;
  while (ports.size() < count && error == 0) {
    sockets.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const uint16_t port = BindToAny(sockets.back());
    if (port == 0) error = errno;
    ports.push_back(port);
  }
  for (const int fd : sockets) {
    if (fd >= 0) close(fd);
  }
  if (error == 0) return ports;
  return Error(Code::kUnavailable,
               fmt::format("there is no free port of 127.0.0.1: {}", std::generic_category().message(error)));
}

}  // namespace muster::host
