#include "base/probe.h"

#include <unistd.h>

#include <charconv>
#include <csignal>
#include <mutex>
#include <set>

#include "base/check.h"

namespace muster::faults {

struct Registry {
  std::mutex mu;
  std::vector<Site*> sites;                    // guarded by mu
  std::set<std::string, std::less<>> mutants;  // guarded by mu: the enabled ones
  std::string crash_name;                      // guarded by mu
  uint64_t crash_in = 0;                       // guarded by mu: hits still to come, the deadly one included; 0 = never

  static Registry& Get() {
    static Registry registry;
    return registry;
  }
  bool Wanted(const Site& site) const {
    switch (site.kind_) {
      case Site::Kind::kMutant: return mutants.contains(site.name_);
      case Site::Kind::kCrashPoint: return crash_in > 0 && site.name_ == crash_name;
      case Site::Kind::kProbe: return false;
    }
    return false;
  }
  void Refresh() {
    for (Site* site : sites) site->enabled_.store(Wanted(*site), std::memory_order_relaxed);
  }
  template <class Fn>
  void ForEach(Site::Kind kind, Fn&& fn) {
    for (Site* site : sites) {
      if (site->kind_ == kind) fn(site->name_, site->hits_);
    }
  }
};

Site::Site(Kind kind, std::string_view name) : kind_(kind), name_(name) {
  Registry& registry = Registry::Get();
  const std::lock_guard lock(registry.mu);
  registry.sites.push_back(this);
  enabled_.store(registry.Wanted(*this), std::memory_order_relaxed);
}

void Site::MaybeCrash() {
  Hit();
  if (!enabled()) return;
  Registry& registry = Registry::Get();
  const std::lock_guard lock(registry.mu);
  if (registry.crash_in == 0) return;
  --registry.crash_in;
  if (registry.crash_in == 0) ::kill(::getpid(), SIGKILL);
}

std::map<std::string, uint64_t> ProbeHits() {
  Registry& registry = Registry::Get();
  const std::lock_guard lock(registry.mu);
  std::map<std::string, uint64_t> hits;
  registry.ForEach(Site::Kind::kProbe, [&](std::string_view name, auto& count) { hits[std::string(name)] += count; });
  return hits;
}

void ResetProbes() {
  Registry& registry = Registry::Get();
  const std::lock_guard lock(registry.mu);
  registry.ForEach(Site::Kind::kProbe, [](std::string_view, auto& count) { count = 0; });
}

void SetMutant(std::string_view name, bool enabled) {
  Registry& registry = Registry::Get();
  const std::lock_guard lock(registry.mu);
  if (enabled) {
    registry.mutants.emplace(name);
  } else if (const auto it = registry.mutants.find(name); it != registry.mutants.end()) {
    registry.mutants.erase(it);
  }
  registry.Refresh();
}

Status EnableCrashPoint(std::string_view spec) {
  const size_t colon = spec.rfind(':');
  const std::string_view name = spec.substr(0, colon);
  uint64_t hit = 1;
  bool valid = !name.empty();
  if (colon != std::string_view::npos) {
    const std::string_view digits = spec.substr(colon + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), hit);
    valid = valid && error == std::errc() && end == digits.data() + digits.size() && hit > 0;
  }
  if (!valid) {
    return {Code::kInvalidArgument,
            fmt::format("crash point \"{}\": write name or name:3 to die at the third hit", spec)};
  }
  Registry& registry = Registry::Get();
  const std::lock_guard lock(registry.mu);
  registry.crash_name = name;
  registry.crash_in = hit;
  registry.Refresh();
  return {};
}

namespace {

std::vector<std::string> NamesOf(Site::Kind kind) {
  Registry& registry = Registry::Get();
  const std::lock_guard lock(registry.mu);
  std::set<std::string> names;
  registry.ForEach(kind, [&](std::string_view name, auto&) { names.emplace(name); });
  return {names.begin(), names.end()};
}

}  // namespace

std::vector<std::string> CrashPointsSeen() { return NamesOf(Site::Kind::kCrashPoint); }
std::vector<std::string> MutantsSeen() { return NamesOf(Site::Kind::kMutant); }

}  // namespace muster::faults
