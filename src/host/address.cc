#include "host/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <system_error>

namespace muster::host {
namespace {

std::string ErrnoText(int error) { return std::generic_category().message(error); }

Status CannotListen(const Address& address, std::string_view why) {
  return {Code::kUnavailable, fmt::format("cannot listen on {}: {}", address.ToString(), why)};
}

bool IsHostName(std::string_view host) {
  return std::ranges::all_of(host, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  });
}

std::optional<uint16_t> ParsePort(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return port;
}

// Splits at the colon before the port; an IPv6 host must stand in brackets, or which colon that is would be a guess.
std::optional<Address> Split(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::optional<uint16_t> port = ParsePort(text.substr(colon + 1));
  if (!port) return std::nullopt;
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    in6_addr v6;
    if (inet_pton(AF_INET6, std::string(host).c_str(), &v6) != 1) return std::nullopt;
  } else if (!IsHostName(host)) {
    return std::nullopt;
  }
  return Address{std::string(host), *port};
}

}  // namespace

bool IsLoopback(const std::string& host) {
  in_addr v4;
  in6_addr v6;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6) != 0;
  return host == "localhost";
}

std::string Address::ToString() const {
  return host.contains(':') ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

Result<Address> ParseListenAddress(std::string_view text, bool insecure, std::string_view flag) {
  std::optional<Address> address = Split(text);
  if (!address) {
    return InvalidArgument(fmt::format(
        "{} \"{}\" is not an address: write HOST:PORT or :PORT with a port from 0 to 65535, and IPv6 as [::1]:PORT",
        flag, text));
  }
  if (address->host.empty()) address->host = insecure ? "0.0.0.0" : "127.0.0.1";
  if (!insecure && !IsLoopback(address->host)) {
    return InvalidArgument(
        fmt::format("{} {} would serve other machines without TLS: listen on 127.0.0.1:{}, or add --insecure if "
                    "everyone who can reach {} is trusted",
                    flag, text, address->port, address->host));
  }
  return *std::move(address);
}

Status CheckCanListen(const Address& address) {
  addrinfo hints = {};
  hints.ai_flags = AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int resolved = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (resolved != 0) {
    return CannotListen(address, fmt::format("host {} is not known ({}); use an address of this machine", address.host,
                                             gai_strerror(resolved)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, &freeaddrinfo);
  const int fd = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, found->ai_protocol);
  const int reuse = 1;
  int error = 0;
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse) != 0 ||
      bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, 1) != 0) {
    error = errno;
  }
  if (fd >= 0) close(fd);
  if (error == 0) return {};
  const char* advice = error == EADDRINUSE      ? "stop the process that holds it or choose another port"
                       : error == EACCES        ? "choose a port above 1023"
                       : error == EADDRNOTAVAIL ? "use an address of this machine"
                                                : "try again";
  return CannotListen(address, fmt::format("{}; {}", ErrnoText(error), advice));
}

Status ExplainListenFailure(const Address& address) {
  const Status status = CheckCanListen(address);
  return status.ok() ? CannotListen(address, "the server did not start; try again") : status;
}

}  // namespace muster::host
