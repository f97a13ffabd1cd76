// Placement under the meter: `muster bench place`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::bench {

struct PlaceLine {
  std::string shape;
  std::string placer;
  size_t nodes = 0;
  size_t pending = 0;
  size_t placed = 0;
  size_t samples = 0;
  double rate_per_s = 0;      // units decided a second, the index built in the same time; the middle sample
  double cpu_rate_per_s = 0;  // the same by the thread's processor time: what a busy machine does not disturb
  double best_per_s = 0;      // of the fastest sample
  double build_us = 0;        // the index alone, processor time, the middle sample
  size_t workers = 1;         // threads; placement uses the caller's
  uint64_t digest = 0;
  std::optional<double> gpu_allocated;  // gpu-trace: share of all device capacity, the mean over the seeds
  std::optional<double> descent;        // gpu-trace: the same for fragmentation gradient descent
};

struct PlaceOptions {
  std::string placer = "fast";  // or "reference"
  double seconds = 5;
  double scale = 1;
  std::string data;  // folder with the files of gpu-trace
  uint64_t first_seed = 42;
  uint64_t last_seed = 51;
};

// Names of all shapes, `-unique` ones included; gpu-trace last.
std::vector<std::string> PlaceShapes();

// Measures one shape. INVALID_ARGUMENT without --data where the shape needs it; NOT_FOUND and others from reading it.
Result<PlaceLine> RunPlaceShape(std::string_view shape, const PlaceOptions& options);

std::string ToJson(const PlaceLine& line);  // one line, with its end
std::string PlaceTableHead();
std::string PlaceTableRow(const PlaceLine& line);

}  // namespace muster::bench
