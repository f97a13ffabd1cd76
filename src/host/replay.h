// Replay: steps a core through its journal and demands the same effects, or says where they part.
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

// The visitor, if any, sees every step, the diverging one included. A step that did not end is shown to `unfinished`
// before it is taken: if the core killed the process, it may do so again.
template <contract::Core C>
Result<ReplayReport> Replay(const std::string& directory, const StepVisitor<C>& visitor = {},
                            const UnfinishedVisitor<C>& unfinished = {}) {
  ReplayReport report;
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ListSegments(directory));
  std::optional<C> core;
  std::vector<typename C::Effect> effects;
  for (const std::string& path : paths) {
    const auto begin = [&](const JournalSegment& segment) -> Status {
      if (segment.core_name != C::kName) {
        return {Code::kFailedPrecondition, fmt::format("{} is a journal of '{}'", path, segment.core_name)};
      }
      core = C::Load(segment.core_state);
      if (!core) return {Code::kDataLoss, fmt::format("the state at the start of {} cannot be read", path)};
      ++report.segments;
      return {};
    };
    const auto step = [&](const JournalStep& record) -> Status {
      if (report.divergence) return {};
      const auto event = codec::FromBytes<typename C::Event>(record.event);
      if (!event) return {Code::kDataLoss, fmt::format("step {} holds an event of another format", report.steps)};
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
  return report;
}

}  // namespace muster::host
