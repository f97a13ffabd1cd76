#include "rpc/tls_protocol.h"

#include <cstdlib>
#include <mutex>

namespace muster::rpc {

void RequireTls13() {
  static std::once_flag once;
  std::call_once(once, [] {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): once, and nothing else writes the environment
    setenv("GRPC_SSL_CIPHER_SUITES", "PSK-AES128-GCM-SHA256", 1);
  });
}

}  // namespace muster::rpc
