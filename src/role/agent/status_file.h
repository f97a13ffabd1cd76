// StatusFile: what an agent says of itself in its data directory, for whoever started it on the same computer: the file
// agent.status with one "key value" a line: pid, joined (0 or 1), workloads (how many the node has). It is replaced as
// a whole when something in it changes.
//
// Thread-safety: Write from any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>

namespace muster::agent {

class StatusFile {
 public:
  explicit StatusFile(const std::filesystem::path& data_dir) : path_(data_dir / "agent.status") {}

  // A file that cannot be written is logged once; the agent goes on.
  void Write(bool joined, size_t workloads);

 private:
  const std::filesystem::path path_;
  std::mutex mu_;
  std::string last_;         // guarded by mu_
  bool complained_ = false;  // guarded by mu_
};

}  // namespace muster::agent
