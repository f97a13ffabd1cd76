#include "engine/invariants.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/arithmetic.h"
#include "engine/bind_stamp.h"

namespace muster::engine {
namespace {

using model::Machine;
using model::MachineState;
using model::Operator;

class Checker {
 public:
  Checker(const World& world, const Memory& before, const Decision& decision, std::optional<MonoTime> past_hold)
      : world_(world), before_(before), decision_(decision), past_hold_(past_hold), claims_(decision.needs.size()) {
    for (const Machine& machine : world.machines) machines_[machine.id] = &machine;
    for (const MachineVerdict& verdict : decision.machines) reasons_[verdict.machine] = verdict.reason;
    for (const Action& action : decision.actions) actions_[action.machine] = &action;
    for (const Claim& claim : decision.claims) {
      claims_.at(claim.need).push_back(&claim);
      claimed_.emplace(claim.machine, claim.need);
    }
  }

  Status Check() {
    OneClaimOneAction();
    for (size_t i = 0; i < decision_.needs.size(); ++i) {
      ClaimsCanServe(i);
      SatisfiedMeansCovered(i);
      GangsShareADomain(i);
      GangsAreWholeOrKeepTheirOwn(i);
      NothingTakenFromAnEarlierNeed(i);
      NoVictimTooMany(i);
      NobodyIsDisturbedForNothing(i);
      PledgesAreKept(i);
      NothingIsTakenInsteadOfWhatIsOnHold(i);
      InfiniteCostComesLast(i);
      InsteadIsOneForOne(i);
      GangsTakeInOneDomain(i);
      NoGangIsLockedOut(i);
      GangsKeepTheirMachinesUntilComplete(i);
      PendingMeansOnItsWay(i);
    }
    for (const Action& action : decision_.actions) ActionIsAllowed(action);
    EveryConfiguredMachineIsAccountedFor();
    return status_;
  }

 private:
  template <class... Args>
  void Fail(fmt::format_string<Args...> text, Args&&... args) {
    if (status_.ok()) status_ = Status(Code::kInternal, fmt::format(text, std::forward<Args>(args)...));
  }

  const model::Need& NeedOf(size_t i) const { return decision_.needs[i].need; }
  const Machine& At(const std::string& id) const { return *machines_.at(id); }
  ClusterState StateOf(const std::string& cluster) const {
    const auto it = world_.clusters.find(cluster);
    return it == world_.clusters.end() ? ClusterState{.session = false, .gate_open = false} : it->second;
  }
  static std::vector<std::string> SameKeys(const model::Need& need) {
    std::vector<std::string> keys;
    for (const auto& requirement : need.profile.requirements()) {
      if (requirement.op == Operator::kSame) keys.push_back(requirement.key);
    }
    return keys;
  }
  static bool BindsSpread(const model::Need& need) {
    return SameKeys(need).empty() && std::ranges::any_of(need.profile.spread(), [](const model::Spread& spread) {
             return spread.when == model::WhenUnsatisfiable::kDoNotSchedule;
           });
  }
  static bool CanServe(const Machine& machine, const model::Need& need) {
    for (const auto& requirement : need.profile.requirements()) {
      if (!model::Matches(requirement, machine.Attribute(requirement.key))) return false;
    }
    if (BindsSpread(need)) {
      for (const auto& spread : need.profile.spread()) {
        const bool binds = spread.when == model::WhenUnsatisfiable::kDoNotSchedule;
        if (binds && !machine.Attribute(spread.topology_key)) return false;
      }
    }
    return machine.EffectiveAllocatable().Covers(need.min_unit);
  }
  static bool Useful(const Machine& machine, const model::Resources& shortage) {
    return std::ranges::any_of(shortage.entries(),
                               [&](const auto& entry) { return machine.EffectiveAllocatable().Get(entry.first) > 0; });
  }
  static std::string Name(const model::Need& need) {
    return fmt::format("need {} {} '{}'", need.cluster, need.profile.fingerprint(), need.group);
  }
  // What the aggregate lacks once these are taken off.
  template <class Ids>
  model::Resources Less(model::Resources from, const Ids& ids) const {
    for (const std::string& id : ids) from = model::SubtractSaturating(from, At(id).EffectiveAllocatable());
    return from;
  }
  const MachineMemory& MemoryOf(const std::string& id) const {
    static const MachineMemory kNone;
    const auto it = before_.machines.find(id);
    return it == before_.machines.end() ? kNone : it->second;
  }
  model::Attribution AttributionBefore(const Machine& machine) const {
    if (MemoryOf(machine.id).attribution) return *MemoryOf(machine.id).attribution;
    return DecodeBindStamp(machine.shard_metadata).value_or(model::Attribution{});
  }
  std::vector<std::string> PledgedBefore(const NeedKey& key, MachineState state) const {
    std::vector<std::string> ids;
    for (const auto& [id, machine] : machines_) {
      if (machine->state == state && MemoryOf(id).pledge == key) ids.push_back(id);
    }
    return ids;
  }

