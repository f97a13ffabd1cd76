#include "rpc/rollup_conversion.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>
#include <vector>

#include "bigfleet/v1alpha1/capacity.pb.h"
#include "model/penalty.h"
#include "rpc/wire_parts.h"

namespace muster::rpc {
namespace {

namespace pb = bigfleet::v1alpha1;

// Numbers with their whole width and texts with their length before them: two rows spell the same only if they are.
void AppendNumber(std::string& out, int64_t number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void AppendText(std::string& out, const std::string& text) {
  AppendNumber(out, static_cast<int64_t>(text.size()));
  out += text;
}

void Spell(const pb::CapacityNeed& row, std::string& out) {
  out.clear();
  AppendNumber(out, row.priority());
  AppendNumber(out, row.interruption_penalty_bucket());
  AppendNumber(out, row.reclamation_penalty_bucket());
  AppendNumber(out, row.requirements_size());
  for (const pb::NodeSelectorRequirement& requirement : row.requirements()) {
    AppendText(out, requirement.key());
    AppendNumber(out, requirement.operator_());
    AppendNumber(out, requirement.values_size());
    for (const std::string& value : requirement.values()) AppendText(out, value);
  }
  for (const pb::TopologySpread& spread : row.spread()) {
    AppendText(out, spread.topology_key());
    AppendNumber(out, spread.max_skew());
    AppendNumber(out, spread.when_unsatisfiable());
  }
}

model::WhenUnsatisfiable WhenFromWire(int number) {
  const bool known = number > 0 && number <= static_cast<int>(model::WhenUnsatisfiable::kScheduleAnyway);
  return known ? static_cast<model::WhenUnsatisfiable>(number) : model::WhenUnsatisfiable::kUnspecified;
}

Result<model::ProfileParts> ReadParts(const pb::CapacityNeed& row, std::string_view path) {
  const auto interruption = model::BucketFromNumber(row.interruption_penalty_bucket());
  if (!interruption) return Refuse(path, "interruption_penalty_bucket", interruption.error().message());
  const auto reclamation = model::BucketFromNumber(row.reclamation_penalty_bucket());
  if (!reclamation) return Refuse(path, "reclamation_penalty_bucket", reclamation.error().message());
  MUSTER_ASSIGN_OR_RETURN(std::vector<model::Requirement> requirements, RequirementsFromWire(row.requirements(), path));
  model::ProfileParts parts{.requirements = std::move(requirements),
                            .spread = {},
                            .priority = row.priority(),
                            .interruption = *interruption,
                            .reclamation = *reclamation};
  for (const pb::TopologySpread& spread : row.spread()) {
    parts.spread.push_back({.topology_key = spread.topology_key(),
                            .max_skew = spread.max_skew(),
                            .when = WhenFromWire(spread.when_unsatisfiable())});
  }
  return parts;
}

// As model::TextsOf, before a profile is made of it.
size_t TextsOf(const pb::CapacityNeed& row) {
  size_t bytes = row.group().size();
  for (const pb::NodeSelectorRequirement& requirement : row.requirements()) {
    bytes += requirement.key().size() + 3 * sizeof(int64_t);
    for (const std::string& value : requirement.values()) bytes += value.size() + sizeof(int64_t);
  }
  for (const pb::TopologySpread& spread : row.spread()) bytes += spread.topology_key().size() + 3 * sizeof(int64_t);
  return bytes;
}

Result<std::vector<model::Need>> ReadRows(const pb::ClusterCapacityNeeds& wire, ProfileTable& profiles) {
  std::vector<model::Need> needs;
  needs.reserve(static_cast<size_t>(wire.needs_size()));
  std::string path;
  for (int i = 0; i < wire.needs_size(); ++i) {
    path.clear();
    fmt::format_to(std::back_inserter(path), "needs[{}]", i);
    if (const size_t bytes = TextsOf(wire.needs(i)); bytes > model::kMostTextsOfNeed) {
      return InvalidArgument(fmt::format("{}: its requirements, spread and group take {} bytes; at most {} are taken",
                                         path, bytes, model::kMostTextsOfNeed));
    }
    MUSTER_ASSIGN_OR_RETURN(model::Need need, ReadNeed(wire.needs(i), path, profiles));
    need.cluster = wire.cluster_id();
    needs.push_back(std::move(need));
  }
  return needs;
}

}  // namespace

Result<model::Profile> ProfileTable::Read(const pb::CapacityNeed& row, std::string_view path) {
  Spell(row, spelt_);
  auto spelling = spellings_.find(spelt_);
  if (spelling == spellings_.end()) {
    MUSTER_ASSIGN_OR_RETURN(model::ProfileParts parts, ReadParts(row, path));
    model::Profile profile(std::move(parts));
    const std::string_view fingerprint = profile.fingerprint();
    Known& known = profiles_.try_emplace(fingerprint, Known{.profile = std::move(profile), .used = 0}).first->second;
    spelling = spellings_.emplace(spelt_, Spelling{.profile = &known, .used = 0}).first;
  }
  spelling->second.used = rollup_;
  spelling->second.profile->used = rollup_;
  return spelling->second.profile->profile;
}

void ProfileTable::EndRollup() {
  // Spellings first: each points to its profile, which is used whenever the spelling is.
  std::erase_if(spellings_, [this](const auto& spelling) { return spelling.second.used != rollup_; });
  std::erase_if(profiles_, [this](const auto& known) { return known.second.used != rollup_; });
  ++rollup_;
}

Result<model::Need> ReadNeed(const pb::CapacityNeed& row, std::string_view path, ProfileTable& profiles) {
  MUSTER_ASSIGN_OR_RETURN(model::Profile profile, profiles.Read(row, path));
  MUSTER_ASSIGN_OR_RETURN(model::Resources aggregate,
                          ResourcesFromWire(row.aggregate_resources(), path, "aggregate_resources"));
  MUSTER_ASSIGN_OR_RETURN(model::Resources min_unit, ResourcesFromWire(row.min_unit(), path, "min_unit"));
  return model::Need{.cluster = {},
                     .profile = std::move(profile),
                     .aggregate = std::move(aggregate),
                     .min_unit = std::move(min_unit),
                     .group = row.group(),
                     .arrival = {}};
}

Result<contract::Rollup> ReadRollup(const pb::ClusterCapacityNeeds& wire, ProfileTable& profiles) {
  auto needs = ReadRows(wire, profiles);
  profiles.EndRollup();  // of a refused one too, or a row of them would grow the table without end
  if (!needs) return std::unexpected(std::move(needs).error());
  return contract::Rollup{.cluster_id = wire.cluster_id(),
                          .timestamp = TimeFromWire(wire.timestamp_unix_nanos()),
                          .rows = contract::NeedRows(*std::move(needs))};
}

void ToWire(const model::Need& need, pb::CapacityNeed& wire) {
  const model::Profile& profile = need.profile;
  WriteRequirements(profile.requirements(), *wire.mutable_requirements());
  WriteResources(need.aggregate, *wire.mutable_aggregate_resources());
  wire.set_priority(profile.priority());
  for (const model::Spread& spread : profile.spread()) {
    pb::TopologySpread& into = *wire.add_spread();
    into.set_topology_key(spread.topology_key);
    into.set_max_skew(spread.max_skew);
    into.set_when_unsatisfiable(static_cast<pb::TopologySpread::WhenUnsatisfiable>(spread.when));
  }
  wire.set_interruption_penalty_bucket(static_cast<pb::PenaltyBucket>(profile.interruption()));
  wire.set_reclamation_penalty_bucket(static_cast<pb::PenaltyBucket>(profile.reclamation()));
  WriteResources(need.min_unit, *wire.mutable_min_unit());
  wire.set_group(need.group);
}

void ToWire(const contract::Rollup& rollup, pb::ClusterCapacityNeeds& wire) {
  wire.set_cluster_id(rollup.cluster_id);
  wire.set_timestamp_unix_nanos(TimeToWire(rollup.timestamp));
  wire.mutable_needs()->Reserve(static_cast<int>(rollup.rows.size()));
  for (const model::Need& need : rollup.rows.needs()) ToWire(need, *wire.add_needs());
}

}  // namespace muster::rpc
