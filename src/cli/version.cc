#include <fmt/format.h>

#include <memory>

#include "cli/verbs.h"

namespace muster::cli {

void AddVersion(CommandLine& app) {
  const auto output = std::make_shared<std::string>("text");
  app.AddVerb("version", "Show which build this is")
      .Choice("-o,--output", *output, {"text", "json"}, "Form of the answer")
      .Example("muster version -o json")
      .Run([output, build = app.build()]() -> Result<int> {
        if (*output == "json") {
          Print(build.ToJson() + "\n");
        } else {
          Print(fmt::format("muster {}\ncommit      {}\ncompiler    {}\nbuild type  {}\nfaults      {}\n",
                            build.version, build.commit, build.compiler, build.build_type,
                            build.faults ? "compiled in" : "not compiled in"));
        }
        return kOk;
      });
}

}  // namespace muster::cli
