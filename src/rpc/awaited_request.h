// AwaitRequest: the one message of a call, awaited for kFirstWordTimeout and no longer.
//
// gRPC shows a program a call with one message when that message has come, and waits for it as long as the connection
// lasts: a caller could leave thousands of calls open without a word. So BoundedService registers its methods as
// streams, which are shown at once, and reads the message with this.
//
// One thread of the process looks at the calls that wait longest, four times a second.
//
// Thread-safety: may be called from any thread.
#pragma once

#include <grpc/grpc.h>

#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "base/status.h"
#include "rpc/caller_count.h"

namespace grpc {
class ServerContextBase;
}

namespace muster::rpc {

// Calls that wait for their message: of one caller, and of all callers of a server. One costs 20 KiB.
inline constexpr size_t kMostAwaited = 2'048;
inline constexpr size_t kMostAwaitedOfAll = 8'192;

// These calls, of every server of the process. Its owner has a lock.
class AwaitedCount {
 public:
  // RESOURCE_EXHAUSTED, naming the bound; if OK, Remove follows.
  Status Add(const void* server, const std::string& who);
  void Remove(const void* server, const std::string& who);

 private:
  std::map<const void*, CallerCount> of_;  // servers without such a call have no entry
};

// The message, which is the taker's to free, or null if none came; and whether the call was cancelled for it. On a
// thread of gRPC.
using RequestCame = std::function<void(grpc_byte_buffer* message, bool silent)>;

// `server` tells callers of one name at different servers apart. The call and its context last until `came` was called.
// RESOURCE_EXHAUSTED, naming the bound, if the caller or all have too many such calls; `came` is not called then.
Status AwaitRequest(const void* server, std::string who, grpc_call* call, grpc::ServerContextBase& context,
                    RequestCame came);

}  // namespace muster::rpc
