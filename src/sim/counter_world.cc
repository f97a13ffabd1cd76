#include "sim/counter_world.h"

#include <fmt/format.h>

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/codec.h"
#include "core/counter/counter.h"
#include "host/journal.h"
#include "sim/disk.h"
#include "sim/kernel.h"
#include "sim/network.h"
#include "sim/sim_host.h"

namespace muster::sim {
namespace {

constexpr Duration kFaultyTime = 30s;
constexpr Duration kCalmTime = 30s;
constexpr Duration kClientRetry = 300ms;
constexpr size_t kProcesses = 2;
constexpr size_t kClientsPerProcess = 2;
constexpr uint64_t kAddsPerClient = 12;

using Host = SimHost<counter::Core>;

// Sends Add after Add to its counter, each again and again until it is answered.
struct Client {
  std::string name;
  size_t counter = 0;
  uint64_t sequence = 1;  // of the Add it waits for
  uint64_t acknowledged = 0;
  int64_t amount_sum = 0;  // of the acknowledged ones
  int64_t amount = 0;      // of the current one
};

class CounterWorld {
 public:
  CounterWorld(uint64_t seed, const CounterWorldOptions& options)
      : kernel_(seed), rng_(kernel_.ForkRng(0x776f726c64)), network_(kernel_, {}) {
    for (size_t i = 0; i < kProcesses; ++i) AddProcess(i, options);
    for (size_t i = 0; i < kProcesses * kClientsPerProcess; ++i) {
      clients_.push_back({.name = fmt::format("client-{}", i), .counter = i % kProcesses});
    }
  }

  RunResult Run() {
    DrawFaults();
    for (Process& process : processes_) process.host->Start();
    for (size_t i = 0; i < clients_.size(); ++i) NextAdd(i);
    for (size_t i = 0; i < kProcesses; ++i) ScheduleCrash(i);
    ScheduleCut();
    const auto broken = [this] { return result_.failure.has_value(); };
    const MonoTime start = kernel_.now().mono;
    const MonoTime calm = start + kFaultyTime;
    kernel_.RunUntil(calm, broken);
    if (!broken()) {
      CalmDown();
      kernel_.RunUntil(calm + kCalmTime, broken);
    }
    if (!broken()) CheckAtRest();
    result_.log_hash = kernel_.log_hash();
    result_.events = kernel_.events_run();
    result_.messages = network_.sent();
    result_.messages_lost = network_.lost();
    result_.messages_doubled = network_.doubled();
    result_.simulated = kernel_.now().mono - start;
    return result_;
  }

 private:
  struct Process {
    std::string name;
    std::unique_ptr<Disk> disk;
    std::unique_ptr<host::JournalWriter> journal;
    std::unique_ptr<Host> host;
    uint64_t mirrored_promise = 0;  // highest version of its peer it ever said it holds
  };
  // Somebody who waits for an answer: a client's try, or another counter's call.
  struct Waiting {
    bool is_call = false;
    size_t who = 0;  // client or process
    uint64_t life = 0;
    contract::CallId call = 0;
    uint64_t sequence = 0;
  };

  void AddProcess(size_t i, const CounterWorldOptions& options) {
    Process& process = processes_[i];
    process.name = fmt::format("counter-{}", i);
    process.disk = std::make_unique<Disk>(kernel_, DiskFaults{}, i);
    process.host = std::make_unique<Host>(
        kernel_, *process.disk,
        Host::World{
            .make_core = [this, i](const contract::Recovered& rows) { return MakeCore(i, rows); },
            .start_call = [this, i](uint64_t life, const auto& call) { StartCall(i, life, call); },
            .emit = [this, i](uint64_t, const auto& effect) { OnAnswer(i, std::get<counter::Answer>(effect)); }});
    if (options.journal_directory.empty()) return;
    auto journal =
        host::JournalWriter::Open(options.journal_directory + "/" + process.name, std::string(counter::Core::kName));
    if (!journal) return Fail(journal.error().ToString());
    process.journal = *std::move(journal);
    process.host->SetJournal(process.journal.get());
  }

