// The verbs of `muster`, one function and one file each; AddVerbs calls them all.
#pragma once

#include "cli/cluster.h"
#include "cli/command_line.h"

namespace muster::cli {

void AddAgent(CommandLine& app);
void AddBench(CommandLine& app);
void AddDecide(CommandLine& app);
void AddVersion(CommandLine& app);
void AddSelfcheck(CommandLine& app);
void AddServe(CommandLine& app);
void AddSim(CommandLine& app);
void AddReplay(CommandLine& app);
void AddOperator(CommandLine& app);
void AddProvider(CommandLine& app);
void AddShard(CommandLine& app);
void AddScheduler(CommandLine& app);
void AddConformance(CommandLine& app);
void AddStore(CommandLine& app);
void AddFleet(CommandLine& app);
void AddExplain(CommandLine& app);
void AddUp(CommandLine& app);
void AddRollup(CommandLine& app);
void AddPlan(CommandLine& app);
void AddPlace(CommandLine& app);
void AddWhatIf(CommandLine& app, const ClusterAccess& access);
void AddCompletion(CommandLine& app);
void AddConfig(CommandLine& app);

// Prints what may stand at the end of these words.
void RunCompletion(const CommandTree& tree, const std::vector<std::string>& words, const ClusterAccess& access);

inline void AddVerbs(CommandLine& app) {
  AddClusterVerbs(app, RealCluster());
  AddUp(app);
  AddPlan(app);
  AddPlace(app);
  AddWhatIf(app, RealCluster());
  AddDecide(app);
  AddServe(app);
  AddShard(app);
  AddScheduler(app);
  AddAgent(app);
  AddOperator(app);
  AddProvider(app);
  AddFleet(app);
  AddExplain(app);
  AddRollup(app);
  AddConformance(app);
  AddStore(app);
  AddSim(app);
  AddBench(app);
  AddReplay(app);
  AddSelfcheck(app);
  AddConfig(app);
  AddCompletion(app);
  AddVersion(app);
  app.OnComplete([](const CommandTree& tree, const std::vector<std::string>& words) {
    RunCompletion(tree, words, RealCluster());
  });
}

}  // namespace muster::cli
