#include "cli/plan_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "cli/progress.h"
#include "host/text_file.h"
#include "kube/catalogue_file.h"
#include "kube/dump_reader.h"
#include "model/names.h"
#include "model/text_value.h"

namespace muster::cli {
namespace {

constexpr size_t kPeekBytes = 4096;

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// A file whose first bytes were looked at before it is read.
class PeekedFile {
 public:
  static Result<PeekedFile> Open(const std::string& path) {
    PeekedFile file;
    file.source_ = host::SourceName(path);
    file.file_.reset(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
    if (file.file_ == nullptr) return std::unexpected(file.Error("open"));
    file.head_.resize(kPeekBytes);
    MUSTER_ASSIGN_OR_RETURN(const size_t got, file.ReadFile(file.head_));
    file.head_.resize(got);
    std::error_code ignored;
    const auto size = std::filesystem::file_size(path, ignored);
    if (!ignored) file.size_ = size;
    return file;
  }

  bool IsDump() const {
    const size_t first = head_.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
    return first != std::string::npos && head_[first] == '{';
  }

  Result<size_t> Read(std::span<char> buffer) {
    if (taken_ < head_.size()) {
      const size_t count = std::min(buffer.size(), head_.size() - taken_);
      std::memcpy(buffer.data(), head_.data() + taken_, count);
      taken_ += count;
      return count;
    }
    return ReadFile(buffer);
  }

  const std::string& source() const { return source_; }
  uint64_t size() const { return size_; }  // 0: unknown

 private:
  Result<size_t> ReadFile(std::span<char> buffer) {
    errno = 0;
    const size_t got = std::fread(buffer.data(), 1, buffer.size(), file_.get());
    if (got == 0 && std::ferror(file_.get()) != 0) return std::unexpected(Error("read"));
    return got;
  }
  Status Error(std::string_view action) const {
    const int error = errno;
    return {error == ENOENT ? Code::kNotFound : Code::kUnavailable,
            fmt::format("{}: cannot {}: {}{}", source_, action, std::generic_category().message(error),
                        host::NearestFile(source_))};
  }

  std::string source_;
  File file_;
  std::string head_;
  size_t taken_ = 0;
  uint64_t size_ = 0;
};

Result<model::WorkloadFile> ReadWorkloads(PeekedFile& file) {
  const model::TextLimits limits;
  std::string text;
  std::string chunk(1u << 16, '\0');
  for (;;) {
    MUSTER_ASSIGN_OR_RETURN(const size_t got, file.Read(chunk));
    if (got == 0) break;
    text.append(chunk, 0, got);
    if (text.size() > limits.max_bytes) {
      return std::unexpected(model::TextTooLarge(file.source(), text.size(), limits));
    }
  }
  return model::ReadWorkloadFile(text, file.source());
}

// Within a file the reader finds what is there twice, and says the line.
Status NoteWorkloads(const model::WorkloadFile& workloads, const std::string& source,
                     std::map<std::string, std::string>& file_of) {
  for (const model::WorkloadSpec& spec : workloads.workloads) {
    for (int32_t i = 0; i < spec.replicas; ++i) {
      const auto [at, is_new] = file_of.try_emplace(model::MemberId(spec, i), source);
      if (is_new) continue;
      return {Code::kInvalidArgument, fmt::format("{}: workload {} is in {} too; give every workload once", source,
                                                  model::Quoted(at->first), at->second)};
    }
  }
  return {};
}

Status ReadDump(PeekedFile& file, kube::DumpReader& reader) {
  Progress progress(fmt::format("reading {}", file.source()), file.size());
  return reader.Read([&](std::span<char> buffer) { return file.Read(buffer); }, file.source(),
                     [&](uint64_t bytes) { progress.Update(bytes); });
}

}  // namespace

Result<std::vector<std::string>> ExpandPath(const std::string& path) {
  std::error_code error;
  if (path == "-" || !std::filesystem::is_directory(path, error)) return std::vector{path};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".json" || extension == ".yaml" || extension == ".yml") files.push_back(entry.path().string());
  }
  if (error) return InvalidArgument(fmt::format("{}: cannot list: {}", path, error.message()));
  if (files.empty()) return InvalidArgument(fmt::format("{}: the directory has no .json, .yaml or .yml file", path));
  std::ranges::sort(files);
  return files;
}

Result<bool> HasDump(const std::vector<std::string>& paths) {
  for (const std::string& given : paths) {
    if (given == "-") continue;
    MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> files, ExpandPath(given));
    for (const std::string& path : files) {
      MUSTER_ASSIGN_OR_RETURN(const PeekedFile file, PeekedFile::Open(path));
      if (file.IsDump()) return true;
    }
  }
  return false;
}

