#include "runtime/follow_launches.h"

#include <thread>
#include <utility>

namespace muster::runtime {
namespace {

// What an engine answers about a container that it is about to remove.
bool MayBeRemoval(Code code) { return code == Code::kNotFound || code == Code::kUnavailable; }

}  // namespace

Status FollowLaunches(contract::ReadLogs request, Duration poll, const LaunchLogs& logs) {
  std::optional<uint64_t> last;  // that was read
  Status broken;                 // how the reading of it ended
  for (int looks = 0;; ++looks) {
    const auto newest = logs.newest();
    const bool patient = request.follow && looks * poll < logs.patience;
    if (!newest && !(patient && last && MayBeRemoval(newest.error().code()))) return newest.error();
    const std::optional<uint64_t> launch = newest ? *newest : std::nullopt;
    if (!launch && !last && !patient) return {Code::kNotFound, "the engine has no container of the workload"};
    if (launch && launch != last) {
      Status status = logs.read(request);
      if (!status.ok() && !(request.follow && MayBeRemoval(status.code()))) return status;
      broken = std::move(status);
      looks = 0;
      last = launch;
      request.tail.reset();
      request.since.reset();
    }
    if (!request.follow || logs.over()) return {};
    if (launch && !broken.ok() && !patient && looks > 0) return broken;
    std::this_thread::sleep_for(poll);
  }
}

}  // namespace muster::runtime
