#include "host/http_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <vector>

#include "host/http_get_for_test.h"

namespace muster::host {
namespace {

class HttpServerTest : public testing::Test {
 protected:
  HttpServerTest() {
    const auto port = server_.Start({"127.0.0.1", 0});
    EXPECT_TRUE(port.has_value());
    address_ = {"127.0.0.1", *port};
  }
  ~HttpServerTest() override {
    for (const int fd : open_) close(fd);
  }
  // A connection on which this was said; it lives as long as the test.
  int Say(std::string_view text) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(address_.port);
    inet_pton(AF_INET, address_.host.c_str(), &to.sin_addr);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    static_cast<void>(send(fd, text.data(), text.size(), MSG_NOSIGNAL));
    open_.push_back(fd);
    return fd;
  }
  // All that comes until the server hangs up.
  static std::string Hear(int fd) {
    std::string heard;
    char buffer[4096];
    for (ssize_t got = 0; (got = recv(fd, buffer, sizeof buffer, 0)) > 0;)
      heard.append(buffer, static_cast<size_t>(got));
    return heard;
  }

  HttpServer server_{[](std::string_view path) {
    if (path == "/large") return HttpResponse{.status = 200, .type = "text/plain", .body = std::string(4 << 20, 'x')};
    return HttpResponse{.status = 200, .type = "text/plain", .body = std::string(path) + "\n"};
  }};
  Address address_;
  std::vector<int> open_;
};

TEST_F(HttpServerTest, AnswersOneRequestOfAConnection) {
  EXPECT_EQ(HttpGet(address_, "/x?y=z"), (HttpAnswer{200, "/x\n"}));
  EXPECT_EQ(HttpGet(address_, "/large").body.size(), 4u << 20);
  EXPECT_EQ(Hear(Say("GET /a HTTP/1.1\r\n\r\n")),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\nConnection: close\r\n\r\n/a\n");
  EXPECT_TRUE(Hear(Say("HEAD /a HTTP/1.0\r\n\r\n")).ends_with("Connection: close\r\n\r\n"));
}

TEST_F(HttpServerTest, WhatIsNoRequestIsAnsweredAndClosed) {
  EXPECT_TRUE(Hear(Say("hello\r\n\r\n")).starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(Hear(Say("\r\n\r\n")).starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(Hear(Say("GET /" + std::string(9'000, 'x'))).starts_with("HTTP/1.1 431 "));
}

TEST_F(HttpServerTest, TheOldestOfTooManyConnectionsGoes) {
  const int first = Say("GET /sl");
  for (size_t i = 0; i < HttpServer::kMostConnections; ++i) Say("GET /sl");
  EXPECT_EQ(Hear(first), "");
  EXPECT_EQ(HttpGet(address_, "/x").status, 200);
}

TEST_F(HttpServerTest, AnswersThatNobodyTakesAreDropped) {
  for (int i = 0; i < 20; ++i) Say("GET /large HTTP/1.1\r\n\r\n");  // 80 MiB, and none is read
  EXPECT_EQ(HttpGet(address_, "/large").body.size(), 4u << 20);
  EXPECT_LT(Hear(open_.front()).size(), 4u << 20) << "the first was cut off";
}

TEST_F(HttpServerTest, ASlowRequestHasItsTime) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Hear(Say("GET /sl")), "");
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_GE(took, HttpServer::kRequestTime - 100ms);
  server_.Stop();
}

}  // namespace
}  // namespace muster::host
