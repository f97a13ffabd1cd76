#include <fmt/format.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "cli/bench.h"
#include "cli/verbs.h"
#include "contract/provider.h"
#include "core/provider/provider.h"
#include "host/data_dir.h"
#include "host/json_object.h"
#include "host/log_backend.h"
#include "host/system_clock.h"
#include "provider/catalogue.h"
#include "provider/sim_backend.h"
#include "role/provider/local_provider.h"
#include "role/provider/provider_role.h"
#include "rpc/provider_client.h"

namespace muster::cli {
namespace {

struct Flags {
  uint64_t machines = 100'000;
  uint64_t lists = 40;
  uint64_t deltas = 400;
  uint64_t transitions = 8'000;
  std::string data_dir;
  std::string output = "text";
};
constexpr size_t kParallel = 16;

// Raw samples, in milliseconds.
struct Samples {
  std::string name;
  std::vector<double> ms;

  double At(double share) {
    std::ranges::sort(ms);
    return ms.empty() ? 0 : ms[std::min(ms.size() - 1, static_cast<size_t>(share * static_cast<double>(ms.size())))];
  }
};

std::string MachineId(uint64_t number) { return fmt::format("bench-{:06}", number + 1); }

class Bench {
 public:
  Bench(contract::ProviderPort& port, uint64_t machines) : port_(port), machines_(machines) {}

  Result<contract::ProviderReply> Ask(contract::ProviderRequest request, Samples& samples) {
    std::mutex mu;
    std::condition_variable answered;
    std::optional<Result<contract::ProviderReply>> result;
    const MonoTime start = clock_.Read().mono;
    port_.Ask(std::move(request), contract::kProviderListTimeout, [&](Result<contract::ProviderReply> reply) {
      const std::lock_guard lock(mu);
      result = std::move(reply);
      answered.notify_all();
    });
    std::unique_lock lock(mu);
    answered.wait(lock, [&] { return result.has_value(); });
    samples.ms.push_back(std::chrono::duration<double, std::milli>(clock_.Read().mono - start).count());
    return *std::move(result);
  }

  Status Lists(uint64_t count, Samples& samples) {
    for (uint64_t i = 0; i < count; ++i) {
      const auto reply = Ask(contract::ListRequest{}, samples);
      if (!reply) return reply.error();
      const auto& list = std::get<contract::ListReply>(*reply);
      if (list.machines.size() != machines_) {
        return {Code::kInternal, fmt::format("a list has {} of {} machines", list.machines.size(), machines_)};
      }
      cursor_ = list.revision;
    }
    return {};
  }

  Status Get(uint64_t machine, Samples& samples) {
    const auto reply = Ask(contract::GetRequest{MachineId(machine)}, samples);
    return reply ? Status() : reply.error();
  }

  // Each after one transition, so that there is something to find.
  Status Deltas(uint64_t count, Samples& samples) {
    Samples unused;
    for (uint64_t i = 0; i < count; ++i) {
      MUSTER_RETURN_IF_ERROR(Transition(unused));
      auto reply = Ask(contract::ListRequest{.states = {}, .max_results = 0, .since_revision = cursor_}, samples);
      if (!reply) return reply.error();
      cursor_ = std::get<contract::ListReply>(*reply).revision;
    }
    return {};
  }

  // 16 at a time; every one stores a fence and, where the machine is Speculative, a transition.
  Status Transitions(uint64_t count, Samples& samples, double& seconds) {
    std::atomic<uint64_t> begun = 0;
    std::mutex mu;
    Status first;
    std::vector<std::thread> threads;
    const MonoTime start = clock_.Read().mono;
    for (size_t t = 0; t < kParallel; ++t) {
      threads.emplace_back([&] {
        Samples mine;
        Status failed;
        while (begun++ < count && failed.ok()) failed = Transition(mine);
        const std::lock_guard lock(mu);
        samples.ms.insert(samples.ms.end(), mine.ms.begin(), mine.ms.end());
        if (!failed.ok()) first = failed;
      });
    }
    for (std::thread& thread : threads) thread.join();
    seconds = std::chrono::duration<double>(clock_.Read().mono - start).count();
    return first;
  }

