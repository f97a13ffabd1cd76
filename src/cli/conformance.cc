#include "cli/conformance.h"

#include <fmt/format.h>

#include <memory>
#include <random>

#include "cli/table.h"
#include "cli/tls_flags.h"
#include "cli/verbs.h"
#include "contract/provider.h"
#include "host/json_object.h"
#include "host/system_clock.h"
#include "rpc/provider_client.h"

namespace muster::cli {
namespace {

struct Flags {
  std::string address;
  bool use_machines = false;
  std::string cluster = "conformance";
  std::string blob = "conformance";
  int64_t grace = 5;
  std::string shard;
  TlsFlags tls;
  std::string output = "text";
};

std::string_view NameOf(provider::Verdict verdict) {
  switch (verdict) {
    case provider::Verdict::kHolds: return "holds";
    case provider::Verdict::kBroken: return "BROKEN";
    case provider::Verdict::kNotShown: break;
  }
  return "not shown";
}

void PrintText(const provider::CheckResult& result) {
  Print(fmt::format("{:<10} {:<26} {}\n", NameOf(result.verdict), result.name, result.rule));
  if (!result.detail.empty()) Print(fmt::format("{:<10} {:<26}   {}\n", "", "", Printable(result.detail)));
}

void PrintJson(const provider::CheckResult& result) {
  host::JsonObject json;
  json.Add("check", result.name)
      .Add("verdict", result.verdict == provider::Verdict::kBroken ? "broken" : std::string(NameOf(result.verdict)))
      .Add("rule", result.rule)
      .Add("detail", result.detail);
  Print(json.Take() + "\n");
}

}  // namespace

void PrintCheck(const provider::CheckResult& result, bool json) {
  if (json) {
    PrintJson(result);
  } else {
    PrintText(result);
  }
}

namespace {

Result<int> CheckProvider(const Flags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const rpc::TlsFiles tls, flags.tls.Files());
  if (flags.grace < 0 || flags.grace > 86400) return InvalidArgument("--grace must be from 0 to 86400 seconds");
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<contract::ProviderPort> port,
                          rpc::MakeProviderClient(flags.address, tls));
  const host::SystemClock clock;
  std::random_device device;
  const provider::ConformanceOptions options{.use_machines = flags.use_machines,
                                             .cluster = flags.cluster,
                                             .bootstrap_blob = flags.blob,
                                             .grace_seconds = flags.grace,
                                             .run_id = fmt::format("{:08x}", device()),
                                             .shard_id = flags.shard};
  // Nobody there, or nobody who speaks to us: that breaks no rule.
  if (Status answers = provider::CheckAnswers(*port, clock); !answers.ok()) return std::unexpected(std::move(answers));
  const bool json = flags.output == "json";
  const auto results =
      provider::RunConformance(*port, options, clock, [json](const auto& result) { PrintCheck(result, json); });
  std::map<provider::Verdict, int> counts;
  for (const provider::CheckResult& result : results) ++counts[result.verdict];
  if (!json) {
    Print(fmt::format("{}: {} of {} rules hold, {} broken, {} not shown{}\n", flags.address,
                      counts[provider::Verdict::kHolds], results.size(), counts[provider::Verdict::kBroken],
                      counts[provider::Verdict::kNotShown],
                      flags.use_machines ? "" : "; --use-machines takes one machine through its life"));
    const bool may_speak_for_one = tls.given() && flags.shard.empty() && counts[provider::Verdict::kBroken] > 0;
    if (may_speak_for_one) Print("PERMISSION_DENIED? Name the shard of the certificate as --shard-id\n");
  }
  return counts[provider::Verdict::kBroken] == 0 ? kOk : kFailed;
}

}  // namespace

void AddConformance(CommandLine& app) {
  const auto flags = std::make_shared<Flags>();
  Verb conformance = app.AddVerb("conformance", "Ask a running implementation whether it keeps its contract")
                         .Example("muster conformance provider 127.0.0.1:9100");
  Verb verb = conformance.AddVerb("provider", "Check a capacity provider, rule by rule; exit 1 if one is broken");
  verb.Argument("ADDR", flags->address, "HOST:PORT of the provider")
      .Flag("--use-machines", flags->use_machines,
            "Create, configure, drain and delete one machine; without it nothing is changed")
      .Option("--cluster", flags->cluster, "Cluster to bind that machine to")
      .Option("--bootstrap-blob", flags->blob, "Bootstrap data to configure it with")
      .Option("--grace", flags->grace, "Seconds of grace for its drain")
      .Option("--shard-id", flags->shard,
              "Call as this shard only, as a provider with TLS demands; never a real one's id, whose calls would be "
              "fenced then")
      .Choice("-o,--output", flags->output, {"text", "json"}, "Form of the report; json is one line per rule");
  AddTlsFlags(verb, flags->tls);
  verb.Example("muster conformance provider 127.0.0.1:9100")
      .Example(
          "muster conformance provider provider.example:9100 --shard-id conformance --tls-cert c --tls-key k --tls-ca "
          "a")
      .Run([flags] { return CheckProvider(*flags); });
  AddConformanceAgent(conformance);
  AddConformanceStore(conformance);
}

}  // namespace muster::cli
