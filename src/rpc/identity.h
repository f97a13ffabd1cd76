// Identity: who a caller is, by the one bigfleet:// URI of its certificate, and what it may call.
//
//   bigfleet://cluster/<id>   bigfleet://shard/<id>   bigfleet://readonly   bigfleet://admin
//
// The table of methods is in identity.cc and, for people, in docs/wire.md. A method without a row is open to nobody;
// health and reflection are open to every certificate of the CA. Where a method also demands that a field of the
// request equals the caller's id, its service checks that.
//
// Thread-safety: value types and functions without state.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::rpc {

struct Identity {
  enum class Kind : uint8_t { kCluster, kShard, kReadonly, kAdmin };
  Kind kind = Kind::kReadonly;
  std::string id;  // of clusters and shards

  std::string ToString() const;  // the URI
  bool operator==(const Identity&) const = default;
};

// INVALID_ARGUMENT, quoting the URI, for anything but the four forms.
Result<Identity> ParseIdentity(std::string_view uri);

// The identity among the URIs of one certificate. PERMISSION_DENIED unless exactly one begins with bigfleet://, and
// that one parses.
Result<Identity> IdentityOf(std::span<const std::string> uris);

// Whether a caller whose certificate has these URIs may call the method ("/package.Service/Method"). PERMISSION_DENIED
// with a sentence that names both.
Status Authorise(std::string_view method, std::span<const std::string> uris);

// Whether the table says anything about the method.
bool HasRule(std::string_view method);

}  // namespace muster::rpc
