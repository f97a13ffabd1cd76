// Planted bugs of the fast placer: the comparison with the reference finds each of them, and says what its row in
// tests/faults/placement.txt demands. Each is searched for in a process of its own, from the world that its row names.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <exception>
#include <string>

#include "base/probe.h"
#include "host/fault_table_for_test.h"
#include "placement/compare.h"

namespace muster::placement {
namespace {

constexpr uint64_t kWorlds = 4'000;
constexpr unsigned kMostSeconds = 300;

// Worlds by number: of ten, eight random ones, a wide one and a history.
std::string RunWorld(uint64_t number, Reach& reach) {
  if (number % 10 == 8) return CompareWide(3'000'000 + number, reach);
  if (number % 10 == 9) return CompareHistory(2'000'000 + number, 20, reach);
  return CompareScene(number, reach);
}

// The first difference in the worlds from `first` on; "" if there is none. `progress`, if given, is a file that gets a
// dot for every world begun.
std::string Search(uint64_t first, int progress = -1) {
  Reach reach;
  for (uint64_t number = first; number < kWorlds; ++number) {
    EXPECT_TRUE(progress < 0 || write(progress, ".", 1) == 1);
    const std::string difference = RunWorld(number, reach);
    if (!difference.empty()) return difference;
  }
  return "";
}

struct Found {
  uint64_t world = 0;
  std::string what;  // "" if nothing; what it wrote to standard error if it died
};

// What the child does: it never returns into the test program, whatever is thrown.
[[noreturn]] void SearchAndExit(const faults::Row& bug, int end) {
  std::string text;
  try {
    const faults::ScopedMutant on(bug.name);
    text = Search(bug.from, end);
  } catch (const std::exception& thrown) {
    text = fmt::format("thrown: {}", thrown.what());
  }
  const bool said = write(end, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  _exit(said ? 0 : 1);
}

// The search with the bug switched on, in a process of its own.
Found SearchApart(const faults::Row& bug) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(kMostSeconds);
    dup2(ends[1], STDERR_FILENO);
    SearchAndExit(bug, ends[1]);
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
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return {};  // too slow says nothing
  return {.world = bug.from + worlds - 1, .what = text.substr(worlds)};
}

class PlacerMutant : public testing::TestWithParam<faults::Row> {};

TEST_P(PlacerMutant, IsFound) {
  const faults::Row& bug = GetParam();
  const Found found = SearchApart(bug);
  EXPECT_NE(found.what, "") << bug.name << " is not found";
  EXPECT_TRUE(found.what.contains(bug.says)) << found.what << "\nnot: " << bug.says;
  fmt::print("{}: world {}, {}\n", bug.name, found.world, found.what.substr(0, found.what.find('\n')));
}

INSTANTIATE_TEST_SUITE_P(FastPlacer, PlacerMutant,
                         testing::ValuesIn(faults::RowsOf("PlacerMutant.IsFound", "placement", "bug")),
                         faults::TestNameOf);

TEST(PlacerMutants, NothingIsFoundWithoutThem) { EXPECT_EQ(Search(kWorlds - 200), ""); }

}  // namespace
}  // namespace muster::placement
