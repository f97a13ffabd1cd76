// BenchProcess: a second process of a measurement, so that its memory and processor time are its own. It is a copy of
// this one, and must be started before there is any thread; it ends with the object. Both sides talk in lines.
//
// Thread-safety: one thread.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"

namespace muster::cli {

// One end of the talk.
class BenchLines {
 public:
  BenchLines(int in, int out);
  // Empty: the other side is gone.
  std::string Read();
  void Write(const std::string& line);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> in_;
  std::unique_ptr<std::FILE, Close> out_;
};

class BenchProcess {
 public:
  // `run` is what the copy does; a status that is not OK is its last line.
  static Result<std::unique_ptr<BenchProcess>> Start(const std::function<Status(BenchLines&)>& run);
  ~BenchProcess();  // kills it if it did not end by itself
  BenchProcess(const BenchProcess&) = delete;
  BenchProcess& operator=(const BenchProcess&) = delete;

  void Write(const std::string& line) { lines_.Write(line); }
  // The next line; UNAVAILABLE with what it said last if it has ended.
  Result<std::string> Read();

 private:
  BenchProcess(pid_t pid, int in, int out) : pid_(pid), lines_(in, out) {}

  const pid_t pid_;
  BenchLines lines_;
};

// Of this process so far.
double ProcessorSeconds();
double ResidentMegabytes();

}  // namespace muster::cli
