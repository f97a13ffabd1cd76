// SearchApart: looks for a planted bug in a process of its own, so that a bug that kills its search is told as such and
// costs the other tests nothing.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <exception>
#include <functional>
#include <string>

#include "base/probe.h"
#include "host/fault_table_for_test.h"

namespace muster::faults {

struct Found {
  uint64_t world = 0;
  std::string what;  // "" if nothing; what it wrote to standard error if it died
};

// The first difference in the worlds from `first` on; "" if there is none. The file `progress` gets a dot for every
// world that is begun.
using SearchFn = std::function<std::string(uint64_t first, int progress)>;

// What the child does: it never returns into the test program, whatever is thrown.
[[noreturn]] inline void SearchAndExit(const Row& bug, const SearchFn& search, int end) {
  std::string text;
  try {
    const ScopedMutant on(bug.name);
    text = search(bug.from, end);
  } catch (const std::exception& thrown) {
    text = fmt::format("thrown: {}", thrown.what());
  }
  const bool said = write(end, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  _exit(said ? 0 : 1);
}

// The search with the bug switched on, from the world that its row names.
inline Found SearchApart(const Row& bug, const SearchFn& search) {
  constexpr unsigned kMostSeconds = 300;
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(kMostSeconds);
    dup2(ends[1], STDERR_FILENO);
    SearchAndExit(bug, search, ends[1]);
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

// The bug is found, by the judge that its row names.
inline void ExpectFoundApart(const Row& bug, const SearchFn& search) {
  const Found found = SearchApart(bug, search);
  EXPECT_NE(found.what, "") << bug.name << " is not found";
  EXPECT_TRUE(found.what.contains(bug.says)) << found.what << "\nnot: " << bug.says;
  fmt::print("{}: world {}, {}\n", bug.name, found.world, found.what.substr(0, found.what.find('\n')));
}

}  // namespace muster::faults
