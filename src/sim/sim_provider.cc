#include "sim/sim_provider.h"

#include <algorithm>

#include "base/check.h"

namespace muster::sim {

SimProvider::SimProvider(Kernel& kernel, std::unique_ptr<provider::Backend> cloud, provider::Config config)
    : kernel_(kernel),
      disk_(kernel, {}, 0x70726f76),
      config_(std::move(config)),
      cloud_(std::move(cloud)),
      host_(kernel, disk_,
            {.make_core = [this](const contract::Recovered& rows) { return MakeCore(rows); },
             .start_call = [this](uint64_t life, const auto& call) { StartCall(life, call); },
             .emit =
                 [this](uint64_t, const auto& effect) {
                   const auto& answer = std::get<provider::Answer>(effect);
                   const auto waiting = waiting_.find(answer.request);
                   MUSTER_CHECK(waiting != waiting_.end(), "an answer to nobody");
                   const Answered answered = std::move(waiting->second);
                   waiting_.erase(waiting);
                   answered(answer);
                 }}) {}

void SimProvider::Start() {
  host_.Start();
  if (!adopted_) cloud_->Adopt(host_.core().Machines(), kernel_.now());
  adopted_ = true;
  PollCloud();
}

void SimProvider::Crash() {
  host_.Crash();
  waiting_.clear();
}

void SimProvider::Ask(const contract::ProviderRequest& request, Answered answered) {
  if (!host_.alive()) return;
  waiting_.emplace(++last_request_, std::move(answered));
  host_.Post(provider::Asked{.request = last_request_, .body = request});
}

provider::Core SimProvider::MakeCore(const contract::Recovered& rows) {
  auto core = provider::Core::Recover(config_, cloud_->Slots(), rows);
  MUSTER_CHECK(core.has_value(), "{}", core.error().message());
  return *std::move(core);
}

// The cloud lives on when the provider dies; what it has to say to a dead one is lost.
void SimProvider::StartCall(uint64_t life, const provider::Core::Call& call) {
  calls_.emplace(++last_call_, std::pair{life, call.id});
  cloud_->Start(last_call_, call.request, kernel_.now());
  PollCloud();
}

void SimProvider::PollCloud() {
  const auto next = cloud_->NextPoll();
  if (!next || (polls_at_ && *polls_at_ <= *next)) return;
  polls_at_ = *next;
  kernel_.At(std::max(*next, kernel_.now().mono), [this, when = *next] {
    if (polls_at_ != when) return;
    polls_at_.reset();
    std::vector<provider::Report> reports;
    cloud_->Poll(kernel_.now(), reports);
    for (const provider::Report& report : reports) OnCloud(report);
    PollCloud();
  });
}

void SimProvider::OnCloud(const provider::Report& report) {
  if (const auto* observed = std::get_if<contract::Observation>(&report)) {
    if (!calm_) host_.Post(provider::Observed{*observed});
    return;
  }
  const auto& ended = std::get<provider::OperationEnded>(report);
  const auto [life, call] = calls_.at(ended.call);
  provider::Core::CallDone done{.id = call, .status = ended.status, .reply = {}};
  if (ended.status.ok()) done.reply = ended.done;
  host_.Complete(life, std::move(done));
}

}  // namespace muster::sim
