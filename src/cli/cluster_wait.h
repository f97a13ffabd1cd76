// Outage: a verb that waits for something asks again when no scheduler answers, and says so once. Schedulers restart
// and hand over while people wait; what was ordered goes on meanwhile.
//
//   const auto view = session.Ask<contract::NodeView>(...);
//   if (Status lost = outage.Judge(view); !lost.ok()) return lost;   // it is not going to be answered
//   if (view) ...                                                    // else: ask again
//
// Thread-safety: one thread.
#pragma once

#include <fmt/format.h>

#include <cstdio>

#include "base/status.h"
#include "cli/table.h"

namespace muster::cli {

class Outage {
 public:
  // `answered`: whether a scheduler is known to be there. Until it has answered once, an address may be wrong.
  explicit Outage(bool answered) : answered_(answered) {}

  // OK if it is an answer, or may be one later; otherwise its error.
  template <class T>
  Status Judge(const Result<T>& reply) {
    if (reply) {
      answered_ = true;
      noted_ = false;
      return {};
    }
    const Code code = reply.error().code();
    if (!answered_ || (code != Code::kUnavailable && code != Code::kDeadlineExceeded)) return reply.error();
    if (!noted_) {
      std::fflush(stdout);
      fmt::print(stderr, "{}; waiting goes on\n", Printable(reply.error().message()));
    }
    noted_ = true;
    return {};
  }

 private:
  bool answered_;
  bool noted_ = false;  // since the last answer
};

}  // namespace muster::cli
