#include "provider/ledger.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <map>
#include <sstream>
#include <system_error>

#include "base/probe.h"

namespace muster::provider {
namespace {

constexpr int64_t kLargeBytes = 64 << 20;
constexpr char kTab = '\t';

// Names are the core's and the catalogue's: without tabs and line ends, but for messages, which lose theirs.
std::string LineOf(const OperationEnded& ended) {
  std::string message = ended.status.message();
  for (char& c : message) c = c == '\t' || c == '\n' ? ' ' : c;
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\n", ended.operation_id, static_cast<int>(ended.kind), ended.machine_id,
                     static_cast<int>(ended.status.code()), ended.done.host.provider, ended.done.host.ref, message);
}

std::optional<OperationEnded> ParseLine(const std::string& line) {
  std::vector<std::string> parts;
  std::istringstream stream(line);
  for (std::string part; parts.size() < 6 && std::getline(stream, part, kTab);) parts.push_back(part);
  std::string message;
  std::getline(stream, message);
  if (parts.size() != 6 || parts[1].size() != 1 || parts[3].empty() || parts[3].size() > 2) return std::nullopt;
  const int kind = parts[1][0] - '0';
  int code = 0;
  for (const char digit : parts[3]) code = code * 10 + (digit - '0');
  if (kind < 0 || kind > 3 || code < 0 || code > 16) return std::nullopt;
  OperationEnded ended{.operation_id = parts[0], .machine_id = parts[2]};
  ended.kind = static_cast<contract::OperationKind>(kind);
  ended.status = code == 0 ? Status() : Status(static_cast<Code>(code), message);
  ended.done.host = {.provider = parts[4], .ref = parts[5]};
  return ended;
}

Status Failure(std::string_view what, const std::filesystem::path& path) {
  const int error = errno;
  return {error == ENOSPC ? Code::kResourceExhausted : Code::kUnavailable,
          fmt::format("cannot {} the ledger {}: {}", what, path.string(), std::generic_category().message(error))};
}

// Where the last whole line ends.
Result<int64_t> ReadLines(const std::filesystem::path& path, std::map<std::string, OperationEnded>& last) {
  std::ifstream file(path, std::ios::binary);
  int64_t whole = 0;
  int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    if (file.eof()) break;  // no line end: the process died while writing
    ++number;
    auto ended = ParseLine(line);
    if (!ended) {
      return Error(Code::kDataLoss,
                   fmt::format("line {} of {} cannot be read; restore it from a backup, or move it away: "
                               "operations under way may then be done twice",
                               number, path.string()));
    }
    std::string machine = ended->machine_id;
    last.insert_or_assign(std::move(machine), *std::move(ended));
    whole += static_cast<int64_t>(line.size()) + 1;
  }
  return whole;
}

}  // namespace

Result<std::unique_ptr<Ledger>> Ledger::Open(const std::filesystem::path& path, std::vector<OperationEnded>& known) {
  std::map<std::string, OperationEnded> last;
  MUSTER_ASSIGN_OR_RETURN(int64_t size, ReadLines(path, last));
  if (size > kLargeBytes) {
    const std::filesystem::path anew = path.string() + ".new";
    {
      std::ofstream file(anew, std::ios::binary | std::ios::trunc);
      for (const auto& [machine, ended] : last) file << LineOf(ended);
      if (!file.flush()) return std::unexpected(Failure("write", anew));
      size = file.tellp();
    }
    std::error_code error;
    std::filesystem::rename(anew, path, error);
    if (error) return Error(Code::kUnavailable, fmt::format("cannot replace {}: {}", path.string(), error.message()));
  }
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return std::unexpected(Failure("open", path));
  std::unique_ptr<Ledger> ledger(new Ledger(path, fd, size));
  if (::ftruncate(fd, size) != 0) return std::unexpected(Failure("cut", path));
  for (auto& [machine, ended] : last) known.push_back(std::move(ended));
  return ledger;
}

Ledger::~Ledger() { ::close(fd_); }

Status Ledger::Append(const OperationEnded& ended) {
  CRASH_POINT("provider.before_ledger");
  const std::string line = LineOf(ended);
  const ssize_t written = ::pwrite(fd_, line.data(), line.size(), size_);
  if (written != static_cast<ssize_t>(line.size())) {
    if (written >= 0) errno = ENOSPC;
    Status failure = Failure("write", path_);
    if (::ftruncate(fd_, size_) != 0) return Failure("cut", path_);
    return failure;
  }
  size_ += written;
  CRASH_POINT("provider.after_ledger");
  return {};
}

}  // namespace muster::provider
