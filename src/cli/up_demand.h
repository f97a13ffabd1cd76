// The three example clusters of `muster up`: what each wants at a moment, as a file of needs. Demand breathes, bursts
// now and then, and sometimes asks for a gang; it is a function of the seconds since the first start, nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

std::vector<std::string_view> ExampleClusters();  // "blue", "green", "amber"

// YAML, as `muster rollup -f` reads it.
std::string ExampleNeeds(std::string_view cluster, int64_t second);

// The fleet they share: four kinds of capacity in three zones, machines that come within seconds.
std::string_view ExampleCatalogue();

}  // namespace muster::cli
