#include "sim/bad_provider.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/probe.h"

namespace muster::sim {

BadProvider::BadProvider(Kernel& kernel, uint64_t machines, Duration faulty_time)
    : kernel_(kernel), rng_(kernel.ForkRng(0x626164)), machines_(machines) {
  if (rng_.Chance(1, 3)) failing_ = rng_.Below(2) == 0 ? 300 : rng_.Below(300);
  if (rng_.Chance(1, 3)) slow_ = rng_.Below(400);
  lying_ = rng_.Below(300);
  if (!rng_.Chance(1, 3)) return;
  gone_ = AnyMachine();
  gone_at_ = kernel_.now().mono + Duration(rng_.Between(1, faulty_time.count()));
}

void BadProvider::Calm() {
  calm_ = true;
  hidden_.clear();
  hangs_until_ = {};
}

void BadProvider::Hang(Duration time) {
  PROBE("sim.provider_hangs");
  hangs_until_ = kernel_.now().mono + time;
}

void BadProvider::Hide(Duration time) { hidden_[AnyMachine()] = kernel_.now().mono + time; }

std::string BadProvider::AnyMachine() { return fmt::format("cloud-{:06}", 1 + rng_.Below(machines_)); }

BadProvider::Fate BadProvider::DrawFate() {
  if (calm_ || !rng_.Chance(failing_, 1000)) return Fate::kAnswered;
  PROBE("sim.call_fails");
  return rng_.Chance(1, 2) ? Fate::kRefused : Fate::kDoneAndRefused;
}

Duration BadProvider::DrawWait() {
  const Duration hangs = std::max(hangs_until_ - kernel_.now().mono, Duration::zero());
  if (calm_ || !rng_.Chance(slow_, 1000)) return hangs;
  PROBE("sim.call_is_slow");
  return hangs + Duration(rng_.Between(1, Duration(5s).count()));
}

bool BadProvider::Gone(const std::string& machine) const { return machine == gone_ && kernel_.now().mono >= gone_at_; }

bool BadProvider::IsHidden(const std::string& machine) const {
  const auto hidden = hidden_.find(machine);
  return Gone(machine) || (hidden != hidden_.end() && kernel_.now().mono < hidden->second);
}

void BadProvider::Tamper(size_t reader, const contract::ProviderRequest& request, shard::Core::CallDone& done) {
  if (const auto* get = std::get_if<contract::GetRequest>(&request); get != nullptr && IsHidden(get->machine_id)) {
    done.status = Status(Code::kNotFound, "it is not there");
    done.reply.reset();
  }
  if (!done.reply) return;
  auto* list = std::get_if<contract::ListReply>(&*done.reply);
  if (list == nullptr) return;
  if (!calm_ && rng_.Chance(lying_, 1000)) {
    contract::ListReply& old = old_lists_[reader];
    if (rng_.Chance(1, 3)) {
      PROBE("sim.old_list");
      std::swap(old, *list);
    } else {
      old = *list;
      AddGarbage(*list);
    }
  }
  // A page that is short is the last one: what is hidden is replaced by a record that cannot be read.
  for (contract::MachineRecord& record : list->machines) {
    if (IsHidden(record->id)) record = contract::MachineRecord();
  }
}

void BadProvider::AddGarbage(contract::ListReply& list) {
  PROBE("sim.garbage_record");
  model::Machine machine;
  if (!list.machines.empty()) machine = *list.machines[rng_.Below(list.machines.size())];
  switch (rng_.Below(5)) {
    case 0: machine.price_per_hour = {-5}; break;
    case 1: machine.interruption_probability = {2'000'000}; break;
    case 2: machine.state = static_cast<model::MachineState>(99); break;
    case 3: machine.state = model::MachineState::kSpeculative; break;  // listed twice, and differently
    default:
      // What no decoder can read, in place of the record.
      std::erase_if(list.machines, [&](const contract::MachineRecord& record) { return record->id == machine.id; });
      list.rejected.push_back({.id = machine.id, .reason = "price_per_hour: nan is not a price"});
      return;
  }
  // Either instead of the good record, or after it.
  if (rng_.Chance(1, 2)) {
    std::erase_if(list.machines, [&](const contract::MachineRecord& record) { return record->id == machine.id; });
  }
  list.machines.emplace_back(std::move(machine));
}

}  // namespace muster::sim
