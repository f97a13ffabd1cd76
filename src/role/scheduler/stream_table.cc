#include "role/scheduler/stream_table.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace muster::scheduler {
namespace {

contract::WorkloadStatus Pending(const contract::ApplyOnAgent& apply) {
  contract::WorkloadStatus status;
  status.workload = apply.workload;
  status.type = apply.spec.type;
  status.revision = apply.revision;
  status.wanted_running = apply.run;
  status.actual = contract::ActualState::kPending;
  return status;
}

}  // namespace

rpc::NodeStreams::Id StreamTable::Opened(const std::string& node, std::shared_ptr<rpc::NodeStream> stream) {
  const std::lock_guard lock(mu_);
  rows_[node] = {.id = ++last_, .stream = std::move(stream), .beaten = false, .statuses = {}};
  return last_;
}

void StreamTable::Beat(Id stream, const std::vector<contract::WorkloadStatus>& statuses) {
  const std::lock_guard lock(mu_);
  Row* row = Find(stream);
  if (row == nullptr) return;
  row->beaten = true;
  row->statuses.clear();
  for (const contract::WorkloadStatus& status : statuses) row->statuses.emplace(status.workload, status);
}

void StreamTable::Closed(Id stream) {
  const std::lock_guard lock(mu_);
  std::erase_if(rows_, [stream](const auto& entry) { return entry.second.id == stream; });
}

StreamTable::Row* StreamTable::Find(Id stream) {
  const auto row = std::ranges::find_if(rows_, [stream](const auto& entry) { return entry.second.id == stream; });
  return row == rows_.end() ? nullptr : &row->second;
}

bool StreamTable::Has(const std::string& node) const {
  const std::lock_guard lock(mu_);
  return rows_.contains(node);
}

Result<contract::AgentReply> StreamTable::Ask(const std::string& node, const contract::AgentRequest& request) {
  const std::lock_guard lock(mu_);
  const auto found = rows_.find(node);
  if (found == rows_.end()) return Error(Code::kUnavailable, "the node has no ControlStream");
  Row& row = found->second;
  if (const auto* get = std::get_if<contract::GetStatusOnAgent>(&request)) {
    const auto status = row.statuses.find(get->workload);
    if (status != row.statuses.end()) return status->second;
    if (!row.beaten) return Error(Code::kUnavailable, "the node has not said yet what it has");
    return Error(Code::kNotFound, "the node's last heartbeat does not have it");
  }
  if (std::holds_alternative<contract::ListOnAgent>(request)) {
    if (!row.beaten) return Error(Code::kUnavailable, "the node has not said yet what it has");
    contract::ListedOnAgent listed;
    for (const auto& [id, status] : row.statuses) listed.workloads.push_back(status);
    return listed;
  }
  if (!row.stream->Send(request)) return Error(Code::kUnavailable, "the node's ControlStream has ended");
  if (const auto* apply = std::get_if<contract::ApplyOnAgent>(&request)) {
    const contract::WorkloadStatus status = Pending(*apply);
    row.statuses.insert_or_assign(apply->workload, status);
    return contract::AppliedOnAgent{.applied = true, .skipped = false, .message = "sent", .status = status};
  }
  return contract::DeletedOnAgent{.success = true, .message = "sent"};
}

}  // namespace muster::scheduler
