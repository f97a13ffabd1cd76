#include "host/http_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "host/system_clock.h"

namespace muster::host {
namespace {

MonoTime Mono() { return SystemClock().Read().mono; }

std::string_view StatusText(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 404: return "Not Found";
    case 431: return "Request Header Fields Too Large";
    case 503: return "Service Unavailable";
    default: return "Unknown";
  }
}

std::string Spell(const HttpResponse& response, bool with_body) {
  return fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
                     response.status, StatusText(response.status), response.type, response.body.size(),
                     with_body ? response.body : std::string());
}

struct ListenResult {
  int fd = -1;
  uint16_t port = 0;
};

ListenResult Listen(const Address& address) {
  addrinfo hints = {};
  hints.ai_flags = AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, &freeaddrinfo);
  const int fd = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, found->ai_protocol);
  if (fd < 0) return {};
  const int reuse = 1;
  sockaddr_storage bound = {};
  socklen_t size = sizeof bound;
  auto* name = reinterpret_cast<sockaddr*>(&bound);
  std::array<char, NI_MAXSERV> port = {};
  if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse) != 0 ||
      bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, SOMAXCONN) != 0 ||
      getsockname(fd, name, &size) != 0 ||
      getnameinfo(name, size, nullptr, 0, port.data(), port.size(), NI_NUMERICSERV) != 0) {
    close(fd);
    return {};
  }
  return {.fd = fd, .port = static_cast<uint16_t>(std::stoi(port.data()))};
}

}  // namespace

HttpServer::~HttpServer() { Stop(); }

Result<uint16_t> HttpServer::Start(const Address& address) {
  MUSTER_CHECK(listener_ < 0, "Start was called twice");
  const ListenResult listening = Listen(address);
  if (listening.fd < 0) return std::unexpected(ExplainListenFailure(address));
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  MUSTER_CHECK(wake_ >= 0, "no event descriptor");
  listener_ = listening.fd;
  thread_ = std::jthread([this] { Run(); });
  return listening.port;
}

void HttpServer::Stop() {
  if (listener_ < 0) return;
  const uint64_t one = 1;
  MUSTER_CHECK(write(wake_, &one, sizeof one) == sizeof one, "the event descriptor is full");
  thread_.join();
  while (!connections_.empty()) Close(connections_.begin());
  close(listener_);
  close(wake_);
  listener_ = wake_ = -1;
}

void HttpServer::Run() {
  using State = Connection::State;
  while (true) {
    std::vector<pollfd> polled = {{.fd = wake_, .events = POLLIN, .revents = 0},
                                  {.fd = starved_ ? -1 : listener_, .events = POLLIN, .revents = 0}};
    std::vector<Connections::iterator> whose;
    for (auto it = connections_.begin(); it != connections_.end(); ++it) {
      const auto events = static_cast<int16_t>(it->state == State::kSending ? POLLOUT : POLLIN);
      polled.push_back({.fd = it->fd, .events = events, .revents = 0});
      whose.push_back(it);
    }
    if (poll(polled.data(), polled.size(), PollMillis()) < 0 && errno != EINTR) return;
    if (polled[0].revents != 0) return;
    starved_ = false;
    for (size_t i = 0; i < whose.size(); ++i) {
      if (polled[i + 2].revents == 0) continue;
      switch (whose[i]->state) {
        case State::kReceiving: Receive(whose[i]); break;
        case State::kSending: Send(whose[i]); break;
        case State::kDraining: Drain(whose[i]); break;
      }
    }
    if (polled[1].revents != 0) Accept();
    CloseOverdue();
    Shed();
  }
}

void HttpServer::Accept() {
  while (true) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      connections_.push_back({.fd = fd, .until = Mono() + kRequestTime});
      if (connections_.size() > kMostConnections) Close(connections_.begin());
      Receive(std::prev(connections_.end()));  // most requests have arrived with their connection
      continue;
    }
    if (errno == EMFILE || errno == ENFILE) {
      if (connections_.empty()) {
        starved_ = true;
        return;
      }
      Close(connections_.begin());
      continue;
    }
    if (errno != ECONNABORTED && errno != EINTR) return;
  }
}

