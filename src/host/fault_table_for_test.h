// The tables of tests/faults: which test finds each planted bug, reaches each probe and dies at each crash point.
// tools/check_faults compares them with the sources.
//
// A row is `kind name test [from says]`, separated by spaces: kind is bug, probe or crash; test is Suite.Name; a bug
// that is searched for has the seed at which the search begins and, to the end of the line, words of the message that
// its judge must give.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/probe.h"
#include "base/source_dir_for_test.h"

namespace muster::faults {

struct Row {
  std::string kind;
  std::string name;
  std::string test;
  uint64_t from = 0;
  std::string says;
};

// How a failing parameterised test prints its row.
inline void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

// The rows of one kind in tests/faults/<area>.txt.
inline std::vector<Row> Rows(std::string_view area, std::string_view kind) {
  std::ifstream file(SourceDir() + "/tests/faults/" + std::string(area) + ".txt");
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Row row;
    words >> row.kind >> row.name >> row.test >> row.from >> std::ws;
    std::getline(words, row.says);
    if (row.kind == kind) rows.push_back(std::move(row));
  }
  return rows;
}

// Of them those that `test` answers for.
inline std::vector<Row> RowsOf(std::string_view test, std::string_view area, std::string_view kind) {
  std::vector<Row> rows = Rows(area, kind);
  std::erase_if(rows, [&](const Row& row) { return row.test != test; });
  return rows;
}

// Every probe of the area that `test` answers for was reached since ResetProbes().
inline void ExpectReached(std::string_view test, std::string_view area) {
  const std::vector<Row> rows = RowsOf(test, area, "probe");
  EXPECT_FALSE(rows.empty()) << area << " has no probe for " << test;
  const auto hits = ProbeHits();
  for (const Row& row : rows) {
    EXPECT_TRUE(hits.contains(row.name) && hits.at(row.name) > 0) << row.name << " was never reached";
  }
}

// The name of a parameterised test: "shard_no_fence".
inline std::string TestNameOf(const testing::TestParamInfo<Row>& test) {
  std::string name = test.param.name;
  std::ranges::replace(name, '.', '_');
  return name;
}

}  // namespace muster::faults
