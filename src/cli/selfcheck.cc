#include "role/diagnostic/selfcheck.h"

#include <fmt/format.h>

#include <memory>

#include "cli/verbs.h"
#include "host/json_object.h"

namespace muster::cli {
namespace {

using diagnostic::CheckResult;

std::string AsText(const std::vector<CheckResult>& results) {
  std::string text;
  for (const CheckResult& result : results) {
    const char* state = result.ok ? "ok" : result.required ? "FAILED" : "missing";
    text += fmt::format("{:<9}{:<9}{}\n", state, result.name, result.detail);
  }
  return text;
}

std::string AsJsonLines(const std::vector<CheckResult>& results) {
  std::string text;
  for (const CheckResult& result : results) {
    text += host::JsonObject()
                .Add("name", result.name)
                .Add("ok", result.ok)
                .Add("required", result.required)
                .Add("detail", result.detail)
                .Take() +
            "\n";
  }
  return text;
}

}  // namespace

void AddSelfcheck(CommandLine& app) {
  const auto output = std::make_shared<std::string>("text");
  app.AddVerb("selfcheck", "Try what Muster needs of this machine")
      .Choice("-o,--output", *output, {"text", "json"}, "Form of the answer; json is one object per line")
      .Example("muster selfcheck")
      .Example("muster selfcheck -o json | jq -r 'select(.ok | not) | .name'")
      .Run([output]() -> Result<int> {
        const std::vector<CheckResult> results = diagnostic::SelfCheck();
        Print(*output == "json" ? AsJsonLines(results) : AsText(results));
        if (!Passed(results)) return Error(Code::kFailedPrecondition, "a required check failed, see above");
        return kOk;
      });
}

}  // namespace muster::cli
