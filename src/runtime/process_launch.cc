#include "runtime/process_launch.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>

#include "base/hash.h"
#include "model/names.h"
#include "model/workload.h"

namespace muster::runtime {
namespace {

constexpr size_t kLongestText = 128 << 10;  // of one argument or variable: MAX_ARG_STRLEN
constexpr size_t kLargestTexts = 1 << 20;   // of all together; ARG_MAX is at least twice as much
constexpr int64_t kMostProcesses = 4096;
constexpr std::string_view kPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

Status Refused(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

bool HasNul(std::string_view text) { return text.contains('\0'); }

bool IsVariableName(std::string_view name) {
  const auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  const auto later = [&](char c) {
    return letter(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-';
  };
  return !name.empty() && letter(name.front()) && std::ranges::all_of(name, later);
}

}  // namespace

Result<ProcessUser> ParseProcessUser(std::string_view text) {
  if (text == "agent") return ProcessUser{.mode = ProcessUser::Mode::kAgent};
  if (geteuid() != 0) {
    return InvalidArgument(
        fmt::format("{}: only root can run processes as another user; start the agent as root, or "
                    "let processes run as the agent's own user with \"agent\"",
                    text));
  }
  if (text == "own") return ProcessUser{.mode = ProcessUser::Mode::kOwn};
  const passwd* const entry = getpwnam(std::string(text).c_str());
  if (entry == nullptr) return InvalidArgument(fmt::format("there is no user {}", model::Quoted(text)));
  return ProcessUser{.mode = ProcessUser::Mode::kFixed, .user = entry->pw_uid, .group = entry->pw_gid};
}

uid_t OwnUser(std::string_view salt, std::string_view workload) {
  Hasher hasher;
  hasher.Add(salt);
  hasher.Add(workload);
  return kFirstOwnUser + static_cast<uid_t>(hasher.value() % kOwnUsers);
}

Status CheckProcess(const contract::StartRun& start) {
  const model::WorkloadTemplate& spec = start.spec;
  if (!model::IsWorkloadId(start.workload)) return Refused("workload: it is no id");
  if (spec.command.empty() || spec.command.front().empty()) return Refused("command: a process needs one");
  if (!spec.volumes.empty()) return Refused("volumes: a process has none; it sees the files of the node");
  size_t bytes = 0;
  for (size_t i = 0; i < spec.command.size(); ++i) {
    const std::string& word = spec.command[i];
    if (HasNul(word)) return Refused(fmt::format("command[{}]: has a NUL", i));
    if (word.size() >= kLongestText) return Refused(fmt::format("command[{}]: is longer than 128Ki", i));
    bytes += word.size() + 1;
  }
  for (const auto& [name, value] : spec.env) {
    if (!IsVariableName(name)) return Refused(fmt::format("env: {} is no name of a variable", model::Quoted(name)));
    if (HasNul(value)) return Refused(fmt::format("env.{}: has a NUL", name));
    if (name.size() + value.size() + 1 >= kLongestText)
      return Refused(fmt::format("env.{}: is longer than 128Ki", name));
    bytes += name.size() + value.size() + 2;
  }
  if (bytes > kLargestTexts) return Refused("command and env: longer than 1Mi together");
  return {};
}

shim::Launch LaunchOf(const contract::StartRun& start, const std::string& work) {
  shim::Launch launch{
      .workload = start.workload, .number = start.launch, .revision = start.revision, .command = start.spec.command};
  for (const auto& [name, value] : start.spec.env) launch.environment.push_back(fmt::format("{}={}", name, value));
  if (!start.spec.env.contains("MUSTER_WORKLOAD")) {
    launch.environment.push_back(fmt::format("MUSTER_WORKLOAD={}", start.workload));
  }
  if (!start.spec.env.contains("PATH")) launch.environment.push_back(fmt::format("PATH={}", kPath));
  if (!start.spec.env.contains("HOME")) launch.environment.push_back(fmt::format("HOME={}", work));
  launch.grace_ms = std::chrono::duration_cast<std::chrono::milliseconds>(start.spec.grace).count();
  return launch;
}

CgroupLimits LimitsOf(const model::WorkloadTemplate& spec) {
  constexpr int64_t kMilli = 1000;
  return {.memory_bytes = (spec.resources.Get("memory") + kMilli - 1) / kMilli,
          .cpu_milli = spec.resources.Get("cpu"),
          .pids = kMostProcesses};
}

}  // namespace muster::runtime
