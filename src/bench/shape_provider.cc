#include "bench/shape_provider.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <optional>
#include <variant>

namespace muster::bench {
namespace {

using model::Machine;
using model::MachineState;

constexpr Duration kTick = 100ms;
constexpr double kFailuresPerSecond = 0.001 / 60;

// "page 5000 17": the list of revision 17 goes on at machine 5000. "since 17": what changed after it.
struct Cursor {
  std::optional<uint64_t> page;
  std::optional<uint64_t> since;

  static Cursor Parse(const std::string& text) {
    Cursor cursor;
    unsigned long long a = 0;
    unsigned long long b = 0;
    if (std::sscanf(text.c_str(), "page %llu %llu", &a, &b) == 2) return {.page = a, .since = b};
    if (std::sscanf(text.c_str(), "since %llu", &b) == 1) cursor.since = b;
    return cursor;
  }
};

}  // namespace

ShapeProvider::ShapeProvider(std::vector<Machine> machines, const Clock& clock) : clock_(clock) {
  changed_at_.resize(machines.size(), 0);
  for (Machine& machine : machines) {
    index_.emplace(machine.id, static_cast<Index>(records_.size()));
    records_.emplace_back(std::move(machine));
  }
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

ShapeProvider::~ShapeProvider() = default;

uint64_t ShapeProvider::transitions() const {
  const std::lock_guard lock(mu_);
  return transitions_;
}

void ShapeProvider::Ask(contract::ProviderRequest request, Duration, Done done) {
  Result<contract::ProviderReply> reply = [&] {
    const std::lock_guard lock(mu_);
    return Answer(request);
  }();
  done(std::move(reply));
}

Result<contract::ProviderReply> ShapeProvider::Answer(const contract::ProviderRequest& request) {
  if (const auto* list = std::get_if<contract::ListRequest>(&request)) return List(*list);
  if (const auto* get = std::get_if<contract::GetRequest>(&request)) {
    const auto found = index_.find(get->machine_id);
    if (found == index_.end()) return Error(Code::kNotFound, "there is no such machine");
    return contract::GetReply{records_[found->second]};
  }
  if (const auto* create = std::get_if<contract::CreateRequest>(&request)) {
    return Begin(create->machine_id, MachineState::kCreating, 30s, nullptr);
  }
  if (const auto* configure = std::get_if<contract::ConfigureRequest>(&request)) {
    return Begin(configure->machine_id, MachineState::kConfiguring, 5s, configure);
  }
  if (const auto* drain = std::get_if<contract::DrainRequest>(&request)) {
    return Begin(drain->machine_id, MachineState::kDraining, 20s, nullptr);
  }
  return Begin(std::get<contract::DeleteRequest>(request).machine_id, MachineState::kDeleting, 5s, nullptr);
}

contract::ListReply ShapeProvider::List(const contract::ListRequest& request) const {
  contract::ListReply reply;
  const size_t most = request.max_results > 0 ? static_cast<size_t>(request.max_results) : records_.size();
  const Cursor cursor = Cursor::Parse(request.since_revision);
  if (cursor.since && !cursor.page) {
    reply.revision = fmt::format("since {}", revision_);
    for (auto it = std::ranges::upper_bound(changes_, *cursor.since, {}, [](const auto& c) { return c.first; });
         it != changes_.end(); ++it) {
      if (changed_at_[it->second] != it->first) continue;
      reply.machines.push_back(records_[it->second]);
      if (reply.machines.size() == most) {
        reply.revision = fmt::format("since {}", it->first);
        break;
      }
    }
    return reply;
  }
  const uint64_t revision = cursor.page ? *cursor.since : revision_;
  const size_t first = std::min<size_t>(cursor.page.value_or(0), records_.size());
  const size_t last = std::min(records_.size(), first + most);
  reply.machines.assign(records_.begin() + static_cast<ptrdiff_t>(first),
                        records_.begin() + static_cast<ptrdiff_t>(last));
  reply.revision =
      last < records_.size() ? fmt::format("page {} {}", last, revision) : fmt::format("since {}", revision);
  return reply;
}

Result<contract::ProviderReply> ShapeProvider::Begin(const std::string& id, MachineState to, Duration dwell,
                                                     const contract::ConfigureRequest* binding) {
  const auto found = index_.find(id);
  if (found == index_.end()) return Error(Code::kNotFound, "there is no such machine");
  Machine machine = *records_[found->second];
  if (!model::IsLegalEdge(machine.state, to)) {
    return Error(Code::kAborted, fmt::format("it is {}", model::StateName(machine.state)));
  }
  machine.state = to;
  machine.last_error.clear();
  if (binding != nullptr) {
    machine.cluster = binding->cluster_id;
    machine.shard_metadata = binding->shard_metadata;
  }
  if (to == MachineState::kDeleting) {
    machine.cluster.clear();
    machine.shard_metadata.clear();
  }
  Set(found->second, std::move(machine));
  due_.emplace(clock_.Read().mono + dwell, std::pair(found->second, revision_));
  ++transitions_;
  return contract::TransitionAck{.operation_id = std::to_string(transitions_), .machine = records_[found->second]};
}

void ShapeProvider::Set(Index index, Machine machine) {
  records_[index] = contract::MachineRecord(std::move(machine));
  changed_at_[index] = ++revision_;
  changes_.emplace_back(revision_, index);
}

void ShapeProvider::Finish(Index index) {
  Machine machine = *records_[index];
  switch (machine.state) {
    case MachineState::kCreating:
      machine.state = MachineState::kIdle;
      machine.host = {.provider = "bench", .ref = machine.id};
      break;
    case MachineState::kConfiguring: machine.state = MachineState::kConfigured; break;
    case MachineState::kDraining:
      machine.state = MachineState::kIdle;
      machine.cluster.clear();
      machine.shard_metadata.clear();
      break;
    case MachineState::kDeleting:
      machine.state = MachineState::kSpeculative;
      machine.host = {};
      break;
    default: return;
  }
  Set(index, std::move(machine));
}

void ShapeProvider::Fail() {
  for (; failures_ >= 1; --failures_) {
    const auto index = static_cast<Index>(rng_.Below(records_.size()));
    Machine machine = *records_[index];
    if (!model::IsStable(machine.state) || machine.host.empty()) continue;
    machine.state = MachineState::kFailed;
    machine.last_error = "it stopped answering";
    Set(index, std::move(machine));
  }
}

void ShapeProvider::Run(const std::stop_token& stop) {
  std::condition_variable_any wakes;
  std::unique_lock lock(mu_);
  while (!stop.stop_requested()) {
    wakes.wait_for(lock, stop, kTick, [] { return false; });
    const MonoTime now = clock_.Read().mono;
    while (!due_.empty() && due_.begin()->first <= now) {
      const auto [index, revision] = due_.begin()->second;
      due_.erase(due_.begin());
      if (changed_at_[index] == revision) Finish(index);
    }
    failures_ +=
        static_cast<double>(records_.size()) * kFailuresPerSecond * std::chrono::duration<double>(kTick).count();
    Fail();
  }
}

}  // namespace muster::bench
