// OwnEtcd: an etcd server of this process, for checks that need a real one. One member, on free ports of the loopback
// interface, with its data in a temporary directory; both go with the object. If this process is killed, the kernel
// ends the server.
//
// Thread-safety: one thread, which lives as long as the object.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/status.h"
#include "host/children.h"
#include "host/system_clock.h"
#include "host/temporary_dir.h"

namespace muster::cli {

class OwnEtcd {
 public:
  // Starts it and waits until it answers. NOT_FOUND, with what to install, if there is no program etcd in PATH;
  // UNAVAILABLE, with the last line of its log, if it ends or does not answer.
  static Result<std::unique_ptr<OwnEtcd>> Start();
  ~OwnEtcd() { children_.Stop(10s); }
  OwnEtcd(const OwnEtcd&) = delete;
  OwnEtcd& operator=(const OwnEtcd&) = delete;

  // "etcd://127.0.0.1:41234"
  const std::string& url() const { return url_; }

 private:
  OwnEtcd(std::unique_ptr<host::TemporaryDir> dir, const std::string& program)
      : dir_(std::move(dir)), children_({.program = program}, clock_) {}
  Status WaitUntilItAnswers();

  const std::unique_ptr<host::TemporaryDir> dir_;
  const host::SystemClock clock_;
  host::Children children_;
  std::string url_;
};

}  // namespace muster::cli
