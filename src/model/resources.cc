#include "model/resources.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "model/quantity.h"

namespace muster::model {
namespace {

// Calls fn(name, in_a, in_b) for every dimension of either, in order; 0 where one lacks it.
template <class Fn>
void ForEachDimension(const Resources& a, const Resources& b, Fn&& fn) {
  auto left = a.entries().begin();
  auto right = b.entries().begin();
  while (left != a.entries().end() || right != b.entries().end()) {
    const bool take_left = right == b.entries().end() || (left != a.entries().end() && left->first <= right->first);
    const bool take_right = left == a.entries().end() || (right != b.entries().end() && right->first <= left->first);
    const std::string& name = take_left ? left->first : right->first;
    fn(name, take_left ? left->second : 0, take_right ? right->second : 0);
    if (take_left) ++left;
    if (take_right) ++right;
  }
}

Status DoesNotFit(std::string_view name, std::string_view what) {
  return {Code::kOutOfRange, fmt::format("{}: {} exceeds the largest amount, 9223372036854775807m", name, what)};
}

}  // namespace

Resources::Resources(std::initializer_list<std::pair<std::string_view, int64_t>> entries) {
  for (const auto& [name, milli] : entries) Set(name, milli);
}

Status Resources::Parse(std::string_view name, std::string_view quantity) {
  const auto refuse = [&](std::string_view why) {
    return Status(Code::kInvalidArgument, fmt::format("{}: {}", name, why));
  };
  if (name.empty()) return {Code::kInvalidArgument, "a resource has no name; give one such as cpu or memory"};
  if (Get(name) != 0) return refuse("given twice; keep one of the two");
  const Result<int64_t> milli = ParseQuantity(quantity);
  if (!milli) return refuse(milli.error().message());
  if (*milli < 0) return refuse(fmt::format("{} is negative; an amount of a resource is zero or more", quantity));
  Set(name, *milli);
  return {};
}

int64_t Resources::Get(std::string_view name) const {
  const auto it = std::ranges::lower_bound(entries(), name, {}, &Entry::first);
  return it != entries().end() && it->first == name ? it->second : 0;
}

void Resources::Set(std::string_view name, int64_t milli) {
  MUSTER_CHECK(!name.empty() && milli >= 0, "{}={}m", name, milli);
  if (Get(name) == milli) return;
  std::vector<Entry>& mine = entries_.Edit();
  const auto it = std::ranges::lower_bound(mine, name, {}, &Entry::first);
  const bool found = it != mine.end() && it->first == name;
  if (found && milli == 0) {
    mine.erase(it);
  } else if (found) {
    it->second = milli;
  } else {
    mine.emplace(it, name, milli);
  }
}

bool Resources::Covers(const Resources& demand) const {
  return std::ranges::all_of(demand.entries(), [&](const Entry& entry) { return Get(entry.first) >= entry.second; });
}

std::string Resources::ToString() const {
  if (empty()) return "nothing";
  std::string text;
  for (const auto& [name, milli] : entries()) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, FormatQuantityFor(name, milli));
  }
  return text;
}

Result<Resources> Add(const Resources& a, const Resources& b) {
  Resources sum;
  Status status;
  ForEachDimension(a, b, [&](const std::string& name, int64_t in_a, int64_t in_b) {
    int64_t total = 0;
    if (__builtin_add_overflow(in_a, in_b, &total)) {
      status = DoesNotFit(name, fmt::format("{} + {}", FormatQuantity(in_a), FormatQuantity(in_b)));
    } else {
      sum.Set(name, total);
    }
  });
  if (!status.ok()) return std::unexpected(status);
  return sum;
}

Resources SubtractSaturating(const Resources& a, const Resources& b) {
  Resources rest;
  for (const auto& [name, milli] : a.entries()) rest.Set(name, milli - std::min(milli, b.Get(name)));
  return rest;
}

Resources Max(const Resources& a, const Resources& b) {
  Resources larger;
  ForEachDimension(
      a, b, [&](const std::string& name, int64_t in_a, int64_t in_b) { larger.Set(name, std::max(in_a, in_b)); });
  return larger;
}

Result<Resources> Scale(const Resources& a, int64_t count) {
  MUSTER_CHECK(count >= 0, "count {}", count);
  Resources scaled;
  for (const auto& [name, milli] : a.entries()) {
    int64_t total = 0;
    if (__builtin_mul_overflow(milli, count, &total)) {
      return std::unexpected(DoesNotFit(name, fmt::format("{} x {}", FormatQuantity(milli), count)));
    }
    scaled.Set(name, total);
  }
  return scaled;
}

}  // namespace muster::model
