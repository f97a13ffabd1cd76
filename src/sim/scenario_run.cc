#include "sim/scenario_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "base/check.h"
#include "core/shard/machines.h"
#include "engine/text_table.h"
#include "model/machine.h"
#include "model/reason.h"
#include "sim/disk.h"
#include "sim/kernel.h"
#include "sim/network.h"
#include "sim/sim_host.h"
#include "sim/sim_provider.h"

namespace muster::sim {
namespace {

using model::MachineState;

constexpr ProcessId kProviderProcess(0);
constexpr ProcessId kShardProcess(1);
constexpr contract::RequestId kAtTheEnd = 1;

// Lines with a time before them; the same thing said of several machines at one moment is said once.
class Story {
 public:
  void Say(Duration when, std::string before, const std::string& machine, std::string after) {
    const int64_t tenths = when / 100ms;
    const bool same = !lines_.empty() && tenths == last_ && !machine.empty() && lines_.back().before == before &&
                      lines_.back().after == after;
    if (!same) {
      lines_.push_back({.tenths = tenths, .before = std::move(before), .machines = {}, .after = std::move(after)});
    }
    if (!machine.empty()) lines_.back().machines.push_back(machine);
    last_ = tenths;
  }

  std::string Take() const {
    std::string text;
    int64_t before = -1;
    for (const Line& line : lines_) {
      const std::string time = line.tenths == before ? "" : fmt::format("{}.{}s", line.tenths / 10, line.tenths % 10);
      text += fmt::format("{:<8}  {}{}{}\n", time, line.before, engine::JoinNames(line.machines), line.after);
      before = line.tenths;
    }
    return text;
  }

 private:
  struct Line {
    int64_t tenths = 0;
    std::string before;
    std::vector<std::string> machines;
    std::string after;
  };
  std::vector<Line> lines_;
  int64_t last_ = -1;
};

// Owned hardware cannot be given back.
std::vector<contract::Slot> SlotsOf(const ScenarioFile& scenario) {
  std::vector<contract::Slot> slots;
  for (const model::Machine& machine : scenario.machines) {
    const bool rented =
        machine.capacity_type == model::CapacityType::kOnDemand || machine.capacity_type == model::CapacityType::kSpot;
    slots.push_back({.machine = machine, .deletable = rented});
  }
  return slots;
}

class Play {
 public:
  explicit Play(const ScenarioFile& scenario)
      : scenario_(scenario),
        kernel_(1),
        network_(kernel_, {.min_delay = 1ms, .max_delay = 1ms}),
        cloud_(new ScriptedCloud(SlotsOf(scenario), scenario.dwell)),
        provider_(kernel_, std::unique_ptr<provider::Backend>(cloud_), {.name = "script", .new_lineage = 1}),
        disk_(kernel_, {.min_sync = 1ms, .max_sync = 1ms}, 2),
        shard_(kernel_, disk_,
               {.make_core = [this](const contract::Recovered& rows) { return MakeCore(rows); },
                .start_call = [this](uint64_t life, const auto& call) { StartCall(life, call); },
                .emit = [this](uint64_t, const auto& effect) { OnEffect(effect); },
                .stepped = [this](uint64_t, const auto&, auto) { TellMachines(); }}),
        start_(kernel_.now().mono) {
    for (const ScenarioStep& step : scenario.steps) {
      for (const engine::CaseCluster& cluster : step.clusters) {
        if (!cluster.needs) continue;
        for (const engine::CaseNeed& row : *cluster.needs) names_.emplace(engine::KeyOf(row.need), row.name);
      }
    }
  }

  std::string Run() {
    provider_.Start();
    shard_.Start();
    for (const ScenarioStep& step : scenario_.steps) {
      kernel_.At(start_ + step.at, [this, &step] { Do(step); });
    }
    kernel_.RunUntil(start_ + scenario_.lasts);
    shard_.Post(shard::Asked{kAtTheEnd, contract::InspectNeeds{}});
    kernel_.RunUntil(start_ + scenario_.lasts + 2s);
    return story_.Take() + fmt::format("after {}s\n", scenario_.lasts / 1s) + ending_;
  }

 private:
  struct Session {
    contract::SessionId id = 0;  // 0: none
    std::vector<model::Need> wants;
  };

  Duration Time() const { return kernel_.now().mono - start_; }
  void Say(const std::string& what) { story_.Say(Time(), what, "", ""); }

  shard::Core MakeCore(const contract::Recovered& rows) const {
    shard::Config config = scenario_.config;
    config.verify_decisions = true;
    auto core = shard::Core::Recover(config, rows);
    MUSTER_CHECK(core.has_value(), "{}", core.error().message());
    return *std::move(core);
  }

