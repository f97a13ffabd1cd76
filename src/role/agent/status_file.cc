#include "role/agent/status_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <system_error>

#include "base/log.h"

namespace muster::agent {

void StatusFile::Write(bool joined, size_t workloads) {
  const std::string text = fmt::format("pid {}\njoined {}\nworkloads {}\n", getpid(), joined ? 1 : 0, workloads);
  const std::lock_guard lock(mu_);
  if (text == last_) return;
  const std::filesystem::path draft = path_.string() + ".new";
  std::ofstream file(draft, std::ios::trunc);
  // Workloads pass through the directory: what is in it is closed by itself.
  std::error_code error;
  std::filesystem::permissions(draft, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write, error);
  file << text;
  file.close();
  if (file && !error) std::filesystem::rename(draft, path_, error);
  if (file && !error) {
    last_ = text;
  } else if (!complained_) {
    complained_ = true;
    log::Err("the status of the agent cannot be written", {{"file", path_.string()}});
  }
}

}  // namespace muster::agent
