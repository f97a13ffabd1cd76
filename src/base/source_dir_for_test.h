// SourceDir: where the sources are that the tests were built from, and BuildDir: where they were built. Only the one
// file that CMake writes for them knows the paths, so that compiled tests are shared between clones.
#pragma once

#include <string>

namespace muster {

std::string SourceDir();
std::string BuildDir();

}  // namespace muster
