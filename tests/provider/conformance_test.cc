// Every check of conformance holds for our provider, and fails, it alone, for a provider with its rule broken.
#include "provider/conformance.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/probe.h"
#include "host/fault_table_for_test.h"
#include "host/system_clock.h"
#include "host/temp_dir_for_test.h"
#include "provider/broken_provider.h"
#include "provider/sim_backend.h"
#include "role/provider/local_provider.h"

namespace muster::provider {
namespace {

using contract::CreateRequest;
using contract::ListReply;
using contract::ListRequest;
using contract::ProviderReply;
using contract::ProviderRequest;
using contract::TransitionAck;
using model::MachineState;
using Rule = BrokenProvider::Rule;
using Reply = Result<ProviderReply>;

constexpr std::string_view kCatalogue = R"(
zones: [a]
types:
  - name: quick
    capacity: on-demand
    resources: {cpu: 1}
    price: 1
    share: 3
    create: {median: 2ms, p99: 4ms}
    configure: {median: 2ms, p99: 4ms}
    drain: {median: 1h, p99: 2h}
    delete: {median: 2ms, p99: 4ms}
  - name: owned
    capacity: bare-metal
    resources: {cpu: 1}
    price: 1
    share: 1
    starts: idle
    deletable: false
)";

class Conformance : public ::testing::Test {
 protected:
  Conformance() {
    auto catalogue = ReadCatalogue(kCatalogue, "test");
    auto backend = std::make_unique<SimBackend>(*std::move(catalogue), SimOptions{.machines = 12});
    provider_.emplace(LocalOptions{.data_dir = dir_.path(), .journal = {}, .config = {.name = "sim"}},
                      std::move(backend), clock_);
    const Status started = provider_->Start();
    EXPECT_TRUE(started.ok()) << started.ToString();
  }

  std::vector<CheckResult> Run(contract::ProviderPort& port, bool use_machines = true) {
    return RunConformance(port,
                          {.use_machines = use_machines,
                           .grace_seconds = 0,
                           .drain_margin = 300ms,
                           .patience = 20s,
                           .poll_every = 1ms,
                           .run_id = std::to_string(++runs_)},
                          clock_);
  }
  std::set<std::string> BrokenChecks(contract::ProviderPort& port) {
    std::set<std::string> names;
    for (const CheckResult& result : Run(port)) {
      if (result.verdict == Verdict::kBroken) names.insert(result.name + ": " + result.detail);
    }
    return names;
  }

