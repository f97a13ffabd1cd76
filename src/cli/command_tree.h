// CommandTree: what the command line knows of itself, as plain values: for shell completion, and for the tests that
// walk all verbs.
#pragma once

#include <string>
#include <vector>

namespace muster::cli {

struct CommandOption {
  std::vector<std::string> names;  // "-o", "--output"
  std::string help;
  bool takes_value = false;
  std::vector<std::string> choices;  // empty: any value
};

struct CommandTree {
  std::string name;
  std::string summary;
  std::vector<CommandOption> options;
  std::vector<std::string> arguments;  // names of those without a dash
  std::string names_of;                // what the arguments name, for completion; empty: nothing that can be listed
  std::vector<std::string> examples;
  bool runs = false;  // it does something by itself
  std::vector<CommandTree> verbs;
};

}  // namespace muster::cli
