// One HTTP request of a test.
#pragma once

#include <httplib.h>

#include <string>

#include "host/address.h"

namespace muster::host {

struct HttpAnswer {
  int status = 0;    // 0: no answer
  std::string body;  // or why there is none

  bool operator==(const HttpAnswer&) const = default;
};

inline HttpAnswer HttpGet(const Address& server, const std::string& path) {
  httplib::Client client(server.host, server.port);
  client.set_read_timeout(60);  // a busy machine is no failure
  const httplib::Result result = client.Get(path);
  if (!result) return {.status = 0, .body = to_string(result.error())};
  return {.status = result->status, .body = result->body};
}

inline void PrintTo(const HttpAnswer& answer, std::ostream* out) { *out << answer.status << " " << answer.body; }

}  // namespace muster::host
