// `muster decide`: decision cycles over a case file.
#include "engine/reference/decide.h"

#include <fmt/format.h>

#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "cli/verbs.h"
#include "engine/case_explain.h"
#include "engine/case_file.h"
#include "engine/case_print.h"
#include "engine/case_run.h"
#include "engine/fast/amounts.h"
#include "engine/fast/follower.h"
#include "host/text_file.h"

namespace muster::cli {
namespace {

struct Options {
  std::string file;
  std::string output = "table";
  std::string engine = "fast";
  int64_t cycles = 0;  // 0: as many as the file says
  bool machines = false;
  std::pair<std::string, std::string> explain;
};

Result<engine::Case> ReadCaseFile(const std::string& path) {
  if (path.empty()) return InvalidArgument("say which file with -f FILE; - is standard input");
  const Result<std::string> text = host::ReadTextFile(path);
  if (!text) return InvalidArgument(text.error().message());
  return engine::ReadCase(*text, host::SourceName(path));
}

engine::DecideFunction EngineNamed(const std::string& name) {
  if (name == "fast") return engine::fast::Decide;
  MUSTER_CHECK(name == "reference", "--engine lets nothing else pass");
  return engine::reference::Decide;
}

// The fast engine has room for so many resources and no more.
Status CheckRoom(const std::string& name, const engine::Case& input) {
  std::set<std::string_view> resources;
  const auto add = [&](const model::Resources& amounts) {
    for (const auto& [resource, amount] : amounts.entries()) resources.insert(resource);
  };
  for (const engine::CaseStep& step : input.steps) {
    for (const engine::CaseMachine& machine : step.add) add(machine.machine.EffectiveAllocatable());
  }
  if (name != "fast" || resources.size() <= engine::fast::kMaxMachineDimensions) return {};
  return {Code::kInvalidArgument,
          fmt::format(
              "the machines of the case have {} resources and the fast engine has room for {}: use --engine reference",
              resources.size(), engine::fast::kMaxMachineDimensions)};
}

Result<int> Explain(const Options& options, const engine::Case& input, int32_t cycles) {
  const auto& [what, name] = options.explain;
  if (what != "need" && what != "machine") {
    return InvalidArgument(fmt::format("--explain {}: write need NAME or machine ID", what));
  }
  Result<std::string> answer;
  engine::RunCase(input, EngineNamed(options.engine), cycles, [&](const engine::CaseCycle& cycle) {
    if (cycle.number != cycles) return;
    answer = what == "need" ? engine::ExplainNeed(cycle, name) : engine::ExplainMachine(cycle, name);
  });
  if (!answer) return std::unexpected(answer.error());
  Print(*answer);
  return kOk;
}

Result<int> Decide(const Options& options) {
  MUSTER_ASSIGN_OR_RETURN(const engine::Case input, ReadCaseFile(options.file));
  const engine::CaseLimits limits;
  if (options.cycles < 0 || options.cycles > limits.max_cycles) {
    return InvalidArgument(fmt::format("--cycles: write a number from 1 to {}", limits.max_cycles));
  }
  const int32_t cycles = options.cycles == 0 ? input.cycles : static_cast<int32_t>(options.cycles);
  if (Status status = CheckRoom(options.engine, input); !status.ok()) return std::unexpected(std::move(status));
  if (!options.explain.first.empty()) return Explain(options, input, cycles);
  if (options.output == "json") {
    engine::RunCase(input, EngineNamed(options.engine), cycles,
                    [&](const engine::CaseCycle& cycle) { Print(engine::CycleJson(cycle, options.machines) + "\n"); });
    return kOk;
  }
  engine::CaseText text(engine::CaseText::Form::kTable);
  engine::RunCase(input, EngineNamed(options.engine), cycles, [&](const engine::CaseCycle& cycle) { text.Add(cycle); });
  Print(text.Take());
  return kOk;
}

}  // namespace

void AddDecide(CommandLine& app) {
  const auto options = std::make_shared<Options>();
  app.AddVerb("decide", "Run decision cycles over a case file; docs/cases.md tells its format")
      .Option("-f,--file", options->file, "The case, YAML or JSON; - is standard input")
      .Choice("-o,--output", options->output, {"table", "json"}, "Form of the answer; json is one object per cycle")
      .Choice("--engine", options->engine, {"fast", "reference"}, "Which engine decides; they decide alike")
      .Option("--cycles", options->cycles, "How many cycles; 0 takes the number from the file")
      .Flag("--machines", options->machines, "With -o json: say what became of every machine")
      .Option("--explain", options->explain, "need NAME or machine ID: why, in the last cycle run")
      .Example("muster decide -f case.yaml")
      .Example("muster decide -f case.yaml --cycles 3 --explain need web")
      .Example("muster decide -f - -o json < case.yaml | jq '.actions[]'")
      .Run([options]() -> Result<int> { return Decide(*options); });
}

}  // namespace muster::cli
