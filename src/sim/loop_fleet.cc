#include "sim/loop_fleet.h"

#include <utility>

#include "base/check.h"
#include "base/probe.h"

namespace muster::sim {

LoopFleet::Shard::Shard(LoopFleet& fleet, size_t index, Kernel& kernel)
    : disk(kernel, {}, 20 + index),
      host(kernel, disk,
           {.make_core = [&fleet, index](const contract::Recovered& rows) { return fleet.MakeCore(index, rows); },
            .start_call = [&fleet, index](uint64_t life, const auto& call) { fleet.StartCall(index, life, call); },
            .emit = [&fleet, index](uint64_t life, const auto& effect) { fleet.Emit(index, life, effect); },
            .stepped =
                [&fleet, index](uint64_t, const auto& event, auto effects) {
                  if (fleet.world_.stepped) {
                    fleet.world_.stepped(index, fleet.shards_[index]->host.core(), event, effects);
                  }
                },
            .broken = [&fleet] { return fleet.world_.broken && fleet.world_.broken(); }}) {}

LoopFleet::LoopFleet(Kernel& kernel, Network& network, Rng& rng, const StreamDelays& delays, shard::Config config,
                     std::unique_ptr<provider::Backend> cloud, provider::Config provider, World world)
    : kernel_(kernel),
      network_(network),
      rng_(rng),
      delays_(delays),
      config_(std::move(config)),
      world_(std::move(world)),
      provider_(kernel, std::move(cloud), std::move(provider)) {
  shards_.push_back(std::make_unique<Shard>(*this, 0, kernel));
  shards_[0]->epoch_at_least = config_.epoch_at_least;
}

void LoopFleet::Start() {
  StartProvider();
  StartShard(0);
}

void LoopFleet::StartProvider() {
  if (!provider_.alive()) provider_.Start();
}
void LoopFleet::CrashProvider() {
  if (provider_.alive()) provider_.Crash();
}

shard::Core LoopFleet::MakeCore(size_t i, const contract::Recovered& rows) const {
  shard::Config config = config_;
  config.epoch_at_least = shards_[i]->epoch_at_least;
  auto core = shard::Core::Recover(config, rows);
  MUSTER_CHECK(core.has_value(), "{}", core.error().message());
  return *std::move(core);
}

void LoopFleet::StartShard(size_t i) {
  if (!shards_[i]->host.alive()) shards_[i]->host.Start();
}

void LoopFleet::CrashShard(size_t i) {
  Host& host = shards_[i]->host;
  if (!host.alive()) return;
  host.Crash();
  if (i == serving_) asked_.clear();
  std::vector<std::shared_ptr<Session>> ended;
  std::erase_if(sessions_, [&](const auto& entry) {
    if (entry.second->shard != i) return false;
    ended.push_back(entry.second);
    return true;
  });
  for (const auto& session : ended) session->stream->Break();
}

void LoopFleet::TakeOver() {
  const size_t successor = shards_.size();
  shards_.push_back(std::make_unique<Shard>(*this, successor, kernel_));
  shards_[successor]->disk.Replace(shards_[serving_]->disk.durable());
  serving_ = successor;
  StartShard(successor);
  for (const auto& session : sessions()) session->stream->Break();
}

// --- sessions

std::shared_ptr<LoopFleet::Session> LoopFleet::Open(const std::string& cluster, bool astray,
                                                    std::function<void(const contract::ShardMessage&)> hear,
                                                    std::function<void()> ended) {
  const size_t i = astray ? 0 : serving_;
  Host& host = shards_[i]->host;
  if (!host.alive()) return nullptr;
  auto session = std::make_shared<Session>(Session{.cluster = cluster,
                                                   .stream = std::make_shared<Stream>(kernel_, rng_, delays_),
                                                   .shard = i,
                                                   .life = host.life(),
                                                   .id = ++last_session_,
                                                   .hear = std::move(hear)});
  session->stream->OnEnd(Stream::To::kClient, std::move(ended));
  session->stream->OnEnd(Stream::To::kServer, [this, i, life = session->life, id = session->id] {
    if (sessions_.erase(id) == 0) return;
    Host& served = shards_[i]->host;
    if (served.alive() && served.life() == life) served.Post(shard::SessionClosed{id});
  });
  session->stream->Say(Stream::To::kServer, [this, session] {
    Host& served = shards_[session->shard]->host;
    if (!served.alive() || served.life() != session->life) return session->stream->Break();
    sessions_[session->id] = session;
    served.Post(shard::SessionOpened{
        session->id, {.cluster_id = session->cluster, .protocol_version = std::string(contract::kProtocolVersion)}});
  });
  return session;
}

void LoopFleet::Say(const std::shared_ptr<Session>& session, contract::OperatorMessage message) {
  if (auto* blob = std::get_if<contract::BootstrapResponse>(&message); blob != nullptr) {
    const std::string before = std::exchange(last_blob_, blob->user_data);
    if (MUTANT("loop.blob_of_another") && !before.empty()) blob->user_data = before;
  }
  session->stream->Say(Stream::To::kServer, [this, session, message = std::move(message)] {
    Host& served = shards_[session->shard]->host;
    if (!served.alive() || served.life() != session->life) return session->stream->Break();
    served.Post(shard::Received{session->id, message});
  });
}

std::vector<std::shared_ptr<LoopFleet::Session>> LoopFleet::sessions() const {
  std::vector<std::shared_ptr<Session>> all;
  for (const auto& [id, session] : sessions_) all.push_back(session);
  return all;
}

std::shared_ptr<LoopFleet::Session> LoopFleet::Find(size_t i, uint64_t life, contract::SessionId id) const {
  const auto session = sessions_.find(id);
  if (session == sessions_.end() || session->second->shard != i || session->second->life != life) return nullptr;
  return session->second;
}

// --- what a shard does

void LoopFleet::Emit(size_t i, uint64_t life, const shard::Core::Effect& effect) {
  if (const auto* send = std::get_if<shard::Send>(&effect)) {
    if (const auto session = Find(i, life, send->session)) {
      session->stream->Say(Stream::To::kClient, [session, message = send->message] { session->hear(message); });
    }
  } else if (const auto* close = std::get_if<shard::CloseSession>(&effect)) {
    if (const auto session = Find(i, life, close->session)) {
      sessions_.erase(session->id);
      session->stream->CloseAfterwards();
    }
  } else if (const auto* answer = std::get_if<shard::Answer>(&effect)) {
    auto waiting = asked_.extract(answer->request);
    if (!waiting.empty() && answer->status.ok()) waiting.mapped()(*answer->reply);
    if (!waiting.empty() && !answer->status.ok()) waiting.mapped()(std::unexpected(answer->status));
  }
  if (world_.emitted) world_.emitted(i, effect);
}

void LoopFleet::StartCall(size_t i, uint64_t life, const shard::Core::Call& call) {
  contract::ProviderRequest request;
  std::visit(
      [&](const auto& body) {
        if constexpr (std::is_constructible_v<contract::ProviderRequest, decltype(body)>) request = body;
      },
      call.request);
  if (world_.called) world_.called(i, request);
  const auto answer = [this, i, life, id = call.id](const provider::Answer& answered) {
    shard::Core::CallDone done{.id = id, .status = answered.status, .reply = {}};
    if (answered.reply) std::visit([&](const auto& reply) { done.reply = reply; }, *answered.reply);
    network_.Send(kProvider, ShardProcess(i), [this, i, life, done] { shards_[i]->host.Complete(life, done); });
  };
  // A second copy of a call does its work, but nobody waits for its answer.
  const auto seen = std::make_shared<bool>(false);
  network_.Send(ShardProcess(i), kProvider, [this, request, answer, seen] {
    const bool first = !std::exchange(*seen, true);
    const Status refused = world_.refuses ? world_.refuses(request) : Status();
    if (!refused.ok()) {
      if (first) answer({.request = 0, .status = refused, .reply = {}});
      return;
    }
    if (!provider_.alive()) {
      if (first) answer({.request = 0, .status = Status(Code::kUnavailable, "connection refused"), .reply = {}});
      return;
    }
    provider_.Ask(request, [answer, first](const provider::Answer& answered) {
      if (first) answer(answered);
    });
  });
}

void LoopFleet::Ask(contract::ShardRequest request, std::function<void(Result<contract::ShardReply>)> done) {
  Host& host = shards_[serving_]->host;
  if (!host.alive()) return done(std::unexpected(Status(Code::kUnavailable, "the shard is down")));
  asked_.emplace(++last_request_, std::move(done));
  host.Post(shard::Asked{.request = last_request_, .body = std::move(request)});
}

}  // namespace muster::sim
