#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "store/store.h"

namespace muster::store {
namespace {

Status CheckKey(const std::string& key) {
  if (key.empty()) return {Code::kInvalidArgument, "a key of a transaction is empty"};
  if (key.size() <= contract::kMaxKeyBytes) return {};
  return {Code::kInvalidArgument,
          fmt::format("a key of a transaction has {} bytes; the limit is {}", key.size(), contract::kMaxKeyBytes)};
}

Status CheckCount(std::string_view what, size_t count, size_t limit) {
  if (count <= limit) return {};
  return {Code::kInvalidArgument, fmt::format("a transaction has {} {}; the limit is {}", count, what, limit)};
}

}  // namespace

Status Validate(const Transaction& transaction) {
  MUSTER_RETURN_IF_ERROR(CheckCount("compares", transaction.compares.size(), contract::kMaxTransactionCompares));
  MUSTER_RETURN_IF_ERROR(CheckCount("writes", transaction.writes.size(), contract::kMaxTransactionWrites));
  size_t bytes = 0;
  for (const contract::Compare& compare : transaction.compares) {
    MUSTER_RETURN_IF_ERROR(CheckKey(compare.key));
    bytes += compare.key.size() + (compare.value ? compare.value->size() : 0);
  }
  std::vector<std::string_view> written;
  for (const contract::StoreWrite& write : transaction.writes) {
    MUSTER_RETURN_IF_ERROR(CheckKey(write.key));
    bytes += write.key.size() + (write.value ? write.value->size() : 0);
    written.push_back(write.key);
  }
  std::ranges::sort(written);
  if (const auto twice = std::ranges::adjacent_find(written); twice != written.end()) {
    return {Code::kInvalidArgument, fmt::format("a transaction writes the key {} twice", *twice)};
  }
  return CheckCount("bytes", bytes, contract::kMaxTransactionBytes);
}

}  // namespace muster::store
