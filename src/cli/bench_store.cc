// `muster bench store`: how fast a store commits, and how soon its watches know.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cli/bench.h"
#include "cli/own_etcd.h"
#include "cli/store_flags.h"
#include "host/json_object.h"
#include "host/log_backend.h"
#include "host/system_clock.h"
#include "store/blocking.h"
#include "store/url.h"

namespace muster::cli {
namespace {

struct Flags {
  StoreFlags store;
  std::string shape = "all";
  double seconds = 5;
  bool json = false;
};

struct Shape {
  std::string_view name;
  int callers;  // each waits for its answer before it asks again
  int puts;     // of each commit
  bool watch;   // the samples are from the call to the event
};
constexpr Shape kShapes[] = {{"commits-1", 1, 1, false}, {"commits-16", 16, 1, false}, {"commits-128", 128, 1, false},
                             {"puts-10", 16, 10, false}, {"puts-100", 16, 100, false}, {"watch-1", 1, 1, true},
                             {"watch-16", 16, 1, true}};

// One shape on one store, until the time is over.
class Run {
 public:
  Run(store::Store& store, const Shape& shape, std::string prefix, Duration span)
      : store_(store), shape_(shape), prefix_(std::move(prefix)), span_(span) {}

  Status Measure() {
    const auto first = store::Blocking(store_).Range(contract::KeysUnder(prefix_));
    if (!first) return first.error();
    std::unique_ptr<store::WatchHandle> watch;
    if (shape_.watch) {
      watch = store_.Watch(contract::KeysUnder(prefix_), first->revision + 1,
                           [this](const store::WatchEvent& event) { Watched(event); });
    }
    begins_ = Mono();
    open_ = shape_.callers;
    for (int caller = 0; caller < shape_.callers; ++caller) Commit(caller);
    waiter_.Wait(span_ + 60s, [this] { return open_ == 0; });
    ends_ = Mono();
    if (shape_.watch) {
      waiter_.Wait(30s, [this] { return samples_us_.size() >= commits_; });
    }
    return waiter_.Get(
        [this] { return open_ == 0 ? failed_ : Status(Code::kUnavailable, "the store does not answer"); });
  }

  double rate() const {
    const double puts = static_cast<double>(commits_) * shape_.puts;
    return puts / std::chrono::duration<double>(ends_ - begins_).count();
  }
  double At(double share) {
    std::ranges::sort(samples_us_);
    if (samples_us_.empty()) return 0;
    return samples_us_[std::min(samples_us_.size() - 1,
                                static_cast<size_t>(share * static_cast<double>(samples_us_.size())))];
  }
  size_t samples() const { return samples_us_.size(); }

 private:
  MonoTime Mono() const { return clock_.Read().mono; }
  static double Micros(Duration span) { return std::chrono::duration<double, std::micro>(span).count(); }

