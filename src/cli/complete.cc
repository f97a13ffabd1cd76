#include "cli/complete.h"

#include <algorithm>
#include <map>
#include <optional>

#include "cli/cluster_names.h"

namespace muster::cli {
namespace {

// The words that name the types of objects, as `muster get` takes them.
constexpr std::string_view kTypes[] = {"workloads", "nodes", "sets", "jobs", "quotas", "events"};

void Offer(std::string_view begun, std::string word, std::string help, std::vector<Completion>& out) {
  if (word.starts_with(begun)) out.push_back({.word = std::move(word), .help = std::move(help)});
}

const CommandOption* FindOption(const CommandTree& verb, std::string_view word) {
  for (const CommandOption& option : verb.options) {
    if (std::ranges::find(option.names, word) != option.names.end()) return &option;
  }
  return nullptr;
}

// Where the complete words have led.
struct Place {
  const CommandTree* verb = nullptr;
  const CommandOption* awaits = nullptr;  // an option whose value comes next
  std::vector<std::string> arguments;     // without a dash, of this verb
};

Place Walk(const CommandTree& root, const std::vector<std::string>& words) {
  Place place{.verb = &root, .awaits = nullptr, .arguments = {}};
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "=") continue;  // how bash splits "--output=json"
    if (place.awaits != nullptr) {
      place.awaits = nullptr;
      continue;
    }
    if (word.starts_with('-')) {
      const CommandOption* option = FindOption(*place.verb, word.substr(0, word.find('=')));
      if (option != nullptr && option->takes_value && !word.contains('=')) place.awaits = option;
      continue;
    }
    const auto next = std::ranges::find(place.verb->verbs, word, &CommandTree::name);
    if (next != place.verb->verbs.end()) {
      place.verb = &*next;
      place.arguments.clear();
    } else {
      place.arguments.push_back(word);
    }
  }
  return place;
}

// TYPE, TYPE NAME or TYPE/NAME.
void OfferTargets(const Place& place, const std::string& begun, const std::vector<std::string>& words,
                  const NameSource& names, std::vector<Completion>& out) {
  const auto kind_of = [](std::string_view type) -> std::optional<std::string_view> {
    const auto kind = ParseClusterKind(type);
    return kind ? std::optional(ClusterKindName(*kind)) : std::nullopt;
  };
  if (const size_t slash = begun.find('/'); slash != std::string::npos) {
    const std::string type = begun.substr(0, slash);
    if (const auto kind = kind_of(type)) {
      for (const std::string& name : names(*kind, words)) Offer(begun, type + "/" + name, "", out);
    }
    return;
  }
  if (place.arguments.empty()) {
    for (const std::string_view type : kTypes) Offer(begun, std::string(type), "", out);
    return;
  }
  if (const auto kind = kind_of(place.arguments.front()); kind && !place.arguments.front().contains('/')) {
    for (const std::string& name : names(*kind, words)) Offer(begun, name, "", out);
  }
}

}  // namespace

std::vector<Completion> Complete(const CommandTree& root, const std::vector<std::string>& words,
                                 const NameSource& names) {
  std::vector<Completion> out;
  std::string begun = words.empty() ? "" : words.back();
  if (begun == "=") begun.clear();
  const Place place = Walk(root, words);
  if (place.awaits != nullptr) {
    for (const std::string& choice : place.awaits->choices) Offer(begun, choice, "", out);
    return out;
  }
  if (begun.starts_with('-')) {
    if (const size_t equals = begun.find('='); equals != std::string::npos) {
      const CommandOption* option = FindOption(*place.verb, begun.substr(0, equals));
      if (option == nullptr) return out;
      for (const std::string& choice : option->choices) Offer(begun, begun.substr(0, equals + 1) + choice, "", out);
      return out;
    }
    for (const CommandOption& option : place.verb->options) {
      for (const std::string& name : option.names) {
        if (name.starts_with("--")) Offer(begun, name, option.help, out);
      }
    }
    return out;
  }
  if (place.arguments.empty()) {
    for (const CommandTree& verb : place.verb->verbs) Offer(begun, verb.name, verb.summary, out);
  }
  if (place.verb->names_of == "targets") {
    OfferTargets(place, begun, words, names, out);
  } else if (!place.verb->names_of.empty()) {
    for (const std::string& name : names(place.verb->names_of, words)) Offer(begun, name, "", out);
  }
  return out;
}

std::string_view CompletionScript(std::string_view shell) {
  if (shell == "bash") {
    return R"(# Completion of muster for bash: source <(muster completion bash)
_muster() {
  local line word
  COMPREPLY=()
  while IFS= read -r line; do
    word=${line%%$'\t'*}
    COMPREPLY+=("$word")
  done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _muster muster
)";
  }
  if (shell == "zsh") {
    return R"(#compdef muster
# Completion of muster for zsh: source <(muster completion zsh), after compinit
_muster() {
  local line word
  local -a candidates
  for line in "${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -z $line ]] && continue
    word=${line%%$'\t'*}
    if [[ $line == *$'\t'* ]]; then
      candidates+=("${word//:/\\:}:${line#*$'\t'}")
    else
      candidates+=("${word//:/\\:}")
    fi
  done
  if (( ${#candidates} )); then
    _describe muster candidates
  else
    _files
  fi
}
compdef _muster muster
)";
  }
  return R"(# Completion of muster for fish: muster completion fish | source
function __muster_complete
  set -l words (commandline -opc)
  $words[1] __complete $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c muster -f -n 'test (count (__muster_complete)) -gt 0' -a '(__muster_complete)'
)";
}

}  // namespace muster::cli
