// StarvationJudge: no cluster stays short beside machines that it could have.
//
// A cluster is short while fewer machines serve it than it wants. It may be so for as long as a bound allows without
// gaining a machine, counted from when there first was a free machine that it could have had all the time. Which
// machines are free is for the world to say: it leaves out those that its faults or the shard's holds bar. The time of
// a try that could not succeed does not count.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "base/time.h"
#include "sim/findings.h"

namespace muster::sim {

class StarvationJudge {
 public:
  StarvationJudge(Duration bound, Findings& findings) : bound_(bound), findings_(findings) {}

  struct Look {
    int64_t has = 0;
    int64_t wants = 0;
    std::string free;  // a machine that it could have; empty: there is none
  };
  // To be called in every cycle.
  void See(const std::string& cluster, const Look& look, MonoTime now) {
    const auto [found, first] = short_.try_emplace(cluster, Short{.has = look.has, .since = now});
    Short& known = found->second;
    if (look.has >= look.wants || look.has > known.has || look.free.empty()) known.since = now;
    known.has = look.has;
    findings_.Check(now - known.since <= bound_, [&] {
      return fmt::format("{} wants {} machines, has {} and gets none for {} s beside {}, which is free", cluster,
                         look.wants, look.has, (now - known.since) / 1s, look.free);
    });
  }

  // A machine that seemed good was tried for the cluster, for so long, and could not be had.
  void Excuse(const std::string& cluster, Duration tried, MonoTime now) {
    const auto found = short_.find(cluster);
    if (found != short_.end()) found->second.since = std::min(found->second.since + tried, now);
  }

 private:
  struct Short {
    int64_t has = 0;
    MonoTime since;  // when it last gained a machine, had enough, or there was nothing to have; later by what excuses
  };

  const Duration bound_;
  Findings& findings_;
  std::map<std::string, Short> short_;
};

}  // namespace muster::sim
