// Reading: lists, filters, caps, cursors.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "provider/conformance_run.h"

namespace muster::provider {
namespace {

using model::MachineState;

constexpr size_t kMostPages = 10'000;

std::set<std::string> Ids(const contract::ListReply& list) {
  std::set<std::string> ids;
  for (const contract::MachineRecord& machine : list.machines) ids.insert(machine->id);
  return ids;
}

Finding Sound(ConformanceRun& run) {
  const auto list = run.List();
  if (!list) return Broken(list.error().ToString());
  if (!list->rejected.empty()) return Broken(fmt::format("{}: {}", list->rejected[0].id, list->rejected[0].reason));
  for (const contract::MachineRecord& machine : list->machines) {
    if (const Status sound = model::CheckStructure(*machine); !sound.ok()) return Broken(sound.message());
  }
  return list->machines.empty() ? NotShown("the list is empty") : Holds();
}

Finding Unique(ConformanceRun& run) {
  const auto list = run.List();
  if (!list) return Broken(list.error().ToString());
  std::set<std::string> ids;
  for (const contract::MachineRecord& machine : list->machines) {
    if (!ids.insert(machine->id).second) return Broken(fmt::format("{} is listed twice", machine->id));
  }
  return Holds();
}

Finding Speculative(ConformanceRun& run) {
  const auto list = run.List();
  const auto filtered = run.List({.states = {MachineState::kSpeculative}});
  if (!list || !filtered) return Broken("no list");
  if (filtered->machines.empty()) return Broken("no Speculative machine is listed");
  const std::set<std::string> all = Ids(*list);
  const bool shown =
      std::ranges::all_of(filtered->machines, [&](const auto& machine) { return all.contains(machine->id); });
  return shown ? Holds() : Broken("a list of everything leaves out Speculative machines");
}

Finding States(ConformanceRun& run) {
  for (const MachineState state : {MachineState::kIdle, MachineState::kConfigured, MachineState::kFailed}) {
    const auto list = run.List({.states = {state}});
    if (!list) return Broken(list.error().ToString());
    for (const contract::MachineRecord& machine : list->machines) {
      if (machine->state == state) continue;
      return Broken(fmt::format("a list of {} holds {}, which is {}", model::StateName(state), machine->id,
                                model::StateName(machine->state)));
    }
  }
  return Holds();
}

Finding Cap(ConformanceRun& run) {
  for (const int32_t cap : {1, 2, 5}) {
    const auto list = run.List({.states = {}, .max_results = cap});
    if (!list) return Broken(list.error().ToString());
    if (list->machines.size() > static_cast<size_t>(cap)) {
      return Broken(fmt::format("max_results {} gave {} machines", cap, list->machines.size()));
    }
  }
  return Holds();
}

Finding Pages(ConformanceRun& run) {
  const auto all = run.List();
  if (!all) return Broken(all.error().ToString());
  const auto cap = static_cast<int32_t>(std::max<size_t>(2, all->machines.size() / 7));
  std::set<std::string> seen;
  auto page = run.List({.states = {}, .max_results = cap});
  for (size_t pages = 0; page && !page->machines.empty() && pages < kMostPages; ++pages) {
    seen.merge(Ids(*page));
    page = run.List({.states = {}, .max_results = cap, .since_revision = page->revision});
  }
  if (!page) return Broken(page.error().ToString());
  for (const std::string& id : Ids(*all)) {
    if (!seen.contains(id)) return Broken(fmt::format("{} is on no page of {}", id, cap));
  }
  return Holds();
}

Finding Rotation(ConformanceRun& run) {
  const auto all = run.List({.states = {MachineState::kSpeculative}});
  if (!all || all->machines.size() < 3) return NotShown("fewer than three Speculative machines");
  std::set<std::string> got;
  for (int i = 0; i < 3; ++i) {
    const auto one = run.List({.states = {MachineState::kSpeculative}, .max_results = 1});
    if (!one || one->machines.empty()) return Broken("no machine, though there are some");
    got.insert(one->machines[0]->id);
  }
  return got.size() == 3 ? Holds() : Broken("three callers who asked for one machine did not get three");
}

Finding UnknownCursor(ConformanceRun& run) {
  const auto all = run.List();
  if (!all) return Broken(all.error().ToString());
  const std::string strange[] = {"?", std::string(64, '\xff'), std::string("\0\0\0", 3),
                                 "conformance" + all->revision + "!"};
  for (const std::string& cursor : strange) {
    const auto list = run.List({.states = {}, .max_results = 0, .since_revision = cursor});
    if (!list) return Broken(fmt::format("a strange cursor is an error: {}", list.error().ToString()));
    if (Ids(*list) != Ids(*all)) {
      return Broken(
          fmt::format("a strange cursor gave {} of {} machines", list->machines.size(), all->machines.size()));
    }
  }
  return Holds();
}

Finding QuietDelta(ConformanceRun& run) {
  // Prices and operations of others move machines too: one quiet moment of several is enough.
  size_t fewest = 0;
  size_t machines = 0;
  for (int i = 0; i < 5; ++i) {
    const auto all = run.List();
    if (!all) return Broken(all.error().ToString());
    if (all->revision.empty()) return Broken("the list has no revision");
    const auto delta = run.List({.states = {}, .max_results = 0, .since_revision = all->revision});
    if (!delta) return Broken(delta.error().ToString());
    machines = all->machines.size();
    fewest = i == 0 ? delta->machines.size() : std::min(fewest, delta->machines.size());
    if (fewest == 0) return Holds();
  }
  if (fewest < machines) return NotShown("machines change all the time");
  return Broken("a list since the last revision gives every machine again");
}

}  // namespace

std::vector<ConformanceCheck> ListChecks() {
  return {
      {"records-sound",
       "Every record has an id, a state, host, cluster and last_error as its state demands, a price of 0 or more and a "
       "probability from 0 to 1.",
       Sound},
      {"list-unique", "A list holds a machine once.", Unique},
      {"list-speculative", "A list shows Speculative slots as machines.", Speculative},
      {"list-states", "A list with states holds machines of those states only.", States},
      {"list-cap", "max_results is a hard cap.", Cap},
      {"list-pages", "The revision of a capped page continues where the page ended.", Pages},
      {"list-rotation", "Capped lists without a cursor begin where the last one ended.", Rotation},
      {"list-unknown-cursor", "An unknown or damaged cursor gives the full list, never an error.", UnknownCursor},
      {"list-delta-quiet", "A list since a revision leaves out what has not changed.", QuietDelta},
  };
}

}  // namespace muster::provider
