#include "cli/store_flags.h"

#include <cstdlib>

#include "host/text_file.h"
#include "rpc/open_store.h"

namespace muster::cli {

void AddStoreAccessFlags(Verb& verb, StoreFlags& flags) {
  verb.Option("--user", flags.user, "User of an etcd with authentication")
      .Path("--password-file", flags.password_file, "File with that user's password, in its first line");
  AddTlsFlags(verb, flags.tls);
}

void AddStoreFlags(Verb& verb, StoreFlags& flags) {
  verb.Option("--store", flags.url, "sqlite:DIR, etcd://HOST:PORT,...[/prefix] or memory:; else from MUSTER_STORE");
  AddStoreAccessFlags(verb, flags);
}

Result<std::string> UrlOf(const StoreFlags& flags) {
  if (!flags.url.empty()) return flags.url;
  const char* given = std::getenv("MUSTER_STORE");
  if (given != nullptr) return std::string(given);
  return InvalidArgument("--store is missing; name one as sqlite:DIR or etcd://HOST:PORT");
}

Result<std::unique_ptr<store::Store>> OpenStore(const StoreFlags& flags, bool read_only) {
  MUSTER_ASSIGN_OR_RETURN(const std::string url, UrlOf(flags));
  if (flags.user.empty() != flags.password_file.empty()) {
    return InvalidArgument("--user and --password-file belong together; give both or neither");
  }
  rpc::OpenStoreOptions options{.read_only = read_only, .user = flags.user};
  MUSTER_ASSIGN_OR_RETURN(options.tls, flags.tls.Files());
  if (!flags.password_file.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const std::string text, host::ReadTextFile(flags.password_file, {.max_bytes = 4096}));
    options.password = text.substr(0, text.find_first_of("\r\n"));
  }
  return rpc::OpenStore(url, options);
}

}  // namespace muster::cli