  // --- the script

  void Do(const ScenarioStep& step) {
    for (const ScriptedFault& fault : step.fails) {
      story_.Say(Time(), "", engine::JoinNames(fault.machines),
                 fmt::format(": {} fails from now on, for {}s: {}", contract::OperationName(fault.kind),
                             fault.lasts / 1s, fault.error));
      cloud_->Fail(fault, kernel_.now().mono);
    }
    for (const std::string& machine : step.lost) {
      story_.Say(Time(), "", machine, " loses its hardware");
      cloud_->Lose(machine, kernel_.now().mono);
    }
    provider_.Look();
    if (step.away > Duration::zero()) {
      Say(fmt::format("the provider is away for {}s", step.away / 1s));
      away_until_ = kernel_.now().mono + step.away;
    }
    if (step.restart) {
      Say("the shard is killed and starts again");
      shard_.Crash();
      shown_.clear();
      shard_.Start();
      for (auto& [name, session] : sessions_) {
        if (session.id != 0) Connect(name, session);
      }
    }
    for (const engine::CaseCluster& cluster : step.clusters) DoCluster(cluster);
  }

  void DoCluster(const engine::CaseCluster& cluster) {
    Session& session = sessions_[cluster.id];
    if (cluster.needs) {
      session.wants.clear();
      std::string wants;
      for (const engine::CaseNeed& row : *cluster.needs) {
        session.wants.push_back(row.need);
        wants += fmt::format("{}{} {}", wants.empty() ? "" : ", ", row.name, row.need.aggregate.ToString());
      }
      Say(fmt::format("{} wants {}", cluster.id, wants.empty() ? "nothing" : wants));
    }
    if (cluster.session == false) {
      Say(fmt::format("{} loses its session", cluster.id));
      shard_.Post(shard::SessionClosed{std::exchange(session.id, 0)});
      return;
    }
    if (session.id == 0) return Connect(cluster.id, session);
    Rollup(cluster.id, session);
  }

  void Connect(const std::string& name, Session& session) {
    session.id = ++last_session_;
    names_of_sessions_[session.id] = name;
    shard_.Post(shard::SessionOpened{
        session.id, {.cluster_id = name, .protocol_version = std::string(contract::kProtocolVersion)}});
    Rollup(name, session);
    Repeat(name, session.id);
  }

  void Rollup(const std::string& name, const Session& session) {
    shard_.Post(shard::Received{session.id, contract::Rollup{.cluster_id = name,
                                                             .timestamp = kernel_.now().wall,
                                                             .rows = contract::NeedRows(session.wants)}});
  }

  // As operators do, while the session lives: a demand that shrinks below a tenth is believed when it was repeated.
  void Repeat(const std::string& name, contract::SessionId id) {
    kernel_.After(10s, [this, name, id] {
      const Session& session = sessions_[name];
      if (session.id != id) return;
      Rollup(name, session);
      Repeat(name, id);
    });
  }

  // --- what the shard does

  void OnEffect(const shard::Core::Effect& effect) {
    if (const auto* send = std::get_if<shard::Send>(&effect)) {
      Answer(send->session, send->message);
    } else if (const auto* audit = std::get_if<shard::Audit>(&effect)) {
      Tell(audit->action);
    } else if (const auto* stop = std::get_if<shard::Stop>(&effect)) {
      Say("the shard stops: " + stop->why.message());
    } else if (const auto* answer = std::get_if<shard::Answer>(&effect); answer != nullptr && answer->reply) {
      TellEnding(std::get<contract::NeedsInspected>(*answer->reply));
    }
  }

  // A cluster answers at once.
  void Answer(contract::SessionId session, const contract::ShardMessage& message) {
    const auto answer = [&](contract::OperatorMessage said) {
      kernel_.After(10ms, [this, session, said = std::move(said)] { shard_.Post(shard::Received{session, said}); });
    };
    if (const auto* request = std::get_if<contract::BootstrapRequest>(&message)) {
      answer(contract::BootstrapResponse{.request_id = request->request_id,
                                         .user_data = "join " + names_of_sessions_[session]});
    } else if (const auto* told = std::get_if<contract::ReclaimInstruction>(&message)) {
      answer(contract::ReclaimAck{.instruction_id = told->instruction_id, .nodes_started = 1});
    }
  }

