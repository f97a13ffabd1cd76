#include "role/scheduler/watch_hub.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::scheduler {
namespace {

using contract::ClusterChange;
using contract::ObjectKind;

// Keeps what it was sent, as text.
class Sink final : public rpc::WatchSink {
 public:
  bool Send(std::shared_ptr<const ClusterChange> change) override {
    if (gone) return false;
    const auto* object = std::get_if<contract::ObjectChanged>(change.get());
    got += object == nullptr ? "! " : object->name + "@" + std::to_string(object->revision) + " ";
    return true;
  }
  void Close(Status status) override { end = std::move(status); }

  bool gone = false;
  std::string got;
  std::optional<Status> end;
};

ClusterChange Changed(ObjectKind kind, const std::string& name, contract::Revision revision) {
  return contract::ObjectChanged{.kind = kind, .name = name, .revision = revision, .now = {}};
}

class Hub : public testing::Test {
 protected:
  std::shared_ptr<Sink> Watch(const contract::WatchCluster& what) {
    auto sink = std::make_shared<Sink>();
    hub_.Watch(what, sink);
    return sink;
  }
  WatchHub hub_{3};
};

TEST_F(Hub, AWatcherGetsWhatCameAfterItsRevisionAndThenEverythingOfItsKinds) {
  hub_.Begin(10);
  hub_.Publish(Changed(ObjectKind::kWorkload, "w", 11));
  hub_.Publish(Changed(ObjectKind::kNode, "n", 12));
  hub_.Publish(contract::Decision{});
  const auto all = Watch({.nodes = true, .workloads = true, .decisions = true, .from = 10});
  const auto later = Watch({.nodes = true, .workloads = true, .from = 11});
  const auto from_now = Watch({.workloads = true});
  hub_.Publish(Changed(ObjectKind::kWorkload, "v", 13));
  hub_.Publish(contract::Decision{});
  EXPECT_EQ(all->got, "w@11 n@12 v@13 ! ");  // decisions begin now
  EXPECT_EQ(later->got, "n@12 v@13 ");
  EXPECT_EQ(from_now->got, "v@13 ");
}

TEST_F(Hub, WhatIsNoLongerKeptIsOutOfRange) {
  hub_.Begin(10);
  EXPECT_EQ(Watch({.nodes = true, .from = 9})->end->code(), Code::kOutOfRange);
  for (int i = 11; i <= 15; ++i) hub_.Publish(Changed(ObjectKind::kNode, "n", i));
  EXPECT_EQ(Watch({.nodes = true, .from = 11})->end->code(), Code::kOutOfRange);
  EXPECT_EQ(Watch({.nodes = true, .from = 12})->got, "n@13 n@14 n@15 ");
}

TEST_F(Hub, WhatIsKeptIsBoundedByItsWeight) {
  constexpr size_t kMost = 1 << 20;
  WatchHub hub(10'000, kMost);
  hub.Begin(10);
  contract::WorkloadView large;
  for (int i = 0; i < 100; ++i) large.spec.env[std::to_string(i)] = std::string(1'000, 'v');  // about a tenth
  for (contract::Revision revision = 11; revision <= 60; ++revision) {
    hub.Publish(
        contract::ObjectChanged{.kind = ObjectKind::kWorkload, .name = "w", .revision = revision, .now = large});
  }
  const auto watch = [&](contract::Revision from) {
    auto sink = std::make_shared<Sink>();
    hub.Watch({.workloads = true, .from = from}, sink);
    return sink;
  };
  EXPECT_EQ(watch(49)->end->code(), Code::kOutOfRange) << "eleven of them are more than a megabyte";
  EXPECT_EQ(watch(57)->got, "w@58 w@59 w@60 ");
  // One that is too large alone is published, and not kept.
  const auto sink = watch(60);
  large.spec.image = std::string(kMost, 'x');
  hub.Publish(contract::ObjectChanged{.kind = ObjectKind::kWorkload, .name = "w", .revision = 61, .now = large});
  EXPECT_EQ(sink->got, "w@61 ");
  EXPECT_EQ(watch(60)->end->code(), Code::kOutOfRange);
  EXPECT_EQ(watch(61)->got, "");
}

TEST_F(Hub, BeforeTheStoreWasReadOnlyTheFutureCanBeWatched) {
  EXPECT_EQ(Watch({.nodes = true, .from = 1})->end->code(), Code::kUnavailable);
  const auto future = Watch({.nodes = true});
  EXPECT_FALSE(future->end);
  hub_.Begin(10);
  EXPECT_EQ(future->end->code(), Code::kOutOfRange);  // it may have missed something
}

TEST_F(Hub, AWatcherThatIsGoneIsLetGo) {
  hub_.Begin(10);
  const auto sink = Watch({.nodes = true});
  EXPECT_EQ(hub_.watchers(), 1);
  sink->gone = true;
  hub_.Publish(Changed(ObjectKind::kNode, "n", 11));
  EXPECT_EQ(hub_.watchers(), 0);
}

TEST_F(Hub, CloseEndsAllAndThoseToCome) {
  hub_.Begin(10);
  const auto sink = Watch({.nodes = true});
  const Status why(Code::kUnavailable, "stopping");
  hub_.Close(why);
  EXPECT_EQ(sink->end, why);
  EXPECT_EQ(Watch({.nodes = true})->end, why);
}

}  // namespace
}  // namespace muster::scheduler
