#include "bench/plan_dump.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>

#include "bench/process.h"
#include "kube/dump_generator.h"
#include "kube/dump_reader.h"
#include "kube/plan_request.h"

namespace muster::bench {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// A file that goes with its owner.
class TemporaryFile {
 public:
  TemporaryFile() : path_(std::filesystem::temp_directory_path() / fmt::format("muster-bench-{}.json", getpid())) {}
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  File Open(const char* mode) const { return File(std::fopen(path_.c_str(), mode)); }
  const std::filesystem::path& path() const { return path_; }

 private:
  const std::filesystem::path path_;
};

Status Write(const TemporaryFile& into, int64_t nodes, int64_t pods) {
  const File file = into.Open("wb");
  bool whole = file != nullptr;
  if (whole) {
    kube::GenerateDump({.nodes = nodes, .pods = pods}, [&](std::string_view text) {
      whole = whole && std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
    });
    whole = whole && std::fflush(file.get()) == 0;
  }
  if (whole) return {};
  return {Code::kUnavailable, fmt::format("{}: cannot write the dump", into.path().string())};
}

}  // namespace

Result<ReadDump> ReadGeneratedDump(int64_t nodes, int64_t pods) {
  const TemporaryFile temporary;
  if (Status status = Write(temporary, nodes, pods); !status.ok()) return std::unexpected(std::move(status));
  const File file = temporary.Open("rb");
  if (file == nullptr) return Error(Code::kUnavailable, fmt::format("{}: cannot read", temporary.path().string()));
  const auto began = std::chrono::steady_clock::now();
  const Duration cpu_began = ThreadCpuTime();
  kube::DumpReader reader;
  Status status = reader.Read(
      [&](std::span<char> buffer) -> Result<size_t> { return std::fread(buffer.data(), 1, buffer.size(), file.get()); },
      temporary.path().string());
  if (!status.ok()) return std::unexpected(std::move(status));
  ReadDump read;
  MUSTER_ASSIGN_OR_RETURN(read.dump, reader.Finish());
  read.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  read.cpu_seconds = std::chrono::duration<double>(ThreadCpuTime() - cpu_began).count();
  struct rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  read.rss_mb = static_cast<double>(usage.ru_maxrss) / 1024;
  return read;
}

Result<planner::Request> RequestOf(const kube::Dump& dump, const planner::Catalogue& catalogue, planner::Keep keep) {
  kube::PlanOptions options{.keep = keep, .allow = {"amd64", "on-demand"}};
  MUSTER_ASSIGN_OR_RETURN(kube::PlanInput input, kube::MakePlanInput(dump, {}, catalogue, options));
  return std::move(input.request);
}

}  // namespace muster::bench
