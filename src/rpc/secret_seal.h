// SecretSeal: makes the values of secret variables unreadable where they pass: a scheduler's core, its journal, its
// store and backups of the store have sealed texts, and whoever has the key opens them on their way to an agent.
//
// A sealed text names its owner, and is of no use in the place of another. The same value of the same owner has the
// same text, so that what is applied again is seen to be unchanged; texts of different owners cannot be compared.
//
// Thread-safety: immutable.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::rpc {

class SecretSeal {
 public:
  static constexpr size_t kKeyBytes = 32;
  using Key = std::array<unsigned char, kKeyBytes>;

  explicit SecretSeal(Key key) : key_(key) {}
  // The key of a file: 64 hexadecimal digits. INVALID_ARGUMENT if the file holds none, or if others may read it.
  static Result<SecretSeal> Read(const std::filesystem::path& file);
  // The same; a file that is missing is made, private to this user.
  static Result<SecretSeal> ReadOrMake(const std::filesystem::path& file);
  static SecretSeal Random();

  static bool IsSealed(std::string_view text);
  std::string Seal(std::string_view owner, std::string_view value) const;
  // INVALID_ARGUMENT for a text that was not sealed with this key, or was changed.
  Result<std::string> Open(std::string_view sealed) const;
  // INVALID_ARGUMENT, too, for the text of another owner.
  Result<std::string> OpenFor(std::string_view owner, std::string_view sealed) const;

 private:
  struct Content {
    std::string owner;
    std::string value;
  };
  Result<Content> Unseal(std::string_view sealed) const;

  Key key_;
};

}  // namespace muster::rpc
