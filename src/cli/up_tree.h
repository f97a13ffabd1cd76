// UpTree: what `muster up` and its demonstration share: one data directory, ports that are looked at before anything
// starts, children with logs, and a loop that shows how they are until Ctrl-C.
//
// Thread-safety: one thread.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "host/children.h"
#include "host/system_clock.h"

namespace muster::cli {

class UpTree {
 public:
  // Of the whole stop, longer than the tree waits for its children.
  static constexpr Duration kSignalPatience = 60s;

  struct Port {
    std::string flag;
    std::string listen;
    std::string usual;  // its default
  };

  // `verb` is what started it, with what else ThisCommand has to repeat: "up --demo --machines 60".
  UpTree(std::string verb, std::filesystem::path dir, std::vector<Port> ports, bool plain);

  const std::filesystem::path& dir() const { return dir_; }
  bool terminal() const { return terminal_; }
  // What starts it again where it was, as a shell takes it: this program, with the flags that differ from their
  // defaults.
  std::string ThisCommand() const;
  std::vector<host::ChildView> children() const { return children_.View(); }

  // Before anything starts: children would talk to whoever holds one of the ports.
  Status CheckPorts() const;
  // Makes directories below the data directory.
  Status MakeDirectories(const std::vector<std::string>& names) const;
  // A child with its log in logs/<name>.log.
  Status StartChild(const std::string& name, std::vector<std::string> arguments);
  // Until the stop, until `lasting` is over, or until a child will not come up. `tick` is called a few times a second;
  // `show` every second on a terminal, else every five.
  Status Watch(const std::stop_token& stop, std::optional<Duration> lasting, const std::function<Status()>& tick,
               const std::function<void()>& show);
  // Prints a screen over the last one, with `foot` below; `draw` gets width, height and whether to use colour.
  void PrintScreen(const std::function<std::string(size_t width, size_t height, bool colour)>& draw,
                   const std::string& foot) const;
  // Does what a child that did not end by itself has left undone, within this time; nothing: such a child has nothing.
  using WindUp = std::function<std::optional<Status>(const std::string& child, Duration patience)>;
  // Ends the children, the last first. An error if one of them could not end what it was to end, nor `wind_up` for it.
  Status Stop(const WindUp& wind_up = {});

 private:
  Status CheckChildren() const;

  const std::string verb_;
  const std::filesystem::path dir_;
  const std::vector<Port> ports_;
  const bool terminal_;
  const host::SystemClock clock_;
  host::Children children_;
  std::mutex mu_;
  std::condition_variable_any stopped_;
};

// The client's form of an address to listen on.
std::string Target(const std::string& listen);
// Where `muster up` keeps everything unless told: under the user's state directory.
std::filesystem::path DefaultUpDir(bool demo);
// Where a part of `muster up` ("scheduler", "shard") that works in `dir` writes its journal.
std::filesystem::path UpJournal(const std::filesystem::path& dir, const std::string& part);
// Replaces the file as a whole.
Status WriteWhole(const std::filesystem::path& path, std::string_view text);
// By its real name, so that its children can be told apart from others.
std::filesystem::path ThisProgram();
// --for, if it is given.
Result<std::optional<Duration>> ParseLasting(const std::string& text);

}  // namespace muster::cli
