#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace muster {

void CheckFailed(std::string_view condition, std::string_view message, std::source_location where) {
  fmt::print(stderr, "{}:{}: check failed: {}{}{}\n", where.file_name(), where.line(), condition,
             message.empty() ? "" : ": ", message);
  std::fflush(stderr);
  std::abort();
}

}  // namespace muster
