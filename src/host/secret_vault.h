// SecretVault: what a core must carry from one peer to another and must not see, such as the bootstrap data with which
// a machine joins a cluster. The core gets a handle in its place, so that its state, its journal and what replay prints
// hold none of it; the shell puts the secret back where it leaves the process.
//
// With a directory a secret is a file of its own, durable when Put comes back and gone with Drop; without one it is in
// memory only. What one owner keeps is bounded, and what all keep: the oldest go of the owner that has most.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <cstddef>
#include <deque>
#include <filesystem>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::host {

struct SecretVaultOptions {
  std::filesystem::path directory = {};  // empty: in memory
  size_t most_bytes = 16 << 20;          // of one owner
  size_t most_of_all = std::numeric_limits<size_t>::max();
};

class SecretVault {
 public:
  explicit SecretVault(SecretVaultOptions options) : options_(std::move(options)) {}

  // Makes the directory, private to this user, and erases every secret in it but those of `used`. Before any Put.
  Status Open(const std::set<std::string>& used);

  // A handle that no other secret has; of nothing, nothing.
  Result<std::string> Put(const std::string& owner, std::string secret);
  // NOT_FOUND once it is gone. A text that is no handle is itself: states of before handles have those.
  Result<std::string> Get(std::string_view handle) const;
  void Drop(const std::string& handle);

  size_t size() const;

 private:
  struct Kept {
    std::string owner;
    std::string secret;  // in memory
    size_t bytes = 0;
  };
  struct Owner {
    std::deque<std::string> handles;  // the oldest first; some may be gone
    size_t bytes = 0;
  };
  std::filesystem::path FileOf(std::string_view handle) const;
  void DropLocked(const std::string& handle);
  void DropOldest(Owner& owner);

  const SecretVaultOptions options_;
  mutable std::mutex mu_;
  std::map<std::string, Kept, std::less<>> kept_;  // guarded by mu_: of this process
  std::map<std::string, Owner> owners_;            // guarded by mu_
  size_t bytes_ = 0;                               // guarded by mu_: of all
};

}  // namespace muster::host