  void StartCall(uint64_t life, const shard::Core::Call& call) {
    contract::ProviderRequest request;
    std::visit(
        [&](const auto& body) {
          if constexpr (std::is_constructible_v<contract::ProviderRequest, decltype(body)>) request = body;
        },
        call.request);
    if (kernel_.now().mono < away_until_) {
      const shard::Core::CallDone away{.id = call.id, .status = Status(Code::kUnavailable, "it is away"), .reply = {}};
      return kernel_.After(1ms, [this, life, away] { shard_.Complete(life, away); });
    }
    network_.Send(kShardProcess, kProviderProcess, [this, life, id = call.id, request] {
      provider_.Ask(request, [this, life, id](const provider::Answer& answer) {
        shard::Core::CallDone done{.id = id, .status = answer.status, .reply = {}};
        if (answer.reply) std::visit([&](const auto& reply) { done.reply = reply; }, *answer.reply);
        network_.Send(kProviderProcess, kShardProcess, [this, life, done] { shard_.Complete(life, done); });
      });
    });
  }

  // --- the story

  std::string NeedName(const contract::ActionView& action) const {
    for (const auto& [key, name] : names_) {
      if (key.fingerprint == action.need_fingerprint && key.group == action.need_group) return name;
    }
    return action.need_fingerprint;
  }

  void Tell(const contract::ActionView& action) {
    if (action.outcome == "success" || action.outcome == "failed") return;  // the machine's state says it
    std::string after;
    if (action.kind == "Preempt" || action.kind == "Reclaim") after += " from " + action.cluster_id;
    if (action.kind == "Bootstrap") after += " to " + action.cluster_id;
    if (!action.need_fingerprint.empty()) after += " for " + NeedName(action);
    if (action.grace_seconds > 0) after += fmt::format(", grace {}s", action.grace_seconds);
    after += fmt::format(" [{}]", model::ReasonName(action.reason));
    if (action.outcome != "pending") after += fmt::format(": {} {}", action.outcome, action.error);
    story_.Say(Time(), action.kind + " ", action.machine_id, std::move(after));
  }

  // Where each machine comes to rest, as the shard sees it.
  void TellMachines() {
    for (const auto& [id, tracked] : shard_.core().machines().tracked()) {
      const model::Machine& machine = *tracked.record;
      const auto [shown, is_new] = shown_.emplace(id, machine.state);
      if (!is_new && shown->second == machine.state) continue;
      shown->second = machine.state;
      if (is_new || (!model::IsStable(machine.state) && machine.state != MachineState::kFailed)) continue;
      std::string after = fmt::format(": {}", model::StateName(machine.state));
      if (machine.state == MachineState::kConfigured) after += " for " + machine.cluster;
      if (machine.state == MachineState::kFailed) after += ", " + machine.last_error;
      story_.Say(Time(), "  ", id, std::move(after));
    }
  }

  void TellEnding(const contract::NeedsInspected& needs) {
    std::map<std::string, std::vector<std::string>> machines;
    for (const contract::MachineRecord& machine : provider_.Machines()) {
      const std::string to = machine->cluster.empty() ? "" : " for " + machine->cluster;
      machines[fmt::format("{}{}", model::StateName(machine->state), to)].push_back(machine->id);
    }
    for (const auto& [what, ids] : machines) ending_ += fmt::format("  {}: {}\n", what, engine::JoinNames(ids));
    for (const contract::NeedView& view : needs.needs) {
      const auto name = names_.find(engine::KeyOf(view.need));
      const std::string said = name == names_.end() ? view.need.profile.fingerprint() : name->second;
      const std::string domain = view.same_domain.empty() ? "" : " in " + view.same_domain;
      ending_ += view.satisfied ? fmt::format("  {} is covered{}\n", said, domain)
                                : fmt::format("  {} is short of {}{} [{}]\n", said, view.residual.ToString(), domain,
                                              model::ReasonName(view.reason));
    }
    const Status& verdict = shard_.core().verdict();
    if (!verdict.ok()) ending_ += "  an invariant of the engine is broken: " + verdict.message() + "\n";
  }

  const ScenarioFile& scenario_;
  Kernel kernel_;
  Network network_;
  ScriptedCloud* const cloud_;  // the provider's
  SimProvider provider_;
  Disk disk_;
  SimHost<shard::Core> shard_;
  const MonoTime start_;
  Story story_;
  std::map<engine::NeedKey, std::string> names_;
  std::map<std::string, Session> sessions_;
  std::map<contract::SessionId, std::string> names_of_sessions_;
  std::map<std::string, MachineState> shown_;
  contract::SessionId last_session_ = 0;
  MonoTime away_until_;  // the provider
  std::string ending_;
};

}  // namespace

Result<std::string> PlayScenario(const ScenarioFile& scenario) {
  const auto core = provider::Core::Recover({.name = "script"}, SlotsOf(scenario), {});
  if (!core) return std::unexpected(core.error());
  return Play(scenario).Run();
}

}  // namespace muster::sim
