#include "host/sqlite_version.h"

#include <sqlite3.h>

namespace muster::host {

std::string SqliteVersion() { return sqlite3_libversion(); }

}  // namespace muster::host
