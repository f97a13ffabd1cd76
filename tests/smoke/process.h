// Process: a program under test, run for real. Waits are for events (a line, the end), each with a deadline.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace muster::smoke {

constexpr std::chrono::seconds kPatience{60};  // far more than anything takes: a sanitizer on a busy machine is slow

class Process {
 public:
  // Starts `command` (found in PATH if it has no slash) with standard output and error captured.
  explicit Process(std::vector<std::string> command);
  ~Process();  // kills what still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // The next line of standard error that contains `text`. Empty if the program ends or the deadline passes before.
  std::string WaitForErrorLine(const std::string& text);
  void Signal(int number) const;
  pid_t pid() const { return pid_; }
  // Whether it has closed its outputs, as a program does that ends. Takes in what it has written so far, which keeps a
  // talkative one from waiting for its reader.
  bool Ended();
  // Waits for the end: the exit code, or 128 + the number of the signal that ended it. -1 after the deadline.
  int Wait();

  // What it wrote; complete after Wait.
  const std::string& out() const { return out_.text; }
  const std::string& err() const { return err_.text; }

 private:
  struct Stream {
    int fd = -1;
    std::string text;
    bool open = true;
    void ReadSome();
  };
  // Reads whatever comes next on either stream. False when both are closed or the deadline has passed.
  bool Pump(std::chrono::steady_clock::time_point deadline);

  pid_t pid_ = -1;
  bool reaped_ = false;
  Stream out_;
  Stream err_;
  size_t searched_ = 0;  // how much of err_.text WaitForErrorLine has passed
};

}  // namespace muster::smoke
