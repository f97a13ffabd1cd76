// ShimProcess: a running shim, by a descriptor that stands for that very process, whoever started it.
//
// Thread-safety: functions of one object from one thread at a time.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/status.h"
#include "base/time.h"
#include "runtime/process_files.h"

namespace muster::runtime {

class ShimProcess {
 public:
  // Starts the program for a directory and waits until the workload runs. The shim has a session of its own and no
  // descriptor of this process. UNAVAILABLE if it cannot be started, if the workload cannot, or if the shim has said
  // nothing for `patience`: the files say what it did.
  static Result<ShimProcess> Start(const std::string& program, const std::string& directory, Duration patience);
  // The live shim of these files; none if there is none.
  static std::optional<ShimProcess> Find(const ProcessFiles& files);

  ShimProcess(ShimProcess&& other) noexcept;
  ShimProcess& operator=(ShimProcess&& other) noexcept;
  ~ShimProcess();

  // Readable once it has ended.
  int descriptor() const { return fd_; }
  // The shim stops its workload, with SIGKILL after the grace. Nothing happens if it has ended.
  void Stop(Duration grace) const;
  // Lets the kernel forget it, if this process has started it and it has ended.
  void Reap() const;

 private:
  ShimProcess(pid_t pid, int fd) : pid_(pid), fd_(fd) {}

  pid_t pid_ = 0;
  int fd_ = -1;
};

}  // namespace muster::runtime
