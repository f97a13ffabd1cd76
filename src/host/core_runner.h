// CoreRunner: one core of a process, from its state file to its answers. It opens the state file and the journal, makes
// the core from the stored rows, runs the core on a ThreadHost, and keeps the requests that wait for an answer. A core
// without durable state of its own has no state file: it is made from no rows, and must persist nothing (checked).
//
//   host::CoreRunner<Core, Answer> runner({.name = "shard", .state_file = dir / "shard.db", ...}, shell);
//   MUSTER_RETURN_IF_ERROR(runner.Open([&](const contract::Recovered& rows) { return Core::Recover(config, rows); }));
//   MUSTER_RETURN_IF_ERROR(runner.Start());
//   runner.Ask(Asked{.body = request}, [](Result<Reply> reply) { ... });
//
// `A` is the core's answer, an alternative of its effects with the fields `request` and `status`. Where it has an
// optional `reply`, that is what a request gets; otherwise a request gets the answer itself. The shell's Emit hands the
// answers it sees to Give. A core that is asked nothing has none: CoreRunner<Core>, with Post alone.
//
// Invariants:
//   1. Every Ask ends in exactly one call of its callback: with the core's answer, or with UNAVAILABLE from Stop on.
//   2. An answer is given after everything the core persisted before it is durable (contract/core.h).
//
// Thread-safety: Open, Start and Stop from one thread; everything else from any thread once Open came back.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/status.h"
#include "contract/core.h"
#include "host/journal.h"
#include "host/pending_requests.h"
#include "host/persist.h"
#include "host/thread_host.h"

namespace muster::host {

// In place of the answer of a core that is asked nothing.
struct NoAnswer {};

namespace internal {

template <class A>
struct ReplyOf {
  using Type = A;
};
template <class A>
  requires requires(const A& answer) { answer.reply; }
struct ReplyOf<A> {
  using Type = typename std::remove_cvref_t<decltype(std::declval<A&>().reply)>::value_type;
};

}  // namespace internal

template <contract::Core C, class A = NoAnswer>
class CoreRunner {
 public:
  using Reply = typename internal::ReplyOf<A>::Type;
  using Done = std::function<void(Result<Reply>)>;
  using Shell = typename ThreadHost<C>::Shell;

  struct Options {
    std::string name;                  // of the role, for the refusal: "the shard is stopping; ask again"
    std::filesystem::path state_file;  // in a directory that the caller owns; empty: none
    std::filesystem::path journal;     // empty: none
    JournalOptions journal_options = {};
    const Clock& clock;
  };

  // Does nothing before Open. The shell and the clock outlive the runner.
  CoreRunner(Options options, Shell& shell) : options_(std::move(options)), shell_(shell) {}
  ~CoreRunner() { Stop(); }
  CoreRunner(const CoreRunner&) = delete;
  CoreRunner& operator=(const CoreRunner&) = delete;

  // Reads the state file, makes the core from its rows with `make`, and opens the journal. The error is that of the
  // first step that failed; DATA_LOSS is about the state alone. What is asked from here on waits for Start.
  template <class Make>
  Status Open(Make&& make) {
    if (options_.state_file.empty()) {
      persist_ = std::make_unique<NoState>();
    } else {
      auto persist = SqlitePersist::Open(options_.state_file, std::string(C::kName));
      if (!persist) return persist.error();
      persist_ = *std::move(persist);
    }
    auto rows = persist_->Recover();
    if (!rows) return rows.error();
    Result<C> core = std::forward<Make>(make)(std::as_const(*rows));
    if (!core) return core.error();
    rows->clear();
    if (!options_.journal.empty()) {
      auto journal = JournalWriter::Open(options_.journal, std::string(C::kName), options_.journal_options);
      if (!journal) return journal.error();
      journal_ = *std::move(journal);
    }
    host_ = std::make_unique<ThreadHost<C>>(
        *std::move(core), shell_,
        typename ThreadHost<C>::Options{.clock = options_.clock, .persist = *persist_, .journal = journal_.get()});
    return {};
  }
  // Runs the core. Once, after Open.
  Status Start() { return host().Start(); }
  // Idempotent. Waits for what is being stored, refuses the requests that are left, closes the state file and the
  // journal. View still shows the last state.
  void Stop() {
    if (host_ != nullptr) host_->Stop();
    pending_.Close(Stopping());
    journal_.reset();
    persist_.reset();
  }

  // Posts an event with the field `request`, which is set here; `done` gets the core's answer to it.
  template <class Event>
    requires(!std::same_as<A, NoAnswer>)
  void Ask(Event event, Done done, Turn turn = Turn::kInOrder) {
    const auto id = pending_.Add(done);
    if (!id) return done(std::unexpected(Stopping()));
    event.request = *id;
    // A host that is stopping takes nothing. If Stop has found the request first, Stop has refused it.
    if (!host().Post(std::move(event), nullptr, turn)) pending_.Finish(*id, std::unexpected(Stopping()));
  }
  // Answers the request that `answer` names; takes the reply out of it if it is mutable.
  void Give(const A& answer) {
    if (!answer.status.ok()) {
      pending_.Finish(answer.request, std::unexpected(answer.status));
    } else if constexpr (requires { answer.reply; }) {
      MUSTER_CHECK(answer.reply.has_value(), "request {} has no reply and no error", answer.request);
      pending_.Finish(answer.request, *std::move(answer.reply));
    } else {
      pending_.Finish(answer.request, answer);
    }
  }

  // As ThreadHost.
  bool Post(typename C::Event event, const std::shared_ptr<void>& until_taken = nullptr) {
    return host().Post(std::move(event), until_taken);
  }
  void Complete(typename C::CallDone done) { host().Complete(std::move(done)); }
  std::shared_ptr<const typename C::Snapshot> View() const { return host().View(); }
  // OK, or why state cannot be stored: a part of readiness.
  Status state_status() const { return host().persist_status(); }

 private:
  Status Stopping() const { return {Code::kUnavailable, fmt::format("the {} is stopping; ask again", options_.name)}; }
  ThreadHost<C>& host() const {
    MUSTER_CHECK(host_ != nullptr, "the core of the {} is not open", options_.name);
    return *host_;
  }

  const Options options_;
  Shell& shell_;
  std::unique_ptr<PersistBackend> persist_;
  std::unique_ptr<JournalWriter> journal_;
  PendingRequests<Reply> pending_;
  std::unique_ptr<ThreadHost<C>> host_;  // last: its threads use the rest
};

}  // namespace muster::host
