// Compares a part of a page with what the program declares. The part lies between two lines of the page:
//
//   <!-- begin NAME -->
//   <!-- end NAME -->
//
// With MUSTER_ACCEPT set in the environment (`./dev test --accept`) the page is rewritten instead.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/source_dir_for_test.h"

namespace muster::host {

inline ::testing::AssertionResult PageShows(const std::string& page, const std::string& name,
                                            const std::string& expected) {
  const std::filesystem::path path = SourceDir() + "/" + std::string(page);
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string begin = "<!-- begin " + name + " -->\n";
  const size_t from = text.find(begin);
  const size_t to = text.find("<!-- end " + name + " -->\n");
  if (from == std::string::npos || to == std::string::npos || to < from) {
    return ::testing::AssertionFailure() << page << " has no part " << name << ", which should hold\n" << expected;
  }
  const size_t first = from + begin.size();
  if (text.compare(first, to - first, expected) == 0) return ::testing::AssertionSuccess();
  if (std::getenv("MUSTER_ACCEPT") != nullptr) {  // NOLINT(concurrency-mt-unsafe): nothing writes the environment
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text.replace(first, to - first, expected);
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << "part " << name << " of " << page << " should be\n"
                                       << expected << "; MUSTER_ACCEPT=1 rewrites it";
}

}  // namespace muster::host
