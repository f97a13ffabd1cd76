// Lab: a shard with a provider and clusters around it that do what the test says. Time moves only when the test lets
// it.
//
// The provider accepts every transition whose token is newer than the last and shows it as under way until Finish();
// switches make it silent or refuse. Two labs may share one. Clusters answer questions and acknowledge instructions at
// once unless told otherwise. Rows the shard stores are kept, so that Restart() is a new life.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/shard/demand.h"
#include "core/shard/executor.h"
#include "core/shard/lifecycle.h"
#include "core/shard/losses.h"
#include "core/shard/machines.h"
#include "core/shard/rails.h"
#include "core/shard/reconcile.h"
#include "core/shard/repairs.h"
#include "core/shard/sessions.h"
#include "core/shard/shard.h"

namespace muster::shard {

// What a provider keeps.
struct LabProvider {
  std::map<std::string, model::Machine> machines;
  std::map<std::string, uint64_t> changed;
  uint64_t revision = 0;
  std::map<std::pair<std::string, std::string>, std::pair<int64_t, int64_t>> marks;  // by shard and machine
};

class Lab {
 public:
  explicit Lab(Config config = {}, std::shared_ptr<LabProvider> provider = std::make_shared<LabProvider>())
      : machines(provider->machines), config_(std::move(config)), provider_(std::move(provider)) {
    config_.policy.surplus_hold = config_.policy.surplus_hold == 120s ? 0s : config_.policy.surplus_hold;
    config_.first_bootstraps = 0;  // a test that is about the first machines of a cluster sets it
  }

  // --- what the test may set
  std::map<std::string, model::Machine>& machines;                  // the provider's
  bool silent = false;                                              // calls are not answered
  Status refusal;                                                   // of transitions, if not OK
  std::function<Status(const contract::ProviderRequest&)> refuses;  // the same, by request
  std::function<bool(const PartnerRequest&)> holds;                 // calls that wait until Release()
  std::function<bool(const contract::ProviderRequest&)> hangs;      // transitions that run into their deadline
  std::function<Status(const contract::ListRequest&)> refuses_lists;
  bool head_revisions = false;  // lists keep to their cap, and their revision is the newest nevertheless
  std::function<bool(const model::Machine&)> breaks;  // transitions of these end in Failed
  std::set<std::string> mute;                         // clusters that answer nothing
  bool answers_blobs = true;
  bool acknowledges = true;
  std::chrono::seconds ttl{};
  contract::ReportAck report_ack{.acknowledged = true};
  Status report_refusal;                            // of reports, if not OK
  std::vector<contract::RejectedMachine> rejected;  // in every list

  // --- what the test may look at
  std::vector<contract::ProviderRequest> transitions;
  std::vector<std::pair<std::string, contract::ShardMessage>> sent;  // by cluster
  std::vector<Audit> audits;
  std::vector<AuditOrder> orders;
  std::vector<Notice> notices;
  std::vector<contract::ShardReport> reports;
  std::vector<Stop> stops;
  std::vector<std::pair<contract::SessionId, Status>> closed;
  std::map<contract::RequestId, Answer> answers;
  contract::Recovered disk;
  int cycles = 0;
  std::function<contract::ListReply(const contract::ListRequest&)> lists_as;  // instead of what changed
  std::vector<Lasted> lasted;
  uint64_t lists = 0;
  Now now{.mono = MonoTime(1h), .wall = WallTime(1000000s)};

  Core& core() { return *core_; }

  static model::Machine MakeMachine(std::string id, model::MachineState state, std::string cluster = "") {
    model::Machine machine{.id = std::move(id),
                           .state = state,
                           .instance_type = "m",
                           .zone = "a",
                           .capacity_type = model::CapacityType::kOnDemand,
                           .price_per_hour = {1'000'000},
                           .resources = {{"cpu", 1000}}};
    if (state != model::MachineState::kSpeculative && state != model::MachineState::kCreating) {
      machine.host = {.provider = "lab", .ref = machine.id};
    }
    if (state == model::MachineState::kFailed) machine.last_error = "broken";
    machine.cluster = std::move(cluster);
    return machine;
  }
  // `count` machines "<name>-000" and on.
  void Add(const std::string& name, int count, model::MachineState state, const std::string& cluster = "") {
    for (int i = 0; i < count; ++i) Put(MakeMachine(fmt::format("{}-{:03}", name, i), state, cluster));
  }
  void Put(model::Machine machine) {
    const std::string id = machine.id;
    machines[id] = std::move(machine);
    provider_->changed[id] = ++provider_->revision;
  }
  void SetState(const std::string& id, model::MachineState state) {
    model::Machine machine = machines.at(id);
    machine.state = state;
    if (state == model::MachineState::kFailed) machine.last_error = "broken";
    Put(std::move(machine));
  }

