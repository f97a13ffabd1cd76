// AskPage: one page of a list, as large as its answer may be. A server ends a page before it is too large for those who
// ask; one that does not, or an earlier version, is asked for fewer objects.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/status.h"

namespace muster::contract {

// `ask` answers a request with a Result. RESOURCE_EXHAUSTED leaves an eighth of the limit, until a single object is too
// large: few steps, for each may cost an answer as large as the last. A page that came doubles it for the next one, up
// to `most`, because objects that are large may be few; 0: it is not raised.
template <class Ask, class Request>
auto AskPage(const Ask& ask, Request& what, int32_t most = 0) {
  auto page = ask(what);
  while (!page && page.error().code() == Code::kResourceExhausted && what.page.limit > 1) {
    what.page.limit = std::max(1, what.page.limit / 8);
    page = ask(what);
  }
  if (page && what.page.limit < most) what.page.limit = std::min(most, 2 * what.page.limit);
  return page;
}

}  // namespace muster::contract
