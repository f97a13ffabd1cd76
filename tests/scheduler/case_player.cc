#include "scheduler/case_player.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <map>
#include <memory>
#include <utility>
#include <variant>

#include "core/scheduler/lab_for_test.h"
#include "model/workload_decode.h"
#include "model/yaml_reader.h"
#include "placement/types.h"

namespace muster::scheduler {
namespace {

using model::TextReader;
using Action = std::function<void(Lab&, std::string&)>;

constexpr WallTime kBegan{1'700'000'000s};  // of every lab

std::string Moment(Duration since) { return fmt::format("{:<9.3f}", std::chrono::duration<double>(since).count()); }

// --- reading

class CaseReader {
 public:
  SchedulerCase Read(TextReader root) {
    SchedulerCase result;
    root.Field("about").Require().Read(result.about);
    ReadConfig(root.Field("scheduler"), result.config);
    SchedulerCase::Step begin;
    for (TextReader node : root.Field("nodes").List()) begin.actions.push_back(Register(node));
    result.steps.push_back(std::move(begin));
    for (TextReader step : root.Field("steps").List()) ReadStep(step, result);
    root.Field("lasts").Require().Read(result.lasts);
    if (result.lasts < result.steps.back().at) root.Field("lasts").Fail("the last step is later");
    if (TextReader expect = root.Field("expect"); expect.present()) expect.Read(result.expect.emplace());
    root.RefuseUnknown();
    return result;
  }

 private:
  static void ReadConfig(TextReader reader, Config& config) {
    reader.Field("reconcileInterval").Read(config.reconcile_interval);
    reader.Field("nodeTimeout").Read(config.node_timeout);
    reader.Field("monitorInterval").Read(config.monitor_interval);
    reader.Field("missingGrace").Read(config.missing_grace);
    reader.Field("maxAttempts").Read(config.max_attempts);
    reader.Field("preemptAfter").Read(config.preempt_after);
    reader.Field("unreachableGrace").Read(config.unreachable_grace);
    reader.Field("strategy").Read(config.strategy, placement::ParseStrategy);
    reader.RefuseUnknown();
  }

  static Action Register(TextReader reader) {
    contract::NodeFacts facts;
    facts.total = {{"cpu", 8000}, {"memory", int64_t{16'000} << 30}};
    facts.supported_types = {model::WorkloadType::kContainer};
    bool beats = true;
    reader.Field("id").Require().Read(facts.node);
    reader.Field("total").Read(facts.total);
    reader.Field("labels").Read(facts.labels);
    reader.Field("native").Read(facts.native);
    reader.Field("beats").Read(beats);
    if (TextReader types = reader.Field("types"); types.present()) {
      facts.supported_types.clear();
      for (TextReader type : types.List()) type.Read(facts.supported_types.emplace_back(), model::ParseWorkloadType);
    }
    for (TextReader item : reader.Field("taints").List()) {
      model::Taint& taint = facts.taints.emplace_back();
      item.Field("key").Require().Read(taint.key);
      item.Field("value").Read(taint.value);
      item.Field("effect").Require().Read(taint.effect);
      item.RefuseUnknown();
    }
    reader.RefuseUnknown();
    facts.endpoint = facts.node + ":50051";
    return [facts, beats](Lab& lab, std::string& told) {
      lab.agents[facts.node].native = facts.native;
      const contract::NodeRegistered reply = lab.Register(facts);
      if (!reply.accepted) told += fmt::format("{} {} is not accepted: {}\n", Now(lab), facts.node, reply.reason);
      if (beats) lab.StartBeating(facts.node);
    };
  }

  void ReadStep(TextReader reader, SchedulerCase& into) {
    SchedulerCase::Step step;
    reader.Field("at").Require().Read(step.at);
    if (step.at < into.steps.back().at) reader.Field("at").Fail("steps are in the order of time");
    const auto add = [&](Action action) { step.actions.push_back(std::move(action)); };
    for (TextReader node : reader.Field("register").List()) add(Register(node));
    for (TextReader quota : reader.Field("quotas").List()) add(Quota(quota));
    for (TextReader agent : reader.Field("agents").List()) add(Agent(agent));
    for (TextReader apply : reader.Field("apply").List()) add(Apply(apply));
    EachName(reader.Field("silent"),
             [&](const std::string& node) { add([node](Lab& lab, std::string&) { lab.StopBeating(node); }); });
    EachName(reader.Field("beating"), [&](const std::string& node) {
      add([node](Lab& lab, std::string& told) {
        if (const Status status = lab.Beat(node); !status.ok())
          told += Refused(lab, "the heartbeat of " + node, status);
        lab.StartBeating(node);
      });
    });
    EachName(reader.Field("delete"), [&](const std::string& id) {
      add(Ask("delete " + id, contract::DeleteObject{.kind = contract::ObjectKind::kWorkload, .name = id}));
    });
    EachName(reader.Field("retry"),
             [&](const std::string& id) { add(Ask("retry " + id, contract::RetryWorkload{.workload = id})); });
    EachName(reader.Field("stop"), [&](const std::string& id) {
      add(Ask("stop " + id, contract::ApplyWorkload{.workload = id, .desired = model::DesiredState::kStopped}));
    });
    EachName(reader.Field("start"), [&](const std::string& id) {
      add(Ask("start " + id, contract::ApplyWorkload{.workload = id, .desired = model::DesiredState::kRunning}));
    });
    EachName(reader.Field("cordon"),
             [&](const std::string& node) { add(Ask("cordon " + node, contract::CordonNode{.node = node})); });
    EachName(reader.Field("drain"),
             [&](const std::string& node) { add(Ask("drain " + node, contract::DrainNode{.node = node})); });
    EachName(reader.Field("accept"),
             [&](const std::string& node) { add(Ask("accept " + node, contract::AcceptNode{.node = node})); });
    bool restart = false;
    reader.Field("restart").Read(restart);
    if (restart) add([](Lab& lab, std::string&) { lab.Restart(); });
    if (TextReader store = reader.Field("store"); store.present()) {
      std::string what;
      store.Read(what);
      if (what != "lost" && what != "back") store.Fail("write lost or back");
      add([what](Lab& lab, std::string&) { what == "lost" ? lab.LoseStore() : lab.ReturnStore(); });
    }
    EachName(reader.Field("explain"), [&](const std::string& id) {
      add([id](Lab& lab, std::string& told) {
        for (const auto& row : lab.Get<contract::Explanation>(contract::ExplainWorkload{id}).nodes) {
          told += fmt::format("{} {} for {}: {}{}{}\n", Now(lab), row.node, id,
                              row.reason.empty() ? "fits" : row.reason, row.detail.empty() ? "" : ", ", row.detail);
        }
      });
    });
    reader.RefuseUnknown();
    into.steps.push_back(std::move(step));
  }

  template <class Each>
  static void EachName(TextReader reader, const Each& each) {
    for (TextReader item : reader.List()) {
      std::string name;
      item.Read(name);
      each(name);
    }
  }

  static Action Quota(TextReader reader) {
    model::Quota quota;
    reader.Field("tenant").Require().Read(quota.tenant);
    reader.Field("limits").Read(quota.limits);
    reader.Field("workloads").Read(quota.workloads);
    reader.RefuseUnknown();
    return Ask("the quota of " + quota.tenant, contract::ApplyQuota{quota});
  }

  // What the agent of a node does from now on.
  static Action Agent(TextReader reader) {
    std::string node;
    std::optional<bool> unreachable;
    std::optional<bool> hangs;
    std::optional<std::string> refuses;
    std::optional<std::string> full;
    std::optional<std::string> declines;
    std::map<std::string, std::string> fails;
    std::map<std::string, int32_t> exits;
    std::vector<std::string> loses;
    std::vector<std::string> has;
    std::vector<std::string> unknown;
    std::optional<model::Resources> used;
    Duration start_takes = 100ms;
    const auto read = [&](std::string_view key, auto& into) {
      if (TextReader field = reader.Field(key); field.present()) field.Read(into.emplace());
    };
    reader.Field("node").Require().Read(node);
    read("unreachable", unreachable);
    read("hangs", hangs);
    read("refuses", refuses);
    read("full", full);
    read("declines", declines);
    read("used", used);
    reader.Field("fails").Read(fails);
    for (auto& [id, code] : reader.Field("exits").Entries()) code.Read(exits[id]);
    reader.Field("loses").Read(loses);
    reader.Field("has").Read(has);
    reader.Field("unknown").Read(unknown);
    reader.Field("startTakes").Read(start_takes);
    reader.RefuseUnknown();
    return [=](Lab& lab, std::string&) {
      LabAgent& agent = lab.agents[node];
      agent.start_takes = start_takes;
      if (unreachable) agent.unreachable = *unreachable;
      if (hangs) agent.hangs = *hangs;
      if (used) agent.used = *used;
      agent.refuses = [refuses, full](const contract::ApplyOnAgent&) -> std::optional<Status> {
        if (refuses && !refuses->empty()) return Status(Code::kInternal, *refuses);
        if (full && !full->empty()) return Status(Code::kResourceExhausted, *full);
        return std::nullopt;
      };
      agent.declines = [declines](const contract::ApplyOnAgent&) -> std::optional<std::string> {
        return declines && !declines->empty() ? declines : std::nullopt;
      };
      agent.fails = fails;
      agent.exits = exits;
      for (const std::string& id : loses) agent.workloads.erase(id);
      for (const std::string& id : unknown) agent.workloads[id].status.actual = contract::ActualState::kUnknown;
      for (const std::string& id : has) {
        agent.workloads[id].status = {.workload = id, .revision = "rev-1", .actual = contract::ActualState::kRunning};
      }
    };
  }

  static Action Apply(TextReader reader) {
    contract::ApplyWorkload apply{.workload = {}, .revision = "rev-1"};
    apply.spec.emplace();
    apply.spec->type = model::WorkloadType::kContainer;
    apply.spec->image = "busybox";
    apply.spec->resources = {{"cpu", 1000}, {"memory", int64_t{1000} << 30}};
    int64_t count = 0;
    std::map<std::string, std::string> labels;
    reader.Field("id").Require().Read(apply.workload);
    reader.Field("revision").Read(apply.revision);
    reader.Field("tenant").Read(apply.tenant);
    reader.Field("nodeLabels").Read(apply.require_labels);
    reader.Field("count").Read(count);
    reader.Field("labels").Read(labels);
    if (TextReader given = reader.Field("template"); given.present()) {
      apply.spec = model::ReadWorkloadTemplate(given, model::WorkloadKind::kWorkload);
    }
    reader.RefuseUnknown();
    return [apply, count, labels](Lab& lab, std::string& told) {
      for (int64_t i = 0; i < std::max<int64_t>(1, count); ++i) {
        contract::ApplyWorkload one = apply;
        if (count > 0) one.workload += fmt::format("-{}", i);
        if (labels.empty()) {
          Ask("apply " + one.workload, one)(lab, told);
          continue;
        }
        // Labels of its own are what only native clients can give.
        model::WorkloadSpec spec{.name = one.workload, .tenant = one.tenant, .labels = labels};
        spec.spec = *one.spec;
        Ask("apply " + one.workload, contract::ApplySpec{.spec = std::move(spec)})(lab, told);
      }
    };
  }

  // A refusal is told.
  static Action Ask(std::string what, contract::ClusterRequest request) {
    return [what = std::move(what), request = std::move(request)](Lab& lab, std::string& told) {
      if (const Status status = lab.Try(request, {}); !status.ok() && status.code() != Code::kDeadlineExceeded) {
        told += Refused(lab, what, status);
      }
    };
  }

 public:
  static std::string Now(const Lab& lab) { return Moment(lab.now.mono - MonoTime(1h)); }
  static std::string Refused(const Lab& lab, const std::string& what, const Status& status) {
    return fmt::format("{} {} is refused: {}\n", Now(lab), what, status.ToString());
  }
};

// --- telling

class Teller {
 public:
  explicit Teller(std::string& told) : told_(told) {}

  void operator()(const Lab& lab, const Effect& effect) {
    if (const auto* call = std::get_if<Call>(&effect)) return Called(lab, *call);
    const auto* publish = std::get_if<Publish>(&effect);
    if (publish == nullptr) return;
    if (const auto* decision = std::get_if<contract::Decision>(&publish->change)) {
      Tell(lab, fmt::format("decided: {} {}{}{} [{}]", contract::DecisionKindName(decision->kind), decision->workload,
                            !decision->workload.empty() && !decision->node.empty() ? " on " : "", decision->node,
                            decision->reason));
    } else if (const auto* changed = std::get_if<contract::ObjectChanged>(&publish->change)) {
      Changed(lab, *changed);
    }
  }

 private:
  void Tell(const Lab& lab, const std::string& line) { told_ += fmt::format("{} {}\n", CaseReader::Now(lab), line); }

  void Called(const Lab& lab, const Call& call) {
    const std::string node = call.to.substr(0, call.to.find(' '));
    if (const auto* apply = std::get_if<contract::ApplyOnAgent>(&call.request)) {
      Tell(lab,
           fmt::format("{} is told to {} {} {}", node, apply->run ? "run" : "stop", apply->workload, apply->revision));
    } else if (const auto* remove = std::get_if<contract::DeleteOnAgent>(&call.request)) {
      Tell(lab, fmt::format("{} is told to delete {}", node, remove->workload));
    }
  }

  void Changed(const Lab& lab, const contract::ObjectChanged& changed) {
    std::string line = changed.name + ": gone";
    if (const auto* workload = std::get_if<contract::WorkloadView>(&changed.now)) line = LineOf(*workload);
    if (const auto* node = std::get_if<contract::NodeView>(&changed.now)) line = LineOf(*node);
    std::string& last = last_[changed.name];
    if (last == line) return;
    last = line;
    Tell(lab, line);
  }

  static std::string LineOf(const contract::WorkloadView& view) {
    std::string line = fmt::format("{}: {}", view.workload, model::WorkloadPhaseName(view.phase));
    if (!view.node.empty()) line += " on " + view.node;
    if (view.attempts > 0) line += fmt::format(", attempt {} of {}", view.attempts, view.max_attempts);
    if (view.next_retry_at) {
      line += fmt::format(", again at {:.3f}", std::chrono::duration<double>(*view.next_retry_at - kBegan).count());
    }
    const auto action = view.metadata.find("lastReconciliationAction");
    if (action != view.metadata.end()) line += fmt::format(" ({})", action->second);
    if (!view.message.empty()) line += ": " + view.message;
    return line;
  }
  static std::string LineOf(const contract::NodeView& view) {
    std::string line = fmt::format("{}: {} by {}: {}", view.node, model::NodeStatusName(view.status),
                                   view.status_updated_by, view.status_reason);
    if (view.cordoned) line += view.draining ? ", draining" : ", cordoned";
    std::vector<std::string_view> types;
    for (const model::WorkloadType type : view.supported_types) types.push_back(model::WorkloadTypeName(type));
    return line + fmt::format("; runs {}", fmt::join(types, ", "));
  }

  std::string& told_;
  std::map<std::string, std::string> last_;  // line by object
};

}  // namespace

Result<SchedulerCase> ReadSchedulerCase(std::string_view text, std::string_view source) {
  MUSTER_ASSIGN_OR_RETURN(const model::TextValue value, model::ReadYamlDocument(text, source));
  model::TextErrors errors{std::string(source)};
  SchedulerCase read = CaseReader().Read(TextReader(errors, value));
  if (!errors.ok()) return std::unexpected(errors.status());
  return read;
}

std::string PlaySchedulerCase(const SchedulerCase& input) {
  std::string told;
  Lab lab(input.config);
  Teller teller(told);
  lab.observe = [&](const Effect& effect) { teller(lab, effect); };
  lab.Run();
  const MonoTime began = lab.now.mono;
  for (const SchedulerCase::Step& step : input.steps) {
    lab.Run(std::max<Duration>(Duration{}, began + step.at - lab.now.mono));
    for (const auto& action : step.actions) action(lab, told);
  }
  lab.Run(std::max<Duration>(Duration{}, began + input.lasts - lab.now.mono));
  return told;
}

}  // namespace muster::scheduler
