// CommandLine and Verb: what the verbs of `muster` are made of. One verb is one file that declares its options here and
// says what to run; the parser behind it is seen by command_line.cc alone, because it is slow to compile.
//
// Exit codes, the same for every verb: 0 done; 1 it could not be done; 2 the command line or an input file is wrong. A
// verb may return others and documents them. Errors are one sentence on standard error, "muster: ...".
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "cli/command_tree.h"
#include "host/build_info.h"

namespace CLI {
class App;
}

namespace muster::cli {

constexpr int kOk = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;

// One verb while it is declared. Copies mean the same verb. Each variable handed in lives until Main returns, holds the
// default, and is set before the action runs. Names are written as on the command line: "--listen", "-o,--output".
class Verb {
 public:
  Verb& Flag(std::string name, bool& into, std::string help);
  Verb& Option(std::string name, std::string& into, std::string help);
  Verb& Option(std::string name, int64_t& into, std::string help);
  Verb& Option(std::string name, uint64_t& into, std::string help);
  Verb& Option(std::string name, double& into, std::string help);
  Verb& Option(std::string name, std::vector<std::string>& into, std::string help);  // may be given several times
  Verb& Option(std::string name, std::pair<std::string, std::string>& into, std::string help);  // takes two words
  // A file or directory; an empty name is refused, so that an unset shell variable is not taken for "none".
  Verb& Path(std::string name, std::string& into, std::string help);
  // One of `allowed`; anything else is refused with the list.
  Verb& Choice(std::string name, std::string& into, std::vector<std::string> allowed, std::string help);
  // A required argument without a dash, in the order of the calls.
  Verb& Argument(std::string name, std::string& into, std::string help);
  // The same, not required; after those that are.
  Verb& OptionalArgument(std::string name, std::string& into, std::string help);
  // Any number of words without a dash, none among them. After every Argument.
  Verb& Arguments(std::string name, std::vector<std::string>& into, std::string help);
  // What the arguments name, for completion: "targets" (TYPE/NAME), or the names of all of a kind: "workload", "node",
  // "set", "quota", "machine".
  Verb& NamesOf(std::string what);
  // A flag that makes the verb do this, and nothing else of what it does.
  Verb& Instead(std::string name, std::string help, std::function<int()> action);
  // Adds --config FILE: YAML whose keys are the verb's options without their dashes. An option that is not on the
  // command line is taken from the environment (--listen of `muster shard` from MUSTER_SHARD_LISTEN), then from the
  // file.
  Verb& Configurable();
  // A line under "Examples:" in the help; every verb has at least one.
  Verb& Example(const std::string& line);
  // A verb below this one, as in `muster fleet machines`.
  Verb AddVerb(const std::string& name, std::string summary);
  // The exit code of a wrong command line or input file, for a verb whose 2 means something else.
  Verb& UsageCode(int code);
  // The exit code, or an error: INVALID_ARGUMENT exits with 2 unless UsageCode says otherwise, any other with 1.
  void Run(std::function<Result<int>()> action);

 private:
  friend class CommandLine;
  explicit Verb(CLI::App& app) : app_(&app) {}
  CLI::App* app_;
};

class CommandLine {
 public:
  explicit CommandLine(host::BuildInfo build);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Verb AddVerb(const std::string& name, std::string summary);
  const host::BuildInfo& build() const { return build_; }
  CommandTree Tree() const;
  // Answers `muster __complete WORDS`, which is no verb: a word of it may be anything.
  void OnComplete(std::function<void(const CommandTree&, const std::vector<std::string>& words)> complete);
  // Parses, runs one verb and returns the exit code of the process. Lets no exception out.
  int Main(int argc, const char* const* argv);

 private:
  const host::BuildInfo build_;
  const std::shared_ptr<CLI::App> app_;
  std::function<void(const CommandTree&, const std::vector<std::string>& words)> complete_;
};

// What a flag is set to by a word behind it, as in --dry-run=no; nothing: the command line refuses such a word.
std::optional<bool> SwitchValue(const std::string& word);

// To standard output. A failure to write is found by Main and becomes exit code 1.
void Print(std::string_view text);

// Which build this program is; defined in the generated version.cc.
host::BuildInfo ThisBuild();

}  // namespace muster::cli
