#include "sim/sim_cluster.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "base/probe.h"

namespace muster::sim {
namespace {

uint64_t DigestOf(std::span<const uint64_t> digests) {
  Hasher hasher;
  for (const uint64_t digest : digests) hasher.Add(digest);
  return hasher.value();
}

}  // namespace

SimCluster::SimCluster(Kernel& kernel, std::string name, int32_t priority, uint64_t stream, World world)
    : kernel_(kernel),
      name_(std::move(name)),
      priority_(priority),
      rng_(kernel.ForkRng(stream)),
      world_(std::move(world)) {
  MoveDemand();
}

void SimCluster::MoveDemand() {
  std::vector<Row> rows;
  if (!rng_.Chance(1, 8)) {  // now and then it wants nothing
    for (uint64_t i = 0; i <= rng_.Below(2); ++i) {
      rows.push_back({.cpu = rng_.Between(1, 6) * 4000, .gang = rng_.Chance(1, 6)});
    }
  }
  SetDemand(std::move(rows));
}

void SimCluster::SetDemand(std::vector<Row> rows) {
  demand_ = std::move(rows);
  steady_ = 0;
  meant_.insert(DigestOf(Rows(demand_).digests()));
}

int64_t SimCluster::wanted() const {
  int64_t sum = 0;
  for (const Row& row : demand_) sum += row.cpu;
  return sum;
}

contract::NeedRows SimCluster::Rows(const std::vector<Row>& rows) const {
  std::vector<model::Need> needs;
  for (size_t i = 0; i < rows.size(); ++i) {
    model::ProfileParts parts{.priority = priority_ - static_cast<int32_t>(i)};
    if (rows[i].gang) parts.requirements = {{.key = "topology.bigfleet/rack", .op = model::Operator::kSame}};
    needs.push_back({.cluster = name_,
                     .profile = model::Profile(std::move(parts)),
                     .aggregate = {{"cpu", rows[i].cpu}},
                     .min_unit = {{"cpu", 2000}},
                     .group = rows[i].gang ? "gang" : ""});
  }
  return contract::NeedRows(std::move(needs));
}

bool SimCluster::Meant(std::span<const uint64_t> digests) const { return meant_.contains(DigestOf(digests)); }

std::string SimCluster::WhyNotMeant(std::span<const uint64_t> digests) const {
  const auto known = not_meant_.find(DigestOf(digests));
  return known == not_meant_.end() ? "" : known->second;
}

void SimCluster::Tick() {
  if (faults_ && rng_.Chance(1, 6)) MoveDemand();
  SayRollup();
}

// What it does not mean comes alone, after its demand was said so often that the shard must have accepted it: against
// that it is suspicious, and only the third suspicious one in a row counts.
void SimCluster::SayRollup() {
  const bool garbage = faults_ && steady_ >= 3 && wanted() > 0 && rng_.Chance(1, 4);
  steady_ = garbage ? 0 : steady_ + 1;
  contract::Rollup rollup{.cluster_id = name_, .timestamp = kernel_.now().wall, .rows = Rows(demand_)};
  if (garbage) {
    PROBE("sim.garbage_rollup");
    switch (rng_.Below(4)) {
      case 0: return world_.say_garbage();
      case 1: rollup.cluster_id = "another"; break;
      case 2: rollup.rows = {}; break;
      default: rollup.rows = Rows({{.cpu = std::max<int64_t>(wanted() / 20, 1)}}); break;
    }
    const bool as_another = rollup.cluster_id == "another";
    if (as_another) rollup.rows = Rows({{.cpu = 1'000'001}});
    not_meant_[DigestOf(rollup.rows.digests())] = as_another ? ": it was another cluster's" : ": it fell all at once";
  }
  world_.say(std::move(rollup));
}

void SimCluster::Hear(const contract::ShardMessage& message) {
  if (const auto* request = std::get_if<contract::BootstrapRequest>(&message)) {
    if (faults_ && rng_.Chance(1, 8)) return;
    kernel_.After(Pause(faults_ ? 4s : 50ms), [this, asked = *request] { Answer(asked); });
  } else if (const auto* instruction = std::get_if<contract::ReclaimInstruction>(&message)) {
    if (faults_ && rng_.Chance(1, 4)) return;
    kernel_.After(Pause(faults_ ? 4s : 50ms), [this, told = *instruction] { Acknowledge(told); });
  }
}

void SimCluster::Answer(const contract::BootstrapRequest& request) {
  contract::BootstrapResponse response{.request_id = request.request_id};
  if (faults_ && rng_.Chance(1, 12)) {
    response.error = "no token";
  } else {
    response.user_data = fmt::format("{}-{}", name_, ++last_blob_);
    if (rng_.Chance(1, 2)) response.ttl = std::chrono::seconds(rng_.Between(1, 3));
  }
  if (!response.user_data.empty()) blobs_.insert(response.user_data);
  world_.say(std::move(response));
}

void SimCluster::Acknowledge(const contract::ReclaimInstruction& instruction) {
  world_.say(contract::ReclaimAck{.instruction_id = instruction.instruction_id, .nodes_started = 1});
}

}  // namespace muster::sim
