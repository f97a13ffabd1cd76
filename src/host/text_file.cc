#include "host/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "model/text_scalars.h"
#include "model/yaml_reader.h"

namespace muster::host {
namespace {

class File {
 public:
  explicit File(const std::string& path)
      : owned_(path != "-"), fd_(owned_ ? open(path.c_str(), O_RDONLY | O_CLOEXEC) : STDIN_FILENO) {}
  ~File() {
    if (owned_ && fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  const bool owned_;
  const int fd_;
};

Status FromErrno(std::string_view source, std::string_view action, int error) {
  const Code code = error == ENOENT ? Code::kNotFound : error == EACCES ? Code::kPermissionDenied : Code::kUnavailable;
  return {code, fmt::format("{}: cannot {}: {}", source, action, std::strerror(error))};
}

}  // namespace

std::string SourceName(const std::string& path) { return path == "-" ? "standard input" : path; }

std::string NearestFile(const std::string& path) {
  constexpr size_t kLooked = 10'000;  // entries of the directory, so that a huge one costs nothing
  namespace fs = std::filesystem;
  const fs::path wanted(path);
  std::error_code error;
  if (path == "-" || fs::exists(wanted, error)) return {};
  const fs::path folder = wanted.has_parent_path() ? wanted.parent_path() : fs::path(".");
  std::vector<std::string> names;
  for (fs::directory_iterator at(folder, error), end; !error && at != end && names.size() < kLooked;
       at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  std::ranges::sort(names);
  const std::string nearest = model::NearestName(wanted.filename().string(), names);
  if (nearest.empty()) return {};
  return fmt::format(", did you mean {}?", wanted.has_parent_path() ? (folder / nearest).string() : nearest);
}

Result<std::string> ReadTextFile(const std::string& path, const model::TextLimits& limits) {
  const std::string source = SourceName(path);
  const File file(path);
  if (file.fd() < 0) {
    const Status error = FromErrno(source, "open", errno);
    return std::unexpected(Status(error.code(), error.message() + NearestFile(path)));
  }
  struct stat info{};
  if (fstat(file.fd(), &info) != 0) return std::unexpected(FromErrno(source, "read", errno));
  std::string text;
  if (S_ISREG(info.st_mode)) {
    const auto size = static_cast<size_t>(info.st_size);
    if (size > limits.max_bytes) return std::unexpected(model::TextTooLarge(source, size, limits));
    text.reserve(size);
  }
  char chunk[1 << 16];
  while (true) {
    const ssize_t n = read(file.fd(), chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::unexpected(FromErrno(source, "read", errno));
    if (n == 0) return text;
    text.append(chunk, static_cast<size_t>(n));
    if (text.size() > limits.max_bytes) return std::unexpected(model::TextTooLarge(source, text.size(), limits));
  }
}

Result<model::TextValue> ReadYamlFile(const std::string& path, const model::TextLimits& limits) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, limits));
  return model::ReadYamlDocument(text, SourceName(path), limits);
}

}  // namespace muster::host
