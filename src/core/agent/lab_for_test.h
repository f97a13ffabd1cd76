// AgentLab: an agent core with a runtime in memory and a disk, on virtual time, and a judge that watches both.
//
// The test decides when a call reaches the runtime, when its reply arrives, and when the agent dies. `violation` is the
// first rule that was broken, in words; empty if none was.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/codec.h"
#include "core/agent/agent.h"

namespace muster::agent {

class AgentLab {
 public:
  static constexpr Now kBegin = {.mono = MonoTime(1h), .wall = WallTime(1000h)};

  explicit AgentLab(Config config) : now(kBegin), config_(std::move(config)) { Boot(); }

  // --- the agent

  std::vector<Core::Effect> Step(const Core::Event& event) {
    std::vector<Core::Effect> effects;
    core_->Step(event, now, effects);
    core_->CheckInvariants();
    for (const Core::Effect& effect : effects) CarryOut(effect);
    return effects;
  }
  Result<contract::AgentReply> Ask(contract::AgentRequest body) {
    answer_.reset();
    const auto* const asks = std::get_if<contract::ApplyOnAgent>(&body);
    const std::optional<Row> before = asks == nullptr ? std::nullopt : StoredRow(asks->workload);
    Step(Asked{.request = ++last_request_, .body = body});
    if (!answer_ || answer_->request != last_request_) return Broken("a request has no answer");
    if (!answer_->status.ok()) return std::unexpected(answer_->status);
    if (asks != nullptr) JudgeApplied(*asks, before);
    if (const auto* remove = std::get_if<contract::DeleteOnAgent>(&body)) {
      newest_[remove->workload] = {remove->stamp, true};
    }
    return *std::move(answer_->reply);
  }
  Result<contract::AppliedOnAgent> Apply(const contract::ApplyOnAgent& apply) {
    auto reply = Ask(apply);
    if (!reply) return std::unexpected(reply.error());
    return std::get<contract::AppliedOnAgent>(*std::move(reply));
  }
  Status Delete(const std::string& workload, contract::Stamp stamp = {}, Duration grace = 1s) {
    auto reply = Ask(contract::DeleteOnAgent{.workload = workload, .grace = grace, .stamp = stamp});
    return reply ? Status() : reply.error();
  }
  void Join(contract::FullState full) {
    const bool newer = full.epoch >= epoch;
    const std::set<std::string> before = Undeleted();
    Step(Joined{full});
    if (!newer || !config_.joins) return;
    epoch = full.epoch;
    if (const auto row = rows.find("epoch"); row == rows.end() || codec::FromBytes<uint64_t>(row->second) != epoch) {
      Break("the epoch is not durable");
    }
    for (const contract::ApplyOnAgent& apply : full.workloads) {
      applied_since_.insert(apply.workload);
      newest_[apply.workload] = {{epoch, apply.stamp.sequence}, false};
    }
    if (full.remove_others) return;
    const std::set<std::string> after = Undeleted();
    for (const std::string& id : before) {
      if (!after.contains(id)) Break(fmt::format("{} is removed, which the scheduler holds back", id));
    }
  }
  contract::WorkloadStatus Get(const std::string& workload) {
    auto reply = Ask(contract::GetStatusOnAgent{workload});
    if (reply) return std::get<contract::WorkloadStatus>(*std::move(reply));
    return {.workload = workload, .actual = contract::ActualState::kMissing, .message = reply.error().message()};
  }
  std::shared_ptr<const Snapshot> View() const { return core_->View(); }