Result<UnitFiles> ReadUnitFiles(const std::vector<std::string>& paths) {
  UnitFiles files;
  kube::DumpReader reader;
  std::map<std::string, std::string> file_of;  // by workload
  for (const std::string& given : paths) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> expanded, ExpandPath(given));
    for (const std::string& path : expanded) {
      MUSTER_ASSIGN_OR_RETURN(PeekedFile file, PeekedFile::Open(path));
      const bool is_yaml = path.ends_with(".yaml") || path.ends_with(".yml");
      if (is_yaml || (!path.ends_with(".json") && !file.IsDump())) {
        MUSTER_ASSIGN_OR_RETURN(model::WorkloadFile workloads, ReadWorkloads(file));
        if (Status status = NoteWorkloads(workloads, file.source(), file_of); !status.ok()) {
          return std::unexpected(std::move(status));
        }
        files.workloads.push_back(std::move(workloads));
        continue;
      }
      if (Status status = ReadDump(file, reader); !status.ok()) return std::unexpected(std::move(status));
      files.has_dump = true;
    }
  }
  if (files.has_dump) {
    MUSTER_ASSIGN_OR_RETURN(files.dump, reader.Finish());
  }
  return files;
}

void AddPlanFlags(Verb& verb, PlanFlags& flags) {
  verb.Option(
          "-f,--file", flags.files,
          "What is to run: a Kubernetes dump (kubectl get ... -A -o json), a workload file, or a directory of them; - "
          "is standard input")
      .Option("--nodes", flags.nodes, "A dump with the nodes that are there, if -f has none")
      .Path("--catalogue", flags.catalogue, "Machine types with prices, YAML or CSV; docs/planning.md lists the keys")
      .Choice("--keep", flags.keep, {"none", "nodes"},
              "nodes: add to what is there (default if there are nodes); none: what would the ideal fleet be")
      .Choice("--effort", flags.effort, {"fast", "best"}, "How long to search; counted in steps, not in seconds")
      .Option("--allow", flags.allow, "What units may move to, though they do not run on it now: arm64,spot")
      .Option("--assume-requests", flags.assume_requests, "For pods that request nothing: cpu=100m,memory=128Mi")
      .Flag("--exact", flags.exact, "Do not add machines for what a default scheduler would leave pending");
}

Result<PlanQuestion> ReadPlanQuestion(const PlanFlags& flags) {
  if (flags.files.empty())
    return InvalidArgument("say what is to run with -f FILE: a Kubernetes dump or a workload file");
  if (flags.catalogue.empty()) {
    return InvalidArgument("say which machines there are with --catalogue FILE; examples/catalogues has one");
  }
  kube::PlanOptions options;
  MUSTER_ASSIGN_OR_RETURN(options.allow, kube::ParseAllowed(flags.allow));
  MUSTER_ASSIGN_OR_RETURN(options.assume_requests, kube::ParseAssumedRequests(flags.assume_requests));
  MUSTER_ASSIGN_OR_RETURN(const std::string text, host::ReadTextFile(flags.catalogue));
  MUSTER_ASSIGN_OR_RETURN(const planner::Catalogue catalogue, kube::ReadCatalogue(text, flags.catalogue));
  std::vector<std::string> paths = flags.files;
  paths.insert(paths.end(), flags.nodes.begin(), flags.nodes.end());
  MUSTER_ASSIGN_OR_RETURN(const UnitFiles files, ReadUnitFiles(paths));
  options.keep = files.dump.nodes.empty() ? planner::Keep::kNone : planner::Keep::kNodes;
  if (!flags.keep.empty()) {
    MUSTER_ASSIGN_OR_RETURN(options.keep, planner::ParseKeep(flags.keep));
  }
  PlanQuestion question{.catalogue_source = catalogue.source};
  MUSTER_ASSIGN_OR_RETURN(question.input, kube::MakePlanInput(files.dump, files.workloads, catalogue, options));
  MUSTER_ASSIGN_OR_RETURN(question.input.request.effort, planner::ParseEffort(flags.effort));
  question.input.request.exact = flags.exact;
  return question;
}

namespace {

template <class Answer>
Result<Answer> WithProgress(planner::Request& request, Result<Answer> (*make)(const planner::Request&),
                            const Progress::Clock& clock) {
  Progress progress("planning", 100, clock);
  request.go_on = [&](uint64_t done, uint64_t allowed) {
    progress.Update(allowed == 0 ? 0 : done * 100 / allowed);
    return true;
  };
  return make(request);
}

}  // namespace

Result<planner::Plan> RunPlan(planner::Request& request, const Progress::Clock& clock) {
  return WithProgress(request, planner::MakePlan, clock);
}
Result<planner::Consolidation> RunConsolidation(planner::Request& request) {
  return WithProgress(request, planner::MakeConsolidation, std::chrono::steady_clock::now);
}

}  // namespace muster::cli
