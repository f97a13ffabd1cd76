// Shell completion: what may stand at the end of a command line. The scripts of bash, zsh and fish
// (`muster completion SHELL`) ask the program itself, so that they never lag behind it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cli/command_tree.h"

namespace muster::cli {

struct Completion {
  std::string word;
  std::string help;  // may be empty

  bool operator==(const Completion&) const = default;
};

// The names of all objects of a kind ("workload", "node", "set", "quota", "machine"). Nothing if they cannot be had.
using NameSource =
    std::function<std::vector<std::string>(std::string_view kind, const std::vector<std::string>& words)>;

// The last of `words`, which may be empty, is what is being written; those before it are complete. Nothing: the shell
// may offer files.
std::vector<Completion> Complete(const CommandTree& root, const std::vector<std::string>& words,
                                 const NameSource& names);

// The script of a shell: "bash", "zsh" or "fish".
std::string_view CompletionScript(std::string_view shell);

}  // namespace muster::cli