  // Each seed has a character of its own: some lose many messages, some crash often, some are slow.
  void DrawFaults() {
    network_.SetFaults({.lost_per_mille = static_cast<uint32_t>(rng_.Below(200)),
                        .doubled_per_mille = static_cast<uint32_t>(rng_.Below(200)),
                        .slow_per_mille = static_cast<uint32_t>(rng_.Below(100))});
    for (Process& process : processes_) {
      process.disk->SetFaults({.stall_per_mille = static_cast<uint32_t>(rng_.Below(100))});
    }
    mean_life_ = Duration(rng_.Between(Duration(500ms).count(), Duration(20s).count()));
  }

  void CalmDown() {
    calm_ = true;
    network_.SetFaults({});
    network_.Heal();
    for (Process& process : processes_) {
      process.disk->SetFaults({});
      if (!process.host->alive()) process.host->Start();
    }
  }

  void ScheduleCrash(size_t i) {
    const Duration life(rng_.Between(0, 2 * mean_life_.count()));
    kernel_.After(life, [this, i] {
      Host& host = *processes_[i].host;
      if (calm_) return;
      kernel_.JumpWall(Duration(rng_.Between(-Duration(1h).count(), Duration(1h).count())));
      host.Crash();
      ++result_.crashes;
      kernel_.Note("crash");
      kernel_.After(Duration(rng_.Between(0, Duration(2s).count())), [this, i] {
        if (!processes_[i].host->alive()) processes_[i].host->Start();
      });
      kernel_.After(2s, [this, i] { ScheduleCrash(i); });
    });
  }

  void ScheduleCut() {
    kernel_.After(Duration(rng_.Between(0, Duration(10s).count())), [this] {
      if (calm_) return;
      network_.Cut(ProcessId(0), ProcessId(1));
      if (rng_.Chance(1, 2)) network_.Cut(ProcessId(1), ProcessId(0));
      kernel_.After(Duration(rng_.Between(0, Duration(4s).count())), [this] {
        network_.Heal();
        ScheduleCut();
      });
    });
  }

  counter::Core MakeCore(size_t i, const contract::Recovered& rows) {
    auto core = counter::Core::Recover({.peer = processes_[1 - i].name}, rows);
    if (!core) {
      Fail(core.error().ToString());
      core = counter::Core::Recover({}, {});
    }
    const auto view = core->View();
    uint64_t acknowledged = 0;
    for (const Client& client : clients_) acknowledged += client.counter == i ? client.acknowledged : 0;
    Check(view->version >= acknowledged, [&] {
      return fmt::format("{} restarted with version {}, but {} adds were acknowledged", processes_[i].name,
                         view->version, acknowledged);
    });
    Check(view->held_for_peer.version >= processes_[i].mirrored_promise, [&] {
      return fmt::format("{} restarted holding version {} of its peer, but had promised {}", processes_[i].name,
                         view->held_for_peer.version, processes_[i].mirrored_promise);
    });
    return *std::move(core);
  }

  void StartCall(size_t from, uint64_t life, const counter::Core::Call& call) {
    const auto row = processes_[from].disk->durable().find("value");
    const auto durable = row == processes_[from].disk->durable().end()
                             ? counter::MirrorValue{}
                             : codec::FromBytes<counter::MirrorValue>(row->second).value_or(counter::MirrorValue{});
    Check(call.request.version <= durable.version, [&] {
      return fmt::format("{} mirrors version {} while only {} is durable", processes_[from].name, call.request.version,
                         durable.version);
    });
    const size_t to = 1 - from;
    Send(from, to, [this, from, to, life, call] {
      Host& target = *processes_[to].host;
      const Waiting waiting{.is_call = true, .who = from, .life = life, .call = call.id};
      if (target.alive()) {
        target.Post(counter::Mirror{.request = Wait(waiting), .mirror = call.request});
      } else {
        Send(to, from, [this, from, life, id = call.id] {
          processes_[from].host->Complete(life, {.id = id, .status = Status(Code::kUnavailable, "connection refused")});
        });
      }
    });
  }

