#include "store/url.h"

#include <fmt/format.h>

#include "model/names.h"

namespace muster::store {

Result<StoreUrl> ParseStoreUrl(std::string_view url) {
  constexpr std::string_view kSqlite = "sqlite:";
  constexpr std::string_view kEtcd = "etcd://";
  const auto wrong = [&](std::string_view why) {
    return InvalidArgument(fmt::format(
        "{} is not a store: {}; write memory:, sqlite:DIR or etcd://HOST:PORT,...[/prefix]", model::Quoted(url), why));
  };
  if (url == "memory:") return StoreUrl{};
  if (url.starts_with(kSqlite)) {
    const std::string_view directory = url.substr(kSqlite.size());
    if (directory.empty()) return wrong("it names no directory");
    return StoreUrl{.kind = StoreUrl::Kind::kSqlite, .directory = std::string(directory)};
  }
  if (!url.starts_with(kEtcd)) return wrong("its kind is unknown");
  std::string_view rest = url.substr(kEtcd.size());
  StoreUrl parsed{.kind = StoreUrl::Kind::kEtcd};
  if (const size_t slash = rest.find('/'); slash != std::string_view::npos) {
    parsed.prefix = rest.substr(slash);
    while (parsed.prefix.ends_with('/')) parsed.prefix.pop_back();
    rest = rest.substr(0, slash);
  }
  while (true) {
    const size_t comma = rest.find(',');
    const std::string_view endpoint = rest.substr(0, comma);
    if (endpoint.empty()) return wrong("an address is empty");
    parsed.endpoints.emplace_back(endpoint);
    if (comma == std::string_view::npos) return parsed;
    rest = rest.substr(comma + 1);
  }
}

}  // namespace muster::store
