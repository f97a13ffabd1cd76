#include "rpc/open_store.h"

#include "host/sqlite_store.h"
#include "host/thread_schedule.h"
#include "rpc/etcd_store.h"
#include "store/url.h"

namespace muster::rpc {

Result<std::unique_ptr<store::Store>> OpenStore(const std::string& url, const OpenStoreOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const store::StoreUrl parsed, store::ParseStoreUrl(url));
  switch (parsed.kind) {
    case store::StoreUrl::Kind::kMemory: return host::MakeMemoryStore();
    case store::StoreUrl::Kind::kSqlite:
      return host::OpenSqliteStore(parsed.directory, {.read_only = options.read_only});
    case store::StoreUrl::Kind::kEtcd: break;
  }
  return MakeEtcdStore({.endpoints = parsed.endpoints,
                        .prefix = parsed.prefix,
                        .tls = options.tls,
                        .user = options.user,
                        .password = options.password});
}

}  // namespace muster::rpc
