// Replay: steps a core through its journal and demands the same effects, or says where they part. A journal belongs to
// the build that wrote it: another may have another form of state or events, or decide otherwise.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/codec.h"
#include "base/status.h"
#include "contract/core.h"
#include "host/journal.h"

namespace muster::host {

struct ReplayReport {
  uint64_t segments = 0;
  uint64_t left_out = 0;  // segments besides, whose state another build wrote
  uint64_t steps = 0;
  uint64_t torn = 0;        // segments that end in the middle of a record
  uint64_t unfinished = 0;  // steps in which a process died, or so soon after that no effects are recorded
  std::optional<std::string> divergence;  // where the effects first differed
};

template <contract::Core C>
using StepVisitor =
    std::function<void(uint64_t step, Now, const typename C::Event&, std::span<const typename C::Effect>)>;

template <contract::Core C>
using UnfinishedVisitor = std::function<void(uint64_t step, Now, const typename C::Event&)>;

// Why a state or an event cannot be read that the journal has whole: the records have hashes, so the disk is not it.
inline Status OfAnotherBuild(const std::string& what) {
  return {Code::kFailedPrecondition,
          fmt::format("{} cannot be read: another build of muster wrote it; use that build", what)};
}

// FAILED_PRECONDITION if another build wrote every segment: those of an earlier one are left out where the journal goes
// on. The visitor, if any, sees every step, the diverging one included. A step that did not end is shown to
// `unfinished` before it is taken: if the core killed the process, it may do so again.
template <contract::Core C>
Result<ReplayReport> Replay(const std::string& directory, const StepVisitor<C>& visitor = {},
                            const UnfinishedVisitor<C>& unfinished = {}) {
  ReplayReport report;
  Status unreadable;
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ListSegments(directory));
  std::optional<C> core;
  std::vector<typename C::Effect> effects;
  for (const std::string& path : paths) {
    const auto begin = [&](const JournalSegment& segment) -> Status {
      if (segment.core_name != C::kName) {
        return {Code::kFailedPrecondition, fmt::format("{} is a journal of '{}'", path, segment.core_name)};
      }
      core = C::Load(segment.core_state);
      if (!core) unreadable = OfAnotherBuild(fmt::format("the state at the start of {}", path));
      ++(core ? report.segments : report.left_out);
      return {};
    };
    const auto step = [&](const JournalStep& record) -> Status {
      if (report.divergence || !core) return {};
      const auto event = codec::FromBytes<typename C::Event>(record.event);
      if (!event) return OfAnotherBuild(fmt::format("the event of step {} of {}", report.steps, path));
      if (!record.effects_digest) {
        ++report.unfinished;
        if (unfinished) unfinished(report.steps, record.now, *event);
      }
      effects.clear();
      core->Step(*event, record.now, effects);
      if (visitor) visitor(report.steps, record.now, *event, effects);
      if (record.effects_digest && codec::Digest(effects) != *record.effects_digest) {
        report.divergence = fmt::format("step {} of {}: other effects than recorded after {}", report.steps, path,
                                        codec::Describe(*event));
      }
      ++report.steps;
      return {};
    };
    MUSTER_ASSIGN_OR_RETURN(const SegmentEnd end, ReadSegment(path, begin, step));
    report.torn += end.torn ? 1 : 0;
    if (report.divergence) break;
  }
  if (report.segments == 0 && !unreadable.ok()) return std::unexpected(std::move(unreadable));
  return report;
}

}  // namespace muster::host
