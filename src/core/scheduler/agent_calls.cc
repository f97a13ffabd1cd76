#include "core/scheduler/agent_calls.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "base/probe.h"

namespace muster::scheduler {

bool IsUnreachable(const Status& status) {
  return status.code() == Code::kUnavailable || status.code() == Code::kDeadlineExceeded;
}

AgentCalls::AgentCalls(const Config& config, State state) : config_(config), state_(std::move(state)) {}

void AgentCalls::UpdateReady(const std::string& node) {
  const auto lane = state_.lanes.find(node);
  if (lane == state_.lanes.end()) return;
  const bool ready = !lane->second.queue.empty() &&
                     (lane->second.in_flight < config_.agent_calls || MUTANT("scheduler.calls_unbounded"));
  if (ready) {
    state_.ready.insert(node);
  } else {
    state_.ready.erase(node);
  }
  if (lane->second.queue.empty() && lane->second.in_flight == 0) state_.lanes.erase(lane);
}

void AgentCalls::Enqueue(AgentCall call) {
  const bool is_new = state_.pairs.emplace(call.node, call.workload).second;
  MUSTER_CHECK(is_new, "workload {} has a call on {} already", call.workload, call.node);
  const std::string node = call.node;
  state_.lanes[node].queue.push_back(std::move(call));
  UpdateReady(node);
}

std::optional<AgentCall> AgentCalls::Next() {
  if (state_.ready.empty()) return std::nullopt;
  const std::string node = *state_.ready.begin();
  Lane& lane = state_.lanes.at(node);
  AgentCall call = std::move(lane.queue.front());
  lane.queue.pop_front();
  UpdateReady(node);
  return call;
}

void AgentCalls::Send(AgentCall call, contract::AgentRequest request, const std::string& endpoint, StepContext& ctx) {
  const std::string node = call.node;
  ++call.tries;
  const contract::CallId id = ++state_.last;
  ++state_.lanes[node].in_flight;
  state_.open.emplace(id, std::move(call));
  UpdateReady(node);
  ctx.Emit(Call{.id = id,
                .to = fmt::format("{} {}", node, endpoint),
                .request = std::move(request),
                .timeout = config_.agent_timeout});
}

std::optional<AgentCall> AgentCalls::OnDone(const CallDone& done) {
  const auto found = state_.open.find(done.id);
  MUSTER_CHECK(found != state_.open.end(), "the host ended call {}, which is not open", done.id);
  AgentCall call = std::move(found->second);
  state_.open.erase(found);
  Lane& lane = state_.lanes.at(call.node);
  --lane.in_flight;
  const bool again = !call.void_answer && IsUnreachable(done.status) && call.tries < 2;
  if (again) {
    PROBE("scheduler.call_again");
    lane.queue.push_front(call);
  } else if (!call.void_answer) {
    state_.pairs.erase({call.node, call.workload});
  }
  UpdateReady(call.node);
  if (again || call.void_answer) return std::nullopt;
  return call;
}

void AgentCalls::ClearNode(const std::string& node) {
  const auto lane = state_.lanes.find(node);
  if (lane == state_.lanes.end()) return;
  for (const AgentCall& call : lane->second.queue) Drop(call);
  lane->second.queue.clear();
  if (lane->second.in_flight > 0) {
    for (auto& [id, call] : state_.open) {
      if (call.node != node || call.void_answer) continue;
      Drop(call);
      call.void_answer = true;
    }
  }
  UpdateReady(node);
}

void AgentCalls::ClearAll() {
  std::vector<std::string> nodes;
  for (const auto& [node, lane] : state_.lanes) nodes.push_back(node);
  for (const std::string& node : nodes) ClearNode(node);
}

void AgentCalls::CheckInvariants() const {
  std::map<std::string, int32_t> in_flight;
  std::set<std::pair<std::string, std::string>> pairs;
  for (const auto& [id, call] : state_.open) {
    ++in_flight[call.node];
    if (call.void_answer) continue;
    MUSTER_CHECK(pairs.emplace(call.node, call.workload).second, "workload {} has two calls on {}", call.workload,
                 call.node);
  }
  for (const auto& [node, lane] : state_.lanes) {
    MUSTER_CHECK(lane.in_flight == in_flight[node], "calls to {} are miscounted", node);
    MUSTER_CHECK(lane.in_flight <= config_.agent_calls, "{} calls to {} are under way", lane.in_flight, node);
    for (const AgentCall& call : lane.queue) {
      MUSTER_CHECK(pairs.emplace(node, call.workload).second, "workload {} has two calls on {}", call.workload, node);
    }
  }
  MUSTER_CHECK(pairs == state_.pairs, "the calls of workloads are miscounted");
}

}  // namespace muster::scheduler
