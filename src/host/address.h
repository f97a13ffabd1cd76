// Address: where a server listens, and the rule all servers share: without TLS only this machine is served, unless the
// operator says --insecure.
//
//   "127.0.0.1:7000", "localhost:7000", "[::1]:7000"   loopback, always allowed
//   ":7000"                                            loopback; with insecure every IPv4 interface
//   "10.0.0.5:7000", "node-3:7000", "[::]:7000"        refused unless insecure
//
// Port 0 lets the system choose; the server then reports the port it got.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::host {

struct Address {
  std::string host;  // without brackets
  uint16_t port = 0;

  // "127.0.0.1:7000"; IPv6 in brackets.
  std::string ToString() const;
  bool operator==(const Address&) const = default;
};

// Whether the host, without brackets, is this machine's loopback interface.
bool IsLoopback(const std::string& host);

// `flag` is the option the text came from, for the message.
Result<Address> ParseListenAddress(std::string_view text, bool insecure, std::string_view flag);

// After a server library failed to listen without saying why: tries the address itself. A sentence such as
// "cannot listen on 127.0.0.1:7000: Address already in use; stop the process that holds it or choose another port".
Status ExplainListenFailure(const Address& address);
// The same sentence if nobody could listen there now.
Status CheckCanListen(const Address& address);

}  // namespace muster::host
