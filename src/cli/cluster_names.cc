#include "cli/cluster_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "model/names.h"
#include "model/text_scalars.h"

namespace muster::cli {
namespace {

constexpr auto kKinds = std::to_array<model::NameRow<ClusterKind>>({{ClusterKind::kWorkload, "workload"},
                                                                    {ClusterKind::kWorkload, "workloads"},
                                                                    {ClusterKind::kWorkload, "wl"},
                                                                    {ClusterKind::kNode, "node"},
                                                                    {ClusterKind::kNode, "nodes"},
                                                                    {ClusterKind::kNode, "no"},
                                                                    {ClusterKind::kSet, "set"},
                                                                    {ClusterKind::kSet, "sets"},
                                                                    {ClusterKind::kSet, "job"},
                                                                    {ClusterKind::kSet, "jobs"},
                                                                    {ClusterKind::kQuota, "quota"},
                                                                    {ClusterKind::kQuota, "quotas"},
                                                                    {ClusterKind::kEvent, "event"},
                                                                    {ClusterKind::kEvent, "events"},
                                                                    {ClusterKind::kEvent, "ev"}});
constexpr std::string_view kUse = "use one of workloads, nodes, sets, jobs, quotas, events";

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// The parts between `separator`s that stand outside of parentheses.
std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size()) {
      depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
      if (text[i] != separator || depth > 0) continue;
    }
    parts.push_back(Trimmed(text.substr(start, i - start)));
    start = i + 1;
  }
  return parts;
}

// "set/web"
Result<ClusterTarget> ParseSlashed(const std::string& word) {
  const size_t slash = word.find('/');
  if (slash == std::string::npos) {
    return InvalidArgument(
        fmt::format("{}: write every word as TYPE/NAME, or the type once before the names", model::Quoted(word)));
  }
  MUSTER_ASSIGN_OR_RETURN(const ClusterKind kind, ParseClusterKind(word.substr(0, slash)));
  std::string name = word.substr(slash + 1);
  if (name.empty()) return InvalidArgument(fmt::format("{}: the name is missing", model::Quoted(word)));
  return ClusterTarget{kind, std::move(name)};
}

// "zone in (a,b)", "zone notin (a,b)".
std::optional<model::Requirement> ParseSetTerm(std::string_view term) {
  for (const auto& [word, op] :
       {std::pair(" in ", model::Operator::kIn), std::pair(" notin ", model::Operator::kNotIn),
        std::pair(" in(", model::Operator::kIn), std::pair(" notin(", model::Operator::kNotIn)}) {
    const size_t at = term.find(word);
    if (at == std::string_view::npos || !term.ends_with(')')) continue;
    const size_t open = term.find('(', at);
    if (open == std::string_view::npos) continue;
    model::Requirement requirement{.key = std::string(Trimmed(term.substr(0, at))), .op = op};
    for (const std::string_view value : Split(term.substr(open + 1, term.size() - open - 2), ',')) {
      requirement.values.emplace_back(value);
    }
    return requirement;
  }
  return std::nullopt;
}

model::Requirement ParseTerm(std::string_view term) {
  if (auto requirement = ParseSetTerm(term)) return *std::move(requirement);
  if (const size_t at = term.find("!="); at != std::string_view::npos) {
    return {
        std::string(Trimmed(term.substr(0, at))), model::Operator::kNotIn, {std::string(Trimmed(term.substr(at + 2)))}};
  }
  if (const size_t at = term.find('='); at != std::string_view::npos) {
    const size_t value = term.substr(at).starts_with("==") ? at + 2 : at + 1;
    return {std::string(Trimmed(term.substr(0, at))), model::Operator::kIn, {std::string(Trimmed(term.substr(value)))}};
  }
  if (term.starts_with('!')) return {std::string(Trimmed(term.substr(1))), model::Operator::kDoesNotExist, {}};
  return {std::string(term), model::Operator::kExists, {}};
}

}  // namespace

std::string_view ClusterKindName(ClusterKind kind) { return model::NameOf(kKinds, kind); }

