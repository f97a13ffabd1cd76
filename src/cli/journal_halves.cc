#include "cli/journal_halves.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/codec.h"
#include "host/journal.h"
#include "host/replay.h"
#include "model/text_scalars.h"

namespace muster::cli {
namespace {

// A core keeps numbers of requests from its past; these are beyond any that it gave.
constexpr contract::RequestId kFirstRequest = contract::RequestId{1} << 62;
// Wakes until a shard has answered: its next cycle does.
constexpr int kMostWakes = 1000;

// The time of the segment's first step; nothing if it has none.
Result<std::optional<WallTime>> FirstStep(const std::string& path) {
  std::optional<WallTime> first;
  const auto end = host::ReadSegment(
      path, [](const host::JournalSegment&) { return Status(); },
      [&](const host::JournalStep& step) -> Status {
        first = step.now.wall;
        return {Code::kCancelled, "seen enough"};
      });
  if (!end && end.error().code() != Code::kCancelled) return std::unexpected(end.error());
  return first;
}

}  // namespace

template <class Core>
Status JournalHalves::Load(const std::string& directory, WallTime at, Past<Core>& past) {
  if (past.core) {
    return {Code::kInvalidArgument,
            fmt::format("{} is a second journal of a {}; give one of each", directory, Core::kName)};
  }
  auto paths = host::ListSegments(directory);
  if (!paths) return paths.error();
  // The last segment that begins before the moment has the state and the steps that lead to it.
  std::optional<std::string> from;
  std::optional<WallTime> begins;
  bool later = false;
  for (const std::string& path : *paths) {
    auto first = FirstStep(path);
    if (!first) return first.error();
    if (!*first) continue;
    if (!begins) begins = **first;
    later = **first > at;
    if (later) break;
    from = path;
  }
  if (!begins) return {Code::kNotFound, fmt::format("{} holds no step yet", directory)};
  if (!from) {
    return {Code::kOutOfRange, fmt::format("{} begins at {}, after --at {}: older segments are gone", directory,
                                           model::FormatWallTime(*begins), model::FormatWallTime(at))};
  }
  std::vector<typename Core::Effect> effects;
  bool ended_early = false;
  const auto begin = [&](const host::JournalSegment& segment) -> Status {
    past.core = Core::Load(segment.core_state);
    if (!past.core) return host::OfAnotherBuild(fmt::format("the state at the start of {}", *from));
    return {};
  };
  const auto step = [&](const host::JournalStep& record) -> Status {
    if (record.now.wall > at) {
      ended_early = true;
      return {Code::kCancelled, "the moment has come"};
    }
    // A step whose end was not written may have killed the process; what it did is not known.
    if (!record.effects_digest) return {};
    const auto event = codec::FromBytes<typename Core::Event>(record.event);
    if (!event) return host::OfAnotherBuild(fmt::format("an event in {}", *from));
    effects.clear();
    past.core->Step(*event, record.now, effects);
    past.now = record.now;
    if (alive_) alive_();
    return {};
  };
  const auto read = host::ReadSegment(*from, begin, step);
  if (!read && !(read.error().code() == Code::kCancelled && ended_early)) return read.error();
  if (!later && !ended_early && at - past.now.wall > 1min) {
    notes_.push_back(fmt::format("the {}'s journal ends at {}: this is what it knew then, not at {}", Core::kName,
                                 model::FormatWallTime(past.now.wall), model::FormatWallTime(at)));
  }
  return {};
}

Result<std::unique_ptr<JournalHalves>> JournalHalves::Open(const std::vector<std::string>& directories, WallTime at,
                                                           std::function<void()> alive) {
  if (directories.empty()) {
    return InvalidArgument("--at needs the journals: --journal DIR, once for the scheduler and once for the shard");
  }
  std::unique_ptr<JournalHalves> halves(new JournalHalves);
  halves->alive_ = std::move(alive);
  for (const std::string& directory : directories) {
    MUSTER_ASSIGN_OR_RETURN(const std::string name, host::JournalCoreName(directory));
    Status loaded(
        Code::kInvalidArgument,
        fmt::format("{} is a journal of '{}'; explain reads those of a scheduler and of a shard", directory, name));
    if (name == scheduler::Core::kName) loaded = halves->Load(directory, at, halves->scheduler_);
    if (name == shard::Core::kName) loaded = halves->Load(directory, at, halves->shard_);
    if (!loaded.ok()) return std::unexpected(std::move(loaded));
  }
  halves->alive_ = {};
  return halves;
}

Result<contract::ClusterReply> JournalHalves::AskCluster(contract::ClusterRequest request) {
  if (!scheduler_.core) return Error(Code::kUnavailable, "no journal of a scheduler was given; name it with --journal");
  const contract::RequestId id = kFirstRequest + ++last_request_;
  std::vector<scheduler::Effect> effects;
  scheduler_.core->Step(scheduler::Asked{.request = id, .body = std::move(request)}, scheduler_.now, effects);
  for (const scheduler::Effect& effect : effects) {
    const auto* answer = std::get_if<scheduler::Answer>(&effect);
    if (answer == nullptr || answer->request != id) continue;
    if (!answer->status.ok()) return std::unexpected(answer->status);
    return *std::exchange(answer->reply, std::nullopt);
  }
  return Error(Code::kInternal, "the scheduler of that moment did not answer");
}

Result<contract::ShardReply> JournalHalves::AskShard(contract::ShardRequest request) {
  if (!shard_.core) return Error(Code::kUnavailable, "no journal of a shard was given; name it with --journal");
  const contract::RequestId id = kFirstRequest + ++last_request_;
  std::vector<shard::Effect> effects;
  // A copy: the cycle that answers decides too, and the next question is about the same moment.
  shard::Core core = *shard::Core::Load(shard_.core->Save());
  Now now = shard_.now;
  core.Step(shard::Asked{.request = id, .body = std::move(request)}, now, effects);
  for (int wakes = 0; wakes < kMostWakes; ++wakes) {
    for (const shard::Effect& effect : effects) {
      const auto* answer = std::get_if<shard::Answer>(&effect);
      if (answer == nullptr || answer->request != id) continue;
      if (!answer->status.ok()) return std::unexpected(answer->status);
      return *std::exchange(answer->reply, std::nullopt);
    }
    effects.clear();
    const std::optional<MonoTime> wake = core.NextWake();
    if (!wake) break;
    if (*wake > now.mono) {
      now.wall += *wake - now.mono;
      now.mono = *wake;
    }
    core.Step(contract::Wake{}, now, effects);
  }
  return Error(Code::kUnavailable, "the shard of that moment had not seen its machines yet");
}

}  // namespace muster::cli