  void OneClaimOneAction() {
    std::set<std::string> claimed;
    for (const Claim& claim : decision_.claims) {
      if (!claimed.insert(claim.machine).second) Fail("machine {} is claimed twice", claim.machine);
    }
    std::set<std::string> acted;
    for (const Action& action : decision_.actions) {
      if (!acted.insert(action.machine).second) Fail("machine {} has two actions", action.machine);
    }
  }

  void ClaimsCanServe(size_t i) {
    for (const Claim* claim : claims_[i]) {
      const Machine& machine = At(claim->machine);
      if (!CanServe(machine, NeedOf(i))) Fail("{} claims {}, which cannot serve it", Name(NeedOf(i)), machine.id);
      const bool bound = machine.state == MachineState::kConfigured || machine.state == MachineState::kConfiguring;
      switch (claim->kind) {
        case ClaimKind::kCredit:
          if (!bound || machine.cluster != NeedOf(i).cluster) Fail("credit of {}, bound elsewhere", machine.id);
          break;
        case ClaimKind::kCreating:
          if (machine.state != MachineState::kCreating || MemoryOf(machine.id).pledge != KeyOf(NeedOf(i))) {
            Fail("{} counts on {}, which is not being made for it", Name(NeedOf(i)), machine.id);
          }
          break;
        case ClaimKind::kBootstrap:
          if (machine.state != MachineState::kIdle) Fail("bootstrap of {}, which is not Idle", machine.id);
          break;
        case ClaimKind::kProvision:
          if (machine.state != MachineState::kSpeculative) Fail("provision of {}, not Speculative", machine.id);
          break;
      }
    }
  }

  std::vector<std::string> Claimed(size_t i) const {
    std::vector<std::string> ids;
    for (const Claim* claim : claims_[i]) ids.push_back(claim->machine);
    return ids;
  }

  void SatisfiedMeansCovered(size_t i) {
    const model::Resources missing = Less(NeedOf(i).aggregate, Claimed(i));
    if (missing != decision_.needs[i].residual) Fail("{}: residual is not what claims leave", Name(NeedOf(i)));
    if (decision_.needs[i].satisfied != missing.empty()) Fail("{}: satisfied and covered differ", Name(NeedOf(i)));
  }

  void GangsShareADomain(size_t i) {
    for (const std::string& key : SameKeys(NeedOf(i))) {
      std::set<std::string> values;
      for (const Claim* claim : claims_[i]) values.emplace(At(claim->machine).Attribute(key).value_or(""));
      if (values.size() > 1) Fail("{} claims machines of {} values of {}", Name(NeedOf(i)), values.size(), key);
    }
  }

  void GangsAreWholeOrKeepTheirOwn(size_t i) {
    if (SameKeys(NeedOf(i)).empty()) return;
    const NeedKey key = KeyOf(NeedOf(i));
    const auto draining = PledgedBefore(key, MachineState::kDraining);
    if (Less(decision_.needs[i].residual, draining).empty()) return;
    for (const Claim* claim : claims_[i]) {
      const model::Attribution owner = AttributionBefore(At(claim->machine));
      const bool own = owner.fingerprint == key.fingerprint && owner.group == key.group;
      if (claim->kind == ClaimKind::kCreating || (claim->kind == ClaimKind::kCredit && own)) continue;
      Fail("{} is not whole and takes {}", Name(NeedOf(i)), claim->machine);
    }
  }

