// How the log files of a workload go to a reader: all that is kept or the last lines, then what comes.
#pragma once

#include <functional>
#include <string>

#include "contract/logs.h"

namespace muster::runtime {

// Writes into the sink and ends it. Returns when everything was written; with `follow` when the directory is gone, the
// reader is gone or `closing` says so.
void StreamLogs(const std::string& directory, const contract::ReadLogs& request, contract::LogsSink& sink,
                const std::function<bool()>& closing);

}  // namespace muster::runtime
