// SourceDir: where the sources are that the tests were built from. Only the one file that CMake writes for it knows the
// path, so that compiled tests are shared between clones.
#pragma once

#include <string>

namespace muster {

std::string SourceDir();

}  // namespace muster
