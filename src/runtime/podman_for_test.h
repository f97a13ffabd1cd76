// Podman: a service of podman on a socket of its own, with storage of its own in a temporary directory and one image,
// `localhost/busybox`, imported from a tar that is made here. No registry is needed.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/status.h"
#include "host/temp_dir_for_test.h"

namespace muster::runtime {

class Podman {
 public:
  static constexpr const char* kImage = "localhost/busybox:latest";

  // NOT_FOUND naming the program that is missing.
  static Result<std::unique_ptr<Podman>> Start();
  ~Podman();  // ends the service and removes every container
  Podman(const Podman&) = delete;
  Podman& operator=(const Podman&) = delete;

  const std::string& socket() const { return socket_; }
  // Another image of the same files, with a line of a Dockerfile, such as "USER 1234".
  Status AddImage(const std::string& name, const std::string& change);
  // The engine goes away and comes back; containers run on.
  void StopService();
  Status StartService();

 private:
  Podman() = default;
  Status Prepare();
  // Runs podman with this storage; its output goes to a file that the error quotes.
  Status Run(const std::string& arguments);
  std::string Command() const;

  host::TempDir dir_;
  std::string socket_;
  pid_t service_ = 0;
};

}  // namespace muster::runtime
