// `muster bench dump`: a generated Kubernetes dump on standard output, or how long it takes to read one.
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <memory>

#include "cli/bench.h"
#include "cli/plan_files.h"
#include "kube/dump_generator.h"

namespace muster::cli {
namespace {

struct Flags {
  int64_t nodes = 5000;
  int64_t pods = 100'000;
  int64_t pending = 0;
  uint64_t seed = 1;
  std::string read;
};

Result<int> ReadDump(const std::string& path) {
  const auto began = std::chrono::steady_clock::now();
  MUSTER_ASSIGN_OR_RETURN(const UnitFiles files, ReadUnitFiles({path}));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  struct rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double processor =
      static_cast<double>(usage.ru_utime.tv_sec) + static_cast<double>(usage.ru_utime.tv_usec) / 1e6;
  Print(fmt::format("{} nodes, {} pods of {} kinds: {:.2f} s ({:.2f} s of processor time), {} MB\n",
                    files.dump.nodes.size(), files.dump.pods.size(), files.dump.kinds.size(), seconds, processor,
                    usage.ru_maxrss / 1024));
  return kOk;
}

Result<int> BenchDump(const Flags& flags) {
  if (!flags.read.empty()) return ReadDump(flags.read);
  constexpr int64_t kMost = 10'000'000;
  if (flags.nodes < 1 || flags.nodes > kMost) return InvalidArgument("--nodes must be from 1 to 10000000");
  if (flags.pods < 0 || flags.pods > kMost) return InvalidArgument("--pods must be from 0 to 10000000");
  if (flags.pending < 0 || flags.pending > flags.pods) return InvalidArgument("--pending must be from 0 to --pods");
  kube::GenerateDump({.nodes = flags.nodes, .pods = flags.pods, .pending = flags.pending, .seed = flags.seed}, Print);
  return kOk;
}

}  // namespace

void AddBenchDump(Verb& bench) {
  const auto flags = std::make_shared<Flags>();
  bench.AddVerb("dump", "Write a generated Kubernetes dump, or measure how one is read")
      .Option("--nodes", flags->nodes, "How many nodes")
      .Option("--pods", flags->pods, "How many pods, those of DaemonSets among them")
      .Option("--pending", flags->pending, "How many of them have no node")
      .Option("--seed", flags->seed, "Another seed, another dump")
      .Path("--read", flags->read, "Read this dump and say how long it took")
      .Example("muster bench dump --nodes 5000 --pods 100000 --seed 1 > dump.json")
      .Example("muster bench dump --read dump.json")
      .Run([flags]() -> Result<int> { return BenchDump(*flags); });
}

}  // namespace muster::cli