  // The provider loses the machine.
  void Lose(const std::string& id) {
    machines.erase(id);
    provider_->changed.erase(id);
  }

  // Cores under way at the provider come to their end.
  void Finish() {
    using enum model::MachineState;
    for (const auto& [id, was] : std::map(machines)) {
      model::Machine machine = was;
      const bool moves = !model::IsStable(was.state) && was.state != kFailed;
      if (moves && breaks && breaks(was)) {
        SetState(id, kFailed);
        continue;
      }
      switch (was.state) {
        case kCreating:
          machine.state = kIdle;
          machine.host = {.provider = "lab", .ref = id};
          break;
        case kConfiguring: machine.state = kConfigured; break;
        case kDraining:
          machine.state = kIdle;
          machine.cluster.clear();
          machine.shard_metadata.clear();
          break;
        case kDeleting:
          machine.state = kSpeculative;
          machine.host = {};
          machine.last_error.clear();
          break;
        default: continue;
      }
      Put(std::move(machine));
    }
  }

  // --- life
  void Start() {
    auto made = Core::Recover(config_, disk);
    ASSERT_TRUE(made.has_value()) << made.error().ToString();
    core_.emplace(*std::move(made));
    Run(0s);
  }
  void Restart() {
    core_.reset();
    waiting_.clear();
    held_.clear();
    hanging_.clear();
    sessions_.clear();
    Start();
  }
  Config& config() { return config_; }

  // Lets so much time pass.
  void Run(Duration time) {
    const MonoTime end = now.mono + time;
    for (int steps = 0; steps < 100000; ++steps) {
      if (!waiting_.empty() && !silent) {
        const Core::Call call = std::move(waiting_.front());
        waiting_.pop_front();
        if (holds && holds(call.request)) {
          held_.push_back(call);
        } else if (Hangs(call)) {
          hanging_.emplace(now.mono + call.timeout, call);
        } else {
          Reply(call);
        }
        continue;
      }
      if (!inbox_.empty()) {
        const Core::Event event = std::move(inbox_.front());
        inbox_.pop_front();
        Step(event);
        continue;
      }
      const MonoTime next = core_->NextWake().value_or(MonoTime::max());
      const MonoTime hung = hanging_.empty() ? MonoTime::max() : hanging_.begin()->first;
      if (std::min(next, hung) > end) break;
      MoveTo(std::max(std::min(next, hung), now.mono));
      if (hung <= next) {
        const contract::CallId id = hanging_.begin()->second.id;
        hanging_.erase(hanging_.begin());
        Step(Core::CallDone{.id = id, .status = Status(Code::kDeadlineExceeded, "no answer")});
      } else {
        Step(contract::Wake{});
      }
    }
    MoveTo(end);
  }
  // Calls that were held are answered as things are now, but for those that `except` holds further.
  void Release(std::function<bool(const PartnerRequest&)> except = nullptr) {
    holds = std::move(except);
    for (const Core::Call& call : std::exchange(held_, {})) waiting_.push_back(call);
  }
  void Step(const Core::Event& event) {
    std::vector<Core::Effect> effects;
    core_->Step(event, now, effects);
    core_->CheckInvariants();
    for (const Core::Effect& effect : effects) Carry(effect);
  }