  // Every caller has its own keys, so that none waits for another.
  void Commit(int caller) {
    const MonoTime called = Mono();
    const uint64_t number = next_++;
    store::Transaction transaction;
    for (int put = 0; put < shape_.puts; ++put) {
      const std::string key =
          fmt::format("{}{:03}/{:05}", prefix_, caller,
                      (number * static_cast<uint64_t>(shape_.puts) + static_cast<uint64_t>(put)) % 10'000);
      transaction.writes.push_back(
          contract::Put(key, fmt::format(R"({{"called":{},"status":"Running","text":"{:x>150}"}})",
                                         called.time_since_epoch().count(), "")));
    }
    store_.Commit(std::move(transaction), 30s,
                  [this, caller, called](const store::CommitOutcome& outcome) { Committed(caller, called, outcome); });
  }
  void Committed(int caller, MonoTime called, const store::CommitOutcome& outcome) {
    const MonoTime now = Mono();
    const bool over = now - begins_ >= span_;
    waiter_.Do([&] {
      if (const auto* unknown = std::get_if<contract::Unknown>(&outcome)) failed_ = unknown->status;
      ++commits_;
      if (!shape_.watch) samples_us_.push_back(Micros(now - called));
      if (over || !failed_.ok()) --open_;
    });
    if (!over && std::holds_alternative<contract::Committed>(outcome)) Commit(caller);
  }
  void Watched(const store::WatchEvent& event) {
    const MonoTime now = Mono();
    const auto* batch = std::get_if<store::WatchBatch>(&event);
    if (batch == nullptr) return;
    waiter_.Do([&] {
      for (const contract::Change& change : batch->changes) {
        constexpr std::string_view kBefore = R"({"called":)";
        int64_t called = 0;
        const std::string& value = change.now.value;
        std::from_chars(value.data() + kBefore.size(), value.data() + value.size(), called);
        samples_us_.push_back(Micros(now - MonoTime(Duration(called))));
      }
    });
  }

  store::Store& store_;
  const Shape shape_;
  const std::string prefix_;
  const Duration span_;
  const host::SystemClock clock_;
  std::atomic<uint64_t> next_ = 0;
  MonoTime begins_;
  MonoTime ends_;

  store::Waiter waiter_;  // guards the rest
  int open_ = 0;          // callers that are not done
  uint64_t commits_ = 0;
  Status failed_;
  std::vector<double> samples_us_;
};

Result<int> BenchStore(const Flags& flags) {
  if (flags.seconds <= 0 || flags.seconds > 3600) return InvalidArgument("--seconds must be above 0 and up to 3600");
  host::InstallLogBackend(log::Level::kWarn);
  StoreFlags which = flags.store;
  MUSTER_ASSIGN_OR_RETURN(which.url, UrlOf(flags.store));
  std::unique_ptr<OwnEtcd> server;
  if (which.url == "etcd:") {
    MUSTER_ASSIGN_OR_RETURN(server, OwnEtcd::Start());
    which.url = server->url();
  }
  MUSTER_ASSIGN_OR_RETURN(const store::StoreUrl url, store::ParseStoreUrl(which.url));
  constexpr std::string_view kKinds[] = {"memory", "sqlite", "etcd"};
  const std::string_view kind = kKinds[static_cast<size_t>(url.kind)];
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store, OpenStore(which));
  if (!flags.json)
    Print(fmt::format("{:<14} {:<8} {:>12} {:>10} {:>10} {:>10}\n", "shape", "store", "puts/s", "p50 us", "p99 us",
                      "samples"));
  for (const Shape& shape : kShapes) {
    if (flags.shape != "all" && flags.shape != shape.name) continue;
    const auto span = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(flags.seconds));
    Run run(*store, shape, fmt::format("/bench/{}/", shape.name), span);
    if (Status status = run.Measure(); !status.ok()) return std::unexpected(std::move(status));
    if (flags.json) {
      host::JsonObject json;
      json.Add("shape", shape.name).Add("store", kind).Add("kind", kind == "memory" ? "decision" : "durable");
      json.Add("rate_per_s", run.rate())
          .Add("p50_us", run.At(0.5))
          .Add("p99_us", run.At(0.99))
          .Add("samples", run.samples());
      Print(json.Take() + "\n");
    } else {
      Print(fmt::format("{:<14} {:<8} {:>12.0f} {:>10.0f} {:>10.0f} {:>10}\n", shape.name, kind, run.rate(),
                        run.At(0.5), run.At(0.99), run.samples()));
    }
  }
  return kOk;
}

}  // namespace

void AddBenchStore(Verb& bench) {
  const auto flags = std::make_shared<Flags>();
  std::vector<std::string> names = {"all"};
  for (const Shape& shape : kShapes) names.emplace_back(shape.name);
  Verb verb = bench.AddVerb(
      "store", "Commits and puts a second of a store, and how soon its watches know; etcd: starts an etcd for it");
  verb.Choice("--shape", flags->shape, names, "What to measure")
      .Option("--seconds", flags->seconds, "How long, for each shape")
      .Flag("--json", flags->json, "One object per line");
  AddStoreFlags(verb, flags->store);
  verb.Example("muster bench store --store sqlite:/var/tmp/bench")
      .Example("muster bench store --store etcd:")
      .Run([flags] { return BenchStore(*flags); });
}

}  // namespace muster::cli
