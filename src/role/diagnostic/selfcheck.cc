#include "role/diagnostic/selfcheck.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <ranges>
#include <system_error>

#include "host/persist.h"
#include "host/sqlite_version.h"
#include "host/system_clock.h"
#include "rpc/health.h"
#include "rpc/server.h"

namespace muster::diagnostic {
namespace {

CheckResult Required(std::string name, const Result<std::string>& found) {
  return {std::move(name), true, found.has_value(), found ? *found : found.error().message()};
}

CheckResult Optional(std::string name, std::string_view needed_for, std::span<const std::string_view> programs) {
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nothing writes the environment
  const Result<std::string> found = FindProgram(path == nullptr ? "" : path, programs);
  return {std::move(name), false, found.has_value(),
          found ? *found : fmt::format("{}; only needed for {}", found.error().message(), needed_for)};
}

// What a second opening of the database finds after the first one wrote `value` and closed.
Result<std::string> WriteThenRead(const std::string& file, const std::string& value) {
  {
    MUSTER_ASSIGN_OR_RETURN(const auto db, host::SqlitePersist::Open(file, "selfcheck"));
    const Status written = db->Commit({.writes = {{.key = "key", .value = value}}});
    if (!written.ok()) return std::unexpected(written);
  }
  MUSTER_ASSIGN_OR_RETURN(const auto db, host::SqlitePersist::Open(file, "selfcheck"));
  MUSTER_ASSIGN_OR_RETURN(const contract::Recovered rows, db->Recover());
  const auto row = rows.find("key");
  return row == rows.end() ? std::string() : row->second;
}

}  // namespace

Result<std::string> CheckClocks(const Clock& clock) {
  constexpr int kReads = 10'000;
  constexpr auto kSane = std::chrono::years(50);  // since 1970: a clock before 2020 was never set
  Now last = clock.Read();
  for (int i = 0; i < kReads; ++i) {
    const Now now = clock.Read();
    if (now.mono < last.mono) {
      return Error(Code::kFailedPrecondition,
                   fmt::format("the monotonic clock went back by {} ns; check the machine's clock source",
                               (last.mono - now.mono).count()));
    }
    last = now;
  }
  if (last.wall.time_since_epoch() < kSane) {
    return Error(Code::kFailedPrecondition, "the wall clock is before 2020; set the machine's time");
  }
  return fmt::format("monotonic over {} reads", kReads);
}

Result<std::string> CheckSqlite(const std::filesystem::path& parent) {
  std::string dir = (parent / "muster-selfcheck-XXXXXX").string();
  if (mkdtemp(dir.data()) == nullptr) {
    return Error(Code::kFailedPrecondition,
                 fmt::format("cannot make a directory in {}; set TMPDIR to one you may write to", parent.string()));
  }
  const std::string value = "written";
  const Result<std::string> read = WriteThenRead(dir + "/check.db", value);
  std::error_code removed;
  std::filesystem::remove_all(dir, removed);
  if (!read) return read;
  if (*read != value) return Error(Code::kDataLoss, fmt::format("wrote \"{}\", read \"{}\"", value, *read));
  if (removed) return Error(Code::kFailedPrecondition, fmt::format("cannot remove {}: {}", dir, removed.message()));
  return fmt::format("{}, wrote and read in {}", host::SqliteVersion(), parent.string());
}

Result<std::string> CheckGrpc() {
  rpc::Server server({.address = {"127.0.0.1", 0}});
  if (Status started = server.Start(); !started.ok()) return std::unexpected(std::move(started));
  server.SetServing(true);
  if (Status healthy = rpc::CheckHealth(server.address(), "", 5s); !healthy.ok()) {
    return std::unexpected(std::move(healthy));
  }
  return "served a health check on loopback";
}

Result<std::string> FindProgram(std::string_view path, std::span<const std::string_view> programs) {
  for (const auto part : std::views::split(path, ':')) {
    const std::filesystem::path dir(std::string_view(part.begin(), part.end()));
    for (const std::string_view program : programs) {
      if (access((dir / program).c_str(), X_OK) == 0) return (dir / program).string();
    }
  }
  return Error(Code::kNotFound, fmt::format("no {} in PATH", programs.front()));
}

std::vector<CheckResult> SelfCheck() {
  constexpr std::array<std::string_view, 1> kPodman = {"podman"};
  constexpr std::array<std::string_view, 2> kLibvirt = {"libvirtd", "virtqemud"};
  constexpr std::array<std::string_view, 1> kEtcd = {"etcd"};
  std::error_code error;
  const std::filesystem::path temporary = std::filesystem::temp_directory_path(error);
  return {
      Required("clocks", CheckClocks(host::SystemClock())),
      Required("sqlite", error ? Error(Code::kFailedPrecondition, "TMPDIR is not a directory; unset it or make it")
                               : CheckSqlite(temporary)),
      Required("grpc", CheckGrpc()),
      Optional("podman", "container workloads", kPodman),
      Optional("libvirt", "virtual machines", kLibvirt),
      Optional("etcd", "state on more than one machine", kEtcd),
  };
}

bool Passed(std::span<const CheckResult> results) {
  return std::ranges::all_of(results, [](const CheckResult& result) { return result.ok || !result.required; });
}

}  // namespace muster::diagnostic