  // No later need acquired a machine that would have helped an earlier, plain, short one.
  void NothingTakenFromAnEarlierNeed(size_t i) {
    const model::Need& need = NeedOf(i);
    if (decision_.needs[i].satisfied || !SameKeys(need).empty() || BindsSpread(need)) return;
    if (!StateOf(need.cluster).acquires()) return;
    for (size_t later = i + 1; later < decision_.needs.size(); ++later) {
      for (const Claim* claim : claims_[later]) {
        if (claim->kind != ClaimKind::kBootstrap && claim->kind != ClaimKind::kProvision) continue;
        const Machine& machine = At(claim->machine);
        if (!CanServe(machine, need) || !Useful(machine, decision_.needs[i].residual)) continue;
        if (IsOnHold(machine, need.cluster)) continue;
        Fail("{} is short while {} takes {}", Name(need), Name(NeedOf(later)), machine.id);
      }
    }
  }

  // Equal rows share what is taken for their key: it cannot be told apart from outside.
  bool IsShared(const NeedKey& key) const {
    return std::ranges::count_if(decision_.needs, [&](const auto& v) { return KeyOf(v.need) == key; }) > 1;
  }

  // Machines on their way to a plain need never exceed what covers it: all victims but the last leave it short.
  void NoVictimTooMany(size_t i) {
    const NeedKey key = KeyOf(NeedOf(i));
    if (!SameKeys(NeedOf(i)).empty() || decision_.needs[i].victims == 0) return;
    if (IsShared(key)) return;
    std::vector<std::string> taken;
    for (const Action& action : decision_.actions) {
      const bool takes = action.kind == ActionKind::kPreempt || action.kind == ActionKind::kReclaim;
      if (takes && action.need == key) taken.push_back(action.machine);
    }
    if (!taken.empty()) taken.pop_back();
    if (!BindsSpread(NeedOf(i))) {  // the skew may bar what drains for it
      for (const std::string& id : PledgedBefore(key, MachineState::kDraining)) {
        if (CanServe(At(id), NeedOf(i))) taken.push_back(id);
      }
    }
    if (Less(decision_.needs[i].residual, taken).empty()) Fail("{} takes more victims than it lacks", Name(NeedOf(i)));
  }

  // What was taken for a gang that is still short, and lies in its domain, does not go to a later need.
  void PledgesAreKept(size_t i) {
    for (const Claim* claim : claims_[i]) {
      const auto& pledge = MemoryOf(claim->machine).pledge;
      if (claim->kind != ClaimKind::kBootstrap || !pledge || *pledge == KeyOf(NeedOf(i))) continue;
      for (size_t earlier = 0; earlier < i; ++earlier) {
        const model::Need& gang = NeedOf(earlier);
        const bool waits = KeyOf(gang) == *pledge && !decision_.needs[earlier].satisfied && !SameKeys(gang).empty() &&
                           StateOf(gang.cluster).acquires() && CanServe(At(claim->machine), gang);
        if (!waits || DomainText(At(claim->machine), gang) != decision_.needs[earlier].domain) continue;
        Fail("{} takes {}, pledged to {}, which is short", Name(NeedOf(i)), claim->machine, Name(gang));
      }
    }
  }
  static std::string DomainText(const Machine& machine, const model::Need& gang) {
    std::string text;
    for (const std::string& key : SameKeys(gang)) {
      text += (text.empty() ? "" : "/") + std::string(machine.Attribute(key).value_or(""));
    }
    return text;
  }