  // --- clusters
  void Connect(const std::string& cluster, const std::string& version = "v1alpha1") {
    const contract::SessionId session = ++last_session_;
    sessions_[cluster] = session;
    names_[session] = cluster;
    Step(SessionOpened{session, {.cluster_id = cluster, .protocol_version = version}});
  }
  void Disconnect(const std::string& cluster) { Step(SessionClosed{sessions_.at(cluster)}); }
  void Say(const std::string& cluster, contract::OperatorMessage message) {
    Step(Received{sessions_.at(cluster), std::move(message)});
  }
  // `machines` of demand in one row for each.
  void Rollup(const std::string& cluster, int64_t wanted, int32_t priority = 10, int rows = 1,
              const std::string& as = "") {
    std::vector<model::Need> needs;
    for (int i = 0; i < rows; ++i) {
      needs.push_back({.profile = model::Profile({.priority = priority + i}),
                       .aggregate = {{"cpu", wanted * 1000 / rows}},
                       .min_unit = {{"cpu", 1000}}});
    }
    if (wanted == 0) needs.clear();
    Say(cluster, contract::Rollup{.cluster_id = as.empty() ? cluster : as,
                                  .timestamp = now.wall,
                                  .rows = contract::NeedRows(std::move(needs))});
  }
  void ConnectWith(const std::string& cluster, int64_t wanted, int32_t priority = 10) {
    Connect(cluster);
    Rollup(cluster, wanted, priority);
  }

  // --- operators
  Answer Ask(contract::ShardRequest request) {
    const contract::RequestId id = ++last_request_;
    Step(Asked{id, std::move(request)});
    if (!answers.contains(id)) Run(1s);
    return answers.at(id);
  }
  template <class Reply>
  Reply AskFor(contract::ShardRequest request) {
    return std::get<Reply>(*Ask(std::move(request)).reply);
  }

  // --- counting
  template <class Request>
  int Count() const {
    int count = 0;
    for (const auto& transition : transitions) count += std::holds_alternative<Request>(transition) ? 1 : 0;
    return count;
  }
  template <class Message>
  std::vector<Message> SentTo(const std::string& cluster) const {
    std::vector<Message> messages;
    for (const auto& [to, message] : sent) {
      if (const auto* one = std::get_if<Message>(&message); one != nullptr && to == cluster) messages.push_back(*one);
    }
    return messages;
  }
  int InState(model::MachineState state, const std::string& cluster = "") const {
    int count = 0;
    for (const auto& [id, machine] : machines) {
      count += machine.state == state && (cluster.empty() || machine.cluster == cluster) ? 1 : 0;
    }
    return count;
  }
  int Noted(model::Reason reason) const {
    int count = 0;
    for (const Notice& notice : notices) count += notice.reason == reason ? 1 : 0;
    return count;
  }
  int Outcomes(std::string_view outcome) const {
    int count = 0;
    for (const Audit& audit : audits) count += audit.action.outcome == outcome ? 1 : 0;
    return count;
  }
  size_t waiting() const { return waiting_.size(); }

 private:
  void MoveTo(MonoTime when) {
    now.wall += when - now.mono;
    now.mono = when;
  }

  void Carry(const Core::Effect& effect) {
    if (const auto* persist = std::get_if<contract::Persist>(&effect)) {
      for (const contract::Write& write : persist->writes) {
        if (write.value) {
          disk[write.key] = *write.value;
        } else {
          disk.erase(write.key);
        }
      }
    } else if (const auto* call = std::get_if<Core::Call>(&effect)) {
      waiting_.push_back(*call);
    } else if (const auto* send = std::get_if<Send>(&effect)) {
      OnMessage(names_.at(send->session), send->session, send->message);
    } else if (const auto* close = std::get_if<CloseSession>(&effect)) {
      closed.emplace_back(close->session, close->status);
    } else if (const auto* answer = std::get_if<Answer>(&effect)) {
      answers[answer->request] = *answer;
    } else if (const auto* audit = std::get_if<Audit>(&effect)) {
      audits.push_back(*audit);
    } else if (const auto* notice = std::get_if<Notice>(&effect)) {
      notices.push_back(*notice);
    } else if (const auto* stop = std::get_if<Stop>(&effect)) {
      stops.push_back(*stop);
    } else if (const auto* order = std::get_if<AuditOrder>(&effect)) {
      orders.push_back(*order);
    } else if (const auto* took = std::get_if<Lasted>(&effect)) {
      lasted.push_back(*took);
    } else {
      ++cycles;
    }
  }

  // Whether the call is a transition that hangs; it is counted as made.
  bool Hangs(const Core::Call& call) {
    return std::visit(
        [&](const auto& request) {
          if constexpr (requires { request.fence; }) {
            if (!hangs || !hangs(request)) return false;
            transitions.emplace_back(request);
            return true;
          } else {
            return false;
          }
        },
        call.request);
  }

