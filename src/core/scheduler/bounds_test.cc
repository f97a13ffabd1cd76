// What one request, node or stored record may cost: counts, sizes, and pages of lists.
#include "base/weight.h"
#include "core/scheduler/lab_for_test.h"
#include "model/workload_bounds.h"

namespace muster::scheduler {
namespace {

model::WorkloadSpec DeclaredSet(const std::string& name, int32_t replicas) {
  return {.kind = model::WorkloadKind::kSet, .name = name, .replicas = replicas, .spec = Lab::Template()};
}

// As large as a template may be, about.
model::WorkloadTemplate LargeTemplate() {
  model::WorkloadTemplate spec = Lab::Template(10);
  for (int i = 0; i < 16; ++i) spec.env[fmt::format("LARGE_{}", i)] = std::string(31'000, 'v');
  EXPECT_EQ(model::SizeProblem(spec), "");
  EXPECT_GT(WeightOf(spec), model::kMostTemplateWeight * 9 / 10);
  return spec;
}

model::WorkloadTemplate WithVariables(int count) {
  model::WorkloadTemplate spec = Lab::Template();
  for (int i = 0; i < count; ++i) spec.env[fmt::format("V{}", i)] = "";
  return spec;
}

// --- counts

TEST(SchedulerBounds, CountsAreRefusedByNameBeforeAnythingIsCounted) {
  Lab lab;
  ASSERT_TRUE(lab.Try(contract::ApplySpec{.spec = DeclaredSet("web", 1)}).ok());
  ASSERT_TRUE(lab.Try(contract::ApplyQuota{{.tenant = "shop", .workloads = 10}}).ok());
  EXPECT_EQ(lab.Try(contract::ScaleSet{.set = "web", .replicas = INT32_MAX}),
            Status(Code::kInvalidArgument, "replicas: 2147483647 is not from 0 to 100000"));
  EXPECT_EQ(lab.Try(contract::ScaleSet{.set = "web", .replicas = -1}),
            Status(Code::kInvalidArgument, "replicas: -1 is not from 0 to 100000"));
  model::WorkloadSpec huge = DeclaredSet("huge", INT32_MAX);
  EXPECT_EQ(lab.Try(contract::ApplySpec{.spec = huge, .dry_run = true}).code(), Code::kInvalidArgument);
  huge.tenant = "shop";
  EXPECT_EQ(lab.Try(contract::ApplySpec{.spec = huge}).code(), Code::kInvalidArgument);
  model::WorkloadSpec surge = DeclaredSet("surge", 1);
  surge.max_surge = {.amount = INT32_MAX};
  EXPECT_EQ(lab.Try(contract::ApplySpec{.spec = surge}),
            Status(Code::kInvalidArgument, "update.maxSurge: 2147483647 is not from 0 to 100000"));
  // The most that is taken; nothing counts up to it.
  model::WorkloadSpec most = DeclaredSet("most", model::kMostReplicas);
  most.max_surge = {.amount = 100, .percent = true};
  EXPECT_EQ(lab.Try(contract::ApplySpec{.spec = most, .dry_run = true}), Status());
  most.tenant = "shop";
  EXPECT_EQ(lab.Try(contract::ApplySpec{.spec = most, .dry_run = true}).message(),
            "tenant shop: workloads 0 of 10 in use, 100000 more asked for");
  EXPECT_EQ(lab.core.copy().All<WorkloadRecord>().size(), 1u);
}

TEST(SchedulerBounds, AMemberIdOfAnotherIsFoundAmongTheIdsThatThereAre) {
  Lab lab;
  lab.Apply("web-20");
  lab.Apply("web-3");
  lab.Apply("web-x");
  lab.Apply("web-003");
  EXPECT_EQ(lab.Try(contract::ApplySpec{.spec = DeclaredSet("web", 1'000)}).message(),
            "set web: the id of its member web-3 belongs to a workload of its own; delete it or rename the set");
  EXPECT_TRUE(lab.Try(contract::ApplySpec{.spec = DeclaredSet("web", 3)}).ok());
  model::WorkloadSpec surge = DeclaredSet("web", 3);
  surge.max_surge = {.amount = 1};
  EXPECT_EQ(lab.Try(contract::ApplySpec{.spec = surge}).code(), Code::kFailedPrecondition);
}

TEST(SchedulerBounds, ALargeSetIsMadeInParts) {
  Lab lab;
  faults::ResetProbes();
  ASSERT_TRUE(lab.Try(contract::ApplySpec{.spec = DeclaredSet("web", 2'500)}).ok());
  lab.Run(2s);
  EXPECT_EQ(lab.core.copy().MembersOf("web").size(), 2'500u);
  EXPECT_EQ(faults::ProbeHits()["scheduler.set_goes_on"], faults::Compiled() ? 2u : 0u);
  ASSERT_TRUE(lab.Try(contract::ScaleSet{.set = "web", .replicas = 10}).ok());
  lab.Run(2s);
  EXPECT_EQ(lab.core.copy().MembersOf("web").size(), 10u);
}

// Each open draft is a copy of its record: those of sets wait for the store in parts, and other sets have their turn.
TEST(SchedulerBounds, LargeSetsWaitForTheStoreAndHoldNoOthersUp) {
  Lab lab;
  faults::ResetProbes();
  size_t most = 0;
  size_t of_large = 0;  // members that there were when the small one was whole
  lab.observe = [&](const Effect&) {
    most = std::max(most, lab.core.parts().drafts.state().drafts.size());
    const StoreCopy& copy = lab.core.copy();
    if (of_large == 0 && copy.MembersOf("z").size() == 10) of_large = copy.All<WorkloadRecord>().size();
  };
  for (const char* name : {"a", "b", "c", "d"}) lab.Ask(contract::ApplySpec{.spec = DeclaredSet(name, 2'500)});
  lab.Ask(contract::ApplySpec{.spec = DeclaredSet("z", 10)});
  lab.Run(2s);
  EXPECT_EQ(lab.core.copy().All<WorkloadRecord>().size(), 10'010u);
  EXPECT_GE(most, 3'000u);
  EXPECT_LE(most, 4'100u);
  EXPECT_LE(of_large, 6'000u);
  EXPECT_EQ(faults::ProbeHits()["scheduler.sets_wait_for_store"] > 0, faults::Compiled());
}

TEST(SchedulerBounds, ARollingUpdateOfALargeSetIsMadeInParts) {
  Lab lab;
  model::WorkloadSpec spec = DeclaredSet("web", 2'500);
  ASSERT_TRUE(lab.Try(contract::ApplySpec{.spec = spec}).ok());
  lab.Run(2s);
  ASSERT_EQ(lab.core.copy().MembersOf("web").size(), 2'500u);
  faults::ResetProbes();
  spec.spec.image = "busybox:2";
  spec.max_unavailable = {.amount = 100, .percent = true};
  ASSERT_TRUE(lab.Try(contract::ApplySpec{.spec = spec}).ok());
  lab.Run(2s);
  const std::string& revision = lab.core.copy().Find<SetRecord>("web")->revision;
  EXPECT_TRUE(std::ranges::all_of(lab.core.copy().MembersOf("web"), [&](const std::string& id) {
    return lab.core.copy().Find<WorkloadRecord>(id)->workload.revision == revision;
  }));
  EXPECT_EQ(faults::ProbeHits()["scheduler.set_goes_on"], faults::Compiled() ? 2u : 0u);
}

TEST(SchedulerBounds, AStoredSetBeyondTheBoundIsLeftAsItIs) {
  auto store = std::make_shared<LabStore>();
  const std::string key = KeyOf("", RecordKind::kSet, "big");
  SetRecord big{.spec = DeclaredSet("big", 200'000), .revision = "r"};
  store->rows[key] = {.key = key, .value = Encode(big), .created = 1, .modified = 1};
  faults::ResetProbes();
  Lab lab({}, store);
  lab.Run(1s);
  EXPECT_EQ(faults::ProbeHits()["scheduler.set_too_large"] > 0, faults::Compiled());
  EXPECT_TRUE(lab.core.copy().All<WorkloadRecord>().empty());
  ASSERT_FALSE(lab.notices.empty());
  EXPECT_EQ(lab.notices[0].subject, "big");
  EXPECT_EQ(lab.notices[0].detail, "replicas: 200000 is not from 0 to 100000");
  EXPECT_EQ(lab.Try(contract::RestartSet{.set = "big"}), Status()) << "it is still to be made";
  ASSERT_TRUE(lab.Try(contract::ScaleSet{.set = "big", .replicas = 2}).ok());
  lab.Run(1s);
  EXPECT_EQ(lab.core.copy().MembersOf("big").size(), 2u);
}

// --- sizes

TEST(SchedulerBounds, TemplatesAreRefusedByTheFieldThatIsTooLarge) {
  Lab lab;
  const Status variables(Code::kInvalidArgument, "env: 90000 entries are too many; at most 1000 are taken");
  EXPECT_EQ(lab.Try(Lab::ApplyOf("w", WithVariables(90'000))), variables);
  for (const model::WorkloadKind kind : {model::WorkloadKind::kWorkload, model::WorkloadKind::kSet}) {
    contract::ApplySpec apply{.spec = DeclaredSet("w", 1)};
    apply.spec.kind = kind;
    apply.spec.spec = WithVariables(90'000);
    EXPECT_EQ(lab.Try(apply), variables);
    apply.spec.spec = WithVariables(1'000);
    apply.dry_run = true;
    EXPECT_EQ(lab.Try(apply), Status());
    for (int i = 0; i < 5; ++i) apply.spec.labels[fmt::format("l{}", i)] = std::string(30'000, 'x');
    EXPECT_EQ(lab.Try(apply).message(), "labels: takes 147 KiB; at most 128 are taken");
    apply.spec.labels.clear();
    apply.spec.tenant = std::string(300, 't');
    EXPECT_EQ(lab.Try(apply).message(), "tenant: 300 bytes are too many; at most 253 are taken");
  }
  contract::ApplyWorkload metadata = Lab::ApplyOf("w");
  for (int i = 0; i < 2'000; ++i) metadata.metadata[fmt::format("m{}", i)] = "";
  EXPECT_EQ(lab.Try(metadata).message(), "metadata: 2000 entries are too many; at most 1000 are taken");
}

TEST(SchedulerBounds, AllMembersOfASetHaveABoundTogether) {
  Lab lab;
  model::WorkloadSpec set = DeclaredSet("web", model::kMostReplicas);
  set.spec = LargeTemplate();
  const size_t each = WeightOf(set.spec) + WeightOf(set.labels);
  EXPECT_EQ(lab.Try(contract::ApplySpec{.spec = set}),
            Status(Code::kInvalidArgument,
                   fmt::format("replicas: 100000 members of {} KiB each take {} MiB; at most 1024 are taken",
                               (each + 1023) >> 10, (100'000 * each) >> 20)));
  const auto fit = static_cast<int32_t>(model::kMostMembersWeight / each);
  set.replicas = fit + 1;
  EXPECT_EQ(lab.Try(contract::ApplySpec{.spec = set, .dry_run = true}).code(), Code::kInvalidArgument);
  set.replicas = fit;
  EXPECT_EQ(lab.Try(contract::ApplySpec{.spec = set, .dry_run = true}), Status());
  set.max_surge = {.amount = 1};
  EXPECT_EQ(lab.Try(contract::ApplySpec{.spec = set, .dry_run = true}).code(), Code::kInvalidArgument);
  set.labels = {{"app", std::string(30'000, 'x')}};
  set.replicas = fit - 1;
  EXPECT_EQ(lab.Try(contract::ApplySpec{.spec = set, .dry_run = true}).code(), Code::kInvalidArgument);
  set.replicas = 1;
  ASSERT_TRUE(lab.Try(contract::ApplySpec{.spec = set}).ok());
  EXPECT_EQ(lab.Try(contract::ScaleSet{.set = "web", .replicas = fit}).code(), Code::kInvalidArgument);
}

// Each is a template in the store, whether or not it has members.
TEST(SchedulerBounds, ASetWithoutMembersCountsAsAWorkload) {
  Lab lab;
  ASSERT_TRUE(lab.Try(contract::ApplyQuota{{.tenant = "shop", .workloads = 2}}).ok());
  for (const char* name : {"a", "b", "c"}) {
    model::WorkloadSpec set = DeclaredSet(name, 0);
    set.tenant = "shop";
    const Status applied = lab.Try(contract::ApplySpec{.spec = set});
    EXPECT_EQ(applied.message(),
              name == std::string("c") ? "tenant shop: workloads 2 of 2 in use, 1 more asked for" : "");
  }
  EXPECT_EQ(lab.Try(contract::ScaleSet{.set = "a", .replicas = 1}), Status()) << "it is the one that is counted";
}

TEST(SchedulerBounds, ANodeThatSaysTooMuchOfItselfIsNotAccepted) {
  Lab lab;
  contract::NodeFacts facts = lab.Facts("n1");
  for (int i = 0; i < 90'000; ++i) facts.labels[fmt::format("l{}", i)] = "";
  contract::NodeRegistered reply = lab.Register(facts);
  EXPECT_FALSE(reply.accepted);
  EXPECT_EQ(reply.reason, "node.labels: 90000 entries are too many; at most 1000 are taken");
  facts.labels.clear();
  for (int i = 0; i < 10; ++i) facts.labels[fmt::format("l{}", i)] = std::string(30'000, 'x');
  reply = lab.Register(facts);
  EXPECT_EQ(reply.reason, "node: what it says of itself takes 296 KiB; at most 256 are taken");
  lab.AddNode("n1");
  contract::Heartbeat beat{.node = "n1", .used = model::Resources()};
  for (int i = 0; i < 2'000; ++i) beat.used->Set(fmt::format("r{}", i), 1);
  EXPECT_EQ(lab.Try(beat).message(), "used: 2000 entries are too many; at most 1000 are taken");
}

// --- pages

TEST(SchedulerBounds, APageEndsByItsWeight) {
  Lab lab;
  constexpr int kWorkloads = 30;
  contract::ApplySpec set{.spec = DeclaredSet("web", kWorkloads)};
  set.spec.spec = LargeTemplate();
  ASSERT_TRUE(lab.Try(set).ok());
  lab.Run(1s);
  int pages = 0;
  int listed = 0;
  std::string token;
  do {
    const auto page =
        lab.Get<contract::WorkloadsListed>(contract::ListWorkloads{.page = {.limit = 250, .token = token}});
    ASSERT_FALSE(page.workloads.empty());
    EXPECT_LT(WeightOf(page.workloads), (4u << 20) + model::kMostTemplateWeight + (64 << 10));
    listed += static_cast<int>(page.workloads.size());
    token = page.next;
    ++pages;
  } while (!token.empty());
  EXPECT_EQ(listed, kWorkloads);
  EXPECT_EQ(pages, 4);
  // Small ones fill a page as before.
  for (int i = 0; i < 300; ++i) lab.Apply(fmt::format("small-{}", i), Lab::Template(10));
  EXPECT_EQ(lab.Get<contract::WorkloadsListed>(contract::ListWorkloads{.page = {.limit = 250}}).workloads.size(), 250u);
}

TEST(SchedulerBounds, APageOfATenantIsFullOfWhatIsItsOwn) {
  Lab lab;
  const auto ask = [&](const std::string& tenant, contract::ClusterRequest body) {
    const contract::RequestId id = lab.Ask(contract::GetSummary{}) + 1'000'000;
    lab.Post(Asked{.request = id, .body = std::move(body), .tenant = tenant});
    lab.Run(10ms);
    return lab.answers.at(id);
  };
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(ask("bank", contract::ApplySpec{.spec = DeclaredSet(fmt::format("a{}", i), 0)}).status.ok());
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(ask("shop", contract::ApplySpec{.spec = DeclaredSet(fmt::format("b{}", i), 0)}).status.ok());
  const auto page = [&](const std::string& token) {
    return std::get<contract::SetsListed>(*ask("shop", contract::ListSets{.page = {.limit = 2, .token = token}}).reply);
  };
  const contract::SetsListed first = page("");
  ASSERT_EQ(first.sets.size(), 2u);
  EXPECT_EQ(first.sets[0].spec.name, "b0");
  EXPECT_EQ(first.next, "b1");
  const contract::SetsListed last = page(first.next);
  ASSERT_EQ(last.sets.size(), 1u);
  EXPECT_EQ(last.sets[0].spec.name, "b2");
  EXPECT_EQ(last.next, "");
}

}  // namespace
}  // namespace muster::scheduler