void HttpServer::Receive(Connections::iterator connection) {
  std::array<char, 4096> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled before it is read
  while (true) {
    const ssize_t got = recv(connection->fd, buffer.data(), buffer.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      Close(connection);
      return;
    }
    connection->in.append(buffer.data(), static_cast<size_t>(got));
    const bool whole = connection->in.contains("\r\n\r\n");
    if (!whole && connection->in.size() <= kMostHead) continue;
    Take(*connection);
    return Send(connection);
  }
}

// The request is there, or will never be.
void HttpServer::Take(Connection& connection) const {
  constexpr const char* kText = "text/plain; charset=utf-8";
  const std::string_view line = std::string_view(connection.in).substr(0, connection.in.find("\r\n"));
  const size_t first = line.find(' ');
  const size_t second = line.find(' ', first + 1);
  const std::string_view method = line.substr(0, first);
  HttpResponse response;
  if (!connection.in.contains("\r\n\r\n")) {
    response = {.status = 431, .type = kText, .body = "the request is too long\n"};
  } else if (second == std::string_view::npos || !line.substr(second + 1).starts_with("HTTP/1.")) {
    response = {.status = 400, .type = kText, .body = "this is HTTP/1.1\n"};
  } else {
    const std::string_view target = line.substr(first + 1, second - first - 1);
    const bool get = method == "GET" || method == "HEAD";
    response = answer_(get ? target.substr(0, target.find('?')) : std::string_view());
  }
  connection.out = Spell(response, method != "HEAD");
  connection.in.clear();
  connection.state = Connection::State::kSending;
  connection.until = Mono() + kAnswerTime;
}

void HttpServer::Send(Connections::iterator connection) {
  while (connection->sent < connection->out.size()) {
    const std::string_view rest = std::string_view(connection->out).substr(connection->sent);
    const ssize_t sent = send(connection->fd, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (sent < 0) {
      Close(connection);
      return;
    }
    connection->sent += static_cast<size_t>(sent);
  }
  // A close with bytes of the client unread would take the answer from it.
  connection->out = {};
  connection->sent = 0;
  connection->state = Connection::State::kDraining;
  connection->until = Mono() + kRequestTime;
  shutdown(connection->fd, SHUT_WR);
  Drain(connection);
}

void HttpServer::Drain(Connections::iterator connection) {
  std::array<char, 4096> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): nobody reads it
  const ssize_t got = recv(connection->fd, buffer.data(), buffer.size(), 0);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) Close(connection);
}

HttpServer::Connections::iterator HttpServer::Close(Connections::iterator connection) {
  close(connection->fd);
  return connections_.erase(connection);
}

void HttpServer::CloseOverdue() {
  const MonoTime now = Mono();
  for (auto it = connections_.begin(); it != connections_.end();) {
    it = it->until <= now ? Close(it) : std::next(it);
  }
}

// Answers that nobody takes: the oldest go.
void HttpServer::Shed() {
  size_t waiting = 0;
  for (const Connection& connection : connections_) waiting += connection.out.size();
  for (auto it = connections_.begin(); it != connections_.end() && waiting > kMostWaiting;) {
    waiting -= it->out.size();
    it = it->out.empty() ? std::next(it) : Close(it);
  }
}

int HttpServer::PollMillis() const {
  constexpr int kStarvedMillis = 100;
  if (starved_) return kStarvedMillis;
  if (connections_.empty()) return -1;
  const auto next = std::ranges::min_element(connections_, {}, &Connection::until)->until - Mono();
  const auto millis = std::chrono::ceil<std::chrono::milliseconds>(next).count();
  return static_cast<int>(std::clamp<int64_t>(millis, 0, 60'000));
}

}  // namespace muster::host
