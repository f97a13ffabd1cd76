// DockerApi: the Docker Engine HTTP API on a Unix socket, as dockerd and podman's service offer it. It knows requests,
// answers and errors; what containers mean is container_runtime.h's business.
//
// Thread-safety: all functions may be called from any thread; each call has a connection of its own and blocks for its
// timeout at the most.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"

namespace muster::runtime {

struct DockerReply {
  int32_t status = 0;  // of HTTP
  std::string body;    // at most 16 MiB; a longer one is an error of the call
};

// What the engine says is wrong, from the body of an error.
std::string DockerMessage(const DockerReply& reply);

// `text` as a part of a path or a query.
std::string UrlEscape(std::string_view text);

class DockerApi {
 public:
  explicit DockerApi(std::string socket) : socket_(std::move(socket)) {}

  const std::string& socket() const { return socket_; }

  // UNAVAILABLE if the socket does not answer, DEADLINE_EXCEEDED after the timeout. An answer with an HTTP error is a
  // reply: the caller knows what it means.
  Result<DockerReply> Get(const std::string& path, Duration timeout) const { return Send("GET", path, "", timeout); }
  Result<DockerReply> Post(const std::string& path, const std::string& json, Duration timeout) const {
    return Send("POST", path, json, timeout);
  }
  Result<DockerReply> Delete(const std::string& path, Duration timeout) const {
    return Send("DELETE", path, "", timeout);
  }

  // Gives each piece of a long answer to `piece`, until it returns false, the engine ends the answer, or `closing`
  // (looked at about once a second) says so. NOT_FOUND for a 404.
  Status Stream(const std::string& path, const std::function<bool(std::string_view)>& piece,
                const std::function<bool()>& closing) const;

 private:
  Result<DockerReply> Send(const char* method, const std::string& path, const std::string& json,
                           Duration timeout) const;

  const std::string socket_;
};

}  // namespace muster::runtime
