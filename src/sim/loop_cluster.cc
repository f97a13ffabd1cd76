#include "sim/loop_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.h"
#include "contract/store_view.h"
#include "store/carry_out.h"

namespace muster::sim {
namespace {

// As role/operators has them.
constexpr Duration kFirstPause = 200ms;
constexpr Duration kLongestPause = 5s;
constexpr int32_t kPage = 1000;
constexpr size_t kKept = 10'000;       // changes for watchers, as role/scheduler
constexpr Duration kListTimeout = 3s;  // of a page

Duration Longer(Duration pause) { return pause == Duration::zero() ? kFirstPause : std::min(2 * pause, kLongestPause); }

}  // namespace

LoopCluster::Process::Process(LoopCluster& cluster, size_t index)
    : disk(cluster.kernel_, {}, cluster.options_.processes + 50 + index),
      host(cluster.kernel_, disk,
           Host::World{
               .make_core = [&cluster,
                             index](const contract::Recovered&) { return scheduler::Core(cluster.ConfigOf(index)); },
               .start_call = [&cluster, index](uint64_t life,
                                               const auto& call) { cluster.StartCall(index, life, call); },
               .emit = [&cluster, index](uint64_t life, const auto& effect) { cluster.Emit(index, life, effect); },
               .broken = [&cluster] { return cluster.world_.broken && cluster.world_.broken(); }}) {}

LoopCluster::LoopCluster(Kernel& kernel, Network& network, Rng& rng, const StreamDelays& delays, LoopFleet& fleet,
                         Options options, World world)
    : kernel_(kernel),
      network_(network),
      rng_(rng),
      delays_(delays),
      fleet_(fleet),
      options_(std::move(options)),
      asked_(options_.asked),
      world_(std::move(world)),
      schedule_(kernel),
      store_(schedule_, {}, options_.seed),
      operator_disk_(kernel, {}, options_.processes + 60),
      operator_(kernel, operator_disk_,
                {.make_core =
                     [this](const contract::Recovered&) {
                       operators::Config config = options_.operators;
                       config.cluster = options_.id;
                       return operators::Core(std::move(config));
                     },
                 .start_call =
                     [this](uint64_t life, const operators::Call& call) {
                       Ask(OperatorProcess(), call.request,
                           [this, life, id = call.id](Result<contract::ClusterReply> reply) {
                             operators::CallDone done{.id = id, .status = {}, .reply = {}};
                             if (reply) {
                               done.reply = *std::move(reply);
                             } else {
                               done.status = reply.error();
                             }
                             operator_.Complete(life, std::move(done));
                           });
                     },
                 .emit = [this](uint64_t, const operators::Effect& effect) { OperatorEmits(effect); },
                 .broken = [this] { return world_.broken && world_.broken(); }}) {
  for (size_t i = 0; i < options_.schedulers; ++i) processes_.push_back(std::make_unique<Process>(*this, i));
}

LoopCluster::~LoopCluster() {
  for (auto& process : processes_) {
    process->mirror.reset();
    process->candidate.reset();
  }
}

scheduler::Config LoopCluster::ConfigOf(size_t i) const {
  scheduler::Config config = options_.scheduler;
  config.id = fmt::format("{}-scheduler-{}", options_.id, i);
  config.cluster = options_.id;
  return config;
}

void LoopCluster::Start() {
  for (size_t begin = 0; begin < options_.rows.size(); begin += contract::kMaxTransactionWrites) {
    contract::Transaction rows;
    for (size_t i = begin; i < std::min(options_.rows.size(), begin + contract::kMaxTransactionWrites); ++i) {
      rows.writes.push_back(options_.rows[i]);
    }
    store_.Commit(std::move(rows), 1s, [](const contract::CommitOutcome& outcome) {
      MUSTER_CHECK(std::holds_alternative<contract::Committed>(outcome), "the first rows were not stored");
    });
  }
  for (size_t i = 0; i < processes_.size(); ++i) StartScheduler(i);
  if (options_.has_operator) StartOperator();
}

// --- schedulers

void LoopCluster::StartScheduler(size_t i) {
  Process& process = *processes_[i];
  if (process.host.alive()) return;
  process.host.Start();
  const uint64_t life = process.host.life();
  const bool election = processes_.size() > 1;
  process.host.Post(scheduler::LeadershipChanged{.leading = !election});
  process.mirror = std::make_unique<store::Mirror>(
      store_, schedule_, store::MirrorOptions{.range = contract::EveryKey(), .list_timeout = 3s},
      [this, i, life](store::MirrorEvent event) {
        Into(i, life, [this, i, event = std::move(event)] { OnMirror(i, event); });
      });
  if (!election) return;
  process.candidate = std::make_unique<store::Candidate>(
      store_, schedule_, store::CandidateOptions{.key = std::string(kLeaderKey), .value = ConfigOf(i).id},
      [this, i, life](const store::CandidateEvent& event) {
        Into(i, life, [this, i, event] { OnCandidate(i, event); });
      });
}

void LoopCluster::Into(size_t i, uint64_t life, std::function<void()> action) {
  if (world_.store_seen) world_.store_seen();
  if (world_.broken && world_.broken()) return;
  Process& process = *processes_[i];
  if (!process.host.alive() || process.host.life() != life) return;
  if (process.paused) {
    process.held_back.push_back([this, i, life, action = std::move(action)] { Into(i, life, action); });
  } else {
    action();
  }
}

void LoopCluster::CrashScheduler(size_t i) {
  Process& process = *processes_[i];
  if (!process.host.alive()) return;
  process.mirror.reset();
  process.candidate.reset();
  process.host.Crash();
  process.waiting.clear();
  process.held_back.clear();
  process.paused = false;
  process.floor.reset();
  process.kept.clear();
  DropStreams(process);
}

void LoopCluster::DropStreams(Process& process) {
  process.watchers.clear();
  for (const auto& weak : std::exchange(process.streams, {})) {
    if (const auto stream = weak.lock()) stream->Break();
  }
}

void LoopCluster::PauseScheduler(size_t i) {
  if (processes_[i]->host.alive()) processes_[i]->paused = true;
}
void LoopCluster::ResumeScheduler(size_t i) {
  Process& process = *processes_[i];
  process.paused = false;
  for (auto& action : std::exchange(process.held_back, {})) action();
}

// As role/scheduler tells its core.
void LoopCluster::OnMirror(size_t i, const store::MirrorEvent& event) {
  Host& host = processes_[i]->host;
  if (const auto* listed = std::get_if<contract::RowsListed>(&event)) {
    Listed(i, listed->revision, listed->rows);
  } else if (const auto* changed = std::get_if<contract::RowsChanged>(&event)) {
    host.Post(scheduler::StoreChanged{.revision = changed->revision, .changes = changed->changes});
  } else if (const auto* lost = std::get_if<contract::StoreLost>(&event)) {
    host.Post(scheduler::StoreLost{.why = lost->status});
  }
}

void LoopCluster::Listed(size_t i, contract::Revision revision, std::vector<contract::KeyValue> rows) {
  Process& process = *processes_[i];
  process.floor = revision;
  process.kept.clear();
  for (const auto& stream : std::exchange(process.watchers, {})) stream->Break();
  process.host.Post(scheduler::StoreListed{.revision = revision, .rows = std::move(rows)});
}

void LoopCluster::OnCandidate(size_t i, const store::CandidateEvent& event) {
  scheduler::LeadershipChanged changed;
  if (const auto* leading = std::get_if<contract::Leading>(&event)) {
    changed = {.leading = true,
               .leader = leading->key.value,
               .leader_key = leading->key.key,
               .leader_revision = leading->key.modified};
  } else if (const auto& following = std::get<contract::Following>(event); following.leader) {
    changed.leader = following.leader->value;
  }
  processes_[i]->host.Post(changed);
}

void LoopCluster::StartCall(size_t i, uint64_t life, const scheduler::Call& call) {
  const size_t space = call.to.find(' ');
  const std::string node = call.to.substr(0, space);
  const std::string endpoint = space == std::string::npos ? "" : call.to.substr(space + 1);
  const ProcessId from = SchedulerProcess(i);
  const ProcessId to = world_.process_of(node);
  if (world_.agent_called) world_.agent_called(i, node, call.id, nullptr);
  network_.Send(from, to, [this, i, life, from, to, node, endpoint, call] {
    world_.call_agent(node, endpoint, call.request,
                      [this, i, life, from, to, node, id = call.id](Result<contract::AgentReply> reply) {
                        network_.Send(to, from, [this, i, life, node, id, reply = std::move(reply)] {
                          Into(i, life, [this, i, life, node, id, reply] {
                            scheduler::CallDone done{.id = id, .status = {}, .reply = {}};
                            if (reply) done.reply = *reply;
                            if (!reply) done.status = reply.error();
                            if (world_.agent_called) world_.agent_called(i, node, id, &done.status);
                            processes_[i]->host.Complete(life, std::move(done));
                          });
                        });
                      });
  });
}

void LoopCluster::Emit(size_t i, uint64_t life, const scheduler::Effect& effect) {
  if (const auto* commit = std::get_if<contract::Commit>(&effect)) {
    store::CarryOut(store_, *commit, [this, i, life, commit = *commit](const contract::CommitDone& done) {
      if (world_.committed) world_.committed(i, commit, done);
      Into(i, life, [this, i, done] { processes_[i]->host.Post(done); });
    });
  } else if (const auto* answer = std::get_if<scheduler::Answer>(&effect)) {
    auto waiting = processes_[i]->waiting.extract(answer->request);
    MUSTER_CHECK(!waiting.empty(), "an answer to request {}, which nobody made", answer->request);
    if (answer->status.ok()) return waiting.mapped()(*answer->reply);
    waiting.mapped()(std::unexpected(answer->status));
  } else if (const auto* publish = std::get_if<scheduler::Publish>(&effect)) {
    Publish(i, publish->change);
  }
}

// --- requests

void LoopCluster::Serve(size_t i, const contract::ClusterRequest& request, Done done) {
  Process& process = *processes_[i];
  Into(i, process.host.life(), [this, i, request, done = std::move(done)] {
    const contract::RequestId id = ++last_request_;
    processes_[i]->waiting.emplace(id, done);
    processes_[i]->host.Post(scheduler::Asked{.request = id, .body = request});
  });
}

void LoopCluster::AskOne(ProcessId from, size_t i, const contract::ClusterRequest& request, Done done) {
  const ProcessId to = SchedulerProcess(i);
  // A connection delivers a request once, and its answer.
  const auto fresh = std::make_shared<bool>(true);
  network_.Send(from, to, [this, from, to, i, request, done = std::move(done), fresh] {
    if (!std::exchange(*fresh, false)) return;
    const auto answer = [this, from, to, i, done](Result<contract::ClusterReply> reply) {
      if (!reply && reply.error().code() == Code::kUnavailable) leader_ = (i + 1) % processes_.size();
      network_.Send(to, from, [done, reply = std::move(reply), told = std::make_shared<bool>(false)] {
        if (!std::exchange(*told, true)) done(reply);
      });
    };
    if (!processes_[i]->host.alive()) return answer(std::unexpected(Status(Code::kUnavailable, "connection refused")));
    Serve(i, request, answer);
  });
}

void LoopCluster::Ask(ProcessId from, const contract::ClusterRequest& request, Done done) {
  const size_t first = leader_;
  AskOne(from, first, request,
         [this, from, first, request, done = std::move(done)](Result<contract::ClusterReply> reply) {
           if (reply || reply.error().code() != Code::kUnavailable || processes_.size() == 1)
             return done(std::move(reply));
           AskOne(from, (first + 1) % processes_.size(), request, done);
         });
}

std::shared_ptr<Stream> LoopCluster::Dial(size_t turn) {
  const size_t i = turn % processes_.size();
  Process& process = *processes_[i];
  if (!process.host.alive()) return nullptr;
  auto stream = std::make_shared<NodeStream>(Stream(kernel_, rng_, delays_), i, process.host.life());
  std::erase_if(process.streams, [](const auto& weak) {
    const auto known = weak.lock();
    return known == nullptr || !known->open();
  });
  process.streams.push_back(stream);
  return stream;
}

void LoopCluster::AskOver(const std::shared_ptr<Stream>& stream, const contract::ClusterRequest& request, Done done) {
  stream->Say(Stream::To::kServer, [this, weak = std::weak_ptr(stream), request, done = std::move(done)] {
    const auto here = std::static_pointer_cast<NodeStream>(weak.lock());
    const Host& host = processes_[here->scheduler]->host;
    if (!host.alive() || host.life() != here->life) return here->Break();
    Serve(here->scheduler, request, [weak, done](Result<contract::ClusterReply> reply) {
      if (const auto open = weak.lock()) {
        open->Say(Stream::To::kClient, [done, reply = std::move(reply)] { done(reply); });
      }
    });
  });
}

void LoopCluster::BreakAStream(Rng& rng) {
  std::vector<std::shared_ptr<Stream>> open;
  for (const auto& process : processes_) {
    for (const auto& weak : process->streams) {
      if (auto stream = weak.lock(); stream && stream->open()) open.push_back(std::move(stream));
    }
  }
  if (watch_ != nullptr) open.push_back(watch_);
  if (session_ != nullptr) open.push_back(session_->stream);
  if (!open.empty()) open[rng.Below(open.size())]->Break();
}

// --- watches

void LoopCluster::Publish(size_t i, const contract::ClusterChange& change) {
  if (world_.published) world_.published(change);
  const auto* object = std::get_if<contract::ObjectChanged>(&change);
  if (object == nullptr) return;
  Process& process = *processes_[i];
  process.kept.push_back(*object);
  if (process.kept.size() > kKept) {
    process.floor = std::max(process.floor.value_or(0), process.kept.front().revision);
    process.kept.pop_front();
  }
  std::erase_if(process.watchers, [](const auto& stream) { return !stream->open(); });
  for (const auto& stream : process.watchers) {
    stream->Say(Stream::To::kClient,
                [this, change = *object] { operator_.Post(operators::ClusterChanged{.change = change}); });
  }
}

void LoopCluster::Watch(size_t i, contract::Revision from, const std::shared_ptr<Stream>& stream) {
  Process& process = *processes_[i];
  if (!process.floor || from < *process.floor) return stream->CloseAfterwards();
  for (const contract::ObjectChanged& change : process.kept) {
    if (change.revision <= from) continue;
    stream->Say(Stream::To::kClient, [this, change] { operator_.Post(operators::ClusterChanged{.change = change}); });
  }
  process.watchers.push_back(stream);
}

// --- the operator

void LoopCluster::StartOperator() {
  if (operator_.alive()) return;
  operator_.Start();
  session_pause_ = {};
  watch_pause_ = {};
  OpenSession();
  ListAndWatch();
}

void LoopCluster::CrashOperator() {
  if (!operator_.alive()) return;
  operator_.Crash();
  if (session_ != nullptr) session_->stream->Break();
  session_.reset();
  session_open_ = false;
  ++watch_number_;
  if (watch_ != nullptr) watch_->Break();
  watch_.reset();
}

void LoopCluster::OperatorEmits(const operators::Effect& effect) {
  if (world_.operator_did) world_.operator_did(effect);
  if (const auto* send = std::get_if<operators::Send>(&effect)) {
    if (session_ != nullptr) fleet_.Say(session_, send->message);
  } else if (const auto* give = std::get_if<operators::GiveBlob>(&effect)) {
    if (session_ == nullptr) return;
    fleet_.Say(session_, contract::BootstrapResponse{
                             .request_id = give->request_id,
                             .user_data = fmt::format("scheduler: {0}.example:8085\ncluster: {0}\n", options_.id)});
  }
}

void LoopCluster::OpenSession() {
  const uint64_t life = operator_.life();
  session_ = fleet_.Open(
      options_.id, false,
      [this, life](const contract::ShardMessage& message) {
        if (!operator_.alive() || operator_.life() != life) return;
        const auto* ack = std::get_if<contract::Acknowledgement>(&message);
        if (ack != nullptr && ack->echo == "hello") {
          session_open_ = true;
          session_pause_ = {};
          return operator_.Post(operators::SessionOpened{});
        }
        operator_.Post(operators::Received{.message = message});
      },
      [this, life] { SessionEnded(life); });
  if (session_ == nullptr) SessionEnded(life);
}

void LoopCluster::SessionEnded(uint64_t life) {
  if (!operator_.alive() || operator_.life() != life) return;
  session_.reset();
  session_open_ = false;
  operator_.Post(operators::SessionClosed{.why = Status(Code::kUnavailable, "the stream has ended")});
  session_pause_ = Longer(session_pause_);
  kernel_.After(session_pause_, [this, life] {
    if (operator_.alive() && operator_.life() == life && session_ == nullptr) OpenSession();
  });
}

void LoopCluster::ListAndWatch() {
  const uint64_t number = ++watch_number_;
  kernel_.After(2 * kListTimeout, [this, number] {
    if (watch_ == nullptr) WatchEnded(number);
  });
  ListNodes(leader_, number, "", std::make_shared<operators::ClusterListed>(), 0);
}

void LoopCluster::ListNodes(size_t i, uint64_t number, const std::string& token,
                            const std::shared_ptr<operators::ClusterListed>& listed, contract::Revision from) {
  AskOne(OperatorProcess(), i, contract::ListNodes{.page = {.limit = kPage, .token = token}},
         [this, i, number, listed, from](Result<contract::ClusterReply> reply) {
           if (number != watch_number_) return;
           if (!reply) return WatchEnded(number);
           auto& page = std::get<contract::NodesListed>(*reply);
           std::ranges::move(page.nodes, std::back_inserter(listed->nodes));
           const contract::Revision revision = from == 0 ? page.revision : from;
           if (!page.next.empty()) return ListNodes(i, number, page.next, listed, revision);
           ListWorkloads(i, number, "", listed, revision);
         });
}

void LoopCluster::ListWorkloads(size_t i, uint64_t number, const std::string& token,
                                const std::shared_ptr<operators::ClusterListed>& listed, contract::Revision from) {
  AskOne(OperatorProcess(), i, contract::ListWorkloads{.page = {.limit = kPage, .token = token}},
         [this, i, number, listed, from](Result<contract::ClusterReply> reply) {
           if (number != watch_number_) return;
           if (!reply) return WatchEnded(number);
           auto& page = std::get<contract::WorkloadsListed>(*reply);
           std::ranges::move(page.workloads, std::back_inserter(listed->workloads));
           if (!page.next.empty()) return ListWorkloads(i, number, page.next, listed, from);
           operator_.Post(std::move(*listed));
           if (!asked_.empty()) operator_.Post(operators::DemandTakenUp{.needs = std::exchange(asked_, {})});
           BeginWatch(i, number, from);
         });
}

void LoopCluster::BeginWatch(size_t i, uint64_t number, contract::Revision from) {
  if (!processes_[i]->host.alive()) return WatchEnded(number);
  watch_ = std::make_shared<Stream>(kernel_, rng_, delays_);
  watch_->OnEnd(Stream::To::kClient, [this, number] {
    if (number == watch_number_) WatchEnded(number);
  });
  watch_->Say(Stream::To::kServer, [this, i, from, life = processes_[i]->host.life(), weak = std::weak_ptr(watch_)] {
    const auto stream = weak.lock();
    if (!processes_[i]->host.alive() || processes_[i]->host.life() != life) return stream->Break();
    processes_[i]->streams.push_back(stream);  // it ends with the process, heard or not
    Into(i, life, [this, i, from, stream] { Watch(i, from, stream); });
  });
  watch_pause_ = {};
}

void LoopCluster::WatchEnded(uint64_t number) {
  if (number != watch_number_ || !operator_.alive()) return;
  ++watch_number_;
  watch_.reset();
  operator_.Post(operators::ClusterLost{.why = Status(Code::kUnavailable, "the watch has ended")});
  leader_ = (leader_ + 1) % processes_.size();
  watch_pause_ = Longer(watch_pause_);
  kernel_.After(watch_pause_, [this, now = watch_number_] {
    if (now == watch_number_ && operator_.alive()) ListAndWatch();
  });
}

}  // namespace muster::sim