  // A plain need takes no machine that somebody uses if surplus of lower priority left untaken would do instead, or,
  // one for one, surplus of any priority that is past its hold, whatever the reclaim budget says.
  void NobodyIsDisturbedForNothing(size_t i) {
    const model::Need& need = NeedOf(i);
    const NeedKey key = KeyOf(need);
    if (!SameKeys(need).empty() || BindsSpread(need) || IsShared(key)) return;
    std::set<std::string> acted;
    std::vector<std::string> arriving = PledgedBefore(key, MachineState::kDraining);
    std::erase_if(arriving, [&](const std::string& id) { return !CanServe(At(id), need); });
    std::vector<std::string> disturbed;
    for (const Action& action : decision_.actions) {
      acted.insert(action.machine);
      const bool takes = action.kind == ActionKind::kPreempt || action.kind == ActionKind::kReclaim;
      if (!takes || action.need != key) continue;
      (IsClaimed(action.machine) ? disturbed : arriving).push_back(action.machine);
    }
    if (disturbed.empty()) return;
    std::vector<std::string> unused = arriving;
    std::vector<std::string> stands_in;
    for (const auto& [id, machine] : machines_) {
      const ClusterState cluster = StateOf(machine->cluster);
      const bool surplus = machine->state == MachineState::kConfigured && machine->cluster != need.cluster &&
                           !IsClaimed(id) && ReasonOf(id) != model::Reason::kKeptForGang && cluster.takes_part() &&
                           cluster.gate_open && TakenOnlyAsSurplus(id, acted);
      if (!surplus || !CanServe(*machine, need) || IsOnHold(*machine, need.cluster)) continue;
      const auto since = MemoryOf(id).unclaimed_since;
      if (AttributionBefore(*machine).priority < need.profile.priority())
        unused.push_back(id);
      else if (past_hold_ && since && *since <= *past_hold_)
        stands_in.push_back(id);
    }
    for (const std::string& spared : disturbed) {
      std::vector<std::string> others = disturbed;
      std::erase(others, spared);
      const auto missing = [&](const std::vector<std::string>& free) {
        return Less(Less(decision_.needs[i].residual, free), others);
      };
      if (missing(unused).empty()) Fail("{} disturbs {} for nothing", Name(need), spared);
      for (const std::string& id : stands_in) {
        const bool as_good = std::ranges::all_of(decision_.needs[i].residual.entries(), [&](const auto& entry) {
          const auto adds = [&](const std::string& m) { return At(m).EffectiveAllocatable().Get(entry.first); };
          return adds(id) >= adds(spared);
        });
        if (as_good) Fail("{} disturbs {} beside {}, which nobody uses", Name(need), spared, id);
      }
    }
  }
  // Left alone, or given back by phase 3 though phase 2 could have used it.
  bool TakenOnlyAsSurplus(const std::string& id, const std::set<std::string>& acted) const {
    if (!acted.contains(id)) return true;
    return std::ranges::any_of(decision_.actions, [&](const Action& action) {
      return action.machine == id && action.kind == ActionKind::kReclaim && !action.need;
    });
  }

  void ActionIsAllowed(const Action& action) {
    const Machine& machine = At(action.machine);
    if (action.need && IsOnHold(machine, action.need->cluster)) Fail("{} is on hold, and acted on", machine.id);
    const ClusterState cluster = StateOf(action.cluster);
    const auto from = [&](MachineState state) {
      if (machine.state == state) return;
      Fail("{} of {}, which is {}", ActionKindName(action.kind), machine.id, model::StateName(machine.state));
    };
    if (cluster.paused) {
      Fail("{} of {}, which is of {} or for it: that is paused", ActionKindName(action.kind), machine.id,
           action.cluster);
    }
    switch (action.kind) {
      case ActionKind::kBootstrap:
      case ActionKind::kProvision:
        from(action.kind == ActionKind::kBootstrap ? MachineState::kIdle : MachineState::kSpeculative);
        if (!cluster.acquires()) Fail("{} is acquired for {}, which may not acquire", machine.id, action.cluster);
        break;
      case ActionKind::kPreempt: {
        from(MachineState::kConfigured);
        if (!cluster.takes_part()) Fail("{} is preempted from {}, which takes no part", machine.id, action.cluster);
        if (VictimPriority(machine) >= PriorityOf(*action.need)) Fail("{} is no victim for its taker", machine.id);
        break;
      }
      case ActionKind::kReclaim:
        from(MachineState::kConfigured);
        if (!cluster.takes_part() || !cluster.gate_open) Fail("{} is reclaimed behind a shut gate", machine.id);
        if (action.reason != model::Reason::kReclaimInstead && ++reclaims_[action.cluster] > cluster.reclaims_allowed) {
          Fail("{} loses too many machines", action.cluster);
        }
        if (IsClaimed(machine.id)) Fail("{} is claimed and reclaimed", machine.id);
        if (world_.holds.machines.contains(machine.id)) Fail("{} is on hold, and reclaimed", machine.id);
        break;
      case ActionKind::kDelete:
        from(MachineState::kIdle);
        if (machine.capacity_type != model::CapacityType::kOnDemand &&
            machine.capacity_type != model::CapacityType::kSpot) {
          Fail("{} is owned hardware and released", machine.id);
        }
        if (IsClaimed(machine.id)) Fail("{} is claimed and released", machine.id);
        break;
    }
  }

