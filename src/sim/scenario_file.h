// Scenario files: a fleet, clusters, and what happens to them over time, as one readable file with the story that must
// come of it. docs/development.md tells the format; machines and needs are written as in cases (docs/cases.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "core/shard/shard.h"
#include "engine/case_file.h"
#include "model/machine.h"
#include "sim/scripted_cloud.h"

namespace muster::sim {

struct ScenarioStep {
  Duration at{};
  std::vector<engine::CaseCluster> clusters;  // who connects or leaves, and what it wants
  std::vector<ScriptedFault> fails;
  std::vector<std::string> lost;  // machines whose hardware is gone
  bool restart = false;           // the shard is killed and starts again
  Duration away{};                // for so long the provider answers every call with UNAVAILABLE
};

struct ScenarioFile {
  std::string about;
  shard::Config config;
  ScriptedCloud::Dwell dwell{};
  std::vector<model::Machine> machines;
  std::vector<ScenarioStep> steps;  // in the order of time; the first is how it begins
  Duration lasts{};
  std::optional<std::string> expect;
};

// INVALID_ARGUMENT naming source, line, column and path of the first thing wrong with `text`.
Result<ScenarioFile> ReadScenario(std::string_view text, std::string_view source);

}  // namespace muster::sim
