#include "runtime/process_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "model/workload.h"
#include "shim/record_file.h"

namespace muster::runtime {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kPassable = 0711;
constexpr std::string_view kRemoving = ".removing-";

std::string ErrnoText(int error) { return std::generic_category().message(error); }

Status MakeDirectory(const std::string& path, mode_t mode) {
  if (mkdir(path.c_str(), mode) != 0 && errno != EEXIST) {
    return {Code::kInternal, fmt::format("cannot make {}: {}", path, ErrnoText(errno))};
  }
  // Beyond the umask, and for a directory of an earlier run.
  if (chmod(path.c_str(), mode) != 0) {
    return {Code::kInternal, fmt::format("cannot set the mode of {}: {}", path, ErrnoText(errno))};
  }
  return {};
}

WallTime FromNs(int64_t ns) { return WallTime(Duration(ns)); }

}  // namespace

ProcessFiles::ProcessFiles(const fs::path& root, const std::string& workload)
    : root_(root), workload_(workload), directory_((root / workload).string()) {}

Status ProcessFiles::Make(bool change_user, uid_t user, gid_t group) const {
  MUSTER_RETURN_IF_ERROR(MakeDirectory(directory_, kPassable));
  MUSTER_RETURN_IF_ERROR(MakeDirectory(work(), S_IRWXU));
  if (change_user && lchown(work().c_str(), user, group) != 0) {
    return {Code::kInternal, fmt::format("cannot give {} to user {}: {}", work(), user, ErrnoText(errno))};
  }
  return {};
}

Status ProcessFiles::WriteLaunch(const shim::Launch& launch) const {
  if (const int error = shim::WriteRecord(directory_, shim::kLaunchFile, launch); error != 0) {
    return {Code::kInternal, fmt::format("cannot write in {}: {}", directory_, ErrnoText(error))};
  }
  return {};
}

pid_t ProcessFiles::FindShim() const {
  const std::string path = directory_ + "/" + std::string(shim::kLockFile);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return 0;
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool asked = fcntl(fd, F_GETLK, &lock) == 0;
  close(fd);
  return asked && lock.l_type != F_UNLCK ? lock.l_pid : 0;
}

std::optional<FoundProcess> ProcessFiles::Find() const {
  FoundProcess found;
  // The lock first: a shim that ends after this has written its records before it let go.
  found.shim = FindShim();
  auto launch = shim::ReadRecord<shim::Launch>(directory_, shim::kLaunchFile);
  if (!launch) return std::nullopt;
  found.launch = *std::move(launch);
  found.started = shim::ReadRecord<shim::Started>(directory_, shim::kStartedFile);
  if (found.started && found.started->launch != found.launch.number) found.started.reset();
  found.exit = shim::ReadRecord<shim::Exit>(directory_, shim::kExitFile);
  if (found.exit && found.exit->launch != found.launch.number) found.exit.reset();
  return found;
}

Status ProcessFiles::Remove() const {
  // Renamed first: what an agent that dies here leaves is no workload any more.
  const fs::path away = root_ / (std::string(kRemoving) + workload_);
  std::error_code error;
  fs::remove_all(away, error);
  if (rename(directory_.c_str(), away.c_str()) != 0 && errno != ENOENT) {
    return {Code::kInternal, fmt::format("cannot remove {}: {}", directory_, ErrnoText(errno))};
  }
  fs::remove_all(away, error);
  if (error) return {Code::kInternal, fmt::format("cannot remove {}: {}", away.string(), error.message())};
  return {};
}

Result<std::vector<std::string>> ProcessFiles::List(const fs::path& root) {
  std::vector<std::string> ids;
  std::vector<fs::path> left;
  std::error_code error;
  for (fs::directory_iterator at(root, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    if (name.starts_with(kRemoving)) left.push_back(at->path());
    if (model::IsWorkloadId(name)) ids.push_back(name);
  }
  if (error) return Error(Code::kInternal, fmt::format("cannot read {}: {}", root.string(), error.message()));
  for (const fs::path& path : left) fs::remove_all(path, error);
  std::ranges::sort(ids);
  return ids;
}

contract::Run RunOf(const FoundProcess& found) {
  constexpr int32_t kSignalBase = 128;
  contract::Run run{.workload = found.launch.workload,
                    .launch = found.launch.number,
                    .revision = found.launch.revision,
                    .running = found.shim != 0 && !found.exit};
  if (found.started) {
    run.started_at = FromNs(found.started->at_ns);
    run.metadata["process.pid"] = std::to_string(found.started->process);
  }
  if (run.running) return run;
  if (!found.exit) {
    run.message = found.started ? "its shim is gone: how it ended is not known" : "it was never started";
    return run;
  }
  const shim::Exit& exit = *found.exit;
  run.ended_at = FromNs(exit.ended_ns);
  run.oom_killed = exit.oom_killed;
  run.message = exit.error;
  if (exit.signal != 0) {
    run.exit_code = kSignalBase + exit.signal;
  } else if (exit.code >= 0) {
    run.exit_code = exit.code;
  }
  return run;
}

}  // namespace muster::runtime
