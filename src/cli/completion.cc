// `muster completion`: prints the script that completes muster's words in a shell. The scripts call
// `muster __complete WORDS`, which main answers before the words are parsed (RunCompletion).
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/ask.h"
#include "cli/cluster.h"
#include "cli/complete.h"
#include "cli/table.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

// The value that the words give an option.
std::string ValueOf(const std::vector<std::string>& words, const std::string& option, std::string otherwise) {
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == option) return words[i + 1] == "=" && i + 2 < words.size() ? words[i + 2] : words[i + 1];
    if (words[i].starts_with(option + "=")) return words[i].substr(option.size() + 1);
  }
  return otherwise;
}

std::vector<std::string> MachineNames(const ClusterAccess& access, const std::vector<std::string>& words) {
  ShardFlags flags;
  flags.shard = ValueOf(words, "--shard", DefaultShard());
  const auto shard = access.shard ? access.shard(flags) : Error(Code::kUnavailable, "no shard");
  if (!shard) return {};
  const auto reply = AskShard(**shard, contract::ListMachines{});
  if (!reply) return {};
  std::vector<std::string> names;
  for (const contract::MachineView& view : std::get<contract::MachinesListed>(*reply).machines) {
    names.push_back(view.machine->id);
  }
  return names;
}

// A name that a shell could not take as a word of its own is left out.
bool IsPlain(const std::string& name) {
  return Printable(name) == name && name.find_first_of(" \t") == std::string::npos;
}

std::vector<std::string> NamesOf(const ClusterAccess& access, std::string_view kind,
                                 const std::vector<std::string>& words) {
  if (kind == "machine") return MachineNames(access, words);
  ClusterFlags flags;
  flags.scheduler = ValueOf(words, "--scheduler", DefaultScheduler());
  auto session = ClusterSession::Open(access, flags);
  if (!session) return {};
  session->NoteNothing();  // a shell shows what is completed, and nothing besides
  std::vector<std::string> names;
  if (kind == "workload") {
    if (const auto listed = ListAll(*session, contract::ListWorkloads{})) {
      for (const auto& view : listed->workloads) names.push_back(view.workload);
    }
  } else if (kind == "node") {
    if (const auto listed = ListAll(*session, contract::ListNodes{})) {
      for (const auto& view : listed->nodes) names.push_back(view.node);
    }
  } else if (kind == "set") {
    if (const auto listed = ListAll(*session, contract::ListSets{})) {
      for (const auto& view : listed->sets) names.push_back(view.spec.name);
    }
  } else if (kind == "quota") {
    if (const auto listed = session->Ask<contract::QuotasListed>(contract::ListQuotas{})) {
      for (const auto& view : listed->quotas) names.push_back(view.quota.tenant);
    }
  }
  return names;
}

}  // namespace

void RunCompletion(const CommandTree& tree, const std::vector<std::string>& words, const ClusterAccess& access) {
  const NameSource names = [&](std::string_view kind, const std::vector<std::string>& given) {
    return NamesOf(access, kind, given);
  };
  for (const Completion& completion : Complete(tree, words, names)) {
    if (!IsPlain(completion.word)) continue;
    Print(completion.help.empty() ? completion.word + "\n" : fmt::format("{}\t{}\n", completion.word, completion.help));
  }
}

void AddCompletion(CommandLine& app) {
  Verb verb = app.AddVerb("completion", "Print the script that completes muster's words in bash, zsh or fish");
  const auto add = [&](const std::string& name, const std::string& example) {
    verb.AddVerb(name, fmt::format("For {}", name)).Example(example).Run([name]() -> Result<int> {
      Print(CompletionScript(name));
      return kOk;
    });
  };
  verb.Example("muster completion bash > ~/.local/share/bash-completion/completions/muster");
  add("bash", "source <(muster completion bash)");
  add("zsh", "source <(muster completion zsh)");
  add("fish", "muster completion fish | source");
}

}  // namespace muster::cli
