#include "sim/sim_runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/overloaded.h"

namespace muster::sim {
namespace {

constexpr int32_t kKilled = 137;
constexpr int32_t kTerminated = 143;

}  // namespace

SimRuntime::SimRuntime(Kernel& kernel, std::string node, uint64_t stream, Findings& findings, RuntimeTimes times,
                       Ended ended)
    : kernel_(kernel),
      node_(std::move(node)),
      rng_(kernel.ForkRng(stream)),
      findings_(findings),
      times_(times),
      ended_(std::move(ended)) {}

void SimRuntime::Ask(const std::string& type, const contract::RuntimeRequest& request, Done done) {
  if (Chance(faults_.unavailable_per_mille) && rng_.Chance(1, 2)) {
    kernel_.After(1ms, [done] { done(std::unexpected(Status(Code::kUnavailable, "it is away"))); });
    return;
  }
  // Whatever was under way when the agent died or the power went never happens.
  const auto after = [this](Duration pause, auto action) {
    kernel_.After(pause, [this, power = power_, action = std::move(action)] {
      if (power == power_) action();
    });
  };
  std::visit(Overloaded{
                 [&](const contract::StartRun& start) {
                   after(times_.start, [this, type, start, done] {
                     types_[start.workload] = type;
                     Start(start);
                     Answer(done, start.workload);
                   });
                 },
                 [&](const contract::StopRun& stop) {
                   const auto run = runs_.find(stop.workload);
                   const uint64_t launch = run == runs_.end() ? 0 : run->second.launch;
                   const bool by_itself = stop.grace >= times_.stop;
                   after(std::min(times_.stop, stop.grace), [this, stop, launch, by_itself, done] {
                     End(stop.workload, launch, by_itself ? kTerminated : kKilled, "it was stopped", false);
                     Answer(done, stop.workload);
                   });
                 },
                 [&](const contract::RemoveRun& remove) {
                   after(1ms, [this, remove, done] {
                     const auto run = runs_.find(remove.workload);
                     findings_.Check(run == runs_.end() || !run->second.running, [&] {
                       return fmt::format("{} is removed while it runs on {}", remove.workload, node_);
                     });
                     if (run != runs_.end()) runs_.erase(run);
                     Answer(done, remove.workload);
                   });
                 },
                 [&](const contract::ListRuns&) {
                   after(1ms, [this, type, done] {
                     contract::RuntimeReply reply;
                     for (const auto& [workload, run] : runs_) {
                       if (types_[workload] == type) reply.runs.push_back(run);
                     }
                     done(std::move(reply));
                   });
                 },
             },
             request);
}

void SimRuntime::Answer(const Done& done, const std::string& workload) {
  if (Chance(faults_.hangs_per_mille)) return;
  if (Chance(faults_.unavailable_per_mille)) return done(std::unexpected(Status(Code::kUnavailable, "it is away")));
  done(RunOf(workload));
}

contract::RuntimeReply SimRuntime::RunOf(const std::string& workload) const {
  const auto run = runs_.find(workload);
  return run == runs_.end() ? contract::RuntimeReply{} : contract::RuntimeReply{.runs = {run->second}};
}

void SimRuntime::Start(const contract::StartRun& start) {
  const auto there = runs_.find(start.workload);
  if (there != runs_.end() && there->second.launch >= start.launch) return;
  findings_.Check(there == runs_.end() || !there->second.running,
                  [&] { return fmt::format("two runs of {} on {}", start.workload, node_); });
  runs_[start.workload] = {.workload = start.workload,
                           .launch = start.launch,
                           .revision = start.revision,
                           .running = true,
                           .started_at = kernel_.now().wall};
  if (Chance(faults_.start_fails_per_mille)) {
    End(start.workload, start.launch, 1, "exit code 1", false);
  } else if (start.spec.restart != model::RestartPolicy::kAlways && times_.job) {
    EndLater(start.workload, start.launch, *times_.job, 0);
  } else if (Chance(faults_.ends_per_mille)) {
    EndLater(start.workload, start.launch, Duration(rng_.Between(1, Duration(1min).count())), 1);
  }
}

void SimRuntime::EndLater(const std::string& workload, uint64_t launch, Duration after, int32_t code) {
  kernel_.After(after, [this, workload, launch, code, cuts = cuts_] {
    if (cuts == cuts_) End(workload, launch, code, code == 0 ? "" : "exit code 1", true);
  });
}

void SimRuntime::End(const std::string& workload, uint64_t launch, std::optional<int32_t> code, const char* how,
                     bool told) {
  const auto run = runs_.find(workload);
  if (run == runs_.end() || run->second.launch != launch || !run->second.running) return;
  run->second.running = false;
  run->second.ended_at = kernel_.now().wall;
  run->second.exit_code = code;
  run->second.message = how;
  if (told) ended_(run->second);
}

void SimRuntime::PowerCut() {
  ++power_;
  ++cuts_;
  for (auto& [workload, run] : runs_) {
    if (!run.running) continue;
    run.running = false;
    run.ended_at = kernel_.now().wall;
    run.message = "the node went down";
  }
}

void SimRuntime::Clear() {
  ++power_;
  ++cuts_;
  runs_.clear();
}

}  // namespace muster::sim
