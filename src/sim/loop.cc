#include "sim/loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/codec.h"
#include "sim/loop_works.h"

namespace muster::sim {
namespace {

constexpr Duration kAnswerTime = 1min;  // of virtual time, for one question
constexpr Duration kStartTime = 1min;   // until everything is connected
constexpr Duration kLook = 100ms;

bool Connected(LoopWorks& works) {
  for (const auto& [id, cluster] : works.clusters()) {
    if (!cluster->has_session() || !cluster->operator_core().View()->cluster_known) return false;
  }
  return std::ranges::all_of(works.nodes(), [](const auto& entry) {
    const LoopNode& node = *entry.second;
    return !node.configured() || (node.status_file() && node.status_file()->joined);
  });
}

// The longest pause after which something may still happen by itself.
Duration LongestPause(const LoopSettings& settings) {
  const engine::Policy& policy = settings.shard.policy;
  return std::max({policy.surplus_hold, policy.release_hold_on_demand, policy.release_hold_spot,
                   settings.shard.reclaim_window, settings.operators.stuck_after, settings.shard.hold_longest}) +
         2 * settings.operators.rollup_interval + 5s;
}

}  // namespace

std::vector<contract::WorkloadView> LoopClusterView::Pending() const {
  std::vector<contract::WorkloadView> pending;
  std::ranges::copy_if(workloads, std::back_inserter(pending), [](const contract::WorkloadView& view) {
    const bool nowhere = view.node.empty() || view.reason == "failover.no_node";
    return nowhere && view.desired == model::DesiredState::kRunning && view.phase != model::WorkloadPhase::kCompleted &&
           view.phase != model::WorkloadPhase::kFailed;
  });
  return pending;
}

std::vector<contract::NeedView> LoopView::Shortfalls() const {
  std::vector<contract::NeedView> shortfalls;
  std::ranges::copy_if(needs, std::back_inserter(shortfalls),
                       [](const contract::NeedView& need) { return !need.satisfied && !need.pending; });
  return shortfalls;
}

std::vector<contract::MachineView> LoopView::Bound(const std::string& cluster) const {
  std::vector<contract::MachineView> bound;
  std::ranges::copy_if(machines, std::back_inserter(bound),
                       [&](const contract::MachineView& view) { return view.machine->cluster == cluster; });
  return bound;
}

Loop::Loop(std::unique_ptr<LoopWorks> works) : works_(std::move(works)) {}
Loop::~Loop() = default;

Result<std::unique_ptr<Loop>> Loop::Make(const LoopStart& start) {
  if (Status wrong = LoopWorks::Check(start); !wrong.ok()) return std::unexpected(std::move(wrong));
  std::unique_ptr<Loop> loop(new Loop(std::make_unique<LoopWorks>(start, LoopHooks{})));
  LoopWorks& works = *loop->works_;
  works.Start();
  for (const MonoTime end = works.kernel().now().mono + kStartTime; !Connected(works);) {
    if (works.kernel().now().mono >= end) return Error(Code::kDeadlineExceeded, "the world does not come up");
    loop->Run(kLook);
  }
  return loop;
}

void Loop::Run(Duration time) { works_->kernel().RunUntil(works_->kernel().now().mono + time); }

Duration Loop::now() const { return works_->since_start(); }

Result<contract::ClusterReply> Loop::Ask(const std::string& cluster, const contract::ClusterRequest& request) {
  LoopCluster* const to = works_->FindCluster(cluster);
  if (to == nullptr) return Error(Code::kNotFound, fmt::format("there is no cluster {}", codec::Quote(cluster)));
  const auto answer = std::make_shared<std::optional<Result<contract::ClusterReply>>>();
  to->Ask(LoopWorks::kClient, request, [answer](Result<contract::ClusterReply> reply) { *answer = std::move(reply); });
  works_->kernel().RunUntil(works_->kernel().now().mono + kAnswerTime, [&] { return answer->has_value(); });
  if (!answer->has_value()) return Error(Code::kDeadlineExceeded, "no answer");
  return **std::move(*answer);
}

Result<contract::ShardReply> Loop::AskShard(contract::ShardRequest request) {
  const auto answer = std::make_shared<std::optional<Result<contract::ShardReply>>>();
  works_->fleet().Ask(std::move(request), [answer](Result<contract::ShardReply> reply) { *answer = std::move(reply); });
  works_->kernel().RunUntil(works_->kernel().now().mono + kAnswerTime, [&] { return answer->has_value(); });
  if (!answer->has_value()) return Error(Code::kDeadlineExceeded, "no answer");
  return **std::move(*answer);
}

void Loop::SetDemand(const std::string& cluster, std::vector<model::Need> needs) {
  works_->SetDemand(cluster, std::move(needs));
}

void Loop::RestartOperator(const std::string& cluster) {
  LoopCluster* const of = works_->FindCluster(cluster);
  MUSTER_CHECK(of != nullptr, "there is no cluster {}", cluster);
  of->CrashOperator();
  of->StartOperator();
}

void Loop::Observe(const contract::Observation& observation) {
  works_->cloud().Observe(observation, works_->kernel().now().mono);
  works_->fleet().provider().Look();
}

void Loop::SetStock(std::function<bool(const model::Machine&)> in_stock) {
  works_->cloud().SetStock(std::move(in_stock));
}

Settled Loop::RunUntilSettled(const SettleOptions& options) {
  Kernel& kernel = works_->kernel();
  const MonoTime begin = kernel.now().mono;
  const Duration quiet = options.quiet > Duration::zero() ? options.quiet : LongestPause(works_->settings());
  for (;;) {
    const MonoTime calm_at = std::max(works_->last_change(), begin) + quiet;
    if (kernel.now().mono >= calm_at || kernel.now().mono >= begin + options.longest) break;
    MonoTime until = std::min(calm_at, begin + options.longest);
    if (options.second_passed) until = std::min(until, kernel.now().mono + 1s);
    kernel.RunUntil(until);
    if (options.second_passed) options.second_passed();
  }
  const MonoTime last = std::max(works_->last_change(), begin);
  Settled settled{.settled = kernel.now().mono - last >= quiet, .took = last - begin, .in_flight = works_->InFlight()};
  settled.settled = settled.settled && settled.in_flight.empty();
  return settled;
}

LoopView Loop::View() {
  LoopView view;
  for (const auto& [id, cluster] : works_->clusters()) {
    LoopClusterView& of = view.clusters[id];
    // All pages; a question is answered by a world in which nothing is lost.
    const auto every = [&](auto request, auto take) {
      for (;;) {
        auto reply = Ask(id, request);
        MUSTER_CHECK(reply.has_value(), "{}", reply.error().message());
        request.page.token = take(*reply);
        if (request.page.token.empty()) return;
      }
    };
    every(contract::ListWorkloads{}, [&](contract::ClusterReply& reply) {
      auto& page = std::get<contract::WorkloadsListed>(reply);
      std::ranges::move(page.workloads, std::back_inserter(of.workloads));
      return page.next;
    });
    every(contract::ListNodes{}, [&](contract::ClusterReply& reply) {
      auto& page = std::get<contract::NodesListed>(reply);
      std::ranges::move(page.nodes, std::back_inserter(of.nodes));
      return page.next;
    });
    every(contract::ListSets{}, [&](contract::ClusterReply& reply) {
      auto& page = std::get<contract::SetsListed>(reply);
      std::ranges::move(page.sets, std::back_inserter(of.sets));
      return page.next;
    });
    of.corrections = cluster->operator_core().View()->corrections;
  }
  auto machines = AskShard(contract::ListMachines{});
  auto needs = AskShard(contract::InspectNeeds{});
  MUSTER_CHECK(machines.has_value() && needs.has_value(), "the shard does not answer");
  view.machines = std::get<contract::MachinesListed>(*machines).machines;
  view.needs = std::get<contract::NeedsInspected>(*needs).needs;
  for (const contract::MachineView& machine : view.machines) {
    if (!machine.machine->host.empty()) view.price_per_hour.micros += machine.machine->price_per_hour.micros;
  }
  view.actions = works_->actions();
  view.decisions = works_->decisions();
  return view;
}

}  // namespace muster::sim
