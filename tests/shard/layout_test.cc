// State and journals that earlier builds wrote are read. tests/shard/data holds the data directory and the journal of a
// shard that ran two lives against a provider: two clusters, one of them paused; a short need and a gang without hope;
// rows and journal in layout 0 (core/shard/saved_state.h).
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/codec.h"
#include "base/source_dir_for_test.h"
#include "core/shard/lifecycle.h"
#include "core/shard/losses.h"
#include "core/shard/machines.h"
#include "core/shard/rails.h"
#include "core/shard/reconcile.h"
#include "core/shard/repairs.h"
#include "core/shard/saved_state.h"
#include "core/shard/shard.h"
#include "host/journal.h"
#include "host/persist.h"
#include "host/temp_dir_for_test.h"
#include "model/machine.h"

namespace muster::shard {
namespace {

std::filesystem::path Data() { return SourceDir() + "/tests/shard/data"; }

// The state at the start of each segment is read. Its steps are for the build that wrote them: this one has other
// events, and decides otherwise.
TEST(EarlierLayout, TheStatesInTheJournalAreRead) {
  const auto paths = host::ListSegments((Data() / "journal").string());
  ASSERT_TRUE(paths.has_value()) << paths.error().ToString();
  EXPECT_EQ(paths->size(), 2u);
  for (const std::string& path : *paths) {
    std::optional<Core> core;
    const auto begin = [&](const host::JournalSegment& segment) -> Status {
      core = Core::Load(segment.core_state);
      return {};
    };
    const auto end = host::ReadSegment(path, begin, [](const host::JournalStep&) { return Status(); });
    ASSERT_TRUE(end.has_value()) << path << ": " << end.error().ToString();
    ASSERT_TRUE(core.has_value()) << path;
    core->CheckInvariants();
  }
}

TEST(EarlierLayout, TheDataDirectoryIsRecovered) {
  const host::TempDir dir;
  const std::string file = dir.File("shard.db");
  std::filesystem::copy_file(Data() / "shard.db", file);
  const auto persist = host::SqlitePersist::Open(file, std::string(Core::kName));
  ASSERT_TRUE(persist.has_value()) << persist.error().ToString();
  const auto rows = (*persist)->Recover();
  ASSERT_TRUE(rows.has_value()) << rows.error().ToString();
  auto core = Core::Recover({}, *rows);
  ASSERT_TRUE(core.has_value()) << core.error().ToString();
  EXPECT_EQ(core->View()->cycle, 10);
  EXPECT_EQ(core->rails().modes().Get("green"), contract::ActuationMode::kPaused);
  std::vector<Effect> effects;
  core->Step(contract::Wake{}, {.mono = MonoTime(1h), .wall = WallTime(2'000'000'000s)}, effects);
  core->CheckInvariants();
  EXPECT_EQ(core->lifecycle().epoch(), 3) << "the third life";
  // What it saves now is the layout of this build, and is read as well.
  const auto loaded = Core::Load(core->Save());
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->Save(), core->Save());
}

// The state as layouts 2 to 5 had it: without the last fields of some parts; layouts 2 to 4 also without ceilings;
// layouts 2 and 3 without machines that were fenced and dropped, and without repairs that were allowed; layout 2
// without whose the Failed machines are.
std::string InLayout(uint64_t layout, const SavedState& s) {
  std::string bytes;
  codec::Writer writer(bytes);
  writer.Varint(0);
  writer.Varint(layout);
  const auto put = [&](const auto&... fields) { (codec::Encode(writer, fields), ...); };
  const auto put_all_but = [&]<class T>(size_t last, const T& part) {
    T::TakeFields([&](const auto&... field) {
      size_t left = sizeof...(field);
      ((left-- > last ? codec::Encode(writer, part.*(field.member)) : void()), ...);
    });
  };
  put(s.memory);
  put_all_but(1, s.config);
  put(s.cycle, s.clusters, s.calls, s.log, s.owned, s.machines.tracked, s.machines.moment, s.machines.set_aside);
  if (layout >= 4) put(s.machines.fenced);
  put(s.lifecycle, s.gets, s.sessions, s.rails.modes, s.rails.budget, s.rails.quarantine, s.rails.suppressed,
      s.rails.tried, s.rails.holds);
  if (layout == 5) put(s.rails.ceilings);
  if (layout >= 4) {
    put(s.repairs);
  } else {
    put(s.repairs.repairs, s.repairs.under_way, s.repairs.refusals, s.repairs.given_up);
    if (layout == 3) put(s.repairs.served);
  }
  put_all_but(3, s.executor);
  put(s.ledger, s.demand, s.trial);
  put_all_but(2, s.reconcile);
  put(s.hints, s.reports, s.inspection, s.orders);
  put_all_but(2, s.losses);
  return bytes;
}

TEST(EarlierLayout, LayoutsTwoToFiveAreRead) {
  SavedState state{.config = {.id = "shard-7"}};
  const model::Machine machine{.id = "m", .state = model::MachineState::kIdle};
  state.machines.tracked["m"] = {.record = contract::MachineRecord(machine)};
  state.machines.set_aside["m"] = SetAside::kFenced;
  state.repairs.repairs["f"] = {.attempts = 2};
  state.repairs.given_up.insert("f");
  state.repairs.served["f"] = "a";
  state.losses.failing.insert("a");
  state.machines.fenced.insert("m");
  state.memory.machines["m"].pledge = engine::NeedKey{.cluster = "a"};
  state.demand.clusters["a"] = {.accepted = true,
                                .gate_open = true,
                                .rows = {{.profile = model::Profile({.priority = 7})}},
                                .came = {1},
                                .digests = {1}};
  state.rails.ceilings.coming.emplace("m", ClusterCeilings::Coming{.cluster = "a", .earlier = true});
  state.rails.ceilings.highest.emplace("a", 7);
  state.reconcile.forgotten.insert("x");
  for (const uint64_t layout : {2, 3, 4, 5}) {
    const std::optional<Core> loaded = Core::Load(InLayout(layout, state));
    ASSERT_TRUE(loaded.has_value()) << layout;
    EXPECT_TRUE(loaded->repairs().IsGivenUp("f"));
    EXPECT_EQ(loaded->repairs().state().served.contains("f"), layout >= 3);
    EXPECT_EQ(loaded->losses().failing(), (Losses::Names{"a"}));
    EXPECT_TRUE(loaded->reconcile().state().forgotten.contains("x"));
    EXPECT_EQ(loaded->machines().fenced(), 1u);
    EXPECT_EQ(loaded->rails().ceilings().state().coming.at("m").cluster, "a");
    EXPECT_EQ(loaded->rails().ceilings().state().highest.at("a"), 7);
    EXPECT_FALSE(Core::Load(InLayout(layout, state) + "x").has_value());
  }
}

// What these layouts hold as the last one does, and then `rest`: what they knew of clusters that lack machines, and on.
template <class... Rest>
std::string UpToLacking(uint64_t layout, const SavedState& state, const Rest&... rest) {
  std::string bytes;
  codec::Writer writer(bytes);
  writer.Varint(0);
  writer.Varint(layout);
  SavedState::TakeFields([&](const auto&... field) {
    size_t left = sizeof...(field);
    ((left-- > 2 ? codec::Encode(writer, state.*(field.member)) : void()), ...);
  });
  const Losses::State& l = state.losses;
  const auto put = [&](const auto&... fields) { (codec::Encode(writer, fields), ...); };
  put(l.failed, l.vanished, l.replaced, l.missing, l.failing, l.vanishing, l.sizes, rest...);
  return bytes;
}

// Layout 6 named the clusters that lack machines, did not say how many, and forgot no cluster.
TEST(EarlierLayout, LayoutSixIsRead) {
  SavedState state{.config = {.id = "shard-7"}};
  state.clusters.names.insert("a");
  state.losses.failing.insert("a");
  state.losses.sizes = {{"", 120}, {"a", 100}};
  const std::string bytes = UpToLacking(6, state, Losses::Names{"a"});
  const std::optional<Core> loaded = Core::Load(bytes);
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->losses().failing(), (Losses::Names{"a"}));
  EXPECT_EQ(loaded->losses().state().lacking.at("a"), 100);
  EXPECT_EQ(Core::Load(loaded->Save())->Save(), loaded->Save());
  EXPECT_FALSE(Core::Load(bytes + "x").has_value());
}

// Layout 7 said beside how many machines lack how many might be acquired in their place.
TEST(EarlierLayout, LayoutSevenIsRead) {
  SavedState state{.config = {.id = "shard-7"}};
  state.clusters.names.insert("a");
  state.losses.sizes = {{"", 120}, {"a", 100}};
  const std::map<std::string, std::pair<int64_t, int64_t>> lacking{{"a", {30, 4}}};
  const std::string bytes = UpToLacking(7, state, lacking, state.sweep);
  const std::optional<Core> loaded = Core::Load(bytes);
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->losses().state().lacking, (Losses::Counts{{"a", 30}}));
  EXPECT_EQ(Core::Load(loaded->Save())->Save(), loaded->Save());
  EXPECT_FALSE(Core::Load(bytes + "x").has_value());
}

TEST(EarlierLayout, OneOfANewerBuildIsRefused) {
  std::string bytes = Core::Recover({}, {})->Save();
  ASSERT_EQ(bytes.substr(0, 2), std::string("\0\10", 2));
  EXPECT_TRUE(Core::Load(bytes).has_value());
  bytes[1] = 9;
  EXPECT_FALSE(Core::Load(bytes).has_value());
}

}  // namespace
}  // namespace muster::shard