  // The cluster may not acquire it for now.
  bool IsOnHold(const Machine& machine, const std::string& cluster) const {
    return IsOutOfStock(machine) || world_.holds.machines.contains(machine.id) ||
           world_.holds.pairs.contains({machine.id, cluster});
  }
  bool IsOutOfStock(const Machine& machine) const {
    return machine.state == MachineState::kSpeculative && world_.holds.classes.contains(StockClassOf(machine));
  }
  static bool IsFree(const Machine& machine) {
    return machine.state == MachineState::kIdle || machine.state == MachineState::kSpeculative;
  }

  // A plain need does not take machines from others for want of single ones that are on hold for a moment. What an
  // earlier need that is short may wait for is not counted.
  void NothingIsTakenInsteadOfWhatIsOnHold(size_t i) {
    const model::Need& need = NeedOf(i);
    if (decision_.needs[i].victims == 0 || !SameKeys(need).empty() || BindsSpread(need) || IsShared(KeyOf(need)))
      return;
    std::vector<std::string> coming;
    for (const auto& [id, machine] : machines_) {
      const bool single = IsFree(*machine) && IsOnHold(*machine, need.cluster) && !IsOutOfStock(*machine);
      if (!single || IsClaimed(id) || MemoryOf(id).pledge || !CanServe(*machine, need)) continue;
      bool awaited = false;
      for (size_t earlier = 0; earlier < i; ++earlier) {
        awaited = awaited || (!decision_.needs[earlier].satisfied && CanServe(*machine, NeedOf(earlier)));
      }
      if (!awaited) coming.push_back(id);
    }
    if (!coming.empty() && Less(decision_.needs[i].residual, coming).empty()) {
      Fail("{} takes machines while all it lacks is on hold for a moment", Name(need));
    }
  }

  // No need sits on a machine that may be interrupted, and whose loss it cannot bear, where another would do.
  void InfiniteCostComesLast(size_t i) {
    const model::Need& need = NeedOf(i);
    if (BindsSpread(need)) return;
    const auto infinite = [&](const Machine& m) { return EffectiveCost(m, need.profile.interruption()).pinned; };
    std::vector<std::string> others = Claimed(i);
    for (const Claim* claim : claims_[i]) {
      const bool acquired = claim->kind == ClaimKind::kBootstrap || claim->kind == ClaimKind::kProvision;
      if (!acquired || !infinite(At(claim->machine)) || MemoryOf(claim->machine).pledge) continue;
      std::erase(others, claim->machine);
      const model::Resources missing = Less(need.aggregate, others);
      others.push_back(claim->machine);
      for (const auto& [id, machine] : machines_) {
        if (!IsFree(*machine) || IsClaimed(id) || IsOnHold(*machine, need.cluster) || MemoryOf(id).pledge) continue;
        if (!CanServe(*machine, need) || infinite(*machine)) continue;
        if (!SameKeys(need).empty() && DomainText(*machine, need) != decision_.needs[i].domain) continue;
        const model::Resources with = model::SubtractSaturating(missing, At(claim->machine).EffectiveAllocatable());
        const model::Resources instead = model::SubtractSaturating(missing, machine->EffectiveAllocatable());
        if (with.Covers(instead)) Fail("{} takes {}, which it may lose, beside {}", Name(need), claim->machine, id);
      }
    }
  }

