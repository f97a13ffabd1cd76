#include "host/address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace muster::host {
namespace {

struct GoodCase {
  const char* text;
  bool insecure;
  const char* host;
  uint16_t port;
  const char* shown;
};

TEST(Address, Accepted) {
  const GoodCase cases[] = {
      {"127.0.0.1:7000", false, "127.0.0.1", 7000, "127.0.0.1:7000"},
      {"127.9.9.9:1", false, "127.9.9.9", 1, "127.9.9.9:1"},
      {"localhost:0", false, "localhost", 0, "localhost:0"},
      {"[::1]:65535", false, "::1", 65535, "[::1]:65535"},
      {":7000", false, "127.0.0.1", 7000, "127.0.0.1:7000"},
      {":7000", true, "0.0.0.0", 7000, "0.0.0.0:7000"},
      {"0.0.0.0:80", true, "0.0.0.0", 80, "0.0.0.0:80"},
      {"[::]:80", true, "::", 80, "[::]:80"},
      {"node-3.example.net:80", true, "node-3.example.net", 80, "node-3.example.net:80"},
      {"127.0.0.1:80", true, "127.0.0.1", 80, "127.0.0.1:80"},
  };
  for (const GoodCase& c : cases) {
    const Result<Address> address = ParseListenAddress(c.text, c.insecure, "--listen");
    ASSERT_TRUE(address) << c.text << ": " << address.error().ToString();
    EXPECT_EQ(*address, (Address{c.host, c.port})) << c.text;
    EXPECT_EQ(address->ToString(), c.shown);
  }
}

TEST(Address, RefusedAsWritten) {
  for (const char* text : {"",          "7000",      "localhost",
                           "host:",     ":",         ":-1",
                           ":65536",    ":+7",       ":7x",
                           ": 7",       "::1:7000",  "[::1]",
                           "[::1:7000", "::1]:7000", "[127.0.0.1]:7000",
                           "[]:7000",   "a b:7000",  "http://h:7000",
                           "h/x:7000",  "[::1]:",    "host:7000:7001"}) {
    for (const bool insecure : {false, true}) {
      const Result<Address> address = ParseListenAddress(text, insecure, "--listen");
      ASSERT_FALSE(address) << text;
      EXPECT_EQ(address.error().code(), Code::kInvalidArgument);
      EXPECT_EQ(address.error().message(), "--listen \"" + std::string(text) +
                                               "\" is not an address: write HOST:PORT or :PORT with a port from 0 to "
                                               "65535, and IPv6 as [::1]:PORT");
    }
  }
}

TEST(Address, RefusedBecauseItLeavesTheMachine) {
  for (const char* host : {"0.0.0.0", "[::]", "10.0.0.5", "128.0.0.1", "[fe80::1]", "example.net", "localhost.x",
                           "[::ffff:10.0.0.1]", "127.1"}) {
    const Result<Address> address = ParseListenAddress(std::string(host) + ":7000", false, "--metrics-addr");
    ASSERT_FALSE(address) << host;
    EXPECT_TRUE(address.error().message().starts_with("--metrics-addr " + std::string(host) +
                                                      ":7000 would serve other machines without TLS"))
        << address.error().message();
    EXPECT_TRUE(ParseListenAddress(std::string(host) + ":7000", true, "--metrics-addr")) << host;
  }
}

TEST(Address, ListenFailuresAreExplained) {
  const int holder = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in in = {.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  ASSERT_EQ(bind(holder, reinterpret_cast<const sockaddr*>(&in), sizeof in), 0);
  ASSERT_EQ(listen(holder, 1), 0);
  socklen_t length = sizeof in;
  ASSERT_EQ(getsockname(holder, reinterpret_cast<sockaddr*>(&in), &length), 0);
  const Address taken{"127.0.0.1", ntohs(in.sin_port)};
  EXPECT_EQ(ExplainListenFailure(taken).message(),
            "cannot listen on " + taken.ToString() +
                ": Address already in use; stop the process that holds it or choose another port");
  EXPECT_EQ(CheckCanListen(taken), ExplainListenFailure(taken));
  close(holder);
  EXPECT_EQ(CheckCanListen(taken), Status());

  EXPECT_EQ(ExplainListenFailure({"192.0.2.1", 0}).message(),
            "cannot listen on 192.0.2.1:0: Cannot assign requested address; use an address of this machine");
  EXPECT_TRUE(ExplainListenFailure({"no-such-host.invalid", 1})
                  .message()
                  .starts_with("cannot listen on no-such-host.invalid:1: host no-such-host.invalid is not known"));
  EXPECT_EQ(ExplainListenFailure({"127.0.0.1", 0}).message(),
            "cannot listen on 127.0.0.1:0: the server did not start; try again");
}

}  // namespace
}  // namespace muster::host
