#include "sim/loop_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/probe.h"

namespace muster::sim {
namespace {

// As rpc/join_client.h and role/agent/join_link.h have them.
constexpr Duration kFirstPause = 200ms;
constexpr Duration kLongestPause = 5s;
constexpr Duration kLeastBeatPause = 100ms;

}  // namespace

LoopNode::LoopNode(Kernel& kernel, std::string id, uint64_t stream, Findings& findings, const LoopSettings& settings,
                   std::optional<Duration> job_time, World world)
    : kernel_(kernel),
      rng_(kernel.ForkRng(stream)),
      settings_(settings),
      world_(std::move(world)),
      disk_(kernel, {}, stream + 1),
      runtime_(kernel, id, stream + 2, findings,
               {.start = settings.start_time, .stop = settings.stop_time, .job = job_time},
               [this](const contract::Run& run) { host_.Post(agent::RunChanged{run}); }),
      host_(kernel, disk_,
            {.make_core = [this](const contract::Recovered& rows) { return MakeCore(rows); },
             .start_call =
                 [this](uint64_t life, const agent::Core::Call& call) {
                   runtime_.Ask(call.to, call.request,
                                [this, life, id = call.id](Result<contract::RuntimeReply> reply) {
                                  agent::Core::CallDone done{.id = id, .status = {}, .reply = {}};
                                  if (reply) done.reply = *std::move(reply);
                                  if (!reply) done.status = reply.error();
                                  host_.Complete(life, std::move(done));
                                });
                 },
             .emit = [this](uint64_t life, const agent::Core::Effect& effect) { Emit(life, effect); },
             .stepped = [this](uint64_t, const auto&, auto) { JoinIfReady(); },
             .broken = [&findings] { return findings.failure().has_value(); }}) {
  facts_.node = std::move(id);
}

void LoopNode::Remember(NodeMemory memory) {
  disk_.Replace(std::move(memory.rows));
  runtime_.Adopt(std::move(memory.runs), std::move(memory.types));
}

void LoopNode::Configure(contract::NodeFacts facts) {
  facts.node = facts_.node;
  facts.native = true;
  facts_ = std::move(facts);
}

agent::Core LoopNode::MakeCore(const contract::Recovered& rows) const {
  agent::Config config = settings_.agent;
  config.node = facts_.node;
  config.joins = true;
  config.total = facts_.total;
  if (MUTANT("loop.node_is_smaller")) config.total.Set("cpu", config.total.Get("cpu") / 2);
  config.runtimes = facts_.supported_types;
  auto core = agent::Core::Recover(std::move(config), rows);
  MUSTER_CHECK(core.has_value(), "{}", core.error().message());
  return *std::move(core);
}

void LoopNode::Start() {
  if (alive() || !configured()) return;
  status_file_.reset();
  began_ = false;
  accepted_ = false;
  pause_ = kFirstPause;
  host_.Start();
}

void LoopNode::Kill() {
  if (!alive()) return;
  host_.Crash();
  runtime_.AgentDied();
  waiting_.clear();
  beats_at_.reset();
  if (stream_ != nullptr) stream_->Break();
  stream_.reset();
}

void LoopNode::PowerCut() {
  Kill();
  runtime_.PowerCut();
}

void LoopNode::Wipe() {
  Kill();
  runtime_.Clear();
  disk_.Replace({});
  status_file_.reset();
  facts_.cluster.clear();
}

// --- the agent's port

// An agent that starts again has another port.
std::string LoopNode::Endpoint() const { return fmt::format("{}:{}", facts_.node, host_.life()); }

void LoopNode::Ask(const std::string& endpoint, const contract::AgentRequest& request,
                   std::function<void(Result<contract::AgentReply>)> done) {
  if (!alive() || endpoint != Endpoint())
    return done(std::unexpected(Status(Code::kUnavailable, "connection refused")));
  waiting_.emplace(++last_request_, std::move(done));
  host_.Post(agent::Asked{.request = last_request_, .body = request});
}

void LoopNode::Emit(uint64_t /*life*/, const agent::Core::Effect& effect) {
  if (const auto* answer = std::get_if<agent::Answer>(&effect)) {
    auto waiting = waiting_.extract(answer->request);
    MUSTER_CHECK(!waiting.empty(), "an answer to request {}, which nobody made", answer->request);
    if (answer->status.ok()) return waiting.mapped()(*answer->reply);
    waiting.mapped()(std::unexpected(answer->status));
  } else if (std::holds_alternative<agent::StatesChanged>(effect)) {
    WriteStatus();
    world_.changed();
    if (accepted_) BeatAt(std::max(kernel_.now().mono, last_beat_ + kLeastBeatPause));
  } else if (std::holds_alternative<agent::RuntimeCame>(effect)) {
    if (stream_ != nullptr) stream_->Break();
  }
}

void LoopNode::WriteStatus() { status_file_ = {.joined = accepted_, .workloads = core().View()->statuses->size()}; }

// --- the stream

// An agent joins when each runtime has said what it has.
void LoopNode::JoinIfReady() {
  if (began_) return;
  const auto view = core().View();
  if (!std::ranges::all_of(view->runtimes, &agent::RuntimeView::answered)) return;
  began_ = true;
  kernel_.After(Duration::zero(), [this, life = host_.life()] {
    if (alive() && host_.life() == life) Join();
  });
}

void LoopNode::Join() {
  stream_ = world_.dial(facts_.cluster, turn_++);
  if (stream_ == nullptr) return JoinLater(false);
  const uint64_t life = host_.life();
  const std::weak_ptr<Stream> stream = stream_;
  stream_->OnEnd(Stream::To::kClient, [this, life, stream] {
    if (!alive() || host_.life() != life || stream_ == nullptr || stream_ != stream.lock()) return;
    stream_.reset();
    beats_at_.reset();
    JoinLater(accepted_);
  });
  const auto view = core().View();
  contract::RegisterNode request{.facts = facts_, .running = *view->statuses, .epoch = view->epoch};
  request.facts.endpoint = MUTANT("loop.endpoint_stays") ? fmt::format("{}:1", facts_.node) : Endpoint();
  request.facts.supported_types = Types();
  world_.ask(stream_, std::move(request), [this](const Result<contract::ClusterReply>& reply) { Registered(reply); });
}

std::vector<model::WorkloadType> LoopNode::Types() const {
  std::vector<model::WorkloadType> types;
  const auto view = core().View();
  for (const agent::RuntimeView& runtime : view->runtimes) {
    if (runtime.listed) types.push_back(runtime.type);
  }
  return types;
}

void LoopNode::JoinLater(bool accepted) {
  pause_ = accepted ? kFirstPause : std::min(2 * pause_, kLongestPause);
  kernel_.After(pause_ / 2 + Duration(rng_.Between(0, pause_.count() / 2)), [this, life = host_.life()] {
    if (alive() && host_.life() == life && stream_ == nullptr) Join();
  });
}

void LoopNode::Registered(const Result<contract::ClusterReply>& reply) {
  if (!reply) return stream_->Break();
  const auto& answer = std::get<contract::NodeRegistered>(*reply);
  if (!answer.accepted) return stream_->Break();
  accepted_ = true;
  heard_ = kernel_.now().mono;
  if (epoch_ == 0 || !MUTANT("loop.beats_of_first_epoch")) epoch_ = answer.state.epoch;
  interval_ = std::max<Duration>(answer.heartbeat_interval, 100ms);
  if (!MUTANT("loop.full_state_lost")) host_.Post(agent::Joined{answer.state});
  WriteStatus();
  BeatAt(kernel_.now().mono);
}

void LoopNode::BeatAt(MonoTime when) {
  if (beats_at_ && *beats_at_ <= when) return;
  beats_at_ = when;
  kernel_.At(when, [this, when, life = host_.life()] {
    if (!alive() || host_.life() != life || beats_at_ != when) return;
    beats_at_.reset();
    Beat();
  });
}

void LoopNode::Beat() {
  last_beat_ = kernel_.now().mono;
  if (stream_ == nullptr) return;
  BeatAt(last_beat_ + interval_);
  world_.ask(stream_, contract::Heartbeat{.node = facts_.node, .epoch = epoch_, .statuses = *core().View()->statuses},
             [this](const Result<contract::ClusterReply>& reply) {
               if (!reply) return stream_->Break();
               heard_ = kernel_.now().mono;
             });
}

}  // namespace muster::sim
