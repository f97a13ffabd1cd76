// Signals: how a process is told to end. SIGTERM and SIGINT ask for a clean stop. A later one ends the process at once
// with status 128 + signal, for a person who will not wait; one that follows within `repeat_span` is taken for the same
// request, because timeout(1) and terminals signal a process and its group. SIGHUP, of a terminal that is closed, asks
// for a clean stop too, unless it was ignored from outside (nohup); no person waits there, so it cuts no stop short. A
// stop that a signal asked for and that takes longer than `stop_patience` is given up with status 1: a disk may never
// answer. SIGPIPE is ignored: a closed peer is an error of write().
//
// Construct it first in main, before any other thread exists: threads inherit the blocked signals. One per process at a
// time. Programs started by this one inherit the mask too and must reset it.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <condition_variable>
#include <csignal>
#include <mutex>
#include <stop_token>
#include <string_view>
#include <thread>

#include "base/time.h"

namespace muster::host {

class Signals {
 public:
  struct Options {
    Duration repeat_span = 500ms;
    Duration stop_patience = 10s;
  };

  Signals() : Signals(Options{}) {}
  explicit Signals(Options options);
  ~Signals();  // gives the signals their former effect back
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // Blocks until a signal or RequestStop; returns "SIGTERM", "SIGINT", "SIGHUP" or the reason given to RequestStop.
  // Afterwards returns the same at once.
  std::string_view WaitForStop();
  // Stops when WaitForStop would return: for work that must not hold the stop up.
  std::stop_token stop_token() const { return stop_.get_token(); }
  // Asks for the stop from inside, when a part that the role cannot live without has failed. The first request counts.
  void RequestStop(std::string_view literal_reason);

 private:
  void Watch();

  const Options options_;
  sigset_t watched_;
  sigset_t former_mask_;
  void (*former_pipe_)(int);
  int signal_fd_;
  int quit_fd_;  // readable when the destructor wants the thread to end
  std::mutex mu_;
  std::condition_variable stopped_;
  std::string_view reason_;  // guarded by mu_: empty until the stop is asked for
  std::stop_source stop_;
  std::jthread thread_;
};

}  // namespace muster::host
