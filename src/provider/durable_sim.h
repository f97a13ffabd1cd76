// DurableSim: the simulated cloud with a memory: every operation that ended is in a ledger before anybody hears of it.
//
// Thread-safety: one thread at a time.
#pragma once

#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "provider/backend.h"
#include "provider/ledger.h"
#include "provider/sim_backend.h"

namespace muster::provider {

class DurableSim final : public Backend {
 public:
  // Opens or creates the ledger.
  static Result<std::unique_ptr<DurableSim>> Open(Catalogue catalogue, SimOptions options,
                                                  const std::filesystem::path& ledger);

  std::vector<contract::Slot> Slots() const override { return sim_.Slots(); }
  void Adopt(std::span<const contract::MachineRecord> machines, Now now) override { sim_.Adopt(machines, now); }
  void Start(contract::CallId call, const contract::Operation& operation, Now now) override {
    sim_.Start(call, operation, now);
  }
  std::optional<MonoTime> NextPoll() const override { return held_.empty() ? sim_.NextPoll() : retry_at_; }
  // While the ledger cannot be written, what happened is held back and the log says why.
  void Poll(Now now, std::vector<Report>& out) override;

 private:
  DurableSim(Catalogue catalogue, SimOptions options) : sim_(std::move(catalogue), std::move(options)) {}

  SimBackend sim_;
  std::unique_ptr<Ledger> ledger_;
  std::deque<Report> held_;
  MonoTime retry_at_;
};

}  // namespace muster::provider
