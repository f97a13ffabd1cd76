#include "host/replay.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "base/codec.h"
#include "cli/verbs.h"
#include "core/agent/agent.h"
#include "core/counter/counter.h"
#include "core/operators/operators.h"
#include "core/provider/provider.h"
#include "core/scheduler/scheduler.h"
#include "core/shard/shard.h"

namespace muster::cli {
namespace {

struct Flags {
  std::string directory;
  bool verbose = false;
};

template <contract::Core C>
Result<int> Replay(const Flags& flags) {
  host::StepVisitor<C> visitor;
  if (flags.verbose) {
    visitor = [](uint64_t step, Now now, const auto& event, const auto& effects) {
      Print(fmt::format("{} at {}: {}\n", step, codec::Describe(now.mono), codec::Describe(event)));
      for (const auto& effect : effects) Print(fmt::format("    {}\n", codec::Describe(effect)));
    };
  }
  // Written out before the step is taken, because that may end this process too.
  const auto unfinished = [](uint64_t step, Now now, const auto& event) {
    Print(fmt::format("{} at {}: {}\n    did not end when it was recorded; taking it again\n", step,
                      codec::Describe(now.mono), codec::Describe(event)));
    std::fflush(stdout);
  };
  MUSTER_ASSIGN_OR_RETURN(const host::ReplayReport report, host::Replay<C>(flags.directory, visitor, unfinished));
  if (report.divergence) {
    return Error(Code::kDataLoss,
                 *report.divergence + "; if another build of muster wrote the journal, use that build");
  }
  Print(fmt::format("{}: {} steps in {} segments, the same effects as recorded{}{}{}\n", C::kName, report.steps,
                    report.segments,
                    report.left_out > 0 ? fmt::format("; {} of another build left out", report.left_out) : "",
                    report.torn > 0 ? fmt::format("; {} end in a torn record", report.torn) : "",
                    report.unfinished > 0 ? fmt::format("; {} unfinished", report.unfinished) : ""));
  return kOk;
}

Result<int> ReplayAny(const Flags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const std::string name, host::JournalCoreName(flags.directory));
  if (name == agent::Core::kName) return Replay<agent::Core>(flags);
  if (name == counter::Core::kName) return Replay<counter::Core>(flags);
  if (name == operators::Core::kName) return Replay<operators::Core>(flags);
  if (name == provider::Core::kName) return Replay<provider::Core>(flags);
  if (name == shard::Core::kName) return Replay<shard::Core>(flags);
  if (name == scheduler::Core::kName) return Replay<scheduler::Core>(flags);
  return Error(Code::kUnimplemented,
               fmt::format("{} is a journal of '{}', which this build does not know", flags.directory, name));
}

}  // namespace

void AddReplay(CommandLine& app) {
  const auto flags = std::make_shared<Flags>();
  app.AddVerb("replay", "Step a core through its journal and demand the same effects")
      .Argument("DIR", flags->directory, "The directory given to --journal")
      .Flag("--verbose", flags->verbose, "Print every event and what the core did")
      .Example("muster replay /var/lib/muster/journal")
      .Run([flags] { return ReplayAny(*flags); });
}

}  // namespace muster::cli
