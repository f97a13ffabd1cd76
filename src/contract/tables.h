// Tables: a core's durable state as typed rows. Each row of a core is declared once, with its key and the type of its
// value; the declaration gives the write that stores or removes a row, and RowReader gives the rows back after a
// restart.
//
//   inline constexpr contract::Single<int64_t> kEpoch{"epoch"};
//   inline constexpr contract::Table<std::string, RepairRow> kRepairs{"repair/"};
//
//   persist.writes.push_back(kRepairs.Put(id, row));
//
//   contract::RowReader reader("shard", "restore it from a backup");
//   reader.On(kEpoch, [&](int64_t epoch) { ... });
//   reader.On(kRepairs, [&](std::string id, RepairRow row) { ... });
//   Status status = reader.Read(recovered);
//
// On disk: the key of a Single is its name. The key of a Table's row is the prefix and then the row's key: text as it
// is, everything else as codec bytes. A value is codec bytes.
//
// Times on disk are wall times, times in memory are monotonic: StoredTime and TimeFromStored convert between them.
// Thread-safety: declarations are constants; a RowReader belongs to one thread.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/codec.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/effects.h"

namespace muster::contract {

// One row.
template <class Value>
struct Single {
  std::string_view name;

  std::string key() const { return std::string(name); }
  Write Put(const Value& value) const { return {.key = key(), .value = codec::ToBytes(value)}; }
  Write Erase() const { return {.key = key(), .value = std::nullopt}; }
};

// Rows by key. No prefix of a core begins with another prefix of that core.
template <class Key, class Value>
struct Table {
  std::string_view prefix;

  std::string RowKey(const Key& key) const {
    if constexpr (std::same_as<Key, std::string>) return std::string(prefix) + key;
    return std::string(prefix) + codec::ToBytes(key);
  }
  // The key of this row; none if the row is not of this table or its key cannot be read.
  std::optional<Key> KeyOf(std::string_view row_key) const {
    if (!row_key.starts_with(prefix)) return std::nullopt;
    const std::string_view rest = row_key.substr(prefix.size());
    if constexpr (std::same_as<Key, std::string>) return std::string(rest);
    return codec::FromBytes<Key>(rest);
  }
  Write Put(const Key& key, const Value& value) const { return {.key = RowKey(key), .value = codec::ToBytes(value)}; }
  Write Erase(const Key& key) const { return {.key = RowKey(key), .value = std::nullopt}; }
};

// Keys alone. Every row has the same value, which is not read back.
template <class Key>
struct KeySet {
  std::string_view prefix;
  std::string_view value;

  Write Put(const Key& key) const { return {.key = AsTable().RowKey(key), .value = std::string(value)}; }
  Write Erase(const Key& key) const { return AsTable().Erase(key); }
  std::optional<Key> KeyOf(std::string_view row_key) const { return AsTable().KeyOf(row_key); }

 private:
  Table<Key, bool> AsTable() const { return {prefix}; }
};

// The row that says which form the others have.
inline constexpr Single<uint64_t> kFormatRow{"format"};

// Reads back what a core stored. Every row must belong to a declaration that was given with On or Format, and must be
// readable.
class RowReader {
 public:
  // `role` names the core in errors, `advice` says what to do about a row that cannot be read.
  RowReader(std::string role, std::string advice) : role_(std::move(role)), advice_(std::move(advice)) {}

  // Rows of this form or of an older one are read.
  void Format(uint64_t newest) {
    handlers_.push_back({.name = kFormatRow.name, .exact = true, .use = [this, newest](auto, std::string_view bytes) {
                           const auto format = codec::FromBytes<uint64_t>(bytes);
                           if (format && *format > newest) newer_ = {*format, newest};
                           return format.has_value();
                         }});
  }
  // `use` gets each row's value, or its key and value, in the order of the keys on disk. One that returns bool says
  // whether the row makes sense.
  template <class Value, class Use>
  void On(const Single<Value>& single, Use use) {
    handlers_.push_back({.name = single.name, .exact = true, .use = [use](auto, std::string_view bytes) {
                           std::optional<Value> value = codec::FromBytes<Value>(bytes);
                           return value && Accepts(use, *std::move(value));
                         }});
  }
  template <class Key, class Value, class Use>
  void On(const Table<Key, Value>& table, Use use) {
    handlers_.push_back({.name = table.prefix, .use = [table, use](std::string_view row_key, std::string_view bytes) {
                           std::optional<Key> key = table.KeyOf(row_key);
                           std::optional<Value> value = codec::FromBytes<Value>(bytes);
                           return key && value && Accepts(use, *std::move(key), *std::move(value));
                         }});
  }
  template <class Key, class Use>
  void On(const KeySet<Key>& set, Use use) {
    handlers_.push_back({.name = set.prefix, .use = [set, use](std::string_view row_key, std::string_view) {
                           std::optional<Key> key = set.KeyOf(row_key);
                           return key && Accepts(use, *std::move(key));
                         }});
  }

  // OK; DATA_LOSS naming the first row that cannot be read; FAILED_PRECONDITION for the state of a newer build.
  // The format comes first: of the rows of a newer build, any may be unknown.
  Status Read(const Recovered& rows) {
    if (const auto format = rows.find(kFormatRow.key()); format != rows.end()) {
      MUSTER_RETURN_IF_ERROR(ReadRow(format->first, format->second));
    }
    for (const auto& [key, bytes] : rows) MUSTER_RETURN_IF_ERROR(ReadRow(key, bytes));
    return {};
  }

 private:
  struct Handler {
    std::string_view name;
    bool exact = false;
    std::function<bool(std::string_view key, std::string_view bytes)> use;
  };

  Status ReadRow(const std::string& key, const std::string& bytes) {
    const auto handler = std::ranges::find_if(
        handlers_, [&](const Handler& one) { return one.exact ? key == one.name : key.starts_with(one.name); });
    const bool ok = handler != handlers_.end() && handler->use(key, bytes);
    if (newer_) {
      return {Code::kFailedPrecondition,
              fmt::format("the {}'s state has format {}, this build knows up to {}; run the newer build", role_,
                          newer_->first, newer_->second)};
    }
    if (ok) return {};
    return {Code::kDataLoss,
            fmt::format("row {} of the {}'s state cannot be read; {}", codec::Quote(key), role_, advice_)};
  }

  template <class Use, class... Parts>
  static bool Accepts(const Use& use, Parts&&... parts) {
    if constexpr (std::is_void_v<std::invoke_result_t<const Use&, Parts...>>) {
      use(std::forward<Parts>(parts)...);
      return true;
    } else {
      return use(std::forward<Parts>(parts)...);
    }
  }

  const std::string role_;
  const std::string advice_;
  std::vector<Handler> handlers_;
  std::optional<std::pair<uint64_t, uint64_t>> newer_;  // the format found, and the newest that is known
};

// The wall time to store for a moment that lies `now.mono - since` back.
inline WallTime StoredTime(MonoTime since, Now now) { return now.wall - (now.mono - since); }
inline std::optional<WallTime> StoredTime(const std::optional<MonoTime>& since, Now now) {
  return since ? std::optional(StoredTime(*since, now)) : std::nullopt;
}
// The moment that a stored wall time means. If the wall clock was set back meanwhile, its age is zero, never negative.
inline MonoTime TimeFromStored(WallTime since, Now now) {
  return now.mono - std::max(now.wall - since, Duration::zero());
}
inline std::optional<MonoTime> TimeFromStored(const std::optional<WallTime>& since, Now now) {
  return since ? std::optional(TimeFromStored(*since, now)) : std::nullopt;
}

}  // namespace muster::contract
