#include "core/provider/change_log.h"

#include <algorithm>

#include "base/check.h"
#include "base/codec.h"
#include "base/hash.h"

namespace muster::provider {
namespace {

constexpr size_t kSlack = 1024;    // dead entries that are never worth a sweep
constexpr size_t kMostRanges = 8;  // no walk of ours leaves more than two
constexpr size_t kChecksumBytes = 8;

std::string Checksum(std::string_view bytes) {
  std::string text;
  const uint64_t hash = Hash(bytes);
  for (size_t i = 0; i < kChecksumBytes; ++i) text += static_cast<char>((hash >> (8 * i)) & 0xff);
  return text;
}

}  // namespace

std::string ToRevision(const Cursor& cursor) {
  const std::string bytes = codec::ToBytes(cursor);
  return bytes + Checksum(bytes);
}

std::optional<Cursor> FromRevision(std::string_view revision, uint64_t lineage, uint64_t newest) {
  if (revision.size() < kChecksumBytes) return std::nullopt;
  const std::string_view bytes = revision.substr(0, revision.size() - kChecksumBytes);
  if (Checksum(bytes) != revision.substr(bytes.size())) return std::nullopt;
  auto cursor = codec::FromBytes<Cursor>(bytes);
  if (!cursor || cursor->ranges.size() > kMostRanges || cursor->open_after > newest) return std::nullopt;
  if (cursor->lineage != lineage) return std::nullopt;
  for (const Range& range : cursor->ranges) {
    if (range.after > range.upto || range.upto > newest) return std::nullopt;
  }
  return cursor;
}

void ChangeLog::Append(uint32_t machine, uint64_t number) {
  MUSTER_CHECK(number > newest(), "change {} after {}", number, newest());
  if (machine >= live_.size()) live_.resize(machine + 1);
  if (live_[machine] == 0) ++machines_;
  live_[machine] = number;
  entries_.push_back({.number = number, .machine = machine});
  if (entries_.size() > 2 * machines_ + kSlack) DropDead();
}

void ChangeLog::DropDead() {
  std::erase_if(entries_, [this](const Entry& entry) { return live_[entry.machine] != entry.number; });
}

size_t ChangeLog::FirstAbove(uint64_t number) const {
  return static_cast<size_t>(std::ranges::upper_bound(entries_, number, {}, &Entry::number) - entries_.begin());
}

void ChangeLog::CheckInvariants() const {
  size_t alive = 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    MUSTER_CHECK(i == 0 || entries_[i - 1].number < entries_[i].number);
    alive += live_[entries_[i].machine] == entries_[i].number ? 1 : 0;
  }
  MUSTER_CHECK(alive == machines_, "{} live entries, {} machines", alive, machines_);
  MUSTER_CHECK(entries_.size() <= 2 * machines_ + kSlack);
}

}  // namespace muster::provider
