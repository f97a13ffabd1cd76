// Identity: who a caller is, by the one bigfleet:// or muster:// URI of its certificate, and what it may call.
//
//   bigfleet://cluster/<id>   bigfleet://shard/<id>   bigfleet://readonly   bigfleet://admin
//   bigfleet://provider/<name>   bigfleet://coordinator/<id>
//   muster://scheduler/<cluster>   muster://node/<cluster>/<id>   muster://tenant/<tenant>   muster://join/<cluster>
//
// The table of methods is in identity.cc and, for people, in docs/wire.md. A method without a row is open to nobody;
// health and reflection are open to every certificate of the CA. Where a method also demands that a field of the
// request equals the caller's id, its service checks that.
//
// Thread-safety: value types and functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::rpc {

struct Identity {
  enum class Kind : uint8_t {
    kCluster,
    kShard,
    kReadonly,
    kAdmin,
    kScheduler,
    kNode,
    kTenant,
    kForeignNode,
    kProvider,
    kCoordinator,
    kJoin
  };
  Kind kind = Kind::kReadonly;
  // Of clusters, shards, tenants, providers and coordinators; a scheduler's or join token's cluster; "<cluster>/<id>"
  // of a node; of a foreign node, which has no URI, the DNS names of its certificate with commas.
  std::string id;

  std::string ToString() const;  // the URI
  // The cluster that a cluster, a scheduler, a node or a join token belongs to; empty for the others, which are of no
  // one cluster.
  std::string_view cluster() const;
  bool operator==(const Identity&) const = default;
};

// INVALID_ARGUMENT, quoting the URI, for anything but these forms.
Result<Identity> ParseIdentity(std::string_view uri);

// The identity among the URIs of one certificate. PERMISSION_DENIED unless exactly one begins with bigfleet:// or
// muster://, and that one parses.
Result<Identity> IdentityOf(std::span<const std::string> uris);

// A certificate of the CA without a URI of ours may be that of a node of another make, where a server says so.
enum class ForeignNodes : uint8_t { kRefused, kAllowed };

// Whom a server is for: everybody in the table, or operators alone, which are readonly and admin.
enum class Callers : uint8_t { kAll, kOperators };

// Whether a caller whose certificate has these URIs may call the method ("/package.Service/Method"). PERMISSION_DENIED
// with a sentence that names both. A foreign node may register, send heartbeats and open a ControlStream.
//
// A certificate of one cluster is worth nothing to the servers of another: a caller whose identity names a cluster must
// name `own_cluster`, the server's. Empty: the server belongs to no one cluster (a shard), or was not told of its own.
//
// Of a server for operators alone, others may call nothing, health and reflection neither.
Status Authorise(std::string_view method, std::span<const std::string> uris,
                 ForeignNodes foreign = ForeignNodes::kRefused, std::string_view own_cluster = {},
                 Callers callers = Callers::kAll);

// Whether the table lets an operator call the method.
bool IsForOperators(std::string_view method);

// Whom a client expects at an address.
struct ExpectedServer {
  std::vector<Identity::Kind> kinds = {};  // empty: anybody
  std::string cluster = {};                // of an identity that names one; empty: any
  std::string node = {};                   // of a node's identity, without its cluster; empty: any
  // A server that is none of ours, as an etcd: a certificate with a URI of ours is that of another program.
  bool foreign = false;

  bool operator==(const ExpectedServer&) const = default;
};

// Whether a server whose certificate has these URIs is the expected one. PERMISSION_DENIED with a sentence that names
// both. A certificate without a URI of ours is a plain server's, of any make, and is known by its host name alone.
Status CheckServer(std::span<const std::string> uris, const ExpectedServer& expected);

// A node speaks for itself only: PERMISSION_DENIED if the caller is another node; its cluster is judged by Authorise. A
// foreign node's name must be a DNS name of its certificate. Nothing, and every other caller, is OK.
Status CheckNode(const std::optional<Identity>& caller, std::string_view node);

// Whether the call changes something by an operator's will, and so leaves a line: what admin may call and readonly may
// not. Where programs call too, nodes and schedulers, only the call of an operator with a certificate is one. On the
// socket every method is one that changes something: whoever calls there owns it.
bool IsOrder(std::string_view method, const std::optional<Identity>& caller, bool on_socket = false);

// Whether the table says anything about the method.
bool HasRule(std::string_view method);

}  // namespace muster::rpc