  // The agent dies and comes back with what is durable; `lost`: with nothing.
  void Restart(bool lost = false) {
    calls.clear();
    if (lost) {
      rows.clear();
      newest_.clear();
      epoch = 0;
    }
    Boot();
  }
  // Time passes, and every wake comes.
  void Advance(Duration by) {
    const MonoTime end = now.mono + by;
    int wakes = 0;
    for (auto wake = core_->NextWake(); wake && *wake <= end; wake = core_->NextWake()) {
      if (++wakes > 10'000) return Break("it wakes without end");
      MoveTo(std::max(*wake, now.mono));
      Step(contract::Wake{});
      CarryOutAll();
    }
    MoveTo(end);
  }

  // --- the runtime

  // Brings an open call to the runtime and its reply to the agent.
  void CarryOutCall(size_t index) {
    const Core::Call call = Take(index);
    Core::CallDone done{.id = call.id};
    auto reply = Perform(call.request);
    if (std::holds_alternative<contract::ListRuns>(call.request)) seen_ = true;
    if (reply) {
      done.reply = *std::move(reply);
    } else {
      done.status = reply.error();
    }
    Step(done);
  }
  void CarryOutAll() {
    for (int i = 0; !calls.empty(); ++i) {
      if (i > 10'000) return Break("it calls without end");
      CarryOutCall(0);
    }
  }
  // The call fails; `performed`: after the runtime has done it.
  void FailCall(size_t index, Status status, bool performed) {
    const Core::Call call = Take(index);
    if (performed) static_cast<void>(Perform(call.request));
    Step(Core::CallDone{.id = call.id, .status = std::move(status)});
  }
  Result<contract::RuntimeReply> Perform(const contract::RuntimeRequest& request) {
    if (const auto* start = std::get_if<contract::StartRun>(&request)) return PerformStart(*start);
    contract::RuntimeReply reply;
    if (const auto* stop = std::get_if<contract::StopRun>(&request)) {
      const auto run = runs.find(stop->workload);
      if (run != runs.end()) reply.runs.push_back(End(run->second, 143));
    } else if (const auto* remove = std::get_if<contract::RemoveRun>(&request)) {
      const auto run = runs.find(remove->workload);
      if (run != runs.end() && run->second.running) Break(fmt::format("{} is removed while it runs", remove->workload));
      runs.erase(remove->workload);
    } else {
      for (const auto& [id, run] : runs) reply.runs.push_back(run);
    }
    return reply;
  }
  // A process ends, and the agent is told.
  void EndRun(const std::string& workload, int32_t exit_code, bool report = true) {
    if (exit_code == 0) completed_[workload] = runs.at(workload).launch;
    const contract::Run ended = End(runs.at(workload), exit_code);
    if (report) Step(RunChanged{ended});
  }

  const std::string& violation() const { return violation_; }
  void Break(std::string what) {
    if (violation_.empty()) violation_ = std::move(what);
  }

  Now now;
  contract::Recovered rows;
  std::map<std::string, contract::Run> runs;
  std::vector<Core::Call> calls;   // open
  std::vector<Core::Effect> told;  // every other effect
  uint64_t epoch = 0;              // of the last join
  int starts = 0;

 private:
  void Boot() {
    core_ = std::make_unique<Core>(*Core::Recover(config_, rows));
    seen_ = false;
    Step(contract::Wake{});
  }
  void MoveTo(MonoTime when) {
    now.wall += when - now.mono;
    now.mono = when;
  }
  std::unexpected<Status> Broken(std::string what) {
    Break(what);
    return Error(Code::kInternal, std::move(what));
  }
  Core::Call Take(size_t index) {
    const Core::Call call = calls.at(index);
    calls.erase(calls.begin() + static_cast<ptrdiff_t>(index));
    return call;
  }
  contract::Run End(contract::Run& run, int32_t exit_code) const {
    if (run.running) {
      run.running = false;
      run.exit_code = exit_code;
      run.ended_at = now.wall;
    }
    return run;
  }
  std::optional<Row> StoredRow(const std::string& workload) const {
    const auto row = rows.find("workload/" + workload);
    return row == rows.end() ? std::nullopt : codec::FromBytes<Row>(row->second);
  }
  std::set<std::string> Undeleted() const {
    std::set<std::string> ids;
    for (const auto& [key, bytes] : rows) {
      const auto id = kRows.KeyOf(key);
      if (id && !StoredRow(*id)->deleting) ids.insert(*id);
    }
    return ids;
  }

  void CarryOut(const Core::Effect& effect) {
    if (const auto* persist = std::get_if<contract::Persist>(&effect)) {
      for (const contract::Write& write : persist->writes) {
        if (write.value) {
          rows[write.key] = *write.value;
        } else {
          rows.erase(write.key);
        }
      }
    } else if (const auto* call = std::get_if<Core::Call>(&effect)) {
      JudgeCall(*call);
      calls.push_back(*call);
    } else if (const auto* answer = std::get_if<Answer>(&effect)) {
      answer_ = *answer;
    } else {
      told.push_back(effect);
    }
  }
  void JudgeCall(const Core::Call& call) {
    if (!std::holds_alternative<contract::ListRuns>(call.request) && !seen_) {
      Break("it acts before the runtime has said what runs");
    }
    const auto* start = std::get_if<contract::StartRun>(&call.request);
    if (start == nullptr) return;
    const auto row = StoredRow(start->workload);
    if (!row || row->launch < start->launch) {
      Break(fmt::format("launch {} of {} is not durable", start->launch, start->workload));
    }
    const auto before = runs.find(start->workload);
    const bool again = !applied_since_.contains(start->workload);
    const bool ended = before != runs.end() && !before->second.running && before->second.launch < start->launch &&
                       before->second.revision == start->revision;
    if (again && ended && before->second.exit_code == 0 && start->spec.restart != model::RestartPolicy::kAlways) {
      Break(fmt::format("{} has completed and is started again", start->workload));
    }
  }
  Result<contract::RuntimeReply> PerformStart(const contract::StartRun& start) {
    contract::Run& run = runs[start.workload];
    if (run.launch > start.launch) return Error(Code::kFailedPrecondition, "an old launch");
    if (run.launch < start.launch) {
      if (run.running) Break(fmt::format("two runs of {}", start.workload));
      const bool lasted = run.ended_at - run.started_at >= config_.restart_reset;
      int& in_a_row = in_a_row_[start.workload];
      in_a_row = applied_since_.erase(start.workload) > 0 || lasted ? 0 : in_a_row + 1;
      if (in_a_row > config_.max_restarts + 1) Break(fmt::format("{} is restarted for ever", start.workload));
      run = {.workload = start.workload,
             .launch = start.launch,
             .revision = start.revision,
             .running = true,
             .started_at = now.wall};
      ++starts;
    }
    contract::RuntimeReply reply;
    reply.runs.push_back(run);
    return reply;
  }
  void JudgeApplied(const contract::ApplyOnAgent& apply, const std::optional<Row>& before) {
    const auto& applied = std::get<contract::AppliedOnAgent>(*answer_->reply);
    const auto row = StoredRow(apply.workload);
    if (!row || row->wanted.revision != apply.revision || row->wanted.stamp != apply.stamp) {
      Break(fmt::format("{} was answered and is not durable", apply.workload));
    }
    if (!applied.skipped) applied_since_.insert(apply.workload);
    if (apply.stamp.epoch != epoch) Break("it takes a stamp of another epoch");
    if (epoch > 0) {
      const auto& [newest, deleted] = newest_[apply.workload];
      if (apply.stamp < newest || (apply.stamp == newest && deleted)) {
        Break(fmt::format("it takes an old stamp of {}", apply.workload));
      }
    }
    newest_[apply.workload] = {apply.stamp, false};
    // What a full state has brought is not asked for again.
    const bool had = before && before->wanted.run && !before->deleting;
    const int64_t more = apply.spec.resources.Get("cpu") - (had ? before->wanted.spec.resources.Get("cpu") : 0);
    if (!applied.skipped && apply.run && more > 0 && Requested("cpu") > config_.total.Get("cpu")) {
      Break("it admits more than the node has");
    }
  }
  // A job that is done holds no room.
  bool HasCompleted(const std::string& id, const Row& row) const {
    const auto completed = completed_.find(id);
    return completed != completed_.end() && completed->second == row.launch && !row.launch_due &&
           row.wanted.spec.restart != model::RestartPolicy::kAlways;
  }
  int64_t Requested(std::string_view dimension) const {
    int64_t sum = 0;
    for (const std::string& id : Undeleted()) {
      const Row row = *StoredRow(id);
      if (!row.wanted.run || HasCompleted(id, row)) continue;
      sum += row.wanted.spec.resources.Get(dimension);
    }
    return sum;
  }

  const Config config_;
  std::unique_ptr<Core> core_;
  bool seen_ = false;  // the runtime has told this life of the agent what runs
  std::optional<Answer> answer_;
  contract::RequestId last_request_ = 0;
  std::map<std::string, std::pair<contract::Stamp, bool>> newest_;  // taken; whether that was a deletion
  std::set<std::string> applied_since_;                             // the last start
  std::map<std::string, int> in_a_row_;
  std::map<std::string, uint64_t> completed_;  // the newest launch that ended well, also if the runtime lost it since
  std::string violation_;
};

inline contract::ApplyOnAgent ProcessApply(const std::string& workload, std::string revision = "r1",
                                           contract::Stamp stamp = {}) {
  contract::ApplyOnAgent apply{.workload = workload, .revision = std::move(revision), .stamp = stamp};
  apply.spec.type = model::WorkloadType::kProcess;
  apply.spec.command = {"true"};
  return apply;
}

}  // namespace muster::agent
