#include "role/diagnostic/diagnostic.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/log.h"

namespace muster::diagnostic {
namespace {

constexpr Duration kStorePatience = 20s;

// An answer that a thread waits for.
struct Awaited {
  std::mutex mu;
  std::condition_variable_any arrived;
  std::optional<Result<counter::Answer>> answer;  // guarded by mu
};

}  // namespace

void DeclareSettings(host::Settings& settings, Options& options) {
  rpc::DeclareServerSettings(settings, options, ":7600", ":7601");
}

Metrics::Metrics(metrics::Declarations& in)
    : starts(in, "muster_diagnostic_starts", "How often this data directory was served, this time included.") {}

Diagnostic::Diagnostic(Options options)
    : server_(std::move(options), rpc::kSmallMessageBytes),
      counter_({.name = "diagnostic server",
                .state_file = server_.options().data_dir / "state.db",
                .journal = server_.options().journal,
                .clock = clock_},
               *this) {}

Diagnostic::~Diagnostic() { Stop(); }

Status Diagnostic::Start(std::stop_token stop) {
  const bool stores = !server_.options().data_dir.empty();
  if (stores) {
    MUSTER_RETURN_IF_ERROR(server_.OpenDataDir());
  } else if (!server_.options().journal.empty()) {
    return {Code::kInvalidArgument, "--journal records the core that --data-dir runs; give both"};
  }
  MUSTER_RETURN_IF_ERROR(server_.Listen());
  if (stores) MUSTER_RETURN_IF_ERROR(StartCounter(stop));
  server_.Serve();
  return {};
}

Status Diagnostic::StartCounter(const std::stop_token& stop) {
  MUSTER_RETURN_IF_ERROR(
      counter_.Open([](const contract::Recovered& rows) { return counter::Core::Recover({}, rows); }));
  const auto awaited = std::make_shared<Awaited>();
  counter_.Ask(counter::Add{.client = "starts", .sequence = counter_.View()->version + 1, .amount = 1},
               [awaited](Result<counter::Answer> answer) {
                 const std::lock_guard lock(awaited->mu);
                 awaited->answer = std::move(answer);
                 awaited->arrived.notify_all();
               });
  MUSTER_RETURN_IF_ERROR(counter_.Start());
  std::unique_lock lock(awaited->mu);
  if (!awaited->arrived.wait_for(lock, stop, kStorePatience, [&] { return awaited->answer.has_value(); })) {
    if (stop.stop_requested()) return {Code::kCancelled, "stopped before the start was stored"};
    const Status why = counter_.state_status();
    return why.ok() ? Status(Code::kUnavailable, "the disk of --data-dir does not answer") : why;
  }
  if (!*awaited->answer) return awaited->answer->error();
  const int64_t starts = (*awaited->answer)->value;
  Metrics(server_.metrics()).starts.With().Set(static_cast<double>(starts));
  server_.SetReadyCheck("state", [this] { return counter_.state_status(); });
  log::Info("start counted", {{"starts", starts}});
  return {};
}

void Diagnostic::StartCall(const counter::Core::Call& call) {
  MUSTER_CHECK(false, "a counter without a peer calls {}", call.to);
}

void Diagnostic::Emit(const counter::Core::Effect& effect) { counter_.Give(std::get<counter::Answer>(effect)); }

void Diagnostic::Stop() {
  server_.StopServing();
  server_.Stop();
  counter_.Stop();  // waits for what is being stored
  server_.CloseDataDir();
}

}  // namespace muster::diagnostic
