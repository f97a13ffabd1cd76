// A shard's life from what an earlier one left on disk, and its whole state as bytes for journals.
#include <fmt/format.h>

#include "base/codec.h"
#include "core/shard/shard.h"

namespace muster::shard {
namespace {

template <class T, class Use>
bool Read(const std::string& bytes, const Use& use) {
  std::optional<T> value = codec::FromBytes<T>(bytes);
  if (!value) return false;
  use(*std::move(value));
  return true;
}

}  // namespace

Result<Core> Core::Recover(Config config, const contract::Recovered& recovered, Parallel* parallel) {
  Core core(std::move(config), parallel);
  for (const auto& [key, bytes] : recovered) {
    if (Status read = core.ReadRow(key, bytes); !read.ok()) return std::unexpected(std::move(read));
  }
  return core;
}

Status Core::ReadRow(const std::string& key, const std::string& bytes) {
  const auto rest = [&](std::string_view prefix) { return key.substr(prefix.size()); };
  const auto need_key = [&](std::string_view prefix) { return codec::FromBytes<engine::NeedKey>(rest(prefix)); };
  bool ok = false;
  if (key == kFormatKey) {
    const auto format = codec::FromBytes<uint64_t>(bytes);
    if (format && *format > kFormat) {
      return {Code::kFailedPrecondition,
              fmt::format("the shard's state has format {}, this build knows up to {}; run the newer build", *format,
                          kFormat)};
    }
    ok = format.has_value();
  } else if (key == kEpochKey) {
    ok = Read<int64_t>(bytes, [&](int64_t epoch) { epoch_before_ = epoch; });
  } else if (key == kCycleKey) {
    ok = Read<int64_t>(bytes, [&](int64_t cycle) { cycle_ = cycle; });
  } else if (key == kManagedKey) {
    ok = Read<bool>(bytes, [&](bool managed) { managed_ = managed; });
  } else if (key.starts_with(kModeKey)) {
    ok = Read<contract::ActuationMode>(bytes, [&](contract::ActuationMode mode) {
      const std::string name = rest(kModeKey);
      (name.empty() ? mode_ : clusters_[name].mode) = mode;
    });
  } else if (key.starts_with(kBaselineKey)) {
    ok = Read<Baseline>(bytes, [&](Baseline size) { clusters_[rest(kBaselineKey)].baseline = std::move(size); });
  } else if (key.starts_with(kReclaimsKey)) {
    ok = Read<uint64_t>(bytes, [&](uint64_t reclaims) {
      Cluster& cluster = clusters_[rest(kReclaimsKey)];
      cluster.reclaims.resize(reclaims);
      cluster.reclaims_stored = true;
    });
  } else if (key.starts_with(kArrivalKey)) {
    const auto need = need_key(kArrivalKey);
    ok = need && Read<WallTime>(bytes, [&](WallTime arrival) {
           clusters_[need->cluster].arrivals.emplace(std::pair(need->fingerprint, need->group), arrival);
           latest_arrival_ = std::max(latest_arrival_, arrival);
           awaited_.insert(need->cluster);
         });
  } else if (key.starts_with(kShortKey)) {
    const auto need = need_key(kShortKey);
    ok = need && Read<ShortRow>(bytes, [&](const ShortRow& row) { short_rows_.emplace(*need, row); });
  } else if (key.starts_with(kMachineKey)) {
    ok = Read<MachineRow>(bytes, [&](MachineRow row) { machine_rows_.emplace(rest(kMachineKey), std::move(row)); });
  } else if (key.starts_with(kRepairKey)) {
    ok = Read<RepairRow>(bytes, [&](const RepairRow& row) {
      repairs_.emplace(rest(kRepairKey), Repair{.attempts = row.attempts, .recreate = row.recreate});
    });
  } else if (key.starts_with(kForgottenKey)) {
    ok = true;
    forgotten_.insert(rest(kForgottenKey));
  } else if (key.starts_with(kDrainKey)) {
    ok = Read<engine::DrainMean>(bytes, [&](const engine::DrainMean& m) { drain_rows_.emplace(rest(kDrainKey), m); });
  } else if (key.starts_with(kDomainKey)) {
    const auto domain = codec::FromBytes<contract::Domain>(rest(kDomainKey));
    ok = domain.has_value();
    if (domain) domains_.insert(*domain);
  }
  if (ok) return {};
  return {Code::kDataLoss,
          fmt::format("row {} of the shard's state cannot be read; restore it from a backup, or remove the state and "
                      "start with --epoch-at-least N, above every epoch this shard has had",
                      codec::Quote(key))};
}

}  // namespace muster::shard
