// StoreFlags: which store a verb works on, and as whom; the same for every verb that opens one.
//
//   AddStoreFlags(verb, *flags);
//   MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store, OpenStore(*flags, {.read_only = true}));
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "cli/command_line.h"
#include "cli/tls_flags.h"
#include "store/store.h"

namespace muster::cli {

struct StoreFlags {
  std::string url;
  std::string user;
  std::string password_file;
  TlsFlags tls;
};

// --store, from MUSTER_STORE if it is not given, and how to reach an etcd.
void AddStoreFlags(Verb& verb, StoreFlags& flags);
// The same without --store, for a verb that takes the URL as an argument.
void AddStoreAccessFlags(Verb& verb, StoreFlags& flags);

// The URL given, or that of MUSTER_STORE; INVALID_ARGUMENT if there is neither.
Result<std::string> UrlOf(const StoreFlags& flags);

// The store, or what is wrong with the flags, or why it cannot be opened.
Result<std::unique_ptr<store::Store>> OpenStore(const StoreFlags& flags, bool read_only = false);

}  // namespace muster::cli
