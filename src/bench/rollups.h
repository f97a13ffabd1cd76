// Every cluster's roll-up, as a shard has it once it is decoded, and how demand breathes: two per cent of pods a minute
// come and go, and gangs give way to others at the same rate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/rng.h"
#include "engine/fast/rollup.h"
#include "engine/types.h"

namespace muster::bench {

struct Rollup {
  std::string cluster;
  std::vector<model::Need> rows;
  std::vector<uint64_t> digests;  // of rows
};

class Rollups {
 public:
  explicit Rollups(const engine::World& world);

  const std::vector<Rollup>& all() const { return rollups_; }  // clusters by name
  size_t rows() const;

  // A second passes. A plain need wins or loses a few pods (of its min_unit) and stays within two per cent of where it
  // began; a gang is replaced by one of another group and the size of one of its kind. Digests follow.
  void Breathe(Rng& rng);

 private:
  struct PlainRow {
    uint32_t rollup = 0;
    uint32_t row = 0;
    int64_t began = 0;  // pods
    int64_t pods = 0;
  };
  void SwapGang(Rollup& rollup, const std::vector<uint32_t>& gangs, Rng& rng);

  std::vector<Rollup> rollups_;
  std::vector<PlainRow> plain_;
  std::vector<std::vector<uint32_t>> gangs_;  // by rollup: rows
  uint64_t swapped_ = 0;
};

}  // namespace muster::bench