  const host::SystemClock clock_;
  const host::TempDir dir_;
  std::optional<LocalProvider> provider_;
  int runs_ = 0;
};

TEST_F(Conformance, OurProviderHoldsEveryRule) {
  for (const CheckResult& result : Run(*provider_)) {
    EXPECT_EQ(result.verdict, Verdict::kHolds) << result.name << ": " << result.detail;
  }
}

TEST_F(Conformance, WithoutMachinesItChangesNone) {
  const auto before = provider_->View()->newest_change;
  int not_shown = 0;
  for (const CheckResult& result : Run(*provider_, false)) {
    EXPECT_NE(result.verdict, Verdict::kBroken) << result.name << ": " << result.detail;
    not_shown += result.verdict == Verdict::kNotShown ? 1 : 0;
  }
  EXPECT_EQ(not_shown, 14) << "the life of a machine";
  EXPECT_EQ(provider_->View()->newest_change, before);
}

contract::FenceToken* TokenOf(ProviderRequest& request) {
  return std::visit(
      [](auto& body) -> contract::FenceToken* {
        if constexpr (requires { body.fence; }) return &body.fence;
        return nullptr;
      },
      request);
}
const std::string& MachineOf(const ProviderRequest& request) {
  static const std::string none;
  return std::visit(
      [](const auto& body) -> const std::string& {
        if constexpr (requires { body.machine_id; }) return body.machine_id;
        return none;
      },
      request);
}
Rule ForToken(std::function<void(contract::FenceToken&)> change) {
  return {.request = [change](ProviderRequest& request) -> std::optional<Reply> {
            if (auto* token = TokenOf(request)) change(*token);
            return std::nullopt;
          },
          .reply = {}};
}
template <class Request>
Rule ForRequest(std::function<void(Request&)> change) {
  return {.request = [change](ProviderRequest& request) -> std::optional<Reply> {
            if (auto* body = std::get_if<Request>(&request)) change(*body);
            return std::nullopt;
          },
          .reply = {}};
}
template <class Body>
Rule ForReply(std::function<void(const ProviderRequest&, Body&)> change) {
  return {.request = {}, .reply = [change](const ProviderRequest& asked, Reply& reply) {
            if (!reply) return;
            if (auto* body = std::get_if<Body>(&*reply)) change(asked, *body);
          }};
}
Rule OnAck(size_t kind, std::function<void(TransitionAck&)> change) {
  return ForReply<TransitionAck>([kind, change](const ProviderRequest& asked, TransitionAck& ack) {
    if (asked.index() == kind) change(ack);
  });
}
Rule AnotherId(size_t kind) {
  return OnAck(kind, [n = std::make_shared<std::atomic<int>>(0)](TransitionAck& ack) {
    ack.operation_id += std::to_string(++*n);
  });
}
Rule CodeBecomes(std::function<bool(const ProviderRequest&, Code)> when, Code code) {
  return {.request = {}, .reply = [when, code](const ProviderRequest& asked, Reply& reply) {
            if (when(asked, reply ? Code::kOk : reply.error().code())) reply = Error(code, "broken");
          }};
}
void Change(contract::MachineRecord& record, const std::function<void(model::Machine&)>& change) {
  model::Machine machine = *record;
  change(machine);
  record = contract::MachineRecord(std::move(machine));
}

struct Case {
  std::string check;
  Rule rule;
  std::string mutant;  // in the core instead
};

std::vector<Case> FenceCases() {
  std::vector<Case> cases;
  cases.push_back({"empty-id",
                   CodeBecomes([](const auto& asked,
                                  Code code) { return code == Code::kInvalidArgument && MachineOf(asked).empty(); },
                               Code::kNotFound),
                   {}});
  cases.push_back({"unknown-id",
                   CodeBecomes(
                       [](const auto& asked, Code code) {
                         return code == Code::kNotFound && std::holds_alternative<contract::GetRequest>(asked);
                       },
                       Code::kUnknown),
                   {}});
  cases.push_back({"fence-older-sequence",
                   ForToken([](auto& token) {
                     if (token.given()) token.sequence = 100 - token.sequence;
                   }),
                   {}});
  cases.push_back({"fence-older-epoch", {}, "provider.fence_ignores_epoch"});
  cases.push_back({"fence-same-token", {}, "provider.fence_lets_equal_pass"});
  cases.push_back(
      {"fence-new-epoch", ForToken([](auto& token) { token.epoch = std::min<int64_t>(token.epoch, 2); }), {}});
  cases.push_back({"fence-unknown-machine", {}, "provider.existence_before_fence"});
  cases.push_back({"fence-zero-token",
                   ForToken([](auto& token) {
                     if (token.epoch == 0 && token.sequence == 0) token = {};
                   }),
                   {}});
  cases.push_back({"fence-per-machine", {}, "provider.fence_per_shard"});
  cases.push_back({"fence-per-shard",
                   ForToken([](auto& token) {
                     if (token.shard_id.contains("fence-per-shard")) token.shard_id = "all";
                   }),
                   {}});
  cases.push_back({"fence-no-token",
                   ForToken([](auto& token) {
                     if (!token.given()) token = {.shard_id = "nobody", .epoch = 0, .sequence = 0};
                   }),
                   {}});
  cases.push_back({"fence-failed-call", {}, "provider.failed_call_keeps_its_token"});
  cases.push_back({"precondition-means-fenced",
                   CodeBecomes(
                       [](const auto& asked, Code code) {
                         return code == Code::kAborted && std::holds_alternative<contract::DrainRequest>(asked);
                       },
                       Code::kFailedPrecondition),
                   {}});
  return cases;
}

std::vector<Case> ListCases() {
  std::vector<Case> cases;
  cases.push_back({"records-sound",
                   ForReply<ListReply>([](const auto& asked, ListReply& list) {
                     if (std::get<ListRequest>(asked) != ListRequest{} || list.machines.empty()) return;
                     Change(list.machines[0], [](model::Machine& machine) { machine.price_per_hour = {-1}; });
                   }),
                   {}});
  cases.push_back({"list-unique",
                   ForReply<ListReply>([](const auto& asked, ListReply& list) {
                     if (std::get<ListRequest>(asked) == ListRequest{}) list.machines.push_back(list.machines[0]);
                   }),
                   {}});
  cases.push_back({"list-speculative",
                   ForReply<ListReply>([](const auto& asked, ListReply& list) {
                     const auto& request = std::get<ListRequest>(asked);
                     if (!request.states.empty() || request.max_results > 0) return;
                     std::erase_if(list.machines, [](const auto& m) { return m->state == MachineState::kSpeculative; });
                   }),
                   {}});
  cases.push_back({"list-states",
                   ForRequest<ListRequest>([](ListRequest& list) {
                     if (list.max_results == 0 && list.states == std::vector{MachineState::kIdle}) list.states.clear();
                   }),
                   {}});
  cases.push_back({"list-cap",
                   ForRequest<ListRequest>([](ListRequest& list) {
                     if (list.max_results > 1) ++list.max_results;
                   }),
                   {}});
  cases.push_back({"list-pages", {}, "provider.page_skips_the_rest"});
  cases.push_back({"list-rotation", {}, "provider.no_rotation"});
  cases.push_back({"list-unknown-cursor", {}, "provider.unknown_cursor_is_empty"});
  cases.push_back({"list-delta-quiet",
                   ForRequest<ListRequest>([](ListRequest& list) {
                     if (list.max_results == 0) list.since_revision.clear();
                   }),
                   {}});
  cases.push_back({"list-delta",
                   ForReply<ListReply>([](const auto& asked, ListReply& list) {
                     const auto& request = std::get<ListRequest>(asked);
                     if (request.max_results == 0 && request.since_revision.size() > 11)
                       list.revision = request.since_revision;
                   }),
                   {}});
  return cases;
}

std::vector<Case> LifeCases() {
  std::vector<Case> cases;
  cases.push_back({"create", OnAck(0, [](TransitionAck& ack) { ack.operation_id.clear(); }), {}});
  cases.push_back({"create-again", AnotherId(0), {}});
  cases.push_back({"configure-again", AnotherId(1), {}});
  cases.push_back({"drain-again", AnotherId(2), {}});
  cases.push_back({"delete-again", AnotherId(3), {}});
  cases.push_back({"fence-before-repetition", {}, "provider.repetition_before_fence"});
  cases.push_back({"configure",
                   ForReply<contract::GetReply>([](const auto&, contract::GetReply& got) {
                     Change(got.machine, [](model::Machine& machine) {
                       if (!machine.cluster.empty()) machine.cluster = "elsewhere";
                     });
                   }),
                   {}});
  cases.push_back({"configure-echo",
                   ForRequest<contract::ConfigureRequest>([](contract::ConfigureRequest& configure) {
                     for (auto& [key, value] : configure.shard_metadata) value = value.c_str();
                   }),
                   {}});
  cases.push_back({"configure-other-cluster", {}, "provider.replay_ignores_cluster"});
  cases.push_back({"delete-bound",
                   CodeBecomes(
                       [](const auto& asked, Code code) {
                         return code == Code::kAborted && std::holds_alternative<contract::DeleteRequest>(asked);
                       },
                       Code::kFailedPrecondition),
                   {}});
  cases.push_back(
      {"drain",
       ForRequest<contract::DrainRequest>([](contract::DrainRequest& drain) { drain.grace_period_seconds = 3600; }),
       {}});
  cases.push_back({"drain-clears", {}, "provider.drain_keeps_metadata"});
  cases.push_back({"delete",
                   ForReply<contract::GetReply>([](const auto&, contract::GetReply& got) {
                     Change(got.machine, [](model::Machine& machine) {
                       if (machine.state == MachineState::kSpeculative) machine.host = {.provider = "p", .ref = "r"};
                     });
                   }),
                   {}});
  return cases;
}

TEST_F(Conformance, EachBrokenRuleFailsItsCheckAndNoOther) {
  std::set<std::string> covered;
  std::map<std::string, std::string> found_by;
  for (const auto& cases : {FenceCases(), ListCases(), LifeCases()}) {
    for (const Case& c : cases) {
      covered.insert(c.check);
      BrokenProvider broken(*provider_, c.rule);
      std::optional<faults::ScopedMutant> mutant;
      if (!c.mutant.empty()) mutant.emplace(c.mutant);
      found_by[c.mutant] = c.check;
      const std::set<std::string> found = BrokenChecks(broken);
      EXPECT_EQ(found.size(), 1u) << c.check << " broken, found: " << fmt::format("{}", fmt::join(found, "; "));
      if (found.empty()) continue;
      EXPECT_TRUE(found.begin()->starts_with(c.check + ": ")) << c.check << " broken, found: " << *found.begin();
    }
  }
  for (const auto& [name, rule] : ConformanceChecks()) EXPECT_TRUE(covered.contains(std::string(name))) << name;
  for (const faults::Row& bug :
       faults::RowsOf("Conformance.EachBrokenRuleFailsItsCheckAndNoOther", "provider", "bug")) {
    EXPECT_EQ(found_by[bug.name], bug.says) << bug.name;
  }
}

}  // namespace
}  // namespace muster::provider
