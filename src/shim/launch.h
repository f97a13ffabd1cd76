// Launch: the files through which an agent and the shim of one workload speak. Both may die at any moment; each file is
// written all or nothing (record_file.h).
//
//   launch      by the agent, before the shim is started: what to run
//   shim.lock   locked by the shim while it lives (fcntl, F_SETLK: the kernel tells its process id)
//   started     by the shim, once the workload runs
//   exit        by the shim, once nothing of the workload runs any more
//   log, log.1  the output (log_file.h)
//   work/       the working directory of the workload
//
// A launch has a number. The shim runs a launch only if it gets the lock and neither `started` nor `exit` has that
// number: a launch runs at most once, however often a shim is started for it.
#pragma once

#include <csignal>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"

namespace muster::shim {

inline constexpr std::string_view kLaunchFile = "launch";
inline constexpr std::string_view kLockFile = "shim.lock";
inline constexpr std::string_view kStartedFile = "started";
inline constexpr std::string_view kExitFile = "exit";
inline constexpr std::string_view kLogFile = "log";
inline constexpr std::string_view kWorkDir = "work";

// The descriptor on which the shim says how the start went: kStartOk or a sentence. It is closed then.
inline constexpr int kReportFd = 3;
inline constexpr std::string_view kStartOk = "started";

// The signal with which an agent tells the shim to stop its workload; its value is the grace in milliseconds. A
// real-time signal, because the kernel keeps each one that is sent.
inline int StopSignal() { return SIGRTMIN; }

// The form of the records. A shim outlives the build of the agent that started it: fields are only ever added, with a
// new number, and an agent reads every number up to its own.
inline constexpr uint64_t kLayout = 1;

struct Launch {
  uint64_t layout = kLayout;
  std::string workload;
  uint64_t number = 0;
  std::string revision;
  std::vector<std::string> command;
  std::vector<std::string> environment;  // "NAME=value", all of it
  bool change_user = false;              // to the user and group below; false: those of the agent
  uint32_t user = 0;
  uint32_t group = 0;
  std::vector<std::string> cgroup_procs;  // files into which a process writes itself
  std::string oom_file;                   // has a line "oom_kill N"; empty: not known
  int64_t grace_ms = 30'000;              // between SIGTERM and SIGKILL, unless the one who stops says another
  int64_t log_bytes = 4 << 20;            // of one log file
  int32_t log_files = 2;

  bool operator==(const Launch&) const = default;
  MUSTER_FIELDS(Launch, layout, workload, number, revision, command, environment, change_user, user, group,
                cgroup_procs, oom_file, grace_ms, log_bytes, log_files)
};

struct Started {
  uint64_t layout = kLayout;
  uint64_t launch = 0;
  int32_t shim = 0;     // process ids
  int32_t process = 0;  // leads its session and its process group
  int64_t at_ns = 0;    // since 1970

  MUSTER_FIELDS(Started, layout, launch, shim, process, at_ns)
};

struct Exit {
  uint64_t layout = kLayout;
  uint64_t launch = 0;
  int32_t code = -1;        // of a process that has exited; -1: it was never started, or a signal ended it
  int32_t signal = 0;       // that ended it; 0: none
  bool oom_killed = false;  // the kernel killed in its cgroup, for lack of memory
  bool stopped = false;     // the shim was asked to stop it before it ended
  std::string error;        // why it could not be started; empty: it was
  int64_t started_ns = 0;
  int64_t ended_ns = 0;

  MUSTER_FIELDS(Exit, layout, launch, code, signal, oom_killed, stopped, error, started_ns, ended_ns)
};

}  // namespace muster::shim
