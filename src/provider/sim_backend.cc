#include "provider/sim_backend.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/hash.h"
#include "base/probe.h"

namespace muster::provider {
namespace {

using contract::OperationKind;

constexpr uint64_t kMillion = 1'000'000;
constexpr model::Probability kCertain{1'000'000};
constexpr uint64_t kMostHours = 24 * 365;  // an interruption that is drawn later than this never comes

bool Happens(Rng& rng, model::Probability chance) {
  return rng.Chance(static_cast<uint64_t>(chance.millionths), kMillion);
}

Duration Between(Rng& rng, Duration low, Duration high) {
  return Duration(rng.Between(low.count(), std::max(low, high).count()));
}

Duration DrawDwell(Rng& rng, const Dwell& dwell) {
  const uint64_t percent = rng.Below(100);
  if (percent < 50) return Between(rng, dwell.median / 2, dwell.median);
  if (percent < 99) return Between(rng, dwell.median, dwell.p99);
  return Between(rng, dwell.p99, 2 * dwell.p99);
}

}  // namespace

SimBackend::SimBackend(Catalogue catalogue, SimOptions options)
    : catalogue_(std::move(catalogue)), options_(std::move(options)) {}

std::vector<contract::Slot> SimBackend::Slots() const {
  return MakeSlots(catalogue_, options_.name, options_.machines);
}

Rng SimBackend::Draw(std::string_view what, std::string_view name) const {
  Hasher hasher;
  hasher.Add(options_.seed);
  hasher.Add(what);
  hasher.Add(name);
  return Rng(hasher.value());
}

const MachineType& SimBackend::TypeOf(const std::string& name) const {
  const auto found = std::ranges::find(catalogue_.types, name, &MachineType::name);
  // A type that left the catalogue: its machines end their lives at the pace of the first one.
  return found == catalogue_.types.end() ? catalogue_.types.front() : *found;
}

void SimBackend::Adopt(std::span<const contract::MachineRecord> machines, Now now) {
  for (const contract::MachineRecord& record : machines) {
    const model::Machine& machine = *record;
    if (machine.host.empty() || machine.state == model::MachineState::kFailed) continue;
    AddHost(machine.id, machine.instance_type, machine.host.ref, now);
    if (machine.interruption_probability == kCertain) HasNotice(machine.id, now);
  }
  for (const MachineType& type : catalogue_.types) {
    if (type.price_moves.every == Duration::zero()) continue;
    const std::vector<std::string>& zones = type.zones.empty() ? catalogue_.zones : type.zones;
    for (const std::string& zone : zones) {
      Rng rng = Draw("first move", type.name + "/" + zone);
      const MonoTime first = now.mono + Between(rng, 0s, type.price_moves.every);
      markets_.push_back({.type = &type, .zone = zone, .price = type.price, .turn = 0, .due = first});
      due_.emplace(first, Due::kMarket, "", markets_.size() - 1);
    }
  }
}

void SimBackend::Remember(const OperationEnded& ended) { ended_.insert_or_assign(ended.machine_id, ended); }

void SimBackend::Start(contract::CallId call, const contract::Operation& operation, Now now) {
  const std::string& machine = operation.machine->id;
  if (const auto running = running_.find(machine);
      running != running_.end() && running->second.operation.id == operation.id) {
    PROBE("sim_backend.asked_again");
    running->second.call = call;
    return;
  }
  Forget(machine);
  const auto ended = ended_.find(machine);
  const bool known = ended != ended_.end() && ended->second.operation_id == operation.id;
  Rng rng = Draw("dwell", operation.id);
  Duration dwell = DrawDwell(rng, TypeOf(operation.machine->instance_type).dwell[static_cast<size_t>(operation.kind)]);
  if (operation.kind == OperationKind::kDrain) dwell = std::min(dwell, operation.grace);
  const MonoTime due = known ? now.mono : now.mono + dwell;
  running_.emplace(machine, Running{.call = call, .operation = operation, .due = due});
  due_.emplace(due, Due::kOperation, machine, 0);
}

void SimBackend::Forget(const std::string& machine_id) {
  const auto running = running_.find(machine_id);
  if (running == running_.end()) return;
  due_.erase({running->second.due, Due::kOperation, machine_id, 0});
  running_.erase(running);
}

std::optional<MonoTime> SimBackend::NextPoll() const {
  return due_.empty() ? std::nullopt : std::optional(std::get<0>(*due_.begin()));
}

void SimBackend::Poll(Now now, std::vector<Report>& out) {
  while (!due_.empty() && std::get<0>(*due_.begin()) <= now.mono) {
    const auto [when, what, machine, index] = *due_.begin();
    due_.erase(due_.begin());
    if (what == Due::kHost) {
      HostIsDue(machine, now, out);
    } else if (what == Due::kMarket) {
      MarketIsDue(index, now, out);
    } else {
      const auto running = running_.find(machine);
      MUSTER_CHECK(running != running_.end() && running->second.due == when);
      const Running ending = std::move(running->second);
      running_.erase(running);
      out.emplace_back(End(ending, now));
    }
  }
}

OperationEnded SimBackend::End(const Running& running, Now now) {
  const contract::Operation& operation = running.operation;
  const model::Machine& machine = *operation.machine;
  if (const auto known = ended_.find(machine.id); known != ended_.end() && known->second.operation_id == operation.id) {
    PROBE("sim_backend.ended_again");
    OperationEnded again = known->second;
    again.call = running.call;
    again.repeated = true;
    return again;
  }
  OperationEnded ended{.call = running.call,
                       .operation_id = operation.id,
                       .machine_id = machine.id,
                       .kind = operation.kind,
                       .status = {},
                       .done = {}};
  const MachineType& type = TypeOf(machine.instance_type);
  Rng rng = Draw("end", operation.id);
  if (operation.kind == OperationKind::kCreate) {
    const auto window = now.wall.time_since_epoch() / type.stock_out.lasts;
    Rng stock = Draw("stock", fmt::format("{}/{}/{}", type.name, machine.zone, window));
    if (Happens(stock, type.stock_out.chance)) {
      ended.status = Status(Code::kResourceExhausted, fmt::format("no {} left in {}", type.name, machine.zone));
    }
  }
  if (ended.status.ok() && Happens(rng, type.dwell[static_cast<size_t>(operation.kind)].fails)) {
    ended.status = Status(Code::kInternal,
                          fmt::format("{} of a {} went wrong", contract::OperationName(operation.kind), type.name));
  }
  if (ended.status.ok() && operation.kind == OperationKind::kCreate) {
    ended.done.host = {.provider = options_.name, .ref = "host-" + operation.id};
    AddHost(machine.id, machine.instance_type, ended.done.host.ref, now);
  }
  if (operation.kind == OperationKind::kDelete) DropHost(machine.id);
  ended_.insert_or_assign(machine.id, ended);
  return ended;
}

void SimBackend::AddHost(const std::string& machine_id, const std::string& type, const std::string& ref, Now now) {
  const model::Probability hourly = TypeOf(type).interruption;
  if (hourly.millionths == 0) return;
  Rng rng = Draw("life", ref);
  uint64_t hours = 0;
  while (!Happens(rng, hourly)) {
    if (++hours == kMostHours) return;
  }
  const Duration life = std::chrono::hours(hours) + Between(rng, 0s, 1h);
  DropHost(machine_id);
  const MonoTime due = now.mono + std::max<Duration>(life - catalogue_.notice, Duration::zero());
  hosts_.emplace(machine_id, Host{.ref = ref, .due = due});
  due_.emplace(due, Due::kHost, machine_id, 0);
}

// Its notice was given before the start: the rest of it begins again, its life does not.
void SimBackend::HasNotice(const std::string& machine_id, Now now) {
  const auto host = hosts_.find(machine_id);
  if (host == hosts_.end()) return;
  due_.erase({host->second.due, Due::kHost, machine_id, 0});
  host->second.noticed = true;
  host->second.due = now.mono + catalogue_.notice;
  due_.emplace(host->second.due, Due::kHost, machine_id, 0);
}

void SimBackend::DropHost(const std::string& machine_id) {
  const auto host = hosts_.find(machine_id);
  if (host == hosts_.end()) return;
  due_.erase({host->second.due, Due::kHost, machine_id, 0});
  hosts_.erase(host);
}

void SimBackend::HostIsDue(const std::string& machine_id, Now now, std::vector<Report>& out) {
  Host& host = hosts_.at(machine_id);
  if (host.noticed) {
    out.emplace_back(contract::Observation(contract::MachineLost{
        .machine_id = machine_id, .host_ref = host.ref, .reason = "interrupted: the spot capacity was taken back"}));
    hosts_.erase(machine_id);
    return;
  }
  out.emplace_back(
      contract::Observation(contract::InterruptionNoticed{.machine_id = machine_id, .host_ref = host.ref}));
  host.noticed = true;
  host.due = now.mono + catalogue_.notice;
  due_.emplace(host.due, Due::kHost, machine_id, 0);
}

void SimBackend::MarketIsDue(size_t index, Now now, std::vector<Report>& out) {
  Market& market = markets_[index];
  const MachineType& type = *market.type;
  const PriceMoves& moves = type.price_moves;
  Rng rng = Draw("move", fmt::format("{}/{}/{}", type.name, market.zone, ++market.turn));
  const int64_t step = rng.Between(-moves.by.millionths, moves.by.millionths);
  // Fits: the catalogue has no price above 10^11 micro-dollars, moved no further than tenfold.
  const int64_t moved = market.price.micros * (static_cast<int64_t>(kMillion) + step) / static_cast<int64_t>(kMillion);
  const int64_t least = type.price.micros * moves.least_percent / 100;
  const int64_t most = type.price.micros * moves.most_percent / 100;
  market.price.micros = std::clamp(moved, least, most);
  out.emplace_back(contract::Observation(contract::MarketMoved{.instance_type = type.name,
                                                               .zone = market.zone,
                                                               .capacity_type = type.capacity_type,
                                                               .price_per_hour = market.price,
                                                               .interruption_probability = type.interruption}));
  market.due = now.mono + moves.every;
  due_.emplace(market.due, Due::kMarket, "", index);
}

}  // namespace muster::provider