 private:
  // A machine that no call was made for, as long as there is one.
  Status Transition(Samples& samples) {
    const int64_t sequence = ++sequence_;
    const std::string machine = MachineId(static_cast<uint64_t>(sequence - 1) % machines_);
    const auto reply = Ask(contract::CreateRequest{.machine_id = machine, .fence = {"bench", 1, sequence}}, samples);
    // Owned machines are Idle, and 16 callers may overtake each other: both are answers like any other.
    if (reply || reply.error().code() == Code::kAborted || reply.error().code() == Code::kFailedPrecondition) return {};
    return reply.error();
  }

  contract::ProviderPort& port_;
  const uint64_t machines_;
  const host::SystemClock clock_;
  std::string cursor_;
  std::atomic<int64_t> sequence_ = 0;
};

// Of the processor, whatever else runs on this machine.
double ThreadMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

// A core whose machines have been through changes: records and numbers no longer lie in the order of the ids.
std::optional<provider::Core> UsedCore(uint64_t machines, const Clock& clock) {
  auto core = provider::Core::Recover({}, provider::MakeSlots(provider::DefaultCatalogue(), "bench", machines), {});
  if (!core) return std::nullopt;
  std::vector<provider::Core::Effect> effects;
  core->Step(contract::Wake{}, clock.Read(), effects);
  for (uint64_t i = 0; i < machines; ++i) {
    effects.clear();
    const uint64_t machine = i * 7919 % machines;
    core->Step(provider::Asked{.request = 1, .body = contract::CreateRequest{.machine_id = MachineId(machine)}},
               clock.Read(), effects);
  }
  return *std::move(core);
}

// How long one full list keeps the core from everything else: the step, and handing its answer over.
void CoreLists(uint64_t machines, Samples& processor, Samples& wall) {
  const host::SystemClock clock;
  std::optional<provider::Core> core = UsedCore(machines, clock);
  if (!core) return;
  std::vector<provider::Core::Effect> effects;
  for (int i = 0; i < 50; ++i) {
    effects.clear();
    const MonoTime start = clock.Read().mono;
    const double start_cpu = ThreadMilliseconds();
    core->Step(provider::Asked{.request = 1, .body = contract::ListRequest{}}, clock.Read(), effects);
    const contract::ProviderReply handed_over = *std::move(std::get<provider::Answer>(effects.back()).reply);
    processor.ms.push_back(ThreadMilliseconds() - start_cpu);
    wall.ms.push_back(std::chrono::duration<double, std::milli>(clock.Read().mono - start).count());
  }
}

// What stands behind full Lists in the loop of a running provider: Gets, which store nothing, one after the other,
// while one List follows the other. No gRPC: nothing but the loop is shared.
Status BesideLists(const Flags& flags, Samples& samples) {
  auto dir = host::DataDir::Open(std::filesystem::path(flags.data_dir) / "loop", "--data-dir");
  if (!dir) return dir.error();
  const host::SystemClock clock;
  auto cloud = std::make_unique<provider::SimBackend>(
      provider::DefaultCatalogue(), provider::SimOptions{.name = "bench", .machines = flags.machines, .seed = 1});
  provider::LocalProvider local({.data_dir = (*dir)->path(), .journal = {}, .config = {.name = "bench"}},
                                std::move(cloud), clock);
  MUSTER_RETURN_IF_ERROR(local.Start());
  Bench bench(local, flags.machines);
  std::atomic<bool> done = false;
  Status listed;
  std::thread lister([&] {
    Samples unused;
    listed = Bench(local, flags.machines).Lists(flags.lists, unused);
    done = true;
  });
  Status got;
  while (!done && got.ok()) got = bench.Get(0, samples);
  lister.join();
  return got.ok() ? listed : got;
}

double PeakMegabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

struct Number {
  std::string key;   // in JSON
  std::string name;  // for people
  double value = 0;
};
using Numbers = std::vector<Number>;

void Report(const Flags& flags, std::vector<Samples>& rows, const Numbers& numbers) {
  if (flags.output == "json") {
    for (Samples& row : rows) {
      host::JsonObject json;
      json.Add("what", row.name).Add("samples", row.ms.size()).Add("p50_ms", row.At(0.5)).Add("p99_ms", row.At(0.99));
      Print(json.Add("max_ms", row.At(1)).Take() + "\n");
    }
    host::JsonObject json;
    for (const Number& number : numbers) json.Add(number.key, number.value);
    return Print(json.Take() + "\n");
  }
  Print(fmt::format("{:<44} {:>8} {:>10} {:>10} {:>10}\n", "milliseconds", "samples", "p50", "p99", "max"));
  for (Samples& row : rows) {
    Print(fmt::format("{:<44} {:>8} {:>10.3f} {:>10.3f} {:>10.3f}\n", row.name, row.ms.size(), row.At(0.5),
                      row.At(0.99), row.At(1)));
  }
  for (const Number& number : numbers) Print(fmt::format("{:<44} {:>8.1f}\n", number.name, number.value));
}

// A role and a client in this process. First, so that the memory is theirs.
Status OverGrpc(const Flags& flags, std::vector<Samples>& rows, Numbers& numbers) {
  provider::ProviderRole role({.server = {.listen = {"127.0.0.1", 0},
                                          .metrics_addr = {"127.0.0.1", 0},
                                          .data_dir = std::filesystem::path(flags.data_dir) / "role"},
                               .name = "bench",
                               .catalogue = provider::DefaultCatalogue(),
                               .machines = flags.machines,
                               .seed = 1});
  MUSTER_RETURN_IF_ERROR(role.Start({}));
  numbers.push_back({"peak_rss_server_mb", "peak RSS of the server, MB", PeakMegabytes()});
  const auto client = rpc::MakeProviderClient(role.listen_address().ToString());
  if (!client) return client.error();
  Bench bench(**client, flags.machines);
  rows.assign(5, {});
  rows[0].name = "full List over gRPC, decoded";
  rows[1].name = "delta List after one change, over gRPC";
  rows[2].name = "transition, 16 at a time, over gRPC";
  rows[3].name = "the same while full Lists run without pause";
  rows[4].name = "those Lists";
  MUSTER_RETURN_IF_ERROR(bench.Lists(flags.lists, rows[0]));
  MUSTER_RETURN_IF_ERROR(bench.Deltas(flags.deltas, rows[1]));
  double alone = 0;
  double beside = 0;
  MUSTER_RETURN_IF_ERROR(bench.Transitions(flags.transitions, rows[2], alone));
  std::atomic<bool> done = false;
  Status listed;
  std::thread lister([&] {
    Bench lists(**client, flags.machines);
    while (!done && listed.ok()) listed = lists.Lists(1, rows[4]);
  });
  const Status moved = bench.Transitions(flags.transitions, rows[3], beside);
  done = true;
  lister.join();
  MUSTER_RETURN_IF_ERROR(moved);
  MUSTER_RETURN_IF_ERROR(listed);
  const double count = static_cast<double>(flags.transitions);
  numbers.push_back({"peak_rss_mb", "peak RSS of server and client, MB", PeakMegabytes()});
  numbers.push_back({"transitions_per_s", "transitions a second", count / alone});
  numbers.push_back({"transitions_per_s_beside_lists", "transitions a second beside Lists", count / beside});
  return {};
}

Result<int> BenchProvider(const Flags& flags) {
  if (flags.machines == 0 || flags.machines > 1'000'000) return InvalidArgument("--machines must be from 1 to 1000000");
  if (flags.data_dir.empty()) return InvalidArgument("--data-dir is missing; name an empty directory");
  host::InstallLogBackend(log::Level::kWarn);
  std::vector<Samples> rows;
  Numbers numbers;
  if (Status status = OverGrpc(flags, rows, numbers); !status.ok()) return std::unexpected(std::move(status));
  std::vector<Samples> loop(3);
  loop[0].name = "full List in the core, processor time";
  loop[1].name = "the same on the wall";
  loop[2].name = "Get beside full Lists, no gRPC";
  CoreLists(flags.machines, loop[0], loop[1]);
  if (Status status = BesideLists(flags, loop[2]); !status.ok()) return std::unexpected(std::move(status));
  rows.insert(rows.begin(), loop.begin(), loop.end());
  Report(flags, rows, numbers);
  return kOk;
}

}  // namespace

void AddBenchProvider(Verb& bench) {
  const auto flags = std::make_shared<Flags>();
  bench.AddVerb("provider", "A provider of many machines: lists, changes since, parallel transitions")
      .Option("--machines", flags->machines, "How many")
      .Option("--lists", flags->lists, "Full lists to measure")
      .Option("--deltas", flags->deltas, "Lists since a revision to measure")
      .Option("--transitions", flags->transitions, "Transitions to measure, 16 at a time")
      .Path("--data-dir", flags->data_dir, "An empty directory on the disk to measure with")
      .Choice("-o,--output", flags->output, {"text", "json"}, "Form of the report")
      .Example("muster bench provider --data-dir /var/tmp/bench --machines 100000")
      .Run([flags] { return BenchProvider(*flags); });
}

}  // namespace muster::cli