  std::vector<std::string> TakenFor(const NeedKey& key) const {
    std::vector<std::string> taken;
    for (const Action& action : decision_.actions) {
      const bool takes = action.kind == ActionKind::kPreempt || action.kind == ActionKind::kReclaim;
      if (takes && action.need == key) taken.push_back(action.machine);
    }
    return taken;
  }

  // Surplus beyond the budget is taken for a need only as far as it could preempt machines that serve somebody. A gang
  // that lacks more may preempt those too.
  void InsteadIsOneForOne(size_t i) {
    const model::Need& need = NeedOf(i);
    const NeedKey key = KeyOf(need);
    if (IsShared(key)) return;
    size_t taken = 0;
    size_t could = 0;
    for (const auto& [id, machine] : machines_) {
      const auto action = actions_.find(id);
      const bool acted = action != actions_.end() && action->second->need == key;
      if (acted && action->second->reason == model::Reason::kReclaimInstead) ++taken;
      const bool serves = machine->state == MachineState::kConfigured && machine->cluster != need.cluster &&
                          StateOf(machine->cluster).takes_part() && CanServe(*machine, need);
      const bool preempted = acted && action->second->reason == model::Reason::kPreempt && !SameKeys(need).empty();
      if (serves && (!acted || preempted) && VictimPriority(*machine) < need.profile.priority()) ++could;
    }
    if (taken == 0) return;
    for (const std::string& id : PledgedBefore(key, MachineState::kDraining)) taken += MemoryOf(id).instead ? 1 : 0;
    if (taken > could) Fail("{} takes {} unused machines instead of {}", Name(need), taken, could);
  }

  void GangsTakeInOneDomain(size_t i) {
    const NeedKey key = KeyOf(NeedOf(i));
    // Rows of one key: which of them an action is for is not to be seen.
    if (SameKeys(NeedOf(i)).empty() || IsShared(key)) return;
    for (const std::string& id : TakenFor(key)) {
      if (DomainText(At(id), NeedOf(i)) == decision_.needs[i].domain) continue;
      Fail("{} takes {}, outside its domain", Name(NeedOf(i)), id);
    }
  }

  // Everything that the gang could have once lesser needs give way there, in one domain, is not enough for it.
  void NoGangIsLockedOut(size_t i) {
    const NeedVerdict& verdict = decision_.needs[i];
    const model::Need& gang = NeedOf(i);
    const NeedKey key = KeyOf(gang);
    const bool looks = !SameKeys(gang).empty() && !verdict.satisfied && !verdict.parked && verdict.victims == 0 &&
                       StateOf(gang.cluster).acquires();
    if (!looks || !world_.holds.machines.empty() || !world_.holds.pairs.empty()) return;
    std::map<std::string, model::Resources> missing;
    std::set<std::string> with_victims;
    for (const auto& [id, machine] : machines_) {
      if (MemoryOf(id).pledge == key) return;
      if (!CanServe(*machine, gang)) continue;
      const auto claim = claimed_.find(id);
      const bool bound = machine->state == MachineState::kConfigured || machine->state == MachineState::kConfiguring;
      const bool credit = bound && machine->cluster == gang.cluster && !actions_.contains(id) &&
                          ReasonOf(id) != model::Reason::kKeptForGang &&
                          (claim == claimed_.end() || claim->second == i);
      const bool free = IsFree(*machine) && claim == claimed_.end() && !MemoryOf(id).pledge && !IsOutOfStock(*machine);
      const bool victim = machine->state == MachineState::kConfigured && machine->cluster != gang.cluster &&
                          StateOf(machine->cluster).takes_part() && !actions_.contains(id) &&
                          VictimPriority(*machine) < gang.profile.priority();
      if (!credit && !free && !victim) continue;
      const std::string domain = DomainText(*machine, gang);
      if (victim) with_victims.insert(domain);
      model::Resources& rest = missing.emplace(domain, gang.aggregate).first->second;
      rest = model::SubtractSaturating(rest, machine->EffectiveAllocatable());
    }
    for (const auto& [domain, rest] : missing) {
      if (rest.empty() && with_victims.contains(domain)) Fail("{} is locked out of {}", Name(gang), domain);
    }
  }

