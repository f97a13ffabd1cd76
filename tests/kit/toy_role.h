// A complete small role, made the way docs/development.md ("A role") says: it keeps a note that survives restarts. It
// has a core with a durable row, a request and its answer, a setting, a metric and a part of readiness.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/codec.h"
#include "base/fields.h"
#include "base/metrics.h"
#include "base/status.h"
#include "contract/core.h"
#include "contract/tables.h"
#include "host/core_runner.h"
#include "host/role.h"
#include "host/settings.h"
#include "host/system_clock.h"
#include "rpc/role_server.h"

namespace muster::toy {

// --- the core

struct Config {
  uint64_t most_bytes = 100;

  MUSTER_FIELDS(Config, most_bytes)
};

// Event: replace the note.
struct Replace {
  contract::RequestId request = 0;
  std::string note;

  MUSTER_FIELDS(Replace, request, note)
};

// Effect: the note that was replaced.
struct Answer {
  contract::RequestId request = 0;
  Status status;
  std::optional<std::string> reply;

  MUSTER_FIELDS(Answer, request, status, reply)
};

struct Snapshot {
  std::string note;
};

// Of the durable rows. A row that an older build cannot read raises it.
inline constexpr uint64_t kFormat = 1;

class Core {
 public:
  static constexpr std::string_view kName = "toy";
  static constexpr contract::Single<std::string> kNote{"note"};
  using Call = contract::Call<std::monostate>;  // it calls no other role
  using CallDone = contract::CallDone<std::monostate>;
  using Event = std::variant<contract::Wake, Replace, CallDone>;
  using Effect = std::variant<contract::Persist, Call, Answer>;
  using Snapshot = toy::Snapshot;

  static Result<Core> Recover(Config config, const contract::Recovered& rows) {
    Core core({.config = config});
    contract::RowReader reader("toy", "restore it from a backup");
    reader.Format(kFormat);
    reader.On(kNote, [&](std::string note) { core.state_.note = std::move(note); });
    if (Status read = reader.Read(rows); !read.ok()) return std::unexpected(std::move(read));
    return core;
  }
  static std::optional<Core> Load(std::string_view saved) {
    auto state = codec::FromBytes<State>(saved);
    if (!state || state->layout != State{}.layout) return std::nullopt;
    return Core(*std::move(state));
  }
  std::string Save() const { return codec::ToBytes(state_); }

  void Step(const Event& event, Now, std::vector<Effect>& out) {
    const auto* replace = std::get_if<Replace>(&event);
    if (replace == nullptr) return;
    if (replace->note.size() > state_.config.most_bytes) {
      out.push_back(Answer{.request = replace->request,
                           .status = Status(Code::kOutOfRange, "the note is longer than --most-bytes")});
      return;
    }
    out.push_back(contract::Persist{{contract::kFormatRow.Put(kFormat), kNote.Put(replace->note)}});
    out.push_back(Answer{.request = replace->request, .reply = std::exchange(state_.note, replace->note)});
  }
  std::optional<MonoTime> NextWake() const { return std::nullopt; }
  std::shared_ptr<const Snapshot> View() const { return std::make_shared<const Snapshot>(Snapshot{state_.note}); }
  void CheckInvariants() const { MUSTER_CHECK(state_.note.size() <= state_.config.most_bytes); }

 private:
  struct State {
    uint64_t layout = 1;  // raised with each other form of the state, an event or an effect
    Config config;
    std::string note;

    MUSTER_FIELDS(State, layout, config, note)
  };
  explicit Core(State state) : state_(std::move(state)) {}

  State state_;
};

// --- the role

struct Options {
  rpc::RoleServerOptions server = {};
  Config config = {};
};

inline void DeclareSettings(host::Settings& settings, Options& options) {
  rpc::DeclareServerSettings(settings, options.server, ":7900", ":7901");
  settings.Require("--data-dir", "name a directory for the note")
      .Add("--most-bytes", options.config.most_bytes, "100", host::WholeNumber<uint64_t>(1, 1000),
           "Longest note that is taken");
}

struct ToyMetrics {
  explicit ToyMetrics(metrics::Declarations& in)
      : replaced(in, "muster_toy_replaced_total", "Notes replaced, by outcome.", {"outcome"}) {}
  metrics::Counters<1> replaced;
};

class ToyRole final : public host::Role, private host::ThreadHost<Core>::Shell {
 public:
  explicit ToyRole(Options options)
      : config_(options.config),
        server_(std::move(options.server)),
        metrics_(server_.metrics()),
        runner_({.name = "toy",
                 .state_file = server_.options().data_dir / "toy.db",
                 .journal = server_.options().journal,
                 .clock = clock_},
                *this) {}
  ~ToyRole() override { Stop(); }

  Status Start(std::stop_token) override {
    MUSTER_RETURN_IF_ERROR(server_.OpenDataDir());
    MUSTER_RETURN_IF_ERROR(
        runner_.Open([this](const contract::Recovered& rows) { return Core::Recover(config_, rows); }));
    MUSTER_RETURN_IF_ERROR(runner_.Start());
    MUSTER_RETURN_IF_ERROR(server_.Listen());
    server_.SetReadyCheck("state", [this] { return runner_.state_status(); });
    server_.Serve();
    return {};
  }
  void Stop() override {
    server_.StopServing();
    runner_.Stop();
    server_.Stop();
    server_.CloseDataDir();
  }

  // Gets the note that was replaced.
  void Ask(std::string note, std::function<void(Result<std::string>)> done) {
    runner_.Ask(Replace{.note = std::move(note)}, [this, done = std::move(done)](Result<std::string> result) {
      metrics_.replaced.With(result ? "ok" : "refused").Add();
      done(std::move(result));
    });
  }
  host::Address metrics_address() const { return server_.metrics_address(); }

 private:
  void StartCall(const Core::Call& call) override { MUSTER_CHECK(false, "the toy calls {}", call.to); }
  void Emit(const Core::Effect& effect) override { runner_.Give(std::get<Answer>(effect)); }

  const Config config_;
  const host::SystemClock clock_;
  rpc::RoleServer server_;
  const ToyMetrics metrics_;
  host::CoreRunner<Core, Answer> runner_;
};

}  // namespace muster::toy
