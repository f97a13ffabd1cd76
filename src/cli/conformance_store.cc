// `muster conformance store [URL]`: does a store keep the contract? Without a URL, all three kinds.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>

#include "cli/conformance.h"
#include "cli/own_etcd.h"
#include "cli/store_flags.h"
#include "cli/table.h"
#include "host/json_object.h"
#include "host/log_backend.h"
#include "host/system_clock.h"
#include "host/temporary_dir.h"
#include "host/thread_schedule.h"
#include "store/blocking.h"
#include "store/conformance.h"

namespace muster::cli {
namespace {

struct Flags {
  StoreFlags store;
  bool keep_history = false;
  std::string only;
  uint64_t histories = 3;
  uint64_t seed = 1;
  std::string output = "text";
};

std::string_view NameOf(store::Verdict verdict) {
  switch (verdict) {
    case store::Verdict::kHolds: return "holds";
    case store::Verdict::kBroken: return "BROKEN";
    case store::Verdict::kNotShown: break;
  }
  return "not shown";
}

void PrintText(const store::CheckResult& result) {
  Print(fmt::format("{:<10} {:<22} {}\n", NameOf(result.verdict), result.name, result.rule));
  if (!result.detail.empty()) Print(fmt::format("{:<10} {:<22}   {}\n", "", "", Printable(result.detail)));
}

void PrintJson(const std::string& url, const store::CheckResult& result) {
  host::JsonObject json;
  json.Add("store", url)
      .Add("check", result.name)
      .Add("verdict", result.verdict == store::Verdict::kBroken ? "broken" : std::string(NameOf(result.verdict)))
      .Add("rule", result.rule)
      .Add("detail", result.detail);
  Print(json.Take() + "\n");
}

// One store that is there.
Result<int> CheckStore(const Flags& flags, const StoreFlags& which) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store, OpenStore(which));
  // A store that is not there breaks no rule.
  MUSTER_ASSIGN_OR_RETURN(const store::RangeReply first, store::Blocking(*store).Range(contract::OneKey("/")));
  const host::SystemClock clock;
  host::ThreadSchedule schedule;
  std::random_device device;
  const bool json = flags.output == "json";
  const auto print = [&](const store::CheckResult& result) { json ? PrintJson(which.url, result) : PrintText(result); };
  const auto results = store::RunConformance(*store, schedule,
                                             {.prefix = fmt::format("/conformance-{:08x}/", device()),
                                              .compact = !flags.keep_history,
                                              .only = flags.only,
                                              .seed = flags.seed,
                                              .histories = static_cast<int>(flags.histories)},
                                             clock, print);
  if (results.empty()) {
    return InvalidArgument(fmt::format("--check: there is no rule {}; run without it to see their names", flags.only));
  }
  std::map<store::Verdict, int> counts;
  for (const store::CheckResult& result : results) ++counts[result.verdict];
  if (!json) {
    Print(fmt::format("{}: {} of {} rules hold, {} broken, {} not shown\n", which.url, counts[store::Verdict::kHolds],
                      results.size(), counts[store::Verdict::kBroken], counts[store::Verdict::kNotShown]));
  }
  return counts[store::Verdict::kBroken] == 0 ? kOk : kFailed;
}

Result<int> CheckTemporarySqlite(const Flags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<host::TemporaryDir> dir, host::TemporaryDir::Make());
  return CheckStore(flags, {.url = fmt::format("sqlite:{}", (dir->path() / "store").string())});
}

Result<int> CheckStores(const Flags& flags) {
  host::InstallLogBackend(log::Level::kWarn);
  const bool own = flags.store.url.empty() || flags.store.url == "etcd:";
  if (!own) return CheckStore(flags, flags.store);
  MUSTER_ASSIGN_OR_RETURN(const rpc::TlsFiles tls, flags.store.tls.Files());
  if (tls.given() || !flags.store.user.empty()) {
    return InvalidArgument("--user and --tls-* are for an etcd that runs; name it as etcd://HOST:PORT");
  }
  // First: a program that is missing is said at once.
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<OwnEtcd> server, OwnEtcd::Start());
  int worst = kOk;
  if (flags.store.url.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const int memory, CheckStore(flags, {.url = "memory:"}));
    MUSTER_ASSIGN_OR_RETURN(const int sqlite, CheckTemporarySqlite(flags));
    worst = std::max(memory, sqlite);
  }
  MUSTER_ASSIGN_OR_RETURN(const int etcd, CheckStore(flags, {.url = server->url()}));
  return std::max(worst, etcd);
}

}  // namespace

void AddConformanceStore(Verb& conformance) {
  const auto flags = std::make_shared<Flags>();
  Verb verb = conformance.AddVerb("store", "Check a store that is not in use, rule by rule; exit 1 if one is broken");
  verb.OptionalArgument("URL", flags->store.url,
                        "memory:, sqlite:DIR or etcd://HOST:PORT,...[/prefix]; etcd: starts an etcd for the check and "
                        "stops it. Without a URL: one of each kind, in turn")
      .Flag("--keep-history", flags->keep_history, "Do not compact the store's history; two rules are not shown then")
      .Option("--check", flags->only, "Only the rule of this name")
      .Option("--histories", flags->histories, "Random histories of many callers to run")
      .Option("--seed", flags->seed, "That they are drawn from")
      .Choice("-o,--output", flags->output, {"text", "json"}, "Form of the report; json is one line per rule");
  AddStoreAccessFlags(verb, flags->store);
  verb.Example("muster conformance store")
      .Example("muster conformance store etcd:")
      .Example("muster conformance store sqlite:/tmp/store")
      .Example("muster conformance store etcd://127.0.0.1:2379/test --keep-history")
      .Run([flags] { return CheckStores(*flags); });
}

}  // namespace muster::cli