  // What drains for a gang in one domain does not cost it its machines in another before they are replaced.
  void GangsKeepTheirMachinesUntilComplete(size_t i) {
    const model::Need& gang = NeedOf(i);
    const NeedKey key = KeyOf(gang);
    if (SameKeys(gang).empty() || decision_.needs[i].satisfied || !StateOf(gang.cluster).acquires()) return;
    const auto draining = PledgedBefore(key, MachineState::kDraining);
    const bool comes = std::ranges::any_of(draining, [&](const std::string& id) {
      return CanServe(At(id), gang) && DomainText(At(id), gang) == decision_.needs[i].domain;
    });
    if (!comes) return;
    for (const Action& action : decision_.actions) {
      const Machine& machine = At(action.machine);
      if (action.kind != ActionKind::kReclaim || machine.cluster != gang.cluster || !CanServe(machine, gang)) continue;
      const model::Attribution owner = AttributionBefore(machine);
      if (owner.fingerprint != key.fingerprint || owner.group != key.group) continue;
      if (DomainText(machine, gang) == decision_.needs[i].domain) continue;
      Fail("{} loses {} before it is complete", Name(gang), machine.id);
    }
  }

  void PendingMeansOnItsWay(size_t i) {
    const NeedVerdict& verdict = decision_.needs[i];
    const model::Need& need = NeedOf(i);
    if (verdict.satisfied && verdict.pending) Fail("{} is satisfied and pending", Name(need));
    if (verdict.satisfied || !StateOf(need.cluster).acquires()) return;
    if (verdict.pending != (verdict.age == 0)) Fail("{} has age {}", Name(need), verdict.age);
    if (!SameKeys(need).empty() || BindsSpread(need) || IsShared(KeyOf(need))) return;
    std::vector<std::string> coming = TakenFor(KeyOf(need));
    for (const std::string& id : PledgedBefore(KeyOf(need), MachineState::kDraining)) {
      if (CanServe(At(id), need)) coming.push_back(id);
    }
    if (Less(verdict.residual, coming).empty() && !verdict.pending) Fail("{} is short of what comes", Name(need));
  }

  bool IsClaimed(const std::string& id) const { return claimed_.contains(id); }
  model::Reason ReasonOf(const std::string& id) const {
    const auto it = reasons_.find(id);
    return it == reasons_.end() ? model::Reason::kNone : it->second;
  }
  int32_t PriorityOf(const NeedKey& key) const {
    for (const NeedVerdict& verdict : decision_.needs) {
      if (KeyOf(verdict.need) == key) return verdict.need.profile.priority();
    }
    return std::numeric_limits<int32_t>::min();
  }
  int32_t VictimPriority(const Machine& machine) const {
    const auto claim = claimed_.find(machine.id);
    if (claim != claimed_.end()) return NeedOf(claim->second).profile.priority();
    return AttributionBefore(machine).priority;
  }

  void EveryConfiguredMachineIsAccountedFor() {
    for (const auto& [id, machine] : machines_) {
      if (ReasonOf(id) == model::Reason::kNone) Fail("nothing is said of machine {}", id);
    }
  }

  const World& world_;
  const Memory& before_;
  const Decision& decision_;
  const std::optional<MonoTime> past_hold_;
  std::map<std::string, const Machine*> machines_;
  std::map<std::string, model::Reason> reasons_;   // of each machine's verdict
  std::map<std::string, const Action*> actions_;   // by machine
  std::map<std::string, size_t> claimed_;          // by machine: the need
  std::vector<std::vector<const Claim*>> claims_;  // by need
  std::map<std::string, int64_t> reclaims_;
  Status status_;
};

}  // namespace

Status CheckDecision(const World& world, const Memory& before, const Decision& decision,
                     std::optional<MonoTime> past_hold) {
  return Checker(world, before, decision, past_hold).Check();
}

}  // namespace muster::engine
