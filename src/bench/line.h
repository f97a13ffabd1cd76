// Line: what was measured of one shape at one temperature.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/types.h"

namespace muster::bench {

// Actions by kind, and needs that stayed short.
struct Outcomes {
  int64_t bootstraps = 0;
  int64_t provisions = 0;
  int64_t preempts = 0;
  int64_t reclaims = 0;
  int64_t deletes = 0;
  int64_t unsatisfied = 0;

  void Count(engine::ActionKind kind);
};

struct Line {
  std::string shape;
  std::string temp;  // "cold", "full", "warm"; "change": the time of one changed machine
  std::string engine;
  size_t workers = 1;
  double scale = 1;
  size_t machines = 0;
  size_t needs = 0;    // as the clusters sent them
  size_t decided = 0;  // after folding
  size_t clusters = 0;
  std::vector<double> micros;        // samples, in the order taken
  std::vector<double> cpu_micros;    // the same in processor time of the deciding thread
  std::optional<double> allocs;      // a cycle, the mean; nothing where allocations are not counted
  std::optional<double> allocs_p50;  // of the middle cycle
  double hot_bytes_per_machine = 0;  // fast engine
  double rss_mb = 0;                 // resident memory since before the engine was made
  double conflict_fraction = 0;      // the largest of a cycle
  uint64_t retries = 0;              // sums over the samples
  double proposal_us_basic = 0;      // mean of a plan of each mode in the last sample, with several workers
  double proposal_us_gang = 0;
  uint64_t displacements = 0;           // the same
  Outcomes outcomes;                    // warm: sums over the samples, and the most that were short in a cycle
  double cost_per_hour = 0;             // once what was bought has come and what was released has gone
  uint64_t digest = 0;                  // cold, full: of the cycle; warm: of the cold cycle and the first 64 after it
  std::optional<double> settle_max_us;  // warm: the longest of the cycles before the samples, the cold one left out
  std::optional<double> quiet_us;       // change: a cycle without changes, the median
};

// The p-th percentile of raw samples by nearest rank, p in (0, 100]; samples are not empty (checked).
double Percentile(std::vector<double> samples, double p);

std::string ToJson(const Line& line);  // one line, with its end
std::string TableHead();
std::string TableRow(const Line& line);

}  // namespace muster::bench
