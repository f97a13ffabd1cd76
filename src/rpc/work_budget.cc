#include "rpc/work_budget.h"

#include <fmt/format.h>

#include <unordered_map>
#include <utility>

#include "model/names.h"

namespace muster::rpc {
namespace {

struct CallWork {
  CallWork(CallBudgets& from, std::string caller) : budgets(from), who(std::move(caller)) {}

  CallBudgets& budgets;
  const std::string who;
  std::shared_ptr<void> answer = nullptr;  // what it takes
};

struct CallsAtWork {
  std::mutex mu;
  std::unordered_map<const void*, std::shared_ptr<CallWork>> by_context;  // guarded by mu
};

CallsAtWork& AllCalls() {
  static CallsAtWork calls;
  return calls;
}

std::shared_ptr<CallWork> Find(const grpc::ServerContextBase& context) {
  const std::lock_guard lock(AllCalls().mu);
  const auto found = AllCalls().by_context.find(&context);
  return found == AllCalls().by_context.end() ? nullptr : found->second;
}

}  // namespace

Result<std::shared_ptr<void>> WorkBudget::Take(const std::string& who, size_t bytes, bool always) {
  const std::lock_guard lock(taken_->mu);
  const auto found = taken_->of.find(who);
  const size_t has = found == taken_->of.end() ? 0 : found->second;
  const bool first = always || taken_->all == 0 || (bounds_.first_of_caller && has == 0);
  const bool of_each = has + bytes <= bounds_.of_each && taken_->all + bytes <= bounds_.of_both;
  const bool fits = of_each || (has + bytes <= bounds_.of_caller && taken_->all + bytes <= bounds_.of_all);
  if (!first && !fits && bytes > bounds_.harmless) {
    return Error(Code::kResourceExhausted,
                 fmt::format("{} of {} bytes are under way here, {} of them of {}, and no more are allowed; {}", what_,
                             taken_->all, has, model::Quoted(who), advice_));
  }
  taken_->of[who] += bytes;
  taken_->all += bytes;
  // The pointer carries nothing but its end.
  return std::shared_ptr<void>(taken_.get(), [taken = taken_, who, bytes](void*) { GiveBack(*taken, who, bytes); });
}

void WorkBudget::GiveBack(Taken& taken, const std::string& who, size_t bytes) {
  const std::lock_guard lock(taken.mu);
  taken.all -= bytes;
  const auto found = taken.of.find(who);
  if (found == taken.of.end()) return;  // the share had no bytes
  found->second -= bytes;
  if (found->second == 0) taken.of.erase(found);
}

size_t WorkBudget::taken() const {
  const std::lock_guard lock(taken_->mu);
  return taken_->all;
}

std::shared_ptr<void> BeginCall(const grpc::ServerContextBase& context, CallBudgets& budgets, const std::string& who) {
  auto call = std::make_shared<CallWork>(budgets, who);
  {
    const std::lock_guard lock(AllCalls().mu);
    AllCalls().by_context.insert_or_assign(&context, call);
  }
  // The context, which is gone by then, may be another call's.
  return {call.get(), [context = &context, call](void*) {
            std::shared_ptr<void> answer;
            const std::lock_guard lock(AllCalls().mu);
            const auto found = AllCalls().by_context.find(context);
            if (found != AllCalls().by_context.end() && found->second == call) AllCalls().by_context.erase(found);
            answer = std::move(call->answer);
          }};
}

Status TakeForAnswer(const grpc::ServerContextBase& context, size_t bytes) {
  const std::shared_ptr<CallWork> call = Find(context);
  if (call == nullptr) return {};
  {
    const std::lock_guard lock(AllCalls().mu);
    call->answer.reset();
  }
  auto share = call->budgets.answers.Take(call->who, bytes);
  if (!share) return share.error();
  const std::lock_guard lock(AllCalls().mu);
  call->answer = *std::move(share);
  return {};
}

StreamBudget::StreamBudget(const grpc::ServerContextBase& context) {
  const std::shared_ptr<CallWork> call = Find(context);
  if (call == nullptr) return;
  who_ = call->who;
  budget_.emplace(call->budgets.streams);
}

Result<std::shared_ptr<void>> StreamBudget::Take(size_t bytes, bool first) {
  if (!budget_) return std::shared_ptr<void>();
  return budget_->Take(who_, bytes, first);
}

}  // namespace muster::rpc
