// Probes, planted bugs and crash points: how tests reach into product code without it knowing them.
//
//   PROBE("shard.late_reply");                  counts that this line ran; a campaign asserts it did
//   if (MUTANT("counter.skip_persist")) ...     a planted bug, off unless a test switches it on by name
//   CRASH_POINT("provider.after_persist");      in shells: dies by SIGKILL here when told to, as a power cut would
//
// All three compile to nothing without MUSTER_FAULTS; a release build cannot have a planted bug switched on.
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::faults {

// One place in the code. Constructed once per place, registers itself for the life of the program.
class Site {
 public:
  enum class Kind : uint8_t { kProbe, kMutant, kCrashPoint };
  Site(Kind kind, std::string_view name);
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  void Hit() { hits_.fetch_add(1, std::memory_order_relaxed); }
  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }
  // Counts the hit and dies if this is the one that EnableCrashPoint asked for.
  void MaybeCrash();

 private:
  friend struct Registry;
  const Kind kind_;
  const std::string_view name_;
  std::atomic<uint64_t> hits_ = 0;
  std::atomic<bool> enabled_ = false;
};

constexpr bool Compiled() {
#ifdef MUSTER_FAULTS
  return true;
#else
  return false;
#endif
}

// Hits of every probe reached so far in this process, by name.
std::map<std::string, uint64_t> ProbeHits();
void ResetProbes();
// Switches a planted bug on or off, also before its line is first reached.
void SetMutant(std::string_view name, bool enabled);
// "name" or "name:3" (die at the third hit from now on). Hosts take it from MUSTER_CRASH_POINT in the environment.
// INVALID_ARGUMENT, and nothing enabled, if it is neither.
Status EnableCrashPoint(std::string_view spec);
// Names of the crash points passed so far: how a campaign learns what it can hit. The same for planted bugs, switched
// on or not: one that was never passed was never tried.
std::vector<std::string> CrashPointsSeen();
std::vector<std::string> MutantsSeen();

// Switches a planted bug on for a scope.
class ScopedMutant {
 public:
  explicit ScopedMutant(std::string name) : name_(std::move(name)) { SetMutant(name_, true); }
  ~ScopedMutant() { SetMutant(name_, false); }
  ScopedMutant(const ScopedMutant&) = delete;
  ScopedMutant& operator=(const ScopedMutant&) = delete;

 private:
  const std::string name_;
};

}  // namespace muster::faults

#ifdef MUSTER_FAULTS
#define MUSTER_SITE(kind, name)                                                   \
  ([]() -> ::muster::faults::Site& {                                              \
    static ::muster::faults::Site site(::muster::faults::Site::Kind::kind, name); \
    return site;                                                                  \
  }())
#define PROBE(name) MUSTER_SITE(kProbe, name).Hit()
#define MUTANT(name) MUSTER_SITE(kMutant, name).enabled()
#define CRASH_POINT(name) MUSTER_SITE(kCrashPoint, name).MaybeCrash()
#else
#define PROBE(name) ((void)0)
#define MUTANT(name) false
#define CRASH_POINT(name) ((void)0)
#endif