  void OnAnswer(size_t from, const counter::Answer& answer) {
    const auto it = waiting_.find(answer.request);
    MUSTER_CHECK(it != waiting_.end(), "an answer to request {}, which nobody made", answer.request);
    const Waiting waiting = it->second;
    waiting_.erase(it);
    if (!waiting.is_call) {
      network_.Send(ProcessId::Of(from), ClientProcess(waiting.who),
                    [this, waiting, answer] { OnAddAnswered(waiting, answer); });
      return;
    }
    uint64_t& promise = processes_[from].mirrored_promise;
    Check(answer.version >= promise, [&] {
      return fmt::format("{} says it holds version {} after it had promised {}", processes_[from].name, answer.version,
                         promise);
    });
    promise = answer.version;
    Send(from, waiting.who, [this, waiting, answer] {
      processes_[waiting.who].host->Complete(
          waiting.life,
          {.id = waiting.call, .status = answer.status, .reply = counter::MirrorReply{.version = answer.version}});
    });
  }

  void NextAdd(size_t i) {
    clients_[i].amount = rng_.Between(-5, 20);
    kernel_.After(Duration(rng_.Between(0, Duration(1500ms).count())), [this, i] { TryAdd(i, clients_[i].sequence); });
  }
  void TryAdd(size_t i, uint64_t sequence) {
    const Client& client = clients_[i];
    if (client.sequence != sequence || sequence > kAddsPerClient) return;
    network_.Send(ClientProcess(i), ProcessId::Of(client.counter), [this, i, sequence, amount = client.amount] {
      const Client& sender = clients_[i];
      Host& host = *processes_[sender.counter].host;
      if (!host.alive()) return;
      host.Post(counter::Add{.request = Wait({.who = i, .sequence = sequence}),
                             .client = sender.name,
                             .sequence = sequence,
                             .amount = amount});
    });
    kernel_.After(kClientRetry, [this, i, sequence] { TryAdd(i, sequence); });
  }
  void OnAddAnswered(const Waiting& waiting, const counter::Answer& answer) {
    Client& client = clients_[waiting.who];
    if (client.sequence != waiting.sequence) return;  // a second answer to the same add
    Check(answer.status.ok(), [&] { return fmt::format("{} was refused: {}", client.name, answer.status.ToString()); });
    ++client.acknowledged;
    ++client.sequence;
    client.amount_sum += client.amount;
    NextAdd(waiting.who);
  }

  // Faults are over: every add is counted once, and each counter holds the other's newest value.
  void CheckAtRest() {
    for (size_t i = 0; i < kProcesses; ++i) {
      int64_t sum = 0;
      for (const Client& client : clients_) {
        if (client.counter != i) continue;
        sum += client.amount_sum;
        Check(client.acknowledged == kAddsPerClient, [&] {
          return fmt::format("{} has {} of {} adds acknowledged at the end", client.name, client.acknowledged,
                             kAddsPerClient);
        });
      }
      const auto view = processes_[i].host->core().View();
      const auto peer = processes_[1 - i].host->core().View();
      Check(view->value == sum,
            [&] { return fmt::format("{} stands at {}, its clients added {}", processes_[i].name, view->value, sum); });
      Check(peer->held_for_peer.value == view->value && peer->held_for_peer.version == view->version, [&] {
        return fmt::format("{} holds {} (version {}) for its peer, which stands at {} (version {})",
                           processes_[1 - i].name, peer->held_for_peer.value, peer->held_for_peer.version, view->value,
                           view->version);
      });
    }
  }

  contract::RequestId Wait(const Waiting& waiting) {
    waiting_.emplace(++last_request_, waiting);
    return last_request_;
  }
  void Send(size_t from, size_t to, std::function<void()> deliver) {
    network_.Send(ProcessId::Of(from), ProcessId::Of(to), std::move(deliver));
  }
  static ProcessId ClientProcess(size_t client) { return ProcessId::Of(kProcesses + client); }

  template <class What>
  void Check(bool holds, What&& what) {
    ++result_.steps_checked;
    if (!holds) Fail(what());
  }
  void Fail(std::string what) {
    if (!result_.failure) result_.failure = std::move(what);
  }

  Kernel kernel_;
  Rng rng_;
  Network network_;
  std::array<Process, kProcesses> processes_;
  std::vector<Client> clients_;
  std::map<contract::RequestId, Waiting> waiting_;
  contract::RequestId last_request_ = 0;
  Duration mean_life_{};
  bool calm_ = false;
  RunResult result_;
};

}  // namespace

RunResult RunCounterWorld(uint64_t seed, const CounterWorldOptions& options) {
  return CounterWorld(seed, options).Run();
}

}  // namespace muster::sim
