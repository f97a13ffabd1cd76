#include "provider/durable_sim.h"

#include "base/log.h"

namespace muster::provider {
namespace {

constexpr Duration kRetry = 200ms;

}  // namespace

Result<std::unique_ptr<DurableSim>> DurableSim::Open(Catalogue catalogue, SimOptions options,
                                                     const std::filesystem::path& ledger) {
  std::unique_ptr<DurableSim> sim(new DurableSim(std::move(catalogue), std::move(options)));
  std::vector<OperationEnded> known;
  MUSTER_ASSIGN_OR_RETURN(sim->ledger_, Ledger::Open(ledger, known));
  for (const OperationEnded& ended : known) sim->sim_.Remember(ended);
  return sim;
}

void DurableSim::Poll(Now now, std::vector<Report>& out) {
  std::vector<Report> reports;
  sim_.Poll(now, reports);
  for (Report& report : reports) held_.push_back(std::move(report));
  for (; !held_.empty(); held_.pop_front()) {
    const auto* ended = std::get_if<OperationEnded>(&held_.front());
    if (ended != nullptr && !ended->repeated) {
      if (const Status stored = ledger_->Append(*ended); !stored.ok()) {
        log::Err("the cloud's ledger cannot be written, trying again", {{"error", stored.ToString()}});
        retry_at_ = now.mono + kRetry;
        return;
      }
    }
    out.push_back(std::move(held_.front()));
  }
}

}  // namespace muster::provider