Result<ClusterKind> ParseClusterKind(std::string_view word) {
  std::vector<std::string> known;
  for (const auto& row : kKinds) {
    if (model::SameName(row.name, word, model::LetterCase::kAny)) return row.value;
    known.emplace_back(row.name);
  }
  const std::string nearest = model::NearestName(word, known);
  return InvalidArgument(nearest.empty()
                             ? fmt::format("unknown type {}: {}", model::Quoted(word), kUse)
                             : fmt::format("unknown type {}, did you mean {}?", model::Quoted(word), nearest));
}

Result<std::vector<ClusterTarget>> ParseTargets(const std::vector<std::string>& words) {
  if (words.empty()) return InvalidArgument(fmt::format("the type is missing: {}", kUse));
  std::vector<ClusterTarget> targets;
  if (std::ranges::any_of(words, [](const std::string& word) { return word.contains('/'); })) {
    for (const std::string& word : words) {
      MUSTER_ASSIGN_OR_RETURN(ClusterTarget target, ParseSlashed(word));
      targets.push_back(std::move(target));
    }
    return targets;
  }
  for (const std::string_view type : Split(words.front(), ',')) {
    MUSTER_ASSIGN_OR_RETURN(const ClusterKind kind, ParseClusterKind(type));
    if (words.size() == 1) targets.push_back({kind, ""});
    for (size_t i = 1; i < words.size(); ++i) {
      if (words[i].empty()) return InvalidArgument("a name is empty");
      targets.push_back({kind, words[i]});
    }
  }
  return targets;
}

Result<std::vector<ClusterTarget>> ParseNamedTargets(const std::vector<std::string>& words) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<ClusterTarget> targets, ParseTargets(words));
  for (const ClusterTarget& target : targets) {
    if (target.name.empty()) {
      return InvalidArgument(
          fmt::format("the name is missing: write {0}/NAME or {0} NAME", ClusterKindName(target.kind)));
    }
  }
  return targets;
}

Result<std::string> ParseSetName(const std::vector<std::string>& words) {
  if (words.size() == 1 && !words[0].contains('/')) return words[0];
  MUSTER_ASSIGN_OR_RETURN(const std::vector<ClusterTarget> targets, ParseNamedTargets(words));
  if (targets.size() != 1 || targets[0].kind != ClusterKind::kSet) {
    return InvalidArgument("write one set: set/NAME");
  }
  return targets[0].name;
}

Result<std::vector<std::string>> ParseNames(const std::vector<std::string>& words, ClusterKind kind) {
  std::vector<std::string> names;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].contains('/')) {
      MUSTER_ASSIGN_OR_RETURN(const ClusterTarget target, ParseSlashed(words[i]));
      if (target.kind != kind) {
        return InvalidArgument(fmt::format("{} is no {}", model::Quoted(words[i]), ClusterKindName(kind)));
      }
      names.push_back(target.name);
    } else if (const auto type = ParseClusterKind(words[i]); i > 0 || words.size() == 1 || !type || *type != kind) {
      if (words[i].empty()) return InvalidArgument("a name is empty");
      names.push_back(words[i]);
    }
  }
  if (names.empty()) return InvalidArgument(fmt::format("the name of a {} is missing", ClusterKindName(kind)));
  return names;
}

Result<std::vector<model::Requirement>> ParseSelector(std::string_view text) {
  std::vector<model::Requirement> selector;
  if (Trimmed(text).empty()) return selector;
  for (const std::string_view term : Split(text, ',')) {
    selector.push_back(ParseTerm(term));
    const bool keyless = selector.back().key.empty();
    if (const Status status = model::Validate(selector.back()); !status.ok()) {
      return InvalidArgument(fmt::format("selector {}: {}; write it as app=web, tier!=db, zone in (a,b), gpu or !gpu",
                                         model::Quoted(term), keyless ? "the key is missing" : status.message()));
    }
  }
  return selector;
}

bool Selects(const std::vector<model::Requirement>& selector, const std::map<std::string, std::string>& labels) {
  return std::ranges::all_of(selector, [&](const model::Requirement& requirement) {
    const auto label = labels.find(requirement.key);
    return model::Matches(requirement,
                          label == labels.end() ? std::nullopt : std::optional<std::string_view>(label->second));
  });
}

}  // namespace muster::cli
