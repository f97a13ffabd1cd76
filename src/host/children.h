// Children: programs this process starts, watches and starts again when they die.
//
// A child that dies is started again after a pause that doubles from `first_pause` to `longest_pause`, and begins anew
// once a child has lived for `settled`. Standard output and error of each go to a log file. Stop ends the children with
// SIGTERM. If this process is killed, the kernel kills them too: none of them takes that for a wish to wind up its
// work.
//
// Thread-safety: one thread, which must live as long as the children: the kernel tells them when it ends.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/time.h"

namespace muster::host {

struct ChildOptions {
  std::string name;
  std::vector<std::string> arguments;  // after the program's name
  std::filesystem::path log;           // appended to
};

struct ChildView {
  std::string name;
  pid_t pid = 0;         // 0: not running now
  int deaths = 0;        // since Start
  int early_deaths = 0;  // in a row, before it had settled
  std::string last_end;  // "exit code 1", "signal 9"; empty while the first one lives
};

class Children {
 public:
  struct Options {
    std::filesystem::path program;  // of all children
    Duration first_pause = 500ms;
    Duration longest_pause = 10s;
    Duration settled = 5s;
  };

  // The clock outlives the children.
  Children(Options options, const Clock& clock) : options_(std::move(options)), clock_(clock) {}
  ~Children() { Stop(5s); }
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  // Starts one more child. An error if the system refuses, or if its log cannot be opened.
  Status Start(ChildOptions child);
  // Sees who died, and starts again who is due. Call it a few times a second.
  void Poll();
  // Tells all to end, the last first, waits for `patience` and kills what is left then. Idempotent.
  void Stop(Duration patience);

  std::vector<ChildView> View() const;
  // The last line of a child's log, for a message; of a long one its end.
  static std::string LastLine(const std::filesystem::path& log);

 private:
  struct Child {
    ChildOptions options;
    ChildView view;
    MonoTime started;
    std::optional<MonoTime> due;  // when it is started again
  };
  Status Spawn(Child& child);
  // Whether it has ended by now.
  bool Reap(Child& child);

  const Options options_;
  const Clock& clock_;
  std::vector<Child> children_;
  bool stopped_ = false;
};

}  // namespace muster::host
