// `muster conformance agent`: the contract of an agent, rule by rule.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <random>

#include "cli/agent_conformance.h"
#include "cli/conformance.h"
#include "cli/tls_flags.h"
#include "host/system_clock.h"
#include "rpc/agent_probe.h"

namespace muster::cli {
namespace {

struct Flags {
  std::string address;
  bool use_workloads = false;
  std::string image;
  TlsFlags tls;
  std::string output = "text";
};

Result<int> CheckAgent(const Flags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const rpc::TlsFiles tls, flags.tls.Files());
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<rpc::AgentProbe> agent, rpc::MakeAgentProbe(flags.address, tls));
  // Nobody there, or nobody who speaks to us: that breaks no rule.
  if (const auto answer = agent->Ask(rpc::AgentProbe::Service::kPersys, contract::ListOnAgent{}); !answer) {
    return std::unexpected(answer.error());
  }
  const host::SystemClock clock;
  std::random_device device;
  const AgentConformanceOptions options{
      .use_workloads = flags.use_workloads, .image = flags.image, .run_id = fmt::format("{:08x}", device())};
  const bool json = flags.output == "json";
  const auto results = RunAgentConformance(*agent, options, clock,
                                           [json](const provider::CheckResult& result) { PrintCheck(result, json); });
  std::map<provider::Verdict, int> counts;
  for (const provider::CheckResult& result : results) ++counts[result.verdict];
  if (!json) {
    Print(fmt::format("{}: {} of {} rules hold, {} broken, {} not shown{}\n", flags.address,
                      counts[provider::Verdict::kHolds], results.size(), counts[provider::Verdict::kBroken],
                      counts[provider::Verdict::kNotShown],
                      flags.use_workloads ? "" : "; --use-workloads takes workloads through their life"));
  }
  return counts[provider::Verdict::kBroken] == 0 ? kOk : kFailed;
}

}  // namespace

void AddConformanceAgent(Verb& conformance) {
  const auto flags = std::make_shared<Flags>();
  Verb verb = conformance.AddVerb("agent", "Check the agent of a node, rule by rule; exit 1 if one is broken");
  verb.Argument("ADDR", flags->address, "HOST:PORT of an agent that has joined no scheduler")
      .Flag("--use-workloads", flags->use_workloads,
            "Apply, stop and delete workloads of the check's own; without it nothing is changed")
      .Option("--image", flags->image,
              "Image with /bin/sh for these workloads, through persys.agent.v1; without it they are processes, through "
              "muster.v1.Agent")
      .Choice("-o,--output", flags->output, {"text", "json"}, "Form of the report; json is one line per rule");
  AddTlsFlags(verb, flags->tls);
  verb.Example("muster conformance agent 127.0.0.1:50051")
      .Example("muster conformance agent 127.0.0.1:50051 --use-workloads --image registry.example/busybox")
      .Run([flags] { return CheckAgent(*flags); });
}

}  // namespace muster::cli
