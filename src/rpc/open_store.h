// OpenStore: the store that a URL names (store/url.h), whichever it is.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "rpc/tls_files.h"
#include "store/store.h"

namespace muster::rpc {

struct OpenStoreOptions {
  bool read_only = false;  // sqlite: beside the process that owns it
  TlsFiles tls = {};       // etcd
  std::string user = {};   // etcd
  std::string password = {};
};

// The error says what to do: INVALID_ARGUMENT for the URL, else that of the store.
Result<std::unique_ptr<store::Store>> OpenStore(const std::string& url, const OpenStoreOptions& options = {});

}  // namespace muster::rpc
