#include "role/diagnostic/diagnostic.h"

#include <string>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/log.h"

namespace muster::diagnostic {
namespace {

constexpr Duration kStorePatience = 20s;

}  // namespace

Diagnostic::Diagnostic(Options options)
    : options_(std::move(options)),
      ops_(options_.metrics_addr, options_.build, metrics_),
      rpc_({.address = options_.listen, .tls = options_.tls}) {
  metrics_
      .AddGauge("muster_build_info", "1, with the build in the labels.",
                {{"version", options_.build.version}, {"commit", options_.build.commit}})
      .Set(1);
  ops_.SetReadyCheck("grpc", [] { return Status(Code::kUnavailable, "not started"); });
}

Diagnostic::~Diagnostic() { Stop(); }

Status Diagnostic::Start(std::stop_token stop) {
  if (!options_.data_dir.empty()) {
    auto dir = host::DataDir::Open(options_.data_dir, "--data-dir");
    if (!dir) return dir.error();
    data_dir_ = *std::move(dir);
  } else if (!options_.journal.empty()) {
    return {Code::kInvalidArgument, "--journal records the core that --data-dir runs; give both"};
  }
  MUSTER_RETURN_IF_ERROR(ops_.Start());
  MUSTER_RETURN_IF_ERROR(rpc_.Start());
  if (data_dir_ != nullptr) MUSTER_RETURN_IF_ERROR(StartCounter(stop));
  log::Info("listening", {{"grpc", rpc_.address().ToString()}, {"http", ops_.address().ToString()}});
  rpc_.SetServing(true);
  ops_.SetReadyCheck("grpc", [] { return Status(); });
  return {};
}

Status Diagnostic::StartCounter(const std::stop_token& stop) {
  auto persist = host::SqlitePersist::Open(options_.data_dir / "state.db", std::string(counter::Core::kName));
  if (!persist) return persist.error();
  persist_ = *std::move(persist);
  const auto rows = persist_->Recover();
  if (!rows) return rows.error();
  auto core = counter::Core::Recover({}, *rows);
  if (!core) return core.error();
  if (!options_.journal.empty()) {
    auto journal = host::JournalWriter::Open(options_.journal, std::string(counter::Core::kName));
    if (!journal) return journal.error();
    journal_ = *std::move(journal);
  }
  const uint64_t starts = core->View()->version;
  host::ThreadHost<counter::Core>::Shell& shell = *this;
  counter_ = std::make_unique<host::ThreadHost<counter::Core>>(
      *std::move(core), shell,
      host::ThreadHost<counter::Core>::Options{.clock = clock_, .persist = *persist_, .journal = journal_.get()});
  counter_->Post(counter::Add{.client = "starts", .sequence = starts + 1, .amount = 1});
  MUSTER_RETURN_IF_ERROR(counter_->Start());
  std::unique_lock lock(mu_);
  if (!counted_.wait_for(lock, stop, kStorePatience, [this] { return answer_.has_value(); })) {
    if (stop.stop_requested()) return {Code::kCancelled, "stopped before the start was stored"};
    const Status why = counter_->persist_status();
    return why.ok() ? Status(Code::kUnavailable, "the disk of --data-dir does not answer") : why;
  }
  const counter::Answer& answer = *answer_;
  MUSTER_RETURN_IF_ERROR(answer.status);
  metrics_.AddGauge("muster_diagnostic_starts", "How often this data directory was served, this time included.", {})
      .Set(static_cast<double>(answer.value));
  ops_.SetReadyCheck("state", [this] { return counter_->persist_status(); });
  log::Info("start counted", {{"starts", answer.value}});
  return {};
}

void Diagnostic::StartCall(const counter::Core::Call& call) {
  MUSTER_CHECK(false, "a counter without a peer calls {}", call.to);
}

void Diagnostic::Emit(const counter::Core::Effect& effect) {
  {
    const std::lock_guard lock(mu_);
    answer_ = std::get<counter::Answer>(effect);
  }
  counted_.notify_all();
}

void Diagnostic::Stop() {
  ops_.SetReadyCheck("grpc", [] { return Status(Code::kUnavailable, "stopping"); });
  rpc_.Stop();
  ops_.Stop();
  counter_.reset();  // waits for what is being stored
  journal_.reset();
  persist_.reset();
  data_dir_.reset();
}

}  // namespace muster::diagnostic
