// Planted bugs of the fast engine: the comparison finds each of them, and says how many worlds it took. Each is
// searched for in a process of its own: one that dies of its bug has found it too.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <functional>
#include <string>

#include "base/probe.h"
#include "engine/compare.h"
#include "engine/flavours.h"

namespace muster::engine {
namespace {

constexpr int kRounds = 60;
constexpr unsigned kMostSeconds = 300;

struct Search {
  uint64_t worlds = 0;
  int cycles = 0;
  std::string difference;
  int progress = -1;  // a file that gets a dot for every world begun

  bool Look(const std::function<void(const DecideFn&)>& run) {
    EXPECT_TRUE(progress < 0 || write(progress, ".", 1) == 1);
    Comparison comparison;
    run(comparison.AsFunction());
    ++worlds;
    cycles += comparison.cycles();
    difference = comparison.difference();
    return !difference.empty();
  }
};

// Random worlds, and ever larger histories, in turn.
Search SearchRounds(int rounds, int progress = -1) {
  Search search{.progress = progress};
  for (int round = 0; round < rounds; ++round) {
    const auto seed = static_cast<uint64_t>(round);
    for (uint64_t i = 0; i < 10; ++i) {
      Scene scene = SceneFor(seed * 10 + i, kFlavours[i % kFlavours.size()]);
      if (search.Look([&](const DecideFn& decide) { decide(scene.world, scene.memory, scene.now, scene.policy); }))
        return search;
    }
    for (uint64_t i = 0; i < 30; ++i) {
      Choices choices = CrowdChoicesFor(8'500'000 + seed * 30 + i);
      Scene scene = RandomCrowd(choices, kFirstSights[i % kFirstSights.size()]).scene;
      if (search.Look([&](const DecideFn& decide) { decide(scene.world, scene.memory, scene.now, scene.policy); }))
        return search;
    }
    const bool in_history = search.Look([&](const DecideFn& decide) {
      Choices choices = ChoicesFor(7'000'000 + seed);
      const Scene scene = RandomScene(choices, kFlavours[seed % kFlavours.size()]);
      (void)RunHistory(choices, scene, 20, decide);
    });
    if (in_history) return search;
    const bool in_crowd = search.Look([&](const DecideFn& decide) {
      Choices choices = CrowdChoicesFor(8'000'000 + seed);
      const Crowd crowd = RandomCrowd(choices, kCrowds[seed % 4]);
      (void)RunCrowd(choices, crowd, 25, decide);
    });
    if (in_crowd) return search;
    if (round % 8 != 7) continue;
    const bool in_churn = search.Look([&](const DecideFn& decide) {
      Rng rng(9'000'000 + seed);
      Choices choices = Choices::Random(rng, 20'000);
      (void)RunChurn(choices, 60, decide);
    });
    if (in_churn) return search;
    const bool in_names = search.Look([&](const DecideFn& decide) {
      Choices choices = ChoicesFor(7'500'000 + seed);
      const Scene scene = RandomScene(choices, kFlavours[seed / 8 % kFlavours.size()]);
      (void)RunHistory(choices, scene, 60, UnderNewNames(decide));
    });
    if (in_names) return search;
  }
  return search;
}

// What the search says with the bug switched on, from a process of its own; "" if it finds nothing.
std::string SearchApart(const char* mutant) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(kMostSeconds);
    const faults::ScopedMutant on(mutant);
    const Search found = SearchRounds(kRounds, ends[1]);
    const std::string text =
        found.difference.empty() ? "" : fmt::format(" worlds, {} cycles; {}", found.cycles, found.difference);
    const bool said = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(said ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t got = 0; (got = read(ends[0], buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  const size_t worlds = std::min(text.find_first_not_of('.'), text.size());
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return "";  // too slow says nothing
  if (WIFSIGNALED(status)) return fmt::format("{} worlds, died of signal {}", worlds, WTERMSIG(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  return worlds == text.size() ? "" : fmt::format("{}{}", worlds, text.substr(worlds));
}

class FastMutant : public testing::TestWithParam<const char*> {};

TEST_P(FastMutant, IsFound) {
  const std::string found = SearchApart(GetParam());
  EXPECT_NE(found, "") << GetParam() << " is not found";
  fmt::print("{}: {}\n", GetParam(), found.substr(0, found.find('\n')));
}

INSTANTIATE_TEST_SUITE_P(
    FastEngine, FastMutant,
    testing::Values("fast.batch_too_large", "fast.clocks_forgotten", "fast.cluster_order", "fast.counted_short",
                    "fast.dead_values", "fast.dirty_missed", "fast.double_claim", "fast.drain_unlearnt",
                    "fast.drains_unseen", "fast.gap_forgotten", "fast.gaps_stay", "fast.held_over", "fast.keep_order",
                    "fast.key_in_use", "fast.labels_kept", "fast.late_last", "fast.lost_uncounted", "fast.merge_order",
                    "fast.missed_pledge", "fast.moves_ignored", "fast.no_prune_together", "fast.part_unstamped",
                    "fast.patch_another", "fast.pledge_never_ends", "fast.pledge_not_renamed", "fast.pool_order",
                    "fast.reclaims_uncounted", "fast.released_twice", "fast.retry_unnoticed", "fast.stale_domains",
                    "fast.stale_fit", "fast.stale_fold", "fast.stale_heads", "fast.stale_host", "fast.stale_offers",
                    "fast.stale_pool", "fast.stale_sizes", "fast.stamp_of_need", "fast.tied_all",
                    "fast.settled_blindly", "fast.settled_forever", "fast.settled_stale", "fast.settled_with_more",
                    "fast.surplus_missed"),
    [](const auto& test) {
      std::string name = test.param;
      std::ranges::replace(name, '.', '_');
      return name;
    });

model::Machine OneCpu(std::string id, std::string zone, std::string cluster) {
  model::Machine machine{.id = std::move(id), .zone = std::move(zone), .cluster = std::move(cluster)};
  machine.state = machine.cluster.empty() ? model::MachineState::kIdle : model::MachineState::kConfigured;
  machine.instance_type = "m";
  machine.resources = {{"cpu", 1000}};
  return machine;
}

// Too rare for the search: a domain comes while nothing that is free changes, and moves the others' numbers. The need
// has its share of zone b and may take more only once zone c has something to give; pools are made, and nothing taken.
std::string WhenADomainComes() {
  Comparison comparison;
  Memory memory;
  World world{.clusters = {{"mine", {}}, {"other", {.gate_open = false}}}};
  world.machines = {OneCpu("b1", "b", "mine"), OneCpu("b2", "b", ""), OneCpu("c1", "c", "other")};
  model::ProfileParts parts;
  parts.spread.push_back(
      {.topology_key = std::string(model::kZoneKey), .max_skew = 1, .when = model::WhenUnsatisfiable::kDoNotSchedule});
  world.needs.push_back({.cluster = "mine",
                         .profile = model::Profile(std::move(parts)),
                         .aggregate = {{"cpu", 3000}},
                         .min_unit = {{"cpu", 1000}}});
  comparison.Decide(world, memory, MonoTime(1h), {});
  comparison.Decide(world, memory, MonoTime(1h + 1s), {});
  world.machines.push_back(OneCpu("a1", "a", "other"));
  const Decision last = comparison.Decide(world, memory, MonoTime(1h + 2s), {});
  EXPECT_TRUE(last.actions.empty());
  return comparison.difference();
}

TEST(FastMutants, StalePoolDomainsAreFound) {
  EXPECT_EQ(WhenADomainComes(), "");
  const faults::ScopedMutant on("fast.stale_pool_domains");
  EXPECT_NE(WhenADomainComes(), "");
}

TEST(FastMutants, NothingIsFoundWithoutThem) { EXPECT_EQ(SearchRounds(kRounds).difference, ""); }

}  // namespace
}  // namespace muster::engine
