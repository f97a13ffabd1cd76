#include "cli/bench_scheduler_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <variant>

#include "host/system_clock.h"
#include "rpc/open_store.h"
#include "store/blocking.h"
#include "store/url.h"

namespace muster::cli {
namespace {

constexpr Duration kStartPatience = 60s;

const Clock& BenchClock() {
  static const host::SystemClock clock;
  return clock;
}

std::string AddressOf(const std::string& node) { return node + ":50051"; }
std::string NodeAt(const std::string& address) { return address.substr(0, address.rfind(':')); }

}  // namespace

std::string BenchNode(size_t index) { return fmt::format("n{:05}", index); }

contract::RegisterNode BenchRegistration(size_t index) {
  contract::NodeFacts facts{.node = BenchNode(index), .endpoint = AddressOf(BenchNode(index))};
  facts.total = {{"cpu", 64'000}, {"memory", int64_t{256'000} << 30}};
  facts.supported_types = {model::WorkloadType::kContainer};
  facts.labels = {{"topology.kubernetes.io/zone", fmt::format("zone-{}", index % 3)}};
  return {.facts = std::move(facts), .running = {}};
}

contract::ApplyWorkload BenchWorkload(size_t index) {
  model::WorkloadTemplate spec;
  spec.type = model::WorkloadType::kContainer;
  spec.image = "registry.local/service:1";
  spec.command = {"serve", "--port", "8080"};
  spec.env = {{"LEVEL", "info"}};
  spec.resources = {{"cpu", 100}, {"memory", int64_t{128'000} << 20}};
  return {.workload = fmt::format("w{:06}", index), .revision = "rev-1", .spec = std::move(spec)};
}

// --- agents

class BenchNodes::Client final : public rpc::AgentClient {
 public:
  Client(BenchNodes& nodes, bool hold) : nodes_(nodes), hold_(hold) {}

  void Ask(const rpc::AgentTarget& agent, contract::AgentRequest request, Duration, Done done) override {
    if (!hold_) done(nodes_.Answer(NodeAt(agent.address), request));
  }
  void ReadLogs(const rpc::AgentTarget&, const contract::ReadLogs&, std::shared_ptr<contract::LogsSink> sink) override {
    sink->End({Code::kUnimplemented, "these agents have no logs"});
  }

 private:
  BenchNodes& nodes_;
  const bool hold_;
};

std::unique_ptr<rpc::AgentClient> BenchNodes::Agents(bool hold) { return std::make_unique<Client>(*this, hold); }

void BenchNodes::Adopt(const std::string& node, const std::string& workload, const std::string& revision) {
  const std::lock_guard lock(mu_);
  running_[node][workload] = {.workload = workload,
                              .type = model::WorkloadType::kContainer,
                              .revision = revision,
                              .actual = contract::ActualState::kRunning};
}

uint64_t BenchNodes::lists() const {
  const std::lock_guard lock(mu_);
  return lists_;
}

Result<contract::AgentReply> BenchNodes::Answer(const std::string& node, const contract::AgentRequest& request) {
  if (const auto* apply = std::get_if<contract::ApplyOnAgent>(&request)) {
    Adopt(node, apply->workload, apply->revision);
    return contract::AppliedOnAgent{.applied = true};
  }
  const std::lock_guard lock(mu_);
  auto& here = running_[node];
  if (const auto* remove = std::get_if<contract::DeleteOnAgent>(&request)) {
    here.erase(remove->workload);
    return contract::DeletedOnAgent{.success = true};
  }
  if (const auto* one = std::get_if<contract::GetStatusOnAgent>(&request)) {
    const auto found = here.find(one->workload);
    if (found == here.end()) return Error(Code::kNotFound, "status not found");
    return found->second;
  }
  ++lists_;
  contract::ListedOnAgent listed;
  for (const auto& [id, status] : here) listed.workloads.push_back(status);
  return listed;
}

// --- requests

double BenchAnswers::At(double share) const {
  if (samples_us.empty()) return 0;
  const auto index = static_cast<size_t>(share * static_cast<double>(samples_us.size()));
  return samples_us[std::min(samples_us.size() - 1, index)];
}

namespace {

// What AskMany waits for. An answer may still be on its way out when the last one has been counted.
class Asking : public std::enable_shared_from_this<Asking> {
 public:
  Asking(contract::ClusterPort& cluster, size_t count, std::function<contract::ClusterRequest(size_t)> make)
      : cluster_(cluster), count_(count), make_(std::move(make)) {}

  void Begin(size_t at_once) {
    open_ = at_once;
    for (size_t i = 0; i < at_once; ++i) AskNext();
  }
  Result<std::vector<double>> Wait() {
    if (!waiter_.Wait(10min, [this] { return open_ == 0; })) {
      return Error(Code::kDeadlineExceeded, "the scheduler did not answer within ten minutes");
    }
    return waiter_.Get([this]() -> Result<std::vector<double>> {
      if (!failed_.ok()) return std::unexpected(failed_);
      return std::move(samples_us_);
    });
  }

 private:
  void AskNext() {
    const size_t index = next_++;
    if (index >= count_) return waiter_.Do([this] { --open_; });
    const MonoTime asked = BenchClock().Read().mono;
    cluster_.Ask(make_(index), [self = shared_from_this(), asked](const Result<contract::ClusterReply>& reply) {
      const double took = std::chrono::duration<double, std::micro>(BenchClock().Read().mono - asked).count();
      self->waiter_.Do([&] {
        self->samples_us_.push_back(took);
        if (!reply && self->failed_.ok()) self->failed_ = reply.error();
      });
      if (!reply) self->next_ = self->count_;
      self->AskNext();
    });
  }

  contract::ClusterPort& cluster_;
  const size_t count_;
  const std::function<contract::ClusterRequest(size_t)> make_;
  std::atomic<size_t> next_ = 0;
  store::Waiter waiter_;  // guards the rest
  std::vector<double> samples_us_;
  Status failed_;
  size_t open_ = 0;
};

}  // namespace

Result<BenchAnswers> AskMany(contract::ClusterPort& cluster, size_t count, size_t at_once,
                             const std::function<contract::ClusterRequest(size_t)>& make) {
  const auto asking = std::make_shared<Asking>(cluster, count, make);
  const MonoTime began = BenchClock().Read().mono;
  asking->Begin(std::min(at_once, count));
  MUSTER_ASSIGN_OR_RETURN(std::vector<double> samples_us, asking->Wait());
  const Duration took = BenchClock().Read().mono - began;
  BenchAnswers answers{.seconds = std::chrono::duration<double>(took).count(), .samples_us = std::move(samples_us)};
  std::ranges::sort(answers.samples_us);
  return answers;
}

// --- the scheduler

Result<std::unique_ptr<scheduler::LocalScheduler>> StartBenchScheduler(const std::string& store,
                                                                       std::unique_ptr<rpc::AgentClient> agents) {
  MUSTER_ASSIGN_OR_RETURN(const store::StoreUrl url, store::ParseStoreUrl(store));
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<store::Store> opened, rpc::OpenStore(store));
  auto started = std::make_unique<scheduler::LocalScheduler>(
      scheduler::LocalOptions{.config = {}, .journal = {}, .election = url.kind == store::StoreUrl::Kind::kEtcd},
      std::move(opened), std::move(agents), BenchClock());
  if (Status status = started->Start(); !status.ok()) return std::unexpected(std::move(status));
  started->UseStore("127.0.0.1:0");
  const MonoTime end = BenchClock().Read().mono + kStartPatience;
  while (!(started->View()->ready && started->View()->leading)) {
    if (BenchClock().Read().mono > end) return Error(Code::kUnavailable, "the scheduler does not become ready");
    std::this_thread::sleep_for(1ms);
  }
  return started;
}

Status WaitUntilRunning(const scheduler::LocalScheduler& scheduler, size_t workloads, Duration patience) {
  const auto running = [&] { return scheduler.View()->workloads[static_cast<size_t>(model::WorkloadPhase::kRunning)]; };
  const MonoTime end = BenchClock().Read().mono + patience;
  while (running() < static_cast<int64_t>(workloads)) {
    if (BenchClock().Read().mono > end) {
      return {Code::kDeadlineExceeded, fmt::format("{} of {} workloads run", running(), workloads)};
    }
    std::this_thread::sleep_for(1ms);
  }
  return {};
}

}  // namespace muster::cli
