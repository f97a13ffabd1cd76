// The version of the SQLite library this program runs with, which may be newer than the one it was built with.
#pragma once

#include <string>

namespace muster::host {

std::string SqliteVersion();  // "3.40.1"

}  // namespace muster::host
