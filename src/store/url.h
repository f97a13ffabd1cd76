// StoreUrl: which store, as an operator writes it.
//
//   memory:                            in this process, and gone with it
//   sqlite:DIR                         a file below DIR, which is created
//   etcd://HOST:PORT,...[/prefix]      an etcd cluster, every key below the prefix
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::store {

struct StoreUrl {
  enum class Kind : uint8_t { kMemory, kSqlite, kEtcd };
  Kind kind = Kind::kMemory;
  std::string directory;               // sqlite
  std::vector<std::string> endpoints;  // etcd: HOST:PORT each
  std::string prefix;                  // etcd: "/prefix", or empty

  bool operator==(const StoreUrl&) const = default;
};

// INVALID_ARGUMENT with the three forms if it is none of them. Endpoints are checked when they are used.
Result<StoreUrl> ParseStoreUrl(std::string_view url);

}  // namespace muster::store