  void OnMessage(const std::string& cluster, contract::SessionId session, const contract::ShardMessage& message) {
    sent.emplace_back(cluster, message);
    if (mute.contains(cluster)) return;
    if (const auto* request = std::get_if<contract::BootstrapRequest>(&message); request != nullptr && answers_blobs) {
      inbox_.push_back(Received{
          session,
          contract::BootstrapResponse{.request_id = request->request_id, .user_data = "join " + cluster, .ttl = ttl}});
    }
    if (const auto* told = std::get_if<contract::ReclaimInstruction>(&message); told != nullptr && acknowledges) {
      inbox_.push_back(
          Received{session, contract::ReclaimAck{.instruction_id = told->instruction_id, .nodes_started = 1}});
    }
  }

  void Reply(const Core::Call& call) {
    Core::CallDone done{.id = call.id};
    if (const auto* list = std::get_if<contract::ListRequest>(&call.request)) {
      ++lists;
      done.status = refuses_lists ? refuses_lists(*list) : Status();
      if (!done.status.ok()) return Step(done);
      if (lists_as) {
        done.reply = lists_as(*list);
        return Step(done);
      }
      contract::ListReply reply{.revision = fmt::format("{}", provider_->revision), .rejected = rejected};
      const uint64_t since = list->since_revision.empty() ? 0 : std::stoull(list->since_revision);
      for (const auto& [id, machine] : machines) {
        const auto most = static_cast<size_t>(list->max_results);
        if (head_revisions && most > 0 && reply.machines.size() >= most) break;
        if (provider_->changed[id] > since) reply.machines.emplace_back(machine);
      }
      done.reply = std::move(reply);
    } else if (const auto* get = std::get_if<contract::GetRequest>(&call.request)) {
      const auto machine = machines.find(get->machine_id);
      if (machine == machines.end()) {
        done.status = Status(Code::kNotFound, "no such machine");
      } else {
        done.reply = contract::GetReply{contract::MachineRecord(machine->second)};
      }
    } else if (const auto* report = std::get_if<contract::ShardReport>(&call.request)) {
      reports.push_back(*report);
      done.status = report_refusal;
      if (done.status.ok()) done.reply = report_ack;
    } else {
      done = Transition(call);
    }
    Step(done);
  }

  Core::CallDone Transition(const Core::Call& call) {
    using enum model::MachineState;
    Core::CallDone done{.id = call.id, .status = refusal};
    std::visit(
        [&](const auto& request) {
          if constexpr (requires { request.fence; }) {
            transitions.emplace_back(request);
            auto& mark = provider_->marks[{request.fence.shard_id, request.machine_id}];
            const std::pair token{request.fence.epoch, request.fence.sequence};
            if (refuses && done.status.ok()) done.status = refuses(transitions.back());
            if (token <= mark) done.status = Status(Code::kFailedPrecondition, "fenced");
            if (!done.status.ok()) return;
            mark = token;
            model::Machine machine = machines.at(request.machine_id);
            if constexpr (std::is_same_v<std::decay_t<decltype(request)>, contract::CreateRequest>) {
              machine.state = kCreating;
            } else if constexpr (requires { request.bootstrap_blob; }) {
              machine.state = kConfiguring;
              machine.cluster = request.cluster_id;
              machine.shard_metadata = request.shard_metadata;
            } else if constexpr (requires { request.grace_period_seconds; }) {
              machine.state = kDraining;
            } else {
              machine.state = kDeleting;
              machine.cluster.clear();
              machine.shard_metadata.clear();
            }
            Put(machine);
            done.reply = contract::TransitionAck{.operation_id = "op", .machine = contract::MachineRecord(machine)};
          }
        },
        call.request);
    return done;
  }

  Config config_;
  std::optional<Core> core_;
  std::deque<Core::Call> waiting_;
  std::deque<Core::Call> held_;
  std::multimap<MonoTime, Core::Call> hanging_;  // by their deadlines
  std::deque<Core::Event> inbox_;
  const std::shared_ptr<LabProvider> provider_;
  std::map<std::string, contract::SessionId> sessions_;
  std::map<contract::SessionId, std::string> names_;
  contract::SessionId last_session_ = 0;
  contract::RequestId last_request_ = 0;
};

}  // namespace muster::shard
